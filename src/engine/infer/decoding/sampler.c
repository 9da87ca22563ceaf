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

/* Ids in bands of d = (x - max) * scale, each band behind the one above it: order[0, n). Inside a band they are in any
 * order; where a cut or a draw falls, the band is split in halves until few are left to sort. Below the last band every
 * weight is 0. */
typedef struct ranking {
    const weighed *w;
    size_t n;
    float above; /* bands down to here were found */
} ranking;

#define FIRST_BAND  (-3.0f) /* each band goes twice as deep */
#define LAST_BAND   (-192.0f)
#define SORTED_MOST 32 /* ids that are sorted rather than split */
#define SPLITS_MOST 24 /* halves of a band; more are of ids that are as likely */

static float depth_of(const weighed *w, int32_t id)
{
    return (w->x[id] - w->x[w->best]) * w->scale;
}

/* a comes before b in the sorted distribution. */
static bool before(const float *x, int32_t a, int32_t b)
{
    return x[a] > x[b] || (x[a] == x[b] && a < b);
}

/* Sift ids[at] down in a heap of n whose top is the least likely. */
static void sift(const float *x, int32_t *ids, size_t at, size_t n)
{
    int32_t id = ids[at];
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= n) break;
        if (child + 1 < n && before(x, ids[child], ids[child + 1])) child++;
        if (!before(x, id, ids[child])) break;
        ids[at] = ids[child];
        at = child;
    }
    ids[at] = id;
}

/* The likeliest first. */
static void sort_ids(const float *x, int32_t *ids, size_t n)
{
    for (size_t i = n / 2; i-- > 0;) sift(x, ids, i, n);
    for (size_t i = n; i-- > 1;) {
        int32_t last = ids[0];
        ids[0] = ids[i];
        ids[i] = last;
        sift(x, ids, 0, i);
    }
}

/* Those of a depth from `mid` on to the front; how many they are. */
static size_t split_ids(const weighed *w, int32_t *ids, size_t n, float mid)
{
    size_t n_front = 0;
    for (size_t i = 0; i < n; i++) {
        int32_t id = ids[i];
        ids[i] = ids[n_front];
        ids[n_front] = id;
        n_front += depth_of(w, id) >= mid;
    }
    return n_front;
}

/* Add the ids of one block whose d lies in [low, above), with their weights. */
static size_t find_in_block(const ranking *r, size_t at, float low)
{
    const weighed *w = r->w;
    int32_t *found = w->sp->order + r->n, here[EXP_SUMS_BLOCK];
    float max = w->x[w->best], scale = w->scale, above = r->above;
    size_t n = block_len(w->n, at), n_here = 0;
    for (size_t i = 0; i < n; i++) { /* without a branch that nobody could foresee */
        float d = (w->x[at + i] - max) * scale;
        here[n_here] = (int32_t)(at + i);
        n_here += (size_t)((d >= low) & (d < above));
    }
    if (n_here == 0) return 0;
    weigh_block(w, at);
    memcpy(found, here, n_here * sizeof *here);
    return n_here;
}

/* Append the next band that is not empty; false: every weight that is left is 0. */
static bool next_band(ranking *r)
{
    const weighed *w = r->w;
    size_t before_it = r->n;
    while (r->n == before_it && r->above > LAST_BAND) {
        float low = r->above > 0 ? FIRST_BAND : 2 * r->above, least = least_sum(low);
        for (size_t b = 0, at = 0; at < w->n; b++, at += EXP_SUMS_BLOCK)
            if (!(w->sp->block[b] < least)) r->n += find_in_block(r, at, low);
        r->above = low;
    }
    return r->n > before_it;
}

/* How many of the likeliest are kept. */
typedef struct cut {
    size_t most;  /* so many, */
    double share; /* until their weights add up to so much, */
    float least;  /* and none that weighs less; the likeliest is kept in any case */
    size_t n;
    double kept; /* their weights */
    bool over;
} cut;

