/* process_events.c: a run as events; see process_events.h. */
#include "process/process_events.h"

#include <string.h>

#include "json/json.h"
#include "json/json_put.h"
#include "messages/event.h"
#include "process/process.h"

void process_events_stage(buf *out, const char *entry)
{
    event_begin(out, EVENT_DATA, "stage");
    buf_puts(out, entry);
    event_end(out);
}

void process_events_text(buf *out, const char *text, size_t n)
{
    if (n == 0) return;
    event_begin(out, EVENT_DATA, "text");
    buf_puts(out, "{\"object\":\"shoal.process.text\",\"text\":");
    json_put_string(out, text, n);
    buf_putc(out, '}');
    event_end(out);
}

void process_events_answer(buf *out, const char *id, double ms, const char *body, size_t n)
{
    event_begin(out, EVENT_DATA, "answer");
    buf_putc(out, '{');
    json_put_text(out, "id", id);
    buf_printf(out, ",\"ms\":%.3f,", ms);
    buf_append(out, body + 1, n - 1); /* without its '{' */
    event_end(out);
    event_put_done(out);
}

void process_events_replay(buf *out, const char *body, size_t n)
{
    json_t *answer = NULL;
    size_t i;
    const json_t *entry;
    if (json_parse(&answer, body, n, "answer", NULL)) out->failed = true;
    buf text_of = {0};
    json_array_foreach(json_object_get(answer, "trace"), i, entry)
    {
        buf_clear(&text_of);
        json_put_digits(&text_of, entry, PROCESS_DIGITS);
        process_events_stage(out, buf_text(&text_of));
    }
    out->failed |= text_of.failed;
    buf_done(&text_of);
    const json_t *text = json_object_get(answer, "text");
    if (text) process_events_text(out, json_string_value(text), json_string_length(text));
    json_decref(answer);
}
