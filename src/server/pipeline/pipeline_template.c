/* pipeline_template.c: templates of prompts cut into pieces and filled in; see pipeline_template.h. What
 * cannot be filled in was refused by pipeline_check: here only memory can fail. */
#include "pipeline/pipeline_template.h"

#include <ctype.h>
#include <string.h>

#include "base/utf8.h"
#include "json/json.h"

enum { MEMBER_MAX = 128 };

/* Where the field that begins at s ends: its '}', which quotes behind a '|' may hold as well. */
static size_t field_bytes(const char *s)
{
    bool functions = false;
    size_t n = 0;
    for (; s[n] && s[n] != '}'; n++) {
        functions = functions || s[n] == '|';
        if (!functions || (s[n] != '\'' && s[n] != '"')) continue;
        char quote = s[n++];
        while (s[n] && s[n] != quote) n += s[n] == '\\' && s[n + 1] ? 2 : 1;
        if (!s[n]) break;
    }
    return n;
}

bool template_next(const char **at, template_piece *ret)
{
    const char *s = *at;
    if (!*s) return false;
    if (s[0] == '{' && s[1] != '{') {
        size_t n = field_bytes(s + 1);
        *ret = (template_piece){.at = s + 1, .len = n, .is_field = true};
        *at = s + 1 + n + (s[1 + n] == '}');
        return true;
    }
    /* "{{" stands for its second brace: the literal starts there. */
    size_t skip = s[0] == '{';
    size_t n = skip + strcspn(s + 2 * skip, "{");
    *ret = (template_piece){.at = s + skip, .len = n};
    *at = s + skip + n;
    return true;
}

/* Takes the next part of a dotted name off *at; false when none is left. */
static bool take_part(const char **at, const char *end, const char **ret, size_t *ret_n)
{
    if (!*at) return false;
    const char *dot = memchr(*at, '.', (size_t)(end - *at));
    *ret = *at;
    *ret_n = (size_t)((dot ? dot : end) - *at);
    *at = dot ? dot + 1 : NULL;
    return true;
}

static const struct {
    const char *name;
    unsigned takes;
} fields[] = {
#define FIELD_ROW(e, n, takes) {n, takes},
    TEMPLATE_FIELD_TABLE(FIELD_ROW)
#undef FIELD_ROW
};

bool template_is_field(const char *name)
{
    for (int f = 0; f < FIELD_ITEM; f++)
        if (strcmp(fields[f].name, name) == 0) return true;
    return false;
}

/* The field of this name; *ret_takes: what may stand behind it. */
static template_field field_named(const char *name, size_t n, const char *as, unsigned *ret_takes)
{
    *ret_takes = TAKES_PATH;
    if (as && strlen(as) == n && memcmp(as, name, n) == 0) return FIELD_ITEM;
    for (int f = 0; f < FIELD_ITEM; f++) {
        if (strlen(fields[f].name) != n || memcmp(fields[f].name, name, n) != 0) continue;
        *ret_takes = fields[f].takes;
        return f == FIELD_NUMBER && !as ? FIELD_UNKNOWN : (template_field)f;
    }
    *ret_takes = 0;
    return FIELD_UNKNOWN;
}

template_use template_read(const config_pipeline *p, const char *as, const template_piece *piece)
{
    template_use u = {.field = FIELD_UNKNOWN, .i_stage = -1};
    const char *end = piece->at + piece->len, *bar = memchr(piece->at, '|', piece->len), *at = piece->at;
    u.functions = bar ? bar : end;
    u.n_functions = (size_t)(end - u.functions);
    for (end = u.functions; bar && end > at && isspace((unsigned char)end[-1]);) end--;
    while (bar && at < end && isspace((unsigned char)*at)) at++;
    take_part(&at, end, &u.name, &u.n_name);
    unsigned takes;
    u.field = field_named(u.name, u.n_name, as, &takes);
    if (takes & TAKES_STAGE && !take_part(&at, end, &u.stage, &u.n_stage)) u.field = FIELD_UNKNOWN;
    if (u.stage) u.i_stage = pipeline_stage_index(p, u.stage, u.n_stage);
    if (takes & TAKES_PATH && at && at < end) {
        u.path = at;
        u.n_path = (size_t)(end - at);
    } else if (at) {
        u.field = FIELD_UNKNOWN;
    }
    return u;
}

