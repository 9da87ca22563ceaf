/* interpose.c: a library to preload (LD_PRELOAD) that lets a chosen allocation or write fail.
 *
 * What counts as an allocation: malloc, calloc, realloc, aligned_alloc, posix_memalign (and with them strdup,
 * asprintf, fopen: the C library calls malloc through its table), mmap and pthread_create, in the program and
 * in every library it uses. What counts as a write: write, pwrite, writev, fsync, ftruncate, rename and the
 * close of a file open for writing; a stream's own writes too, since streams are made over them here. Sockets,
 * event descriptors and pipes other than standard output are no files, and their writes do not count, nor does
 * standard error.
 *
 *     SHOAL_FAIL_CONTROL=FILE   where the counters live (control.h); without it nothing is counted
 *     SHOAL_FAIL_PROCESS=TEXT   only a process whose command line contains it */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "control.h"

/* The real ones. Under a sanitizer those are its own, which the C library's would circumvent. */
#define REAL(ret, name, args)                                               \
    extern ret __libc_##name args;                                          \
    extern ret __interceptor_##name args __attribute__((weak));             \
    static inline __typeof__(&__libc_##name) real_##name(void)              \
    {                                                                       \
        return __interceptor_##name ? __interceptor_##name : __libc_##name; \
    }
REAL(void *, malloc, (size_t))
REAL(void *, calloc, (size_t, size_t))
REAL(void *, realloc, (void *, size_t))
REAL(void *, memalign, (size_t, size_t))
REAL(void, free, (void *))

static fail_control *control; /* NULL: not a process under test, or main has not begun */
static fail_control *waiting; /* the same before main */

/* Initial-exec: reading it must not itself allocate. */
static _Thread_local bool inside __attribute__((tls_model("initial-exec")));
/* What is asked for is given, and counts as live. */
static _Thread_local bool spared __attribute__((tls_model("initial-exec")));

/* Whether this process has been refused anything; fuzz targets ask before they call a refusal a fault. */
int fail_injected(void);
int fail_injected(void)
{
    return control && atomic_load(&control->n_failed) > 0;
}

/* ---- which one fails --------------------------------------------------------------------------- */

static uint64_t hash_stack(void *const *stack, int n)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (int i = 2; i < n; i++) h = (h ^ (uintptr_t)stack[i]) * 0x100000001b3u;
    return h | 2; /* never 0, which is an empty place */
}

static void note_place(uint64_t hash, uint64_t number)
{
    while (atomic_flag_test_and_set(&control->places_lock)) continue;
    size_t i = (hash >> 2) & (FAIL_PLACES - 1);
    while (control->places[i].hash && control->places[i].hash != hash) i = (i + 1) & (FAIL_PLACES - 1);
    fail_place *p = &control->places[i];
    if (!p->hash && control->n_places < FAIL_PLACES - 1) {
        *p = (fail_place){.hash = hash, .first = number};
        control->n_places++;
    }
    p->n++;
    atomic_flag_clear(&control->places_lock);
}

/* "module+offset" a line, for addr2line. */
static void explain(const char *what, void *const *stack, int n)
{
    size_t len = (size_t)snprintf(control->text, FAIL_TEXT, "%s\n", what);
    for (int i = 2; i < n && len < FAIL_TEXT - 1; i++) {
        Dl_info at;
        if (!dladdr(stack[i], &at) || !at.dli_fname) continue;
        uintptr_t offset = (uintptr_t)stack[i] - (uintptr_t)at.dli_fbase - 1; /* in the call, not after it */
        len += (size_t)snprintf(control->text + len, FAIL_TEXT - len, "%s+0x%lx %s\n", at.dli_fname,
                                (unsigned long)offset, at.dli_sname ? at.dli_sname : "");
    }
}

static __attribute__((noinline)) bool fails(fail_counter *c, const char *what, bool is_write)
{
    if (inside || spared) return false;
    inside = true;
    uint64_t number = atomic_fetch_add(&c->count, 1) + 1, at = atomic_load(&c->fail_at);
    bool fail = at && (number == at || (number > at && atomic_load(&c->onward)));
    bool first = fail && atomic_fetch_add(&control->n_failed, 1) == 0;
    if (atomic_load(&control->record) || (first && atomic_load(&control->explain))) {
        void *stack[FAIL_FRAMES];
        int n = backtrace(stack, FAIL_FRAMES);
        if (atomic_load(&control->record))
            note_place((hash_stack(stack, n < FAIL_DEPTH ? n : FAIL_DEPTH) & ~1u) | is_write, number);
        if (first) explain(what, stack, n);
    }
    inside = false;
    return fail;
}

static bool refuse(const char *what)
{
    if (!control || !fails(&control->alloc, what, false)) return false;
    errno = ENOMEM;
    return true;
}

static void live(int change)
{
    if (control && !inside) atomic_fetch_add(&control->n_live, change);
}

