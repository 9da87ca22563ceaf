/* log_read.c: the fields of one JSON object, in the order in which they stand there. */
#define _GNU_SOURCE
#include "logging/log_read.h"

#include <string.h>

#include "logging/sanitise.h"

/* "2026-11-21T02:25:42.123Z" */
static bool read_time(struct timespec *ret, const char *s)
{
    static const char form[] = "YYYY-MM-DDThh:mm:ss.fffZ";
    int of[128] = {0}; /* the number for each letter */
    if (strlen(s) != sizeof form - 1) return false;
    for (size_t i = 0; form[i]; i++) {
        int *number = &of[(unsigned char)form[i]];
        bool literal = strchr("-T:.Z", form[i]);
        if (literal ? s[i] != form[i] : s[i] < '0' || s[i] > '9') return false;
        if (!literal) *number = *number * 10 + (s[i] - '0');
    }
    if (of['Y'] < 1970) return false;
    struct tm tm = {.tm_year = of['Y'] - 1900,
                    .tm_mon = of['M'] - 1,
                    .tm_mday = of['D'],
                    .tm_hour = of['h'],
                    .tm_min = of['m'],
                    .tm_sec = of['s']};
    *ret = (struct timespec){.tv_sec = timegm(&tm), .tv_nsec = of['f'] * 1000000L};
    return true;
}

static bool is_head(const char *key)
{
    return strcmp(key, "time") == 0 || strcmp(key, "level") == 0 || strcmp(key, "component") == 0 ||
           strcmp(key, "event") == 0;
}

/* Names in rows are not quoted: nothing but letters and such may be in them. */
static bool is_plain(const char *s)
{
    unsigned char seen = 0;
    if (!s || !*s) return false;
    for (const char *c = s; *c; c++) {
        if ((unsigned char)*c <= ' ' || *c == '"' || *c == '\\' || *c == '=' || *c == 0x7f) return false;
        seen |= (unsigned char)*c;
    }
    return seen < 0x80 || sanitise_is(s);
}

static bool take_field(log_field *f, const char *key, json_t *value)
{
    if (!is_plain(key) || is_head(key)) return false;
    if (json_is_string(value))
        *f = LOG_S(key, json_string_value(value));
    else if (json_is_integer(value))
        *f = LOG_I(key, json_integer_value(value));
    else if (json_is_number(value))
        *f = LOG_F(key, json_number_value(value));
    else
        return false;
    return true;
}

bool log_read(log_line *ret, const char *line, size_t n)
{
    const char *key;
    json_t *value;
    ret->object = NULL;
    ret->event = (log_event){.fields = ret->fields};
    if (json_parse(&ret->object, line, n, "line", NULL) != 0) return false;
    const char *time = json_string_value(json_object_get(ret->object, "time"));
    const char *level = json_string_value(json_object_get(ret->object, "level"));
    log_event *e = &ret->event;
    e->component = json_string_value(json_object_get(ret->object, "component"));
    e->event = json_string_value(json_object_get(ret->object, "event"));
    int l = level ? log_level_parse(level) : -1;
    if (!time || !read_time(&e->at, time) || l < 0 || l == LOG_OFF || !is_plain(e->component) ||
        !is_plain(e->event)) {
        log_read_done(ret);
        return false;
    }
    e->level = (log_level)l;
    json_object_foreach(ret->object, key, value) if (e->n_fields < LOG_READ_FIELDS - 1) e->n_fields +=
        take_field(&ret->fields[e->n_fields], key, value);
    return true;
}

void log_read_done(log_line *l)
{
    json_decref(l->object);
    l->object = NULL;
}
