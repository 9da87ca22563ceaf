/* grpc_ingress_impl.h: what the services behind grpc_ingress.c share. */
#ifndef INGRESS_GRPC_INGRESS_IMPL_H
#define INGRESS_GRPC_INGRESS_IMPL_H

#include "base/list.h"
#include "messages/proto_schema.h"
#include "ingress/grpc_ingress.h"
#include "ingress/http_ingress.h"
#include "grpc/grpc.h"

typedef struct grpc_watch grpc_watch;
typedef struct grpc_asker grpc_asker;

struct grpc_ingress {
    struct gateway *gateway;
    grpc_server *server;
    http_guest guest; /* what HTTP does with requests that grpc_wants */
    proto_schema *schema;
    grpc_method *methods;
    grpc_stream_method pieces;      /* of shoal.v1.Shoal/Transcribe */
    const proto_method **described; /* of GRPC_RPCS, in its order */
    list_node watches;              /* grpc_health.c's */
    size_t n_watches;
    list_node askers;   /* grpc_reflection.c's */
    bool hears;         /* the registry */
    bool closing;       /* the gateway goes: messages that are still being read become no requests */
    size_t n_jobs;      /* long messages in the thread pool, which read the schema */
    bool server_closed; /* and the rest waits for these */
    void (*closed)(void *user);
    void *closed_user;
};

/* grpc_health.c. A watch is told what has changed; user of all methods is the grpc_ingress. */
enum { N_GRPC_HEALTH_METHODS = 2, GRPC_HEALTH_MESSAGE_MAX = 4096 };
extern const grpc_method GRPC_HEALTH_METHODS[N_GRPC_HEALTH_METHODS];
int grpc_health_open(grpc_ingress *grpc, shoal_err *err);
void grpc_health_tell(grpc_ingress *grpc); /* watches hear what has changed */
void grpc_health_deafen(grpc_ingress *grpc);
void grpc_health_drain(grpc_ingress *grpc);

/* grpc_reflection.c */
void grpc_reflection_drain(grpc_ingress *grpc);
enum { N_GRPC_REFLECTION_STREAMS = 2 };
extern const grpc_stream_method GRPC_REFLECTION_STREAMS[N_GRPC_REFLECTION_STREAMS];

#endif