template_use template_source(const config_pipeline *p, const char *of)
{
    template_piece piece = {.at = of, .len = strlen(of)};
    template_use u = template_read(p, NULL, &piece);
    bool known = u.field == FIELD_INPUT || u.field == FIELD_CONTEXT || u.field == FIELD_DEVICES ||
                 u.field == FIELD_TEXT || u.field == FIELD_JSON;
    if (known && !u.n_functions) return u;
    const char *at = of, *end = of + piece.len;
    u = (template_use){.field = FIELD_JSON, .functions = end};
    take_part(&at, end, &u.stage, &u.n_stage);
    u.path = at;
    u.n_path = at ? (size_t)(end - at) : 0;
    u.i_stage = pipeline_stage_index(p, u.stage, u.n_stage);
    if (u.i_stage < 0 || (at && at == end)) u.field = FIELD_UNKNOWN;
    return u;
}

/* ---- values ------------------------------------------------------------------------------------------ */

/* The entry with this number; NULL: it is no number, or there is none. */
static const json_t *entry_at(const json_t *list, const char *digits, size_t n)
{
    size_t i = 0;
    for (size_t k = 0; k < n; k++) {
        if (!isdigit((unsigned char)digits[k]) || k == 9) return NULL;
        i = 10 * i + (size_t)(digits[k] - '0');
    }
    return n ? json_array_get(list, i) : NULL;
}

/* The member of this name; names longer than the buffer are nobody's. */
static const json_t *member_at(const json_t *o, const char *name, size_t n)
{
    char key[MEMBER_MAX + 1];
    if (n > MEMBER_MAX) return NULL;
    memcpy(key, name, n);
    key[n] = 0;
    return json_object_get(o, key);
}

const json_t *template_json_at(const json_t *v, const char *path, size_t n)
{
    const char *at = n ? path : NULL, *part;
    size_t n_part;
    while (v && take_part(&at, path + n, &part, &n_part))
        v = json_is_array(v) ? entry_at(v, part, n_part) : member_at(v, part, n_part);
    return v;
}

/* Of a text the text itself, of nothing nothing, of all else JSON. */
static void template_put_json(const json_t *v, buf *out)
{
    if (json_is_string(v))
        buf_append(out, json_string_value(v), json_string_length(v));
    else if (v && !json_is_null(v) && json_put_digits(out, v, 15))
        out->failed = true;
}

/* The texts of a list of spans, a line each: of one label, or of all, with their labels. */
static void put_spans(const json_t *spans, const template_use *u, buf *out)
{
    size_t i;
    const json_t *span;
    json_array_foreach(spans, i, span)
    {
        const char *label = json_string_value(json_object_get(span, "label"));
        const char *text = json_string_value(json_object_get(span, "text"));
        if (!label || !text) continue;
        if (u->path && (strlen(label) != u->n_path || memcmp(label, u->path, u->n_path) != 0)) continue;
        buf_printf(out, "%s%s%s%s", out->len ? "\n" : "", u->path ? "" : label, u->path ? "" : ": ", text);
    }
}

/* The input with its first letter in upper case (ASCII). */
static void template_put_sentence(const pipeline_facts *facts, buf *out)
{
    if (!*facts->input) return;
    buf_putc(out, (char)toupper((unsigned char)*facts->input));
    buf_puts(out, facts->input + 1);
}

static void template_put_devices(const pipeline_facts *facts, buf *out)
{
    for (size_t i = 0; i < facts->n_devices; i++) {
        const config_device *d = &facts->devices[i];
        buf_printf(out, "%s%s '%s' = %s", i ? "\n" : "", d->id, d->name, d->state);
    }
}

