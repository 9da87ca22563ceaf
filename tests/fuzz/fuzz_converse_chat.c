/* What an application sends to a pipeline that chats: before the first zero byte the system message, then a JSON array
 * of messages, one of functions, and the pipeline's answer. With the table without a file, devices are well formed,
 * and a reply calls functions that were offered, with JSON, or says something. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "converse/chat_reply.h"
#include "json/json.h"
#include "memory.h"
#include "pipeline/pipeline.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char TABLE[] =
    "functions: [{services: ['*'], function: '{action}', arguments: {target: "
    "'{id}'}, perhaps: {x: ['{name}']}, "
    "shared: {area: '{area}'}}]\n"
    "services: [go, turn_on]\n"
    "devices: {arguments: [target], words: {light: [lamp]}, offered: {go: \"timer.t 'T' = ?\"}}\n"
    "units: {domains: [light], named: {F: [F, x y], C: [C]}}\n"
    "states: {functions: [live], verdicts: [answer]}\n"
    "results: {failed: {error: '*', a.b: [1, x]}, done: {ok: true}, why: "
    "[error.message, error], failed_words: [no], "
    "done_words: [ok]}\n"
    "replies: {call: '{service} {name}', no_functions: '{calls}', no_fit: 'no "
    "{calls}', not_allowed: 'no', failed: "
    "'{function} {why}', no_result: 'no', said: '{why}', done: '{functions}'}\n";

static void see_devices(const device_list *l)
{
    if (l->n > DEVICES_MAX) abort();
    for (size_t i = 0; i < l->n; i++) {
        if (!pipeline_device_text_ok(l->at[i].id) || !pipeline_device_text_ok(l->at[i].name)) abort();
        for (size_t k = 0; k < l->at[i].n_aliases; k++)
            if (!pipeline_device_text_ok(l->at[i].aliases[k])) abort();
        for (size_t k = 0; k < i; k++)
            if (strcmp(l->at[i].id, l->at[k].id) == 0) abort();
    }
}

static void see_reply(const verify_answer *a, const chat_case *k)
{
    if (k->no_calls && a->n_calls) abort();
    if (a->n_calls && *a->text) abort(); /* nothing is claimed while it is only called */
    for (size_t i = 0; i < a->n_calls; i++) {
        json_t *o = NULL;
        if (!chat_case_function(k, a->calls[i].name)) abort();
        if (holds(json_parse(&o, a->calls[i].arguments, strlen(a->calls[i].arguments), "a", NULL) == 0))
            holds(json_is_object(o));
        json_decref(o);
    }
}

/* The functions as a schema. */
static void see_form(const function_table *t, chat_case *k, const device_list *list, const json_t *answer,
                     arena *mem)
{
    const char *text, *why;
    json_t *o = NULL;
    json_decref(k->schema);
    k->schema = json_incref(k->tools);
    k->formed = k->no_calls = true;
    if (!holds(chat_reply_make_form(&text, &why, t, k, list->at, list->n, answer, mem) == 0)) return;
    if (!text != (why != NULL)) abort();
    if (text && holds(json_parse(&o, text, strlen(text), "a reply", NULL) == 0)) holds(json_is_object(o));
    json_decref(o);
}

static void run(const char *part[4], arena *mem)
{
    Shoal__V1__GenerateRequest q = SHOAL__V1__GENERATE_REQUEST__INIT;
    function_table *t = NULL;
    chat_case k = {0};
    device_list *list = arena_alloc(mem, sizeof *list);
    verify_answer a;
    json_t *answer = NULL;
    q.messages_json = (char *)part[1];
    q.tools_json = (char *)part[2];
    q.parallel_tool_calls = strlen(part[0]) % 2;
    q.tool_choice = strlen(part[0]) % 5 == 0 ? SHOAL__V1__GENERATE_REQUEST__TOOL_CHOICE__TOOL_NONE
                                             : SHOAL__V1__GENERATE_REQUEST__TOOL_CHOICE__TOOL_AUTO;
    bool well = list && holds(function_table_parse(&t, TABLE, sizeof TABLE - 1, "t", NULL) == 0) &&
                holds(chat_case_read(&k, &q, mem) == 0);
    if (well) k.system = part[0];
    if (well && holds(function_table_devices(list, t, &k, mem) == 0) &&
        holds(function_table_add_offered(list, t, &k, mem) == 0) &&
        holds(function_table_add_services(list->at, list->n, t, &k, mem) == 0)) {
        function_table_lend_units(list->at, list->n, t, &k);
        see_devices(list);
        if (json_parse(&answer, part[3], strlen(part[3]), "answer", NULL) == 0 &&
            holds(chat_reply_make(&a, t, &k, list->at, list->n, answer, mem) == 0))
            see_reply(&a, &k);
        if (answer) see_form(t, &k, list, answer, mem);
    }
    json_decref(answer);
    chat_case_done(&k);
    function_table_free(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    arena *mem = arena_new(0);
    char *text = mem ? arena_strndup(mem, (const char *)data, size) : NULL;
    const char *part[4] = {"", "", "", ""};
    for (size_t i = 0, at = 0; text && i < 4 && at <= size; i++) {
        part[i] = text + at;
        at += strlen(text + at) + 1;
    }
    bool said = text && utf8_valid(part[0], strlen(part[0]), NULL); /* what JSON may say */
    if (said) run(part, mem);
    arena_free(mem);
    return 0;
}
