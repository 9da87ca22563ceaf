/* chat_talk.c: see chat_talk.h. */
#define _GNU_SOURCE
#include "repl/chat_talk.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/file.h"
#include "json/json.h"
#include "base/utf8.h"

enum { TALK_MAX_BYTES = 16 << 20 };

/* ---- messages ------------------------------------------------------------------------------------------ */

int chat_talk_add(chat_talk *t, const char *role, const char *content, const char *calls, shoal_err *err)
{
    if (t->n == CHAT_MESSAGES_MAX)
        return err_set(err, SHOAL_ELIMIT,
                       "the conversation has %d messages, which is all that fits: /clear begins anew",
                       CHAT_MESSAGES_MAX);
    if (content && !utf8_valid(content, strlen(content), NULL))
        return err_set(err, SHOAL_EINVALID, "what was said is not UTF-8");
    chat_message m = {
        .role = role, .content = strdup(content ? content : ""), .calls = calls ? strdup(calls) : NULL};
    if (!m.content || (calls && !m.calls)) {
        free(m.content);
        free(m.calls);
        return err_nomem(err);
    }
    t->messages[t->n++] = m;
    return 0;
}

static void free_message(chat_message *m)
{
    free(m->content);
    free(m->calls);
    *m = (chat_message){0};
}

void chat_talk_cut(chat_talk *t, size_t n)
{
    while (t->n > n) free_message(&t->messages[--t->n]);
}

void chat_talk_done(chat_talk *t)
{
    chat_talk_cut(t, 0);
}

static bool has_system(const chat_talk *t)
{
    return t->n > 0 && strcmp(t->messages[0].role, "system") == 0;
}

const char *chat_talk_system(const chat_talk *t)
{
    return has_system(t) ? t->messages[0].content : NULL;
}

int chat_talk_set_system(chat_talk *t, const char *text, shoal_err *err)
{
    bool has = has_system(t);
    /* what chat_talk_add would refuse, it does with its words */
    if (*text && ((!has && t->n == CHAT_MESSAGES_MAX) || !utf8_valid(text, strlen(text), NULL)))
        return chat_talk_add(t, "system", text, NULL, err);
    char *copy = *text ? strdup(text) : NULL;
    if (*text && !copy) return err_nomem(err);
    if (has) free_message(&t->messages[0]);
    if (has && !copy) memmove(t->messages, t->messages + 1, --t->n * sizeof *t->messages);
    if (!has && copy) memmove(t->messages + 1, t->messages, t->n++ * sizeof *t->messages);
    if (copy) t->messages[0] = (chat_message){.role = "system", .content = copy};
    return 0;
}

/* ---- JSON ---------------------------------------------------------------------------------------------- */

static json_t *one_json(const chat_message *m)
{
    json_t *o = json_pack("{s:s, s:s}", "role", m->role, "content", m->content), *calls = NULL;
    if (!o || !m->calls) return o;
    if (strcmp(m->role, "tool") == 0)
        json_object_set_new(o, "tool_call_id", json_string(m->calls));
    else if (json_parse(&calls, m->calls, strlen(m->calls), "calls", NULL) == 0)
        json_object_set_new(o, "tool_calls", calls);
    return o;
}

/* Behind calls that nobody answered. */
static void put_undone(json_t *all, const json_t *message)
{
    size_t i;
    json_t *call;
    json_array_foreach(json_object_get(message, "tool_calls"), i, call)
    {
        json_t *id = json_object_get(call, "id");
        if (json_is_string(id))
            json_array_append_new(all,
                                  json_pack("{s:s, s:s, s:O}", "role", "tool", "content",
                                            "This call was shown and not carried out.", "tool_call_id", id));
    }
}

json_t *chat_talk_json(const chat_talk *t)
{
    json_t *all = json_array();
    for (size_t i = 0; all && i < t->n; i++) {
        json_t *o = one_json(&t->messages[i]);
        if (json_array_append_new(all, o) != 0) {
            json_decref(all);
            return NULL;
        }
        bool answered = i + 1 < t->n && strcmp(t->messages[i + 1].role, "tool") == 0;
        if (t->messages[i].calls && !answered && strcmp(t->messages[i].role, "tool") != 0) put_undone(all, o);
    }
    return all;
}

/* What was written by this: {"model", "messages"} and nothing else. A request that somebody wrote has more.
 */
