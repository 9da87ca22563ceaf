/* sampler.c: penalties (repetition: Keskar et al. 2019, arXiv:1909.05858), cuts (top-p: Holtzman et al. 2019,
 * arXiv:1904.09751) and the draw; sampler.h has their order. Choosing works in a sampler_space made
 * beforehand; a cut distribution is sorted by a heap, only as far as it is looked at. */
#include "infer/sampler.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/sampling.h"

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

static int check(const sampling *s, int n_top, shoal_err *err)
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
    int rc = check(how, n_top, err);
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
    sp->block = mem_calloc64(n_vocab / SAMPLER_BLOCK + 1, sizeof(float));
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

/* ---- choosing --------------------------------------------------------------------------------------- */

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

static void heapify(const float *x, int32_t *order, size_t n)
{
    for (size_t i = 0; i < n; i++) order[i] = (int32_t)i;
    for (size_t i = n / 2; i-- > 0;) sift(x, order, i, n);
}

/* The likeliest of n moves behind the heap, to order[n - 1]: what was taken lies there, first last. */
static int32_t pop(const float *x, int32_t *order, size_t n)
{
    int32_t id = order[0];
    order[0] = order[n - 1];
    order[n - 1] = id;
    sift(x, order, 0, n - 1);
    return id;
}

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

/* prob[i] = exp((x[i] - max) * scale), and the sums of its blocks; returns the sum of all. */
static double weigh(const vec_kernels *v, sampler_space *sp, const float *x, size_t n, float max, float scale)
{
    double total = 0;
    for (size_t b = 0, at = 0; at < n; b++, at += SAMPLER_BLOCK) {
        size_t here = n - at < SAMPLER_BLOCK ? n - at : SAMPLER_BLOCK;
        sp->block[b] = v->exp_scaled(sp->prob + at, x + at, here, max, scale);
        total += (double)sp->block[b];
    }
    return total;
}

/* With nothing cut off, the draw walks the distribution in order of id: to the block in which the sum
 * passes `target`, then inside it. The last that is possible at all, should rounding lose the way. */
static int32_t draw_all(const sampler_space *sp, size_t n, double target)
{
    double sum = 0;
    int32_t last = 0;
    for (size_t b = 0, at = 0; at < n; b++, at += SAMPLER_BLOCK) {
        if (!(sp->block[b] > 0)) continue;
        bool here = sum + (double)sp->block[b] > target;
        if (!here && at + SAMPLER_BLOCK < n) {
            sum += (double)sp->block[b];
            last = (int32_t)at;
            continue;
        }
        for (size_t i = at; i < n && i < at + SAMPLER_BLOCK; i++) {
            if (!(sp->prob[i] > 0)) continue;
            sum += (double)sp->prob[i];
            last = (int32_t)i;
            if (sum > target) break;
        }
        break;
    }
    return last;
}

/* top-k, top-p and min-p each keep a prefix of the sorted distribution, so only that prefix is sorted.
 * top-p is a share of what top-k left. */
static int32_t draw_prefix(const sampler *s, sampler_space *sp, const float *x, double all, double u)
{
    size_t n = s->n_vocab, k = s->s.top_k > 0 && (size_t)s->s.top_k < n ? (size_t)s->s.top_k : n;
    int32_t *order = sp->order;
    heapify(x, order, n);
    double total = 0, kept = 0, sum = 0;
    size_t taken = 0;
    if (k < n) {
        while (taken < k) {
            total += (double)sp->prob[pop(x, order, n - taken)];
            taken++;
        }
    } else {
        total = all;
    }
    double share = s->s.top_p > 0 && s->s.top_p < 1 ? (double)s->s.top_p * total : total;
    size_t n_kept = 0;
    float least = 0;
    while (n_kept < k) {
        if (n_kept == taken) {
            pop(x, order, n - taken);
            taken++;
        }
        float p = sp->prob[order[n - 1 - n_kept]];
        if (n_kept == 0) least = p * s->s.min_p;
        if (n_kept > 0 && (!(p > 0) || p < least || kept >= share)) break;
        kept += (double)p;
        n_kept++;
    }
    size_t i = 0;
    for (; i + 1 < n_kept; i++) {
        sum += (double)sp->prob[order[n - 1 - i]];
        if (sum > u * kept) break;
    }
    return order[n - 1 - i];
}

/* The n_top likeliest, by insertion into a short sorted list. */
static void find_top(const sampler *s, const float *logits, float log_sum, sample *ret)
{
    size_t n_top = (size_t)s->n_top < s->n_vocab ? (size_t)s->n_top : s->n_vocab;
    int32_t ids[SAMPLER_TOP_MAX];
    size_t n = 0;
    for (size_t i = 0; i < s->n_vocab && n_top > 0; i++) {
        if (n == n_top && !(logits[i] > logits[ids[n - 1]])) continue;
        size_t at = n < n_top ? n++ : n - 1;
        for (; at > 0 && logits[i] > logits[ids[at - 1]]; at--) ids[at] = ids[at - 1];
        ids[at] = (int32_t)i;
    }
    ret->n_top = n;
    for (size_t i = 0; i < n; i++)
        ret->top[i] = (token_logprob){.id = ids[i], .logprob = logits[ids[i]] - log_sum};
}

/* The draw from x, whose distribution is weighed already. */
static int32_t draw(const sampler *s, sampler_space *sp, const float *x, double total, uint64_t position)
{
    double u = rng_uniform(s->s.seed, position);
    bool cut = s->s.top_k > 0 || (s->s.top_p > 0 && s->s.top_p < 1) || s->s.min_p > 0;
    return cut ? draw_prefix(s, sp, x, total, u) : draw_all(sp, s->n_vocab, u * total);
}

double sampler_weigh(const vec_kernels *v, sampler_space *sp, const float *logits, size_t n, float *ret_max)
{
    *ret_max = logits[v->argmax(logits, n)];
    return weigh(v, sp, logits, n, *ret_max, 1);
}

void sampler_choose(const sampler *s, const vec_kernels *v, sampler_space *sp, const float *logits,
                    uint64_t position, grammar *g, const int32_t *eos_ids, size_t n_eos, sample *ret)
{
    size_t n = s->n_vocab, best = v->argmax(logits, n);
    const float *x = logits;
    double total = weigh(v, sp, x, n, x[best], 1);
    float log_sum = x[best] + math_logf((float)total);
    find_top(s, logits, log_sum, ret);
    if (s->n_seen || s->s.n_bias > 0 || g) {
        memcpy(sp->work, logits, n * sizeof *logits);
        penalise(s, sp->work);
        if (g) grammar_mask(g, sp->work, n, eos_ids, n_eos);
        x = sp->work;
        best = v->argmax(x, n);
    }
    ret->id = (int32_t)best;
    if (s->s.temperature > 0) {
        /* The largest has to stay 0 * scale = 0 however cold it is. */
        float scale = s->s.temperature > 1 / FLT_MAX ? 1 / s->s.temperature : FLT_MAX;
        if (x != logits || scale != 1) total = weigh(v, sp, x, n, x[best], scale);
        ret->id = draw(s, sp, x, total, position);
    }
    ret->logprob = logits[ret->id] - log_sum;
}

void sampler_judge(const sampler *s, const vec_kernels *v, sampler_space *sp, const float *logits, int32_t id,
                   sample *ret)
{
    float max;
    double total = sampler_weigh(v, sp, logits, s->n_vocab, &max);
    float log_sum = max + math_logf((float)total);
    find_top(s, logits, log_sum, ret);
    ret->id = id;
    ret->logprob = logits[id] - log_sum;
}
