/* sampler.c: penalties (repetition: Keskar et al. 2019, arXiv:1909.05858), cuts (top-p: Holtzman et al. 2019,
 * arXiv:1904.09751) and the draw; sampler.h has their order. Choosing works in a sampler_space made
 * beforehand; a cut distribution is sorted by a heap a band, only as far as it is looked at. */
#include "infer/decoding/sampler.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/progress.h"
#include "json/sampling.h"

static bool has_penalty(const sampling *s)
{
    return (s->repetition_penalty != 0 && s->repetition_penalty != 1) || s->presence_penalty != 0 ||
           s->frequency_penalty != 0;
}

static int init_penalties(sampler *s, const int32_t *prompt, size_t n_prompt)
{
    s->n_seen = calloc(s->n_vocab, sizeof *s->n_seen);
    s->in_prompt = calloc(s->n_vocab, 1);
    s->seen = calloc(s->n_vocab, sizeof *s->seen);
    if (!s->n_seen || !s->in_prompt || !s->seen) return SHOAL_ENOMEM;
    for (size_t i = 0; i < n_prompt; i++) {
        if (s->in_prompt[prompt[i]]) continue;
        s->in_prompt[prompt[i]] = 1;
        s->seen[s->n_distinct++] = prompt[i];
    }
    return 0;
}

static int copy_bias(sampler *s, shoal_err *err)
{
    for (size_t i = 0; i < s->s.n_bias; i++) {
        int32_t id = s->s.bias[i].id;
        if (id < 0 || (size_t)id >= s->n_vocab) {
            return err_set(err, SHOAL_EINVALID, "logit_bias names token %d, the vocabulary has %zu", id,
                           s->n_vocab);
        }
    }
    if (s->s.n_bias == 0) return 0;
    s->bias = malloc(s->s.n_bias * sizeof *s->bias);
    if (!s->bias) return err_nomem(err);
    memcpy(s->bias, s->s.bias, s->s.n_bias * sizeof *s->bias);
    return 0;
}

