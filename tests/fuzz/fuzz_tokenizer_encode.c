/* Any bytes through every small tokenizer of tests/data: spans lie within the text, in order, at whole
 * characters; what is decoded is UTF-8; streaming gives what decoding at once gives. The first byte
 * chooses flags and tokenizer, the second where a pair is split off. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/utf8.h"
#include "memory.h"
#include "tokenizer/tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct kind {
    const char *name;
    bool exact; /* byte-level and not normalised: decode(encode(x)) is x, and spans come in order */
} kind;

static const kind KINDS[] = {
    {"gpt2", true},          {"llama3", true},      {"qwen2", false},  {"roberta", false},
    {"bert_uncased", false}, {"bert_cased", false}, {"llama2", false}, {"t5", false}};
enum { N_KINDS = sizeof KINDS / sizeof *KINDS };

static tokenizer *load(const char *name)
{
    char path[512];
    snprintf(path, sizeof path, SHOAL_SOURCE_DIR "/tests/data/tokenizers/%s/tokenizer.json", name);
    buf json = {0};
    tokenizer *t = NULL;
    shoal_err err = {0};
    int rc = file_read(&json, path, 1 << 20, &err);
    if (rc == 0) rc = tokenizer_from_json(&t, json.data, json.len, NULL, 0, path, &err);
    if (rc && !memory_was_refused()) fprintf(stderr, "%s\n", err.message);
    holds(rc == 0);
    buf_done(&json);
    return t;
}

static void require(bool ok, const char *what)
{
    if (ok) return;
    fprintf(stderr, "%s\n", what);
    abort();
}

static bool lies_in(const token_span *s, const char *text, size_t n)
{
    return s->begin <= s->end && s->end <= n && utf8_valid(text + s->begin, s->end - s->begin, NULL) &&
           s->cp_begin == utf8_count(text, s->begin) && s->cp_end == utf8_count(text, s->end);
}

/* Not every template tells by type which text of a pair a token is from. */
static void check_spans(const kind *k, const encoding *e, const char *text, size_t n, const char *pair,
                        size_t n_pair)
{
    uint32_t last = 0;
    for (size_t i = 0; i < e->n; i++) {
        const token_span *s = &e->spans[i];
        if (e->special[i]) {
            require(s->begin == 0 && s->end == 0, "a special token has a span");
            continue;
        }
        require(lies_in(s, text, n) || (pair && lies_in(s, pair, n_pair)),
                "a span leaves the text, cuts a character or miscounts them");
        require(!k->exact || pair || s->begin >= last, "spans are out of order");
        last = s->begin;
    }
}

static void check_text(const tokenizer *t, const encoding *e, bool with_special, const char *exact, size_t n)
{
    buf whole = {0}, streamed = {0};
    detok d;
    bool whole_is = holds(tokenizer_decode(t, e->ids, e->n, with_special, &whole) == 0), all = true;
    require(utf8_valid(whole.data, whole.len, NULL), "decoded text is not UTF-8");
    if (exact && whole_is)
        require(whole.len == n && (n == 0 || memcmp(whole.data, exact, n) == 0),
                "the text does not come back");
    detok_init(&d, t, with_special);
    for (size_t i = 0; i < e->n; i++) {
        all &= holds(detok_push(&d, e->ids[i], &streamed) == 0);
        require(utf8_valid(streamed.data, streamed.len, NULL), "streamed text is cut in a character");
    }
    all &= holds(detok_end(&d, &streamed) == 0);
    if (all && whole_is)
        require(streamed.len == whole.len &&
                    (whole.len == 0 || memcmp(whole.data, streamed.data, whole.len) == 0),
                "streaming changes the text");
    buf_done(&whole);
    buf_done(&streamed);
}

static void encode(const kind *k, const tokenizer *t, unsigned flags, const char *text, size_t n,
                   const char *pair, size_t n_pair)
{
    encoding e = {0};
    int rc = tokenizer_encode(t, text, n, pair, n_pair, flags, 0, &e, NULL);
    bool valid = utf8_valid(text, n, NULL) && (!pair || utf8_valid(pair, n_pair, NULL));
    require(rc == (valid ? 0 : SHOAL_EINVALID) || (rc == SHOAL_ENOMEM && memory_was_refused()),
            "invalid UTF-8 taken, or valid refused");
    if (rc == 0) {
        check_spans(k, &e, text, n, pair, n_pair);
        for (size_t i = 0; i < e.n; i++)
            require((size_t)e.ids[i] < tokenizer_vocab_size(t), "an id leaves the vocabulary");
        check_text(t, &e, true, k->exact && !pair && !(flags & TOK_ADD_SPECIAL) ? text : NULL, n);
        check_text(t, &e, false, NULL, 0);
        encoding_truncate(&e, 7);
        require(e.n <= 7 || (flags & TOK_ADD_SPECIAL), "not cut");
    }
    encoding_done(&e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static tokenizer *loaded[N_KINDS]; /* once; reachable to the end, so no leak */
    if (size < 2) return 0;
    const kind *k = &KINDS[data[0] % N_KINDS];
    tokenizer **t = &loaded[k - KINDS];
    if (!*t) *t = load(k->name);
    if (!*t) return 0;
    const char *text = (const char *)data + 2;
    size_t n = size - 2, n_pair = (data[0] & 0x80) && data[1] <= n ? data[1] : 0;
    encode(k, *t, data[0] >> 3 & (TOK_ADD_SPECIAL | TOK_PARSE_SPECIAL), text, n - n_pair,
           n_pair ? text + n - n_pair : NULL, n_pair);
    return 0;
}
