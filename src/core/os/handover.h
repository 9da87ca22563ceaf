/* handover.h: what a supervised process leaves with its supervisor, and finds again in its next life.
 *
 * The supervisor (serve/supervisor.h) keeps file descriptors by name: listening sockets, shared memory,
 * locks. They outlive a crash, so the next process has the same port, the same backlog and the same workers.
 *
 *     handover_open();                       // first of all; false: there is no supervisor
 *     int fd = handover_take("book");        // kept by an earlier life; -1: make it, then
 *     handover_keep("book", fd);
 *     handover_forget(fd); close(fd);        // not wanted any more
 *     handover_discard();                    // started: what was not taken by now is closed
 *
 * Both ends exchange messages of one fixed size over a SOCK_SEQPACKET pair; descriptors travel with them.
 * Without a supervisor every call does nothing, and handover_take finds nothing.
 *
 * State of the process, like its log and its environment, since a process has one supervisor. One thread. */
#ifndef OS_HANDOVER_H
#define OS_HANDOVER_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

#define HANDOVER_ENV "SHOAL_SUPERVISOR" /* the number of the process's end of the pair */

/* Carries another signal's number from the supervisor; queued, never merged. */
#define HANDOVER_SIGNAL SIGRTMIN
/* In its value: the signal was sent as it is before the process heard forwarded ones, and may have been lost.
 */
#define HANDOVER_AGAIN 0x100

enum { HANDOVER_NAME = 236, HANDOVER_MAX = 96 /* descriptors */ };

typedef enum handover_what {
    HANDOVER_HELLO = 1, /* to the process: a = restarts so far, b = descriptors that follow */
    HANDOVER_FD,        /* to it: id, name and a descriptor */
    HANDOVER_EXITED,    /* to it: a = pid, b = wait status of another child of the supervisor */
    HANDOVER_KEEP,      /* to the supervisor: id, name and a descriptor */
    HANDOVER_FORGET,    /* to it: id */
    HANDOVER_LOG,       /* to the supervisor: a = log lines are JSON, b = their level */
    HANDOVER_READY,     /* to the supervisor: the process serves */
} handover_what;

typedef struct handover_msg {
    uint32_t what;
    uint32_t id;
    int32_t a, b;
    char name[HANDOVER_NAME + 4]; /* NUL-terminated */
} handover_msg;

/* ---- the supervised process --------------------------------------------------------------------------- */

/* True: this process is supervised, and what its earlier lives kept can be taken. The variable is removed
 * from the environment. A value that names no socket of the parent process is ignored. */
bool handover_open(void);
bool handover_is_open(void);
int handover_supervisor(void);    /* its pid; 0: none */
unsigned handover_restarts(void); /* lives before this one that crashed */
int handover_fd(void);            /* to be watched for messages; -1: none */
/* The next message. False: none is there. */
bool handover_receive(handover_msg *ret);
void handover_tell(handover_what what, int a, int b); /* LOG, READY */

/* The descriptor becomes the caller's, and stays kept. Of several with one name the first. -1: none. */
int handover_take(const char *name);
/* The same for a name that only begins so; ret_name has HANDOVER_NAME + 1 bytes. */
int handover_take_prefix(const char *prefix, char *ret_name);
/* fd stays the caller's; the supervisor gets a duplicate. A name that is too long, a full table or a full
 * socket is logged, and the next life starts without it. */
void handover_keep(const char *name, int fd);
/* Before fd is closed; of one that was never kept nothing happens. */
void handover_forget(int fd);
/* Close and forget what no one has taken. */
void handover_discard(void);

/* ---- both ends ---------------------------------------------------------------------------------------- */

/* fd -1: none goes with it. Never waits; -1 with errno. */
int handover_send(int sock, const handover_msg *m, int fd);
/* 1: a message (*ret_fd: its descriptor, close-on-exec, or -1), 0: the other end is closed, -1: errno. Never
 * waits. */
int handover_recv(int sock, handover_msg *ret, int *ret_fd);

#endif
