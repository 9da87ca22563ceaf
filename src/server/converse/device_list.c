/* device_list.c: see device_list.h. */
#include "converse/device_list.h"

#include <ctype.h>
#include <string.h>

#include "base/buf.h"
#include "ensemble/verify_case.h"
#include "pipeline/pipeline.h"

#define NAMES_MAX 8 /* of a device, its aliases among them */

/* Keys of a device; what else an entry has is skipped. */
typedef enum entry_key {
    KEY_NAMES,
    KEY_DOMAIN,
    KEY_STATE,
    KEY_AREAS,
    KEY_MEASURED, /* among its attributes */
    KEY_OTHER
} entry_key;

typedef struct list_reader {
    device_list *to;
    arena *a;
    bool nomem;
    bool open;      /* an entry is being read: */
    const char *id; /* its id; NULL: it has none */
    size_t indent;  /* of its keys; SIZE_MAX: its first is still to come */
    entry_key last; /* the key that a further line belongs to */
    buf values[KEY_OTHER];
    bool has[KEY_OTHER];
} list_reader;

/* ---- devices ------------------------------------------------------------------------------------- */

static char *slug_of(const char *domain, const char *name, arena *a)
{
    char *s = arena_printf(a, "%s.%s", domain, name);
    for (char *p = s ? s + strlen(domain) + 1 : NULL; p && *p; p++) {
        unsigned char c = (unsigned char)*p;
        *p = c >= 0x80 || isalnum(c) ? (char)(c < 0x80 ? tolower(c) : c) : '_';
    }
    return s;
}

static bool same_text(const char *a, const char *b)
{
    return strcmp(a ? a : "", b ? b : "") == 0;
}

static bool id_is_taken(const device_list *l, const char *id)
{
    for (size_t i = 0; i < l->n; i++)
        if (strcmp(l->at[i].id, id) == 0) return true;
    return false;
}

/* The same name in another room is another device. */
static device *find_same(device_list *l, const device *d, bool has_id)
{
    size_t n = strcspn(d->id, ".");
    for (size_t i = 0; i < l->n; i++) {
        device *have = &l->at[i];
        bool same = has_id ? strcmp(have->id, d->id) == 0
                           : strncmp(have->id, d->id, n + 1) == 0 && same_text(have->name, d->name) &&
                                 same_text(have->area, d->area);
        if (same) return have;
    }
    return NULL;
}

/* With its room in it, where it has one; else, or where that is taken, with a number. It stays where that would be too
 * long for an id. */
static int make_longer_id(device_list *l, device *d, arena *a)
{
    const char *id = d->id;
    if (d->area) {
        const char *domain = arena_strndup(a, id, strcspn(id, "."));
        const char *name = arena_printf(a, "%s %s", d->name, d->area);
        if (!domain || !name || !(id = slug_of(domain, name, a))) return SHOAL_ENOMEM;
    }
    const char *longer = id;
    for (unsigned k = 2; id_is_taken(l, longer); k++)
        if (!(longer = arena_printf(a, "%s_%u", id, k))) return SHOAL_ENOMEM;
    if (pipeline_device_text_ok(longer)) d->id = longer;
    return 0;
}

/* Another device has its name: neither id may have words fewer than the other, or a request that names no room would
 * find the shorter. */
static int tell_apart(device_list *l, device *d, arena *a)
{
    for (size_t i = 0; i < l->n; i++)
        if (l->made_id[i] && l->at[i].area && strcmp(l->at[i].id, d->id) == 0 &&
            make_longer_id(l, &l->at[i], a))
            return SHOAL_ENOMEM;
    return make_longer_id(l, d, a);
}

static int device_list_put(device_list *l, const device *given, bool has_id, arena *a)
{
    device d = *given;
    if (!pipeline_device_text_ok(d.name)) return 0;
    if (d.state && *d.state && !pipeline_device_text_ok(d.state)) d.state = "";
    device *same = find_same(l, &d, has_id);
    if (same) {
        d.id = same->id;
        if (!d.state || !*d.state) d.state = same->state;
        if (!d.measured) d.measured = same->measured;
        *same = d;
        return 0;
    }
    if (!has_id && id_is_taken(l, d.id) && tell_apart(l, &d, a)) return SHOAL_ENOMEM;
    if (l->n == DEVICES_MAX || !pipeline_device_text_ok(d.id) || id_is_taken(l, d.id)) return 0;
    l->made_id[l->n] = !has_id;
    l->at[l->n++] = d;
    return 0;
}

