/* pages.h: large memory in huge pages.
 *
 * What a step reads from end to end (weights, keys and values, logits) is many times larger than what the
 * processor keeps translations for: with pages of 4 KiB every fourth cache line or so of a decode step waits
 * for a walk of the page tables. So it is mapped on borders of 2 MiB, and the kernel is asked for huge pages
 * (madvise). Where it has none to give, or transparent huge pages are switched off, small ones serve.
 *
 *     uint8_t *p = pages_map(n, 0);      zeros, touched page by page as they are used
 *     pages_populate(p, n);              touch them now, where nobody waits
 *     pages_unmap(p, n); */
#ifndef BASE_PAGES_H
#define BASE_PAGES_H

#include <stddef.h>

#define PAGES_HUGE ((size_t)2 << 20)

/* For memory that will be used to the end: taken from the administrator's pool of huge pages (hugetlbfs)
 * where it has room and transparent ones are switched off. */
#define PAGES_WHOLE 1u
/* For memory of which little may ever be used: no huge pages. */
#define PAGES_SMALL 2u

/* Anonymous, private, zeroed, on a border of PAGES_HUGE; resident only as far as it is touched. NULL when
 * bytes is 0 or memory (or addresses) are out. Any thread. */
void *pages_map(size_t bytes, unsigned flags);
void pages_unmap(void *p, size_t bytes); /* the bytes that were mapped; NULL is fine */

/* Make the pages of p[bytes) resident, as far as the kernel can. Their content stays. */
void pages_populate(void *p, size_t bytes);

/* Zeros in p[bytes), a private allocation. Where it is large its whole pages are dropped, not written: it
 * is resident only as far as it is touched from then on. */
void pages_clear(void *p, size_t bytes);

/* Ask for huge pages in the parts of p[bytes) that hold whole ones: what lies at its ends stays small. */
void pages_advise(void *p, size_t bytes);

#endif
