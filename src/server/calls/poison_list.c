/* poison_list.c: see poison_list.h. */
#include "calls/poison_list.h"

#include <stdlib.h>
#include <string.h>

/* What differs between two sendings of one request: the time that its template is told, and a seed, which is
 * drawn for whoever has not named one. */
static void forget_draws(call_task task, ProtobufCMessage *m)
{
    if (task == CALL_TRANSCRIBE) ((Shoal__V1__TranscribeRequest *)(void *)m)->seed = 0;
    if (task != CALL_GENERATE) return;
    Shoal__V1__GenerateRequest *g = (void *)m;
    g->clock = 0;
    if (g->sampling) g->sampling->seed = 0;
}

static bool add_request(sha256 *s, const call_order *o)
{
    bool draws = o->task == CALL_GENERATE || o->task == CALL_TRANSCRIBE;
    ProtobufCMessage *m = draws ? call_order_request(o) : NULL;
    if (!draws) sha256_add(s, o->msg, o->n_msg);
    if (!m) return !draws;
    forget_draws(o->task, m);
    size_t n = protobuf_c_message_get_packed_size(m);
    uint8_t *bytes = malloc(n ? n : 1);
    if (bytes) sha256_add(s, bytes, protobuf_c_message_pack(m, bytes));
    free(bytes);
    protobuf_c_message_free_unpacked(m, NULL);
    return bytes != NULL;
}

static bool digest_of(const call_order *o, sha256_digest *ret)
{
    const sha256_digest *more = o->feed ? call_feed_digest(o->feed) : NULL;
    if (o->feed && !more) return false; /* half a request is like many others */
    sha256 *s = sha256_new();
    if (!s) return false;
    sha256_add_text(s, CALL_TASKS[o->task].name);
    sha256_add_text(s, o->model);
    bool whole = add_request(s, o);
    if (more) sha256_add(s, more, sizeof *more);
    sha256_end(s, ret);
    return whole;
}

void poison_list_add(poison_list *q, const call_order *o, uint64_t until_ns)
{
    sha256_digest d;
    size_t at = 0;
    if (!digest_of(o, &d)) return;
    poison_list_place *set = q->places[d.bytes[0] % POISON_LIST_SETS];
    for (size_t i = 1; i < POISON_LIST_WAYS; i++)
        if (set[i].until_ns < set[at].until_ns) at = i;
    for (size_t i = 0; i < POISON_LIST_WAYS; i++)
        if (memcmp(&set[i].digest, &d, sizeof d) == 0) at = i;
    set[at].digest = d;
    set[at].until_ns = until_ns;
    if (until_ns > q->until_ns) q->until_ns = until_ns;
}

uint64_t poison_list_until(const poison_list *q, const call_order *o, uint64_t now_ns)
{
    sha256_digest d;
    if (q->until_ns <= now_ns || !digest_of(o, &d)) return 0;
    const poison_list_place *set = q->places[d.bytes[0] % POISON_LIST_SETS];
    for (size_t i = 0; i < POISON_LIST_WAYS; i++)
        if (set[i].until_ns > now_ns && memcmp(&set[i].digest, &d, sizeof d) == 0) return set[i].until_ns;
    return 0;
}
