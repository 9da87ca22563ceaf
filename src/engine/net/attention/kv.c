/* kv.c: the pages of kv.h, as in PagedAttention (Kwon et al. 2023, arXiv:2309.06180). A page is in one state
 * at a time: never touched, free, held by sequences (n_refs > 0), or registered and held by none, in one of
 * the two lines. */
#include "net/attention/kv.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/pages.h"
#include "os/memory_headroom.h"

#define NONE         UINT32_MAX
#define KV_PAGES_MAX (1u << 24)
#define POPULATE_MAX ((size_t)8 << 20)
#define LIKE_LOOK    64 /* of these the newest so many are looked at */

struct kv_page {
    uint32_t n_refs;
    uint32_t next_in_bucket;       /* while registered, as are the next two */
    uint32_t like_prev, like_next; /* others behind the same page that begin with the same token */
    uint32_t lru_prev, lru_next;   /* while registered and unreferenced; lru_next also links free pages */
    bool kept;                     /* it waits, or will, in the line of conversations */
    uint8_t n_ids;   /* that it is registered with: all, or those of a conversation's open page */
    uint64_t uid;    /* names what the page holds; 0: not registered */
    uint64_t parent; /* uid of the page before it, or the name of its salt */
    seq_state state; /* behind its n_ids, while registered; SEQ_STATE_NONE: not known */
    int32_t ids[KV_PAGE_TOKENS];
};

int kv_shape_keep_as(kv_shape *s, kv_type t, shoal_err *err)
{
    if (t == KV_AS_WEIGHTS || s->n_layer == 0) return 0;
    if (t == KV_Q8_0 && s->stateful)
        return err_set(
            err, SHOAL_EUNSUPPORTED,
            "this model's convolutions round their inputs to the type of keys and values, for which q8_0 "
            "is too coarse: take f16");
    if (t == KV_Q8_0 && (s->head_dim % KV_PAGE_TOKENS != 0 || s->head_dim > KV_HEAD_MAX))
        return err_set(
            err, SHOAL_EUNSUPPORTED,
            "keys and values are kept as q8_0 where heads have a multiple of %d numbers, up to %d, "
            "and this model's have %zu: take f16",
            KV_PAGE_TOKENS, KV_HEAD_MAX, s->head_dim);
    s->type = kv_type_dtype(t);
    return 0;
}

/* *ret_page: with its snapshot */
static int lay_out(kv *c, const kv_shape *s, size_t *ret_page, shoal_err *err)
{
    size_t bytes = s->type == DT_Q8_0 ? 1 : s->type == DT_F16 ? sizeof(uint16_t) : sizeof(float);
    size_t scales = s->type == DT_Q8_0 ? ATTN_Q8_SCALES : 0;
    *c = (kv){.shape = *s};
    if (size_mul(s->head_dim, KV_PAGE_TOKENS * bytes, &c->head_bytes) ||
        size_add(c->head_bytes, scales, &c->head_bytes) ||
        size_mul(c->head_bytes, s->n_head_kv, &c->half_bytes) || size_mul(c->half_bytes, 2, &c->page_bytes) ||
        size_mul(c->page_bytes, s->n_layer, &c->page_bytes) ||
        size_add(c->page_bytes, s->state_bytes, ret_page) || *ret_page == 0) {
        return err_set(err, SHOAL_EINVALID, "a key/value cache of %zu layers, %zu heads of %zu is absurd",
                       s->n_layer, s->n_head_kv, s->head_dim);
    }
    return 0;
}

int kv_page_bytes(const kv_shape *shape, size_t *ret, shoal_err *err)
{
    kv plan;
    size_t page;
    int rc = lay_out(&plan, shape, &page, err);
    if (rc == 0) *ret = page;
    return rc;
}

int kv_bytes_for(const kv_shape *shape, size_t n_pages, size_t *ret, shoal_err *err)
{
    size_t page, pages, spare;
    int rc = kv_page_bytes(shape, &page, err);
    if (rc) return rc;
    if (size_mul(page, n_pages, &pages) || size_mul(shape->state_bytes, KV_SPARE_STATES, &spare) ||
        size_add(pages, spare, ret))
        return err_set(err, SHOAL_EINVALID, "a key/value cache of %zu pages is absurd", n_pages);
    return 0;
}

