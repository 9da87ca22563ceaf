/* majority.c: means of labels, majorities of spans; see majority.h. What is built here is freed as if it had been
 * unpacked, so all of it comes from malloc. */
#include "ensemble/majority.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LEAST_PROB 1e-9 /* a logit of nothing is finite */

bool majority_takes(call_task task)
{
    return task == CALL_CLASSIFY || task == CALL_CLASSIFY_IMAGE || task == CALL_TAG;
}

static double majority_weight_of_all(const majority_reply *r, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += r[i].weight;
    return sum;
}

/* The list with room for one more pointer than n; every power of two grows it. NULL: out of memory, it is as
 * it was. */
static void *grown(void *list, size_t n)
{
    return n & (n - 1) ? list : realloc(list, (n ? 2 * n : 1) * sizeof(void *));
}

/* ---- classifications ----------------------------------------------------------------------------- */

typedef Shoal__V1__ClassifyReply classes;
typedef Shoal__V1__Classification one_class;

static Shoal__V1__LabelScore *find_label(const one_class *c, const char *label)
{
    for (size_t i = 0; i < c->n_labels; i++)
        if (strcmp(c->labels[i]->label, label) == 0) return c->labels[i];
    return NULL;
}

static Shoal__V1__LabelScore *add_label(one_class *c, const char *label)
{
    Shoal__V1__LabelScore *l = malloc(sizeof *l);
    Shoal__V1__LabelScore **labels = l ? grown(c->labels, c->n_labels) : NULL;
    if (!labels) {
        free(l);
        return NULL;
    }
    c->labels = labels;
    shoal__v1__label_score__init(l);
    l->label = strdup(label);
    c->labels[c->n_labels++] = l;
    return l->label ? l : NULL;
}

static int majority_by_score(const void *a, const void *b)
{
    const Shoal__V1__LabelScore *x = *(Shoal__V1__LabelScore *const *)a,
                                *y = *(Shoal__V1__LabelScore *const *)b;
    if (x->score != y->score) return x->score < y->score ? 1 : -1;
    return strcmp(x->label, y->label);
}

static bool add_scores(one_class *to, const one_class *from, double share)
{
    for (size_t i = 0; i < from->n_labels; i++) {
        Shoal__V1__LabelScore *l = find_label(to, from->labels[i]->label);
        if (!l) l = add_label(to, from->labels[i]->label);
        if (!l) return false;
        l->score += (float)share * from->labels[i]->score;
    }
    return true;
}

/* Best first, and a logit for each in that order. */
static bool finish_class(one_class *c)
{
    if (c->n_labels == 0) return true;
    qsort(c->labels, c->n_labels, sizeof *c->labels, majority_by_score);
    c->logits = malloc(c->n_labels * sizeof *c->logits);
    if (!c->logits) return false;
    for (size_t i = 0; i < c->n_labels; i++)
        c->logits[i] =
            (float)log((double)c->labels[i]->score > LEAST_PROB ? (double)c->labels[i]->score : LEAST_PROB);
    c->n_logits = c->n_labels;
    return true;
}

static bool merge_class(one_class *to, const majority_reply *r, size_t n, size_t at)
{
    double all = majority_weight_of_all(r, n);
    for (size_t i = 0; i < n; i++) {
        const one_class *from = ((const classes *)r[i].reply)->results[at];
        if (!add_scores(to, from, r[i].weight / all)) return false;
        if (from->n_tokens > to->n_tokens) to->n_tokens = from->n_tokens;
    }
    return finish_class(to);
}

static one_class *add_class(classes *to)
{
    one_class *c = malloc(sizeof *c), **results = c ? grown(to->results, to->n_results) : NULL;
    if (!results) {
        free(c);
        return NULL;
    }
    shoal__v1__classification__init(c);
    to->results = results;
    return to->results[to->n_results++] = c;
}

static ProtobufCMessage *merge_classes(const majority_reply *r, size_t n)
{
    size_t n_results = ((const classes *)r[0].reply)->n_results;
    for (size_t i = 1; i < n; i++)
        if (((const classes *)r[i].reply)->n_results != n_results) return NULL;
    classes *to = malloc(sizeof *to);
    if (!to) return NULL;
    shoal__v1__classify_reply__init(to);
    for (size_t at = 0; at < n_results; at++) {
        one_class *c = add_class(to);
        if (c && merge_class(c, r, n, at)) continue;
        protobuf_c_message_free_unpacked(&to->base, NULL);
        return NULL;
    }
    return &to->base;
}

/* ---- taggings ------------------------------------------------------------------------------------ */

typedef Shoal__V1__TagReply tags;
typedef Shoal__V1__Tagging one_tagging;

