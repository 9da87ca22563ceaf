/* response_buffer.c: events and an end, kept; see response_buffer.h. */
#include "ensemble/response_buffer.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void response_buffer_init(response_buffer *k, const char *model)
{
    *k = (response_buffer){.model = model, .sure = -1, .hopeless_at = -1};
}

/* ---- what comes ---------------------------------------------------------------------------------- */

/* prob_sum: of all tokens up to this one. */
static void note_token(response_buffer *k, double prob_sum)
{
    double prob = prob_sum - k->prob_sum;
    k->n_tokens++;
    k->prob_sum = prob_sum;
    k->square_sum += prob * prob;
    if (k->hopeless_at >= 0 || !k->is_hopeless) return;
    if (k->is_hopeless(k->user, response_buffer_confidence_at_most(k)))
        k->hopeless_at = response_buffer_confidence(k);
}

static void note_delta(response_buffer *k, const Shoal__V1__Delta *d)
{
    if (d->n_ids == 0) return;
    size_t i = 0, n_told = d->n_earlier_prob_sums < d->n_ids ? d->n_earlier_prob_sums : d->n_ids - 1;
    for (; i < n_told; i++) note_token(k, d->earlier_prob_sums[i]);
    for (; i < d->n_ids; i++) /* a worker of an earlier version tells the last sum alone */
        note_token(k, k->prob_sum + (d->prob_sum - k->prob_sum) / (double)(d->n_ids - i));
}

static void *room(buf *b, size_t n)
{
    if (buf_reserve(b, n) != 0) return NULL;
    void *at = b->data + b->len;
    b->len += n;
    return at;
}

void response_buffer_note(response_buffer *k, const call_order *o, const ProtobufCMessage *m)
{
    if (o->task == CALL_GENERATE && ((const Shoal__V1__GenerateEvent *)m)->delta)
        note_delta(k, ((const Shoal__V1__GenerateEvent *)m)->delta);
    uint32_t n = (uint32_t)protobuf_c_message_get_packed_size(m);
    uint8_t *at = k->lost ? NULL : room(&k->events, sizeof n + n);
    if (!at) {
        k->lost = true;
        return;
    }
    memcpy(at, &n, sizeof n);
    protobuf_c_message_pack(m, at + sizeof n);
}

static double sure_of_classes(const Shoal__V1__ClassifyReply *r)
{
    double sure = -1;
    for (size_t i = 0; i < r->n_results; i++) {
        if (r->results[i]->n_labels == 0) continue;
        double best = r->results[i]->labels[0]->score;
        if (sure < 0 || best < sure) sure = best;
    }
    return sure;
}

static double sure_of_spans(const Shoal__V1__TagReply *r)
{
    double sure = -1;
    for (size_t i = 0; i < r->n_results; i++) {
        for (size_t j = 0; j < r->results[i]->n_spans; j++) {
            double score = r->results[i]->spans[j]->score;
            if (sure < 0 || score < sure) sure = score;
        }
    }
    return sure;
}

static double sure_of(const call_order *o, const ProtobufCMessage *reply)
{
    switch (o->task) {
    case CALL_CLASSIFY:
    case CALL_CLASSIFY_IMAGE: return sure_of_classes((const Shoal__V1__ClassifyReply *)reply);
    case CALL_TAG: return sure_of_spans((const Shoal__V1__TagReply *)reply);
    default: return -1;
    }
}

enum { N_STRINGS = 10 };
static void strings_of(call_result *r, const char **ret[N_STRINGS])
{
    const char **all[N_STRINGS] = {&r->message, &r->model,  &r->replica_id, &r->version,  &r->quantisation,
                                   &r->digest,  &r->wanted, &r->why,        &r->identity, &r->adapter_digest};
    memcpy(ret, all, sizeof all);
}

/* The strings one behind the other, NULL as nothing; their places follow when all are there. */
static void keep_strings(response_buffer *k)
{
    const char **at[N_STRINGS];
    strings_of(&k->result, at);
    for (int i = 0; i < N_STRINGS; i++)
        if (*at[i]) buf_append(&k->strings, *at[i], strlen(*at[i]) + 1);
    size_t n = 0;
    for (int i = 0; i < N_STRINGS; i++) {
        if (!*at[i] || k->strings.failed) continue;
        size_t len = strlen(*at[i]) + 1;
        *at[i] = k->strings.data + n;
        n += len;
    }
}

void response_buffer_end(response_buffer *k, const call_order *o, const call_result *r)
{
    assert(!k->ended);
    k->ended = true;
    k->result = *r;
    k->result.reply = NULL;
    k->result.trace = NULL;
    keep_strings(k);
    if (r->reply) {
        size_t n = protobuf_c_message_get_packed_size(r->reply);
        uint8_t *at = room(&k->reply, n + 1); /* an empty message is a reply, too */
        if (at) protobuf_c_message_pack(r->reply, at);
        k->sure = sure_of(o, r->reply);
    }
    k->lost |= k->strings.failed || k->reply.failed;
}

/* ---- what is known of it ------------------------------------------------------------------------- */

bool response_buffer_is_whole(const response_buffer *k)
{
    return k->ended && !k->lost && k->result.status == 0;
}

double response_buffer_confidence(const response_buffer *k)
{
    if (k->n_tokens > 0) return k->prob_sum / (double)k->n_tokens;
    return k->sure > 0 ? k->sure : 0;
}

double response_buffer_confidence_at_most(const response_buffer *k)
{
    if (k->n_tokens < RESPONSE_BUFFER_TOKENS_MIN) return 1;
    double n = (double)k->n_tokens, mean = k->prob_sum / n, variance = k->square_sum / n - mean * mean;
    double most = mean + 2 * sqrt((variance > 0 ? variance : 0) / n);
    return most < 1 ? most : 1;
}

/* ---- once more ----------------------------------------------------------------------------------- */

bool response_buffer_has_more(const response_buffer *k)
{
    return k->at < k->events.len;
}

ProtobufCMessage *response_buffer_next(response_buffer *k, const call_order *o)
{
    uint32_t n;
    if (!response_buffer_has_more(k)) return NULL;
    const uint8_t *at = (const uint8_t *)k->events.data + k->at;
    memcpy(&n, at, sizeof n);
    ProtobufCMessage *m = protobuf_c_message_unpack(CALL_TASKS[o->task].reply, NULL, n, at + sizeof n);
    if (m) k->at += sizeof n + n;
    return m;
}

int response_buffer_result(const response_buffer *k, const call_order *o, call_result *ret,
                           ProtobufCMessage **ret_reply)
{
    const uint8_t *at = (const uint8_t *)k->reply.data;
    *ret = k->result;
    *ret_reply = NULL;
    if (k->lost) goto nomem;
    if (k->reply.len == 0) return 0;
    *ret_reply = protobuf_c_message_unpack(CALL_TASKS[o->task].reply, NULL, k->reply.len - 1, at);
    if (!*ret_reply) goto nomem;
    ret->reply = *ret_reply;
    return 0;
nomem:
    *ret = call_result_of(o, SHOAL_ENOMEM, "out of memory");
    return SHOAL_ENOMEM;
}

void response_buffer_free(ProtobufCMessage *m)
{
    if (m) protobuf_c_message_free_unpacked(m, NULL);
}

void response_buffer_done(response_buffer *k)
{
    buf_done(&k->events);
    buf_done(&k->strings);
    buf_done(&k->reply);
    *k = (response_buffer){0};
}
