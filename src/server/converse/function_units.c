/* function_units.c: the unit that a chat says temperatures are in; see function_table.h. */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "converse/function_table_impl.h"

static bool is_letter(char c)
{
    return isalnum((unsigned char)c) || (unsigned char)c >= 0x80 || c == '_';
}

/* As a word of its own, whatever its letter case; a sign such as "°F" may stand behind a number: "68°F". */
static bool says(const char *text, const char *word)
{
    size_t n = strlen(word);
    bool sign = (unsigned char)word[0] >= 0x80;
    for (const char *p = text; n && *p; p++) {
        if (strncasecmp(p, word, n) != 0 || is_letter(p[n])) continue;
        if (sign || p == text || !is_letter(p[-1])) return true;
    }
    return false;
}

static bool says_one(const json_t *words, const char *text)
{
    size_t i;
    const json_t *w;
    json_array_foreach(words, i, w)
    {
        const char *s = json_string_value(w);
        if (s && says(text, s)) return true;
    }
    return false;
}

static bool says_in_chat(const json_t *words, const function_table *t, const chat_case *k)
{
    bool found = says_one(words, k->system);
    for (size_t i = 0; i < k->n_made && !found; i++)
        found = k->made[i].result && function_table_tells_states(t, k->made[i].name) &&
                says_one(words, k->made[i].result);
    return found;
}

/* The one unit of a map from units to words; NULL: none, or several. */
static const char *unit_said(const json_t *map, const function_table *t, const chat_case *k)
{
    const char *unit, *said = NULL;
    json_t *words;
    size_t n = 0;
    json_object_foreach((json_t *)(uintptr_t)map, unit, words)
    {
        if (!says_in_chat(words, t, k)) continue;
        said = unit;
        n++;
    }
    return n == 1 ? said : NULL;
}

static bool is_of_domain(const function_table *t, const device *d)
{
    size_t i, n = strcspn(d->id, ".");
    const json_t *v;
    json_array_foreach(t->unit_domains, i, v)
    {
        const char *s = json_string_value(v);
        if (s && strlen(s) == n && memcmp(s, d->id, n) == 0) return true;
    }
    return false;
}

/* "68 °F" tells its unit itself. */
static bool tells_unit(const function_table *t, const device *d)
{
    const char *unit;
    json_t *words;
    json_object_foreach((json_t *)(uintptr_t)t->unit_names, unit, words)
    {
        if (d->state && says_one(words, d->state)) return true;
    }
    return false;
}

void function_table_lend_units(device *list, size_t n, const function_table *t, const chat_case *k)
{
    const char *unit = unit_said(t->unit_names, t, k);
    if (!unit) unit = unit_said(t->unit_locales, t, k);
    for (size_t i = 0; i < n; i++) {
        if (list[i].unit) continue;
        list[i].unit_open = true;
        if (unit && is_of_domain(t, &list[i]) && !tells_unit(t, &list[i])) list[i].unit = unit;
    }
}
