/* kv.h: paged key/value cache of one model, with reuse of equal prefixes.
 *
 * A page holds KV_PAGE_TOKENS positions of every layer, as F32 or F16:
 *
 *     page: [layer][k: [kv head][head_dim][position], v: [kv head][position][head_dim]]
 *
 * so that one instruction scores all keys of a page, and one adds up a value; or as int8 with a scale for
 * each head and position, in the tiles of attn_scores_q8 (compute.h). Sequences own lists of pages. A page
 * that is full is registered under (the page before it, its tokens); a later sequence that starts with the
 * same tokens adopts the page instead of computing it; where only the first tokens of a page are the same, it
 * takes a copy of these. The open page of a conversation that rests is found so, too, and gone on with in
 * place. The bits are the same by construction: keys and values of a position depend on the
 * tokens up to it alone (the numerics contract), and on what the sequence's salt names: a source that its
 * decoder reads, an adapter. Sequences of different salts share nothing. Pages nobody references stay until
 * room is needed, then the least recently used go first; but those of conversations, whose next turn will
 * want them (kv_seq.keeps), go after all others. So that they do not take the cache from everybody, at most
 * half of it is held so: over that, the conversation that rests the longest loses its pages' advantage, not
 * the pages.
 *
 * Some models carry a state from token to token, too (seq_state.h). A page that is full, or in which a
 * conversation rests, has a snapshot of the state behind its last position, and such a sequence is adopted
 * up to a page that has one, in whole pages. A step leaves states behind every position at which it may end.
 *
 * The ceiling is hard: memory is reserved once and touched page by page. Engine thread only, except
 * kv_k and kv_v, which team members call between reserve and commit. */
#ifndef NET_ATTENTION_KV_H
#define NET_ATTENTION_KV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "compute/compute.h"
#include "kinds/model_kind.h"
#include "net/attention/kv_type.h"
#include "net/seq_state.h"

#define KV_PAGE_TOKENS 16
#define KV_HEAD_MAX    1024 /* numbers of a head that are kept as int8 */

typedef struct kv_shape {
    size_t n_layer, n_head_kv, head_dim;
    dtype type;         /* DT_F32, DT_F16, or DT_Q8_0: int8 */
    size_t state_bytes; /* of a sequence's state in these layers */
    bool stateful;      /* layers of the model, these or others, have a state: not as int8 */
} kv_shape;

/* Have the shape's numbers kept as t; SHOAL_EUNSUPPORTED: its layers or heads do not allow it. */
int kv_shape_keep_as(kv_shape *s, kv_type t, shoal_err *err);

/* Pages that wait to be wanted again; the head, unused for longest, goes first. */
typedef struct kv_line {
    uint32_t head, tail, n;
} kv_line;
enum { KV_LOOSE, KV_KEPT, KV_N_LINES }; /* first those of nobody in particular, then conversations' */

typedef struct kv {
    kv_shape shape;
    size_t page_bytes, half_bytes, head_bytes; /* a page; the keys (or values) of one layer, one head in it */
    uint32_t n_pages;                          /* the ceiling */
    uint32_t n_used;                           /* referenced by a sequence */
    uint8_t *memory;
    size_t memory_bytes;
    seq_states states; /* of a stateful shape: one for each page and KV_SPARE_STATES more */
    struct kv_page *pages;
    uint32_t *buckets; /* of registered pages that are full */
    uint32_t *alike;   /* the same by the page in front and the first token: [n_buckets], too */
    uint32_t n_buckets;
    uint32_t n_fresh;           /* pages never touched: the last n_fresh ones */
    uint32_t free_head, n_free; /* touched, holding nothing */
    kv_line line[KV_N_LINES];   /* registered, unreferenced */
    uint64_t last_uid;
    /* Somebody who mirrors the pages elsewhere: page `to` has become a copy of `from`. NULL: nobody. */
    void (*copied)(void *user, uint32_t from, uint32_t to);
    void *copied_user;
} kv;

/* One sequence's pages. Zero it, then kv_seq_init. */
typedef struct kv_seq {
    uint32_t *pages;
    size_t n_pages, cap_pages;
    size_t n_tokens;     /* positions that are computed */
    size_t n_registered; /* leading pages that are registered (all full ones) */
    bool keeps;          /* a conversation: more of it may come, and will want the pages */
    uint64_t salt;       /* what else their content depends on; 0: nothing */
    uint64_t chain;      /* uid of the last registered page, or the salt's name */
    seq_state state;     /* behind its n_tokens, as far as the shape is stateful */
    seq_mark *marks;     /* [n_marks] of its step, by position: where it leaves states; behind `pages` */
    size_t n_marks;
} kv_seq;

