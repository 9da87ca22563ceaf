/* tok_encode.c: text -> ids and spans. */
#include <stdlib.h>
#include <string.h>

#include "base/progress.h"
#include "base/utf8.h"
#include "tokenizer/tok_internal.h"

enum { MAX_TEXT_BYTES = 64 << 20 };

/* One call's state. */
typedef struct job {
    const tokenizer *t;
    unsigned flags;
    size_t max_tokens;
    shoal_err *err;
    const uint8_t *marks; /* of the original's bytes: 1 may be no control token's; NULL: all may */
    encoding e;
    tok_match match;
    seg_work seg;
    word_list words;
    /* of the text in hand */
    const char *text;
    size_t len, first; /* its first token's place in e */
    uint8_t type;
    int32_t word;
    size_t at_byte, at_cp; /* a place whose code point is known; spans move it */
    token_span last;       /* the span before: bytes of an unknown stretch all have one */
} job;

void encoding_done(encoding *e)
{
    free(e->ids);
    free(e->spans);
    free(e->type_ids);
    free(e->special);
    free(e->word);
    memset(e, 0, sizeof *e);
}

static bool tok_encode_grow(void **p, size_t n, size_t size)
{
    void *q = realloc(*p, n * size);
    if (q) *p = q;
    return q != NULL;
}

static int tok_encode_push(job *j, int32_t id, token_span span, bool special)
{
    encoding *e = &j->e;
    if (j->max_tokens && e->n >= j->max_tokens)
        return err_set(j->err, SHOAL_ELIMIT, "the text is longer than %zu tokens", j->max_tokens);
    if (e->n == e->cap) {
        size_t cap = e->cap ? e->cap * 2 : 32;
        if (!tok_encode_grow((void **)&e->ids, cap, sizeof *e->ids) ||
            !tok_encode_grow((void **)&e->spans, cap, sizeof *e->spans) ||
            !tok_encode_grow((void **)&e->type_ids, cap, 1) ||
            !tok_encode_grow((void **)&e->special, cap, 1) ||
            !tok_encode_grow((void **)&e->word, cap, sizeof *e->word))
            return err_nomem(j->err);
        e->cap = cap;
    }
    e->ids[e->n] = id;
    e->spans[e->n] = span;
    e->type_ids[e->n] = j->type;
    e->special[e->n] = special;
    e->word[e->n++] = special ? -1 : j->word;
    return 0;
}

/* Spans come nearly in order, so walking from the last place is cheaper than an index. */
static uint32_t code_point_of(job *j, size_t byte)
{
    j->e.n_steps += byte > j->at_byte ? byte - j->at_byte : j->at_byte - byte;
    while (j->at_byte < byte) j->at_cp += ((uint8_t)j->text[j->at_byte++] & 0xC0) != 0x80;
    while (j->at_byte > byte) j->at_cp -= ((uint8_t)j->text[--j->at_byte] & 0xC0) != 0x80;
    return (uint32_t)j->at_cp;
}

static size_t next_char(const job *j, size_t at)
{
    do at++;
    while (at < j->len && ((uint8_t)j->text[at] & 0xC0) == 0x80);
    return at;
}

static size_t last_char(const job *j, size_t at)
{
    do at--;
    while (at > 0 && ((uint8_t)j->text[at] & 0xC0) == 0x80);
    return at;
}

/* The reference's trim_offsets: spaces at a token's ends do not belong to its span. An added token's are
 * those of the text [b, e) that it took, any other's those that it stands for. */
static text_range trim(const job *j, int32_t id, const tok_text *t, size_t b, size_t e, bool added,
                       text_range r)
{
    size_t n = e - b, lead = 0, tail = 0;
    bool special;
    const char *s = added ? t->s + b : tokenizer_bytes(j->t, id, &n, &special);
    const tok_text text = {.s = s, .len = s ? n : 0};
    for (size_t at = 0; at < text.len && tok_cp_is_space(tok_text_next(&text, &at)); lead++)
        if (!added && s[at - 1] != ' ') break;
    while (tail < text.len && s[n - 1 - tail] == ' ') tail++;
    if (lead && j->t->trim_prefix && (j->e.n == j->first || r.begin == 0)) lead--;
    for (; lead && r.begin < r.end; lead--) r.begin = (uint32_t)next_char(j, r.begin);
    for (; tail && r.end > r.begin; tail--) r.end = (uint32_t)last_char(j, r.end);
    return r;
}