static void cut_sorted(cut *c, const weighed *w, int32_t *ids, size_t n)
{
    sort_ids(w->x, ids, n);
    for (size_t i = 0; i < n && !c->over; i++) {
        float p = w->sp->prob[ids[i]];
        c->over = c->n >= c->most || (c->n > 0 && (!(p > 0) || p < c->least || c->kept >= c->share));
        if (c->over) break;
        c->kept += (double)p;
        c->n++;
    }
}

/* Keep what ids[n] allow, whose depths lie in [low, above): all of them, or as many of the likeliest. */
static void cut_band(cut *c, const weighed *w, int32_t *ids, size_t n, float low, float above, int n_splits)
{
    double sum = 0;
    float smallest = FLT_MAX;
    for (size_t i = 0; i < n; i++) {
        float p = w->sp->prob[ids[i]];
        sum += (double)p;
        smallest = p < smallest ? p : smallest;
    }
    if (n <= c->most - c->n && c->kept + sum < c->share && smallest > 0 && smallest >= c->least) {
        c->kept += sum;
        c->n += n;
        return;
    }
    if (n <= SORTED_MOST || n_splits == 0) {
        cut_sorted(c, w, ids, n);
        return;
    }
    float mid = 0.5f * (low + above);
    size_t n_front = split_ids(w, ids, n, mid);
    cut_band(c, w, ids, n_front, mid, above, n_splits - 1);
    if (!c->over) cut_band(c, w, ids + n_front, n - n_front, low, mid, n_splits - 1);
}

static void cut_ranking(cut *c, ranking *r)
{
    float above = r->above;
    size_t at = 0;
    c->over = false;
    if (r->n > 0) cut_band(c, r->w, r->w->sp->order, r->n, r->above, 0, SPLITS_MOST);
    for (at = r->n; !c->over && c->n < c->most && next_band(r); at = r->n) {
        cut_band(c, r->w, r->w->sp->order + at, r->n - at, r->above, above < 0 ? above : 0, SPLITS_MOST);
        above = r->above;
    }
}

/* The one of ids[n] at which the sum of the weights, the likeliest first, passes `target`. */
static int32_t draw_band(const weighed *w, int32_t *ids, size_t n, float low, double target)
{
    float above = 0;
    for (int n_splits = SPLITS_MOST; n > SORTED_MOST && n_splits > 0; n_splits--) {
        float mid = 0.5f * (low + above);
        size_t n_front = split_ids(w, ids, n, mid);
        double sum = 0;
        for (size_t i = 0; i < n_front; i++) sum += (double)w->sp->prob[ids[i]];
        bool front = sum > target || n_front == n;
        if (!front) target -= sum;
        ids += front ? 0 : n_front;
        n = front ? n_front : n - n_front;
        *(front ? &low : &above) = mid;
    }
    sort_ids(w->x, ids, n);
    for (size_t i = 0; i + 1 < n; i++) {
        target -= (double)w->sp->prob[ids[i]];
        if (target < 0) return ids[i];
    }
    return ids[n - 1];
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

/* top-k, top-p and min-p each keep some of the likeliest, and top-p is a share of what top-k left. At least one is kept,
 * unless no weight is a number. */
static int32_t draw_cut(const sampler *s, const weighed *w, double u)
{
    ranking r = {.w = w, .above = 1};
    size_t n = s->n_vocab, k = s->s.top_k > 0 && (size_t)s->s.top_k < n ? (size_t)s->s.top_k : n;
    double total = w->total;
    if (k < n) {
        cut first = {.most = k, .share = DBL_MAX};
        cut_ranking(&first, &r);
        total = first.kept;
    }
    cut c = {.most = k,
             .share = s->s.top_p > 0 && s->s.top_p < 1 ? (double)s->s.top_p * total : total,
             .least = s->s.min_p};
    cut_ranking(&c, &r);
    return c.n > 0 ? draw_band(w, w->sp->order, c.n, r.above, u * c.kept) : (int32_t)w->best;
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
    bool is_cut = s->s.top_k > 0 || (s->s.top_p > 0 && s->s.top_p < 1) || s->s.min_p > 0;
    return is_cut ? draw_cut(s, w, u) : draw_all(w, u * w->total);
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
