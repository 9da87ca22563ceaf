/* process_items.c: the list that a foreach or reduce stage goes through; see process_each.h. */
#include <stdio.h>
#include <string.h>

#include "json/json.h"
#include "pipeline/pipeline_template.h"
#include "process/process_each.h"
#include "retrieve/piece.h"

typedef struct cutting { /* a text that becomes items */
    json_t *into;
    const config_each *each;
    shoal_err *err;
} cutting;

static int too_many(const config_each *each, shoal_err *err)
{
    return err_set(err, SHOAL_ELIMIT, "'%s' has more than %u items: 'max' says how many are taken", each->of,
                   each->max);
}

/* A part of a text, without the white space around it; nothing, where nothing else is. */
static int process_items_put_part(const cutting *c, const char *s, size_t n)
{
    while (n && strchr(" \t\r\n", s[n - 1])) n--;
    for (; n && strchr(" \t\r\n", *s); s++) n--;
    if (n == 0) return 0;
    if (json_array_size(c->into) == c->each->max) return too_many(c->each, c->err);
    return json_array_append_new(c->into, json_stringn(s, n)) ? err_nomem(c->err) : 0;
}

/* ---- how a text is cut --------------------------------------------------------------------------------- */

static size_t process_items_line_end(const char *s, size_t at, size_t end)
{
    const char *found = memchr(s + at, '\n', end - at);
    return found ? (size_t)(found - s) + 1 : end;
}

/* A paragraph ends before a line on which nothing is. */
static size_t paragraph_end(const char *s, size_t at, size_t end)
{
    for (size_t i = process_items_line_end(s, at, end); i < end; i = process_items_line_end(s, i, end))
        if (strspn(s + i, " \t\r") + i == end || s[i + strspn(s + i, " \t\r")] == '\n') return i;
    return end;
}

static int cut_pieces(const cutting *c, const char *text, size_t n)
{
    plain p = {0};
    pieces ps = {0};
    int rc = plain_read(&p, PLAIN_TEXT, text, n, c->each->of, NULL, c->err);
    if (!rc) rc = pieces_cut(&ps, &p, c->each->most, c->each->overlap, NULL, c->err);
    for (size_t i = 0; !rc && i < ps.n; i++)
        rc = process_items_put_part(c, p.text.data + ps.v[i].start, ps.v[i].end - ps.v[i].start);
    pieces_done(&ps);
    plain_done(&p);
    return rc;
}

static int cut_text(const cutting *c, const char *s, each_by by)
{
    size_t n = strlen(s);
    int rc = 0;
    if (by == EACH_PIECES) return cut_pieces(c, s, n);
    for (size_t at = 0, end; !rc && (at += strspn(s + at, " \t\r\n")) < n; at = end) {
        end = by == EACH_LINES        ? process_items_line_end(s, at, n)
              : by == EACH_PARAGRAPHS ? paragraph_end(s, at, n)
                                      : piece_sentence_end(s, at, n);
        rc = process_items_put_part(c, s + at, end - at);
    }
    return rc;
}

/* ---- what the items are of -------------------------------------------------------------------------- */

static int process_items_put_devices(const cutting *c, const pipeline_facts *f)
{
    if (f->n_devices > c->each->max) return too_many(c->each, c->err);
    for (size_t i = 0; i < f->n_devices; i++) {
        const config_device *d = &f->devices[i];
        json_t *o = json_pack("{s:s, s:s, s:s, s:s}", "id", d->id, "name", d->name, "state",
                              d->state ? d->state : "", "area", d->area ? d->area : "");
        if (json_array_append_new(c->into, o)) return err_nomem(c->err);
    }
    return 0;
}