static int sampler_check(const sampling *s, int n_top, shoal_err *err)
{
    int rc = 0;
#define CHECK(field, min, max) \
    if (rc == 0) rc = sampling_check(#field, (double)s->field, err);
    SAMPLING_TABLE(CHECK)
#undef CHECK
    if (rc == 0 && (n_top < 0 || n_top > SAMPLER_TOP_MAX))
        rc = err_set(err, SHOAL_EINVALID, "%d alternatives were asked for, at most %d are given", n_top,
                     SAMPLER_TOP_MAX);
    return rc;
}

int sampler_init(sampler *s, const sampling *how, int n_top, size_t n_vocab, const int32_t *prompt,
                 size_t n_prompt, shoal_err *err)
{
    *s = (sampler){.s = *how, .n_vocab = n_vocab, .n_top = n_top};
    int rc = sampler_check(how, n_top, err);
    if (rc == 0) rc = copy_bias(s, err);
    if (rc == 0 && has_penalty(how) && init_penalties(s, prompt, n_prompt)) rc = err_nomem(err);
    s->s.bias = s->bias;
    if (rc) sampler_done(s);
    return rc;
}

void sampler_done(sampler *s)
{
    free(s->bias);
    free(s->n_seen);
    free(s->in_prompt);
    free(s->seen);
    *s = (sampler){0};
}

int sampler_space_init(sampler_space *sp, size_t n_vocab)
{
    sp->work = mem_calloc64(n_vocab, sizeof(float));
    sp->prob = mem_calloc64(n_vocab, sizeof(float));
    sp->block = mem_calloc64(n_vocab / EXP_SUMS_BLOCK + 1, sizeof(float));
    sp->order = mem_calloc64(n_vocab, sizeof(int32_t));
    if (sp->work && sp->prob && sp->block && sp->order) return 0;
    sampler_space_done(sp);
    return SHOAL_ENOMEM;
}

void sampler_space_done(sampler_space *sp)
{
    free(sp->work);
    free(sp->prob);
    free(sp->block);
    free(sp->order);
    *sp = (sampler_space){0};
}

void sampler_accept(sampler *s, int32_t id)
{
    if (!s->n_seen) return;
    if (s->n_seen[id]++ == 0 && !s->in_prompt[id]) s->seen[s->n_distinct++] = id;
}

/* What is drawn from: weights exp((x - max) * scale), whose sums of blocks lie in sp->block. */
typedef struct weighed {
    const vec_kernels *v;
    sampler_space *sp;
    const float *x; /* [n] */
    size_t n, best; /* x[best] is the largest */
    float scale;
    double total;
} weighed;

static void weigh(weighed *w)
{
    w->total = w->v->exp_sums(w->sp->block, w->x, w->n, w->x[w->best], w->scale);
}

static size_t block_len(size_t n, size_t at)
{
    return n - at < EXP_SUMS_BLOCK ? n - at : EXP_SUMS_BLOCK;
}

/* The weights of one block, to sp->prob. */
static void weigh_block(const weighed *w, size_t at)
{
    w->v->exp_scaled(w->sp->prob + at, w->x + at, block_len(w->n, at), w->x[w->best], w->scale);
}

/* A sum of exponentials under which a block holds none of exp(d): half leaves room for rounding. */
static float least_sum(float d)
{
    return 0.5f * math_expf(d);
}

/* ---- the distribution from its likeliest on ---------------------------------------------------------- */

/* Ids in the order of likelihood, taken one by one. They come in bands of d = (x - max) * scale, each a heap
 * of its own behind what earlier bands gave: order[0, start) and order[start, start + n_band). Below the last
 * band every weight is 0. */
typedef struct ranking {
    const weighed *w;
    size_t start, n_band, n_taken;
    float above; /* bands down to here were found */
} ranking;

#define FIRST_BAND (-3.0f) /* each band goes twice as deep */
#define LAST_BAND  (-192.0f)

/* a comes before b in the sorted distribution. */
static bool before(const float *x, int32_t a, int32_t b)
{
    return x[a] > x[b] || (x[a] == x[b] && a < b);
}

/* Sift order[at] down in a heap of n whose top is the likeliest. */
static void sift(const float *x, int32_t *order, size_t at, size_t n)
{
    int32_t id = order[at];
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= n) break;
        if (child + 1 < n && before(x, order[child + 1], order[child])) child++;
        if (!before(x, order[child], id)) break;
        order[at] = order[child];
        at = child;
    }
    order[at] = id;
}

/* Add the ids of one block whose d lies in [low, above), with their weights. */
static size_t find_in_block(const ranking *r, size_t at, float low, size_t n_found)
{
    const weighed *w = r->w;
    int32_t *found = w->sp->order + r->start, here[EXP_SUMS_BLOCK];
    float max = w->x[w->best], scale = w->scale, above = r->above;
    size_t n = block_len(w->n, at), n_here = 0;
    for (size_t i = 0; i < n; i++) { /* without a branch that nobody could foresee */
        float d = (w->x[at + i] - max) * scale;
        here[n_here] = (int32_t)(at + i);
        n_here += (size_t)((d >= low) & (d < above));
    }
    if (n_here == 0) return n_found;
    weigh_block(w, at);
    memcpy(found + n_found, here, n_here * sizeof *here);
    return n_found + n_here;
}

/* The next band that is not empty becomes a heap; false: every weight that is left is 0. */
static bool next_band(ranking *r)
{
    const weighed *w = r->w;
    int32_t *order = w->sp->order;
    for (size_t i = 0; i < r->n_band / 2; i++) { /* the heap gave the likeliest to its end */
        int32_t id = order[r->start + i], *other = &order[r->start + r->n_band - 1 - i];
        order[r->start + i] = *other;
        *other = id;
    }
    r->start += r->n_band;
    for (r->n_band = 0; r->n_band == 0 && r->above > LAST_BAND;) {
        float low = r->above > 0 ? FIRST_BAND : 2 * r->above, least = least_sum(low);
        for (size_t b = 0, at = 0; at < w->n; b++, at += EXP_SUMS_BLOCK)
            if (!(w->sp->block[b] < least)) r->n_band = find_in_block(r, at, low, r->n_band);
        r->above = low;
    }
    for (size_t i = r->n_band / 2; i-- > 0;) sift(w->x, order + r->start, i, r->n_band);
    return r->n_band > 0;
}