static int put_range(job *j, int32_t id, const tok_text *t, size_t b, size_t e, bool added)
{
    text_range r = tok_text_origin(t, b, e);
    if (j->t->trim_offsets) r = trim(j, id, t, b, e, added, r);
    /* To walk from end to beginning for each byte token of a long stretch would be quadratic. */
    token_span s = {.begin = r.begin, .end = r.end};
    if (s.begin == j->last.begin && s.end == j->last.end) return tok_encode_push(j, id, j->last, false);
    s.cp_begin = code_point_of(j, r.begin);
    s.cp_end = code_point_of(j, r.end);
    j->last = s;
    return tok_encode_push(j, id, s, false);
}

static int put_token(job *j, int32_t id, const tok_text *t, size_t b, size_t e)
{
    return put_range(j, id, t, b, e, false);
}

/* ---- words ---- */

/* A control token by its kind, or by its looks: "<tool_call>" is often no "special" token. */
static bool is_markup(const added_token *a)
{
    char first = a->text[0], last = a->text[a->len - 1];
    return a->special || (first == '<' && last == '>') || (first == '[' && last == ']');
}

/* Bytes [b, e) of t may not be a control token: the request brought some of them. */
static bool is_barred(const job *j, const tok_text *t, size_t b, size_t e)
{
    if (!j->marks) return false;
    text_range r = tok_text_origin(t, b, e);
    return r.begin < r.end && memchr(j->marks + r.begin, 1, r.end - r.begin);
}

/* Segmenting may hit on a control token's text by itself (a Unigram vocabulary holds "</s>"): then the
 * characters are put one by one. The unknown token is control, too, and stands for any text. */
static int put_apart(job *j, const tok_text *t, size_t b, size_t e)
{
    int rc = 0;
    for (size_t at = b, next = b; rc == 0 && at < e; at = next) {
        tok_text_next(t, &next);
        rc = tok_seg_word(&j->t->seg, t->s + at, next - at, &j->seg) ? err_nomem(j->err) : 0;
        for (size_t i = 0; rc == 0 && i < j->seg.n_out; i++)
            rc = put_token(j, j->seg.out[i].id, t, at + j->seg.out[i].begin, at + j->seg.out[i].end);
    }
    return rc;
}

static bool is_control(const tokenizer *t, int32_t id)
{
    return id != t->seg.unk && t->special[id];
}

static int tok_encode_put_word(job *j, const tok_text *t, word_span w)
{
    int rc = tok_seg_word(&j->t->seg, t->s + w.begin, w.end - w.begin, &j->seg);
    if (rc) return err_nomem(j->err);
    for (size_t i = 0; j->marks && i < j->seg.n_out; i++) {
        const seg_token *k = &j->seg.out[i];
        if (!is_control(j->t, k->id) || !is_barred(j, t, w.begin + k->begin, w.begin + k->end)) continue;
        j->word++;
        return put_apart(j, t, w.begin, w.end);
    }
    for (size_t i = 0; rc == 0 && i < j->seg.n_out; i++) {
        const seg_token *k = &j->seg.out[i];
        rc = put_token(j, k->id, t, w.begin + k->begin, w.begin + k->end);
        progress_add(64);
    }
    j->word++;
    return rc;
}

static tok_text slice(const tok_text *t, size_t b, size_t e)
{
    return (tok_text){.s = t->s + b, .len = e - b, .base = t->base + b, .from = t->from ? t->from + b : NULL};
}

