/* room.h: how much memory this process may have, by the machine and by its cgroups (base/cgroup.h).
 *
 * For everybody who counts memory: what `shoal nodes` shows, where models are placed, what keys and values
 * may take. `root` is put before the paths, so that a test brings a machine of its own. */
#ifndef BASE_ROOM_H
#define BASE_ROOM_H

#include <stdint.h>

typedef struct room {
    uint64_t all_bytes; /* MemTotal, or the limit where that is less; UINT64_MAX: nobody says */
    uint64_t
        free_bytes; /* that programs could still get: the least of MemAvailable and what the limits leave */
    const char *by; /* who says what is free: "this machine", "its cgroup" */
} room;

room room_read(const char *root); /* "" for this machine */

#endif