int kv_pages_in(const kv_shape *shape, size_t max_bytes, size_t *ret, shoal_err *err)
{
    size_t one, page;
    int rc = kv_page_bytes(shape, &page, err);
    if (rc == 0) rc = kv_bytes_for(shape, 1, &one, err);
    if (rc == 0) *ret = max_bytes < one ? 0 : (max_bytes - one) / page + 1;
    return rc;
}

static int map_memory(kv *c, shoal_err *err)
{
    c->memory_bytes = (size_t)c->n_pages * c->page_bytes;
    if (c->memory_bytes == 0) return 0; /* these layers have nothing but a state */
    /* A decode step reads tiles of a KiB or two all over the cache: without huge pages each costs a walk of
     * the page tables. */
    c->memory = pages_map(c->memory_bytes, 0);
    if (!c->memory) return err_nomem(err);
    /* The first requests find their pages cleared. A sixteenth: a ceiling is no promise to use it. */
    pages_populate(c->memory, c->memory_bytes / 16 < POPULATE_MAX ? c->memory_bytes / 16 : POPULATE_MAX);
    return 0;
}

size_t kv_default_tokens(size_t asked, size_t n_ctx)
{
    return asked || n_ctx < KV_DEFAULT_CTX ? n_ctx : KV_DEFAULT_CTX;
}

int kv_default_bytes(const kv_shape *shape, size_t n_tokens, size_t *ret, shoal_err *err)
{
    size_t page, bytes;
    int rc = kv_page_bytes(shape, &page, err);
    uint64_t half = memory_headroom_read("").free_bytes / 2;
    if (rc || kv_bytes_for(shape, (n_tokens + KV_PAGE_TOKENS - 1) / KV_PAGE_TOKENS, &bytes, NULL)) bytes = 0;
    if (bytes > half) bytes = (size_t)half;
    *ret = bytes > KV_DEFAULT_BYTES ? bytes : KV_DEFAULT_BYTES;
    return rc;
}

int kv_new(kv **ret, const kv_shape *shape, size_t max_bytes, shoal_err *err)
{
    kv plan;
    size_t page, n;
    int rc = lay_out(&plan, shape, &page, err);
    if (rc == 0) rc = kv_pages_in(shape, max_bytes, &n, err);
    if (rc) return rc;
    if (n == 0) {
        return err_set(err, SHOAL_ELIMIT, "a key/value cache of %zu bytes cannot hold one page of %zu bytes",
                       max_bytes, page);
    }
    kv *c = calloc(1, sizeof *c);
    if (!c) return err_nomem(err);
    *c = plan;
    c->n_pages = c->n_fresh = n < KV_PAGES_MAX ? (uint32_t)n : KV_PAGES_MAX;
    c->free_head = NONE;
    for (int i = 0; i < KV_N_LINES; i++) c->line[i] = (kv_line){NONE, NONE, 0};
    for (c->n_buckets = 16; c->n_buckets < c->n_pages; c->n_buckets *= 2) continue;
    c->pages = calloc(c->n_pages, sizeof *c->pages);
    c->buckets = malloc(c->n_buckets * sizeof *c->buckets);
    c->alike = malloc(c->n_buckets * sizeof *c->alike);
    uint32_t n_states = shape->stateful ? c->n_pages + KV_SPARE_STATES : 0;
    if (!c->pages || !c->buckets || !c->alike || map_memory(c, NULL) ||
        seq_states_init(&c->states, shape->state_bytes, n_states, NULL)) {
        kv_free(c);
        return err_nomem(err);
    }
    memset(c->buckets, 0xff, c->n_buckets * sizeof *c->buckets);
    memset(c->alike, 0xff, c->n_buckets * sizeof *c->alike);
    *ret = c;
    return 0;
}

void kv_free(kv *c)
{
    if (!c) return;
    pages_unmap(c->memory, c->memory_bytes);
    seq_states_done(&c->states);
    free(c->pages);
    free(c->buckets);
    free(c->alike);
    free(c);
}

size_t kv_capacity_tokens(const kv *c)
{
    return (size_t)c->n_pages * KV_PAGE_TOKENS;
}

size_t kv_available(const kv *c)
{
    return (size_t)c->n_fresh + c->n_free + c->line[KV_LOOSE].n + c->line[KV_KEPT].n;
}

/* ---- the registry: full pages, and the open ones in which conversations rest ------------------ */

static uint32_t *bucket_of(const kv *c, uint64_t parent, const int32_t *ids)
{
    uint64_t h = rng_mix(parent);
    for (size_t i = 0; i < KV_PAGE_TOKENS; i++) h = rng_mix(h ^ (uint32_t)ids[i]);
    return &c->buckets[h & (c->n_buckets - 1)];
}

