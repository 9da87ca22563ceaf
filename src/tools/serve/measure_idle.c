/* measure_idle.c: see measure_idle.h. */
#include "serve/measure_idle.h"

#include <stdlib.h>

#include "logging/log.h"
#include "base/signal_stack.h"
#include "base/sys.h"
#include "cluster/machine.h"

enum { SOON_MS = 60000, LATER_MS = 3600000 };

#define IDLE_LOAD 0.25 /* processes that want to run, a core */

struct measure_idle {
    measure_idle_options o;
    uv_timer_t timer;
    uv_work_t work;
    bool running, closing, closed, clean;
    double bytes_per_s, multiplies_per_s;
};

bool measure_idle_may(double load_1m, unsigned n_cores)
{
    return load_1m <= IDLE_LOAD * (n_cores ? n_cores : 1);
}

static void release(measure_idle *m)
{
    if (m->closed && !m->running) free(m);
}

static void measure_idle_measure(uv_work_t *w)
{
    signal_stack_open();
    measure_idle *m = w->data;
    m->clean = measure_here(m->o.chosen, &m->bytes_per_s, &m->multiplies_per_s);
}

static void on_time(uv_timer_t *t);

static void measured(uv_work_t *w, int status)
{
    measure_idle *m = w->data;
    m->running = false;
    if (m->closing) {
        release(m);
        return;
    }
    uv_timer_start(&m->timer, on_time, m->clean ? LATER_MS : SOON_MS, 0);
    if (status != 0 || !m->clean) return;
    LOG(LOG_INFO, "measure", "measured", LOG_F("gb_per_s", m->bytes_per_s / 1e9),
        LOG_F("gmul_per_s", m->multiplies_per_s / 1e9));
    m->o.found(m->o.user, m->bytes_per_s, m->multiplies_per_s);
}

static void on_time(uv_timer_t *t)
{
    measure_idle *m = t->data;
    machine now;
    machine_read(&now, "");
    if (measure_idle_may(now.load_1m, (unsigned)sys_core_count()))
        m->running = uv_queue_work(t->loop, &m->work, measure_idle_measure, measured) == 0;
    if (!m->running) uv_timer_start(t, on_time, SOON_MS, 0);
}

int measure_idle_open(measure_idle **ret, uv_loop_t *loop, const measure_idle_options *o, shoal_err *err)
{
    measure_idle *m = calloc(1, sizeof *m);
    if (!m) return err_nomem(err);
    m->o = *o;
    m->work.data = m;
    uv_timer_init(loop, &m->timer);
    m->timer.data = m;
    uv_unref((uv_handle_t *)&m->timer); /* it keeps no process alive */
    uv_timer_start(&m->timer, on_time, o->measured ? LATER_MS : SOON_MS, 0);
    *ret = m;
    return 0;
}

static void timer_closed(uv_handle_t *h)
{
    measure_idle *m = h->data;
    m->closed = true;
    release(m);
}

void measure_idle_close(measure_idle *m)
{
    if (!m) return;
    m->closing = true;
    uv_close((uv_handle_t *)&m->timer, timer_closed);
}
