/* record.c: lists of what happened, and the silences around faults. */
#include "lab/record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WINDOW_MS = 10000, AFTERMATH_MS = 500 };

#define LAB_FATE_WORD(name, word, about) word,
const char *const lab_fate_words[] = {LAB_FATES(LAB_FATE_WORD)};
#define LAB_STATE_WORD(name, word) word,
const char *const lab_state_words[] = {LAB_STATES(LAB_STATE_WORD)};

void record_done(lab_record *r)
{
    for (size_t i = 0; i < r->n_answers; i++) free(r->answers[i].pieces_ms);
    free(r->answers);
    free(r->injections);
    free(r->spans);
    *r = (lab_record){0};
}

static lab_span *open_span(lab_record *r, size_t node, lab_state s)
{
    for (size_t i = 0; i < r->n_spans; i++)
        if (r->spans[i].node == node && r->spans[i].state == s && r->spans[i].to_ms < 0) return &r->spans[i];
    return NULL;
}

void record_begin(lab_record *r, size_t node, lab_state s, double at_ms)
{
    if (open_span(r, node, s)) return;
    if (r->n_spans == r->room_spans) {
        size_t room = r->room_spans ? 2 * r->room_spans : 64;
        lab_span *more = realloc(r->spans, room * sizeof *more);
        if (!more) return;
        r->spans = more;
        r->room_spans = room;
    }
    r->spans[r->n_spans++] = (lab_span){.node = node, .state = s, .from_ms = at_ms, .to_ms = -1};
}

void record_end(lab_record *r, size_t node, lab_state s, double at_ms)
{
    lab_span *span = open_span(r, node, s);
    if (span) span->to_ms = at_ms;
}

/* ---- silences ---- */

/* Whether this request is for the model: its body names it. */
static bool asks_model(const lab_request *q, const char *model)
{
    char key[100];
    const char *at = strstr(q->body, "\"model\"");
    if (!at) return false;
    at += strlen("\"model\"");
    at += strspn(at, " :\t\n");
    int n = snprintf(key, sizeof key, "\"%s\"", model);
    return strncmp(at, key, (size_t)n) == 0;
}

/* The longest time between two pieces of the answer that ended after from_ms and up to until_ms. */
static double longest_gap(const lab_answer *a, double from_ms, double until_ms)
{
    double last = a->start_ms, longest = -1;
    for (size_t i = 0; i < a->n_pieces; i++) {
        double at = a->start_ms + a->pieces_ms[i];
        if (at > from_ms && last < until_ms && at - last > longest) longest = at - last;
        last = at;
    }
    return longest;
}

static void find_gap(lab_record *r, size_t k)
{
    lab_injection *s = &r->injections[k];
    double until = s->at_ms + WINDOW_MS;
    if (k + 1 < r->n_injections && r->injections[k + 1].at_ms < until) until = r->injections[k + 1].at_ms;
    double over = s->end_ms >= 0 ? s->end_ms : s->at_ms + AFTERMATH_MS;
    if (over > until) over = until;
    s->gap_ms = -1;
    for (size_t i = 0; s->hit && i < r->n_answers; i++) {
        const lab_answer *a = &r->answers[i];
        const lab_request *q = &r->scenario->requests[a->request];
        if (!q->stream || a->start_ms > over || a->end_ms < s->at_ms) continue;
        if (s->model[0] && !asks_model(q, s->model)) continue;
        s->n_touched++;
        double gap = a->fate == FATE_LOST ? -1 : longest_gap(a, s->at_ms, until);
        if (gap > s->gap_ms) s->gap_ms = gap;
    }
}

void record_find_gaps(lab_record *r)
{
    for (size_t k = 0; k < r->n_injections; k++) find_gap(r, k);
}
