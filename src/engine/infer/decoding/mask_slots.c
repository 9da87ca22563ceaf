/* mask_slots.c: texts with gaps; see mask_slots.h. */
#include "infer/decoding/mask_slots.h"

#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

/* As people write them, and as vocabularies spell them. */
static const char *const spellings[] = {"[MASK]", "<mask>"};
enum { N_SPELLINGS = sizeof spellings / sizeof *spellings };

const char *mask_slots_token(const tokenizer *t)
{
    for (size_t i = 0; i < N_SPELLINGS; i++)
        if (tokenizer_find(t, spellings[i], strlen(spellings[i])) >= 0) return spellings[i];
    return NULL;
}

/* The first gap from s on, *ret_n its bytes; NULL: none. */
static const char *next_gap(const char *s, size_t *ret_n)
{
    const char *first = NULL;
    for (size_t i = 0; i < N_SPELLINGS; i++) {
        const char *at = strstr(s, spellings[i]);
        if (!at || (first && at >= first)) continue;
        first = at;
        *ret_n = strlen(spellings[i]);
    }
    return first;
}

/* text, with each gap as the model spells it. */
static int rewrite(mask_slots *g, const char *text, const char *mask, shoal_err *err)
{
    size_t n, n_mask = strlen(mask);
    const char *at;
    for (; (at = next_gap(text, &n)); text = at + n) {
        if (g->n == GAPS_MAX)
            return err_set(err, SHOAL_ELIMIT, "the text has over %d gaps: ask in parts", GAPS_MAX);
        buf_append(&g->text, text, (size_t)(at - text));
        g->begin[g->n] = (uint32_t)g->text.len;
        buf_append(&g->text, mask, n_mask);
        g->end[g->n++] = (uint32_t)g->text.len;
    }
    buf_puts(&g->text, text);
    if (g->text.failed) return err_nomem(err);
    return g->n ? 0
                : err_set(err, SHOAL_EINVALID, "the text has no gap: write %s where a word is missing", mask);
}

/* Which tokens the gaps became. A mask inside a word may be no mask to a tokenizer that wants whole words. */
static int find_places(mask_slots *g, int32_t mask, const char *spelt, shoal_err *err)
{
    size_t n = 0;
    for (size_t i = 0; i < g->enc.n; i++) {
        if (g->enc.ids[i] != mask || g->enc.special[i]) continue;
        if (n < g->n) g->at[n] = (uint32_t)i;
        n++;
    }
    if (n == g->n) return 0;
    return err_set(err, SHOAL_EINVALID, "%zu gaps became %zu masks: put a space on both sides of each %s",
                   g->n, n, spelt);
}

static int encode(mask_slots *g, const tokenizer *t, const char *mask, shoal_err *err)
{
    uint8_t *marks = malloc(g->text.len);
    if (!marks) return err_nomem(err);
    memset(marks, 1, g->text.len);
    for (size_t i = 0; i < g->n; i++) memset(marks + g->begin[i], 0, g->end[i] - g->begin[i]);
    int rc = tokenizer_encode_marked(t, g->text.data, g->text.len, marks, &g->enc, err);
    free(marks);
    return rc ? rc : find_places(g, tokenizer_find(t, mask, strlen(mask)), mask, err);
}

int mask_slots_encode(mask_slots *ret, const tokenizer *t, const char *text, shoal_err *err)
{
    const char *mask = mask_slots_token(t);
    if (!mask) return err_set(err, SHOAL_EUNSUPPORTED, "the vocabulary has no mask token ([MASK] or <mask>)");
    mask_slots g = {0};
    int rc = rewrite(&g, text, mask, err);
    if (rc == 0) rc = encode(&g, t, mask, err);
    if (rc == 0)
        *ret = g;
    else
        mask_slots_done(&g);
    return rc;
}

void mask_slots_done(mask_slots *g)
{
    buf_done(&g->text);
    encoding_done(&g->enc);
    *g = (mask_slots){0};
}

/* Insertion: k is small, and a word that is too unlikely costs one comparison. */
void mask_slots_best(const float *scores, size_t n_vocab, size_t k, mask_guess *ret)
{
    size_t n = 0;
    for (size_t i = 0; i < n_vocab; i++) {
        if (k == 0 || (n == k && scores[i] <= ret[n - 1].score)) continue;
        size_t at = n < k ? n++ : n - 1;
        for (; at > 0 && ret[at - 1].score < scores[i]; at--) ret[at] = ret[at - 1];
        ret[at] = (mask_guess){(int32_t)i, scores[i]};
    }
}

/* A token is any bytes: what is no UTF-8 by itself becomes U+FFFD. */
static int mask_slots_put_bytes(buf *out, const char *s, size_t n)
{
    for (size_t i = 0, len; i < n; i += len) {
        uint32_t cp;
        len = utf8_decode(s + i, n - i, &cp);
        if (len > 0)
            buf_append(out, s + i, len);
        else
            buf_puts(out, "\xEF\xBF\xBD"), len = 1;
    }
    return out->failed ? SHOAL_ENOMEM : 0;
}

int mask_slots_word(const tokenizer *t, int32_t id, buf *out)
{
    size_t n = 0;
    bool special;
    const char *s = tokenizer_bytes(t, id, &n, &special);
    size_t skip = s && n > 1 && *s == ' ';
    return s ? mask_slots_put_bytes(out, s + skip, n - skip) : 0;
}

/* "##ing" goes on with the word before. */
static bool goes_on(const tokenizer *t, int32_t id)
{
    size_t n = 0;
    const char *piece = tokenizer_piece(t, id, &n);
    return piece && n > 2 && memcmp(piece, "##", 2) == 0;
}

int mask_slots_write(const mask_slots *g, const tokenizer *t, size_t gap, int32_t id, buf *out)
{
    size_t n = 0, before = g->begin[gap];
    bool special;
    const char *s = tokenizer_bytes(t, id, &n, &special);
    bool glued = goes_on(t, id);
    if (glued)
        while (before > 0 && g->text.data[before - 1] == ' ') before--;
    bool spaced = before == 0 || g->text.data[before - 1] == ' ';
    buf_append(out, g->text.data, before);
    size_t skip = s && n > 1 && *s == ' ' && spaced;
    if (s) mask_slots_put_bytes(out, s + skip, n - skip);
    buf_append(out, g->text.data + g->end[gap], g->text.len - g->end[gap]);
    return out->failed ? SHOAL_ENOMEM : 0;
}
