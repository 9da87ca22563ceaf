/* control.h: the page that a process under test and its sweep share (SHOAL_FAIL_CONTROL names its file).
 *
 * The process (interpose.c) counts; the sweep (sweep.c) says which number fails, before the process starts
 * or while it runs:
 *
 *     c->alloc.count = 0;
 *     c->alloc.fail_at = 17;      the seventeenth allocation from now on gets no memory
 *     ... one run, or one request ...
 *     c->n_failed == 1            it came to that
 *
 * Counting begins when main does: what the loader and the C library take before is not the program's. */
#ifndef TESTS_FAIL_CONTROL_H
#define TESTS_FAIL_CONTROL_H

#include <stdatomic.h>
#include <stdint.h>

enum {
    FAIL_PLACES = 1 << 16, /* a power of two */
    FAIL_FRAMES = 32,
    FAIL_DEPTH = 12, /* return addresses that tell two places apart */
    FAIL_TEXT = 8192,
};

typedef struct fail_counter {
    _Atomic uint64_t count;   /* so far */
    _Atomic uint64_t fail_at; /* this number fails; 0: none does */
    atomic_bool onward;       /* and all after it */
} fail_counter;

/* A way that led to an allocation or a write: the hash of its return addresses, and when it came first. */
typedef struct fail_place {
    uint64_t hash, first, n;
} fail_place;

typedef struct fail_control {
    fail_counter alloc, write;
    _Atomic uint64_t n_failed;
    _Atomic int64_t n_live; /* blocks and maps taken and not given back */
    atomic_int pid;         /* of the process that counts here */
    atomic_int write_errno; /* what a failing write says */

    atomic_bool record; /* fill in `places`; slow */
    atomic_flag places_lock;
    uint64_t n_places;
    fail_place places[FAIL_PLACES]; /* of allocations or, for writes, with the lowest bit of hash set */

    atomic_bool explain; /* write the stack of the first that fails into `text` */
    char text[FAIL_TEXT];
} fail_control;

#endif
