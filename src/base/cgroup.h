/* cgroup.h: what the control groups of this process leave of the machine: memory and processor time.
 *
 * Both versions of Linux's control groups, and both at once (Documentation/admin-guide/cgroup-v2.rst,
 * cgroup-v1/): the group is found by /proc/self/cgroup, its folder by /proc/self/mountinfo, and the limits of
 * all groups up to the root hold, so the smallest counts. In a container that shows its own group as the root
 * that root is the first one. `root` is put before all paths, so that a test brings a machine of its own. */
#ifndef BASE_CGROUP_H
#define BASE_CGROUP_H

#include <stdint.h>

typedef struct cgroup_limits {
    uint64_t memory_bytes; /* that the group may use; UINT64_MAX: as many as there are */
    uint64_t
        memory_free_bytes; /* of these, what is not in use or could be given back (file pages not in use) */
    int n_cores;           /* of processor time, rounded up, and of its set of processors; 0: no limit */
} cgroup_limits;

void cgroup_read(cgroup_limits *ret, const char *root); /* "" for this machine */

#endif
