/* eval_cases.c: reading cases; see eval_cases.h. All that was read hangs in one JSON tree, from which the
 * cases borrow; the file of a home is parsed once for all its cases. */
#include "eval/eval_cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "json/json_put.h"
#include "eval/eval_judge.h"

#define FILE_MAX_BYTES (64u << 20)

/* {"homes": {DIR/NAME.json: content}, "cases": [...]} */
static int eval_cases_prepare(eval_cases *cases, shoal_err *err)
{
    if (cases->root) return 0;
    cases->root = json_pack("{s:{},s:[]}", "homes", "cases");
    return cases->root ? 0 : err_nomem(err);
}

static int find_home(eval_cases *cases, const char *dir, const char *name, const json_t **ret, shoal_err *err)
{
    json_t *homes = json_object_get(cases->root, "homes"), *home;
    if (strchr(name, '/')) return err_set(err, SHOAL_EINVALID, "'home' is the name of a file, not a path");
    buf path = {0};
    buf_printf(&path, "%s/%s.json", dir, name);
    int rc = path.failed ? err_nomem(err) : 0;
    home = rc ? NULL : json_object_get(homes, path.data);
    if (!rc && !home) {
        rc = json_parse_file(&home, path.data, FILE_MAX_BYTES, err);
        if (!rc && json_object_set_new(homes, path.data, home)) rc = err_nomem(err);
    }
    buf_done(&path);
    if (!rc) *ret = home;
    return rc;
}

/* ---- the short form: {"text"|"prompt"|"messages", "expected"} ------------------------------------- */

static const char *last_of_user(const json_t *messages)
{
    const char *said = NULL;
    for (size_t i = 0; i < json_array_size(messages); i++) {
        const json_t *m = json_array_get(messages, i);
        const char *role = json_string_value(json_object_get(m, "role"));
        const char *content = json_string_value(json_object_get(m, "content"));
        if (role && content && strcmp(role, "user") == 0) said = content;
    }
    return said;
}

/* A text or texts as a label or a reply, an object as the call. */
static json_t *expect_of(const json_t *expected, const char *kind)
{
    if (json_is_object(expected)) return json_pack("{s:s, s:[O]}", "kind", "calls", "calls", expected);
    if (json_is_array(expected)) return json_pack("{s:s, s:O}", "kind", kind, kind, expected);
    return json_pack("{s:s, s:[O]}", "kind", kind, kind, expected);
}

static int lengthen(json_t *o, shoal_err *err)
{
    const char *kind = json_object_get(o, "text") ? "label" : "text";
    const json_t *messages = json_object_get(o, "messages"), *expected = json_object_get(o, "expected");
    const char *keys[] = {"text", "prompt"};
    int failed = 0;
    for (size_t i = 0; i < 2; i++) {
        json_t *v = json_object_get(o, keys[i]);
        if (v && json_object_get(o, "input"))
            return err_set(err, SHOAL_EINVALID, "give one of 'input', 'text', 'prompt' and 'messages'");
        if (v) failed |= json_object_set(o, "input", v) | json_object_del(o, keys[i]);
    }
    if (messages) {
        const char *said = last_of_user(messages);
        if (!said || json_object_get(o, "input"))
            return err_set(err, SHOAL_EINVALID,
                           "'messages' must be a list with one of the role user, and stand without 'input'");
        failed |= json_object_set_new(o, "input", json_string(said));
    }
    if (expected && json_object_get(o, "expect"))
        return err_set(err, SHOAL_EINVALID, "give 'expect' or 'expected', not both");
    if (expected) failed |= json_object_set_new(o, "expect", expect_of(expected, kind));
    if (expected) failed |= json_object_del(o, "expected");
    return failed ? err_nomem(err) : 0;
}

/* ---- a case --------------------------------------------------------------------------------------- */

static int check_keys(const json_t *o, shoal_err *err)
{
    static const char *const known[] = {"id",    "home",   "context", "pipeline",
                                        "input", "expect", "tags",    "messages"};
    const char *key;
    json_t *v;
    json_object_foreach((json_t *)o, key, v)
    {
        bool found = false;
        for (size_t i = 0; i < sizeof known / sizeof *known; i++) found |= strcmp(key, known[i]) == 0;
        if (!found) return err_set(err, SHOAL_EINVALID, "'%.64s' is not known in a case", key);
    }
    return 0;
}

