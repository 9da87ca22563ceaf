/* encode_put.c: replies of encoders as JSON; see encode_put.h. */
#include "messages/encode_put.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "json/json.h"
#include "base/number.h"
#include "base/rank.h"
#include "base/utf8.h"

/* Nine digits bring every float back exactly; JSON has no NaN or infinity. */
static void put_float(buf *out, float v)
{
    if (isfinite(v))
        number_put(out, (double)v, 9);
    else
        buf_puts(out, "null");
}

static void put_string(buf *out, const char *s)
{
    json_put_string(out, s, strlen(s));
}

static void put_tail(buf *out, const encode_spec *s, uint64_t n_tokens)
{
    buf_puts(out, "],\"model\":");
    put_string(out, s->model);
    buf_printf(out, ",\"usage\":{\"prompt_tokens\":%llu,\"total_tokens\":%llu}}",
               (unsigned long long)n_tokens, (unsigned long long)n_tokens);
}

/* Entry number i of the list is about input `index`. */
static void put_index_of(buf *out, size_t i, size_t index)
{
    buf_puts(out, i ? ",{\"index\":" : "{\"index\":");
    number_put_u64(out, index);
    buf_putc(out, ',');
}

static void put_index(buf *out, size_t i)
{
    put_index_of(out, i, i);
}

static void put_vector(buf *out, const float *v, size_t n, bool base64)
{
    if (base64) {
        buf_putc(out, '"');
        base64_encode(out, v, n * sizeof *v); /* little-endian hosts only, as all ours are */
        buf_putc(out, '"');
        return;
    }
    buf_putc(out, '[');
    for (size_t i = 0; i < n; i++) {
        if (i) buf_putc(out, ',');
        put_float(out, v[i]);
    }
    buf_putc(out, ']');
}

/* The first n values, at the length of one again, as OpenAI's "dimensions". */
static void put_shortened(buf *out, const float *v, size_t n, bool base64)
{
    buf values = {0};
    double squares = 0;
    for (size_t i = 0; i < n; i++) squares += (double)v[i] * (double)v[i];
    double scale = squares > 0 ? 1 / sqrt(squares) : 1;
    for (size_t i = 0; i < n; i++) {
        float x = (float)((double)v[i] * scale);
        buf_append(&values, &x, sizeof x);
    }
    if (values.failed)
        out->failed = true;
    else
        put_vector(out, (const float *)(const void *)values.data, n, base64);
    buf_done(&values);
}

/* ---- an entry for each input ------------------------------------------------------------------------- */

static void put_message(buf *out, const ProtobufCMessage *m);

/* The messages of a repeated field, at most so many. */
static void put_items(buf *out, const ProtobufCMessage *m, const ProtobufCFieldDescriptor *f, size_t most)
{
    size_t n = *(const size_t *)(const void *)((const char *)m + f->quantifier_offset);
    ProtobufCMessage **items = *(ProtobufCMessage ***)(void *)((char *)m + f->offset);
    buf_putc(out, '[');
    for (size_t i = 0; i < n && i < most; i++) {
        if (i) buf_putc(out, ',');
        put_message(out, items[i]);
    }
    buf_putc(out, ']');
}

static void encode_put_put_field(buf *out, const ProtobufCFieldDescriptor *f, const void *at)
{
    switch (f->type) {
    case PROTOBUF_C_TYPE_STRING: put_string(out, *(const char *const *)at); break;
    case PROTOBUF_C_TYPE_FLOAT: put_float(out, *(const float *)at); break;
    case PROTOBUF_C_TYPE_INT32: buf_printf(out, "%d", *(const int32_t *)at); break;
    case PROTOBUF_C_TYPE_UINT32: buf_printf(out, "%u", *(const uint32_t *)at); break;
    default: assert(false);
    }
}

/* An object with the fields of a label, a span or a guess; what has nothing but a list is the list. */
static void put_message(buf *out, const ProtobufCMessage *m)
{
    const ProtobufCMessageDescriptor *d = m->descriptor;
    if (d->n_fields == 1 && d->fields->label == PROTOBUF_C_LABEL_REPEATED) {
        put_items(out, m, d->fields, SIZE_MAX);
        return;
    }
    for (unsigned i = 0; i < d->n_fields; i++) {
        buf_printf(out, "%c\"%s\":", i ? ',' : '{', d->fields[i].name);
        encode_put_put_field(out, &d->fields[i], (const char *)m + d->fields[i].offset);
    }
    buf_putc(out, '}');
}

static void put_embedding(buf *out, const encode_spec *s, const Shoal__V1__Embedding *v)
{
    buf_puts(out, "\"object\":\"embedding\",\"embedding\":");
    if (s->dimensions && (size_t)s->dimensions < v->n_values)
        put_shortened(out, v->values, (size_t)s->dimensions, s->base64);
    else
        put_vector(out, v->values, v->n_values, s->base64);
}

