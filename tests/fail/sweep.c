/* sweep.c: run a command again and again, each time with another failing allocation or write, and judge it.
 *
 *     fail_sweep -l tokenize -- build/shoal tokenize MODEL text       every place once
 *     fail_sweep -l tokenize -n 17 -- build/shoal tokenize MODEL text one of them, with its stack
 *
 * A run without failure comes first: what it prints is the right answer, and every way (stack of callers)
 * that led to an allocation becomes a place, tried where it came first. A run is right when it gives the same
 * answer or refuses: an exit status from 1 to 125, a sentence on standard error, nothing left behind. A
 * crash, a hang, a leak, silence and another answer are faults.
 *
 * With -c the process under test is a server that runs already, preloaded with that control file, and COMMAND
 * asks it something; then a fault is also a server that is gone or answers the next question differently. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <regex.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "control.h"

enum { OUTPUT_MAX = 4 << 20, HEAL_TRIES = 300, KILLED_AFTER = 128 };

typedef enum { SAME, REFUSED, CRASH, HANG, LEAK, SILENT, WRONG, REMAINS, HARMED, N_VERDICTS } verdict;
static const char *const VERDICTS[] = {
    [SAME] = "same answer",
    [REFUSED] = "refused",
    [CRASH] = "crash",
    [HANG] = "hang",
    [LEAK] = "leak",
    [SILENT] = "refused without a word",
    [WRONG] = "wrong answer",
    [REMAINS] = "left something wrong in the folder",
    [HARMED] = "does not answer afterwards",
};

typedef struct run {
    int status; /* of waitpid */
    bool hung;
    char *out, *err; /* whole texts, owned */
    int64_t n_live;
} run;

static struct {
    const char *label, *library, *control_file, *process, *product, *refusal;
    char **command;
    bool writes, onward, any_answer, keep_going;
    long stride, offset, max, only, timeout_s, n_forgotten;
    regex_t refused; /* what a server answers when it refuses */
    char dir[64];    /* ours: outputs, the control file, the product */
    fail_control *control;
    run want;
    int server; /* pid, with -c */
    long n_tried, n_of[N_VERDICTS];
} s = {.timeout_s = 90};

static void die(const char *what)
{
    fprintf(stderr, "fail_sweep: %s: %s\n", what, strerror(errno));
    exit(2);
}

/* ---- one run ----------------------------------------------------------------------------------- */

static const char *in_dir(const char *name)
{
    static char path[2][128];
    static int turn;
    turn = !turn;
    snprintf(path[turn], sizeof path[turn], "%s/%s", s.dir, name);
    return path[turn];
}

static char *read_all(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    char *text = malloc(OUTPUT_MAX + 1);
    size_t n = 0;
    if (!text) die("memory");
    for (ssize_t got; fd >= 0 && n < OUTPUT_MAX && (got = read(fd, text + n, OUTPUT_MAX - n)) > 0;)
        n += (size_t)got;
    for (size_t i = 0; i < n; i++)
        if (!text[i]) text[i] = '?';
    text[n] = '\0';
    if (fd >= 0) close(fd);
    char *fit = realloc(text, n + 1);
    return fit ? fit : text;
}

