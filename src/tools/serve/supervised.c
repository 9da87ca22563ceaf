/* supervised.c: see supervised.h. */
#include "serve/supervised.h"

#include <signal.h>
#include <stdlib.h>

#include "os/exit_guard.h"
#include "os/handover.h"
#include "serve/turn_watch.h"

struct supervised {
    uv_poll_t poll;
    uv_check_t turn;
    progress_counts *turns; /* NULL: they are not counted */
    int n_handles;
    supervised_events ev;
    bool closing;
};

/* ---- signals ------------------------------------------------------------------------------------------ */

static const int SIGNALS[] = {SIGTERM, SIGINT, SIGHUP};
enum { N_SIGNALS = sizeof SIGNALS / sizeof *SIGNALS };

/* A handler has no argument. */
static struct sigaction own[N_SIGNALS];
static int n_before; /* signals that came before they were filtered, and were taken */

static void on_forwarded(int signum, siginfo_t *si, void *context)
{
    if (si->si_code != SI_QUEUE || si->si_pid != handover_supervisor()) return;
    int sig = si->si_value.sival_int;
    if (sig & HANDOVER_AGAIN && n_before > 0) return;
    for (int i = 0; i < N_SIGNALS; i++)
        if (SIGNALS[i] == (sig & ~HANDOVER_AGAIN) && own[i].sa_handler) own[i].sa_handler(SIGNALS[i]);
}

static void on_direct(int signum) {}

static void filter_signals(void)
{
    struct sigaction forwarded = {.sa_sigaction = on_forwarded, .sa_flags = SA_SIGINFO | SA_RESTART};
    struct sigaction direct = {.sa_handler = on_direct, .sa_flags = SA_RESTART};
    sigfillset(&forwarded.sa_mask);
    for (int i = 0; i < N_SIGNALS; i++) {
        struct sigaction old;
        bool handled =
            sigaction(SIGNALS[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN && old.sa_handler != SIG_DFL;
        if (!handled) continue;
        own[i] = old;
        sigaction(SIGNALS[i], &direct, NULL);
    }
    n_before = exit_guard_signals();
    sigaction(HANDOVER_SIGNAL, &forwarded, NULL);
}

/* ---- messages ----------------------------------------------------------------------------------------- */

static void supervised_on_message(uv_poll_t *p, int status, int events)
{
    supervised *s = p->data;
    handover_msg m;
    while (!s->closing && handover_receive(&m)) {
        if (m.what == HANDOVER_EXITED) s->ev.exited(s->ev.user, m.a, m.b);
    }
}

int supervised_open(supervised **ret, uv_loop_t *loop, const supervised_events *ev, bool json_log, int level,
                    shoal_err *err)
{
    if (!handover_is_open()) return 0;
    supervised *s = calloc(1, sizeof *s);
    if (!s) return err_nomem(err);
    s->ev = *ev;
    int rc = uv_poll_init(loop, &s->poll, handover_fd());
    if (rc != 0) {
        free(s);
        return err_set(err, SHOAL_EIO, "the supervisor cannot be heard: %s", uv_strerror(rc));
    }
    s->poll.data = s->turn.data = s;
    uv_poll_start(&s->poll, UV_READABLE, supervised_on_message);
    s->turns = turn_watch_count(loop, &s->turn);
    s->n_handles = s->turns ? 2 : 1;
    filter_signals();
    handover_tell(HANDOVER_LOG, json_log, level);
    *ret = s;
    return 0;
}

static void closed(uv_handle_t *h)
{
    supervised *s = h->data;
    if (--s->n_handles == 0) free(s);
}

void supervised_close(supervised *s)
{
    if (!s || s->closing) return;
    s->closing = true;
    uv_close((uv_handle_t *)&s->poll, closed);
    if (!s->turns) return;
    atomic_store(&s->turns->loops, 0); /* what follows may take as long as it likes */
    uv_close((uv_handle_t *)&s->turn, closed);
}
