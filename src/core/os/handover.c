/* handover.c: the supervised process's table of kept descriptors, and messages of both ends. */
#define _GNU_SOURCE
#include "os/handover.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "logging/log.h"

typedef struct kept_fd {
    uint32_t id;
    int fd;
    bool taken;
    char name[HANDOVER_NAME + 1];
} kept_fd;

static struct {
    int sock, supervisor;
    unsigned n_restarts;
    uint32_t last_id;
    kept_fd kept[HANDOVER_MAX];
    size_t n;
} self = {.sock = -1};

/* ---- messages ----------------------------------------------------------------------------------------- */

typedef union ancillary { /* aligned as a cmsghdr is */
    struct cmsghdr head;
    char bytes[CMSG_SPACE(sizeof(int))];
} ancillary;

int handover_send(int sock, const handover_msg *m, int fd)
{
    ancillary with = {0};
    struct iovec v = {.iov_base = (void *)m, .iov_len = sizeof *m};
    struct msghdr h = {.msg_iov = &v, .msg_iovlen = 1};
    if (fd >= 0) {
        h.msg_control = with.bytes;
        h.msg_controllen = sizeof with.bytes;
        struct cmsghdr *c = CMSG_FIRSTHDR(&h);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof fd);
        memcpy(CMSG_DATA(c), &fd, sizeof fd);
    }
    return sendmsg(sock, &h, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)sizeof *m ? 0 : -1;
}

int handover_recv(int sock, handover_msg *ret, int *ret_fd)
{
    ancillary with = {0};
    struct iovec v = {.iov_base = ret, .iov_len = sizeof *ret};
    struct msghdr h = {
        .msg_iov = &v, .msg_iovlen = 1, .msg_control = with.bytes, .msg_controllen = sizeof with.bytes};
    *ret_fd = -1;
    ssize_t n = recvmsg(sock, &h, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n <= 0) return (int)n;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&h); c; c = CMSG_NXTHDR(&h, c))
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
            memcpy(ret_fd, CMSG_DATA(c), sizeof *ret_fd);
    if (n < (ssize_t)sizeof *ret) memset((char *)ret + n, 0, sizeof *ret - (size_t)n);
    ret->name[HANDOVER_NAME] = '\0';
    return 1;
}

/* ---- the supervised process --------------------------------------------------------------------------- */

/* Whoever sets the variable by hand supervises nothing: the other end must be the parent's. */
static bool is_parents(int sock)
{
    struct ucred peer;
    socklen_t n = sizeof peer;
    int type = 0;
    socklen_t n_type = sizeof type;
    return getsockopt(sock, SOL_SOCKET, SO_TYPE, &type, &n_type) == 0 && type == SOCK_SEQPACKET &&
           getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &peer, &n) == 0 && peer.pid == getppid();
}

static void handover_add(uint32_t id, const char *name, int fd, bool taken)
{
    kept_fd *k = &self.kept[self.n++];
    *k = (kept_fd){.id = id, .fd = fd, .taken = taken};
    strncpy(k->name, name, HANDOVER_NAME);
    if (id > self.last_id) self.last_id = id;
}

/* The supervisor sent all of them before it started this process. */
static void read_kept(int sock)
{
    handover_msg m;
    int fd, left = 0;
    if (handover_recv(sock, &m, &fd) == 1 && m.what == HANDOVER_HELLO) {
        self.n_restarts = (unsigned)m.a;
        left = m.b;
    }
    while (left-- > 0 && handover_recv(sock, &m, &fd) == 1)
        if (fd >= 0 && m.what == HANDOVER_FD && self.n < HANDOVER_MAX) handover_add(m.id, m.name, fd, false);
}

bool handover_open(void)
{
    const char *env = getenv(HANDOVER_ENV);
    int sock = env ? atoi(env) : -1;
    if (!env) return false;
    unsetenv(HANDOVER_ENV);
    if (sock <= STDERR_FILENO || !is_parents(sock)) return false;
    fcntl(sock, F_SETFD, FD_CLOEXEC);
    self.sock = sock;
    self.supervisor = getppid();
    read_kept(sock);
    return true;
}

bool handover_is_open(void)
{
    return self.sock >= 0;
}

int handover_supervisor(void)
{
    return self.supervisor;
}

unsigned handover_restarts(void)
{
    return self.n_restarts;
}

int handover_fd(void)
{
    return self.sock;
}

bool handover_receive(handover_msg *ret)
{
    int fd, rc = self.sock >= 0 ? handover_recv(self.sock, ret, &fd) : -1;
    if (rc == 1 && fd >= 0) close(fd);
    return rc == 1;
}

void handover_tell(handover_what what, int a, int b)
{
    const handover_msg m = {.what = what, .a = a, .b = b};
    if (self.sock >= 0) handover_send(self.sock, &m, -1);
}

static int take_handover(kept_fd *k)
{
    k->taken = true;
    return k->fd;
}

int handover_take(const char *name)
{
    for (size_t i = 0; i < self.n; i++)
        if (!self.kept[i].taken && strcmp(self.kept[i].name, name) == 0) return take_handover(&self.kept[i]);
    return -1;
}

int handover_take_prefix(const char *prefix, char *ret_name)
{
    for (size_t i = 0; i < self.n; i++) {
        kept_fd *k = &self.kept[i];
        if (k->taken || strncmp(k->name, prefix, strlen(prefix)) != 0) continue;
        memcpy(ret_name, k->name, sizeof k->name);
        return take_handover(k);
    }
    return -1;
}

void handover_keep(const char *name, int fd)
{
    handover_msg m = {.what = HANDOVER_KEEP, .id = self.last_id + 1};
    if (self.sock < 0) return;
    bool fits = strlen(name) <= HANDOVER_NAME && self.n < HANDOVER_MAX;
    if (fits) strcpy(m.name, name);
    if (!fits || handover_send(self.sock, &m, fd) != 0)
        LOG(LOG_WARN, "handover", "not_kept", LOG_S("name", name),
            LOG_S("reason", fits ? strerror(errno) : "there is no room for it"));
    else
        handover_add(m.id, name, fd, true);
}

static void remove_at(size_t i)
{
    const handover_msg m = {.what = HANDOVER_FORGET, .id = self.kept[i].id};
    handover_send(self.sock, &m, -1);
    memmove(&self.kept[i], &self.kept[i + 1],
            (--self.n - i) * sizeof *self.kept); /* equal names stay in order */
}

void handover_forget(int fd)
{
    for (size_t i = 0; i < self.n; i++) {
        if (!self.kept[i].taken || self.kept[i].fd != fd) continue;
        remove_at(i);
        return;
    }
}

void handover_discard(void)
{
    for (size_t i = self.n; i-- > 0;) {
        if (self.kept[i].taken) continue;
        LOG(LOG_INFO, "handover", "discarded", LOG_S("name", self.kept[i].name));
        close(self.kept[i].fd);
        remove_at(i);
    }
}