/* Guessed tokens of one step; and states that a cache has beside one for each page, for steps: before and
 * behind a step those of each lane of a beam search (BEAM_MAX) are different ones. */
enum { KV_GUESSES_MAX = 32, KV_SPARE_STATES = 32 };

/* Bytes of a page and its snapshot; SHOAL_EINVALID for a shape that is absurd. */
int kv_page_bytes(const kv_shape *shape, size_t *ret, shoal_err *err);
/* The max_bytes that kv_new makes n_pages of. */
int kv_bytes_for(const kv_shape *shape, size_t n_pages, size_t *ret, shoal_err *err);
/* Pages that kv_new makes of max_bytes; 0: not even one. */
int kv_pages_in(const kv_shape *shape, size_t max_bytes, size_t *ret, shoal_err *err);
/* A ceiling for those who name none: room for one sequence of n_tokens (KV_DEFAULT_CTX where nobody asks for more), but
 * at most half of what this machine has left, and no less than KV_DEFAULT_BYTES. Pages are taken from the system as
 * sequences need them. SHOAL_EINVALID as above. */
enum { KV_DEFAULT_BYTES = MODEL_KV_LEAST_BYTES, KV_DEFAULT_CTX = 8192 };
/* The n_tokens of an engine: `asked` (0: nobody did), or as much of n_ctx as is taken unasked. */
size_t kv_default_tokens(size_t asked, size_t n_ctx);
int kv_default_bytes(const kv_shape *shape, size_t n_tokens, size_t *ret, shoal_err *err);
/* As many pages as fit in max_bytes; SHOAL_ELIMIT when not even one does. */
int kv_new(kv **ret, const kv_shape *shape, size_t max_bytes, shoal_err *err);
void kv_free(kv *c);
/* Positions that one sequence can have when it is alone. */
size_t kv_capacity_tokens(const kv *c);
/* Pages that kv_reserve could still hand out. */
size_t kv_available(const kv *c);

/* salt: a digest of what else than tokens the pages' content depends on, 0 for nothing. SHOAL_ENOMEM. */
int kv_seq_init(kv_seq *s, size_t max_tokens, uint64_t salt);
void kv_seq_salt(kv_seq *s, uint64_t salt); /* of an empty one */
void kv_seq_done(kv *c, kv_seq *s);         /* releases; a zeroed one is fine */

/* For an empty sequence: take over cached pages that hold a prefix of ids[0..n), and the open one, or a copy
 * of another, that holds some more. Returns how many positions are computed now. */
size_t kv_adopt(kv *c, kv_seq *s, const int32_t *ids, size_t n);
/* Make room for n_tokens more. On SHOAL_EFULL nothing has changed: release something and retry. */
int kv_reserve(kv *c, kv_seq *s, size_t n_tokens);
/* The same for a step whose last n_guessed tokens, KV_GUESSES_MAX at most, may turn out to be others. */
int kv_reserve_guessed(kv *c, kv_seq *s, size_t n_tokens, size_t n_guessed);
/* n_tokens more were computed; ids are the sequence's tokens from its start, so that full pages can be
 * registered for others. Of what was reserved with guesses: all but these, then guess by guess. */
void kv_commit(kv *c, kv_seq *s, const int32_t *ids, size_t n_tokens);
/* Make `to`, which is empty, a copy of `from` that goes its own way: full pages are shared, an open one is
 * copied. SHOAL_EFULL: nothing has changed. */
int kv_fork(kv *c, kv_seq *to, const kv_seq *from);
/* Give all pages and states back; registered ones, and a conversation's open one, stay in the cache while there is room.
 */
void kv_release(kv *c, kv_seq *s);
/* No page that is registered is known any more. No sequence holds any. */
void kv_forget(kv *c);

/* A tile of int8, or keys [head_dim][KV_PAGE_TOKENS] resp. values [KV_PAGE_TOKENS][head_dim] of one head of
 * one layer in page number `page` of the sequence. */
static inline void *kv_k(const kv *c, const kv_seq *s, size_t layer, size_t head, size_t page)
{
    return c->memory + s->pages[page] * c->page_bytes + layer * 2 * c->half_bytes + head * c->head_bytes;
}
static inline void *kv_v(const kv *c, const kv_seq *s, size_t layer, size_t head, size_t page)
{
    return (uint8_t *)kv_k(c, s, layer, head, page) + c->half_bytes;
}

#endif