static int put_words(job *j, const tok_text *t, size_t b, size_t e)
{
    tok_text part = slice(t, b, e);
    int rc = tok_pre_run(j->t->pre, j->t->n_pre, &part, 0, part.len, &j->words, &j->match, j->err);
    for (size_t i = 0; rc == 0 && i < j->words.n; i++) rc = tok_encode_put_word(j, &part, j->words.at[i]);
    tok_text_done(&part);
    return rc;
}

/* ---- added tokens ---- */

/* First place in sorted[lo..hi) whose byte k is at least c (texts are longer than k from lo on). */
static size_t narrow(const added_set *set, size_t lo, size_t hi, size_t k, unsigned c)
{
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if ((uint8_t)set->sorted[mid]->text[k] < c)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static bool ends_word(const tok_text *t, size_t b, size_t e)
{
    size_t last = e;
    if (e == b) return false;
    do last--;
    while (last > b && ((uint8_t)t->s[last] & 0xC0) == 0x80);
    return tok_cp_is_word(tok_text_next(t, &last));
}

static bool starts_word(const tok_text *t, size_t b, size_t e)
{
    return b < e && tok_cp_is_word(tok_text_next(t, &b));
}

/* The longest added token at byte `at` of t[..end), NULL for none. */
static const added_token *added_at(const job *j, const added_set *set, const tok_text *t, size_t at,
                                   size_t end)
{
    const added_token *best = NULL;
    size_t lo = 0, hi = set->n;
    for (size_t k = 0; at + k < end && lo < hi; k++) {
        unsigned c = (uint8_t)t->s[at + k];
        while (lo < hi && set->sorted[lo]->len <= k) lo++;
        lo = narrow(set, lo, hi, k, c);
        hi = narrow(set, lo, hi, k, c + 1);
        if (lo == hi || set->sorted[lo]->len != k + 1) continue;
        const added_token *a = set->sorted[lo];
        if (a->special && !(j->flags & TOK_PARSE_SPECIAL)) continue;
        if (!is_markup(a) || !is_barred(j, t, at, at + k + 1)) best = a;
    }
    return best;
}

static const added_token *find_added(const job *j, const added_set *set, const tok_text *t, size_t from,
                                     size_t end, size_t *ret_at)
{
    if (set->n == 0) return NULL;
    for (size_t at = from; at < end; at++) {
        progress_add(8);
        if (!set->starts[(uint8_t)t->s[at]]) continue;
        const added_token *a = added_at(j, set, t, at, end);
        if (!a) continue;
        *ret_at = at;
        return a;
    }
    return NULL;
}

typedef int gap_fn(job *j, const tok_text *t, size_t b, size_t e);

/* Added tokens of the set become tokens; what lies between goes to `gap`. */
static int split_added(job *j, const tok_text *t, const added_set *set, gap_fn *gap)
{
    size_t done = 0, from = 0, at;
    const added_token *a;
    int rc = 0;
    while (rc == 0 && (a = find_added(j, set, t, from, t->len, &at))) {
        size_t b = at, e = from = at + a->len; /* the next may begin with what this one strips */
        if (a->single_word && (ends_word(t, 0, b) || starts_word(t, e, t->len))) continue;
        if (a->lstrip && b < done) b = done;
        for (size_t k; a->lstrip && b > done; b = k) {
            k = b;
            do k--;
            while (k > done && ((uint8_t)t->s[k] & 0xC0) == 0x80);
            size_t next = k;
            if (!tok_cp_is_space(tok_text_next(t, &next))) break;
        }
        for (size_t next = e; a->rstrip && e < t->len && tok_cp_is_space(tok_text_next(t, &next)); e = next)
            continue;
        if (b > done) rc = gap(j, t, done, b);
        if (rc == 0) rc = put_range(j, a->id, t, b, e, true);
        j->word++;
        done = e;
    }
    if (rc == 0 && done < t->len) rc = gap(j, t, done, t->len);
    return rc;
}

static int put_raw(job *j, const tok_text *t, size_t b, size_t e)
{
    tok_text part = slice(t, b, e);
    int rc = tok_norm_run(j->t->norm, j->t->n_norm, &part, &j->match, j->err);
    if (rc == 0) rc = split_added(j, &part, &j->t->normalized, put_words);
    tok_text_done(&part);
    return rc;
}

/* ---- whole texts and templates ---- */

static int tok_encode_put_text(job *j, const char *text, size_t len, uint8_t type)
{
    j->text = text;
    j->len = len;
    j->first = j->e.n;
    j->type = type;
    j->word = 0;
    j->at_byte = j->at_cp = 0;
    j->last = (token_span){0};
    return split_added(j, &(tok_text){.s = text, .len = len}, &j->t->raw, put_raw);
}

static int check_text(const char *s, size_t len, const char *which, shoal_err *err)
{
    size_t bad;
    if (len > MAX_TEXT_BYTES)
        return err_set(err, SHOAL_ELIMIT, "the %s is longer than %d bytes", which, MAX_TEXT_BYTES);
    if (len == 0 || utf8_valid(s, len, &bad)) return 0;
    return err_set(err, SHOAL_EINVALID, "the %s is not UTF-8 at byte %zu", which, bad);
}

/* The end of a call: what it used goes, and *ret is replaced when all went well. */
static int tok_encode_finish(job *j, int rc, encoding *ret)
{
    tok_seg_work_done(&j->seg);
    tok_words_done(&j->words);
    tok_match_done(&j->match);
    if (rc) {
        encoding_done(&j->e);
        return rc;
    }
    encoding_done(ret);
    *ret = j->e;
    return 0;
}

/* The template's own tokens, and the texts where it has them. */
static int put_template(job *j, const char *text, size_t len, const char *pair, size_t pair_len)
{
    const tokenizer *t = j->t;
    const tpl_item *items = pair ? t->pair : t->single;
    size_t n = pair ? t->n_pair : t->n_single;
    int rc = check_text(text, len, "text", j->err);
    if (rc == 0 && pair) rc = check_text(pair, pair_len, "second text", j->err);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        if (items[i].kind == TPL_A) {
            rc = tok_encode_put_text(j, text ? text : "", len, items[i].type);
        } else if (items[i].kind == TPL_B) {
            rc = tok_encode_put_text(j, pair, pair_len, items[i].type);
        } else if (j->flags & TOK_ADD_SPECIAL) {
            j->type = items[i].type;
            rc = tok_encode_push(j, items[i].id, (token_span){0}, true);
        }
    }
    return rc;
}