static void become_command(void)
{
    struct rlimit none = {0, 0};
    int in = open("/dev/null", O_RDONLY), out = open(in_dir("out"), O_WRONLY | O_CREAT | O_TRUNC, 0600),
        err = open(in_dir("err"), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    sigset_t all;
    sigemptyset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    setpgid(0, 0);
    setrlimit(RLIMIT_CORE, &none);
    dup2(in, 0);
    dup2(out, 1);
    dup2(err, 2);
    if (!s.control_file) {
        setenv("SHOAL_FAIL_CONTROL", in_dir("control"), 1);
        if (s.process) setenv("SHOAL_FAIL_PROCESS", s.process, 1);
        setenv("LD_PRELOAD", s.library, 1);
        setenv("MALLOC_PERTURB_", "165", 1); /* fresh and freed memory holds no zeros */
    }
    execvp(s.command[0], s.command);
    _exit(127);
}

static bool wait_for(pid_t pid, int *status)
{
    sigset_t child;
    struct timespec until = {.tv_sec = s.timeout_s};
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    while (waitpid(pid, status, WNOHANG) == 0)
        if (sigtimedwait(&child, NULL, &until) < 0 && errno == EAGAIN) return false;
    return true;
}

static run run_command(void)
{
    run r = {0};
    pid_t pid = fork();
    if (pid < 0) die("fork");
    if (pid == 0) become_command();
    if (!wait_for(pid, &r.status)) {
        r.hung = true;
        kill(-pid, SIGKILL);
        waitpid(pid, &r.status, 0);
    }
    kill(-pid, SIGKILL); /* whatever it left running */
    r.out = read_all(in_dir("out"));
    r.err = read_all(in_dir("err"));
    r.n_live = atomic_load(&s.control->n_live);
    return r;
}

static void run_done(run *r)
{
    free(r->out);
    free(r->err);
    *r = (run){0};
}

static fail_counter *counter(void)
{
    return s.writes ? &s.control->write : &s.control->alloc;
}

static void arm(uint64_t at)
{
    fail_counter *c = counter();
    atomic_store(&c->count, 0);
    atomic_store(&s.control->n_failed, 0);
    s.control->text[0] = '\0';
    atomic_store(&s.control->explain, true);
    atomic_store(&c->onward, s.onward);
    atomic_store(&c->fail_at, at);
}

static void disarm(void)
{
    atomic_store(&s.control->alloc.fail_at, 0);
    atomic_store(&s.control->write.fail_at, 0);
}

/* ---- the verdict ------------------------------------------------------------------------------- */

/* The product is whole and alone in its folder; a command that failed may also have left the folder empty. */
static bool product_is_wrong(bool succeeded)
{
    char line[600];
    if (!s.product) return false;
    snprintf(line, sizeof line,
             "cd '%s' || exit 1; [ -z \"$(ls -A)\" ] && exit %d; diff -r . ../kept >/dev/null",
             in_dir("product"), succeeded);
    return system(line) != 0;
}

static void keep_product(void)
{
    char line[512];
    if (!s.product) return;
    snprintf(line, sizeof line, "cd '%s' && cp -r product kept && [ \"$(ls -A kept)\" = '%s' ]", s.dir,
             s.product);
    if (system(line) != 0) die("the product");
}

static void clear_product(void)
{
    char line[512];
    if (!s.product) return;
    snprintf(line, sizeof line, "rm -rf '%s'; mkdir '%s'", in_dir("product"), in_dir("product"));
    if (system(line) != 0) die("product");
}

static bool reports_a_fault(const char *text)
{
    return strstr(text, "Sanitizer") || strstr(text, "runtime error:") || strstr(text, "Assertion");
}

/* libuv aborts where it cannot grow its list of sockets, so core/wire/loop.c ends the process first, with this sentence:
 * what it holds then is no leak. */
static bool left_at_once(const char *said)
{
    return strstr(said, "out of memory for the event loop");
}

static verdict judge(const run *r)
{
    if (r->hung) return HANG;
    if (reports_a_fault(r->err)) return CRASH;
    int code = WIFEXITED(r->status) ? WEXITSTATUS(r->status) : KILLED_AFTER;
    if (code >= 126) return CRASH;
    if (product_is_wrong(code == 0)) return REMAINS;
    if (!s.control_file && !left_at_once(r->err) && r->n_live > s.want.n_live + s.n_forgotten) return LEAK;
    bool same = s.any_answer || strcmp(r->out, s.want.out) == 0;
    if (code == 0 && same) return SAME;
    if (code == 0 && s.refusal) return regexec(&s.refused, r->out, 0, NULL, 0) == 0 ? REFUSED : WRONG;
    if (code == 0) return WRONG;
    return strchr(r->err, ' ') ? REFUSED : SILENT;
}

static bool server_lives(void)
{
    return s.server == 0 || (kill(s.server, 0) == 0 && atomic_load(&s.control->pid) == s.server);
}

static bool is_right(const run *r)
{
    bool ended = !r->hung && WIFEXITED(r->status) && WEXITSTATUS(r->status) == 0;
    return ended && (s.any_answer || strcmp(r->out, s.want.out) == 0);
}

/* The server must be there, and answer the same question as if nothing had been: at once, or after it has
 * connected again to a worker. */
static verdict judge_server(verdict v)
{
    const struct timespec pause = {.tv_nsec = 100000000};
    bool right = false;
    for (int i = 0; i < HEAL_TRIES && !right && server_lives(); i++) {
        if (i) nanosleep(&pause, NULL);
        run again = run_command();
        right = is_right(&again);
        if (!right && i == HEAL_TRIES - 1) printf("     afterwards: %.300s\n", again.out);
        run_done(&again);
    }
    return !server_lives() ? CRASH : right ? v : HARMED;
}

static verdict try(uint64_t at, run *ret)
{
    clear_product();
    arm(at);
    *ret = run_command();
    disarm();
    verdict v = judge(ret);
    return s.control_file && v <= REFUSED ? judge_server(v) : v;
}

/* ---- what is said ------------------------------------------------------------------------------ */

static void print_stack(void)
{
    char *save = NULL, *line = strtok_r(s.control->text, "\n", &save);
    printf("     %s\n", line ? line : "(it did not come to the failure)");
    for (int i = 0; i < 14 && (line = strtok_r(NULL, "\n", &save)); i++) {
        char command[1200], *plus = strrchr(line, '+'), *space = plus ? strchr(plus, ' ') : NULL;
        if (!plus || !space) continue;
        *plus = *space = '\0';
        bool ours = strncmp(line, "/lib", 4) != 0 && strncmp(line, "/usr", 4) != 0;
        snprintf(command, sizeof command, "addr2line -fpse '%s' '%s' 2>/dev/null | sed 's/^/       /'", line,
                 plus + 1);
        fflush(stdout);
        if (!ours || system(command) != 0) printf("       %s %s\n", line, space + 1);
    }
}

static void print_quoted(const char *arg)
{
    printf(strpbrk(arg, " \"$*?;&|<>()") ? " '%s'" : " %s", arg);
}

static void print_fault(uint64_t at, verdict v, const run *r)
{
    printf("FAIL %s: %s at %s %llu\n", s.label, VERDICTS[v], s.writes ? "write" : "allocation",
           (unsigned long long)at);
    if (WIFSIGNALED(r->status)) printf("     signal %d\n", WTERMSIG(r->status));
    if (v == WRONG || v == SILENT) printf("     printed: %.300s\n", r->out);
    if (*r->err) printf("     said: %.600s\n", r->err);
    if (v == LEAK) printf("     %lld blocks\n", (long long)(r->n_live - s.want.n_live));
    print_stack();
}

static void print_rerun(uint64_t at, int argc, char **argv)
{
    printf("     rerun:");
    for (int i = 0; i < argc; i++) {
        if (i == 1) printf(" -n %llu", (unsigned long long)at);
        print_quoted(argv[i]);
    }
    printf("\n");
    fflush(stdout);
}

/* ---- the sweep --------------------------------------------------------------------------------- */

static int by_first(const void *a, const void *b)
{
    uint64_t x = ((const fail_place *)a)->first, y = ((const fail_place *)b)->first;
    return x < y ? -1 : x > y;
}

/* The numbers to try: where each place came first, and every stride-th of all. Returns how many. */
static size_t choose(uint64_t count, uint64_t **ret)
{
    fail_place *p = s.control->places;
    size_t n = 0;
    uint64_t *at =
        malloc((s.control->n_places + (s.stride ? count / (uint64_t)s.stride : 0) + 1) * sizeof *at);
    if (!at) die("memory");
    qsort(p, FAIL_PLACES, sizeof *p, by_first);
    for (size_t i = 0; i < FAIL_PLACES; i++)
        if (p[i].hash && (p[i].hash & 1) == s.writes) at[n++] = p[i].first;
    for (uint64_t k = 1; s.stride && k <= count; k++)
        if (k % (uint64_t)s.stride == (uint64_t)(s.offset % s.stride)) at[n++] = k;
    *ret = at;
    return n;
}

static void open_control(void)
{
    const char *path = s.control_file ? s.control_file : in_dir("control");
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, sizeof *s.control) != 0) die(path);
    s.control = mmap(NULL, sizeof *s.control, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (s.control == MAP_FAILED) die(path);
    atomic_store(&s.control->write_errno, ENOSPC);
    s.server = s.control_file ? atomic_load(&s.control->pid) : 0;
    if (s.control_file && kill(s.server, 0) != 0) die("the server");
}

