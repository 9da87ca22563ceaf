/* vectors.c: AddressSanitizer's look at the vectors that the kernels load and store, in front of libasan's own.
 *
 * gcc calls these before every load and store of a kernel (cmake/modules.cmake says why). libasan's take any
 * length and cost more than half of what a model takes under the sanitizer. Here a vector whose bytes are all
 * good, which the shadow says in one or two words, is let through, and all others go libasan's way. Source: the
 * shadow mapping of x86-64 Linux, "AddressSanitizer: A Fast Address Sanity Checker" (USENIX ATC 2012), section 3. */
#include <sanitizer/asan_interface.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { SHADOW = 0x7fff8000, VECTOR = 64 };

void __asan_loadN(uintptr_t at, size_t n);
void __asan_storeN(uintptr_t at, size_t n);
void __asan_report_load_n(uintptr_t at, size_t n);
void __asan_report_store_n(uintptr_t at, size_t n);

/* 64 bytes have eight bytes of shadow, and nine where they are not aligned. A shorter one that ends before
 * something bad is left to libasan, too. */
static bool is_good(uintptr_t at, size_t n)
{
    uint64_t first;
    const uint8_t *shadow = (const uint8_t *)((at >> 3) + SHADOW);
    memcpy(&first, shadow, sizeof first);
    return n <= VECTOR && first == 0 && *(const uint8_t *)(((at + n - 1) >> 3) + SHADOW) == 0;
}

void __asan_loadN(uintptr_t at, size_t n)
{
    if (!is_good(at, n) && __asan_region_is_poisoned((void *)at, n)) __asan_report_load_n(at, n);
}

void __asan_storeN(uintptr_t at, size_t n)
{
    if (!is_good(at, n) && __asan_region_is_poisoned((void *)at, n)) __asan_report_store_n(at, n);
}