int tokenizer_encode(const tokenizer *t, const char *text, size_t len, const char *pair, size_t pair_len,
                     unsigned flags, size_t max_tokens, encoding *ret, shoal_err *err)
{
    job j = {.t = t, .flags = flags, .max_tokens = max_tokens, .err = err};
    return tok_encode_finish(&j, put_template(&j, text, len, pair, pair_len), ret);
}

int tokenizer_encode_marked(const tokenizer *t, const char *text, size_t len, const uint8_t *marks,
                            encoding *ret, shoal_err *err)
{
    job j = {.t = t, .flags = TOK_ADD_SPECIAL | TOK_PARSE_SPECIAL, .err = err, .marks = marks};
    return tok_encode_finish(&j, put_template(&j, text, len, NULL, 0), ret);
}

int tokenizer_encode_prompt(const tokenizer *t, const char *text, size_t len, const uint8_t *marks,
                            encoding *ret, shoal_err *err)
{
    job j = {.t = t, .flags = TOK_PARSE_SPECIAL, .err = err, .marks = marks};
    int rc = check_text(text, len, "prompt", err);
    if (rc == 0) rc = tok_encode_put_text(&j, text ? text : "", len, 0);
    return tok_encode_finish(&j, rc, ret);
}

/* ---- whole prompts ---- */

/* The text spells out the begin-of-text token that was put before it: one goes. */
static void drop_second_bos(const tokenizer *t, encoding *e)
{
    if (e->n < 2 || t->bos < 0 || e->ids[0] != t->bos || e->ids[1] != t->bos || !e->special[0] ||
        e->special[1])
        return;
    e->n--;
    memmove(e->ids, e->ids + 1, e->n * sizeof *e->ids);
    memmove(e->spans, e->spans + 1, e->n * sizeof *e->spans);
    memmove(e->type_ids, e->type_ids + 1, e->n);
    memmove(e->special, e->special + 1, e->n);
    memmove(e->word, e->word + 1, e->n * sizeof *e->word);
}