static void put_list(buf *out, const encode_spec *s, const ProtobufCMessage *reply, uint64_t *ret_tokens)
{
    static const char *const NAMES[N_ASKS] = {/* of the first field of a result */
                                              [ASK_CLASSIFY] = "labels",
                                              [ASK_IMAGE] = "labels",
                                              [ASK_TAG] = "spans",
                                              [ASK_FILL_MASK] = "masks"};
    const Shoal__V1__ClassifyReply *r = (const Shoal__V1__ClassifyReply *)reply; /* the others begin alike */
    bool labels = reply->descriptor == &shoal__v1__classify_reply__descriptor;
    buf_puts(out, "{\"object\":\"list\",\"data\":[");
    for (size_t i = 0; i < r->n_results; i++) {
        const ProtobufCMessage *m = &r->results[i]->base;
        put_index(out, i);
        if (s->kind == ASK_EMBED) {
            put_embedding(out, s, (const Shoal__V1__Embedding *)m);
        } else {
            buf_printf(out, "\"%s\":", NAMES[s->kind]);
            put_items(out, m, m->descriptor->fields, labels && s->top_k ? (size_t)s->top_k : SIZE_MAX);
        }
        buf_putc(out, '}');
        *ret_tokens += *(const uint32_t *)task_field(m, "n_tokens");
    }
    put_tail(out, s, *ret_tokens);
}

/* ---- moderations ------------------------------------------------------------------------------------- */

static bool is_safe(const encode_spec *s, const char *label)
{
    for (size_t i = 0; i < s->n_safe; i++)
        if (strcmp(s->safe[i], label) == 0) return true;
    return false;
}

/* One member of an object for each label that may flag: its name and what `put` says of it. */
static void put_categories(buf *out, const encode_spec *s, const Shoal__V1__Classification *c,
                           const char *name, void (*put)(buf *out, const encode_spec *s, float score))
{
    bool first = true;
    buf_printf(out, ",\"%s\":{", name);
    for (size_t k = 0; k < c->n_labels; k++) {
        if (is_safe(s, c->labels[k]->label)) continue;
        if (!first) buf_putc(out, ',');
        first = false;
        put_string(out, c->labels[k]->label);
        buf_putc(out, ':');
        put(out, s, c->labels[k]->score);
    }
    buf_putc(out, '}');
}

static void put_flag(buf *out, const encode_spec *s, float score)
{
    buf_puts(out, (double)score >= s->min_score ? "true" : "false");
}

static void put_score(buf *out, const encode_spec *s, float score)
{
    (void)s;
    put_float(out, score);
}

static void put_read(buf *out, const encode_spec *s, float score)
{
    (void)s;
    (void)score;
    buf_puts(out, "[\"text\"]");
}

/* Labels as categories, less the safe ones. */
static void put_moderations(buf *out, const encode_spec *s, const Shoal__V1__ClassifyReply *r,
                            uint64_t *ret_tokens)
{
    uint64_t id;
    rng_draw(&id, sizeof id);
    buf_printf(out, "{\"id\":\"modr-%016llx\",\"model\":", (unsigned long long)id);
    put_string(out, s->model);
    buf_puts(out, ",\"results\":[");
    for (size_t i = 0; i < r->n_results; i++) {
        const Shoal__V1__Classification *c = r->results[i];
        bool flagged = false;
        for (size_t k = 0; k < c->n_labels; k++)
            flagged |= !is_safe(s, c->labels[k]->label) && (double)c->labels[k]->score >= s->min_score;
        buf_printf(out, "%s{\"flagged\":%s", i ? "," : "", flagged ? "true" : "false");
        put_categories(out, s, c, "categories", put_flag);
        put_categories(out, s, c, "category_scores", put_score);
        put_categories(out, s, c, "category_applied_input_types", put_read);
        buf_putc(out, '}');
        *ret_tokens += c->n_tokens;
    }
    buf_puts(out, "]}");
}

/* ---- documents in order ------------------------------------------------------------------------------ */

/* Both of one length; 0 where one of them has none. */
static double cosine_of(const Shoal__V1__Embedding *a, const Shoal__V1__Embedding *b)
{
    double dot = 0, aa = 0, bb = 0;
    for (size_t i = 0; i < a->n_values && i < b->n_values; i++) {
        dot += (double)a->values[i] * (double)b->values[i];
        aa += (double)a->values[i] * (double)a->values[i];
        bb += (double)b->values[i] * (double)b->values[i];
    }
    return aa > 0 && bb > 0 ? dot / (sqrt(aa) * sqrt(bb)) : 0;
}

