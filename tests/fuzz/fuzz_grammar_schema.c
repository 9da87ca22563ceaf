/* A JSON schema (or, when it begins with "[", a list of tools) up to the first NUL byte; then a byte that
 * says how to read the rest: as a reply, or as choices among the bytes that may come next. Whatever the
 * automaton takes as a whole document must be JSON, and must satisfy the schema as a judge reads it. */
#include <stdlib.h>
#include <string.h>

#include "json/json.h"
#include "grammar/grammar_facts.h"
#include "grammar/grammar_schema.h"
#include "grammar/grammar_tools.h"
#include "memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define WALK_WORK 2000000u

static void judge(const char *schema, const buf *document)
{
    json_t *root = NULL, *value = NULL;
    shoal_err err = {0};
    int rc = json_parse(&value, document->data, document->len, "reply", &err);
    /* The automaton knows neither keys that came before nor json_parse's depth. */
    if (rc && !strstr(err.message, "duplicate") && !strstr(err.message, "levels")) holds(false);
    if (rc == 0 && json_parse(&root, schema, strlen(schema), "schema", NULL) == 0) {
        schema_ctx c = {
            .root = root, .what = "judge", .err = &err, .work = WALK_WORK, .memory = arena_new(0)};
        if (!facts_admit(&c, root, value) && c.rc == 0) holds(false);
        facts_done(&c);
        arena_free(c.memory);
    }
    json_decref(root);
    json_decref(value);
}

/* The byte that a choice stands for: of those that lead on, the one with that number. */
static int choose(nfa *a, int config, uint8_t choice)
{
    uint8_t all[256];
    size_t n = 0;
    for (int b = 0; b < 256; b++)
        if (nfa_step(a, config, (uint8_t)b) != NFA_DEAD) all[n++] = (uint8_t)b;
    /* Sealed: where the document is not whole, something leads on, unless the work or the depth is used up.
     */
    if (n == 0 && !nfa_accepts(a, config) && !nfa_stopped(a) && !nfa_cut(a, config)) holds(false);
    return n ? all[choice % n] : -1;
}

static void reply(nfa *a, int start, const uint8_t *data, size_t n, bool walk, const char *schema)
{
    buf document = {0};
    int config = nfa_begin(a, start);
    for (size_t i = 0; i < n && config != NFA_DEAD; i++) {
        int byte = walk ? choose(a, config, data[i]) : data[i];
        if (byte < 0) break;
        int next = nfa_step(a, config, (uint8_t)byte);
        if (!holds(nfa_step(a, config, (uint8_t)byte) == next)) break;
        config = next;
        buf_putc(&document, (char)byte);
        bool whole = nfa_accepts(a, config) && (!nfa_reads(a, config) || i + 1 == n);
        if (whole && schema && !document.failed) judge(schema, &document);
        if (config >= 0 && i % 64 == 63) config = nfa_forget(a, config);
    }
    buf_done(&document);
}

static int compile(nfa *a, const char *text, uint8_t how, int *start, shoal_err *err)
{
    size_t n;
    const toolcall_syntax *all = toolcall_syntaxes(&n);
    grammar_spec spec = {.kind = GRAMMAR_TOOLS,
                         .tools_json = text,
                         .mode = how >> 1 & 1,
                         .parallel = how & 4,
                         .syntax = &all[(how >> 3) % n]};
    if (text && text[0] == '[') return tools_compile(a, &spec, start, err);
    return schema_compile(a, text, 0, start, err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *end = memchr(data, 0, size);
    if (!end) return 0;
    const char *text = end == data ? NULL : (const char *)data;
    size_t n = (size_t)(data + size - end - 1);
    uint8_t how = n ? end[1] : 0;
    nfa *a = nfa_new();
    if (!holds(a)) return 0;
    int start = NFA_DEAD;
    shoal_err err = {0};
    int rc = compile(a, text, how, &start, &err);
    if (rc != 0 && (start != NFA_DEAD || !err.message[0])) abort();
    if (rc == 0 && !nfa_failed(a) && nfa_seal(a)) {
        nfa_allow(a, WALK_WORK);
        reply(a, start, end + 1 + (n > 0), n - (n > 0), how & 1, text && text[0] == '[' ? NULL : text);
    }
    nfa_free(a);
    return 0;
}
