/* pipeline_test.c: see pipeline_test.h. */
#include "eval/pipeline_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command/cli_process.h"
#include "command/cli_server.h"
#include "eval/eval_cases.h"
#include "eval/pipeline_expect.h"

typedef struct testing {
    const pipeline_test_options *o;
    http_client client;
    buf headers;
    json_t *failures; /* with --json */
    size_t n_passed;
} testing;

/* ---- the report -------------------------------------------------------------------------------------- */

/* A value in one line. */
static void pipeline_test_put_value(const char *mark, const json_t *v, buf *out)
{
    buf_printf(out, "        %s ", mark);
    if (json_is_null(v))
        buf_puts(out, "nothing");
    else
        json_put_digits(out, v, 6);
    buf_putc(out, '\n');
}

static void put_diffs(const json_t *diffs, buf *out)
{
    for (size_t i = 0; i < json_array_size(diffs); i++) {
        const json_t *d = json_array_get(diffs, i), *why = json_object_get(d, "why");
        buf_printf(out, "      %s%s%s\n", json_string_value(json_object_get(d, "what")), why ? ": " : "",
                   why ? json_string_value(why) : "");
        pipeline_test_put_value("-", json_object_get(d, "expected"), out);
        pipeline_test_put_value("+", json_object_get(d, "got"), out);
    }
}

static int print_case(const testing *t, const eval_case *c, size_t number, const json_t *diffs,
                      shoal_err *err)
{
    buf out = {0};
    bool ok = json_array_size(diffs) == 0;
    if (ok && t->o->failures) return 0;
    buf_printf(&out, "%-7s %zu %s%s", ok ? "ok" : "not ok", number, c->id, *c->id ? " " : "");
    json_put_string(&out, c->input, strlen(c->input));
    buf_putc(&out, '\n');
    put_diffs(diffs, &out);
    if (!out.failed) cli_write(out.data, out.len);
    int rc = out.failed ? err_nomem(err) : 0;
    buf_done(&out);
    return rc;
}

static int keep_failure(testing *t, const eval_case *c, size_t number, json_t *diffs, shoal_err *err)
{
    if (json_array_size(diffs) == 0) return 0;
    json_t *f = json_pack("{s:I, s:s, s:s, s:O}", "case", (json_int_t)number, "id", c->id, "input", c->input,
                          "differences", diffs);
    return json_array_append_new(t->failures, f) == 0 ? 0 : err_nomem(err);
}

static int print_end(const testing *t, size_t n, shoal_err *err)
{
    buf out = {0};
    if (t->o->json) {
        buf_printf(&out, "{\"cases\":%zu,\"passed\":%zu,\"failures\":", n, t->n_passed);
        json_put_digits(&out, t->failures, 6);
        buf_puts(&out, "}\n");
    } else {
        buf_printf(&out, "%zu case%s, %zu as expected", n, n == 1 ? "" : "s", t->n_passed);
        buf_printf(&out, t->n_passed < n ? ", %zu not\n" : "\n", n - t->n_passed);
    }
    if (!out.failed) cli_write(out.data, out.len);
    int rc = out.failed ? err_nomem(err) : 0;
    buf_done(&out);
    return rc;
}

/* ---- the cases --------------------------------------------------------------------------------------- */

/* Differences of one case, an array of the caller's. */
static int pipeline_test_ask(testing *t, const eval_case *c, json_t *diffs, shoal_err *err)
{
    buf body = {0};
    json_t *answer = NULL;
    eval_case_put_request(c, t->o->pipeline, &body);
    http_ask r = {.path = "/v1/process", .body = body.data, .headers = t->headers.data};
    int rc = body.failed ? err_nomem(err) : http_client_exchange(&t->client, &r, err);
    buf_done(&body);
    if (rc) return rc;
    const buf *b = &t->client.body;
    rc = json_parse(&answer, b->data ? b->data : "", b->len, "the answer", err);
    if (rc == 0) {
        const eval_answer a = {.status = t->client.status, .body = answer};
        rc = pipeline_expect_judge(c->expect, c->input, &a, diffs, err);
    }
    json_decref(answer);
    return rc;
}

static int ask_all(testing *t, const eval_cases *cases, shoal_err *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < cases->n; i++) {
        const eval_case *c = &cases->v[i];
        json_t *diffs = json_array();
        rc = diffs ? pipeline_test_ask(t, c, diffs, err) : err_nomem(err);
        if (rc) err_prefix(err, rc, "case %zu", i + 1);
        if (rc == 0)
            rc = t->o->json ? keep_failure(t, c, i + 1, diffs, err) : print_case(t, c, i + 1, diffs, err);
        t->n_passed += rc == 0 && json_array_size(diffs) == 0;
        json_decref(diffs);
    }
    return rc ? rc : print_end(t, cases->n, err);
}

static int with_server(testing *t, const eval_cases *cases, const char *server, shoal_err *err)
{
    http_where where;
    int rc = cli_process_where(&where, server, err);
    if (rc) return rc;
    if (t->o->key && *t->o->key) buf_printf(&t->headers, "authorization: Bearer %s\r\n", t->o->key);
    t->failures = json_array();
    if (t->headers.failed || !t->failures) return err_nomem(err);
    http_client_init(&t->client, &where);
    rc = ask_all(t, cases, err);
    http_client_done(&t->client);
    return rc;
}

int pipeline_test_run(const pipeline_test_options *o, const char *path, bool *ret_passed, shoal_err *err)
{
    eval_cases cases = {.check = pipeline_expect_check};
    cli_server own = {0};
    testing t = {.o = o};
    int rc = o->server && o->config ? err_set(err, SHOAL_EINVALID, "give --server or --config, not both")
                                    : cli_opened(eval_cases_read(&cases, path, o->homes, err), err);
    if (rc == 0 && cases.n == 0) rc = err_set(err, SHOAL_EFORMAT, "%s has no cases", path);
    if (rc == 0 && o->config) rc = cli_server_start(&own, o->config, err);
    if (rc == 0) rc = with_server(&t, &cases, o->config ? own.url : o->server, err);
    *ret_passed = rc == 0 && t.n_passed == cases.n;
    cli_server_stop(&own);
    json_decref(t.failures);
    buf_done(&t.headers);
    eval_cases_done(&cases);
    return rc;
}
