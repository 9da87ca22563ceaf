/* crash.c: the handler of fatal signals, and the line that it writes. Whatever runs in it is async-signal-safe, but for
 * backtrace() and dladdr(), which are called once at the start so that they need load nothing later. */
#define _GNU_SOURCE
#include "os/crash.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { REPORTS = 0 };
#else
enum { REPORTS = 1 };
#endif

enum {
    LINE_MAX_BYTES = 3500 /* less than PIPE_BUF: whole or not at all */,
    FRAMES_MAX = 48,
    STACK_BYTES = 64 << 10
};

static const int SIGNALS[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGSYS, SIGTRAP};

static struct {
    const char *component;
    bool json;
    pid_t pid;
    uint64_t start_ns;
    volatile sig_atomic_t under_way;
    char endpoint[48], request_id[132];
} self;

static char alternate_stack[STACK_BYTES]; /* a stack overflow has none left */

/* ---- a line without allocation ------------------------------------------------------------------------ */

typedef struct line {
    char text[LINE_MAX_BYTES];
    size_t n;
} line;

static void crash_put(line *l, const char *s)
{
    while (*s && l->n + 2 < sizeof l->text) l->text[l->n++] = *s++;
}

static void put_digits(line *l, uint64_t x, unsigned base, unsigned least)
{
    char digits[24];
    size_t n = 0;
    do digits[n++] = "0123456789abcdef"[x % base];
    while (((x /= base) > 0 || n < least) && n < sizeof digits);
    while (n > 0 && l->n + 2 < sizeof l->text) l->text[l->n++] = digits[--n];
}

static void put_hex(line *l, uint64_t x)
{
    crash_put(l, "0x");
    put_digits(l, x, 16, 1);
}

/* A request's id is the client's word: what could end the value or the line is left out. */
static void crash_put_word(line *l, const char *s)
{
    for (char c[2] = ""; (*c = *s); s++)
        crash_put(l, *c > ' ' && *c < 0x7F && *c != '"' && *c != '\\' && *c != '=' ? c : "_");
}

static void put_key(line *l, const char *key, bool text)
{
    crash_put(l, self.json ? ",\"" : " ");
    crash_put(l, key);
    crash_put(l, self.json ? "\":" : "=");
    if (text && self.json) crash_put(l, "\"");
}

static void crash_put_text(line *l, const char *key, const char *value)
{
    put_key(l, key, true);
    crash_put_word(l, value);
    if (self.json) crash_put(l, "\"");
}

static void put_int(line *l, const char *key, uint64_t value)
{
    put_key(l, key, false);
    put_digits(l, value, 10, 1);
}

/* Civil date from days since 1970 (Howard Hinnant, "chrono-compatible low-level date algorithms"): gmtime_r may lock. */
static void put_time(line *l)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    uint64_t days = (uint64_t)t.tv_sec / 86400 + 719468, s = (uint64_t)t.tv_sec % 86400;
    uint64_t era = days / 146097, doe = days % 146097;
    uint64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365,
             doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    uint64_t mp = (5 * doy + 2) / 153, month = mp < 10 ? mp + 3 : mp - 9;
    const struct {
        uint64_t value;
        unsigned digits;
        const char *behind;
    } parts[] = {{yoe + era * 400 + (month <= 2), 4, "-"},
                 {month, 2, "-"},
                 {doy - (153 * mp + 2) / 5 + 1, 2, "T"},
                 {s / 3600, 2, ":"},
                 {s / 60 % 60, 2, ":"},
                 {s % 60, 2, "."},
                 {(uint64_t)t.tv_nsec / 1000000, 3, "Z"}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        put_digits(l, parts[i].value, 10, parts[i].digits);
        crash_put(l, parts[i].behind);
    }
}