static void pipeline_template_put_field(const template_use *u, const pipeline_facts *facts, buf *out)
{
    const stage_fact *f = u->i_stage >= 0 ? &facts->stages[u->i_stage] : NULL;
    switch (u->field) {
    case FIELD_INPUT: buf_puts(out, facts->input); break;
    case FIELD_SENTENCE: template_put_sentence(facts, out); break;
    case FIELD_DEVICES: template_put_devices(facts, out); break;
    case FIELD_CONTEXT: buf_puts(out, facts->context); break;
    case FIELD_LABEL: buf_puts(out, f->label); break;
    case FIELD_TEXT: buf_puts(out, f->text); break;
    case FIELD_SPANS: put_spans(f->value, u, out); break;
    case FIELD_JSON: template_put_json(template_json_at(f->value, u->path, u->n_path), out); break;
    case FIELD_ITEM: template_put_json(template_json_at(facts->item, u->path, u->n_path), out); break;
    case FIELD_NUMBER: buf_printf(out, "%zu", facts->i_item + 1); break;
    case FIELD_UNKNOWN: break;
    }
}

/* The JSON that the field shows; NULL: it shows a text. */
static const json_t *template_value_of(const template_use *u, const pipeline_facts *facts)
{
    if (u->field == FIELD_JSON) return template_json_at(facts->stages[u->i_stage].value, u->path, u->n_path);
    return u->field == FIELD_ITEM ? template_json_at(facts->item, u->path, u->n_path) : NULL;
}

/* JSON as what it is, unless functions made a text of it. */
static void put_as_json(const template_use *u, const pipeline_facts *facts, const buf *text, buf *out)
{
    bool typed = (u->field == FIELD_JSON || u->field == FIELD_ITEM) && !u->n_functions;
    if (!typed && (u->field != FIELD_NUMBER || u->n_functions))
        json_put_string(out, text->data ? text->data : "", text->len);
    else if (typed && !template_value_of(u, facts))
        buf_puts(out, "null");
    else if (!typed)
        buf_join(out, text);
    else if (json_put_digits(out, template_value_of(u, facts), 15))
        out->failed = true;
}

static void template_fill(const template_use *u, const pipeline_facts *facts, fill_as as, buf *out)
{
    buf text = {0};
    pipeline_function f;
    const char *at = u->functions, *end = at + u->n_functions;
    pipeline_template_put_field(u, facts, &text);
    while (pipeline_function_next(&at, end, &f, NULL) > 0) pipeline_function_apply(&f, &text);
    if (as == FILL_JSON && !text.failed)
        put_as_json(u, facts, &text, out);
    else if (as == FILL_PERCENT && !text.failed)
        percent_encode(out, buf_text(&text), text.len, "");
    else
        buf_join(out, &text);
    buf_done(&text);
}

int pipeline_expand_as(const config_pipeline *p, const char *template, const pipeline_facts *facts,
                       fill_as as, buf *out)
{
    template_piece piece;
    while (template_next(&template, &piece)) {
        if (!piece.is_field) {
            buf_append(out, piece.at, piece.len);
            continue;
        }
        template_use u = template_read(p, facts->as, &piece);
        template_fill(&u, facts, as, out);
    }
    return out->failed ? SHOAL_ENOMEM : 0;
}

int pipeline_expand(const config_pipeline *p, const char *template, const pipeline_facts *facts, buf *out)
{
    return pipeline_expand_as(p, template, facts, FILL_TEXT, out);
}

static bool template_has(const config_pipeline *p, const char *template, const char *name)
{
    template_piece piece;
    while (template && template_next(&template, &piece)) {
        template_use u = piece.is_field ? template_read(p, NULL, &piece) : (template_use){.n_name = 0};
        if (u.n_name == strlen(name) && memcmp(u.name, name, u.n_name) == 0) return true;
    }
    return false;
}

bool pipeline_uses(const config_pipeline *p, const char *name)
{
    for (unsigned i = 0; i < p->n_stages; i++) {
        const config_stage *s = &p->stages[i];
        if (template_has(p, s->system, name) || template_has(p, s->prompt, name) ||
            template_has(p, s->input, name) || template_has(p, s->path, name) ||
            template_has(p, s->body, name) || (pipeline_each(s) && strcmp(pipeline_each(s)->of, name) == 0))
            return true;
    }
    return false;
}
