/* cli_process_live.c: a streamed answer of /v1/process, whose stages and text are shown as they come
 * (docs/http.md). */
#define _GNU_SOURCE
#include <string.h>

#include "json/json.h"
#include "command/cli_process.h"

typedef struct reading {
    http_client client;
    const cli_process_ask *ask;
    buf answer; /* the last event's, or an error's */
    bool ended; /* it has come */
} reading;

/* data[n]: JSON of an event of this name. */
static void take_event(reading *r, const char *name, size_t n_name, const char *data, size_t n)
{
    json_t *o = NULL;
    bool is_text = n_name == 4 && memcmp(name, "text", 4) == 0;
    bool is_stage = n_name == 5 && memcmp(name, "stage", 5) == 0;
    bool is_error = n_name == 0 && n > 9 && memcmp(data, "{\"error\":", 9) == 0;
    if (is_text && json_parse(&o, data, n, "event", NULL) == 0) {
        const json_t *text = json_object_get(o, "text");
        if (json_is_string(text))
            r->ask->live(r->ask->user, json_string_value(text), json_string_length(text));
    } else if (is_stage && json_parse(&o, data, n, "event", NULL) == 0) {
        r->ask->stage(r->ask->user, o);
    } else if (is_error || (n_name == 6 && memcmp(name, "answer", 6) == 0)) {
        buf_clear(&r->answer);
        buf_append(&r->answer, data, n);
        r->ended = true;
        if (is_error) r->client.status = 500;
    }
    json_decref(o);
}

/* The whole events that have come: lines up to an empty one. */
static void on_piece(void *user, size_t n_bytes)
{
    reading *r = user;
    buf *b = &r->client.body;
    const char *end;
    size_t at = 0;
    if (r->client.status != 200) return; /* its body is a reason, in one piece */
    while ((end = memmem(b->data + at, b->len - at, "\n\n", 2))) {
        const char *s = b->data + at, *name = "", *data = NULL;
        size_t n_name = 0;
        if ((size_t)(end - s) > 7 && memcmp(s, "event: ", 7) == 0) {
            name = s + 7;
            n_name = strcspn(name, "\n");
            s = name + n_name + 1;
        }
        if (end > s + 6 && memcmp(s, "data: ", 6) == 0) data = s + 6;
        if (data) take_event(r, name, n_name, data, (size_t)(end - data));
        at = (size_t)(end + 2 - b->data);
    }
    buf_consume(b, at);
}

int cli_process_live(const http_where *where, const http_ask *ask, const cli_process_ask *p, int *ret_status,
                     buf *ret_body, shoal_err *err)
{
    reading r = {.ask = p};
    http_client_init(&r.client, where);
    r.client.piece = on_piece;
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
