/* backend_net_impl.h: a network and its engine, as backend_net.c and backend_speech.c share them. */
#ifndef BACKEND_BACKEND_NET_IMPL_H
#define BACKEND_BACKEND_NET_IMPL_H

#include "backend/backend_model.h"
#include "backend/stage_link.h"

typedef struct net_backend {
    backend_model model;
    engine *engine;
    stage_link *link;          /* to the other stages of a network that is cut; NULL: all layers are here */
    preprocessor preprocessor; /* what it reads besides text */
    const char *longer_by;
    bool exact_resume;
} net_backend;

/* As the operations of these names, of a state that is zeroed by its owner. */
int backend_net_open_state(net_backend *b, backend_source *s, backend_digests *ret_digests, shoal_err *err);
void backend_net_close_state(net_backend *b);
int backend_net_start(void *b, const backend_options *o, const backend_env *env, shoal_err *err);
void backend_net_describe(const void *b, backend_about *ret);
void backend_net_stats(const void *b, engine_stats *ret);
bool backend_net_adapter(const void *b, size_t i, char ret_name[64], char ret_digest[65]);
void backend_net_cancel(void *b, uint64_t id);
void backend_net_stop(void *b);

#endif
