/* process_events.c: a run as events; see process_events.h. */
#include "process/process_events.h"

#include <string.h>

#include "json/json.h"

void process_events_stage(buf *out, const json_t *entry)
{
    buf_puts(out, "event: stage\ndata: ");
    if (json_put_digits(out, entry, 15)) out->failed = true;
    buf_puts(out, "\n\n");
}

void process_events_text(buf *out, const char *text, size_t n)
{
    if (n == 0) return;
    buf_puts(out, "event: text\ndata: {\"object\":\"shoal.process.text\",\"text\":");
    json_put_string(out, text, n);
    buf_puts(out, "}\n\n");
}

void process_events_answer(buf *out, const char *id, double ms, const char *body, size_t n)
{
    buf_puts(out, "event: answer\ndata: {\"id\":");
    json_put_string(out, id, strlen(id));
    buf_printf(out, ",\"ms\":%.3f,", ms);
    buf_append(out, body + 1, n - 1); /* without its '{' */
    buf_puts(out, "\n\ndata: [DONE]\n\n");
}

void process_events_replay(buf *out, const char *body, size_t n)
{
    json_t *answer = NULL;
    size_t i;
    const json_t *entry;
    if (json_parse(&answer, body, n, "answer", NULL)) out->failed = true;
    json_array_foreach(json_object_get(answer, "trace"), i, entry) process_events_stage(out, entry);
    const json_t *text = json_object_get(answer, "text");
    if (text) process_events_text(out, json_string_value(text), json_string_length(text));
    json_decref(answer);
}