int device_list_add(device_list *to, const char *domain, const char *name, arena *a)
{
    const char *dot = strchr(name, '.');
    bool is_id = dot && dot > name && dot[1] && !strpbrk(name, " \t");
    device d = {.state = ""};
    char *shown = arena_strdup(a, is_id ? dot + 1 : name);
    d.id = is_id ? arena_strdup(a, name) : slug_of(domain, name, a);
    d.name = shown;
    if (!d.id || !shown) return SHOAL_ENOMEM;
    for (char *p = shown; is_id && *p; p++)
        if (*p == '_') *p = ' ';
    return device_list_put(to, &d, is_id, a);
}

/* ---- an entry of YAML ---------------------------------------------------------------------------- */

static const char *list_keep(list_reader *r, const char *s, size_t n)
{
    const char *kept = arena_strndup(r->a, s, n);
    r->nomem |= !kept;
    return kept ? kept : "";
}

/* 'It''s', "a \"b\"", plain. */
static const char *unquoted(list_reader *r, const buf *value)
{
    const char *s = value->len ? value->data : "";
    size_t n = value->len;
    char quote = n >= 2 && (*s == '\'' || *s == '"') && s[n - 1] == *s ? *s : 0;
    if (!quote) return list_keep(r, s, n);
    char *out = arena_alloc(r->a, n), *p = out;
    r->nomem |= !out;
    for (size_t i = 1; out && i + 1 < n; i++) {
        bool escape = i + 2 < n && (quote == '"' ? s[i] == '\\' : s[i] == '\'' && s[i + 1] == '\'');
        i += escape;
        *p++ = s[i];
    }
    return out ? out : "";
}

/* "Kitchen Light, Ceiling": the name, then other names. */
static void put_names(list_reader *r, device *d, const char *text)
{
    const char **more = arena_alloc(r->a, NAMES_MAX * sizeof *more);
    r->nomem |= !more;
    for (size_t n = 0; more && *text && n < NAMES_MAX; n++) {
        size_t len = strcspn(text, ",");
        const char *name = list_keep(r, text, len);
        text += len + (text[len] == ',');
        text += strspn(text, " ");
        if (!pipeline_device_text_ok(name)) continue;
        if (d->name)
            more[d->n_aliases++] = name;
        else
            d->name = name;
    }
    d->aliases = more;
}

static void list_flush(list_reader *r)
{
    device d = {.id = r->id, .state = ""};
    const char *domain = r->has[KEY_DOMAIN] ? unquoted(r, &r->values[KEY_DOMAIN]) : "";
    if (r->open && r->has[KEY_NAMES]) put_names(r, &d, unquoted(r, &r->values[KEY_NAMES]));
    if (d.name && !d.id && pipeline_device_text_ok(domain) && !(d.id = slug_of(domain, d.name, r->a)))
        r->nomem = true;
    if (r->has[KEY_STATE]) d.state = unquoted(r, &r->values[KEY_STATE]);
    if (r->has[KEY_AREAS]) {
        const char *areas = unquoted(r, &r->values[KEY_AREAS]);
        d.area = list_keep(r, areas, strcspn(areas, ","));
    }
    if (r->has[KEY_MEASURED]) d.measured = unquoted(r, &r->values[KEY_MEASURED]);
    if (d.area && !pipeline_device_text_ok(d.area)) d.area = NULL;
    if (d.measured && !pipeline_device_text_ok(d.measured)) d.measured = NULL;
    if (d.name && d.id && !r->nomem && device_list_put(r->to, &d, r->id != NULL, r->a)) r->nomem = true;
    for (size_t i = 0; i < KEY_OTHER; i++) {
        r->nomem |= r->values[i].failed;
        buf_clear(&r->values[i]);
        r->has[i] = false;
    }
    r->open = false;
    r->id = NULL;
}

