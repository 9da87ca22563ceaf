/* model_send.h: Fetch (cluster.proto): a file in pieces, as fast as the other end takes them.
 *
 *     model_sends s = {0};                         // how many run: one for each who serves
 *     model_send(&s, c, msg, n, "", find, me);     // in the method's on_call */
#ifndef TRANSFER_MODEL_SEND_H
#define TRANSFER_MODEL_SEND_H

#include "shoal/v1/cluster.pb-c.h"
#include "grpc/grpc.h"

enum { MODEL_SEND_MAX = 16, MODEL_SEND_PATH = 4096 };

typedef struct model_sends {
    unsigned n_running;
} model_sends;

/* The path of the file that has this digest; false: none that others may have. */
typedef bool model_send_find(const void *user, const char *digest, char ret_path[MODEL_SEND_PATH]);

/* Ends the call, now or when all has left. by: for the log, "" when it is not known. s outlives the call. */
void model_send(model_sends *s, grpc_call *c, const uint8_t *msg, size_t n, const char *by,
                model_send_find *find, const void *user);

/* The other end: a piece of a file of which `left` bytes are still to come. NULL, and *ret to be freed with
 * shoal__v1__fetch_chunk__free_unpacked; or what is wrong with it, and *ret is NULL. */
const char *model_piece_take(const uint8_t *msg, size_t n, uint64_t left, Shoal__V1__FetchChunk **ret);
extern const char MODEL_PIECE_TOO_LONG[]; /* the one of these that is a lie */

#endif
