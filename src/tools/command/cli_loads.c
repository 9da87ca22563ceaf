/* cli_loads.c: see cli_loads.h. */
#include "command/cli_loads.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "json/json.h"
#include "logging/sanitise.h"
#include "command/cli.h"
#include "command/cli_process.h"
#include "fetch/pull_meter.h"

enum { LINE_MAX_BYTES = 1 << 20 }; /* of the progress; there may be any number */

typedef struct reading {
    http_client client;
    const cli_loads_ask *ask;
    pull_meter meter;
    bool meters, live;
    char file[256], shown[200]; /* the file that is metered, and the step that was shown last */
    json_t *last;
} reading;

/* ---- what is shown ------------------------------------------------------------------------------------- */

static void end_meter(reading *r)
{
    if (r->meters) pull_meter_end(&r->meter, NULL);
    r->meters = false;
}

static void show_file(reading *r, const json_t *o)
{
    uint64_t at = (uint64_t)json_integer_value(json_object_get(o, "completed"));
    const json_t *total = json_object_get(o, "total");
    if (!r->meters || strcmp(r->file, json_text_of(o, "file")) != 0) {
        end_meter(r);
        snprintf(r->file, sizeof r->file, "%s", json_text_of(o, "file"));
        sanitise_text(r->file, "");
        pull_meter_begin(&r->meter, r->file, total != NULL, (uint64_t)json_integer_value(total), at);
        r->meters = true;
    }
    pull_meter_at(&r->meter, at);
}

static void show_step(reading *r, const json_t *o)
{
    char line[sizeof r->shown], many[48] = "", name[100];
    long long n = json_integer_value(json_object_get(o, "replicas"));
    end_meter(r);
    if (n > 1)
        snprintf(many, sizeof many, " (%lld of %lld)",
                 (long long)json_integer_value(json_object_get(o, "ready")), n);
    snprintf(name, sizeof name, "%s", *json_text_of(o, "model") ? json_text_of(o, "model") : r->ask->what);
    snprintf(line, sizeof line, "%s: %s%s", name, json_text_of(o, "status"), many);
    sanitise_text(line, "");
    if (strcmp(line, r->shown) == 0) return;
    memcpy(r->shown, line, sizeof line);
    if (r->live)
        cli_live_line("%s", line);
    else
        fprintf(stderr, "%s\n", line);
}

static void cli_loads_take(reading *r, const char *line, size_t n)
{
    json_t *o = NULL;
    if (n == 0 || json_parse(&o, line, n, "the answer", NULL) != 0) return;
    json_decref(r->last);
    r->last = o;
    if (r->ask->quiet || !json_object_get(o, "status")) return;
    if (json_object_get(o, "file"))
        show_file(r, o);
    else
        show_step(r, o);
}

static void cli_loads_on_piece(void *user, size_t n_bytes)
{
    reading *r = user;
    buf *b = &r->client.body;
    size_t at = 0; /* whole lines are looked at once */
    for (const char *end; (end = memchr(b->data + at, '\n', b->len - at));) {
        cli_loads_take(r, b->data + at, (size_t)(end - b->data) - at);
        at = (size_t)(end + 1 - b->data);
    }
    buf_consume(b, at);
}

/* The line that was live is left as it is. */
static void end_show(reading *r)
{
    end_meter(r);
    if (*r->shown && r->live) fputc('\n', stderr);
}

/* ---- asking -------------------------------------------------------------------------------------------- */

static int read_end(reading *r, shoal_err *err)
{
    const buf *b = &r->client.body;
    cli_loads_take(r, b->data ? b->data : "", b->len); /* an answer in one piece has no line end */
    end_show(r);
    const json_t *e = json_object_get(r->last, "error");
    if (e) return err_set(err, SHOAL_EIO, "%s", json_text_of(e, "message"));
    if (r->client.status >= 400 || !r->last)
        return err_set(err, SHOAL_EPROTOCOL, "it answered with %d and no word that is understood",
                       r->client.status);
    return 0;
}

int cli_loads_send(const http_where *where, const cli_loads_ask *ask, json_t **ret, shoal_err *err)
{
    reading r = {.ask = ask, .live = isatty(STDERR_FILENO)};
    buf headers = {0}, body = {0};
    http_client_init(&r.client, where);
    pull_meter_init(&r.meter, stderr);
    r.client.most_bytes = LINE_MAX_BYTES;
    r.client.piece = cli_loads_on_piece;
    r.client.piece_user = &r;
    if (ask->body && json_put(&body, ask->body) != 0) body.failed = true;
    buf_puts(&headers, "accept: application/x-ndjson\r\n");
    int rc = body.failed ? err_nomem(err) : cli_process_headers(&headers, ask->key, err);
    const http_ask x = {.method = ask->method,
                        .path = ask->path,
                        .body = body.len ? body.data : NULL,
                        .headers = headers.data};
    if (rc == 0) rc = http_client_exchange(&r.client, &x, err);
    if (rc == SHOAL_EUNAVAILABLE) rc = cli_process_nobody(err);
    if (rc == 0) rc = read_end(&r, err);
    if (rc == 0)
        *ret = r.last;
    else
        json_decref(r.last);
    http_client_done(&r.client);
    buf_done(&headers);
    buf_done(&body);
    return rc;
}
