/* Replies of a form end within the tokens that they may have, though the model would write on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "json/json.h"
#include "grammar/grammar.h"

#define TOKENIZER SHOAL_SOURCE_DIR "/tests/data/tokenizers/gpt2/tokenizer.json"

typedef struct writer {
    tokenizer *t;
    grammar_vocab *v;
    float *logits, *taste; /* what it would rather write */
    size_t n_vocab;
} writer;

static bool is_one_of(const char *s, size_t n, const char *set)
{
    for (size_t i = 0; i < n; i++)
        if (!strchr(set, s[i])) return false;
    return n > 0;
}

/* It prefers letters to all else, then blanks and commas: no string, list or white space would end of itself. As models
 * do, it spells with long tokens where it can. */
static void open_writer(writer *w)
{
    buf text = {0};
    shoal_err err = {0};
    *w = (writer){0};
    if (file_read(&text, TOKENIZER, 64 << 20, &err)) fail_msg("%s", err.message);
    if (tokenizer_from_json(&w->t, text.data, text.len, NULL, 0, TOKENIZER, &err))
        fail_msg("%s", err.message);
    buf_done(&text);
    w->n_vocab = tokenizer_vocab_size(w->t);
    w->logits = calloc(w->n_vocab, sizeof *w->logits);
    w->taste = calloc(w->n_vocab, sizeof *w->taste);
    assert_non_null(w->logits);
    assert_non_null(w->taste);
    for (size_t i = 0; i < w->n_vocab; i++) {
        size_t n = 0;
        bool special = false;
        const char *s = tokenizer_bytes(w->t, (int32_t)i, &n, &special);
        if (!s || special) continue;
        w->taste[i] = is_one_of(s, n, "abcdefghijklmnopqrstuvwxyz") ? 30 : is_one_of(s, n, " \n,") ? 20 : 0;
        w->taste[i] += 3 * (float)(n < 10 ? n : 0);
    }
    assert_int_equal(grammar_vocab_new(&w->v, w->t, &err), 0);
}

static void close_writer(writer *w)
{
    grammar_vocab_free(w->v);
    tokenizer_free(w->t);
    free(w->logits);
    free(w->taste);
}

/* Writes up to `limit` tokens; true: the reply is whole. */
static bool write_reply(writer *w, const grammar_spec *spec, size_t limit, uint64_t seed, buf *out)
{
    grammar *g = NULL;
    shoal_err err = {0};
    bool is_whole = false;
    buf_clear(out);
    if (grammar_new(&g, w->v, spec, &err)) fail_msg("%s", err.message);
    grammar_limit(g, limit);
    for (size_t n = 0; n < limit && !is_whole; n++) {
        for (size_t i = 0; i < w->n_vocab; i++)
            w->logits[i] = w->taste[i] + 15 * (float)rng_uniform(seed * 4096 + n, i);
        if (!grammar_mask(g, w->logits, w->n_vocab, NULL, 0)) fail_msg("%s", grammar_error(g)->message);
        size_t best = 0;
        for (size_t i = 1; i < w->n_vocab; i++)
            if (w->logits[i] > w->logits[best]) best = i;
        if (!isfinite(w->logits[best])) fail_msg("no token is left behind %.*s", (int)out->len, out->data);
        assert_true(grammar_accept(g, (int32_t)best));
        tokenizer_decode(w->t, (const int32_t[]){(int32_t)best}, 1, false, out);
        is_whole = grammar_complete(g);
    }
    buf_append(out, "", 1);
    grammar_free(g);
    return is_whole;
}