static entry_key key_of(const char *line, size_t n, size_t *ret_value)
{
    static const struct {
        const char *name;
        entry_key key;
    } KEYS[] = {{"names:", KEY_NAMES},
                {"name:", KEY_NAMES},
                {"domain:", KEY_DOMAIN},
                {"state:", KEY_STATE},
                {"areas:", KEY_AREAS},
                {"area:", KEY_AREAS},
                {"current_temperature:", KEY_MEASURED}};
    for (size_t i = 0; i < sizeof KEYS / sizeof *KEYS; i++) {
        size_t len = strlen(KEYS[i].name);
        if (n < len || memcmp(line, KEYS[i].name, len) != 0 || (n > len && line[len] != ' ')) continue;
        *ret_value = len;
        return KEYS[i].key;
    }
    return KEY_OTHER;
}

static void list_set(list_reader *r, const char *line, size_t n)
{
    size_t at = 0;
    r->last = key_of(line, n, &at);
    if (r->last == KEY_OTHER || r->has[r->last]) {
        r->last = KEY_OTHER;
        return;
    }
    while (at < n && line[at] == ' ') at++;
    buf_append(&r->values[r->last], line + at, n - at);
    r->has[r->last] = true;
    if (at == n) r->last = KEY_OTHER; /* a list below it is none of ours */
}

/* Of the attributes below an entry's own keys. */
static void list_attribute(list_reader *r, const char *line, size_t n)
{
    size_t at;
    if (key_of(line, n, &at) != KEY_MEASURED) return;
    list_set(r, line, n);
    r->last = KEY_OTHER;
}

/* "light.kitchen:" alone on its line. */
static bool is_id_line(const char *line, size_t n)
{
    const char *dot = memchr(line, '.', n);
    if (n < 4 || line[n - 1] != ':' || !dot || dot == line || dot + 2 >= line + n) return false;
    for (size_t i = 0; i + 1 < n; i++)
        if ((unsigned char)line[i] <= ' ' || strchr("'\":{}[],", line[i])) return false;
    return true;
}

static void list_open(list_reader *r, size_t indent, const char *id)
{
    list_flush(r);
    r->open = true;
    r->indent = indent;
    r->id = id;
    r->last = KEY_OTHER;
}

static void list_line(list_reader *r, const char *line, size_t n)
{
    size_t indent = 0, at;
    while (n && (line[n - 1] == '\r' || line[n - 1] == ' ')) n--;
    while (indent < n && line[indent] == ' ') indent++;
    line += indent;
    n -= indent;
    if (!n) return;
    bool begins = n > 2 && line[0] == '-' && line[1] == ' ' && key_of(line + 2, n - 2, &at) != KEY_OTHER;
    if (begins) {
        list_open(r, indent + 2, NULL);
        list_set(r, line + 2, n - 2);
    } else if (is_id_line(line, n)) {
        list_open(r, SIZE_MAX, list_keep(r, line, n - 1));
    } else if (r->open && r->indent == SIZE_MAX && indent > 0) {
        r->indent = indent;
        list_set(r, line, n);
    } else if (r->open && indent == r->indent) {
        list_set(r, line, n);
    } else if (r->open && indent > r->indent) {
        if (r->last == KEY_OTHER) {
            list_attribute(r, line, n);
            return;
        }
        buf_putc(&r->values[r->last], ' '); /* the value goes on */
        buf_append(&r->values[r->last], line, n);
    } else {
        list_flush(r);
        device d;
        if (verify_case_device(&d, line, n, r->a, &r->nomem) && device_list_put(r->to, &d, true, r->a))
            r->nomem = true;
    }
}

int device_list_read(device_list *to, const char *text, arena *a)
{
    list_reader r = {.to = to, .a = a};
    while (*text && !r.nomem) {
        size_t n = strcspn(text, "\n");
        list_line(&r, text, n);
        text += n + (text[n] == '\n');
    }
    list_flush(&r);
    for (size_t i = 0; i < KEY_OTHER; i++) buf_done(&r.values[i]);
    return r.nomem ? SHOAL_ENOMEM : 0;
}