/* Null, and what never came to be, is a list of nothing. */
static int process_items_put_json(const cutting *c, const json_t *v, each_by by)
{
    static const char *const names[] = {"an object", "a list", "a text", "a number",
                                        "a number",  "true",   "false"};
    size_t i;
    json_t *item;
    if (!v || json_is_null(v)) return 0;
    if (json_is_string(v) && by != EACH_WHOLE) return cut_text(c, json_string_value(v), by);
    if (!json_is_array(v))
        return err_set(c->err, SHOAL_EINVALID, "'%s' is %s, not a list%s", c->each->of, names[json_typeof(v)],
                       json_is_string(v) ? ": 'by' says how a text is cut into one" : "");
    if (json_array_size(v) > c->each->max) return too_many(c->each, c->err);
    json_array_foreach(v, i, item) if (json_array_append(c->into, item)) return err_nomem(c->err);
    return 0;
}

static int put_source(const cutting *c, const pipeline_facts *f, const template_use *u)
{
    each_by by = c->each->by, cut = by == EACH_WHOLE ? EACH_LINES : by;
    const stage_fact *fact = u->i_stage >= 0 ? &f->stages[u->i_stage] : NULL;
    switch (u->field) {
    case FIELD_INPUT: return cut_text(c, f->input, cut);
    case FIELD_CONTEXT: return cut_text(c, f->context, cut);
    case FIELD_TEXT: return cut_text(c, fact->text, cut);
    case FIELD_DEVICES: return process_items_put_devices(c, f);
    default: return process_items_put_json(c, template_json_at(fact->value, u->path, u->n_path), by);
    }
}

int process_items(const stage_run *s, const config_each *each, json_t **ret, shoal_err *err)
{
    pipeline_facts facts = process_facts(s);
    template_use u = template_source(s->run->in->pipeline, each->of);
    cutting c = {.into = json_array(), .each = each, .err = err};
    int rc = c.into ? put_source(&c, &facts, &u) : err_nomem(err);
    if (rc)
        json_decref(c.into);
    else
        *ret = c.into;
    return rc;
}

/* ---- groups that are read at once ------------------------------------------------------------------- */

/* What is read of an item: a text, the text of an object that has one, else its JSON. NULL: nothing. */
static const char *item_text(const json_t *item, buf *json)
{
    const json_t *text = json_is_object(item) ? json_object_get(item, "text") : item;
    buf_clear(json);
    if (json_is_string(text)) return json_string_value(text);
    if (!item || json_is_null(item)) return NULL;
    if (json_put(json, item)) json->failed = true;
    return json->failed ? NULL : json->data;
}

static int close_group(const cutting *c, buf *group)
{
    int rc = group->failed ? err_nomem(c->err)
                           : process_items_put_part(c, group->data ? group->data : "", group->len);
    buf_clear(group);
    return rc;
}

/* One more text for the open group, or for the next. */
static int join_text(const cutting *c, buf *group, const char *text)
{
    size_t n = strlen(text), n_join = strlen(c->each->join);
    int rc = 0;
    if (group->len && group->len + n_join + n > c->each->most) rc = close_group(c, group);
    if (group->len) buf_puts(group, c->each->join);
    buf_append(group, text, n);
    return rc;
}

/* A text that is longer than a group is read in pieces. */
static int join_item(const cutting *c, buf *group, const char *text)
{
    if (strlen(text) <= c->each->most) return join_text(c, group, text);
    cutting parts = *c;
    int rc = (parts.into = json_array()) ? cut_pieces(&parts, text, strlen(text)) : err_nomem(c->err);
    for (size_t i = 0; !rc && i < json_array_size(parts.into); i++)
        rc = join_text(c, group, json_string_value(json_array_get(parts.into, i)));
    json_decref(parts.into);
    return rc;
}

int process_groups(const config_each *each, const json_t *items, json_t **ret, shoal_err *err)
{
    cutting c = {.into = json_array(), .each = each, .err = err};
    buf group = {0}, json = {0};
    int rc = c.into ? 0 : err_nomem(err);
    for (size_t i = 0; !rc && i < json_array_size(items); i++) {
        const char *text = item_text(json_array_get(items, i), &json);
        if (json.failed) rc = err_nomem(err);
        if (!rc && text) rc = join_item(&c, &group, text);
    }
    if (!rc) rc = close_group(&c, &group);
    buf_done(&group);
    buf_done(&json);
    if (rc)
        json_decref(c.into);
    else
        *ret = c.into;
    return rc;
}