static const grammar_spec FORMS[] = {
    {.kind = GRAMMAR_JSON_SCHEMA, .schema = "{\"type\":\"string\"}"},
    {.kind = GRAMMAR_JSON_SCHEMA, .schema = "{\"type\":\"string\",\"minLength\":5,\"maxLength\":5000}"},
    {.kind = GRAMMAR_JSON_SCHEMA,
     .schema = "{\"type\":\"object\",\"properties\":{\"summary\":{\"type\":\"string\"},\"tags\":{\"type\":"
               "\"array\","
               "\"items\":{\"type\":\"string\"}}},\"required\":[\"summary\",\"tags\"]}"},
    {.kind = GRAMMAR_JSON_SCHEMA,
     .schema = "{\"type\":\"array\",\"items\":{\"type\":\"object\",\"properties\":{\"temperature\":{\"type\":"
               "\"integer\"},\"room\":{\"type\":\"string\"}},\"required\":[\"temperature\",\"room\"]}}"},
    {.kind = GRAMMAR_JSON_OBJECT},
    {.kind = GRAMMAR_TOOLS,
     .mode = TOOLS_REQUIRED,
     .tools_json =
         "[{\"type\":\"function\",\"function\":{\"name\":\"remember\",\"parameters\":{\"type\":\"object\","
         "\"properties\":{\"text\":{\"type\":\"string\"}},\"required\":[\"text\"]}}}]"},
};
enum { N_FORMS = sizeof FORMS / sizeof *FORMS };

/* The limits leave room for literals that the writer spells in more tokens than it needs. */
static void replies_end_before_their_tokens_do(void **state)
{
    writer w;
    buf out = {0};
    open_writer(&w);
    for (size_t f = 0; f < N_FORMS; f++)
        for (size_t limit = 90; limit < 120; limit++)
            for (uint64_t seed = 0; seed < 3; seed++)
                if (!write_reply(&w, &FORMS[f], limit, seed, &out))
                    fail_msg("form %zu is cut after %zu tokens: %s", f, limit, out.data);
    buf_done(&out);
    close_writer(&w);
}

#define STRING(more) \
    "{\"type\":\"object\",\"properties\":{\"s\":{\"type\":\"string\"," more "}},\"required\":[\"s\"]}"
static const char *const TEXTS[] = {
    STRING("\"format\":\"email\""),
    STRING("\"format\":\"uri\""),
    STRING("\"pattern\":\"^[a-z]+@[a-z]+$\""),
    STRING("\"pattern\":\"^([a-z]+\\\\.)+com$\""),
    STRING("\"pattern\":\"^[a-z0-9._%+-]+@[a-z0-9.-]+\\\\.[a-z]{2,}$\""),
    STRING("\"pattern\":\"^.*foo.*bar.*$\""),
    STRING("\"pattern\":\"^[a-z]{3,400}$\""),
    STRING("\"pattern\":\"^[^a-z]*$\""),
    STRING("\"minLength\":45"),
};
enum { N_TEXTS = sizeof TEXTS / sizeof *TEXTS };

/* Whatever characters they are made of. */
static void strings_of_patterns_end_before_their_tokens_do(void **state)
{
    writer w;
    buf out = {0};
    open_writer(&w);
    for (size_t f = 0; f < N_TEXTS; f++) {
        grammar_spec spec = {.kind = GRAMMAR_JSON_SCHEMA, .schema = TEXTS[f]};
        for (size_t limit = 20; limit < 100; limit += 13)
            for (uint64_t seed = 0; seed < 2; seed++)
                if (!write_reply(&w, &spec, limit, seed, &out))
                    fail_msg("%s is cut after %zu tokens: %s", TEXTS[f], limit, out.data);
    }
    buf_done(&out);
    close_writer(&w);
}

