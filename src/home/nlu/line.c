/* line.c: reading lines of a declared form; see line.h. */
#include "nlu/line.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "nlu/source.h"
#include "nlu/reply.h"

enum { NAME_BYTES_MAX = 64, LINE_BYTES_MAX = 1024, OUTCOMES = 3 };

static const char *const OUTCOME_NAMES[OUTCOMES] = {"within", "up", "down"};

typedef struct line_field {
    const char *name, *unit;
    bool number, sign;
    double max;
} line_field;

typedef struct word_set {
    size_t n;
    const char **at; /* folded */
} word_set;

typedef struct line_form {
    const char *subject, *example;
    size_t n_fields;
    line_field fields[LINE_FIELDS_MAX];
    size_t size, limit;                           /* fields */
    const char *say[OUTCOMES], *advice[OUTCOMES]; /* advice NULL: none */
    word_set vocabulary, never[OUTCOMES];
    size_t n_must;
    size_t must[LINE_FIELDS_MAX + 1]; /* into line_reading.values */
} line_form;

struct line_forms {
    arena *memory;
    const char *begins, *error;
    struct {
        const char *subject, *unknown, *twice, *missing, *value;
    } reason;
    size_t n_forms;
    line_form *forms;
};

const char *line_verdict_name(line_verdict v)
{
    static const char *const names[] = {
#define VERDICT_NAME(e, n, about) [e] = n,
        LINE_VERDICTS(VERDICT_NAME)
#undef VERDICT_NAME
    };
    return (size_t)v < sizeof names / sizeof *names ? names[v] : "unknown";
}

/* ---- loading --------------------------------------------------------------------------------------- */

static void add_words(source *r, word_set *set, const char *text)
{
    words w;
    if (r->rc) return;
    if (words_split(&w, r->a, text, strlen(text))) {
        source_nomem(r);
        return;
    }
    const char **more = arena_alloc(r->a, (set->n + w.n + 1) * sizeof *more);
    if (!more) {
        source_nomem(r);
        return;
    }
    if (set->n) memcpy(more, set->at, set->n * sizeof *more);
    for (size_t i = 0; i < w.n; i++)
        if (!w.at[i].sign) more[set->n++] = w.at[i].s;
    set->at = more;
}

static void add_list(source *r, word_set *set, const yaml_node *list)
{
    for (size_t i = 0; list && i < list->n && !r->rc; i++) add_words(r, set, list->items[i]->text);
}

static void read_field(source *r, line_field *x, const yaml_node *key, const yaml_node *n)
{
    x->name = arena_strdup(r->a, key->text);
    if (!x->name) source_nomem(r);
    const char *type = source_text_of(r, n, "type");
    if (r->rc) return;
    x->number = strcmp(type, "number") == 0;
    if (!x->number && strcmp(type, "name") != 0)
        source_fail(r, n, "type '%s' is neither name nor number", type);
    x->unit = x->number ? source_text_of(r, n, "unit") : "";
    const yaml_node *sign = yaml_get(n, "sign"), *max = yaml_get(n, "max");
    x->sign = source_bool(r, sign, "sign");
    x->max = source_double(r, max, "max", 1e6);
}

/* Which of line_reading.values: 0 the subject, then the fields. SIZE_MAX: none. */
static size_t value_index(const line_form *x, const char *name, size_t n)
{
    if (strlen(x->subject) == n && memcmp(x->subject, name, n) == 0) return 0;
    for (size_t i = 0; i < x->n_fields; i++)
        if (strlen(x->fields[i].name) == n && memcmp(x->fields[i].name, name, n) == 0) return i + 1;
    return SIZE_MAX;
}

static size_t number_field(source *r, const line_form *x, const yaml_node *n, const char *key)
{
    const char *name = source_text_of(r, n, key);
    size_t i = name ? value_index(x, name, strlen(name)) : SIZE_MAX;
    if (!r->rc && (i == SIZE_MAX || i == 0 || !x->fields[i - 1].number))
        source_fail(r, n, "'%s' must name a field that is a number", key);
    return r->rc ? 0 : i - 1;
}

