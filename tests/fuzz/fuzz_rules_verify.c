/* A request and an answer, apart at bytes 1F: messages, tools, text, and names and arguments of calls in
 * turn. Whatever they are, a call that leaves is of a device or a tool that was given, what a rule puts in an
 * answer's place is, too, and pairs for a model of inference are whole. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "json/json.h"
#include "ensemble/verify_nli.h"
#include "memory.h"
#include "nlu/ground.h"
#include "rules/rule_answer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PARTS = 9, SEPARATOR = 0x1F };

/* Texts as they come over the wire: without NUL. */
static char *cut(char **at)
{
    char *begin = *at, *end = strchr(begin, SEPARATOR);
    *at = end ? end + 1 : begin + strlen(begin);
    if (end) *end = '\0';
    return begin;
}

static bool has_listed(const verify_case *k, const json_t *v)
{
    const char *s = json_string_value(v), *key;
    const json_t *part;
    size_t i;
    bool found = false;
    for (i = 0; s && i < k->n_devices && !found; i++) found = strcmp(k->devices[i].id, s) == 0;
    json_array_foreach(v, i, part) found = found || has_listed(k, part);
    json_object_foreach((json_t *)(uintptr_t)v, key, part)
    {
        found = found || has_listed(k, part);
    }
    return found;
}

static void see_call(const verify_case *k, const device_call *c)
{
    bool offered = false;
    for (size_t i = 0; i < k->n_tools; i++) offered = offered || strcmp(k->tools[i], c->name) == 0;
    if (k->offers_tools && !offered) abort();
    json_t *args = NULL;
    if (!holds(json_parse(&args, c->arguments, strlen(c->arguments), "arguments", NULL) == 0)) return;
    if (!json_is_object(args) || (!k->offers_tools && !has_listed(k, args))) abort();
    json_decref(args);
}

static void see_mended(const verify_case *k, const verify_answer *a)
{
    if ((!*a->text && !a->n_calls) || a->n_calls > VERIFY_CALLS_MAX) abort();
    for (size_t i = 0; i < a->n_calls; i++) {
        json_t *args = NULL;
        if (!holds(json_parse(&args, a->calls[i].arguments, strlen(a->calls[i].arguments), "a", NULL) == 0))
            return;
        if (!has_listed(k, args)) abort();
        json_decref(args);
    }
}

static void see_devices(const verify_case *k, const lexicon *lex, const verify_answer *a, arena *mem)
{
    verify_verdict v;
    if (!holds(rule_answer_devices.apply(&v, lex, k, a, mem) == 0)) return;
    if (!*verify_why_text(v.why)) abort();
    for (size_t i = 0; v.why == VERIFY_FINE && i < a->n_calls; i++) see_call(k, &a->calls[i]);
    if (v.why == VERIFY_FINE && v.mends) abort();
    if (v.mends) see_mended(k, &v.mended);
    if (v.n_options && !lex) abort();
}

static void see_pairs(const verify_case *k, const char *text, arena *mem)
{
    verify_nli n;
    if (!holds(verify_nli_ask(&n, k->context, text, VERIFY_NLI_PIECE_BYTES, mem) == 0) ||
        n.why != VERIFY_FINE)
        return;
    if (n.n_sentences > VERIFY_NLI_SENTENCES_MAX || n.n_pieces > VERIFY_NLI_PIECES_MAX) abort();
    if (n.request.n_inputs != n.n_sentences * n.n_pieces) abort();
    for (size_t i = 0; i < n.request.n_inputs; i++)
        if (!*n.request.inputs[i]->text || !*n.request.inputs[i]->pair) abort();
}

static void see(const lexicon *lex, char *parts[PARTS], size_t n, arena *mem)
{
    Shoal__V1__GenerateRequest r = SHOAL__V1__GENERATE_REQUEST__INIT;
    device_call calls[PARTS / 2];
    verify_case k;
    size_t n_calls = 0;
    r.messages_json = parts[0];
    r.tools_json = parts[1];
    for (size_t i = 3; i + 1 < n; i += 2) calls[n_calls++] = (device_call){parts[i], parts[i + 1]};
    verify_answer a = {parts[2], calls, n_calls};
    if (!holds(verify_case_read(&k, &r, mem) == 0)) return;
    if (k.n_devices > DEVICES_MAX || k.n_made > MADE_CALLS_MAX) abort();
    see_devices(&k, lex, &a, mem);
    see_devices(&k, NULL, &a, mem);
    if (k.n_made) { /* and as if a result told of a failure */
        k.failed = true;
        k.report = "It failed.";
        see_devices(&k, lex, &a, mem);
    }
    see_pairs(&k, a.text, mem);
    bool strange = true;
    if (holds(verify_numbers(a.text, &a.text, 1, &strange, mem) == 0) && strange)
        abort(); /* its own are known */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static lexicon *lex;
    if (!lex && lexicon_load(&lex, SHOAL_SOURCE_DIR "/lexicons/home.yaml", NULL)) return 0;
    char *text = malloc(size + 1), *parts[PARTS], *at = text;
    arena *mem = arena_new(0);
    size_t n = 0;
    if (text && mem) {
        memcpy(text, data, size);
        text[size] = '\0';
        for (size_t i = 0; i < PARTS; i++) {
            n += *at != '\0';
            parts[i] = cut(&at);
        }
        see(lex, parts, n, mem);
    }
    arena_free(mem);
    free(text);
    return 0;
}
