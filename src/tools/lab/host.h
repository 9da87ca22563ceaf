/* host.h: one machine of a lab: a network namespace with one interface, a folder on a small disk of its own,
 * and the processes that run in it.
 *
 *     host n;
 *     if (host_open(&n, "/tmp/shoal-lab-42", "gw", 0, 16, err)) return err->code;   // 10.77.0.1
 *     pid_t pid = host_spawn(&n, argv, env, log_fd, log_fd, err);
 *     host_signal(&n, SIGKILL);    // its processes die, and its kernel ends their connections
 *     host_power_off(&n);          // no peer hears of the end of a connection
 *     host_power_on(&n, err);
 *     host_close(&n);
 *
 * Nothing of it has a name in the kernel: namespace, interface and processes end with the lab, however that
 * ends. A process belongs to the node whose network namespace it is in, whoever started it. Linux, root. */
#ifndef LAB_HOST_H
#define LAB_HOST_H

#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "lab/relay.h"

typedef struct host {
    char name[64], ip[16], folder[256];
    int net_fd, tun_fd;
    uint64_t net_inode;
} host;

/* index: its port of the relay, so its address. The folder is ROOT/NAME. The calling thread leaves its own
 * network namespace for a moment. */
int host_open(host *ret, const char *root, const char *name, size_t index, unsigned disk_mb, shoal_err *err);
void host_close(host *n); /* does not end its processes */

/* The power fails: its interface is gone before its processes are killed, so that no peer hears of the end of
 * a connection. Its port of the relay must be unplugged before. tun_fd is -1 afterwards. */
void host_power_off(host *n);
/* It has power again: a new kernel, which knows none of the old connections, behind a new interface (tun_fd).
 */
int host_power_on(host *n, shoal_err *err);

/* The calling thread goes into the node's network and stays there. */
int host_enter(const host *n, shoal_err *err);

/* Start argv[0] with exactly env, in a session of its own, in the node's folder, with the node's name as its
 * host name. out_fd and err_fd stay the caller's. Negative: *err. */
pid_t host_spawn(const host *n, char *const argv[], char *const env[], int out_fd, int err_fd,
                 shoal_err *err);

/* The processes of the node, at most max, by the words of their command lines, so that draws repeat. */
typedef struct host_process {
    pid_t pid;
    char line[512]; /* its arguments with one blank between them */
} host_process;
size_t host_processes(const host *n, host_process *ret, size_t max);

/* Every process of the node, until none is found that did not get it. */
void host_signal(const host *n, int signum);

/* The TCP connections between nodes that process pid has, or one of its session, at most max. */
size_t host_flows(const host *n, pid_t pid, relay_flow *ret, size_t max);

/* Take all that is left of its disk; give it back. */
void host_fill(const host *n);
void host_unfill(const host *n);

#endif
