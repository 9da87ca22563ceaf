/* listening.c: what a loop's prepare and check handles see of its turns; see listening.h. */
#include "wire/listening.h"

#include <stdbool.h>

#include "base/clock.h"

#define NS_PER_MS 1000000u
#define SLACK_NS  ((uint64_t)LISTENING_SLACK_MS * NS_PER_MS)

/* While a descriptor is to be watched anew libuv (1.44) says 0 for a wait that it does not know yet. Too
 * little is on the safe side. */
enum { UNKNOWN_MS = 250 };

static _Thread_local struct {
    uv_prepare_t before;
    uv_check_t after;
    bool open, waits;    /* waits: between the two handles */
    uint64_t counted_ns; /* up to since_ns */
    uint64_t since_ns;   /* when it went to wait, or was woken */
    uint64_t most_ns;    /* that this wait may last */
} hears;

static uint64_t listening_least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t since(uint64_t start_ns, uint64_t end_ns)
{
    return end_ns > start_ns ? end_ns - start_ns : 0;
}

/* libuv looks at the clock as soon as it is woken; it counts in milliseconds. */
static uint64_t woken_ns(void)
{
    uint64_t ns = uv_now(hears.before.loop) * NS_PER_MS;
    return ns > hears.since_ns ? ns : hears.since_ns;
}

static void goes_to_wait(uv_prepare_t *h)
{
    uint64_t now = clock_ns();
    int most_ms = uv_backend_timeout(h->loop);
    if (most_ms == 0) most_ms = UNKNOWN_MS;
    hears.counted_ns += listening_least(since(hears.since_ns, now), SLACK_NS);
    hears.since_ns = now;
    hears.most_ns = most_ms < 0 ? UINT64_MAX : (uint64_t)most_ms * NS_PER_MS + SLACK_NS;
    hears.waits = true;
}

static void was_woken(uv_check_t *h)
{
    uint64_t woken = woken_ns();
    hears.counted_ns += listening_least(since(hears.since_ns, woken), hears.most_ns);
    hears.since_ns = woken;
    hears.waits = false;
}

void listening_open(uv_loop_t *loop)
{
    uv_update_time(loop);
    uv_prepare_init(loop, &hears.before);
    uv_check_init(loop, &hears.after);
    uv_prepare_start(&hears.before, goes_to_wait);
    uv_check_start(&hears.after, was_woken);
    uv_unref((uv_handle_t *)&hears.before);
    uv_unref((uv_handle_t *)&hears.after);
    hears.counted_ns = hears.since_ns = clock_ns();
    hears.waits = false;
    hears.open = true;
}

void listening_close(void)
{
    if (!hears.open) return;
    hears.open = false;
    uv_close((uv_handle_t *)&hears.before, NULL);
    uv_close((uv_handle_t *)&hears.after, NULL);
}

uint64_t listening_ns(void)
{
    uint64_t now = clock_ns();
    if (!hears.open) return now;
    uint64_t ns = hears.counted_ns, turn_ns = hears.since_ns;
    if (hears.waits) { /* called from the callback of a descriptor: the check handle comes behind these */
        turn_ns = woken_ns();
        ns += listening_least(since(hears.since_ns, turn_ns), hears.most_ns);
    }
    return ns + listening_least(since(turn_ns, now), SLACK_NS);
}