static bool is_saved(const char *path)
{
    json_t *o = NULL;
    bool is = json_parse_file(&o, path, TALK_MAX_BYTES, NULL) == 0 && json_object_size(o) == 2 &&
              json_is_string(json_object_get(o, "model")) && json_is_array(json_object_get(o, "messages"));
    json_decref(o);
    return is;
}

int chat_talk_save(const chat_talk *t, const char *model, const char *path, shoal_err *err)
{
    struct stat there;
    bool is_there = lstat(path, &there) == 0;
    if (is_there && !(S_ISREG(there.st_mode) && (there.st_size == 0 || is_saved(path))))
        return err_set(err, SHOAL_EINVALID,
                       "%s exists and is no conversation that was saved: give another name, or remove it",
                       path);
    json_t *o = json_pack("{s:s, s:o}", "model", model, "messages", chat_talk_json(t));
    char *text = o ? json_dumps(o, JSON_INDENT(1)) : NULL;
    file_writer *w = NULL;
    int rc = text ? file_writer_open(&w, path, err) : err_nomem(err);
    if (rc == 0) rc = file_writer_write(w, text, strlen(text), err);
    if (rc == 0) rc = file_writer_write(w, "\n", 1, err);
    if (rc == 0) rc = file_writer_commit(w, err);
    file_writer_close(w);
    free(text);
    json_decref(o);
    return rc;
}

/* ---- reading ------------------------------------------------------------------------------------------- */

static const char *role_of(const json_t *m)
{
    static const char *const roles[] = {"system", "user", "assistant", "tool"};
    const char *role = json_string_value(json_object_get(m, "role"));
    for (size_t i = 0; role && i < sizeof roles / sizeof *roles; i++)
        if (strcmp(role, roles[i]) == 0) return roles[i];
    return NULL;
}

static int take_message(chat_talk *t, const json_t *m, size_t i, const char *what, shoal_err *err)
{
    const char *role = role_of(m);
    const json_t *content = json_object_get(m, "content"), *calls = json_object_get(m, "tool_calls");
    if (!role)
        return err_set(err, SHOAL_EFORMAT,
                       "%s: messages[%zu] has no role that is system, user, assistant or tool", what, i);
    if (strcmp(role, "system") == 0 && i > 0)
        return err_set(err, SHOAL_EFORMAT, "%s: messages[%zu]: a system message can only be the first", what,
                       i);
    if (!json_is_string(content) && !(json_is_array(calls) && (!content || json_is_null(content))))
        return err_set(err, SHOAL_EFORMAT, "%s: messages[%zu] has no content that is text", what, i);
    if (strcmp(role, "tool") == 0)
        return chat_talk_add(t, role, json_string_value(content),
                             json_string_value(json_object_get(m, "tool_call_id")), err);
    bool has_calls = strcmp(role, "assistant") == 0 && json_is_array(calls) && json_array_size(calls);
    char *text = has_calls ? json_dumps(calls, JSON_COMPACT) : NULL;
    if (has_calls && !text) return err_nomem(err);
    int rc = chat_talk_add(t, role, json_string_value(content), text, err);
    free(text);
    return rc;
}

int chat_talk_parse(chat_talk *t, const char *text, size_t n, const char *what, shoal_err *err)
{
    json_t *o = NULL, *m;
    chat_talk *read = calloc(1, sizeof *read);
    size_t i;
    int rc = read ? json_parse(&o, text, n, what, err) : err_nomem(err);
    const json_t *list = json_is_object(o) ? json_object_get(o, "messages") : o;
    if (rc == 0 && !json_is_array(list))
        rc = err_set(err, SHOAL_EFORMAT,
                     "%s holds no conversation: {\"messages\": [{\"role\", \"content\"}]}", what);
    json_array_foreach((json_t *)(uintptr_t)list, i, m) if (rc == 0) rc = take_message(read, m, i, what, err);
    if (rc == 0) {
        chat_talk_done(t);
        *t = *read;
    } else if (read) {
        chat_talk_done(read);
    }
    free(read);
    json_decref(o);
    return rc;
}

int chat_talk_load(chat_talk *t, const char *path, shoal_err *err)
{
    buf text = {0};
    int rc = file_read(&text, path, TALK_MAX_BYTES, err);
    if (rc == 0) rc = chat_talk_parse(t, text.data ? text.data : "", text.len, path, err);
    buf_done(&text);
    return rc;
}
