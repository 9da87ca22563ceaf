/* judge.c: answers put together, stripped and compared. */
#define _GNU_SOURCE
#include "lab/judge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/sse.h"
#include "json/json.h"

const char *const judge_left_out[] = {
    "id",
    "created",
    "created_at",
    "ms",
    "trace[].ms",
    "trace[].at_ms",
    "trace[].queue_ms",
    "trace[].prefill_ms",
    "trace[].decode_ms",
    "trace[].cpu_ms",
    "trace[].replica",
    "usage.prompt_tokens_details",
    "usage.input_tokens_details",
    "output[].id",
    "usage.completion_tokens_details.accepted_prediction_tokens",
    "usage.completion_tokens_details.rejected_prediction_tokens",
    "choices[].message.tool_calls[].id",
    "choices[].delta.tool_calls[].id",
    NULL,
};

/* The texts that streams send in pieces. */
static const char *const in_pieces[] = {"content", "reasoning_content", "refusal", "arguments", "text"};

/* ---- what may differ ---- */

static void leave_out(json_t *v, const char *path)
{
    size_t n = strcspn(path, ".["), i;
    json_t *item;
    char key[64];
    snprintf(key, sizeof key, "%.*s", (int)n, path);
    json_t *at = json_object_get(v, key);
    if (!path[n]) {
        json_object_del(v, key);
    } else if (path[n] == '.') {
        leave_out(at, path + n + 1);
        if (json_is_object(at) && json_object_size(at) == 0) json_object_del(v, key);
    } else {
        json_array_foreach(at, i, item) leave_out(item, path + n + 3); /* behind "[]." */
    }
}

/* ---- events put together ---- */

static bool comes_in_pieces(const char *key)
{
    for (size_t i = 0; i < sizeof in_pieces / sizeof *in_pieces; i++)
        if (strcmp(key, in_pieces[i]) == 0) return true;
    return false;
}

static int merge(json_t *into, const json_t *from);

static int append_text(json_t *into, const json_t *more)
{
    buf b = {0};
    buf_append(&b, json_string_value(into), json_string_length(into));
    buf_append(&b, json_string_value(more), json_string_length(more));
    int rc = b.failed ? -1 : b.len ? json_string_setn(into, b.data, b.len) : 0;
    buf_done(&b);
    return rc;
}

/* Items that say their index belong to the one that said the same; others follow. */
static int merge_list(json_t *into, const json_t *from)
{
    size_t i, k;
    json_t *item, *known;
    json_array_foreach(from, i, item)
    {
        json_t *index = json_object_get(item, "index"), *same = NULL;
        json_array_foreach(into, k, known) if (index && json_equal(json_object_get(known, "index"), index))
            same = known;
        int rc = same ? merge(same, item) : json_array_append_new(into, json_deep_copy(item));
        if (rc != 0) return rc;
    }
    return 0;
}

static int merge(json_t *into, const json_t *from)
{
    const char *key;
    json_t *v;
    int rc = 0;
    json_object_foreach((json_t *)from, key, v)
    {
        json_t *old = json_object_get(into, key);
        if (json_is_null(v) && old) continue;
        if (json_is_object(v) && json_is_object(old))
            rc = merge(old, v);
        else if (json_is_array(v) && json_is_array(old))
            rc = merge_list(old, v);
        else if (json_is_string(v) && json_is_string(old) && comes_in_pieces(key))
            rc = append_text(old, v);
        else
            rc = json_object_set_new(into, key, json_deep_copy(v));
        if (rc != 0) return rc;
    }
    return 0;
}

static int not_whole(char *why, size_t cap, const char *sentence, const json_t *error)
{
    const char *m = error ? json_string_value(json_object_get(error, "message")) : NULL;
    snprintf(why, cap, "%s%s%s", sentence, m ? ": " : "", m ? m : "");
    return SHOAL_EPROTOCOL;
}

/* Every event of an answer says the same of these; an answer that went on elsewhere does as well. */
static bool is_of_another(const json_t *all, const json_t *event)
{
    static const char *const names[] = {"id", "created", "model"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const json_t *was = json_object_get(all, names[i]), *is = json_object_get(event, names[i]);
        if (was && is && !json_equal(was, is)) return true;
    }
    return false;
}

/* One event's data. */
static int take_event(json_t *all, const char *data, size_t n, char *why, size_t cap)
{
    json_t *event = NULL;
    shoal_err err;
    int rc = json_parse(&event, data, n, "event", &err);
    if (rc != 0) return not_whole(why, cap, err.message, NULL);
    const json_t *error = json_object_get(event, "error");
    if (error)
        rc = not_whole(why, cap, "error event", error);
    else if (is_of_another(all, event))
        rc = not_whole(why, cap, "an event of another answer", NULL);
    else if (!json_is_object(event) || merge(all, event) != 0)
        rc = not_whole(why, cap, "an event that is no object", NULL);
    json_decref(event);
    return rc;
}

static int take_stream(json_t *all, const char *body, size_t n, char *why, size_t cap)
{
    bool ended = false;
    int rc = 0;
    sse_event e;
    for (size_t len; rc == 0 && (len = sse_read(&e, body, n)) > 0; body += len, n -= len) {
        if (!e.data) continue;
        if (ended) return not_whole(why, cap, "an event behind [DONE]", NULL);
        ended = sse_is_done(&e);
        if (!ended) rc = take_event(all, e.data, e.n_data, why, cap);
    }
    if (rc == 0 && !ended) rc = not_whole(why, cap, "the stream ends without [DONE]", NULL);
    return rc;
}

/* ---- the whole ---- */

int judge_canon(buf *ret, const char *body, size_t n, bool stream, char *why, size_t why_cap)
{
    json_t *all = stream ? json_object() : NULL;
    shoal_err err;
    int rc = 0;
    if (stream)
        rc = all ? take_stream(all, body, n, why, why_cap) : not_whole(why, why_cap, "out of memory", NULL);
    else if (json_parse(&all, body, n, "answer", &err) != 0)
        rc = not_whole(why, why_cap, err.message, NULL);
    else if (json_object_get(all, "error") && !json_is_null(json_object_get(all, "error")))
        rc = not_whole(why, why_cap, "error", json_object_get(all, "error"));
    for (const char *const *p = judge_left_out; rc == 0 && *p; p++) leave_out(all, *p);
    char *text = rc == 0 ? json_dumps(all, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY) : NULL;
    if (rc == 0 && (!text || buf_puts(ret, text) != 0)) rc = not_whole(why, why_cap, "out of memory", NULL);
    free(text);
    json_decref(all);
    return rc;
}

void judge_difference(const char *want, const char *got, char *ret, size_t cap)
{
    size_t at = 0, back = 0;
    while (want[at] && want[at] == got[at]) at++;
    while (back < 12 && back < at) back++;
    snprintf(ret, cap, "at byte %zu: \"%.32s\" is not \"%.32s\"", at, got + at - back, want + at - back);
    for (char *p = ret; *p; p++)
        if ((unsigned char)*p < 32 || (unsigned char)*p > 126) *p = '?';
}
