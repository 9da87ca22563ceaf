/* Random walks through what a schema allows: whatever a walk ends with must be JSON that satisfies the
 * schema.
 *
 * tests/data/schemas.json holds schemas as zod, pydantic and OpenAI's guides have them, shapes of the
 * JSON-Schema test suite, and hostile ones. A walk draws bytes, not tokens: any byte that leads on may come,
 * so what no model would write is tried too. Values are judged by reading the schema (facts_admit), which
 * shares no code with writing the automaton but the reading of patterns and bounds; with SHOAL_WALKS=FILE all
 * documents are written there as well, for a validator that shares nothing (tests/node/schemas.test.mjs). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "json/json.h"
#include "json/json_refs.h"
#include "grammar/grammar_facts.h"
#include "grammar/automaton/grammar_nfa.h"
#include "grammar/grammar_schema.h"

#define WALKS     40
#define BYTES_MAX 6000

/* One of the bytes that lead on; the longer the document, the more likely one that closes something. */
static int draw_byte(nfa *a, int config, uint64_t seed, uint64_t position)
{
    uint8_t all[256], closing[256];
    size_t n = 0, n_closing = 0;
    for (int b = 0; b < 256; b++) {
        if (nfa_step(a, config, (uint8_t)b) == NFA_DEAD) continue;
        all[n++] = (uint8_t)b;
        if (b && strchr("\"}]", b)) closing[n_closing++] = (uint8_t)b;
    }
    if (n == 0) return -1;
    double u = rng_uniform(seed, position * 2),
           hurry = 0.15 + (double)(position < 600 ? position : 600) / 800;
    if (n_closing > 0 && rng_uniform(seed, position * 2 + 1) < hurry)
        return closing[(size_t)(u * (double)n_closing)];
    return all[(size_t)(u * (double)n)];
}

/* True when the walk came to an end; *out is the document. A walk ends where nothing can follow, or by chance
 * where it may. */
static bool walk(nfa *a, int start, uint64_t seed, buf *out)
{
    int config = nfa_begin(a, start);
    buf_clear(out);
    for (uint64_t position = 0; position < BYTES_MAX; position++) {
        if (nfa_accepts(a, config) && (!nfa_reads(a, config) || rng_uniform(seed + 77, position) < 0.3))
            return true;
        if (nfa_is_full(a)) config = nfa_forget(a, config);
        int byte = draw_byte(a, config, seed, position);
        if (nfa_cut(a, config) != NFA_FINE || nfa_stopped(a) != NFA_FINE)
            return false; /* as deep as it goes */
        if (byte < 0) fail_msg("a dead end behind %s", out->data);
        config = nfa_step(a, config, (uint8_t)byte);
        buf_putc(out, (char)byte);
    }
    return false;
}

static void judge(const char *name, const json_t *schema, const buf *document)
{
    json_t *value = NULL;
    shoal_err err = {0};
    int rc = json_parse(&value, document->data, document->len, "document", &err);
    if (rc && (strstr(err.message, "duplicate") || strstr(err.message, "levels"))) return;
    if (rc) fail_msg("%s: %s: %s", name, document->data, err.message);
    json_t *own = json_refs_resolve(schema);
    schema_ctx c = {.root = own, .what = "judge", .err = &err, .work = 100u << 20, .memory = arena_new(0)};
    if (!facts_admit(&c, own, value))
        fail_msg("%s does not satisfy %s %s", document->data, name, err.message);
    facts_done(&c);
    arena_free(c.memory);
    json_decref(own);
    json_decref(value);
}

static nfa *compile(const char *name, const json_t *schema, unsigned flags, int *ret_start)
{
    nfa *a = nfa_new();
    shoal_err err = {0};
    if (schema_compile_json(a, schema, "schema", flags, ret_start, &err))
        fail_msg("%s: %s", name, err.message);
    assert_true(nfa_seal(a));
    if (nfa_begin(a, *ret_start) == NFA_DEAD) fail_msg("%s: nothing satisfies it", name);
    return a;
}

static size_t walk_schema(const char *name, const json_t *schema, unsigned flags, uint64_t seed,
                          json_t *documents)
{
    int start;
    nfa *a = compile(name, schema, flags, &start);
    buf document = {0};
    size_t n_ended = 0;
    for (uint64_t i = 0; i < WALKS && nfa_stopped(a) == NFA_FINE; i++) {
        if (!walk(a, start, seed * 1000 + i, &document)) continue;
        judge(name, schema, &document);
        json_array_append_new(documents, json_stringn_nocheck(document.data, document.len));
        n_ended++;
    }
    buf_done(&document);
    nfa_free(a);
    return n_ended;
}

static void whatever_a_walk_ends_with_satisfies_its_schema(void **state)
{
    const char *path = SHOAL_SOURCE_DIR "/tests/data/schemas.json", *dump = getenv("SHOAL_WALKS");
    json_t *all = NULL, *out = json_array(), *one;
    shoal_err err = {0};
    size_t i, n_ended = 0;
    if (json_parse_file(&all, path, 8 << 20, &err)) fail_msg("%s", err.message);
    json_array_foreach(all, i, one)
    {
        const char *name = json_string_value(json_object_get(one, "name"));
        json_t *documents = json_array();
        size_t n = walk_schema(name, json_object_get(one, "schema"), 0, i, documents) +
                   walk_schema(name, json_object_get(one, "schema"), SCHEMA_OPEN, i + 1000, documents);
        if (n == 0) fail_msg("%s: no walk came to an end", name);
        n_ended += n;
        json_array_append_new(out, json_pack("{s:s,s:O,s:o}", "name", name, "schema",
                                             json_object_get(one, "schema"), "documents", documents));
    }
    print_message("%zu schemas, %zu documents\n", json_array_size(all), n_ended);
    if (dump) assert_int_equal(json_dump_file(out, dump, JSON_COMPACT), 0);
    json_decref(out);
    json_decref(all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(whatever_a_walk_ends_with_satisfies_its_schema)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