static void read_must(source *r, line_form *x, const yaml_node *list)
{
    for (size_t i = 0; list && i < list->n && !r->rc; i++) {
        size_t v = value_index(x, list->items[i]->text, list->items[i]->len);
        if (v == SIZE_MAX || x->n_must > LINE_FIELDS_MAX)
            source_fail(r, list->items[i], "'%s' is no field of this form", list->items[i]->text);
        else
            x->must[x->n_must++] = v;
    }
}

static void read_form(source *r, line_form *x, const yaml_node *n)
{
    x->subject = source_text_of(r, n, "subject");
    x->example = source_text_of(r, n, "example");
    const yaml_node *fields = source_need(r, n, "fields", YAML_MAP);
    if (fields && fields->n > LINE_FIELDS_MAX) source_fail(r, fields, "too many fields%s", "");
    for (size_t i = 0; fields && i < fields->n && !r->rc; i++)
        read_field(r, &x->fields[x->n_fields++], fields->keys[i], fields->items[i]);
    if (r->rc) return;
    x->size = number_field(r, x, n, "size");
    x->limit = number_field(r, x, n, "limit");
    for (int i = 0; i < OUTCOMES && !r->rc; i++) {
        x->say[i] = source_text_of(r, n, OUTCOME_NAMES[i]);
        if (!r->rc) add_words(r, &x->vocabulary, x->say[i]);
    }
    add_list(r, &x->vocabulary, yaml_get(n, "vocabulary"));
    const yaml_node *never = yaml_get(n, "never"), *advice = yaml_get(n, "advice");
    for (int i = 0; i < OUTCOMES && !r->rc; i++)
        if (advice && yaml_get(advice, OUTCOME_NAMES[i]))
            x->advice[i] = source_text_of(r, advice, OUTCOME_NAMES[i]);
    for (int i = 0; i < OUTCOMES && !r->rc; i++)
        add_list(r, &x->never[i], never ? yaml_get(never, OUTCOME_NAMES[i]) : NULL);
    read_must(r, x, yaml_get(n, "must"));
}

static int line_read_all(source *r, const yaml_node *root, void *user)
{
    line_forms *f = user;
    f->begins = source_text_of(r, root, "begins");
    f->error = source_text_of(r, root, "error");
    const yaml_node *reasons = source_need(r, root, "reasons", YAML_MAP),
                    *forms = source_need(r, root, "forms", YAML_LIST);
    if (r->rc) return r->rc;
    f->reason.subject = source_text_of(r, reasons, "subject");
    f->reason.unknown = source_text_of(r, reasons, "unknown");
    f->reason.twice = source_text_of(r, reasons, "twice");
    f->reason.missing = source_text_of(r, reasons, "missing");
    f->reason.value = source_text_of(r, reasons, "value");
    f->forms = arena_alloc(r->a, (forms->n + 1) * sizeof *f->forms);
    if (!f->forms) source_nomem(r);
    for (size_t i = 0; i < forms->n && !r->rc; i++) read_form(r, &f->forms[f->n_forms++], forms->items[i]);
    if (!r->rc && !f->n_forms) source_fail(r, forms, "there is no form%s", "");
    return r->rc;
}

int line_forms_parse(line_forms **ret, const char *text, size_t len, const char *what, shoal_err *err)
{
    line_forms *f = calloc(1, sizeof *f);
    if (!f) return err_nomem(err);
    int rc = source_read(text, len, what, line_read_all, f, &f->memory, err);
    if (rc)
        free(f);
    else
        *ret = f;
    return rc;
}

int line_forms_load(line_forms **ret, const char *path, shoal_err *err)
{
    buf text = {0};
    int rc = file_read(&text, path, SOURCE_BYTES_MAX, err);
    if (!rc) rc = line_forms_parse(ret, text.data ? text.data : "", text.len, path, err);
    buf_done(&text);
    return rc;
}

