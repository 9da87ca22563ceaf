/* beam.c: choosing among continuations; see beam.h. */
#include "infer/decoding/beam.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "compute/compute.h"

typedef struct ending {
    int32_t *ids; /* [max_tokens + 1] */
    size_t n;
    double sum, score;
} ending;

struct beam {
    beam_options o;
    size_t max_tokens;
    double sums[BEAM_MAX]; /* of the lanes' log-probabilities */
    ending endings[BEAM_MAX];
    size_t n_endings;
    int32_t *memory;
};

typedef struct candidate {
    size_t lane;
    int32_t id;
    double sum;
} candidate;

int beam_new(beam **ret, const beam_options *o, size_t max_tokens, shoal_err *err)
{
    if (o->n == 0 || o->n > BEAM_MAX)
        return err_set(err, SHOAL_EINVALID, "%zu beams; 1 to %d are allowed", o->n, BEAM_MAX);
    if (!(o->length_penalty >= -10 && o->length_penalty <= 10))
        return err_set(err, SHOAL_EINVALID, "a length penalty of %g; -10 to 10 are allowed",
                       (double)o->length_penalty);
    beam *b = calloc(1, sizeof *b);
    if (b) b->memory = calloc(o->n, (max_tokens + 1) * sizeof *b->memory);
    if (!b || !b->memory) {
        free(b);
        return err_nomem(err);
    }
    b->o = *o;
    b->max_tokens = max_tokens;
    for (size_t i = 0; i < o->n; i++) b->endings[i].ids = b->memory + i * (max_tokens + 1);
    *ret = b;
    return 0;
}

void beam_free(beam *b)
{
    if (!b) return;
    free(b->memory);
    free(b);
}

static double score(const beam *b, double sum, size_t n)
{
    return n ? sum / math_pow((double)n, (double)b->o.length_penalty) : sum;
}

static size_t worst_of(const beam *b)
{
    size_t worst = 0;
    for (size_t i = 1; i < b->n_endings; i++)
        if (b->endings[i].score < b->endings[worst].score) worst = i;
    return worst;
}

/* A reply is over: keep it if it is among the n best. id below 0: it ends without a token more. */
static void beam_finish(beam *b, const beam_lane *l, int32_t id, double sum)
{
    size_t n = l->n_ids + (id >= 0);
    double s = score(b, sum, n);
    size_t at = b->n_endings < b->o.n ? b->n_endings++ : worst_of(b);
    ending *e = &b->endings[at];
    if (e->n > 0 && e->score >= s) return;
    memcpy(e->ids, l->ids, l->n_ids * sizeof *l->ids);
    if (id >= 0) e->ids[l->n_ids] = id;
    e->n = n;
    e->sum = sum;
    e->score = s;
}

/* Put c into best[0..n), best first, of at most max. */
static void insert(candidate *best, size_t *n, size_t max, candidate c)
{
    if (*n == max && !(c.sum > best[max - 1].sum)) return;
    size_t at = *n < max ? (*n)++ : max - 1;
    for (; at > 0 && best[at - 1].sum < c.sum; at--) best[at] = best[at - 1];
    best[at] = c;
}

static bool is_end(int32_t id, const int32_t *eos_ids, size_t n_eos)
{
    for (size_t i = 0; i < n_eos; i++)
        if (eos_ids[i] == id) return true;
    return false;
}

/* n endings are there, and no lane can become better than the worst of them. */
static bool beam_is_over(const beam *b, double best_sum, size_t n_ids)
{
    if (b->n_endings < b->o.n) return false;
    return b->o.early || b->endings[worst_of(b)].score >= score(b, best_sum, n_ids);
}

size_t beam_advance(beam *b, const beam_lane *lanes, size_t n_lanes, const int32_t *eos_ids, size_t n_eos,
                    beam_move *moves)
{
    candidate best[2 * BEAM_MAX];
    double sums[BEAM_MAX];
    size_t n_best = 0, n = 0, length = lanes[0].n_ids + 1;
    for (size_t i = 0; i < n_lanes; i++)
        for (size_t k = 0; k < lanes[i].n_next; k++)
            insert(best, &n_best, 2 * b->o.n,
                   (candidate){i, lanes[i].next[k].id, b->sums[i] + (double)lanes[i].next[k].logprob});
    for (size_t i = 0; i < n_best && n < b->o.n; i++) {
        const candidate *c = &best[i];
        if (is_end(c->id, eos_ids, n_eos)) {
            if (i < b->o.n) beam_finish(b, &lanes[c->lane], c->id, c->sum);
            continue;
        }
        sums[n] = c->sum;
        moves[n++] = (beam_move){c->lane, c->id};
    }
    if (n == 0 || beam_is_over(b, best[0].sum, length)) return 0;
    if (length == b->max_tokens) { /* no room for more: what is open ends here */
        for (size_t i = 0; i < n; i++) beam_finish(b, &lanes[moves[i].from], moves[i].id, sums[i]);
        return 0;
    }
    memcpy(b->sums, sums, n * sizeof *sums);
    return n;
}

const int32_t *beam_best(const beam *b, size_t *ret_n, float *ret_logprob)
{
    const ending *best = &b->endings[0];
    for (size_t i = 1; i < b->n_endings; i++)
        if (b->endings[i].score > best->score) best = &b->endings[i];
    *ret_n = best->n;
    *ret_logprob = best->n ? (float)(best->sum / (double)best->n) : 0;
    return best->ids;
}
