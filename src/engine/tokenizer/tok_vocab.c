/* tok_vocab.c: pieces by id and ids by text; see tok_vocab.h. The table is at most half full, and a slot
 * keeps half of the hash, so that few other texts are compared. */
#include "tokenizer/tok_vocab.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "shoal.h"

static int grow_ids(vocab *v, size_t n)
{
    if (n <= v->cap) return 0;
    size_t cap = v->cap ? v->cap : 256;
    while (cap < n) cap *= 2;
    vocab_piece *p = realloc(v->pieces, cap * sizeof *p);
    if (!p) return SHOAL_ENOMEM;
    v->pieces = p;
    v->cap = cap;
    return 0;
}

static void insert(vocab *v, uint64_t hash, uint32_t id)
{
    uint64_t mixed = rng_mix(hash);
    size_t at = (size_t)mixed & (v->n_slots - 1);
    while (v->slots[at]) at = (at + 1) & (v->n_slots - 1);
    v->slots[at] = (mixed >> 32 << 32) | (id + 1);
}

static int grow_slots(vocab *v)
{
    if (v->n_used * 2 < v->n_slots) return 0;
    size_t n = v->n_slots ? v->n_slots * 2 : 512;
    uint64_t *old = v->slots;
    size_t n_old = v->n_slots;
    uint64_t *slots = calloc(n, sizeof *slots);
    if (!slots) return SHOAL_ENOMEM;
    v->slots = slots;
    v->n_slots = n;
    for (size_t i = 0; i < n_old; i++) {
        if (!old[i]) continue;
        uint32_t id = (uint32_t)old[i] - 1;
        const vocab_piece *p = &v->pieces[id];
        insert(v, vocab_hash(VOCAB_HASH_START, v->pool.data + p->off, p->len), id);
    }
    free(old);
    return 0;
}

int tok_vocab_put(vocab *v, int32_t id, const char *s, size_t len)
{
    if (id < 0 || id > TOK_MAX_ID || len > TOK_MAX_PIECE || v->pool.len + len >= UINT32_MAX)
        return SHOAL_ELIMIT;
    if (grow_ids(v, (size_t)id + 1) || grow_slots(v)) return SHOAL_ENOMEM;
    for (; v->n <= (size_t)id; v->n++) v->pieces[v->n] = (vocab_piece){UINT32_MAX, 0};
    bool known = tok_vocab_find(v, s, len) >= 0;
    uint32_t off = (uint32_t)v->pool.len;
    if (buf_append(&v->pool, s, len)) return SHOAL_ENOMEM;
    v->pieces[id] = (vocab_piece){off, (uint32_t)len};
    if (len > v->max_len) v->max_len = len;
    if (known) return 0;
    insert(v, vocab_hash(VOCAB_HASH_START, s, len), (uint32_t)id);
    v->n_used++;
    return 0;
}

void tok_vocab_done(vocab *v)
{
    buf_done(&v->pool);
    free(v->pieces);
    free(v->slots);
    memset(v, 0, sizeof *v);
}

static bool same(const vocab *v, uint32_t id, const char *prefix, size_t prefix_len, const char *s,
                 size_t len)
{
    const vocab_piece *p = &v->pieces[id];
    if (p->len != prefix_len + len) return false;
    const char *text = v->pool.data + p->off;
    return (!prefix_len || !memcmp(text, prefix, prefix_len)) && (!len || !memcmp(text + prefix_len, s, len));
}

int32_t tok_vocab_find_hashed(const vocab *v, uint64_t hash, const char *prefix, size_t prefix_len,
                              const char *s, size_t len)
{
    if (!v->n_slots) return -1;
    uint64_t mixed = rng_mix(hash);
    for (size_t at = (size_t)mixed & (v->n_slots - 1); v->slots[at]; at = (at + 1) & (v->n_slots - 1)) {
        uint64_t slot = v->slots[at];
        uint32_t id = (uint32_t)slot - 1;
        if (slot >> 32 == mixed >> 32 && same(v, id, prefix, prefix_len, s, len)) return (int32_t)id;
    }
    return -1;
}

int32_t tok_vocab_find(const vocab *v, const char *s, size_t len)
{
    return tok_vocab_find_hashed(v, vocab_hash(VOCAB_HASH_START, s, len), NULL, 0, s, len);
}

const char *tok_vocab_text(const vocab *v, int32_t id, size_t *ret_len)
{
    if (id < 0 || (size_t)id >= v->n || v->pieces[id].off == UINT32_MAX) return NULL;
    *ret_len = v->pieces[id].len;
    return v->pool.data + v->pieces[id].off;
}
