/* room.h: how much memory programs could still get, by the machine and by its cgroups.
 *
 * The least of MemAvailable and, from this process's cgroup (version 2) up to the root, memory.max less what
 * is used and could not be given back (memory.current less inactive_file). `root` is put before the paths, so
 * that a test brings a machine of its own. */
#ifndef OS_ROOM_H
#define OS_ROOM_H

#include <stdint.h>

typedef struct room {
    uint64_t free_bytes; /* UINT64_MAX: nobody says */
    const char *by;      /* "this machine", "its cgroup" */
} room;

room room_read(const char *root); /* "" for this machine */

#endif
