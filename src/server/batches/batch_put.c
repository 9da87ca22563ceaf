/* batch_put.c: see batch_put.h. */
#include "batches/batch_put.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "json/json_put.h"
#include "retrieve/ingest.h"

/* ---- batches -------------------------------------------------------------------------------------- */

static void put_id(buf *out, const char *key, const char *prefix, int64_t id)
{
    json_put_key(out, key);
    if (id)
        buf_printf(out, "\"%s%lld\"", prefix, (long long)id);
    else
        buf_puts(out, "null");
}

static void put_number(buf *out, const char *key, int64_t v)
{
    json_put_key(out, key);
    if (v)
        buf_printf(out, "%lld", (long long)v);
    else
        buf_puts(out, "null");
}

static void put_openai(buf *out, const store_batch *b)
{
    buf_putc(out, '{');
    put_id(out, "id", BATCH_ID, b->id);
    json_put_text(out, "object", "batch");
    json_put_text(out, "endpoint", b->endpoint);
    json_put_key(out, "errors");
    if (*b->errors)
        buf_printf(out, "{\"object\":\"list\",\"data\":%s}", b->errors);
    else
        buf_puts(out, "null");
    put_id(out, "input_file_id", INGEST_FILE, b->input);
    json_put_text(out, "completion_window", b->window);
    json_put_text(out, "status", batch_status_name(b->status));
    put_id(out, "output_file_id", INGEST_FILE, b->output);
    put_id(out, "error_file_id", INGEST_FILE, b->error);
    for (batch_status s = 0; s < BATCH_N_STATUS; s++) put_number(out, batch_status_time(s), b->at[s]);
    put_number(out, "expires_at", b->expires);
    buf_printf(out,
               ",\"request_counts\":{\"total\":%lld,\"completed\":%lld,\"failed\":%lld},\"metadata\":%s}",
               (long long)b->n_lines, (long long)b->n_completed, (long long)b->n_failed, b->metadata);
}

static void put_date(buf *out, const char *key, int64_t v)
{
    char text[32];
    struct tm tm;
    time_t t = (time_t)v;
    json_put_key(out, key);
    if (v && gmtime_r(&t, &tm) && strftime(text, sizeof text, "\"%Y-%m-%dT%H:%M:%SZ\"", &tm))
        buf_puts(out, text);
    else
        buf_puts(out, "null");
}

static int64_t ended_at(const store_batch *b)
{
    return batch_status_ends(b->status) ? b->at[b->status] : 0;
}

/* What was cancelled or expired is among the failed ones of the store. */
static void put_anthropic(buf *out, const store_batch *b)
{
    bool ended = ended_at(b) != 0;
    const char *state = ended ? "ended" : b->at[BATCH_CANCELLING] ? "canceling" : "in_progress";
    int64_t waits = b->n_lines - b->n_completed - b->n_failed;
    buf_putc(out, '{');
    put_id(out, "id", BATCH_MSG_ID, b->id);
    json_put_text(out, "type", "message_batch");
    json_put_text(out, "processing_status", state);
    buf_printf(
        out,
        ",\"request_counts\":{\"processing\":%lld,\"succeeded\":%lld,\"errored\":%lld,\"canceled\":%lld,"
        "\"expired\":%lld}",
        (long long)waits, (long long)b->n_completed, (long long)(b->n_failed - b->n_missing),
        (long long)(b->status == BATCH_CANCELLED ? b->n_missing : 0),
        (long long)(b->status == BATCH_EXPIRED ? b->n_missing : 0));
    put_date(out, "created_at", b->at[0]);
    put_date(out, "expires_at", b->expires);
    put_date(out, "ended_at", ended_at(b));
    put_date(out, "cancel_initiated_at", b->at[BATCH_CANCELLING]);
    put_date(out, "archived_at", 0);
    json_put_key(out, "results_url");
    if (ended)
        buf_printf(out, "\"/v1/messages/batches/" BATCH_MSG_ID "%lld/results\"}", (long long)b->id);
    else
        buf_puts(out, "null}");
}

void batch_put(buf *out, const store_batch *b)
{
    if (b->dialect == BATCH_ANTHROPIC)
        put_anthropic(out, b);
    else
        put_openai(out, b);
}

void batch_put_fault(buf *out, const batch_fault *f, int64_t line)
{
    json_put_open(out, NULL, '{');
    json_put_text(out, "code", f->code);
    json_put_text(out, "message", f->message);
    json_put_key(out, "param");
    if (f->param)
        json_put_string(out, f->param, strlen(f->param));
    else
        buf_puts(out, "null");
    put_number(out, "line", line);
    buf_putc(out, '}');
}

/* ---- answers -------------------------------------------------------------------------------------- */

static void put_head(buf *out, batch_dialect d, int64_t batch, const store_batch_line *l)
{
    buf_putc(out, '{');
    if (d == BATCH_OPENAI)
        buf_printf(out, "\"id\":\"batch_req_%lld_%lld\"", (long long)batch, (long long)l->n);
    json_put_text(out, "custom_id", l->custom_id);
}

/* An answer is one line, whatever white space it has. */
static void put_body(buf *out, const batch_reply *r)
{
    size_t at = out->len;
    if (r->n)
        buf_append(out, r->body, r->n);
    else
        buf_puts(out, "null");
    if (out->failed) return;
    for (; at < out->len; at++)
        if (out->data[at] == '\n' || out->data[at] == '\r') out->data[at] = ' ';
}

void batch_put_answer(buf *out, batch_dialect d, int64_t batch, const store_batch_line *l,
                      const batch_reply *r)
{
    bool ok = r->status < 300;
    put_head(out, d, batch, l);
    if (d == BATCH_ANTHROPIC) {
        buf_printf(out, ",\"result\":{\"type\":\"%s\",\"%s\":", ok ? "succeeded" : "errored",
                   ok ? "message" : "error");
        put_body(out, r);
        buf_puts(out, "}}");
        return;
    }
    buf_printf(out, ",\"response\":{\"status_code\":%d", r->status);
    json_put_text(out, "request_id", r->request_id);
    json_put_key(out, "body");
    put_body(out, r);
    buf_puts(out, "},\"error\":null}");
}

static void put_none(buf *out, const char *code, const char *message)
{
    buf_puts(out, ",\"response\":null,\"error\":{");
    json_put_text(out, "code", code);
    json_put_text(out, "message", message);
    buf_puts(out, "}}");
}

void batch_put_missing(buf *out, batch_dialect d, int64_t batch, const store_batch_line *l, batch_status ends)
{
    bool cancelled = ends == BATCH_CANCELLED;
    put_head(out, d, batch, l);
    if (d == BATCH_ANTHROPIC)
        buf_printf(out, ",\"result\":{\"type\":\"%s\"}}", cancelled ? "canceled" : "expired");
    else if (cancelled)
        put_none(out, "batch_cancelled", "This request was not executed before the batch was cancelled.");
    else
        put_none(out, "batch_expired",
                 "This request could not be executed before the completion window expired.");
}

void batch_put_unreadable(buf *out, batch_dialect d, int64_t batch, const store_batch_line *l)
{
    static const char why[] = "the line cannot be read again";
    put_head(out, d, batch, l);
    if (d == BATCH_ANTHROPIC) {
        buf_puts(out, ",\"result\":{\"type\":\"errored\",\"error\":{\"type\":\"error\",\"error\":{\"type\":"
                      "\"api_error\"");
        json_put_text(out, "message", why);
        buf_puts(out, "}}}}");
    } else {
        put_none(out, "input_changed", why);
    }
}