/* ---- memory ------------------------------------------------------------------------------------ */

void *malloc(size_t n)
{
    if (refuse("malloc")) return NULL;
    void *p = real_malloc()(n);
    live(p ? 1 : 0);
    return p;
}

void *calloc(size_t n, size_t size)
{
    if (refuse("calloc")) return NULL;
    void *p = real_calloc()(n, size);
    live(p ? 1 : 0);
    return p;
}

void *realloc(void *old, size_t n)
{
    if ((n > 0 || !old) && refuse("realloc")) return NULL;
    void *p = real_realloc()(old, n);
    live((p ? 1 : 0) - (old && (p || n == 0) ? 1 : 0));
    return p;
}

void *reallocarray(void *old, size_t n, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(n, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    return realloc(old, bytes);
}

void *memalign(size_t align, size_t n)
{
    if (refuse("memalign")) return NULL;
    void *p = real_memalign()(align, n);
    live(p ? 1 : 0);
    return p;
}

void *aligned_alloc(size_t align, size_t n)
{
    return memalign(align, n);
}

int posix_memalign(void **ret, size_t align, size_t n)
{
    int saved = errno;
    void *p = memalign(align, n);
    errno = saved;
    if (!p) return ENOMEM;
    *ret = p;
    return 0;
}

void free(void *p)
{
    live(p ? -1 : 0);
    real_free()(p);
}

void *mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset)
{
    if (refuse("mmap")) return MAP_FAILED;
    long p = syscall(SYS_mmap, at, n, prot, flags, fd, offset);
    live(p != -1 ? 1 : 0);
    return (void *)p;
}

void *mmap64(void *at, size_t n, int prot, int flags, int fd, off64_t offset)
{
    return mmap(at, n, prot, flags, fd, offset);
}

int munmap(void *at, size_t n)
{
    long rc = syscall(SYS_munmap, at, n);
    live(rc == 0 ? -1 : 0);
    return (int)rc;
}

/* libuv makes the threads of its pool when work is first queued, and aborts where it cannot: no program survives that.
 * Called from pthread_create; its threads are asked for by uv_thread_create, as are ours, whose caller is not libuv. */
static __attribute__((noinline)) bool makes_pool_of_libuv(void)
{
    enum { CREATE_EX = 2, CREATE, CALLER, N };
    void *stack[N];
    Dl_info at;
    bool was = inside, pool = true;
    inside = true;
    int n = backtrace(stack, N);
    for (int i = CREATE_EX; i < N; i++)
        pool = pool && i < n && dladdr(stack[i], &at) && at.dli_fname && strstr(at.dli_fname, "libuv");
    inside = was;
    return pool;
}

int pthread_create(pthread_t *ret, const pthread_attr_t *attr, void *(*run)(void *), void *arg)
{
    static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
    if (control && makes_pool_of_libuv()) {
        spared = true;
        int rc = real(ret, attr, run, arg);
        spared = false;
        return rc;
    }
    if (control && fails(&control->alloc, "pthread_create", false)) return EAGAIN;
    return real(ret, attr, run, arg);
}

/* ---- writes ------------------------------------------------------------------------------------ */

/* A pipe that is not the output wakes a thread, as event descriptors do; libuv aborts where it cannot. */
static bool is_file(int fd)
{
    struct stat st;
    if (fd == STDERR_FILENO || fstat(fd, &st) != 0) return false;
    return S_ISREG(st.st_mode) || S_ISCHR(st.st_mode) || (S_ISFIFO(st.st_mode) && fd == STDOUT_FILENO);
}

static bool refuse_write(int fd, const char *what)
{
    if (!control || inside || !is_file(fd) || !fails(&control->write, what, true)) return false;
    errno = atomic_load(&control->write_errno);
    return true;
}

ssize_t write(int fd, const void *data, size_t n)
{
    return refuse_write(fd, "write") ? -1 : syscall(SYS_write, fd, data, n);
}

ssize_t pwrite(int fd, const void *data, size_t n, off_t at)
{
    return refuse_write(fd, "pwrite") ? -1 : syscall(SYS_pwrite64, fd, data, n, at);
}

ssize_t pwrite64(int fd, const void *data, size_t n, off64_t at)
{
    return pwrite(fd, data, n, at);
}

ssize_t writev(int fd, const struct iovec *v, int n)
{
    return refuse_write(fd, "writev") ? -1 : syscall(SYS_writev, fd, v, n);
}

int fsync(int fd)
{
    return refuse_write(fd, "fsync") ? -1 : (int)syscall(SYS_fsync, fd);
}

int ftruncate(int fd, off_t n)
{
    return refuse_write(fd, "ftruncate") ? -1 : (int)syscall(SYS_ftruncate, fd, n);
}