/* Properties that are still missing are counted before one is begun that need not be. */
static void required_properties_have_their_room(void **state)
{
    static const grammar_spec SPECS[] = {
        {.kind = GRAMMAR_JSON_SCHEMA,
         .open = true,
         .schema = "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\"},\"age\":{\"type\":"
                   "\"integer\"}},\"required\":[\"name\",\"age\"]}"},
        {.kind = GRAMMAR_JSON_SCHEMA,
         .schema = "{\"type\":\"object\",\"properties\":{\"note\":{\"type\":\"string\"},\"a remark of some "
                   "length\":{\"type\":\"string\"},\"age\":{\"type\":\"integer\"}},\"required\":[\"age\"]}"},
    };
    writer w;
    buf out = {0};
    open_writer(&w);
    for (size_t i = 0; i < w.n_vocab;
         i++) { /* names in as many tokens as there are, numbers of some digits */
        size_t n = 0;
        bool special = false;
        const char *s = tokenizer_bytes(w.t, (int32_t)i, &n, &special);
        w.taste[i] = s && !special && n == 1 ? *s == '}' ? 30 : 20 : 0;
    }
    for (size_t f = 0; f < sizeof SPECS / sizeof *SPECS; f++)
        for (size_t limit = 30; limit < 120; limit += 7)
            for (uint64_t seed = 0; seed < 6; seed++)
                if (!write_reply(&w, &SPECS[f], limit, seed, &out))
                    fail_msg("form %zu is cut after %zu tokens: %s", f, limit, out.data);
    buf_done(&out);
    close_writer(&w);
}

/* Without a limit of the reply's: an address has some 256 tokens at most. */
static void formats_end_by_themselves(void **state)
{
    writer w;
    buf out = {0};
    open_writer(&w);
    for (size_t f = 0; f < 2; f++) {
        grammar_spec spec = {.kind = GRAMMAR_JSON_SCHEMA, .schema = TEXTS[f]};
        if (!write_reply(&w, &spec, 1000, f, &out)) fail_msg("%s is cut: %s", TEXTS[f], out.data);
    }
    buf_done(&out);
    close_writer(&w);
}

/* However a model writes its calls. */
static void calls_end_before_their_tokens_do(void **state)
{
    size_t n;
    const toolcall_syntax *all = toolcall_syntaxes(&n);
    grammar_spec spec = FORMS[N_FORMS - 1];
    writer w;
    buf out = {0};
    open_writer(&w);
    for (size_t i = 0; i < n; i++) {
        spec.syntax = &all[i];
        if (!write_reply(&w, &spec, 250, i, &out)) fail_msg("%s is cut: %s", all[i].name, out.data);
    }
    buf_done(&out);
    close_writer(&w);
}

/* Nothing is ended while there is room. */
static void text_uses_the_tokens_that_there_are(void **state)
{
    writer w;
    buf out = {0};
    open_writer(&w);
    for (size_t limit = 60; limit < 300; limit += 40) {
        size_t n_letters = 0;
        assert_true(write_reply(&w, &FORMS[0], limit, limit, &out));
        for (const char *p = out.data; *p; p++) n_letters += *p >= 'a' && *p <= 'z';
        if (n_letters < limit - 10) fail_msg("of %zu tokens: %s", limit, out.data);
    }
    buf_done(&out);
    close_writer(&w);
}

/* The room for a value that has alternatives is not taken by choosing a shorter one. */
static void alternatives_stay_open(void **state)
{
    static const grammar_spec ENUM = {
        .kind = GRAMMAR_JSON_SCHEMA,
        .schema = "{\"enum\":[\"zz\","
                  "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"]}"};
    writer w;
    buf out = {0};
    open_writer(&w);
    for (size_t i = 0; i < w.n_vocab; i++) {
        size_t n = 0;
        bool special = false;
        const char *s = tokenizer_bytes(w.t, (int32_t)i, &n, &special);
        w.taste[i] = s && is_one_of(s, n, "a") ? 60 - (float)n : 0;
    }
    assert_false(write_reply(&w, &ENUM, 6, 1, &out));
    assert_memory_equal(out.data, "\"aaa", 4);
    buf_done(&out);
    close_writer(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replies_end_before_their_tokens_do),
        cmocka_unit_test(strings_of_patterns_end_before_their_tokens_do),
        cmocka_unit_test(required_properties_have_their_room),
        cmocka_unit_test(formats_end_by_themselves),
        cmocka_unit_test(calls_end_before_their_tokens_do),
        cmocka_unit_test(text_uses_the_tokens_that_there_are),
        cmocka_unit_test(alternatives_stay_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