/* The likeliest of the heap moves behind it. False: there is none. */
static bool sampler_take(ranking *r)
{
    if (r->n_taken == r->start + r->n_band && !next_band(r)) return false;
    int32_t *heap = r->w->sp->order + r->start;
    size_t n = r->start + r->n_band - r->n_taken;
    int32_t id = heap[0];
    heap[0] = heap[n - 1];
    heap[n - 1] = id;
    sift(r->w->x, heap, 0, n - 1);
    r->n_taken++;
    return true;
}

static int32_t taken_id(const ranking *r, size_t i)
{
    return r->w->sp->order[i < r->start ? i : 2 * r->start + r->n_band - 1 - i];
}

static float taken_weight(const ranking *r, size_t i)
{
    return r->w->sp->prob[taken_id(r, i)];
}

/* ---- choosing --------------------------------------------------------------------------------------- */

static void penalise(const sampler *s, float *x)
{
    float rep = s->s.repetition_penalty != 0 ? s->s.repetition_penalty : 1;
    for (size_t i = 0; s->n_seen && i < s->n_distinct; i++) {
        int32_t id = s->seen[i];
        x[id] = x[id] > 0 ? x[id] / rep : x[id] * rep;
        if (s->n_seen[id] == 0) continue;
        x[id] -= s->s.presence_penalty + s->s.frequency_penalty * (float)s->n_seen[id];
    }
    for (size_t i = 0; i < s->s.n_bias; i++) x[s->bias[i].id] += s->bias[i].bias;
}

/* With nothing cut off, the draw walks the distribution in order of id: to the block in which the sum
 * passes `target`, then inside it. The last that is possible at all, should rounding lose the way. */
static int32_t draw_all(const weighed *w, double target)
{
    double sum = 0;
    int32_t last = 0;
    for (size_t b = 0, at = 0; at < w->n; b++, at += EXP_SUMS_BLOCK) {
        float here = w->sp->block[b];
        if (!(here > 0)) continue;
        if (!(sum + (double)here > target) && at + EXP_SUMS_BLOCK < w->n) {
            sum += (double)here;
            last = (int32_t)at;
            continue;
        }
        weigh_block(w, at);
        for (size_t i = at; i < at + block_len(w->n, at); i++) {
            if (!(w->sp->prob[i] > 0)) continue;
            sum += (double)w->sp->prob[i];
            last = (int32_t)i;
            if (sum > target) break;
        }
        break;
    }
    return last;
}

/* How many of the likeliest the cuts keep: at least one, unless no weight is a number; *ret_sum of their
 * weights. top-k, top-p and min-p each keep a prefix, and top-p is a share of what top-k left. */
static size_t keep_prefix(const sampler *s, ranking *r, double *ret_sum)
{
    size_t n = s->n_vocab, k = s->s.top_k > 0 && (size_t)s->s.top_k < n ? (size_t)s->s.top_k : n, n_kept = 0;
    double total = k < n ? 0 : r->w->total, kept = 0;
    while (k < n && r->n_taken < k && sampler_take(r)) total += (double)taken_weight(r, r->n_taken - 1);
    double share = s->s.top_p > 0 && s->s.top_p < 1 ? (double)s->s.top_p * total : total;
    float least = 0;
    for (; n_kept < k && (n_kept < r->n_taken || sampler_take(r)); n_kept++) {
        float p = taken_weight(r, n_kept);
        if (n_kept == 0) least = p * s->s.min_p;
        if (n_kept > 0 && (!(p > 0) || p < least || kept >= share)) break;
        kept += (double)p;
    }
    *ret_sum = kept;
    return n_kept;
}

static int32_t draw_prefix(const sampler *s, const weighed *w, double u)
{
    ranking r = {.w = w, .above = 1};
    double kept, sum = 0;
    size_t n_kept = keep_prefix(s, &r, &kept);
    for (size_t i = 0; i < n_kept; i++) {
        sum += (double)taken_weight(&r, i);
        if (sum > u * kept || i + 1 == n_kept) return taken_id(&r, i);
    }
    return (int32_t)w->best;
}