void line_forms_free(line_forms *f)
{
    if (!f) return;
    arena_free(f->memory);
    free(f);
}

/* ---- reading --------------------------------------------------------------------------------------- */

typedef struct piece {
    const char *at;
    size_t n;
} piece;

static const char *line_keep(arena *a, piece p)
{
    return arena_strndup(a, p.at, p.n);
}

static bool next_piece(const char **at, piece *ret)
{
    *at += strspn(*at, " \t\r\n");
    ret->at = *at;
    ret->n = strcspn(*at, " \t\r\n");
    *at += ret->n;
    return ret->n > 0;
}

static bool is_name(piece p)
{
    bool letter = false;
    if (p.n == 0 || p.n > NAME_BYTES_MAX) return false;
    for (size_t i = 0; i < p.n; i++) {
        unsigned char c = (unsigned char)p.at[i];
        if (c < 0x80 && !isalnum(c) && !strchr("-_./", c)) return false;
        letter = letter || c >= 0x80 || isalpha(c);
    }
    return letter;
}

/* Digits, perhaps with a decimal point and a sign before them, then the unit and nothing else. */
static bool line_read_number(const line_field *f, piece p, piece *ret_digits, double *ret)
{
    size_t at = 0;
    double sign = 1;
    if (f->sign && p.n && (p.at[0] == '+' || p.at[0] == '-')) sign = p.at[at++] == '-' ? -1 : 1;
    size_t from = at, dots = 0;
    while (at < p.n && (isdigit((unsigned char)p.at[at]) || (p.at[at] == '.' && at > from && !dots++))) at++;
    size_t n = at - from;
    if (n == 0 || n > 12 || p.at[at - 1] == '.') return false;
    if (p.n - at != strlen(f->unit) || memcmp(p.at + at, f->unit, p.n - at) != 0) return false;
    char digits[16];
    memcpy(digits, p.at + from, n);
    digits[n] = 0;
    double v = 0, scale = 1;
    bool fraction = false;
    for (const char *c = digits; *c; c++) {
        if (*c == '.') {
            fraction = true;
            continue;
        }
        v = v * 10 + (*c - '0');
        if (fraction) scale *= 10;
    }
    *ret = sign * v / scale;
    *ret_digits = (piece){p.at + from, n};
    return fabs(*ret) <= f->max;
}

typedef struct reading {
    const line_forms *f;
    const line_form *form;
    arena *a;
    const char *reason; /* NULL: fine so far */
    piece what;         /* what the reason is about */
    double numbers[LINE_FIELDS_MAX];
    const char *values[LINE_FIELDS_MAX + 1];
    bool nomem;
} reading;

static void line_refuse(reading *r, const char *reason, piece what)
{
    if (r->reason) return;
    r->reason = reason;
    r->what = what;
}

static void take_field(reading *r, piece p)
{
    const char *eq = memchr(p.at, '=', p.n);
    if (!eq) {
        line_refuse(r, r->values[0] ? r->f->reason.unknown : r->f->reason.subject, p);
        return;
    }
    size_t n_key = (size_t)(eq - p.at), v = value_index(r->form, p.at, n_key);
    piece key = {p.at, n_key}, value = {eq + 1, p.n - n_key - 1};
    if (v == SIZE_MAX || v == 0) {
        line_refuse(r, r->f->reason.unknown, key);
        return;
    }
    if (r->values[v]) {
        line_refuse(r, r->f->reason.twice, key);
        return;
    }
    const line_field *field = &r->form->fields[v - 1];
    bool fits = field->number ? line_read_number(field, value, &value, &r->numbers[v - 1]) : is_name(value);
    if (!fits) line_refuse(r, r->f->reason.value, p);
    r->values[v] = fits ? line_keep(r->a, value) : "";
    r->nomem = r->nomem || !r->values[v];
}

