/* cli_process_live.c: a streamed answer of /v1/process, whose text is shown as it comes
 * (docs/http.md). */
#include <string.h>

#include "client/sse.h"
#include "json/json.h"
#include "command/cli_process.h"

typedef struct reading {
    http_client client;
    const cli_process_ask *ask;
    buf answer; /* the last event's, or an error's */
    bool ended; /* it has come */
} reading;

static bool is_called(const sse_event *e, const char *name)
{
    return e->n_name == strlen(name) && memcmp(e->name, name, e->n_name) == 0;
}

static void take_event(reading *r, const sse_event *e)
{
    json_t *o = NULL;
    const char *data = e->data;
    size_t n = e->n_data;
    bool is_text = is_called(e, "text");
    bool is_error = !e->name && n > 9 && memcmp(data, "{\"error\":", 9) == 0;
    if (is_text && json_parse(&o, data, n, "event", NULL) == 0) {
        const json_t *text = json_object_get(o, "text");
        if (json_is_string(text))
            r->ask->live(r->ask->user, json_string_value(text), json_string_length(text));
    } else if (is_error || is_called(e, "answer")) {
        buf_clear(&r->answer);
        buf_append(&r->answer, data, n);
        r->ended = true;
        if (is_error) r->client.status = 500;
    }
    json_decref(o);
}

/* The whole events that have come: lines up to an empty one. */
static void cli_process_live_on_piece(void *user, size_t n_bytes)
{
    reading *r = user;
    buf *b = &r->client.body;
    sse_event e;
    size_t at = 0;
    if (r->client.status != 200) return; /* its body is a reason, in one piece */
    for (size_t n; (n = sse_read(&e, b->data + at, b->len - at)) > 0; at += n)
        if (e.data) take_event(r, &e);
    buf_consume(b, at);
}

int cli_process_live(const http_where *where, const http_ask *ask, const cli_process_ask *p, int *ret_status,
                     buf *ret_body, shoal_err *err)
{
    reading r = {.ask = p};
    http_client_init(&r.client, where);
    r.client.piece = cli_process_live_on_piece;
    r.client.piece_user = &r;
    int rc = http_client_exchange(&r.client, ask, err);
    const buf *whole = r.ended ? &r.answer : &r.client.body; /* what is refused comes in one piece */
    if (rc == 0 && !r.ended && r.client.status == 200)
        rc = err_set(err, SHOAL_EPROTOCOL, "the answer ended before its last event");
    if (rc == 0 && (r.answer.failed || buf_append(ret_body, whole->data ? whole->data : "", whole->len) != 0))
        rc = err_nomem(err);
    *ret_status = r.client.status;
    http_client_done(&r.client);
    buf_done(&r.answer);
    return rc;
}
