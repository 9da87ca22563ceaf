/* isa.c: which instruction sets this machine really runs.
 *
 * A hypervisor may list an instruction set that traps when used, so listing is not enough: the
 * probe runs the instructions in a forked child, where a SIGILL kills only the child. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "compute/kernels.h"

#ifdef KERNELS_X86
#include <cpuid.h>
#endif

static const char *const names[ISA_COUNT] = {
#define ISA_NAME(e, name) [e] = name,
    ISA_TABLE(ISA_NAME)
#undef ISA_NAME
};

const char *isa_name(isa i)
{
    return names[i];
}

#ifdef KERNELS_X86
static uint64_t read_xcr0(void)
{
    uint32_t lo, hi;
    __asm__ volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
    return (uint64_t)hi << 32 | lo;
}

/* Intel SDM vol. 2 (CPUID) and vol. 1 ch. 13 (XCR0: 2 SSE, 4 AVX, 0xE0 the three AVX-512 states). */
static bool listed(isa i)
{
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d)) return false;
    unsigned need1 = bit_FMA | bit_OSXSAVE | bit_AVX | bit_F16C;
    if ((c & need1) != need1) return false;
    uint64_t states = i == ISA_AVX512VNNI ? 0xE6 : 0x06;
    if ((read_xcr0() & states) != states) return false;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return false;
    if (!(b & bit_AVX2)) return false;
    if (i == ISA_AVX2) return true;
    unsigned need7 = bit_AVX512F | bit_AVX512DQ | bit_AVX512BW | bit_AVX512VL;
    return (b & need7) == need7 && (c & bit_AVX512VNNI);
}

static bool probe(isa i)
{
    return i == ISA_AVX2 ? probe_avx2() : probe_avx512vnni();
}
#else
static bool listed(isa i)
{
    return false;
}
static bool probe(isa i)
{
    return false;
}
#endif

/* In the child: only async-signal-safe calls, and no core file for a trap that we expect. */
static _Noreturn void probe_child(isa i, int fd)
{
    static const int traps[] = {SIGILL, SIGSEGV, SIGBUS, SIGTRAP, SIGFPE};
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    for (size_t k = 0; k < sizeof traps / sizeof *traps; k++) signal(traps[k], SIG_DFL);
    if (probe(i) && write(fd, "y", 1) == 1) _exit(0);
    _exit(1);
}

/* The answer comes through a pipe, not the exit status: the host program may ignore SIGCHLD, and
 * then there is no status to wait for. */
static bool proved(isa i)
{
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) != 0) return false;
    pid_t pid = fork();
    if (pid == 0) probe_child(i, fds[1]);
    close(fds[1]);
    char answer = 0;
    bool ok = false;
    if (pid > 0) {
        ssize_t n;
        do n = read(fds[0], &answer, 1);
        while (n < 0 && errno == EINTR);
        ok = n == 1 && answer == 'y';
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) continue;
    }
    close(fds[0]);
    return ok;
}

bool isa_usable(isa i)
{
    /* 0 unknown, 1 no, 2 yes: a fact of the machine, so caching it is not state of the library. */
    static _Atomic int cache[ISA_COUNT];
    if (i == ISA_SCALAR) return true;
    int known = atomic_load(&cache[i]);
    if (known == 0) {
        known = listed(i) && proved(i) ? 2 : 1;
        atomic_store(&cache[i], known);
    }
    return known == 2;
}

static int forced(const char *name, isa *ret, shoal_err *err)
{
    for (int i = 0; i < ISA_COUNT; i++) {
        if (strcmp(names[i], name) != 0) continue;
        if (!isa_usable((isa)i))
            return err_set(err, SHOAL_EUNSUPPORTED, "SHOAL_ISA=%s: this machine %s", name,
                           listed((isa)i) ? "lists these instructions but traps on them"
                                          : "does not have it");
        *ret = (isa)i;
        return 0;
    }
    return err_set(err, SHOAL_EINVALID, "SHOAL_ISA=%s is not one of scalar, avx2, avx512vnni", name);
}

int isa_choose(isa *ret, shoal_err *err)
{
    const char *name = getenv("SHOAL_ISA");
    if (name && *name) return forced(name, ret, err);
    int best = ISA_COUNT - 1;
    while (!isa_usable((isa)best)) best--;
    *ret = (isa)best;
    return 0;
}

const kernels *kernels_for(isa i)
{
#ifdef KERNELS_X86
    if (i == ISA_AVX512VNNI) return &kernels_avx512vnni;
    if (i == ISA_AVX2) return &kernels_avx2;
#endif
    return &kernels_scalar;
}

const vec_kernels *vec_kernels_for(isa i)
{
    return &kernels_for(i)->vec;
}