int rename(const char *from, const char *to)
{
    if (control && fails(&control->write, "rename", true)) {
        errno = atomic_load(&control->write_errno);
        return -1;
    }
    return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

int close(int fd)
{
    int flags = control && !inside ? fcntl(fd, F_GETFL) : O_RDONLY;
    bool fail = flags >= 0 && (flags & O_ACCMODE) != O_RDONLY && refuse_write(fd, "close");
    int why = errno, rc = (int)syscall(SYS_close, fd); /* closed all the same, as close(2) has it */
    if (fail) errno = why;
    return fail ? -1 : rc;
}

/* ---- streams: made over write(2), so that what the C library flushes is counted ---------------- */

enum { STREAMS = 16 };
static struct {
    FILE *f;
    int fd;
} streams[STREAMS]; /* those this file made; the commands under test open them one after another */

static ssize_t stream_write(void *user, const char *data, size_t n)
{
    ssize_t done = write((int)(intptr_t)user, data, n);
    return done < 0 ? 0 : done; /* fopencookie(3): 0 is the error */
}

static int stream_close(void *user)
{
    int fd = (int)(intptr_t)user;
    for (int i = 0; i < STREAMS; i++)
        if (streams[i].f && streams[i].fd == fd) streams[i].f = NULL;
    return close(fd);
}

static FILE *stream_over(int fd)
{
    cookie_io_functions_t io = {.write = stream_write, .close = stream_close};
    for (int i = 0; i < STREAMS; i++) {
        if (streams[i].f) continue;
        streams[i].fd = fd;
        return streams[i].f = fopencookie((void *)(intptr_t)fd, "w", io);
    }
    errno = EMFILE;
    return NULL;
}

FILE *fopen(const char *path, const char *mode)
{
    static FILE *(*real)(const char *, const char *);
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, "fopen");
    if (!control || *mode != 'w' || strchr(mode, '+')) return real(path, mode);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | (strchr(mode, 'e') ? O_CLOEXEC : 0), 0666);
    FILE *f = fd >= 0 ? stream_over(fd) : NULL;
    if (!f && fd >= 0) syscall(SYS_close, fd);
    return f;
}

int fileno(FILE *f)
{
    static int (*real)(FILE *);
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, "fileno");
    for (int i = 0; i < STREAMS; i++)
        if (streams[i].f && streams[i].f == f) return streams[i].fd;
    return real(f);
}

/* ---- begin and end ----------------------------------------------------------------------------- */

static bool is_meant(const char *text)
{
    char line[8192];
    if (!text || !*text) return true;
    int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, line, sizeof line - 1) : -1;
    if (fd >= 0) syscall(SYS_close, fd);
    if (n <= 0) return false;
    for (ssize_t i = 0; i < n; i++)
        if (!line[i]) line[i] = ' ';
    line[n] = '\0';
    return strstr(line, text) != NULL;
}

static void leave(void) /* in a child: only the process itself counts */
{
    control = NULL;
}

__attribute__((constructor)) static void attach(void)
{
    const char *path = getenv("SHOAL_FAIL_CONTROL");
    if (!path || !is_meant(getenv("SHOAL_FAIL_PROCESS"))) return;
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || syscall(SYS_ftruncate, fd, sizeof(fail_control)) != 0) return;
    long p = syscall(SYS_mmap, NULL, sizeof(fail_control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    syscall(SYS_close, fd);
    if (p == -1) return;
    waiting = (fail_control *)p;
    void *stack[4];
    backtrace(stack, 4); /* loads the unwinder now, not in the middle of an allocation */
    pthread_atfork(NULL, NULL, leave);
}

/* Whoever leaves like this gives everything back at once. */
void _exit(int status)
{
    if (control) atomic_store(&control->n_live, 0);
    for (;;) syscall(SYS_exit_group, status);
}

static int (*program)(int, char **, char **);

static int begin(int argc, char **argv, char **env)
{
    if (waiting) {
        control = waiting;
        FILE *out = stream_over(STDOUT_FILENO);
        if (out) stdout = out;
        if (atomic_load(&control->n_failed) ==
            0) { /* else this one was started anew, after the one that failed */
            atomic_store(&control->alloc.count, 0);
            atomic_store(&control->write.count, 0);
        }
        atomic_store(&control->n_live, 0);
        atomic_store(&control->pid, getpid());
    }
    return program(argc, argv, env);
}

int __libc_start_main(int (*run)(int, char **, char **), int argc, char **argv, void (*init)(void),
                      void (*fini)(void), void (*rtld_fini)(void), void *stack_end);
int __libc_start_main(int (*run)(int, char **, char **), int argc, char **argv, void (*init)(void),
                      void (*fini)(void), void (*rtld_fini)(void), void *stack_end)
{
    __typeof__(&__libc_start_main) real;
    *(void **)&real = dlsym(RTLD_NEXT, "__libc_start_main");
    program = run;
    return real(begin, argc, argv, init, fini, rtld_fini, stack_end);
}
