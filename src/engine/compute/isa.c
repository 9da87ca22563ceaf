/* isa.c: which instruction sets this machine really runs.
 *
 * One row an instruction set (`sets`), from which choosing, proving and the kernels' tables follow.
 * A hypervisor may list an instruction set that traps when used, so listing is not enough: the
 * probe runs the instructions in a forked child, where a SIGILL kills only the child. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "compute/kernels.h"

#if defined(KERNELS_X86)
#include <cpuid.h>
#include <sys/syscall.h>
#elif defined(KERNELS_ARM)
#include <sys/auxv.h>
#endif

/* ---- what the processor lists ---- */

enum {
    CPU_AVX2 = 1, /* with FMA and F16C */
    CPU_AVXVNNI = 2,
    CPU_AVX512 = 4, /* F, DQ, BW and VL */
    CPU_AVX512VNNI = 8,
    CPU_NEON = 16,
    CPU_DOTPROD = 32,
    CPU_I8MM = 64,
    CPU_AMX = 128, /* the tile unit and its products of int8 */
};

#if defined(KERNELS_X86)
static uint64_t read_xcr0(void)
{
    uint32_t lo, hi;
    __asm__ volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
    return (uint64_t)hi << 32 | lo;
}

static bool has_all(uint64_t have, uint64_t need)
{
    return (have & need) == need;
}

/* Intel SDM vol. 2 (CPUID) and vol. 1 ch. 13 (XCR0: 2 SSE, 4 AVX, 0xE0 the three AVX-512
 * states, 0x60000 both of AMX). */
#ifndef bit_AMX_TILE /* cpuid.h of clang 14: bits of EDX of leaf 7 */
#define bit_AMX_TILE (1u << 24)
#define bit_AMX_INT8 (1u << 25)
#endif

static unsigned cpu_facts(void)
{
    unsigned a, b, c, d, facts = 0;
    if (!__get_cpuid(1, &a, &b, &c, &d)) return 0;
    if (!has_all(c, bit_FMA | bit_OSXSAVE | bit_AVX | bit_F16C)) return 0;
    uint64_t states = read_xcr0();
    if (!has_all(states, 0x06) || !__get_cpuid_count(7, 0, &a, &b, &c, &d)) return 0;
    if (b & bit_AVX2) facts |= CPU_AVX2;
    if (has_all(states, 0xE6)) {
        if (has_all(b, bit_AVX512F | bit_AVX512DQ | bit_AVX512BW | bit_AVX512VL)) facts |= CPU_AVX512;
        if (c & bit_AVX512VNNI) facts |= CPU_AVX512VNNI;
    }
    if (has_all(states, 0x60000) && has_all(d, bit_AMX_TILE | bit_AMX_INT8)) facts |= CPU_AMX;
    if (__get_cpuid_count(7, 1, &a, &b, &c, &d) && (a & bit_AVXVNNI)) facts |= CPU_AVXVNNI;
    return facts;
}

/* Linux gives a process room for tiles (8 KB a thread) only when asked, for all its threads and children
 * (Documentation/arch/x86/xstate.rst): ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA. */
static bool ask_for_tiles(void)
{
    return syscall(SYS_arch_prctl, 0x1023, 18) == 0;
}
#elif defined(KERNELS_ARM)
/* Linux, Documentation/arch/arm64/elf_hwcaps.rst: bits of AT_HWCAP and AT_HWCAP2. */
#define HAS_ASIMD   (1ul << 1)
#define HAS_ASIMDDP (1ul << 20)
#define HAS2_I8MM   (1ul << 13)

static unsigned cpu_facts(void)
{
    unsigned long one = getauxval(AT_HWCAP), two = getauxval(AT_HWCAP2);
    return (one & HAS_ASIMD ? CPU_NEON : 0u) | (one & HAS_ASIMDDP ? CPU_DOTPROD : 0u) |
           (two & HAS2_I8MM ? CPU_I8MM : 0u);
}
#else
static unsigned cpu_facts(void)
{
    return 0;
}
#endif

/* ---- the instruction sets ---- */

static const char *const names[ISA_COUNT] = {
#define ISA_NAME(e, name) [e] = name,
    ISA_TABLE(ISA_NAME)
#undef ISA_NAME
};

