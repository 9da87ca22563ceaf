/* cache_view.c: see cache_view.h. */
#include "view/cache_view.h"

#include <stdlib.h>
#include <string.h>

#define MIB 1048576.0

static const char *const RESULTS[] = {"hit", "stale", "negative", "near", "shared", "miss"};
enum { N_RESULTS = sizeof RESULTS / sizeof *RESULTS, NAMES_MAX = 256 };

static const char *text(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));
    return s ? s : "";
}

static double number(const json_t *o, const char *key)
{
    return json_number_value(json_object_get(o, key));
}

static double asked(const json_t *lookup)
{
    double n = 0;
    for (int i = 0; i < N_RESULTS; i++) n += number(lookup, RESULTS[i]);
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
    double audited = number(s, "audited");
    buf_printf(out,
               "likeness: %.0f questions by %s, %.2f MiB; %.0f served, %.0f unlike any, %.0f without a model",
               number(s, "entries"), text(s, "model"), number(s, "bytes") / MIB, number(s, "near"),
               number(s, "none"), number(s, "absent"));
    json_object_foreach(json_object_get(s, "refused"), why, n)
        buf_printf(out, ", %.0f refused for %s", json_number_value(n), why);
    if (audited > 0)
        buf_printf(out, "; of %.0f that were made anew %.0f came out otherwise (%.1f %%)", audited,
                   number(s, "differed"), 100 * number(s, "false_hit_rate"));
    buf_putc(out, '\n');
}

void cache_view_put(buf *out, const json_t *cache)
{
    const json_t *list[NAMES_MAX];
    size_t n = sorted(cache, list);
    buf_printf(
        out, "%.0f answers, %.2f of %.0f MiB, %.0f tags; %.0f given up for room, %.0f too old, %.0f purged\n",
        number(cache, "entries"), number(cache, "bytes") / MIB, number(cache, "max_bytes") / MIB,
        number(cache, "tags"), number(cache, "evicted"), number(cache, "expired"), number(cache, "purged"));
    buf_printf(out, "good for %.0f s, stale for %.0f s more, refusals for %.0f s; %s between API keys\n",
               number(cache, "ttl_s"), number(cache, "stale_s"), number(cache, "negative_ttl_s"),
               json_is_true(json_object_get(cache, "shared")) ? "shared" : "not shared");
    put_likeness(out, json_object_get(cache, "semantic"));
    if (n == 0) return;
    buf_printf(out, "\n%-9s %-24s %8s %8s %8s %8s %8s %8s %7s\n", "OF", "NAME", "HIT", "STALE", "NEGATIVE",
               "NEAR", "SHARED", "MISS", "RATIO");
    for (size_t i = 0; i < n; i++) {
        buf_printf(out, "%-9s %-24s", text(list[i], "of"), text(list[i], "name"));
        for (int k = 0; k < N_RESULTS; k++) buf_printf(out, " %8.0f", number(list[i], RESULTS[k]));
        buf_printf(out, " %5.1f %%\n", 100 * number(list[i], "ratio"));
    }
}

void cache_view_line(buf *out, const json_t *cache, size_t n_names)
{
    const json_t *list[NAMES_MAX];
    size_t n = sorted(cache, list);
    double all = 0, missed = 0;
    for (size_t i = 0; i < n; i++) {
        all += asked(list[i]);
        missed += number(list[i], "miss");
    }
    if (all <= 0) return;
    buf_printf(out, "cache %.1f of %.0f MiB  hits %.0f %%", number(cache, "bytes") / MIB,
               number(cache, "max_bytes") / MIB, 100 * (all - missed) / all);
    for (size_t i = 0; i < n && i < n_names; i++)
        buf_printf(out, "%s%s %.0f %%", i ? ", " : "  ", text(list[i], "name"),
                   100 * number(list[i], "ratio"));
}
