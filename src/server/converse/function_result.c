/* function_result.c: what functions answered, and the devices that a request names; see function_table.h. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/utf8.h"
#include "converse/function_table_impl.h"
#include "json/json.h"
#include "json/schema_check.h"

enum { WHY_MAX_BYTES = 200 };

/* ---- results ------------------------------------------------------------------------------------- */

/* "data.failed": member by member; NULL: there is none. */
static const json_t *at_path(const json_t *o, const char *path)
{
    char key[64];
    while (o && *path) {
        size_t n = strcspn(path, ".");
        if (n >= sizeof key) return NULL;
        memcpy(key, path, n);
        key[n] = '\0';
        o = json_object_get(o, key);
        path += n + (path[n] == '.');
    }
    return o;
}

static bool is_something(const json_t *v)
{
    if (!v || json_is_null(v) || json_is_false(v)) return false;
    if (json_is_string(v)) return json_string_length(v) > 0;
    return json_is_array(v) || json_is_object(v) ? json_array_size(v) + json_object_size(v) > 0 : true;
}

static bool is_value(const json_t *v, const json_t *wanted)
{
    size_t steps = 64, i;
    const json_t *one;
    const char *s = json_string_value(wanted);
    if (s && strcmp(s, "*") == 0) return is_something(v);
    json_array_foreach(wanted, i, one) if (is_value(v, one)) return true;
    if (s && json_is_string(v)) return strcasecmp(s, json_string_value(v)) == 0;
    return v && !json_is_array(wanted) && json_same(v, wanted, &steps);
}

static bool some_holds(const json_t *facts, const json_t *o)
{
    const char *path;
    json_t *wanted;
    json_object_foreach((json_t *)(uintptr_t)facts, path, wanted) if (is_value(at_path(o, path), wanted))
    {
        return true;
    }
    return false;
}

/* A list of what was done that has nothing in it. */
static bool some_empty(const json_t *paths, const json_t *o)
{
    size_t i;
    const json_t *path;
    json_array_foreach(paths, i, path)
    {
        const json_t *v = at_path(o, json_string_value(path));
        if (json_is_array(v) && !json_array_size(v)) return true;
    }
    return false;
}

static bool begins_with_one(const json_t *words, const char *s)
{
    size_t i;
    const json_t *w;
    json_array_foreach(words, i, w)
    {
        const char *word = json_string_value(w);
        size_t n = word ? strlen(word) : 0;
        unsigned char next = word && strncasecmp(s, word, n) == 0 ? (unsigned char)s[n] : 'x';
        if (n && next < 0x80 && !(next >= 'a' && next <= 'z') && !(next >= 'A' && next <= 'Z')) return true;
    }
    return false;
}

/* One line of at most WHY_MAX_BYTES, without the point at its end. */
static const char *as_line(const char *s, size_t n, arena *a)
{
    while (n && (unsigned char)*s <= ' ') s++, n--;
    while (n && ((unsigned char)s[n - 1] <= ' ' || s[n - 1] == '.')) n--;
    bool cut = n > WHY_MAX_BYTES;
    size_t keep = cut ? WHY_MAX_BYTES : n;
    while (cut && keep && ((unsigned char)s[keep] & 0xc0) == 0x80) keep--;
    char *line = arena_printf(a, "%.*s%s", (int)keep, s, cut ? "..." : "");
    for (char *p = line; p && *p; p++)
        if ((unsigned char)*p < ' ' || *p == 0x7f) *p = ' ';
    return line;
}

static int say_why(const char **ret, const json_t *why, const json_t *o, const char *text, arena *a)
{
    size_t i;
    const json_t *path;
    json_array_foreach(why, i, path)
    {
        const json_t *v = at_path(o, json_string_value(path) ? json_string_value(path) : "?");
        if (!json_is_string(v) || !json_string_length(v)) continue;
        *ret = as_line(json_string_value(v), json_string_length(v), a);
        return *ret ? 0 : SHOAL_ENOMEM;
    }
    *ret = as_line(text, strlen(text), a);
    return *ret ? 0 : SHOAL_ENOMEM;
}

int function_table_result(result_kind *ret, const char **ret_why, const function_table *t, const char *result,
                          arena *a)
{
    json_t *o = NULL;
    int rc = json_parse(&o, result, strlen(result), "result", NULL);
    if (rc == SHOAL_ENOMEM) return rc;
    const char *text = json_is_string(o) ? json_string_value(o) : result;
    text += strspn(text, " \t\r\n");
    *ret = RESULT_SAID;
    bool nothing = !*text || json_is_null(o) ||
                   (json_is_object(o) && (!json_object_size(o) || some_empty(t->empty, o))) ||
                   (json_is_array(o) && !json_array_size(o));
    if (json_is_object(o) && some_holds(t->failed, o))
        *ret = RESULT_FAILED;
    else if (nothing)
        *ret = RESULT_NONE;
    else if (json_is_object(o))
        *ret = some_holds(t->done, o) ? RESULT_DONE : RESULT_SAID;
    else if (json_is_true(o) || begins_with_one(t->done_words, text))
        *ret = RESULT_DONE;
    else if (json_is_false(o) || begins_with_one(t->failed_words, text))
        *ret = RESULT_FAILED;
    rc = say_why(ret_why, t->why, o, text, a);
    json_decref(o);
    return rc;
}