static uint32_t lookup(const kv *c, uint64_t parent, const int32_t *ids)
{
    uint32_t p = *bucket_of(c, parent, ids);
    while (p != NONE &&
           (c->pages[p].parent != parent || memcmp(c->pages[p].ids, ids, sizeof c->pages[p].ids) != 0)) {
        p = c->pages[p].next_in_bucket;
    }
    return p;
}

static uint32_t *alike_of(const kv *c, uint64_t parent, int32_t first)
{
    return &c->alike[rng_mix(rng_mix(parent) ^ (uint32_t)first) & (c->n_buckets - 1)];
}

static void link_alike(kv *c, uint32_t page)
{
    struct kv_page *p = &c->pages[page];
    uint32_t *head = alike_of(c, p->parent, p->ids[0]);
    p->like_prev = NONE;
    p->like_next = *head;
    if (*head != NONE) c->pages[*head].like_prev = page;
    *head = page;
}

static void unlink_alike(kv *c, uint32_t page)
{
    struct kv_page *p = &c->pages[page];
    *(p->like_prev == NONE ? alike_of(c, p->parent, p->ids[0]) : &c->pages[p->like_prev].like_next) =
        p->like_next;
    if (p->like_next != NONE) c->pages[p->like_next].like_prev = p->like_prev;
}

/* The page behind `parent` that begins with most of ids[0..n), n > 0, and how many these are. A state stands
 * for a whole page. */
static uint32_t closest(const kv *c, uint64_t parent, const int32_t *ids, size_t n, size_t *ret_same)
{
    uint32_t best = NONE, page = *alike_of(c, parent, ids[0]);
    *ret_same = 0;
    for (int k = 0; k < LIKE_LOOK && page != NONE; k++, page = c->pages[page].like_next) {
        const struct kv_page *p = &c->pages[page];
        size_t same = 0;
        while (p->parent == parent && same < n && same < p->n_ids && p->ids[same] == ids[same]) same++;
        if (same <= *ret_same || (c->states.n > 0 && (same < p->n_ids || !p->state))) continue;
        *ret_same = same;
        best = page;
    }
    return best;
}

/* ids[n]: with fewer than all it is found by its beginning alone. */
static void kv_enter(kv *c, uint32_t page, uint64_t parent, const int32_t *ids, size_t n)
{
    struct kv_page *p = &c->pages[page];
    p->uid = ++c->last_uid;
    p->parent = parent;
    p->n_ids = (uint8_t)n;
    memmove(p->ids, ids, n * sizeof *ids);
    if (n == KV_PAGE_TOKENS) {
        uint32_t *b = bucket_of(c, parent, ids);
        p->next_in_bucket = *b;
        *b = page;
    }
    link_alike(c, page);
}

static void leave_bucket(kv *c, uint32_t page)
{
    struct kv_page *p = &c->pages[page];
    uint32_t *at = bucket_of(c, p->parent, p->ids);
    while (*at != page) at = &c->pages[*at].next_in_bucket;
    *at = p->next_in_bucket;
}

static void forget_kv(kv *c, uint32_t page)
{
    struct kv_page *p = &c->pages[page];
    if (p->n_ids == KV_PAGE_TOKENS) leave_bucket(c, page);
    unlink_alike(c, page);
    seq_state_drop(&c->states, &p->state);
    p->uid = 0;
}

/* ---- who holds a page --------------------------------------------------------------------------- */

static kv_line *line_of(kv *c, const struct kv_page *p)
{
    return &c->line[p->kept ? KV_KEPT : KV_LOOSE];
}

static void line_remove(kv *c, uint32_t page)
{
    struct kv_page *p = &c->pages[page];
    kv_line *l = line_of(c, p);
    *(p->lru_prev == NONE ? &l->head : &c->pages[p->lru_prev].lru_next) = p->lru_next;
    *(p->lru_next == NONE ? &l->tail : &c->pages[p->lru_next].lru_prev) = p->lru_prev;
    l->n--;
}

static void line_append(kv *c, uint32_t page)
{
    struct kv_page *p = &c->pages[page];
    kv_line *l = line_of(c, p);
    p->lru_next = NONE;
    p->lru_prev = l->tail;
    *(l->tail == NONE ? &l->head : &c->pages[l->tail].lru_next) = page;
    l->tail = page;
    l->n++;
}