/* The rows of this build; another architecture's stay empty. */
static const struct {
    const kernels *kernels;
    unsigned needs;      /* CPU_* bits that must all be listed */
    bool (*probe)(void); /* runs the instructions and checks their results; NULL: nothing to prove */
    bool (*ask)(void);   /* asks the kernel for their registers; NULL: they are everybody's */
} sets[ISA_COUNT] = {
    [ISA_SCALAR] = {&kernels_scalar, 0, NULL},
#if defined(KERNELS_X86)
    [ISA_AVX2] = {&kernels_avx2, CPU_AVX2, probe_avx2},
    [ISA_AVX2VNNI] = {&kernels_avx2vnni, CPU_AVX2 | CPU_AVXVNNI, probe_avx2vnni},
    [ISA_AVX512VNNI] = {&kernels_avx512vnni, CPU_AVX2 | CPU_AVX512 | CPU_AVX512VNNI, probe_avx512vnni},
    [ISA_AVX512AMX] = {&kernels_avx512amx, CPU_AVX2 | CPU_AVX512 | CPU_AVX512VNNI | CPU_AMX, probe_avx512amx,
                       ask_for_tiles},
#elif defined(KERNELS_ARM)
    [ISA_NEON] = {&kernels_neon, CPU_NEON, probe_neon},
    [ISA_NEONDOT] = {&kernels_neondot, CPU_NEON | CPU_DOTPROD, probe_neondot},
    [ISA_NEONI8MM] = {&kernels_neoni8mm, CPU_NEON | CPU_DOTPROD | CPU_I8MM, probe_neoni8mm},
#endif
};

const char *isa_name(isa i)
{
    return names[i];
}

bool isa_built(isa i)
{
    return sets[i].kernels != NULL;
}

static bool listed(isa i)
{
    return isa_built(i) && (cpu_facts() & sets[i].needs) == sets[i].needs;
}

static bool granted(isa i)
{
    return !sets[i].ask || sets[i].ask();
}

/* In the child: only async-signal-safe calls, and no core file for a trap that we expect. */
static _Noreturn void probe_child(isa i, int fd)
{
    static const int traps[] = {SIGILL, SIGSEGV, SIGBUS, SIGTRAP, SIGFPE};
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    for (size_t k = 0; k < sizeof traps / sizeof *traps; k++) signal(traps[k], SIG_DFL);
    if (sets[i].probe() && write(fd, "y", 1) == 1) _exit(0);
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
    if (!sets[i].probe) return isa_built(i);
    int known = atomic_load(&cache[i]);
    if (known == 0) {
        known = listed(i) && granted(i) && proved(i) ? 2 : 1;
        atomic_store(&cache[i], known);
    }
    return known == 2;
}

/* "scalar, avx2": what this build knows */
static void list_built(char *out, size_t size)
{
    size_t n = 0;
    for (int i = 0; i < ISA_COUNT && n < size; i++)
        if (isa_built((isa)i)) n += (size_t)snprintf(out + n, size - n, "%s%s", n ? ", " : "", names[i]);
}

static int forced(const char *name, isa *ret, shoal_err *err)
{
    char built[128];
    list_built(built, sizeof built);
    int i = 0;
    while (i < ISA_COUNT && strcmp(names[i], name) != 0) i++;
    if (i == ISA_COUNT) return err_set(err, SHOAL_EINVALID, "SHOAL_ISA=%s is not one of %s", name, built);
    if (!isa_built((isa)i))
        return err_set(err, SHOAL_EUNSUPPORTED,
                       "SHOAL_ISA=%s is of another kind of processor; this build has %s", name, built);
    if (!isa_usable((isa)i))
        return err_set(err, SHOAL_EUNSUPPORTED, "SHOAL_ISA=%s: this machine %s", name,
                       !listed((isa)i)    ? "does not have it"
                       : !granted((isa)i) ? "has it, but its kernel does not grant its registers"
                                          : "lists these instructions but traps on them");
    *ret = (isa)i;
    return 0;
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
    return isa_built(i) ? sets[i].kernels : &kernels_scalar;
}

const vec_kernels *vec_kernels_for(isa i)
{
    return kernels_for(i)->vec;
}