/* order[n]: the score of each document, by the labels of a cross-encoder or by the vectors behind the query's. */
static void score_documents(ranked *order, size_t n, const ProtobufCMessage *reply, bool by_vectors,
                            uint64_t *ret_tokens)
{
    const Shoal__V1__EmbedReply *v = (const Shoal__V1__EmbedReply *)reply;
    const Shoal__V1__ClassifyReply *r = (const Shoal__V1__ClassifyReply *)reply;
    for (size_t i = 0; i < n; i++) {
        if (by_vectors) {
            order[i] = (ranked){i, cosine_of(v->results[0], v->results[i + 1])};
        } else {
            order[i] = (ranked){i, r->results[i]->n_labels ? (double)r->results[i]->labels[0]->score : 0};
        }
        *ret_tokens += by_vectors ? v->results[i + 1]->n_tokens : r->results[i]->n_tokens;
    }
    if (by_vectors) *ret_tokens += v->results[0]->n_tokens;
    rank_sort(order, n);
}

static void put_ranking(buf *out, const encode_spec *s, const ProtobufCMessage *reply, uint64_t *ret_tokens)
{
    ranked *order = malloc(s->n_inputs * sizeof *order);
    size_t n = s->top_k && (size_t)s->top_k < s->n_inputs ? (size_t)s->top_k : s->n_inputs;
    if (!order) {
        out->failed = true;
        return;
    }
    score_documents(order, s->n_inputs, reply, s->by_vectors, ret_tokens);
    buf_puts(out, "{\"object\":\"list\",");
    if (s->by_vectors) buf_puts(out, "\"ranked_by\":\"embeddings\",");
    buf_puts(out, "\"results\":[");
    for (size_t i = 0; i < n; i++) {
        put_index_of(out, i, order[i].index);
        buf_puts(out, "\"relevance_score\":");
        put_float(out, (float)order[i].score);
        if (s->documents) {
            buf_puts(out, ",\"document\":{\"text\":");
            put_string(out, s->inputs[order[i].index].pair);
            buf_putc(out, '}');
        }
        buf_putc(out, '}');
    }
    put_tail(out, s, *ret_tokens);
    free(order);
}

/* ---- scored rows ------------------------------------------------------------------------------------- */

/* Seventeen digits bring every double back exactly. */
static void put_double(buf *out, double v)
{
    if (isfinite(v))
        number_put(out, v, 17);
    else
        buf_puts(out, "null");
}

/* Probabilities by label; of a model that gives numbers, a list. */
static void put_scores(buf *out, const Shoal__V1__ScoreReply *r, const Shoal__V1__ScoredRow *row)
{
    bool named = r->n_labels > 0 && r->n_labels == row->n_scores;
    buf_puts(out, named ? "\"scores\":{" : "\"scores\":[");
    for (size_t i = 0; i < row->n_scores; i++) {
        if (i) buf_putc(out, ',');
        if (named) {
            put_string(out, r->labels[i]);
            buf_putc(out, ':');
        }
        put_double(out, row->scores[i]);
    }
    buf_putc(out, named ? '}' : ']');
}

static void put_scored(buf *out, const Shoal__V1__ScoreReply *r, size_t i)
{
    const Shoal__V1__ScoredRow *row = r->rows[i];
    put_index(out, i);
    if (*row->sensor) {
        buf_puts(out, "\"sensor\":");
        put_string(out, row->sensor);
        buf_putc(out, ',');
    }
    if (*row->time) {
        buf_puts(out, "\"time\":");
        put_string(out, row->time);
        buf_putc(out, ',');
    }
    buf_printf(out, "\"line\":%u,\"row\":%u,", row->line, row->row);
    if (*row->label) {
        buf_puts(out, "\"label\":");
        put_string(out, row->label);
        buf_putc(out, ',');
    }
    put_scores(out, r, row);
    buf_puts(out, ",\"raw\":[");
    for (size_t k = 0; k < row->n_raw; k++) {
        if (k) buf_putc(out, ',');
        put_double(out, row->raw[k]);
    }
    buf_puts(out, "]}");
}

/* "usage" has the rows that were read. */
static void encode_put_put_rows(buf *out, const encode_spec *s, const Shoal__V1__ScoreReply *r)
{
    buf_puts(out, "{\"object\":\"list\",\"data\":[");
    for (size_t i = 0; i < r->n_rows; i++) put_scored(out, r, i);
    buf_puts(out, "],\"model\":");
    put_string(out, s->model);
    buf_printf(out, ",\"usage\":{\"rows\":%llu,\"sensors\":%u}}", (unsigned long long)r->n_read,
               r->n_sensors);
}

void encode_put(buf *out, const encode_spec *s, const ProtobufCMessage *reply, uint64_t *ret_tokens)
{
    *ret_tokens = 0;
    switch (s->kind) {
    case ASK_RERANK: put_ranking(out, s, reply, ret_tokens); break;
    case ASK_MODERATE: put_moderations(out, s, (const Shoal__V1__ClassifyReply *)reply, ret_tokens); break;
    case ASK_SCORE: encode_put_put_rows(out, s, (const Shoal__V1__ScoreReply *)reply); break;
    default: put_list(out, s, reply, ret_tokens);
    }
}
