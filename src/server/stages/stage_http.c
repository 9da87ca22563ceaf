/* stage_http.c: http stages: what a host of the configuration answers. Fields of the path are
 * percent-encoded and those of the body are JSON values, so that no text of a request can become more than a
 * value. */
#include <string.h>

#include "json/json.h"
#include "base/utf8.h"
#include "stages/stages.h"

/* {"status": 200, "json": ...}, or "text"; false: it is neither, and `why` says so. */
static bool take_answer(stage_run *s, const host_reply *r, const char **why)
{
    json_t *answer = s->slots = json_object(), *json = NULL;
    bool claims = strstr(r->type, "json") != NULL;
    int rc = claims ? json_parse(&json, r->body, r->n_body, "the answer", NULL) : 0;
    if (rc == SHOAL_ENOMEM) s->run->lacks_memory = true;
    if (memchr(r->body, 0, r->n_body) || !utf8_valid(r->body, r->n_body, NULL))
        *why = "the host answers with what is no text in UTF-8";
    else if (rc)
        *why = "the host says that its answer is JSON, and it is none";
    else
        *why = NULL;
    process_put(s->run, answer, "status", json_integer(r->http));
    if (!*why) process_put(s->run, answer, claims ? "json" : "text", claims ? json : json_string(r->body));
    buf_append(&s->text, r->body, *why ? 0 : r->n_body);
    s->details = json_object();
    process_put(s->run, s->details, "status", json_integer(r->http));
    return !*why;
}

static void on_answer(void *user, const host_reply *r)
{
    stage_run *s = user;
    const char *why = r->message;
    call_result end = process_alone(s->stage, r->status, why);
    s->http = NULL;
    end.ms = r->ms;
    if (r->status == 0 && !take_answer(s, r, &why)) {
        end.status = SHOAL_EPROTOCOL;
        end.message = why;
    }
    process_settle(s, &end);
}

static int http_fill(const stage_run *s, const char *template, fill_as as, buf *ret)
{
    pipeline_facts facts = process_facts(s);
    int rc = pipeline_expand_as(s->run->in->pipeline, template, &facts, as, ret);
    return rc || buf_reserve(ret, 0) ? SHOAL_ENOMEM : 0;
}

static int start_http(stage_run *s, const call_context *ctx)
{
    const config_stage *st = s->stage;
    buf path = {0}, body = {0};
    int rc = http_fill(s, st->path ? st->path : "", FILL_PERCENT, &path);
    if (!rc && st->body) rc = http_fill(s, st->body, FILL_JSON, &body);
    if (!rc && st->path && !host_path_ok(path.data))
        rc = err_set(&s->err, SHOAL_EINVALID,
                     "a field of the path holds '.' or '..' as a segment, which would leave the host's URL");
    host_ask ask = {.host = st->host,
                    .path = path.data,
                    .method = st->method,
                    .body = st->body ? body.data : NULL,
                    .n_body = body.len,
                    .request_id = ctx->request_id,
                    .deadline_ns = ctx->deadline_ns,
                    .user = s,
                    .done = on_answer};
    if (!rc && !(s->http = hosts_ask(s->run->in->hosts, &ask))) rc = SHOAL_ENOMEM;
    buf_done(&path);
    buf_done(&body);
    return rc;
}

const stage_runner stage_http = {.start = start_http};
