/* draft.c: guesses of the next tokens, how often they come true and what they are worth; see draft.h. */
#include "infer/decoding/draft.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/err.h"

#define BOOK_BITS    14
#define OFTEN        3 /* times that a gram was followed by the same token */
#define COUNT_MAX    15
#define SHORT_GRAM   3
#define LONG_GRAM    6
#define PAST_MAX     8   /* equal tokens that are counted */
#define BOOK_TRIES   256 /* trials after which the older ones weigh half: the book's, a request's */
#define OWN_TRIES    24
#define BOOK_WEIGHT  3     /* trials of the request's own that the book's rate counts for */
#define USUAL_WEIGHT 4     /* and of the book's that what is usual counts for */
#define LEAST        0.04f /* chances under this are not gone after */

/* What followed some tokens: their hash, and how many times more it was this one than others. */
struct draft_gram {
    uint32_t key;
    int32_t id;
    uint8_t count; /* 0: empty */
};

int draft_book_init(draft_book *b)
{
    *b = (draft_book){.grams = calloc((size_t)1 << BOOK_BITS, sizeof *b->grams)};
    return b->grams ? 0 : SHOAL_ENOMEM;
}

void draft_book_done(draft_book *b)
{
    free(b->grams);
    *b = (draft_book){0};
}

/* ---- the book ------------------------------------------------------------------------------------- */

/* The place of the n_gram tokens that end at ids[n], and the key that tells them from others there. */
static struct draft_gram *gram_of(const draft_book *b, const int32_t *ids, size_t n, size_t n_gram,
                                  uint32_t *ret_key)
{
    uint64_t h = n_gram;
    for (size_t i = n - n_gram; i < n; i++) h = rng_mix(h ^ (uint32_t)ids[i]);
    *ret_key = (uint32_t)(h >> 32);
    return &b->grams[h & (((size_t)1 << BOOK_BITS) - 1)];
}

static const struct draft_gram *look_up(const draft_book *b, const int32_t *ids, size_t n, size_t n_gram)
{
    uint32_t key;
    if (n < n_gram) return NULL;
    const struct draft_gram *g = gram_of(b, ids, n, n_gram, &key);
    return g->count > 0 && g->key == key ? g : NULL;
}

/* A place goes to another gram or token once that came more often than what stands there. */
static void write_down(draft_book *b, const int32_t *ids, size_t n, size_t n_gram, int32_t id)
{
    uint32_t key;
    if (n < n_gram) return;
    struct draft_gram *g = gram_of(b, ids, n, n_gram, &key);
    if (g->count > 0 && g->key == key && g->id == id) {
        g->count += g->count < COUNT_MAX;
    } else if (g->count > 1) {
        g->count /= 2;
    } else {
        *g = (struct draft_gram){.key = key, .id = id, .count = 1};
    }
}

/* ---- how often guesses come true --------------------------------------------------------------------- */

static void rate_add(draft_rate *r, bool hit, float most)
{
    if (r->tries >= most) *r = (draft_rate){.hits = r->hits / 2, .tries = r->tries / 2};
    r->hits += hit ? 1 : 0;
    r->tries += 1;
}

/* As long as nothing is known: about what was seen with home commands and small chat models. */
static const float usual[DRAFT_N_KINDS] = {
    [DRAFT_PAST_1] = 0.3f, [DRAFT_PAST_2] = 0.4f,       [DRAFT_PAST_3] = 0.4f,
    [DRAFT_PAST_4] = 0.5f, [DRAFT_PAST_8] = 0.8f,       [DRAFT_BOOK_3] = 0.4f,
    [DRAFT_BOOK_6] = 0.4f, [DRAFT_BOOK_3_OFTEN] = 0.9f, [DRAFT_BOOK_6_OFTEN] = 0.9f,
};

static float chance_of(const draft_book *b, const draft *d, unsigned kind)
{
    const draft_rate *all = &b->rate[kind], *own = &d->rate[kind];
    float book = (all->hits + USUAL_WEIGHT * usual[kind]) / (all->tries + USUAL_WEIGHT);
    return (own->hits + BOOK_WEIGHT * book) / (own->tries + BOOK_WEIGHT);
}

/* ---- guessing ------------------------------------------------------------------------------------------ */

/* Where the longest past that equals the end of ids goes on, the latest among equals; 0: nowhere. */
static size_t find_past(const int32_t *ids, size_t n, size_t *ret_len)
{
    size_t at = 0, best = 0, end = n > DRAFT_LOOK ? n - DRAFT_LOOK : 0;
    for (size_t i = n - 1; i-- > end && best < PAST_MAX;) {
        if (ids[i] != ids[n - 1]) continue;
        size_t len = 1;
        while (len < PAST_MAX && len <= i && ids[i - len] == ids[n - 1 - len]) len++;
        if (len <= best) continue;
        best = len;
        at = i + 1;
    }
    *ret_len = best;
    return at;
}

