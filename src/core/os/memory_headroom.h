/* memory_headroom.h: how much memory programs could still get, by the machine and by its cgroups.
 *
 * The least of MemAvailable and, from this process's cgroup (version 2) up to the root, memory.max less what
 * is used and could not be given back (memory.current less inactive_file). `root` is put before the paths, so
 * that a test brings a machine of its own. */
#ifndef OS_MEMORY_HEADROOM_H
#define OS_MEMORY_HEADROOM_H

#include <stdint.h>

typedef struct memory_headroom {
    uint64_t free_bytes; /* UINT64_MAX: nobody says */
    const char *by;      /* "this machine", "its cgroup" */
} memory_headroom;

memory_headroom memory_headroom_read(const char *root); /* "" for this machine */

#endif