static int check_tags(const json_t *tags, shoal_err *err)
{
    bool ok = !tags || json_is_array(tags);
    for (size_t i = 0; ok && i < json_array_size(tags); i++) ok = json_is_string(json_array_get(tags, i));
    return ok ? 0 : err_set(err, SHOAL_EINVALID, "'tags' must be a list of texts");
}

static int read_case(eval_cases *cases, json_t *o, const char *dir, eval_case *ret, shoal_err *err)
{
    const char *home = NULL;
    if (!json_is_object(o)) return err_set(err, SHOAL_EINVALID, "a case is a JSON object");
    int rc = lengthen(o, err);
    eval_case c = {.id = "",
                   .expect = json_object_get(o, "expect"),
                   .tags = json_object_get(o, "tags"),
                   .messages = json_object_get(o, "messages")};
    if (!rc) rc = check_keys(o, err);
    if (!rc) rc = json_get_str(o, "id", &c.id, err);
    if (!rc) rc = json_get_str(o, "input", &c.input, err);
    if (!rc) rc = json_get_str(o, "pipeline", &c.pipeline, err);
    if (!rc) rc = json_get_str(o, "home", &home, err);
    if (!rc && !c.input) rc = err_set(err, SHOAL_EINVALID, "'input' is missing");
    if (!rc) rc = check_tags(c.tags, err);
    if (!rc) rc = (cases->check ? cases->check : eval_expect_check)(c.expect, err);
    c.context = json_object_get(o, "context");
    if (!rc && home && c.context) rc = err_set(err, SHOAL_EINVALID, "give 'home' or 'context', not both");
    if (!rc && home) rc = find_home(cases, dir, home, &c.context, err);
    if (!rc) *ret = c;
    return rc;
}

static int add_line(eval_cases *cases, const char *line, size_t len, const char *dir, shoal_err *err)
{
    json_t *o = NULL;
    eval_case *v = realloc(cases->v, (cases->n + 1) * sizeof *v);
    if (!v) return err_nomem(err);
    cases->v = v;
    int rc = json_parse(&o, line, len, "the case", err);
    if (rc) return rc;
    if (json_array_append_new(json_object_get(cases->root, "cases"), o)) return err_nomem(err);
    rc = read_case(cases, o, dir, &cases->v[cases->n], err);
    if (!rc) cases->n++;
    return rc;
}

static int add_lines(eval_cases *cases, const buf *text, const char *path, const char *dir, shoal_err *err)
{
    const char *s = text->len ? text->data : "", *end = s + text->len;
    for (size_t number = 1; s < end; number++) {
        const char *stop = memchr(s, '\n', (size_t)(end - s));
        size_t len = (size_t)((stop ? stop : end) - s);
        if (strspn(s, " \t\r") < len) {
            int rc = add_line(cases, s, len, dir, err);
            if (rc) return err_prefix(err, rc, "%s:%zu", path, number);
        }
        s += len + 1;
    }
    return 0;
}

int eval_cases_read(eval_cases *cases, const char *path, const char *homes_dir, shoal_err *err)
{
    buf text = {0}, dir = {0};
    const char *slash = strrchr(path, '/');
    if (homes_dir)
        buf_puts(&dir, homes_dir);
    else
        buf_printf(&dir, "%.*shomes", slash ? (int)(slash - path) + 1 : 0, path);
    int rc = dir.failed ? err_nomem(err) : eval_cases_prepare(cases, err);
    if (!rc) rc = file_read(&text, path, FILE_MAX_BYTES, err);
    if (!rc) rc = add_lines(cases, &text, path, dir.data, err);
    buf_done(&text);
    buf_done(&dir);
    return rc;
}

void eval_cases_done(eval_cases *cases)
{
    json_decref(cases->root);
    free(cases->v);
    *cases = (eval_cases){0};
}

int eval_case_put_request(const eval_case *c, const char *pipeline, buf *out)
{
    if (c->pipeline) pipeline = c->pipeline;
    buf_puts(out, "{");
    if (pipeline) {
        json_put_text(out, "pipeline", pipeline);
        buf_putc(out, ',');
    }
    json_put_text(out, "input", c->input);
    if (c->context) {
        buf_puts(out, ",\"context\":");
        json_put(out, c->context);
    }
    return buf_putc(out, '}');
}
