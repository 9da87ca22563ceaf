/* served.c: GET /v1/models of a server that may not be there. */
#include "command/served.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "json/json.h"
#include "kinds/model_kind.h"
#include "command/cli_process.h"
#include "tasks/task.h"

enum { PATIENCE_MS = 1000 }; /* for a server that nobody named */

static void say_url(served *s)
{
    const char *host = s->where.host;
    bool v6 = strchr(host, ':') != NULL;
    if (s->where.port)
        snprintf(s->url, sizeof s->url, "%s://%s%s%s:%d", s->where.tls ? "https" : "http", v6 ? "[" : "",
                 host, v6 ? "]" : "", s->where.port);
    else
        snprintf(s->url, sizeof s->url, "unix:%s", host);
}

static void served_take(served *s, const json_t *m)
{
    snprintf(s->model, sizeof s->model, "%s", json_text_of(m, "id"));
    snprintf(s->use, sizeof s->use, "%s", json_text_of(m, "use"));
    const char *does = json_text_of(m, "task");
    if (strcmp(does, "route") == 0) does = "generate"; /* a text asked of a route gets a reply */
    snprintf(s->task, sizeof s->task, "%s",
             task_effective(does, json_array_size(json_object_get(m, "labels"))));
    s->is_plain = strcmp(json_text_of(m, "chat_template"), "default") == 0;
    s->pipeline = strcmp(json_text_of(m, "kind"), "pipeline") == 0;
}

static void put_names(char *to, size_t n, const json_t *answer)
{
    size_t i, at = 0;
    json_t *m;
    json_array_foreach(json_object_get(answer, "data"), i, m) if (at < n) at +=
        (size_t)snprintf(to + at, n - at, "%s%s", i ? ", " : "", json_text_of(m, "id"));
    if (at >= n) snprintf(to + n - 6, 6, ", ...");
}

static void served_choose(served *s, const json_t *answer, const char *model, const char *task)
{
    size_t i;
    json_t *m;
    bool chats = task && strcmp(task, SERVED_CHATS) == 0;
    if (chats) task = "generate";
    json_array_foreach(json_object_get(answer, "data"), i, m)
    {
        const char *id = json_text_of(m, "id");
        bool pipeline = strcmp(json_text_of(m, "kind"), "pipeline") == 0;
        bool fits = model ? strcmp(id, model) == 0
                          : (chats || !pipeline) && (!task || strcmp(json_text_of(m, "task"), task) == 0);
        if (!fits || strlen(id) >= sizeof s->model || (*s->model && !pipeline)) continue;
        served_take(s, m);
        if (model || pipeline || !chats) return;
    }
}

int served_find(served *ret, const char *server, const char *model, const char *task, const char *key,
                shoal_err *err)
{
    http_client c;
    buf headers = {0};
    json_t *answer = NULL;
    shoal_err why = {0};
    bool named = cli_process_named(server) != NULL;
    *ret = (served){0};
    int rc = cli_process_where(&ret->where, server, &why);
    if (rc != 0 && named) return err_set(err, rc, "%s", why.message);
    if (rc != 0) return 0;
    say_url(ret);
    http_client_init(&c, &ret->where);
    if (!named) c.until_ns = clock_ns() + PATIENCE_MS * 1000000ull;
    rc = cli_process_headers(&headers, key, &why);
    if (rc == 0)
        rc = http_client_exchange(&c, &(http_ask){.path = "/v1/models", .headers = headers.data}, &why);
    if (rc == SHOAL_EUNAVAILABLE) rc = cli_process_nobody(&why);
    if (rc == 0)
        rc = json_parse(&answer, c.body.data ? c.body.data : "", c.body.len, "the list of models", &why);
    if (rc == 0 && c.status != 200) rc = cli_process_refused(c.status, answer, &why);
    ret->runs = rc == 0;
    if (rc == 0) put_names(ret->names, sizeof ret->names, answer);
    if (rc == 0) served_choose(ret, answer, model, task);
    json_decref(answer);
    http_client_done(&c);
    buf_done(&headers);
    return rc != 0 && (named || rc == SHOAL_ECANCELLED) ? err_set(err, rc, "%s", why.message) : 0;
}

int served_missing(const served *at, const char *model, shoal_err *err)
{
    return err_set(err, SHOAL_ENOTFOUND, "%s has no model \"%.80s\"; shoal ps --server %s shows those it has",
                   at->url, model, at->url);
}

int served_instead(int rc, const char *model, const char *option, const char *key, shoal_err *err)
{
    served at;
    shoal_err none, why = *err;
    if (rc != SHOAL_ENOTFOUND || served_is_path(model)) return rc;
    if (served_find(&at, NULL, model, NULL, key, &none) != 0 || !at.runs) return rc;
    if (*at.model && option)
        return err_set(
            err, SHOAL_EINVALID,
            "%s is served at %s, and %s is for models of this process: leave %s out, or shoal stop "
            "%s and load its file anew with shoal load FILE",
            at.model, at.url, option, option, at.model);
    return err_set(err, rc, "%.240s; %s serves %.200s", why.message, at.url,
                   *at.names ? at.names : "nothing");
}

bool served_is_path(const char *model)
{
    return strchr(model, '/') || file_exists(model) || model_kind_named(model);
}