/* The right answer; with a server the second one, when it has made what it keeps. */
static uint64_t learn(void)
{
    memset(s.control->places, 0, sizeof s.control->places);
    s.control->n_places = 0;
    disarm();
    for (int i = s.control_file ? 0 : 1; i < 2; i++) {
        run_done(&s.want);
        clear_product();
        atomic_store(&counter()->count, 0);
        atomic_store(&s.control->record, i == 1);
        s.want = run_command();
        atomic_store(&s.control->record, false);
    }
    if (s.want.hung || !WIFEXITED(s.want.status) || WEXITSTATUS(s.want.status) != 0) {
        printf("FAIL %s: without any failure it %s: %.600s%.600s\n", s.label, s.want.hung ? "hangs" : "fails",
               s.want.out, s.want.err);
        exit(1);
    }
    keep_product();
    return atomic_load(&counter()->count);
}

static bool try_and_tell(uint64_t at, int argc, char **argv)
{
    run r;
    verdict v = try(at, &r);
    s.n_of[v]++;
    s.n_tried++;
    if (v > REFUSED) {
        print_fault(at, v, &r);
        print_rerun(at, argc, argv);
    } else if (s.only) {
        printf("%s: %s\n%s%s", s.label, VERDICTS[v], r.out, r.err);
        print_stack();
    }
    run_done(&r);
    return server_lives();
}