typedef struct backed { /* a span, and the share that speaks for it */
    const Shoal__V1__Span *span;
    double share, score;
    bool out;
} backed;

static bool majority_is_same(const Shoal__V1__Span *a, const Shoal__V1__Span *b)
{
    return a->start == b->start && a->end == b->end && strcmp(a->label, b->label) == 0;
}

static void back(backed *list, size_t *n, const Shoal__V1__Span *s, double share)
{
    size_t i = 0;
    while (i < *n && !majority_is_same(list[i].span, s)) i++;
    if (i == *n) list[(*n)++] = (backed){.span = s};
    list[i].share += share;
    list[i].score += share * (double)s->score;
}

static bool overlap(const backed *a, const backed *b)
{
    return !a->out && !b->out && a->span->start < b->span->end && b->span->start < a->span->end;
}

/* Only spans of a majority stay, and of two that overlap the heavier, then the surer, then the first. */
static void majority_decide(backed *list, size_t n)
{
    for (size_t i = 0; i < n; i++) list[i].out = list[i].share <= 0.5;
    for (size_t i = 0; i < n; i++) {
        for (size_t k = i + 1; k < n; k++) {
            if (!overlap(&list[i], &list[k])) continue;
            bool later = list[k].share > list[i].share ||
                         (list[k].share == list[i].share && list[k].score > list[i].score);
            list[later ? i : k].out = true;
        }
    }
}

static int by_place(const void *a, const void *b)
{
    const backed *x = a, *y = b;
    return x->span->start != y->span->start
               ? (x->span->start > y->span->start) - (x->span->start < y->span->start)
               : (x->span->end > y->span->end) - (x->span->end < y->span->end);
}

static bool add_span(one_tagging *to, const backed *b)
{
    Shoal__V1__Span *s = malloc(sizeof *s);
    Shoal__V1__Span **spans = s ? grown(to->spans, to->n_spans) : NULL;
    if (!spans) {
        free(s);
        return false;
    }
    to->spans = spans;
    shoal__v1__span__init(s);
    to->spans[to->n_spans++] = s;
    s->start = b->span->start;
    s->end = b->span->end;
    s->start_byte = b->span->start_byte;
    s->end_byte = b->span->end_byte;
    s->score = (float)(b->score / b->share);
    s->label = strdup(b->span->label);
    s->text = strdup(b->span->text);
    return s->label && s->text;
}

static bool merge_tagging(one_tagging *to, const majority_reply *r, size_t n, size_t at)
{
    double all = majority_weight_of_all(r, n);
    size_t n_most = 0, n_spans = 0;
    bool whole = true;
    for (size_t i = 0; i < n; i++) n_most += ((const tags *)r[i].reply)->results[at]->n_spans;
    backed *list = calloc(n_most + 1, sizeof *list);
    if (!list) return false;
    for (size_t i = 0; i < n; i++) {
        const one_tagging *from = ((const tags *)r[i].reply)->results[at];
        for (size_t k = 0; k < from->n_spans; k++) back(list, &n_spans, from->spans[k], r[i].weight / all);
        if (from->n_tokens > to->n_tokens) to->n_tokens = from->n_tokens;
    }
    majority_decide(list, n_spans);
    qsort(list, n_spans, sizeof *list, by_place);
    for (size_t i = 0; whole && i < n_spans; i++)
        if (!list[i].out) whole = add_span(to, &list[i]);
    free(list);
    return whole;
}

static one_tagging *add_tagging(tags *to)
{
    one_tagging *t = malloc(sizeof *t), **results = t ? grown(to->results, to->n_results) : NULL;
    if (!results) {
        free(t);
        return NULL;
    }
    shoal__v1__tagging__init(t);
    to->results = results;
    return to->results[to->n_results++] = t;
}

static ProtobufCMessage *merge_tags(const majority_reply *r, size_t n)
{
    size_t n_results = ((const tags *)r[0].reply)->n_results;
    for (size_t i = 1; i < n; i++)
        if (((const tags *)r[i].reply)->n_results != n_results) return NULL;
    tags *to = malloc(sizeof *to);
    if (!to) return NULL;
    shoal__v1__tag_reply__init(to);
    for (size_t at = 0; at < n_results; at++) {
        one_tagging *t = add_tagging(to);
        if (t && merge_tagging(t, r, n, at)) continue;
        protobuf_c_message_free_unpacked(&to->base, NULL);
        return NULL;
    }
    return &to->base;
}

ProtobufCMessage *majority_merge(call_task task, const majority_reply *replies, size_t n)
{
    return task == CALL_TAG ? merge_tags(replies, n) : merge_classes(replies, n);
}
