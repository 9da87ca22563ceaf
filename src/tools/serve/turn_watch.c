/* turn_watch.c: see turn_watch.h. */
#define _GNU_SOURCE
#include "serve/turn_watch.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "os/handover.h"
#include "cluster/threads.h"

#define NEVER_MS UINT_MAX

struct turn_watch {
    progress_counts *page; /* written by the process: of no more use than its number of turns */
    liveness_limits limits;
    liveness live;
    bool has_seen;
    threads seen;
};

static progress_counts *map_page(int fd)
{
    void *p = mmap(NULL, sizeof(progress_counts), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return p == MAP_FAILED ? NULL : p;
}

/* ---- the supervisor ----------------------------------------------------------------------------------- */

/* Sealed: the process cannot cut it off under the supervisor's mapping. */
static int open_page(turn_watch *w, int *ret_fd, shoal_err *err)
{
    int fd = memfd_create("shoal-turns", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    bool made = fd >= 0 && ftruncate(fd, sizeof(progress_counts)) == 0 &&
                fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0;
    w->page = made ? map_page(fd) : NULL;
    if (w->page) {
        *ret_fd = fd;
        return 0;
    }
    if (fd >= 0) close(fd);
    return err_set(err, SHOAL_EIO, "no memory can be shared with the process");
}

int turn_watch_new(turn_watch **ret, unsigned cpu_ms, int *ret_fd, shoal_err *err)
{
    turn_watch *w = calloc(1, sizeof *w);
    if (!w) return err_nomem(err);
    w->limits = (liveness_limits){.cpu_ms = cpu_ms, /* only computing counts */
                                  .asleep_ms = NEVER_MS,
                                  .stopped_ms = NEVER_MS,
                                  .disk_ms = NEVER_MS,
                                  .beside_ms = NEVER_MS};
    int rc = open_page(w, ret_fd, err);
    if (rc == 0)
        *ret = w;
    else
        free(w);
    return rc;
}

void turn_watch_free(turn_watch *w)
{
    if (!w) return;
    munmap(w->page, sizeof *w->page);
    free(w);
}

void turn_watch_begin(turn_watch *w)
{
    progress_clear(w->page);
    w->live = (liveness){.limits = w->limits};
    w->has_seen = false;
}

static bool is_traced(pid_t pid)
{
    char path[40], text[4096];
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    if (fd >= 0) close(fd);
    text[n > 0 ? n : 0] = '\0';
    const char *at = strstr(text, "TracerPid:");
    return at && atoi(at + strlen("TracerPid:")) > 0;
}

/* Its threads are looked at only while it does not turn. */
bool turn_watch_hangs(turn_watch *w, pid_t pid)
{
    liveness_sample s = {.now_ns = clock_ns(),
                         .progress = atomic_load_explicit(&w->page->loop, memory_order_relaxed),
                         .busy = atomic_load_explicit(&w->page->loops, memory_order_relaxed) != 0};
    threads now;
    bool known = s.busy && s.progress == w->live.progress && !is_traced(pid) && threads_read(&now, "", pid);
    if (known) threads_compare(&s, w->has_seen ? &w->seen : NULL, &now, THREADS_FIRST);
    liveness_look(&w->live, &s);
    w->has_seen = known;
    if (known) w->seen = now;
    return known && w->live.verdict == LIVENESS_HUNG;
}

/* ---- the supervised process --------------------------------------------------------------------------- */

static void note_turn(uv_check_t *c)
{
    progress_tick();
}

progress_counts *turn_watch_count(uv_loop_t *loop, uv_check_t *check)
{
    int fd = handover_take(HANDOVER_TURNS); /* stays open: it is known by its number */
    progress_counts *page = fd >= 0 ? map_page(fd) : NULL;
    if (!page) return NULL;
    progress_publish(page);
    progress_run_loop();
    uv_check_init(loop, check);
    uv_check_start(check, note_turn);
    uv_unref((uv_handle_t *)check);
    return page;
}
