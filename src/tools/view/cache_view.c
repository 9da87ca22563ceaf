/* cache_view.c: see cache_view.h. */
#include "view/cache_view.h"

#include <stdlib.h>
#include <string.h>

#include "json/json.h"

#define MIB 1048576.0

static const char *const RESULTS[] = {"hit", "stale", "negative", "near", "shared", "miss"};
enum { N_RESULTS = sizeof RESULTS / sizeof *RESULTS, NAMES_MAX = 256, NAME_COLUMNS = 17 };

static double asked(const json_t *lookup)
{
    double n = 0;
    for (int i = 0; i < N_RESULTS; i++) n += json_number_of(lookup, RESULTS[i]);
    return n;
}

static int by_asked(const void *a, const void *b)
{
    double x = asked(*(const json_t *const *)a), y = asked(*(const json_t *const *)b);
    return x > y ? -1 : x < y ? 1 : 0;
}

/* Those that were asked most come first; ret[NAMES_MAX]. */
static size_t sorted(const json_t *cache, const json_t **ret)
{
    const json_t *list = json_object_get(cache, "lookups");
    size_t n = json_array_size(list);
    if (n > NAMES_MAX) n = NAMES_MAX;
    for (size_t i = 0; i < n; i++) ret[i] = json_array_get(list, i);
    qsort(ret, n, sizeof *ret, by_asked);
    return n;
}

static void put_likeness(buf *out, const json_t *s)
{
    const char *why;
    json_t *n;
    if (!s) return;
    double audited = json_number_of(s, "audited");
    buf_printf(out,
               "likeness: %.0f questions by %s, %.2f MiB; %.0f served, %.0f unlike any, %.0f without a model",
               json_number_of(s, "entries"), json_text_of(s, "model"), json_number_of(s, "bytes") / MIB,
               json_number_of(s, "near"), json_number_of(s, "none"), json_number_of(s, "absent"));
    json_object_foreach(json_object_get(s, "refused"), why, n)
        buf_printf(out, ", %.0f refused for %s", json_number_value(n), why);
    if (audited > 0)
        buf_printf(out, "; of %.0f that were made anew %.0f came out otherwise (%.1f %%)", audited,
                   json_number_of(s, "differed"), 100 * json_number_of(s, "false_hit_rate"));
    buf_putc(out, '\n');
}

void cache_view_put(buf *out, const json_t *cache)
{
    const json_t *list[NAMES_MAX];
    size_t n = sorted(cache, list);
    buf_printf(
        out, "%.0f answers, %.2f of %.0f MiB, %.0f tags; %.0f given up for room, %.0f too old, %.0f purged\n",
        json_number_of(cache, "entries"), json_number_of(cache, "bytes") / MIB,
        json_number_of(cache, "max_bytes") / MIB, json_number_of(cache, "tags"),
        json_number_of(cache, "evicted"), json_number_of(cache, "expired"), json_number_of(cache, "purged"));
    buf_printf(out, "good for %.0f s, stale for %.0f s more, refusals for %.0f s; %s between API keys\n",
               json_number_of(cache, "ttl_s"), json_number_of(cache, "stale_s"),
               json_number_of(cache, "negative_ttl_s"),
               json_is_true(json_object_get(cache, "shared")) ? "shared" : "not shared");
    put_likeness(out, json_object_get(cache, "semantic"));
    if (n == 0) return;
    buf_printf(out, "\n%-9s %-17s %6s %6s %8s %6s %6s %6s %7s\n", "OF", "NAME", "HIT", "STALE", "NEGATIVE",
               "NEAR", "SHARED", "MISS", "RATIO");
    for (size_t i = 0; i < n; i++) {
        const char *name = json_text_of(list[i], "name");
        bool apart = strlen(name) > NAME_COLUMNS; /* in a row of its own it moves no other column */
        buf_printf(out, "%-9s %s%s", json_text_of(list[i], "of"), name, apart ? "\n" : "");
        buf_printf(out, "%*s", apart ? 10 + NAME_COLUMNS : NAME_COLUMNS - (int)strlen(name), "");
        for (int k = 0; k < N_RESULTS; k++)
            buf_printf(out, " %*.0f", strcmp(RESULTS[k], "negative") == 0 ? 8 : 6,
                       json_number_of(list[i], RESULTS[k]));
        buf_printf(out, " %5.1f %%\n", 100 * json_number_of(list[i], "ratio"));
    }
}

void cache_view_line(buf *out, const json_t *cache, size_t n_names)
{
    const json_t *list[NAMES_MAX];
    size_t n = sorted(cache, list);
    double all = 0, missed = 0;
    for (size_t i = 0; i < n; i++) {
        all += asked(list[i]);
        missed += json_number_of(list[i], "miss");
    }
    if (all <= 0) return;
    buf_printf(out, "cache %.1f of %.0f MiB  hits %.0f %%", json_number_of(cache, "bytes") / MIB,
               json_number_of(cache, "max_bytes") / MIB, 100 * (all - missed) / all);
    for (size_t i = 0; i < n && i < n_names; i++)
        buf_printf(out, "%s%s %.0f %%", i ? ", " : "  ", json_text_of(list[i], "name"),
                   100 * json_number_of(list[i], "ratio"));
}
