/* log_view.c: the fields of one JSON object, in the order in which they stand there. */
#define _GNU_SOURCE
#include "view/log_view.h"

#include <stdio.h>
#include <string.h>

#include "json/json.h"
#include "logging/sanitise.h"
#include "base/utf8.h"

enum { FIELDS_MAX = 64 };

/* "2026-11-21T02:25:42.123Z" */
static bool read_time(struct timespec *ret, const char *s)
{
    struct tm tm = {0};
    int ms = 0, end = 0;
    if (sscanf(s, "%4d-%2d-%2dT%2d:%2d:%2d.%3dZ%n", &tm.tm_year, &tm.tm_mon, &tm.tm_mday, &tm.tm_hour,
               &tm.tm_min, &tm.tm_sec, &ms, &end) != 7 ||
        end != (int)strlen(s) || tm.tm_year < 1970 || ms < 0)
        return false;
    tm.tm_year -= 1900;
    tm.tm_mon--;
    *ret = (struct timespec){.tv_sec = timegm(&tm), .tv_nsec = ms * 1000000L};
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
    if (!s || !*s) return false;
    return !strchr(s, ' ') && sanitise_is(s);
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

bool log_view_put(buf *out, log_form form, size_t columns, bool colour, const char *line, size_t n)
{
    json_t *o = NULL, *value;
    log_field fields[FIELDS_MAX];
    const char *key;
    log_event e = {.fields = fields, .colour = colour};
    if (json_parse(&o, line, n, "line", NULL) != 0) return false;
    const char *time = json_string_value(json_object_get(o, "time"));
    const char *level = json_string_value(json_object_get(o, "level"));
    e.component = json_string_value(json_object_get(o, "component"));
    e.event = json_string_value(json_object_get(o, "event"));
    int l = level ? log_level_parse(level) : -1;
    bool fine = time && read_time(&e.at, time) && l >= 0 && is_plain(e.component) && is_plain(e.event);
    e.level = fine ? (log_level)l : LOG_INFO;
    if (fine)
        json_object_foreach(o, key, value) if (e.n_fields < FIELDS_MAX) e.n_fields +=
            take_field(&fields[e.n_fields], key, value);
    if (fine) log_format(out, form, columns, &e);
    json_decref(o);
    return fine;
}
