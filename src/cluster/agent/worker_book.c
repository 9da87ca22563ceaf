/* worker_book.c: see worker_book.h. */
#define _GNU_SOURCE
#include "agent/worker_book.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define BOOK_MAGIC UINT64_C(0x53484f414c424b31) /* another layout gets another number */

typedef struct book_page {
    uint64_t magic;
    worker_entry slots[WORKER_BOOK_SLOTS];
} book_page;

struct worker_book {
    book_page *page;
};

static int map(worker_book **ret, int fd, shoal_err *err)
{
    worker_book *b = malloc(sizeof *b);
    if (!b) return err_nomem(err);
    b->page = mmap(NULL, sizeof *b->page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (b->page == MAP_FAILED) {
        free(b);
        return err_set(err, SHOAL_EIO, "the list of workers cannot be mapped");
    }
    *ret = b;
    return 0;
}

int worker_book_new(worker_book **ret, int *ret_fd, shoal_err *err)
{
    int fd = memfd_create("shoal-workers", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0) return err_set(err, SHOAL_EIO, "no anonymous file for the list of workers");
    int rc = ftruncate(fd, sizeof(book_page)) == 0 &&
                     fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0
                 ? map(ret, fd, err)
                 : err_set(err, SHOAL_EIO, "the list of workers has no room");
    if (rc != 0) {
        close(fd);
        return rc;
    }
    (*ret)->page->magic = BOOK_MAGIC;
    *ret_fd = fd;
    return 0;
}

int worker_book_open(worker_book **ret, int fd, shoal_err *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0 || (size_t)st.st_size != sizeof(book_page))
        return err_set(err, SHOAL_EFORMAT, "descriptor %d is no list of workers", fd);
    worker_book *b;
    int rc = map(&b, fd, err);
    if (rc != 0) return rc;
    if (b->page->magic != BOOK_MAGIC) {
        worker_book_free(b);
        return err_set(err, SHOAL_EFORMAT, "the list of workers is of another version");
    }
    *ret = b;
    return 0;
}

void worker_book_free(worker_book *b)
{
    if (!b) return;
    munmap(b->page, sizeof *b->page);
    free(b);
}

worker_entry *worker_book_at(worker_book *b, int slot)
{
    return &b->page->slots[slot];
}

static uint64_t check_of(const worker_entry *e)
{
    const size_t from = offsetof(worker_entry, check) + sizeof e->check;
    sha256_digest d;
    uint64_t first = 0;
    sha256_of((const char *)e + from, sizeof *e - from, &d);
    memcpy(&first, d.bytes, sizeof first);
    return first;
}

void worker_book_write(worker_book *b, int slot, const worker_entry *e)
{
    worker_entry *to = worker_book_at(b, slot);
    to->used = 0;
    *to = *e;
    to->pid = 0;
    to->served = to->leaving = 0;
    to->id[WORKER_BOOK_ID - 1] = '\0';
    to->check = check_of(to);
    __atomic_store_n(&to->used, 1, __ATOMIC_RELEASE);
}

void worker_book_clear(worker_book *b, int slot)
{
    memset(worker_book_at(b, slot), 0, sizeof(worker_entry));
}

worker_claim worker_book_claim(const worker_entry *e, bool lives)
{
    if (!lives || e->pid <= 0) return CLAIM_NOTHING;
    bool whole =
        e->used == 1 && e->id[WORKER_BOOK_ID - 1] == '\0' && strrchr(e->id, '/') && e->check == check_of(e);
    return whole && !e->leaving ? CLAIM_ADOPT : CLAIM_KILL;
}

bool worker_is_child(pid_t pid, pid_t parent)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    int fd = pid > 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    if (fd >= 0) close(fd);
    if (n <= 0) return false;
    text[n] = '\0';
    const char *at = strrchr(text, ')'); /* a program's name may hold anything */
    int ppid = 0;
    return at && sscanf(at + 1, " %*c %d", &ppid) == 1 && ppid == (int)parent;
}