/* A sentence about what did not succeed, or did not say so; "": it did. */
static int say_result(const char **ret, result_kind *kind, const function_table *t, const made_call *m,
                      arena *a)
{
    const char *why = "";
    *kind = RESULT_NONE;
    *ret = "";
    if (m->result && function_table_result(kind, &why, t, m->result, a)) return SHOAL_ENOMEM;
    if (*kind == RESULT_DONE) return 0;
    function_reply say = *kind == RESULT_NONE     ? REPLY_no_result
                         : *kind == RESULT_FAILED ? REPLY_failed
                                                  : REPLY_said;
    *ret = function_table_say(t, say, a, "function", m->name, "why", why, (char *)NULL);
    return *ret ? 0 : SHOAL_ENOMEM;
}

static void put_sentence(buf *out, const char *s)
{
    if (out->len && *s) buf_putc(out, ' ');
    buf_puts(out, s);
}

int function_table_report(result_report *ret, const function_table *t, const made_call *made, size_t n,
                          arena *a)
{
    buf text = {0}, done = {0};
    result_report r = {.well = true};
    int rc = 0;
    for (size_t i = 0; i < n && !rc; i++) {
        const char *sentence;
        result_kind kind;
        if (function_table_tells_states(t, made[i].name)) continue;
        rc = say_result(&sentence, &kind, t, &made[i], a);
        if (rc) break;
        put_sentence(&text, sentence);
        r.failed |= kind == RESULT_FAILED || kind == RESULT_NONE;
        r.well &= kind == RESULT_DONE;
        if (kind == RESULT_DONE) buf_printf(&done, "%s%s", done.len ? ", " : "", made[i].name);
    }
    const char *what =
        done.len ? function_table_say(t, REPLY_done, a, "functions", buf_text(&done), (char *)NULL) : "";
    put_sentence(&text, what ? what : "");
    r.text = rc || !what || text.failed || done.failed ? NULL : arena_strdup(a, buf_text(&text));
    buf_done(&text);
    buf_done(&done);
    *ret = r;
    return r.text ? 0 : SHOAL_ENOMEM;
}

static int report_case(const verify_reporter *self, verify_case *k, arena *a)
{
    const function_reporter *r = (const function_reporter *)self;
    result_report says;
    if (function_table_report(&says, r->table, k->results, k->n_made, a)) return SHOAL_ENOMEM;
    k->report = says.text;
    k->failed = says.failed;
    return 0;
}

int function_reporter_open(function_reporter *ret, const char *path, shoal_err *err)
{
    ret->base.report = report_case;
    return function_table_load(&ret->table, path, err);
}

void function_reporter_close(function_reporter *r)
{
    function_table_free(r->table);
}

/* ---- devices ------------------------------------------------------------------------------------- */

/* What the name ends in tells what it is; NULL: nothing known. */
static const char *domain_by_word(const function_table *t, const char *name)
{
    const char *domain, *best = NULL;
    size_t n = strlen(name), longest = 0, i;
    json_t *words;
    const json_t *w;
    json_object_foreach((json_t *)(uintptr_t)t->words, domain, words) json_array_foreach(words, i, w)
    {
        const char *word = json_string_value(w);
        size_t len = word ? strlen(word) : 0;
        bool ends = len && len <= n && strcasecmp(name + n - len, word) == 0 &&
                    (len == n || name[n - len - 1] == ' ');
        if (ends && len > longest) best = domain, longest = len;
    }
    return best;
}

static int add_allowed(device_list *to, const function_table *t, const json_t *schema, arena *a)
{
    size_t i;
    const json_t *v;
    int rc = 0;
    json_array_foreach(json_object_get(schema, "enum"), i, v)
    {
        const char *s = json_string_value(v);
        if (!s || !*s || rc) continue;
        const char *domain =
            strpbrk(s, " .") && strchr(s, '.') && !strchr(s, ' ') ? "" : domain_by_word(t, s);
        if (domain) rc = device_list_add(to, domain, s, a);
    }
    return rc;
}

int function_table_devices(device_list *ret, const function_table *t, const chat_case *k, arena *a)
{
    ret->n = 0;
    int rc = device_list_read(ret, k->system, a);
    bool listed = ret->n > 0;
    for (size_t i = 0; i < k->n_functions && !rc && !listed; i++) {
        const char *key;
        json_t *schema;
        json_object_foreach(json_object_get(k->functions[i].parameters, "properties"), key, schema)
        {
            if (!rc && function_table_has(t->parameters, key)) rc = add_allowed(ret, t, schema, a);
        }
    }
    for (size_t i = 0; i < k->n_made && !rc; i++)
        if (k->made[i].result && function_table_tells_states(t, k->made[i].name)) {
            json_t *o = NULL;
            rc = json_parse(&o, k->made[i].result, strlen(k->made[i].result), "result", NULL);
            const char *text = json_string_value(json_object_get(o, "result"));
            if (!text) text = json_string_value(o);
            rc = rc == SHOAL_ENOMEM ? rc : device_list_read(ret, text ? text : k->made[i].result, a);
            json_decref(o);
        }
    return rc;
}

int function_table_add_offered(device_list *to, const function_table *t, const chat_case *k, arena *a)
{
    const char *function;
    json_t *line;
    int rc = 0;
    json_object_foreach((json_t *)(uintptr_t)t->offered, function, line)
    {
        if (!rc && json_is_string(line) && chat_case_function(k, function))
            rc = device_list_read(to, json_string_value(line), a);
    }
    return rc;
}
