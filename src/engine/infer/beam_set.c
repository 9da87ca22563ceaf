/* beam_set.c: hypotheses take the place of one another; see beam_set.h. */
#include "infer/beam_set.h"

#include <stdlib.h>
#include <string.h>

int beam_set_new(beam_set **ret, const model *m, const gen_request *r, const session *s, size_t n_ctx,
                 shoal_err *err)
{
    beam_set *l = calloc(1, sizeof *l);
    if (!l) return err_nomem(err);
    gen_request of_lane = {
        .ids = r->ids, .n_ids = r->n_ids, .max_tokens = r->max_tokens, .n_top = (int)(2 * r->n_beams)};
    beam_options o = {.n = r->n_beams, .length_penalty = r->length_penalty, .early = r->early_stopping};
    int rc = beam_new(&l->search, &o, s->max_ids - s->n_prompt, err);
    for (; rc == 0 && l->n_max < r->n_beams; l->n_max += rc == 0) {
        rc = session_new(&l->lane[l->n_max], m, &of_lane, NULL, NULL, n_ctx, NULL, err);
        if (rc == 0) kv_seq_salt(&l->lane[l->n_max]->kv, s->kv.salt);
    }
    if (rc == 0 && !(l->spare = calloc(l->n_max, s->max_ids * sizeof *l->spare))) rc = err_nomem(err);
    if (rc) {
        beam_set_free(l);
        return rc;
    }
    l->n = 1; /* the others come of the first */
    *ret = l;
    return 0;
}

void beam_set_free(beam_set *l)
{
    if (!l) return;
    for (size_t i = 0; i < l->n_max; i++) session_free(l->lane[i]);
    beam_free(l->search);
    free(l->spare);
    free(l);
}

void beam_set_release(beam_set *l, kv *c)
{
    for (size_t i = 0; i < l->n_max; i++) {
        kv_release(c, &l->lane[i]->kv);
        l->lane[i]->has_next = false;
    }
}

bool beam_set_ready(const beam_set *l)
{
    for (size_t i = 0; i < l->n; i++)
        if (!l->lane[i]->has_next || session_pending(l->lane[i]) > 0) return false;
    return true;
}

/* Pages go to the first lane that follows from theirs; further ones get a fork, and where no page is left for
 * that, none: they compute their past again. */
static void move_pages(beam_set *l, kv *c, const beam_move *moves, size_t n)
{
    kv_seq old[BEAM_MAX];
    size_t heir[BEAM_MAX], next_empty = 0;
    for (size_t p = 0; p < l->n_max; p++) {
        old[p] = l->lane[p]->kv;
        for (heir[p] = 0; heir[p] < n && moves[heir[p]].from != p; heir[p]++) continue;
        if (heir[p] == n) kv_release(c, &old[p]);
    }
    for (size_t p = 0; p < l->n_max; p++)
        if (heir[p] < n) l->lane[heir[p]]->kv = old[p];
    for (size_t i = 0; i < l->n_max; i++) {
        if (i < n && heir[moves[i].from] == i) continue;
        while (heir[next_empty] < n) next_empty++;
        l->lane[i]->kv = old[next_empty++];
        if (i < n) (void)kv_fork(c, &l->lane[i]->kv, &l->lane[heir[moves[i].from]]->kv);
    }
}

static void move_ids(beam_set *l, const beam_move *moves, size_t n)
{
    size_t max = l->lane[0]->max_ids, length = l->lane[0]->n_ids;
    for (size_t i = 0; i < n; i++)
        memcpy(l->spare + i * max, l->lane[moves[i].from]->ids, length * sizeof *l->spare);
    for (size_t i = 0; i < n; i++) {
        session *s = l->lane[i];
        memcpy(s->ids, l->spare + i * max, length * sizeof *s->ids);
        s->ids[length] = moves[i].id;
        s->n_ids = length + 1;
        s->n_generated++;
        s->has_next = false;
    }
}

bool beam_set_advance(beam_set *l, kv *c)
{
    beam_lane now[BEAM_MAX];
    beam_move moves[BEAM_MAX];
    const session *first = l->lane[0];
    for (size_t i = 0; i < l->n; i++) {
        const session *s = l->lane[i];
        now[i] = (beam_lane){.ids = s->ids + s->n_prompt,
                             .n_ids = s->n_ids - s->n_prompt,
                             .next = s->next.top,
                             .n_next = s->next.n_top};
    }
    size_t n = beam_advance(l->search, now, l->n, first->config->eos_ids, first->config->n_eos, moves);
    if (n == 0) return false;
    move_pages(l, c, moves, n);
    move_ids(l, moves, n);
    l->n = n;
    return true;
}