static void read_fields(reading *r, const char *at)
{
    piece p;
    if (!next_piece(&at, &p) || !is_name(p) || memchr(p.at, '=', p.n)) {
        line_refuse(r, r->f->reason.subject, p);
        return;
    }
    r->values[0] = line_keep(r->a, p);
    r->nomem = r->nomem || !r->values[0];
    while (next_piece(&at, &p)) take_field(r, p);
    for (size_t i = 0; i < r->form->n_fields; i++)
        if (!r->values[i + 1])
            line_refuse(r, r->f->reason.missing,
                        (piece){r->form->fields[i].name, strlen(r->form->fields[i].name)});
}

static size_t fill_fields(const line_form *x, const char *const *values, reply_field *out)
{
    out[0] = (reply_field){x->subject, values[0]};
    for (size_t i = 0; i < x->n_fields; i++) out[i + 1] = (reply_field){x->fields[i].name, values[i + 1]};
    return x->n_fields + 1;
}

static const char *say_why(const line_forms *f, const reading *r, arena *a)
{
    piece what = r->what;
    if (what.n > 40) what.n = 40;
    while (what.n && ((unsigned char)what.at[what.n] & 0xC0) == 0x80) what.n--; /* whole characters */
    const char *text = line_keep(a, what);
    reply_field w[] = {{"what", text}};
    const char *why = text ? reply_fill(a, r->reason, w, 1) : NULL;
    reply_field e[] = {{"why", why}, {"example", r->form->example}};
    return why ? reply_fill(a, f->error, e, 2) : NULL;
}

static bool begins_so(const line_forms *f, const char *text, const char **ret_rest)
{
    size_t n = strlen(f->begins);
    text += strspn(text, " \t\r\n");
    if (strncasecmp(text, f->begins, n) != 0 || (text[n] && !strchr(" \t\r\n", text[n]))) return false;
    *ret_rest = text + n;
    return true;
}

static int read_form_of(line_reading *ret, const line_forms *f, const line_form *form, const char *rest,
                        arena *a)
{
    reading r = {.f = f, .form = form, .a = a};
    if (strlen(rest) <= LINE_BYTES_MAX)
        read_fields(&r, rest);
    else
        line_refuse(&r, f->reason.unknown, (piece){rest, strcspn(rest, " \t\r\n")});
    ret->form = form;
    ret->verdict = r.reason ? LINE_UNREADABLE : LINE_READ;
    if (r.nomem) return SHOAL_ENOMEM;
    if (r.reason) {
        ret->text = say_why(f, &r, a);
        return ret->text ? 0 : SHOAL_ENOMEM;
    }
    double size = r.numbers[form->size];
    ret->outcome = fabs(size) <= r.numbers[form->limit] ? 0 : size > 0 ? 1 : 2;
    memcpy(ret->values, r.values, sizeof ret->values);
    reply_field fields[LINE_FIELDS_MAX + 1];
    size_t n = fill_fields(form, ret->values, fields);
    ret->text = reply_fill(a, form->say[ret->outcome], fields, n);
    return ret->text ? 0 : SHOAL_ENOMEM;
}

int line_read(line_reading *ret, const line_forms *f, const char *text, arena *a, shoal_err *err)
{
    line_reading first = {.text = ""}, now;
    const char *rest;
    if (!begins_so(f, text, &rest)) {
        *ret = first;
        return 0;
    }
    for (size_t i = 0; i < f->n_forms; i++) {
        now = (line_reading){.text = ""};
        if (read_form_of(&now, f, &f->forms[i], rest, a)) return err_nomem(err);
        if (i == 0 || now.verdict == LINE_READ) first = now;
        if (now.verdict == LINE_READ) break;
    }
    if (words_split(&first.line, a, text, strlen(text))) return err_nomem(err);
    *ret = first;
    return 0;
}

