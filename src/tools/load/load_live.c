/* load_live.c: see load_live.h. */
#include "load/load_live.h"

#include "logging/sanitise.h"

enum { RECENT_S = 3, SPARKS_MOST = 60 };

/* Over the last seconds, of whole intervals. */
static double recent_rate(const load_record *r, double seconds)
{
    size_t n = 0, i = (size_t)(seconds / r->interval_s);
    double from = 0;
    if (i > r->n_intervals) i = r->n_intervals;
    while (i > 0 && from < RECENT_S) {
        n += r->intervals[--i].n_ok;
        from += r->interval_s;
    }
    return from > 0 ? (double)n / from : 0;
}

static void put_sparks(buf *out, const load_record *r, size_t columns)
{
    static const char *const sparks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    size_t n = r->n_intervals, most = 1, room = columns > 20 ? columns - 12 : 8;
    if (room > SPARKS_MOST) room = SPARKS_MOST;
    size_t from = n > room ? n - room : 0;
    for (size_t i = from; i < n; i++)
        if (r->intervals[i].n_ok > most) most = r->intervals[i].n_ok;
    for (size_t i = from; i < n; i++)
        buf_puts(out, r->intervals[i].n_ok       ? sparks[r->intervals[i].n_ok * 7 / most]
                      : r->intervals[i].n_failed ? "x"
                                                 : " ");
}

static void put_three(buf *out, const char *name, const load_histogram *h)
{
    buf_printf(out, "  %s p50 %.1f  p95 %.1f  p99 %.1f ms", name, load_histogram_ms(h, 0.50),
               load_histogram_ms(h, 0.95), load_histogram_ms(h, 0.99));
}

static size_t end_line(buf *out, size_t from, size_t columns)
{
    sanitise_line(out, from, columns);
    return out->len;
}

static void put_counts(buf *out, const load_live *l, const load_record *r, double seconds)
{
    buf_printf(out, "%s: %.1f", l->name, seconds);
    if (l->whole_s > 0) buf_printf(out, "/%g", l->whole_s);
    buf_printf(out, " s  %zu", r->n_sent);
    if (l->n_most) buf_printf(out, "/%zu", l->n_most);
    buf_printf(out, " sent, %zu ok, %zu failed, %zu in flight, %.1f/s", r->n_ok, r->n_failed,
               r->n_sent - r->n_ok - r->n_failed, recent_rate(r, seconds));
}

static void put_errors(buf *out, const load_record *r)
{
    buf_puts(out, "  errors");
    for (size_t i = 0; i < LOAD_N_ERRORS; i++)
        if (r->errors[i]) buf_printf(out, "  %s %zu", load_error_words[i], r->errors[i]);
}

void load_live_put(buf *out, const load_live *l, const load_record *r, double seconds, size_t columns)
{
    size_t from = out->len;
    put_counts(out, l, r, seconds);
    from = end_line(out, from, columns);
    put_three(out, "whole", &r->whole);
    from = end_line(out, from, columns);
    if (r->gap.n) {
        put_three(out, "first", &r->first);
        buf_printf(out, "  gap p99 %.1f ms  %.0f tokens/s", load_histogram_ms(&r->gap, 0.99),
                   seconds > 0 ? (double)r->n_tokens / seconds : 0);
        from = end_line(out, from, columns);
    }
    if (r->n_failed) {
        put_errors(out, r);
        from = end_line(out, from, columns);
    }
    buf_puts(out, "  answers ");
    put_sparks(out, r, columns);
    end_line(out, from, columns);
}

void load_live_put_line(buf *out, const load_live *l, const load_record *r, double seconds)
{
    put_counts(out, l, r, seconds);
    put_three(out, "whole", &r->whole);
    if (r->n_failed) put_errors(out, r);
    buf_putc(out, '\n');
}