static void put_frame(line *l, const void *at)
{
    Dl_info in = {0};
    if (!dladdr(at, &in) || !in.dli_fname) {
        put_hex(l, (uintptr_t)at);
        return;
    }
    const char *slash = strrchr(in.dli_fname, '/');
    crash_put_word(l, slash ? slash + 1 : in.dli_fname);
    crash_put(l, "+");
    put_hex(l, (uintptr_t)at - (uintptr_t)in.dli_fbase);
    if (!in.dli_sname) return;
    crash_put(l, "(");
    crash_put_word(l, in.dli_sname);
    crash_put(l, ")");
}

static void put_backtrace(line *l)
{
    void *frames[FRAMES_MAX];
    int n = backtrace(frames, FRAMES_MAX);
    put_key(l, "backtrace", true);
    if (!self.json) crash_put(l, "\"");
    for (int i = 2; i < n && l->n + 300 < sizeof l->text; i++) { /* behind this function and the handler */
        if (i > 2) crash_put(l, " ");
        put_frame(l, frames[i]);
    }
    crash_put(l, "\"");
}

static void put_request(line *l)
{
    if (!*self.endpoint) return;
    crash_put_text(l, "endpoint", self.endpoint);
    crash_put_text(l, "request_id", self.request_id);
    crash_put_text(l, "request", self.under_way ? "in_handler" : "latest");
}

/* ---- the handler -------------------------------------------------------------------------------------- */

static void write_report(const line *l)
{
    struct pollfd p = {.fd = STDERR_FILENO, .events = POLLOUT};
    if (poll(&p, 1, 0) == 1 &&
        write(STDERR_FILENO, l->text, l->n) < 0) { /* nobody hears it: the signal says it */
    }
}

static void crash_report(int sig, const siginfo_t *si)
{
    static line l;
    const char *name = sigabbrev_np(sig);
    crash_put(&l, self.json ? "{\"time\":\"" : "time=");
    put_time(&l);
    crash_put(&l, self.json ? "\",\"level\":\"error\"" : " level=error");
    crash_put_text(&l, "component", self.component);
    crash_put_text(&l, "event", "crash");
    put_int(&l, "pid", (uint64_t)self.pid);
    put_int(&l, "signal", (uint64_t)sig);
    crash_put_text(&l, "name", name ? name : "");
    put_key(&l, "address", true);
    put_hex(&l, si->si_code > 0 ? (uintptr_t)si->si_addr : 0); /* else somebody sent the signal */
    if (self.json) crash_put(&l, "\"");
    put_int(&l, "sent_by", si->si_code <= 0 ? (uint64_t)si->si_pid : 0);
    put_int(&l, "thread", (uint64_t)syscall(SYS_gettid));
    put_int(&l, "uptime_ms", (clock_ns() - self.start_ns) / 1000000);
    crash_put_text(&l, "version", SHOAL_VERSION);
    put_request(&l);
    put_backtrace(&l);
    crash_put(&l, self.json ? "}\n" : "\n");
    write_report(&l);
}

/* SA_RESETHAND: a fault in here, and the signal that is raised behind it, end the process. */
static void on_fault(int sig, siginfo_t *si, void *context)
{
    if (getpid() == self.pid) crash_report(sig, si);
    raise(sig);
}

void crash_open(const char *component, bool json)
{
    void *frame[1];
    Dl_info in;
    stack_t stack = {.ss_sp = alternate_stack, .ss_size = sizeof alternate_stack};
    struct sigaction a = {.sa_sigaction = on_fault,
                          .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESETHAND | SA_NODEFER};
    if (!REPORTS) return;
    self.component = component;
    self.json = json;
    self.pid = getpid();
    self.start_ns = clock_ns();
    backtrace(frame, 1);
    dladdr(frame[0], &in);
    sigaltstack(&stack, NULL);
    for (size_t i = 0; i < sizeof SIGNALS / sizeof *SIGNALS; i++) sigaction(SIGNALS[i], &a, NULL);
}

void crash_enter(const char *endpoint, const char *request_id)
{
    strncpy(self.endpoint, endpoint, sizeof self.endpoint - 1);
    strncpy(self.request_id, request_id, sizeof self.request_id - 1);
    self.under_way = 1;
}

void crash_leave(void)
{
    self.under_way = 0;
}