/* Nobody holds it any more, but somebody may come for it. */
static void line_up(kv *c, uint32_t page)
{
    line_append(c, page);
    if (c->line[KV_KEPT].n <= c->n_pages / 2) return;
    uint32_t oldest = c->line[KV_KEPT].head;
    line_remove(c, oldest);
    c->pages[oldest].kept = false;
    line_append(c, oldest);
}

static void page_ref(kv *c, uint32_t page)
{
    if (c->pages[page].n_refs++ > 0) return;
    c->n_used++;
    if (c->pages[page].uid) line_remove(c, page);
}

static void page_put_free(kv *c, uint32_t page)
{
    c->pages[page].lru_next = c->free_head;
    c->free_head = page;
    c->n_free++;
}

static void page_unref(kv *c, uint32_t page)
{
    assert(c->pages[page].n_refs > 0);
    if (--c->pages[page].n_refs > 0) return;
    c->n_used--;
    if (c->pages[page].uid)
        line_up(c, page);
    else
        page_put_free(c, page);
}

/* Touched pages first, so that resident memory grows only when it must; then fresh ones; only then is
 * something worth keeping thrown away. */
static uint32_t page_take(kv *c)
{
    uint32_t page;
    if (c->n_free > 0) {
        page = c->free_head;
        c->free_head = c->pages[page].lru_next;
        c->n_free--;
    } else if (c->n_fresh > 0) {
        page = c->n_pages - c->n_fresh--;
    } else {
        page = c->line[c->line[KV_LOOSE].n > 0 ? KV_LOOSE : KV_KEPT].head;
        assert(page != NONE);
        line_remove(c, page);
        forget_kv(c, page);
    }
    c->pages[page].kept = false;
    page_ref(c, page);
    return page;
}

/* ---- sequences ------------------------------------------------------------------------------------ */

/* Where a chain of this salt begins: never the uid of a page. */
static uint64_t chain_start(uint64_t salt)
{
    return salt ? salt | (uint64_t)1 << 63 : 0;
}

int kv_seq_init(kv_seq *s, size_t max_tokens, uint64_t salt)
{
    size_t cap = max_tokens / KV_PAGE_TOKENS + 1, n_marks = cap + KV_GUESSES_MAX + 1;
    uint32_t *pages = calloc(1, cap * sizeof *pages + n_marks * sizeof *s->marks);
    if (!pages) return SHOAL_ENOMEM;
    *s = (kv_seq){.pages = pages,
                  .cap_pages = cap,
                  .salt = salt,
                  .chain = chain_start(salt),
                  .marks = (seq_mark *)(pages + cap)};
    return 0;
}

void kv_seq_salt(kv_seq *s, uint64_t salt)
{
    assert(s->n_pages == 0);
    s->salt = salt;
    s->chain = chain_start(salt);
}

void kv_seq_done(kv *c, kv_seq *s)
{
    if (s->pages) kv_release(c, s);
    free(s->pages);
    *s = (kv_seq){0};
}

/* ---- states --------------------------------------------------------------------------------------- */

/* The sequence's state is now `to`. */
static void go_to(kv *c, kv_seq *s, seq_state to)
{
    seq_state_ref(&c->states, to);
    seq_state_drop(&c->states, &s->state);
    s->state = to;
}

static void drop_marks(kv *c, kv_seq *s)
{
    while (s->n_marks > 0) seq_state_drop(&c->states, &s->marks[--s->n_marks].state);
}

/* Of the pages that wait the first to go loses its snapshot; false: none has one. */
static bool drop_snapshot(kv *c)
{
    for (int i = 0; i < KV_N_LINES; i++)
        for (uint32_t page = c->line[i].head; page != NONE; page = c->pages[page].lru_next)
            if (c->pages[page].state) {
                seq_state_drop(&c->states, &c->pages[page].state);
                return true;
            }
    return false;
}

static bool mark(kv *c, kv_seq *s, size_t position, bool must)
{
    seq_state state = seq_state_take(&c->states);
    while (!state && must && drop_snapshot(c)) state = seq_state_take(&c->states);
    if (state) s->marks[s->n_marks++] = (seq_mark){(uint32_t)position, state};
    return state != SEQ_STATE_NONE;
}

/* A step of n tokens leaves states behind all positions that the sequence may end at and, where some are free,
 * at the ends of pages before that. False: there are not enough. */
