/* pages.c: see pages.h. A mapping asks for 2 MiB more than it wants and gives the ends back, so that it
 * begins on a border: newer kernels would do so by themselves, older ones do not. */
#include "base/pages.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/buf.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000 /* Linux 4.17; older ones take the address as a wish */
#endif

enum { ATTEMPTS = 4, CLEAR_LARGE = 64 << 10 };

static size_t up(size_t n)
{
    return (n + PAGES_HUGE - 1) & ~(PAGES_HUGE - 1);
}

/* Whether the kernel's transparent huge pages are switched off for everybody. */
static bool switched_off(void)
{
    char s[64] = "";
    FILE *f = fopen("/sys/kernel/mm/transparent_hugepage/enabled", "re");
    if (!f) return true;
    bool off = fgets(s, sizeof s, f) && strstr(s, "[never]");
    fclose(f);
    return off;
}

/* The pool's pages are reserved by the mapping, so that touching them cannot fail. */
static void *map_pool(size_t bytes)
{
    if (!switched_off()) return NULL;
    void *p = mmap(NULL, up(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

/* Addresses that were free a moment ago; another thread may have taken them since. */
static void *map_on_border(size_t bytes)
{
    uint8_t *p =
        mmap(NULL, bytes + PAGES_HUGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) return NULL;
    void *at = p + (up((uintptr_t)p) - (uintptr_t)p);
    munmap(p, bytes + PAGES_HUGE);
    p = mmap(at, bytes, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (p == at) return p;
    if (p != MAP_FAILED) munmap(p, bytes);
    return NULL;
}

void *pages_map(size_t bytes, unsigned flags)
{
    size_t all;
    if (bytes == 0 || size_add(bytes, 2 * PAGES_HUGE, &all)) return NULL;
    void *p = flags & PAGES_WHOLE ? map_pool(bytes) : NULL;
    if (p) return p;
    for (int i = 0; !p && i < ATTEMPTS; i++) p = map_on_border(up(bytes));
    if (p && !(flags & PAGES_SMALL)) pages_advise(p, bytes);
    return p;
}

void pages_unmap(void *p, size_t bytes)
{
    if (p) munmap(p, up(bytes));
}

void pages_populate(void *p, size_t bytes)
{
    if (bytes) madvise(p, bytes, MADV_POPULATE_WRITE);
}

/* Linux alone promises zeros where pages were dropped; a locked one cannot be. */
static bool pages_drop(uint8_t *p, size_t bytes)
{
#ifdef __linux__
    return madvise(p, bytes, MADV_DONTNEED) == 0;
#else
    (void)p, (void)bytes;
    return false;
#endif
}

void pages_clear(void *p, size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), head = -(uintptr_t)p & (page - 1);
    size_t whole = bytes > head ? (bytes - head) & ~(page - 1) : 0;
    uint8_t *at = p;
    if (whole < CLEAR_LARGE || !pages_drop(at + head, whole)) {
        memset(p, 0, bytes);
        return;
    }
    memset(at, 0, head);
    memset(at + head + whole, 0, bytes - head - whole);
}

void pages_advise(void *p, size_t bytes)
{
    uintptr_t begin = up((uintptr_t)p), end = ((uintptr_t)p + bytes) & ~(PAGES_HUGE - 1);
    if (begin < end) madvise((void *)begin, end - begin, MADV_HUGEPAGE);
}