int tokenizer_encode_chat(const tokenizer *t, const char *text, size_t len, const uint8_t *marks,
                          encoding *ret, shoal_err *err)
{
    job j = {.t = t, .flags = TOK_PARSE_SPECIAL, .err = err, .marks = marks};
    int rc = check_text(text, len, "prompt", err);
    if (rc == 0 && t->begins_chats) rc = tok_encode_push(&j, t->bos, (token_span){0}, true);
    if (rc == 0) rc = tok_encode_put_text(&j, text ? text : "", len, 0);
    if (rc == 0) drop_second_bos(t, &j.e);
    return tok_encode_finish(&j, rc, ret);
}

int tokenizer_encode_completion(const tokenizer *t, const char *text, size_t len, encoding *ret,
                                shoal_err *err)
{
    int rc = tokenizer_encode(t, text, len, NULL, 0, TOK_PARSE_SPECIAL | TOK_ADD_SPECIAL, 0, ret, err);
    if (rc == 0) drop_second_bos(t, ret);
    return rc;
}

/* ---- truncation ---- */

/* Where the second text's tokens begin, n when there is no second text: its words count from 0
 * again, its type differs, or a special token stands in between. */
static size_t second_text(const encoding *e)
{
    size_t last = e->n;
    for (size_t i = 0; i < e->n; i++) {
        if (e->special[i]) continue;
        if (last < e->n &&
            (i > last + 1 || e->type_ids[i] != e->type_ids[last] || e->word[i] < e->word[last]))
            return i;
        last = i;
    }
    return e->n;
}

int encoding_of_ids(encoding *ret, const int32_t *ids, size_t n)
{
    encoding e = {.n = n,
                  .cap = n,
                  .ids = calloc(n + 1, sizeof *e.ids),
                  .spans = calloc(n + 1, sizeof *e.spans),
                  .type_ids = calloc(n + 1, sizeof *e.type_ids),
                  .special = calloc(n + 1, sizeof *e.special),
                  .word = calloc(n + 1, sizeof *e.word)};
    if (!e.ids || !e.spans || !e.type_ids || !e.special || !e.word) {
        encoding_done(&e);
        return SHOAL_ENOMEM;
    }
    memcpy(e.ids, ids, n * sizeof *e.ids);
    encoding_done(ret);
    *ret = e;
    return 0;
}

bool encoding_truncate(encoding *e, size_t max_tokens)
{
    if (e->n <= max_tokens) return false;
    size_t second = second_text(e), n_a = 0, n_b = 0;
    for (size_t i = 0; i < e->n; i++) {
        if (e->special[i]) continue;
        if (i < second)
            n_a++;
        else
            n_b++;
    }
    size_t n_special = e->n - n_a - n_b;
    size_t room = max_tokens > n_special ? max_tokens - n_special : 0;
    while (n_a + n_b > room) {
        size_t over = n_a + n_b - room;
        size_t *longer = n_a >= n_b ? &n_a : &n_b;
        size_t gap = n_a >= n_b ? n_a - n_b : n_b - n_a;
        size_t cut = gap && n_b ? gap : 1;
        if (!n_b) cut = over;
        *longer -= cut < over ? cut : over;
    }
    size_t kept = 0, used_a = 0, used_b = 0;
    for (size_t i = 0; i < e->n && kept < max_tokens; i++) {
        if (!e->special[i] && (i < second ? used_a++ >= n_a : used_b++ >= n_b)) continue;
        e->ids[kept] = e->ids[i];
        e->spans[kept] = e->spans[i];
        e->type_ids[kept] = e->type_ids[i];
        e->special[kept] = e->special[i];
        e->word[kept++] = e->word[i];
    }
    e->n = kept;
    return true;
}