static void sweep(int argc, char **argv)
{
    uint64_t count = learn(), *at = NULL, only = (uint64_t)s.only;
    size_t n = s.only ? 1 : choose(count, &at), step = s.max && n > (size_t)s.max ? n / (size_t)s.max : 1;
    for (size_t i = step > 1 ? (size_t)s.offset % step : 0; i < n; i += step)
        if (!try_and_tell(s.only ? only : at[i], argc, argv)) break;
    printf("%s%s: %ld of %llu %s%s in %zu places: %ld same, %ld refused",
           s.n_tried == s.n_of[SAME] + s.n_of[REFUSED] ? "" : "FAILED ", s.label, s.n_tried,
           (unsigned long long)count, s.writes ? "writes" : "allocations", s.onward ? " and all after" : "",
           n, s.n_of[SAME], s.n_of[REFUSED]);
    for (int v = REFUSED + 1; v < N_VERDICTS; v++)
        if (s.n_of[v]) printf(", %ld %s", s.n_of[v], VERDICTS[v]);
    printf("\n");
    free(at);
}

static int usage(void)
{
    fprintf(stderr,
            "usage: fail_sweep -l LABEL [-i LIBRARY] [-w] [-o] [-s STRIDE] [-b OFFSET] [-m MAX] [-n ONLY]\n"
            "                  [-t SECONDS] [-p PROCESS] [-f PRODUCT] [-c CONTROL] [-r REFUSAL] [-a] "
            "[-k BLOCKS] -- COMMAND ...\n"
            "  -w writes, not allocations    -o the chosen one and all after it    -a any answer is right\n"
            "  -k so many blocks a library may forget\n"
            "  {} in COMMAND is an empty folder, in which PRODUCT is made\n");
    return 2;
}

static void take_option(int c)
{
    switch (c) {
    case 'l': s.label = optarg; break;
    case 'i': s.library = optarg; break;
    case 'w': s.writes = true; break;
    case 'o': s.onward = true; break;
    case 's': s.stride = atol(optarg); break;
    case 'b': s.offset = atol(optarg); break;
    case 'm': s.max = atol(optarg); break;
    case 'n': s.only = atol(optarg); break;
    case 't': s.timeout_s = atol(optarg); break;
    case 'p': s.process = optarg; break;
    case 'f': s.product = optarg; break;
    case 'c': s.control_file = optarg; break;
    case 'r': s.refusal = optarg; break;
    case 'a': s.any_answer = true; break;
    case 'k': s.n_forgotten = atol(optarg); break;
    default: exit(usage());
    }
}

/* Replaces {} by the folder of the product. */
static void fill_in(char **argv)
{
    for (; *argv; argv++) {
        char *at = strstr(*argv, "{}");
        if (!at || asprintf(argv, "%.*s%s%s", (int)(at - *argv), *argv, in_dir("product"), at + 2) < 0)
            continue;
    }
}

/* The library lies beside this program. */
static const char *own_library(void)
{
    static char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 32);
    while (n > 0 && path[n - 1] != '/') n--;
    snprintf(path + n, sizeof path - (size_t)n, "libfail_interpose.so");
    return path;
}

int main(int argc, char **argv)
{
    char **rerun = malloc(sizeof *argv * (size_t)(argc + 1)), line[128];
    if (!rerun) die("memory");
    memcpy(rerun, argv, sizeof *argv * (size_t)(argc + 1));
    for (int c; (c = getopt(argc, argv, "+l:i:wos:b:m:n:t:p:f:c:r:ak:")) != -1;) take_option(c);
    s.command = argv + optind;
    if (!s.label || !*s.command) return usage();
    if (!s.library) s.library = own_library();
    if (s.refusal && regcomp(&s.refused, s.refusal, REG_EXTENDED | REG_NOSUB | REG_NEWLINE) != 0)
        return usage();
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, NULL);
    strcpy(s.dir, "/tmp/shoal-fail-XXXXXX");
    if (!mkdtemp(s.dir)) die(s.dir);
    fill_in(s.command);
    open_control();
    sweep(argc, rerun);
    snprintf(line, sizeof line, "rm -rf '%s'", s.dir);
    if (system(line) != 0) die(s.dir);
    free(rerun);
    run_done(&s.want);
    return s.n_tried == s.n_of[SAME] + s.n_of[REFUSED] ? 0 : 1;
}