static unsigned past_kind(size_t len)
{
    return len >= 8 ? DRAFT_PAST_8 : len >= 4 ? DRAFT_PAST_4 : (unsigned)(DRAFT_PAST_1 + len - 1);
}

typedef struct guess {
    int32_t id;
    unsigned kind;
    float chance;
} guess;

static void prefer(guess *best, const draft_book *b, const draft *d, int32_t id, unsigned kind)
{
    float chance = chance_of(b, d, kind);
    if (chance > best->chance) *best = (guess){.id = id, .kind = kind, .chance = chance};
}

void draft_guess(const draft_book *b, draft *d, int32_t *ids, size_t n_ids, size_t room)
{
    size_t len, past = find_past(ids, n_ids, &len);
    float chance = 1;
    d->n = d->n_planned = 0;
    for (; d->n < room && d->n < DRAFT_MAX; d->n++) {
        size_t n = n_ids + d->n;
        const struct draft_gram *far = look_up(b, ids, n, LONG_GRAM), *near = look_up(b, ids, n, SHORT_GRAM);
        guess best = {.chance = 0};
        if (past > 0) prefer(&best, b, d, ids[past], past_kind(len));
        if (far) prefer(&best, b, d, far->id, far->count < OFTEN ? DRAFT_BOOK_6 : DRAFT_BOOK_6_OFTEN);
        if (near) prefer(&best, b, d, near->id, near->count < OFTEN ? DRAFT_BOOK_3 : DRAFT_BOOK_3_OFTEN);
        if (!(best.chance > 0) || (d->n > 0 && chance * best.chance < LEAST)) return;
        past = past > 0 && ids[past] == best.id ? past + 1 : 0;
        len++;
        chance *= best.chance;
        ids[n] = best.id;
        d->kind[d->n] = (uint8_t)best.kind;
        d->chance[d->n] = best.chance;
    }
}

size_t draft_worth(const draft *d, double chance)
{
    double all = 1;
    size_t n = 0;
    while (n < d->n && (all *= (double)d->chance[n]) > chance) n++;
    return n;
}

bool draft_check(draft_book *b, draft *d, size_t at, const int32_t *ids, size_t n_ids, int32_t id)
{
    bool hit = at < d->n && ids[n_ids] == id;
    write_down(b, ids, n_ids, SHORT_GRAM, id);
    write_down(b, ids, n_ids, LONG_GRAM, id);
    if (at >= d->n) return false;
    rate_add(&b->rate[d->kind[at]], hit, BOOK_TRIES);
    rate_add(&d->rate[d->kind[at]], hit, OWN_TRIES);
    return hit;
}

/* ---- what they are worth ---------------------------------------------------------------------------- */

#define ROW_SHARE  0.25 /* of a step of one: what a row more costs as long as nobody has tried */
#define COST_FIRST 4    /* the least of so many steps; then what is known goes up or down by a share */
#define COST_SHARE 0.02 /* of itself, whatever the step took: so it nears the median */
#define GAIN_LEAST 1.03 /* less is within what is not known of the costs */

void draft_cost_note(draft_cost *c, size_t n_rows, double ms)
{
    if (n_rows > DRAFT_COST_ROWS) return;
    double *known = &c->ms[n_rows];
    if (c->n[n_rows] < COST_FIRST) {
        *known = c->n[n_rows]++ == 0 || ms < *known ? ms : *known;
    } else {
        *known *= ms > *known ? 1 + COST_SHARE : 1 - COST_SHARE;
    }
}

/* From the nearest smaller step that is known. */
static double cost_of(const draft_cost *c, size_t n_rows)
{
    size_t known = n_rows < DRAFT_COST_ROWS ? n_rows : DRAFT_COST_ROWS;
    while (known > 1 && c->ms[known] <= 0) known--;
    double more = (1 + ROW_SHARE * (double)(n_rows - 1)) / (1 + ROW_SHARE * (double)(known - 1));
    return (c->ms[known] > 0 ? c->ms[known] : 1) * more;
}

size_t draft_cost_best(const draft_cost *c, const draft *d, size_t n_rows, double *tokens)
{
    double chance = 1, gain = 0, best_gain = 0, best = GAIN_LEAST * *tokens / cost_of(c, n_rows);
    size_t ret = 0;
    for (size_t n = 1; n <= d->n; n++) {
        gain += chance *= (double)d->chance[n - 1];
        double speed = (*tokens + gain) / cost_of(c, n_rows + n);
        if (speed <= best) continue;
        best = speed;
        best_gain = gain;
        ret = n;
    }
    *tokens += best_gain;
    return ret;
}
