/* shoal demo URL: five real requests to a running home cluster, with answers, routes and times. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "cli/cli.h"
#include "cli/load_client.h"

static const char *const sentences[] = {
    "turn off the kitchen light",
    "is the front door locked?",
    "set the bedroom lamp to blue",
    "wake me up at seven tomorrow",
    "sensor vibration asset=pump-12 change=+64% threshold=20% window=30s",
};

static const char *text_of(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));
    return s ? s : "";
}

static void print_call(const json_t *call)
{
    if (!json_is_object(call)) return;
    buf args = {0};
    json_put(&args, json_object_get(call, "arguments"));
    printf("  call    %s %s\n", text_of(call, "name"), args.data ? args.data : "");
    buf_done(&args);
}

static void print_trace(const json_t *trace)
{
    for (size_t i = 0; i < json_array_size(trace); i++) {
        const json_t *t = json_array_get(trace, i);
        if (!json_is_true(json_object_get(t, "ran"))) continue;
        printf("  route   %-8s %-12s %7.2f ms  %s\n", text_of(t, "stage"), text_of(t, "model"),
               json_number_value(json_object_get(t, "ms")), text_of(t, "why"));
    }
}

static void print_answer(const char *sentence, const json_t *a)
{
    printf("\n> %s\n", sentence);
    if (json_is_string(json_object_get(a, "text"))) printf("  %s\n", text_of(a, "text"));
    print_call(json_object_get(a, "tool_call"));
    const json_t *intent = json_object_get(a, "intent"), *slots = json_object_get(a, "slots");
    if (json_is_object(intent))
        printf("  intent  %s (%.1f %%)\n", text_of(intent, "label"),
               100 * json_number_value(json_object_get(intent, "score")));
    for (size_t i = 0; i < json_array_size(slots); i++)
        printf("  slot    %s = %s\n", text_of(json_array_get(slots, i), "label"),
               text_of(json_array_get(slots, i), "text"));
    print_trace(json_object_get(a, "trace"));
    printf("  total   %.2f ms\n", json_number_value(json_object_get(a, "ms")));
}

static int ask(const char *host, int port, const char *sentence, bool json, shoal_err *err)
{
    buf body = {0}, answer = {0};
    int status = 0;
    buf_puts(&body, "{\"pipeline\":\"home\",\"input\":");
    json_put_string(&body, sentence, strlen(sentence));
    buf_putc(&body, '}');
    json_t *a = NULL;
    int rc =
        load_once(host, port, &(load_request){.method = "POST", .path = "/v1/process", .body = body.data},
                  &status, &answer, err);
    if (rc == 0) rc = json_parse(&a, answer.data, answer.len, "the answer", err);
    if (rc == 0 && status != 200)
        rc = err_set(err, SHOAL_EUNAVAILABLE, "status %d: %s", status,
                     text_of(json_object_get(a, "error"), "message"));
    if (rc == 0 && json)
        printf("%s\n", answer.data);
    else if (rc == 0)
        print_answer(sentence, a);
    json_decref(a);
    buf_done(&answer);
    buf_done(&body);
    return rc;
}

static int run(int argc, char **argv)
{
    bool json = false;
    const cli_option options[] = {CLI_JSON(&json), CLI_END};
    cli_args a;
    int rc = cli_parse(&a, &cmd_demo, options, 1, 1, argc, argv);
    if (rc != CLI_GO) return rc;
    shoal_err err = {0};
    char host[64];
    int port = 0;
    rc = http_post_parse_url(a.v[0], host, &port, &err);
    for (size_t i = 0; i < sizeof sentences / sizeof *sentences && rc == 0; i++)
        rc = ask(host, port, sentences[i], json, &err);
    return rc == 0 ? CLI_OK : cli_fail(&cmd_demo, &err);
}

const cli_command cmd_demo = {"demo", "send five requests to a running home cluster", "URL", run, true};