/* The n_top likeliest, by insertion into a short sorted list; w holds the raw logits. */
static void find_top(const sampler *s, const weighed *w, float log_sum, sample *ret)
{
    const float *x = w->x;
    size_t n_top = (size_t)s->n_top < w->n ? (size_t)s->n_top : w->n, n = 0;
    int32_t ids[SAMPLER_TOP_MAX];
    float least = 0;
    for (size_t b = 0, at = 0; at < w->n && n_top > 0; b++, at += EXP_SUMS_BLOCK) {
        if (n == n_top && w->sp->block[b] < least) continue;
        for (size_t i = at; i < at + block_len(w->n, at); i++) {
            if (n == n_top && !(x[i] > x[ids[n - 1]])) continue;
            size_t to = n < n_top ? n++ : n - 1;
            for (; to > 0 && x[i] > x[ids[to - 1]]; to--) ids[to] = ids[to - 1];
            ids[to] = (int32_t)i;
        }
        least = least_sum(x[ids[n - 1]] - x[w->best]);
    }
    ret->n_top = n;
    for (size_t i = 0; i < n; i++)
        ret->top[i] = (token_logprob){.id = ids[i], .logprob = x[ids[i]] - log_sum};
}

static int32_t sampler_draw(const sampler *s, const weighed *w, uint64_t position)
{
    double u = rng_uniform(s->s.seed, position);
    bool cut = s->s.top_k > 0 || (s->s.top_p > 0 && s->s.top_p < 1) || s->s.min_p > 0;
    return cut ? draw_prefix(s, w, u) : draw_all(w, u * w->total);
}

double sampler_weigh(const vec_kernels *v, sampler_space *sp, const float *logits, size_t n, float *ret_max)
{
    double total = 0;
    float max = logits[v->argmax(logits, n)];
    for (size_t at = 0; at < n; at += EXP_SUMS_BLOCK)
        total += (double)v->exp_scaled(sp->prob + at, logits + at, block_len(n, at), max, 1);
    *ret_max = max;
    return total;
}

/* Weigh raw logits and tell the likeliest; returns the logarithm of what a probability is divided by. */
static float read_logits(const sampler *s, weighed *w, sample *ret)
{
    w->best = w->v->argmax(w->x, w->n);
    weigh(w);
    float log_sum = w->x[w->best] + math_logf((float)w->total);
    find_top(s, w, log_sum, ret);
    return log_sum;
}

void sampler_choose(const sampler *s, const vec_kernels *v, sampler_space *sp, const float *logits,
                    uint64_t position, grammar *g, const int32_t *eos_ids, size_t n_eos, sample *ret)
{
    weighed w = {.v = v, .sp = sp, .x = logits, .n = s->n_vocab, .scale = 1};
    float log_sum = read_logits(s, &w, ret);
    progress_add(16 * s->n_vocab);
    if (s->n_seen || s->s.n_bias > 0 || g) {
        memcpy(sp->work, logits, w.n * sizeof *logits);
        penalise(s, sp->work);
        if (g) grammar_mask(g, sp->work, w.n, eos_ids, n_eos);
        w.x = sp->work;
        w.best = v->argmax(w.x, w.n);
    }
    ret->id = (int32_t)w.best;
    if (s->s.temperature > 0) {
        /* The largest has to stay 0 * scale = 0 however cold it is. */
        w.scale = s->s.temperature > 1 / FLT_MAX ? 1 / s->s.temperature : FLT_MAX;
        if (w.x != logits || w.scale != 1) weigh(&w);
        ret->id = sampler_draw(s, &w, position);
    }
    ret->logprob = logits[ret->id] - log_sum;
}

void sampler_judge(const sampler *s, const vec_kernels *v, sampler_space *sp, const float *logits, int32_t id,
                   sample *ret)
{
    weighed w = {.v = v, .sp = sp, .x = logits, .n = s->n_vocab, .scale = 1};
    float log_sum = read_logits(s, &w, ret);
    ret->id = id;
    ret->logprob = logits[id] - log_sum;
}