static bool mark_states(kv *c, kv_seq *s, size_t n, size_t n_guessed)
{
    size_t end = s->n_tokens + n, sure = end - n_guessed;
    assert(n_guessed < n && n_guessed <= KV_GUESSES_MAX);
    for (size_t at = (s->n_tokens / KV_PAGE_TOKENS + 1) * KV_PAGE_TOKENS; at < sure; at += KV_PAGE_TOKENS)
        mark(c, s, at, false);
    for (size_t at = sure; at <= end; at++)
        if (!mark(c, s, at, true)) return false;
    return true;
}

static seq_state marked(const kv_seq *s, size_t position)
{
    for (size_t i = 0; i < s->n_marks; i++)
        if (s->marks[i].position == position) return s->marks[i].state;
    return SEQ_STATE_NONE;
}

static void keep_snapshot(kv *c, uint32_t page, seq_state state)
{
    if (!c->pages[page].state) c->pages[page].state = seq_state_ref(&c->states, state);
}

/* From adopted pages back to the last that has a snapshot. */
static void step_back(kv *c, kv_seq *s)
{
    while (s->n_pages > 0 && !c->pages[s->pages[s->n_pages - 1]].state) {
        uint32_t page = s->pages[--s->n_pages];
        s->n_registered--;
        s->n_tokens -= KV_PAGE_TOKENS;
        s->chain = c->pages[page].parent;
        page_unref(c, page);
    }
    if (s->n_pages > 0) go_to(c, s, c->pages[s->pages[s->n_pages - 1]].state);
}

/* ---- steps of a sequence -------------------------------------------------------------------------- */

/* A conversation goes on in the page in which it rested. */
static void go_on_in(kv *c, kv_seq *s, uint32_t page)
{
    page_ref(c, page);
    if (c->states.n > 0) go_to(c, s, c->pages[page].state);
    forget_kv(c, page);
    c->pages[page].kept = false;
    s->pages[s->n_pages++] = page;
    s->n_tokens += c->pages[page].n_ids;
}

/* The first positions of a page whose other tokens are not ours are copied: that takes less than computing
 * them. Not where the pages are mirrored, whose owner expects copies of forks alone. */
static void adopt_part(kv *c, kv_seq *s, const int32_t *ids, size_t n)
{
    size_t same;
    if (c->copied || n == 0 || s->n_pages == s->cap_pages) return;
    uint32_t from = closest(c, s->chain, ids, n, &same);
    if (from == NONE) return;
    if (same < KV_PAGE_TOKENS && same == c->pages[from].n_ids && c->pages[from].n_refs == 0) {
        go_on_in(c, s, from);
        return;
    }
    if (c->states.n > 0) return; /* the state behind part of a page is not known */
    page_ref(c, from);           /* it stays where it is while room is made */
    if (kv_available(c) > 0) {
        uint32_t page = s->pages[s->n_pages++] = page_take(c);
        memcpy(c->memory + page * c->page_bytes, c->memory + from * c->page_bytes, c->page_bytes);
        s->n_tokens += same;
    }
    page_unref(c, from);
}

size_t kv_adopt(kv *c, kv_seq *s, const int32_t *ids, size_t n)
{
    assert(s->n_pages == 0);
    while (s->n_tokens + KV_PAGE_TOKENS <= n && s->n_pages < s->cap_pages) {
        uint32_t page = lookup(c, s->chain, ids + s->n_tokens);
        if (page == NONE) break;
        page_ref(c, page);
        s->pages[s->n_pages++] = page;
        s->n_registered++;
        s->chain = c->pages[page].uid;
        s->n_tokens += KV_PAGE_TOKENS;
    }
    if (c->states.n > 0) step_back(c, s);
    adopt_part(c, s, ids + s->n_tokens, n - s->n_tokens);
    return s->n_tokens;
}

int kv_reserve(kv *c, kv_seq *s, size_t n_tokens)
{
    return kv_reserve_guessed(c, s, n_tokens, 0);
}

int kv_reserve_guessed(kv *c, kv_seq *s, size_t n_tokens, size_t n_guessed)
{
    size_t want = (s->n_tokens + n_tokens + KV_PAGE_TOKENS - 1) / KV_PAGE_TOKENS;
    drop_marks(c, s); /* of the step before */
    if (want > s->cap_pages) return SHOAL_EFULL;
    if (want > s->n_pages && want - s->n_pages > kv_available(c)) return SHOAL_EFULL;
    if (c->states.n > 0 && !mark_states(c, s, n_tokens, n_guessed)) {
        drop_marks(c, s);
        return SHOAL_EFULL;
    }
    while (s->n_pages < want) s->pages[s->n_pages++] = page_take(c);
    return 0;
}

