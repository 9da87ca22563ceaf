/* crash.c: the handler of fatal signals, and the line that it writes. Whatever runs in it is async-signal-safe, but for
 * backtrace() and dladdr(), which are called once at the start so that they need load nothing later. */
#define _GNU_SOURCE
#include "os/crash.h"

#include <dirent.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/signal_stack.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { REPORTS = 0 };
#else
enum { REPORTS = 1 };
#endif

enum {
    LINE_MAX_BYTES = 3500 /* less than PIPE_BUF: whole or not at all */,
    FRAMES_MAX = 48,
    MODULES_MAX = 48,
    BUILD_ID_BYTES = 20,
    FOLDER_BYTES = 3900,
    NAME_MAX_BYTES = 200, /* of a file or a symbol */
    GIVE_UP_S = 5,
    NAME_BYTES = CRASH_NAME_BYTES
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

typedef struct step {           /* written by the threads that work, and read by one that dies */
    _Atomic(const char *) kind; /* NULL: none yet */
    atomic_size_t n_jobs, n_tokens;
    atomic_uint_least64_t begin_ns, end_ns; /* end_ns 0: it has not ended */
} step;

typedef struct module {
    uintptr_t base;
    size_t n_id;
    uint8_t id[BUILD_ID_BYTES];
} module;

static struct {
    char folder[FOLDER_BYTES], name[NAME_BYTES]; /* folder "": none is kept */
    const char *keys[CRASH_FACTS];
    char values[CRASH_FACTS][CRASH_FACT_BYTES];
    size_t n_facts;
    step steps[CRASH_STEPS];
    atomic_size_t n_steps;
    module modules[MODULES_MAX];
    size_t n_modules;
} kept;

static _Thread_local step *under_way;

/* Of the main thread; others have theirs of signal_stack_open. */
static char alternate_stack[SIGNAL_STACK_BYTES];

/* ---- a line without allocation ------------------------------------------------------------------------ */

typedef struct line {
    char *text;
    size_t n, cap;
    bool json;
} line;

static void crash_put(line *l, const char *s)
{
    while (*s && l->n + 2 < l->cap) l->text[l->n++] = *s++;
}

static void put_digits(line *l, uint64_t x, unsigned base, unsigned least)
{
    char digits[24];
    size_t n = 0;
    do digits[n++] = "0123456789abcdef"[x % base];
    while (((x /= base) > 0 || n < least) && n < sizeof digits);
    while (n > 0 && l->n + 2 < l->cap) l->text[l->n++] = digits[--n];
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

/* A file or a symbol, which may be as long as templates make it. */
static void crash_put_name(line *l, const char *s)
{
    line cut = {.text = l->text, .n = l->n, .cap = l->n + NAME_MAX_BYTES + 2};
    if (cut.cap > l->cap) cut.cap = l->cap;
    crash_put_word(&cut, s);
    l->n = cut.n;
}

static void put_key(line *l, const char *key, bool text)
{
    crash_put(l, l->json ? ",\"" : " ");
    crash_put(l, key);
    crash_put(l, l->json ? "\":" : "=");
    if (text && l->json) crash_put(l, "\"");
}

static void crash_put_text(line *l, const char *key, const char *value)
{
    put_key(l, key, true);
    crash_put_word(l, value);
    if (l->json) crash_put(l, "\"");
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
    crash_put_name(l, slash ? slash + 1 : in.dli_fname);
    crash_put(l, "+");
    put_hex(l, (uintptr_t)at - (uintptr_t)in.dli_fbase);
    if (!in.dli_sname) return;
    crash_put(l, "(");
    crash_put_name(l, in.dli_sname);
    crash_put(l, ")");
}

static void put_backtrace(line *l, void *const *frames, int n)
{
    put_key(l, "backtrace", true);
    if (!l->json) crash_put(l, "\"");
    for (int i = 0; i < n && l->n + 2 * NAME_MAX_BYTES + 50 < l->cap; i++) {
        if (i > 0) crash_put(l, " ");
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

static void put_head(line *l, int sig, const siginfo_t *si)
{
    const char *name = sigabbrev_np(sig);
    crash_put(l, l->json ? "{\"time\":\"" : "time=");
    put_time(l);
    crash_put(l, l->json ? "\",\"level\":\"error\"" : " level=error");
    crash_put_text(l, "component", self.component);
    crash_put_text(l, "event", "crash");
    put_int(l, "pid", (uint64_t)self.pid);
    put_int(l, "signal", (uint64_t)sig);
    crash_put_text(l, "name", name ? name : "");
    put_key(l, "address", true);
    put_hex(l, si->si_code > 0 ? (uintptr_t)si->si_addr : 0); /* else somebody sent the signal */
    if (l->json) crash_put(l, "\"");
    put_int(l, "sent_by", si->si_code <= 0 ? (uint64_t)si->si_pid : 0);
    put_int(l, "thread", (uint64_t)syscall(SYS_gettid));
    put_int(l, "uptime_ms", (clock_ns() - self.start_ns) / 1000000);
    crash_put_text(l, "version", SHOAL_VERSION);
    put_request(l);
}

/* ---- the report --------------------------------------------------------------------------------------- */

static const module *module_at(uintptr_t base)
{
    for (size_t i = 0; i < kept.n_modules; i++)
        if (kept.modules[i].base == base) return &kept.modules[i];
    return NULL;
}

/* {"file":"/usr/bin/shoal","build_id":"3c..","offset":"0x1f2b3","symbol":"uv_run"} */
static void put_report_frame(line *l, const void *at)
{
    Dl_info in = {0};
    bool known = dladdr(at, &in) && in.dli_fname;
    const module *m = known ? module_at((uintptr_t)in.dli_fbase) : NULL;
    crash_put(l, "{\"file\":\"");
    crash_put_name(l, known ? in.dli_fname : "");
    crash_put(l, "\",\"build_id\":\"");
    for (size_t i = 0; m && i < m->n_id; i++) put_digits(l, m->id[i], 16, 2);
    crash_put(l, "\",\"offset\":\"");
    put_hex(l, (uintptr_t)at - (known ? (uintptr_t)in.dli_fbase : 0));
    crash_put(l, "\",\"symbol\":\"");
    crash_put_name(l, known && in.dli_sname ? in.dli_sname : "");
    crash_put(l, "\"}");
}

static void put_limit(line *l, const char *key, int what)
{
    struct rlimit r;
    if (getrlimit(what, &r) != 0 || r.rlim_cur == RLIM_INFINITY) return;
    put_int(l, key, r.rlim_cur);
}

static void put_facts(line *l)
{
    put_key(l, "facts", false);
    crash_put(l, "{\"of\":\"process\"");
    for (size_t i = 0; i < kept.n_facts; i++) crash_put_text(l, kept.keys[i], kept.values[i]);
    put_limit(l, "limit_files", RLIMIT_NOFILE);
    put_limit(l, "limit_address_space", RLIMIT_AS);
    put_limit(l, "limit_memory_lock", RLIMIT_MEMLOCK);
    put_limit(l, "limit_processes", RLIMIT_NPROC);
    crash_put(l, "}");
}

/* The latest first. */
static void put_steps(line *l)
{
    size_t n = kept.n_steps;
    uint64_t now = clock_ns();
    put_key(l, "steps", false);
    crash_put(l, "[");
    for (size_t i = 0; i < CRASH_STEPS && i < n; i++) {
        const step *s = &kept.steps[(n - 1 - i) % CRASH_STEPS];
        if (!s->kind) continue;
        crash_put(l, i ? ",{\"kind\":\"" : "{\"kind\":\"");
        crash_put_word(l, s->kind);
        crash_put(l, "\"");
        put_int(l, "jobs", s->n_jobs);
        put_int(l, "tokens", s->n_tokens);
        put_int(l, "began_us_ago", now > s->begin_ns ? (now - s->begin_ns) / 1000 : 0);
        if (s->end_ns) put_int(l, "took_us", (s->end_ns - s->begin_ns) / 1000);
        crash_put(l, "}");
    }
    crash_put(l, "]");
}

static void put_frames(line *l, void *const *frames, int n)
{
    put_key(l, "frames", false);
    crash_put(l, "[");
    for (int i = 0; i < n && l->n + 1024 < l->cap; i++) {
        if (i > 0) crash_put(l, ",");
        put_report_frame(l, frames[i]);
    }
    crash_put(l, "]");
}

/* TIME-COMPONENT-PID.json; names sort by time. */
static void name_report(char ret[NAME_BYTES])
{
    struct timespec t;
    line l = {.text = ret, .cap = NAME_BYTES};
    clock_gettime(CLOCK_REALTIME, &t);
    put_digits(&l, (uint64_t)t.tv_sec, 10, 11);
    crash_put(&l, "-");
    crash_put(&l, self.component);
    crash_put(&l, "-");
    put_digits(&l, (uint64_t)self.pid, 10, 1);
    crash_put(&l, ".json");
    ret[l.n] = '\0';
}

/* This user's own, which nobody else may write into. -1: it is not, or there is none. */
static int open_folder(const char *folder)
{
    struct stat st;
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || (fstat(fd, &st) == 0 && st.st_uid == geteuid() && !(st.st_mode & (S_IWGRP | S_IWOTH))))
        return fd;
    close(fd);
    return -1;
}

static bool write_all(int fd, off_t at, const char *s, size_t n)
{
    for (ssize_t done; n > 0; s += done, at += done, n -= (size_t)done)
        if ((done = pwrite(fd, s, n, at)) <= 0) return false;
    return true;
}

/* A report while it is written. It is whole JSON from the first write on: frames take the place of none. */
static struct {
    int fd; /* -1: none is kept, or it cannot be written */
    size_t n_before;
    char text[CRASH_REPORT_BYTES];
} report = {.fd = -1};

static bool write_frames(void *const *frames, int n)
{
    line l = {.text = report.text, .n = report.n_before, .cap = sizeof report.text, .json = true};
    put_frames(&l, frames, n);
    crash_put(&l, "}");
    l.text[l.n++] = '\n';
    return write_all(report.fd, (off_t)report.n_before, l.text + report.n_before, l.n - report.n_before) &&
           ftruncate(report.fd, (off_t)l.n) == 0;
}

/* Half of one is removed. */
static void write_report(int sig, const siginfo_t *si)
{
    line l = {.text = report.text, .cap = sizeof report.text, .json = true};
    int dir = *kept.folder ? open_folder(kept.folder) : -1;
    if (dir < 0) return;
    name_report(kept.name);
    report.fd = openat(dir, kept.name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (report.fd < 0) return;
    put_head(&l, sig, si);
    put_facts(&l);
    put_steps(&l);
    report.n_before = l.n;
    if (write_all(report.fd, 0, l.text, l.n) && write_frames(NULL, 0)) return;
    report.fd = -1;
    unlinkat(dir, kept.name, 0);
}

/* ---- the handler -------------------------------------------------------------------------------------- */

/* backtrace() and dladdr() may fault where the stack is smashed, and wait for ever for a lock of the loader. So what can be
 * said without them is ready before, and is said then. */
static struct {
    atomic_int owner; /* the thread that reports; 0: none */
    atomic_bool said;
    volatile sig_atomic_t sig;
    _Atomic(const line *) best; /* the line that says most so far; NULL: none */
} dying;

static void make_line(unsigned i, int sig, const siginfo_t *si, void *const *frames, int n)
{
    enum { LINES = 3 };
    static char texts[LINES][LINE_MAX_BYTES];
    static line lines[LINES];
    line *l = &lines[i];
    *l = (line){.text = texts[i], .cap = LINE_MAX_BYTES, .json = self.json};
    put_head(l, sig, si);
    if (report.fd >= 0) crash_put_text(l, "report", kept.name);
    put_backtrace(l, frames, n);
    crash_put(l, l->json ? "}\n" : "\n");
    atomic_store(&dying.best, l);
}

static void say_best(void)
{
    const line *l = atomic_load(&dying.best);
    struct pollfd p = {.fd = STDERR_FILENO, .events = POLLOUT};
    if (!l || atomic_exchange(&dying.said, true)) return;
    if (poll(&p, 1, 0) == 1 &&
        write(STDERR_FILENO, l->text, l->n) < 0) { /* nobody hears it: the signal says it */
    }
}

/* Of the signal, so that a core is written. */
static void die_of(int sig)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, sig);
    signal(sig, SIG_DFL);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    raise(sig);
}

static void on_give_up(int sig)
{
    say_best();
    die_of(dying.sig);
}

static void limit_time(void)
{
    struct sigaction a = {.sa_handler = on_give_up, .sa_flags = SA_ONSTACK};
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    sigaction(SIGALRM, &a, NULL);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    alarm(GIVE_UP_S);
}

__attribute__((noinline)) static void crash_report(int sig, const siginfo_t *si)
{
    enum { OWN_FRAMES = 2 }; /* this function and the handler */
    void *all[FRAMES_MAX], **frames = all + OWN_FRAMES;
    dying.sig = sig;
    limit_time();
    make_line(0, sig, si, NULL, 0);
    write_report(sig, si);
    make_line(1, sig, si, NULL, 0);
    int n = backtrace(all, FRAMES_MAX) - OWN_FRAMES;
    if (report.fd >= 0 && !write_frames(frames, n)) write_frames(NULL, 0);
    make_line(2, sig, si, frames, n);
    say_best();
}

/* Threads may fault at once (a truncated file that all read): the first one reports, and the others wait for the end. */
static void on_fault(int sig, siginfo_t *si, void *context)
{
    int none = 0, self_id = (int)syscall(SYS_gettid);
    if (getpid() == self.pid && atomic_compare_exchange_strong(&dying.owner, &none, self_id)) {
        crash_report(sig, si);
    } else if (getpid() == self.pid && none == self_id) { /* a fault in the report */
        say_best();
        sig = dying.sig;
    } else if (getpid() == self.pid) {
        for (;;) pause();
    }
    die_of(sig);
}

void crash_open(const char *component, bool json)
{
    void *frame[1];
    Dl_info in;
    stack_t stack = {.ss_sp = alternate_stack, .ss_size = sizeof alternate_stack};
    struct sigaction a = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
    if (!REPORTS) return;
    self.component = component;
    self.json = json;
    self.pid = getpid();
    self.start_ns = clock_ns();
    backtrace(frame, 1);
    dladdr(frame[0], &in);
    sigaltstack(&stack, NULL);
    signal_stacks_on();
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

/* ---- what a report says ------------------------------------------------------------------------------- */

static void note_build_id(module *m, const struct dl_phdr_info *in, const ElfW(Phdr) * p)
{
    const char *at = (const char *)(uintptr_t)(in->dlpi_addr + p->p_vaddr), *end = at + p->p_memsz;
    while (end - at >= (ptrdiff_t)sizeof(ElfW(Nhdr))) {
        const ElfW(Nhdr) *n = (const void *)at;
        size_t name = (n->n_namesz + 3) & ~3u, desc = (n->n_descsz + 3) & ~3u;
        const char *text = at + sizeof *n;
        if ((size_t)(end - text) < name + desc) return;
        if (n->n_type == NT_GNU_BUILD_ID && n->n_namesz == 4 && memcmp(text, "GNU", 4) == 0) {
            m->n_id = n->n_descsz < sizeof m->id ? n->n_descsz : sizeof m->id;
            memcpy(m->id, text + name, m->n_id);
            return;
        }
        at = text + name + desc;
    }
}

static int note_module(struct dl_phdr_info *in, size_t size, void *user)
{
    if (kept.n_modules == MODULES_MAX) return 1;
    module *m = &kept.modules[kept.n_modules];
    *m = (module){.base = in->dlpi_addr};
    for (int i = 0; i < in->dlpi_phnum; i++)
        if (in->dlpi_phdr[i].p_type == PT_NOTE && !m->n_id) note_build_id(m, in, &in->dlpi_phdr[i]);
    kept.n_modules += m->n_id > 0;
    return 0;
}

bool crash_is_report(const char *name)
{
    size_t digits = strspn(name, "0123456789"), n = strlen(name);
    return digits == 11 && name[digits] == '-' && n < NAME_BYTES && n > digits + 6 && !strchr(name, '/') &&
           strcmp(name + n - 5, ".json") == 0;
}

static int is_report(const struct dirent *e)
{
    return crash_is_report(e->d_name);
}

static void remove_oldest(int dir)
{
    struct dirent **list = NULL;
    int n = scandirat(dir, ".", &list, is_report, alphasort);
    for (int i = 0; i < n; i++) {
        if (i < n - (CRASH_REPORTS - 1)) unlinkat(dir, list[i]->d_name, 0);
        free(list[i]);
    }
    free(list);
}

/* The folder that it is in, too. */
static int make_folder(const char *folder)
{
    char above[FOLDER_BYTES];
    snprintf(above, sizeof above, "%s", folder);
    char *slash = strrchr(above, '/');
    if (slash && slash != above) {
        *slash = '\0';
        mkdir(above, 0700);
    }
    mkdir(folder, 0700);
    return open_folder(folder);
}

void crash_keep(const char *folder)
{
    int dir = REPORTS && folder && strlen(folder) < sizeof kept.folder ? make_folder(folder) : -1;
    if (dir < 0) return;
    remove_oldest(dir);
    close(dir);
    kept.n_modules = 0;
    dl_iterate_phdr(note_module, NULL);
    strcpy(kept.folder, folder);
}

void crash_fact(const char *key, const char *value)
{
    size_t i = 0;
    while (i < kept.n_facts && strcmp(kept.keys[i], key) != 0) i++;
    if (i == CRASH_FACTS) return;
    snprintf(kept.values[i], sizeof kept.values[i], "%s", value);
    kept.keys[i] = key;
    if (i == kept.n_facts) kept.n_facts++;
}

void crash_step_begin(const char *kind, size_t n_jobs, size_t n_tokens)
{
    under_way = &kept.steps[atomic_fetch_add_explicit(&kept.n_steps, 1, memory_order_relaxed) % CRASH_STEPS];
    atomic_store_explicit(&under_way->n_jobs, n_jobs, memory_order_relaxed);
    atomic_store_explicit(&under_way->n_tokens, n_tokens, memory_order_relaxed);
    atomic_store_explicit(&under_way->begin_ns, clock_ns(), memory_order_relaxed);
    atomic_store_explicit(&under_way->end_ns, 0, memory_order_relaxed);
    atomic_store_explicit(&under_way->kind, kind, memory_order_release);
}

void crash_step_end(void)
{
    if (under_way) atomic_store_explicit(&under_way->end_ns, clock_ns(), memory_order_relaxed);
    under_way = NULL;
}

bool crash_is_fatal(int sig)
{
    for (size_t i = 0; i < sizeof SIGNALS / sizeof *SIGNALS; i++)
        if (SIGNALS[i] == sig) return true;
    return false;
}

bool crash_find(const char *folder, const char *component, int pid, uint64_t since_s,
                char ret[CRASH_NAME_BYTES])
{
    char end[CRASH_NAME_BYTES];
    DIR *d = folder ? opendir(folder) : NULL;
    size_t n = (size_t)snprintf(end, sizeof end, "-%s-%d.json", component, pid);
    *ret = '\0';
    if (!d) return false;
    for (struct dirent *e; (e = readdir(d));) {
        size_t len = strlen(e->d_name);
        if (crash_is_report(e->d_name) && len > n && strcmp(e->d_name + len - n, end) == 0 &&
            strtoull(e->d_name, NULL, 10) >= since_s && strcmp(e->d_name, ret) > 0)
            memcpy(ret, e->d_name, len + 1);
    }
    closedir(d);
    return *ret;
}

static int first_module(struct dl_phdr_info *in, size_t size, void *user)
{
    module *m = user;
    for (int i = 0; i < in->dlpi_phnum; i++)
        if (in->dlpi_phdr[i].p_type == PT_NOTE && !m->n_id) note_build_id(m, in, &in->dlpi_phdr[i]);
    return 1; /* the program itself comes first */
}

void crash_build(char ret[CRASH_BUILD_BYTES])
{
    module m = {0};
    dl_iterate_phdr(first_module, &m);
    for (size_t i = 0; i < m.n_id; i++) snprintf(ret + 2 * i, 3, "%02x", m.id[i]);
    ret[2 * m.n_id] = '\0';
}