/* ---- checking what a model said --------------------------------------------------------------------- */

static bool in_set(const word_set *s, const char *w)
{
    for (size_t i = 0; i < s->n; i++)
        if (strcmp(s->at[i], w) == 0) return true;
    return false;
}

static bool in_line(const line_reading *r, const word *x)
{
    for (size_t i = 0; i < r->line.n; i++) {
        const word *y = &r->line.at[i];
        if (x->number && y->number ? x->value == y->value : strcmp(x->s, y->s) == 0) return true;
    }
    return false;
}

static bool is_faithful(const line_reading *r, const words *w, size_t from, size_t to, bool *ret_false)
{
    bool faithful = true;
    for (size_t i = from; i < to; i++) {
        const word *x = &w->at[i];
        if (x->sign) continue;
        if (in_set(&r->form->never[r->outcome], x->s)) *ret_false = true;
        bool known = in_line(r, x) || (!x->number && in_set(&r->form->vocabulary, x->s));
        faithful = faithful && known;
    }
    return faithful && !*ret_false;
}

/* How many words from i on spell `value`; 0: they do not. "Pump 12" spells "pump-12". */
static size_t spells(const words *w, size_t i, size_t to, const words *value)
{
    size_t at = i, k = 0;
    while (k < value->n) {
        if (value->at[k].sign) {
            k++;
        } else if (at < to && w->at[at].sign && at > i) {
            at++;
        } else {
            if (at >= to || strcmp(w->at[at].s, value->at[k].s) != 0) return 0;
            at++, k++;
        }
    }
    return at - i;
}

/* The sentence, with the names of the line spelt as the line has them. */
static void line_put_sentence(buf *out, const words *w, size_t from, size_t to, const line_reading *r,
                              arena *a)
{
    size_t end = w->at[from].begin;
    if (out->len) buf_putc(out, ' ');
    for (size_t i = from; i < to;) {
        size_t n = 0, v = 0;
        for (; v <= r->form->n_fields && !n; v++) {
            words value;
            bool name = v == 0 || !r->form->fields[v - 1].number;
            if (!name || words_split(&value, a, r->values[v], strlen(r->values[v]))) continue;
            n = spells(w, i, to, &value);
        }
        buf_append(out, w->text + end, w->at[i].begin - end);
        if (n)
            buf_puts(out, r->values[v - 1]);
        else
            buf_append(out, w->text + w->at[i].begin, w->at[i].end - w->at[i].begin);
        i += n ? n : 1;
        end = w->at[i - 1].end;
    }
}

static bool has_all(const line_reading *r, const char *text)
{
    for (size_t i = 0; i < r->form->n_must; i++)
        if (!strstr(text, r->values[r->form->must[i]])) return false;
    return true;
}

const char *line_check(const line_reading *r, const char *said, arena *a, bool *ret_kept)
{
    words w;
    buf out = {0};
    bool contradicts = false;
    *ret_kept = false;
    if (words_split(&w, a, said, strlen(said))) return NULL;
    for (size_t from = 0; from < w.n;) {
        size_t to = from;
        while (to < w.n && !(w.at[to].sign && strchr(".!?", w.at[to].s[0]))) to++;
        size_t end = to < w.n ? to + 1 : to;
        bool wrong = false;
        if (to > from && is_faithful(r, &w, from, to, &wrong)) line_put_sentence(&out, &w, from, end, r, a);
        contradicts = contradicts || wrong;
        from = end;
    }
    const char *advice = r->form->advice[r->outcome];
    if (out.data && advice && !strstr(out.data, advice)) buf_printf(&out, " %s", advice);
    bool keep_it = out.data && !contradicts && !w.cut && !out.failed && has_all(r, out.data);
    const char *text = keep_it ? arena_strndup(a, out.data, out.len) : r->text;
    if (out.failed) text = NULL;
    buf_done(&out);
    *ret_kept = keep_it && text;
    return text;
}