/* Page number `at` of the sequence is full. When an equal page is registered already (two requests
 * with one prompt ran side by side), use that one and give ours back. */
static void register_page(kv *c, kv_seq *s, size_t at, const int32_t *ids)
{
    uint32_t known = lookup(c, s->chain, ids);
    if (known == NONE) {
        kv_enter(c, s->pages[at], s->chain, ids, KV_PAGE_TOKENS);
    } else {
        page_ref(c, known);
        page_unref(c, s->pages[at]);
        s->pages[at] = known;
    }
    keep_snapshot(c, s->pages[at], marked(s, (at + 1) * KV_PAGE_TOKENS));
    s->chain = c->pages[s->pages[at]].uid;
}

void kv_commit(kv *c, kv_seq *s, const int32_t *ids, size_t n_tokens)
{
    s->n_tokens += n_tokens;
    assert(s->n_tokens <= s->n_pages * KV_PAGE_TOKENS);
    while ((s->n_registered + 1) * KV_PAGE_TOKENS <= s->n_tokens) {
        register_page(c, s, s->n_registered, ids + s->n_registered * KV_PAGE_TOKENS);
        s->n_registered++;
    }
    if (c->states.n > 0) go_to(c, s, marked(s, s->n_tokens));
    assert(c->states.n == 0 || s->state);
    size_t n_open = s->n_tokens - s->n_registered * KV_PAGE_TOKENS;
    if (s->keeps && n_open > 0)
        memcpy(c->pages[s->pages[s->n_registered]].ids, ids + s->n_tokens - n_open, n_open * sizeof *ids);
}

int kv_fork(kv *c, kv_seq *to, const kv_seq *from)
{
    assert(to->n_pages == 0 && to->salt == from->salt);
    bool open = from->n_pages > from->n_registered;
    if (from->n_pages > to->cap_pages || (open && kv_available(c) == 0)) return SHOAL_EFULL;
    for (; to->n_pages < from->n_registered; to->n_pages++) {
        to->pages[to->n_pages] = from->pages[to->n_pages];
        page_ref(c, to->pages[to->n_pages]);
    }
    if (open) {
        uint32_t page = to->pages[to->n_pages++] = page_take(c);
        if (c->page_bytes > 0) /* a part of convolutions alone has no keys and no values */
            memcpy(c->memory + page * c->page_bytes,
                   c->memory + from->pages[from->n_registered] * c->page_bytes, c->page_bytes);
        if (c->copied) c->copied(c->copied_user, from->pages[from->n_registered], page);
    }
    go_to(c, to, from->state);
    to->n_tokens = from->n_tokens;
    to->n_registered = from->n_registered;
    to->chain = from->chain;
    return 0;
}

/* The next turn finds the open page of a conversation, too, unless it finds as much elsewhere. */
static void rest(kv *c, const kv_seq *s)
{
    size_t same, n = s->n_tokens - s->n_registered * KV_PAGE_TOKENS;
    if (!s->keeps || c->copied || n == 0) return;
    uint32_t page = s->pages[s->n_registered];
    const int32_t *ids = c->pages[page].ids;
    closest(c, s->chain, ids, n, &same);
    if (same == n) return;
    kv_enter(c, page, s->chain, ids, n);
    keep_snapshot(c, page, s->state);
}

void kv_release(kv *c, kv_seq *s)
{
    rest(c, s);
    /* Last page first: a prefix is worth more than what follows it, and goes later. */
    while (s->n_pages > 0) {
        uint32_t page = s->pages[--s->n_pages];
        c->pages[page].kept |= s->keeps;
        page_unref(c, page);
    }
    drop_marks(c, s);
    seq_state_drop(&c->states, &s->state);
    s->n_tokens = s->n_registered = 0;
    s->chain = chain_start(s->salt);
}

void kv_forget(kv *c)
{
    assert(c->n_used == 0);
    for (int i = 0; i < KV_N_LINES; i++) {
        while (c->line[i].head != NONE) {
            uint32_t page = c->line[i].head;
            line_remove(c, page);
            forget_kv(c, page);
            page_put_free(c, page);
        }
    }
}
