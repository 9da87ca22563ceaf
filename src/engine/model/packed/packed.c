/* packed.c: see packed.h. */
#define _GNU_SOURCE
#include "model/packed/packed.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cur.h"
#include "base/file.h"
#include "base/pages.h"
#include "base/progress.h"

#define MAGIC       "SHOALPK\n"
#define VERSION     2
#define HEAD_AT     344 /* of the head's own digest */
#define ITEMS_MAX   (1u << 20)
#define PIECE_BYTES ((size_t)1 << 20)
#define COPY_BYTES  ((size_t)32 << 20)

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22 /* Linux 5.14 */
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* Linux 6.1 */
#endif

struct packed {
    uint8_t *base; /* of addresses that are this image's, [span] */
    size_t span, payload_bytes;
    weights_item *items;
    size_t n_items;
};

/* ---- reading ------------------------------------------------------------------------------------ */

static int damaged(shoal_err *err, const char *what)
{
    return err_set(err, SHOAL_EFORMAT, "%s", what);
}

static void take_digest(cur *c, sha256_digest *ret)
{
    const uint8_t *p = cur_take(c, sizeof ret->bytes);
    if (p) memcpy(ret->bytes, p, sizeof ret->bytes);
}

/* n bytes, the last of them zero. */
static void packed_take_text(cur *c, char *ret, size_t n)
{
    const uint8_t *p = cur_take(c, n);
    if (p && p[n - 1] == 0)
        memcpy(ret, p, n);
    else
        c->failed = true;
}

static bool same_digest(const sha256_digest *a, const sha256_digest *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

int packed_read_head(packed_head *ret, const void *data, size_t n, shoal_err *err)
{
    cur c = cur_over(data, n);
    packed_head h = {0};
    sha256_digest said = {0}, is;
    const uint8_t *magic = cur_take(&c, 8);
    if (!magic || n < PACKED_HEAD_BYTES || memcmp(magic, MAGIC, 8) != 0)
        return damaged(err, "it is no image");
    uint32_t version = cur_u32(&c);
    h.n_items = cur_u32(&c);
    h.payload_at = cur_u64(&c);
    h.payload_bytes = cur_u64(&c);
    h.first_layer = cur_u64(&c);
    h.end_layer = cur_u64(&c);
    uint64_t *id[] = {&h.file.device, &h.file.inode, &h.file.size, &h.file.mtime_ns, &h.file.ctime_ns};
    for (size_t i = 0; i < 5; i++) *id[i] = cur_u64(&c);
    sha256_digest *digests[] = {&h.layout, &h.model, &h.index, &h.payload};
    for (size_t i = 0; i < 4; i++) take_digest(&c, digests[i]);
    packed_take_text(&c, h.name, sizeof h.name);
    packed_take_text(&c, h.type, sizeof h.type);
    take_digest(&c, &said);
    sha256_of(data, HEAD_AT, &is);
    if (version != VERSION) return damaged(err, "it is of another version of the format");
    if (c.failed || !same_digest(&is, &said)) return damaged(err, "its head is damaged");
    if (h.n_items == 0 || h.n_items > ITEMS_MAX || h.payload_at % PAGES_HUGE != 0 ||
        h.payload_at < PACKED_HEAD_BYTES + h.n_items * PACKED_ITEM_BYTES || h.payload_at > SIZE_MAX / 4 ||
        h.payload_bytes > SIZE_MAX / 4)
        return damaged(err, "its head contradicts itself");
    *ret = h;
    return 0;
}

static bool read_item(cur *c, const packed_head *h, uint8_t *payload, weights_item *ret)
{
    *ret = (weights_item){.name = cur_u64(c)};
    uint64_t type = cur_u64(c), rows = cur_u64(c), cols = cur_u64(c), at = cur_u64(c);
    if (c->failed || type >= DT_COUNT ||
        !wmat_sizes((dtype)type, rows, cols, &ret->codes_bytes, &ret->scales_bytes))
        return false;
    ret->type = (dtype)type;
    ret->rows = rows;
    ret->cols = cols;
    if (ret->codes_bytes > SIZE_MAX / 4 || ret->scales_bytes > SIZE_MAX / 4) return false;
    size_t bytes = weights_item_bytes(ret);
    if (at % 64 != 0 || at > h->payload_bytes || bytes > h->payload_bytes - at) return false;
    ret->codes = payload + at;
    ret->scales = ret->scales_bytes ? payload + at + (bytes - (ret->scales_bytes + 63) / 64 * 64) : NULL;
    return true;
}

int packed_read_index(weights_item **ret_items, const packed_head *h, const void *data, size_t n,
                      uint8_t *payload, shoal_err *err)
{
    sha256_digest is;
    size_t bytes = h->n_items * PACKED_ITEM_BYTES;
    cur c = cur_over(data, n);
    cur_take(&c, PACKED_HEAD_BYTES);
    const uint8_t *index = cur_take(&c, bytes);
    if (!index) return damaged(err, "its index is cut short");
    sha256_of(index, bytes, &is);
    if (!same_digest(&is, &h->index)) return damaged(err, "its index is damaged");
    weights_item *items = calloc(h->n_items, sizeof *items);
    if (!items) return err_nomem(err);
    cur at = cur_over(index, bytes);
    for (size_t i = 0; i < h->n_items; i++) {
        if (read_item(&at, h, payload, &items[i])) continue;
        free(items);
        return damaged(err, "its index names a matrix that cannot be there");
    }
    *ret_items = items;
    return 0;
}

/* ---- opening ------------------------------------------------------------------------------------ */

/* A file of ours that nobody else writes to. */
static int open_trusted(const char *path, struct stat *st, int *ret_fd, shoal_err *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) return err_set(err, errno == ENOENT ? SHOAL_ENOTFOUND : SHOAL_EIO, "%s", strerror(errno));
    int rc = 0;
    if (fstat(fd, st) != 0 || !S_ISREG(st->st_mode))
        rc = err_set(err, SHOAL_EFORMAT, "it is no regular file");
    else if ((st->st_uid != geteuid() && st->st_uid != 0) || (st->st_mode & (S_IWGRP | S_IWOTH)))
        rc = err_set(err, SHOAL_EAUTH, "others than its owner could have written it");
    if (rc)
        close(fd);
    else
        *ret_fd = fd;
    return rc;
}

static int peek_packed(int fd, packed_head *ret, shoal_err *err)
{
    uint8_t head[PACKED_HEAD_BYTES];
    ssize_t n = pread(fd, head, sizeof head, 0);
    return packed_read_head(ret, head, n > 0 ? (size_t)n : 0, err);
}

int packed_peek(packed_head *ret, const char *path, shoal_err *err)
{
    struct stat st;
    int fd, rc = open_trusted(path, &st, &fd, err);
    if (rc) return rc;
    rc = peek_packed(fd, ret, err);
    close(fd);
    return rc;
}

static int check_head(const packed_head *h, const packed_head *want, const struct stat *st, shoal_err *err)
{
    if ((uint64_t)st->st_size != h->payload_at + h->payload_bytes) return damaged(err, "it is cut short");
    if (!same_digest(&h->model, &want->model)) return err_set(err, SHOAL_EDIGEST, "it is of another model");
    if (!same_digest(&h->layout, &want->layout))
        return err_set(err, SHOAL_EDIGEST, "it was packed by another version, or for other instructions");
    if (h->first_layer != want->first_layer || h->end_layer != want->end_layer)
        return err_set(err, SHOAL_EDIGEST, "it is of other layers");
    return 0;
}

/* Piece by piece, so that a start from a slow disk shows that it gets on. */
static void populate(uint8_t *base, size_t n)
{
    for (size_t at = 0, piece; at < n; at += piece) {
        piece = n - at < COPY_BYTES ? n - at : COPY_BYTES;
        if (madvise(base + at, piece, MADV_POPULATE_READ) != 0) return;
        progress_tick();
    }
}

/* The payload on a border of 2 MiB, so that its pages can become huge ones. */
static int map_payload(packed *m, int fd, const packed_head *h, shoal_err *err)
{
    m->payload_bytes = h->payload_bytes;
    m->span = (h->payload_bytes + PAGES_HUGE - 1) & ~(PAGES_HUGE - 1);
    m->base = pages_map(m->span, 0);
    if (!m->base) return err_nomem(err);
    if (mmap(m->base, h->payload_bytes, PROT_READ, MAP_SHARED | MAP_FIXED, fd, (off_t)h->payload_at) ==
        MAP_FAILED)
        return err_set(err, SHOAL_EIO, "it cannot be mapped: %s", strerror(errno));
    madvise(m->base, m->span, MADV_HUGEPAGE);
    madvise(m->base, h->payload_bytes, MADV_WILLNEED);
    populate(m->base, h->payload_bytes);
    return 0;
}

static int map_index(packed *m, int fd, const packed_head *h, shoal_err *err)
{
    size_t n = PACKED_HEAD_BYTES + h->n_items * PACKED_ITEM_BYTES;
    void *p = mmap(NULL, n, PROT_READ, MAP_PRIVATE, fd, 0);
    if (p == MAP_FAILED) return err_nomem(err);
    m->n_items = h->n_items;
    int rc = packed_read_index(&m->items, h, p, n, m->base, err);
    munmap(p, n);
    return rc;
}

static int check_payload(const packed *m, const packed_head *h, shoal_err *err)
{
    sha256_digest is;
    sha256_of(m->base, m->payload_bytes, &is);
    return same_digest(&is, &h->payload) ? 0 : damaged(err, "its weights are damaged");
}

static int open_fd(packed *m, int fd, const struct stat *st, const packed_head *want, bool whole,
                   shoal_err *err)
{
    packed_head h;
    int rc = peek_packed(fd, &h, err);
    if (rc == 0) rc = check_head(&h, want, st, err);
    if (rc == 0 && h.payload_bytes == 0) rc = damaged(err, "it holds nothing");
    if (rc == 0) rc = map_payload(m, fd, &h, err);
    if (rc == 0) rc = map_index(m, fd, &h, err);
    return rc == 0 && whole ? check_payload(m, &h, err) : rc;
}

int packed_open(packed **ret, const char *path, const packed_head *want, bool whole, shoal_err *err)
{
    struct stat st;
    int fd, rc = open_trusted(path, &st, &fd, err);
    if (rc) return rc;
    packed *m = calloc(1, sizeof *m);
    rc = m ? open_fd(m, fd, &st, want, whole, err) : err_nomem(err);
    close(fd);
    if (rc)
        packed_close(m);
    else
        *ret = m;
    return rc;
}

void packed_close(packed *m)
{
    if (!m) return;
    pages_unmap(m->base, m->span);
    free(m->items);
    free(m);
}

const weights_item *packed_items(const packed *m, size_t *ret_n)
{
    *ret_n = m->n_items;
    return m->items;
}

/* ---- writing ------------------------------------------------------------------------------------ */

static void put_u64(buf *b, uint64_t v)
{
    buf_append(b, &v, sizeof v);
}

static void put_u32(buf *b, uint32_t v)
{
    buf_append(b, &v, sizeof v);
}

static void put_digest(buf *b, const sha256_digest *d)
{
    buf_append(b, d->bytes, sizeof d->bytes);
}

static dtype commonest_type(const weights *s)
{
    size_t count[DT_COUNT] = {0}, best = 0;
    for (size_t i = 0; i < weights_count(s); i++)
        count[weights_at(s, i)->type] += weights_at(s, i)->rows * weights_at(s, i)->cols;
    for (size_t t = 1; t < DT_COUNT; t++)
        if (count[t] > count[best]) best = t;
    return (dtype)best;
}

/* The index, and where the payload begins behind it. */
static void put_index(buf *b, packed_head *h, const weights *s)
{
    uint64_t at = 0;
    for (size_t i = 0; i < weights_count(s); i++) {
        const weights_item *it = weights_at(s, i);
        const uint64_t words[] = {it->name, it->type, it->rows, it->cols, at};
        for (size_t k = 0; k < 5; k++) put_u64(b, words[k]);
        at += weights_item_bytes(it);
    }
    snprintf(h->type, sizeof h->type, "%s", dtype_name(commonest_type(s)));
    h->n_items = weights_count(s);
    h->payload_bytes = at;
    h->payload_at = (PACKED_HEAD_BYTES + b->len + PAGES_HUGE - 1) & ~(PAGES_HUGE - 1);
    if (!b->failed) sha256_of(b->data, b->len, &h->index);
}

static void put_head(buf *b, const packed_head *h)
{
    static const uint8_t zeros[PACKED_HEAD_BYTES] = {0};
    const packed_identity *id = &h->file;
    const uint64_t words[] = {h->payload_at, h->payload_bytes, h->first_layer, h->end_layer, id->device,
                              id->inode,     id->size,         id->mtime_ns,   id->ctime_ns};
    const sha256_digest *digests[] = {&h->layout, &h->model, &h->index, &h->payload};
    sha256_digest own;
    buf_append(b, MAGIC, 8);
    put_u32(b, VERSION);
    put_u32(b, (uint32_t)h->n_items);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) put_u64(b, words[i]);
    for (size_t i = 0; i < 4; i++) put_digest(b, digests[i]);
    buf_append(b, h->name, sizeof h->name);
    buf_append(b, h->type, sizeof h->type);
    if (b->failed) return;
    sha256_of(b->data, HEAD_AT, &own);
    put_digest(b, &own);
    buf_append(b, zeros, PACKED_HEAD_BYTES - HEAD_AT - sizeof own.bytes);
}

/* Where the bytes go: first to the digest alone, which stands in front of them, then to the file. */
typedef struct sink {
    sha256 *digest;
    file_writer *file;
    const atomic_bool *stop;
} sink;

static int packed_put_bytes(sink *k, const uint8_t *p, size_t n, shoal_err *err)
{
    for (size_t piece; n > 0; p += piece, n -= piece) {
        piece = n < PIECE_BYTES ? n : PIECE_BYTES;
        if (k->stop && atomic_load(k->stop)) return err_set(err, SHOAL_ECANCELLED, "stopped");
        if (k->digest) sha256_add(k->digest, p, piece);
        int rc = k->file ? file_writer_write(k->file, p, piece, err) : 0;
        if (rc) return rc;
    }
    return 0;
}

static int put_payload(sink *k, const weights *s, shoal_err *err)
{
    static const uint8_t zeros[64] = {0};
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < weights_count(s); i++) {
        const weights_item *it = weights_at(s, i);
        rc = packed_put_bytes(k, it->codes, it->codes_bytes, err);
        if (rc == 0) rc = packed_put_bytes(k, zeros, -it->codes_bytes % 64, err);
        if (rc == 0) rc = packed_put_bytes(k, it->scales, it->scales_bytes, err);
        if (rc == 0) rc = packed_put_bytes(k, zeros, -it->scales_bytes % 64, err);
    }
    return rc;
}

static int digest_payload(packed_head *h, const weights *s, const atomic_bool *stop, shoal_err *err)
{
    sink k = {.digest = sha256_new(), .stop = stop};
    if (!k.digest) return err_nomem(err);
    int rc = put_payload(&k, s, err);
    sha256_end(k.digest, &h->payload);
    return rc;
}

static int write_all(file_writer *w, const buf *head, const buf *index, const packed_head *h,
                     const weights *s, const atomic_bool *stop, shoal_err *err)
{
    static const uint8_t zeros[4096] = {0};
    sink k = {.file = w, .stop = stop};
    int rc = packed_put_bytes(&k, (const uint8_t *)head->data, head->len, err);
    if (rc == 0) rc = packed_put_bytes(&k, (const uint8_t *)index->data, index->len, err);
    while (rc == 0 && file_writer_offset(w) < h->payload_at) {
        uint64_t left = h->payload_at - file_writer_offset(w);
        rc = packed_put_bytes(&k, zeros, left < sizeof zeros ? left : sizeof zeros, err);
    }
    if (rc == 0) rc = put_payload(&k, s, err);
    return rc == 0 ? file_writer_commit(w, err) : rc;
}

int packed_write(const char *path, packed_head h, const weights *s, const atomic_bool *stop, shoal_err *err)
{
    buf head = {0}, index = {0};
    file_writer *w = NULL;
    put_index(&index, &h, s);
    int rc = digest_payload(&h, s, stop, err);
    put_head(&head, &h);
    if (rc == 0 && (head.failed || index.failed)) rc = err_nomem(err);
    if (rc == 0) rc = file_writer_open(&w, path, err);
    if (rc == 0) rc = write_all(w, &head, &index, &h, s, stop, err);
    file_writer_close(w);
    if (rc == 0) chmod(path, S_IRUSR | S_IWUSR); /* a generous umask would make it one that nobody trusts */
    buf_done(&head);
    buf_done(&index);
    return rc;
}

/* ---- huge pages ---------------------------------------------------------------------------------- */

static bool stopped(const atomic_bool *stop)
{
    return stop && atomic_load(stop);
}

/* 2 MiB at a time, so that readers never wait long. */
static bool collapse(packed *m, size_t whole, const atomic_bool *stop)
{
    for (size_t at = 0; at < whole; at += PAGES_HUGE) {
        if (stopped(stop) || madvise(m->base + at, PAGES_HUGE, MADV_COLLAPSE) != 0) return at > 0;
        progress_tick();
    }
    return whole > 0;
}

/* One piece is filled elsewhere and then moved over what it is a copy of, in one step: whoever reads meets
 * the one or the other. */
static bool replace(packed *m, size_t at, size_t n)
{
    uint8_t *copy = pages_map(n, 0);
    if (!copy) return false;
    memcpy(copy, m->base + at, n);
    bool moved = mprotect(copy, n, PROT_READ) == 0 &&
                 mremap(copy, n, n, MREMAP_MAYMOVE | MREMAP_FIXED, m->base + at) != MAP_FAILED;
    if (!moved) pages_unmap(copy, n);
    return moved;
}

packed_pages packed_enlarge(packed *m, bool own, const atomic_bool *stop)
{
    size_t whole = m->payload_bytes & ~(PAGES_HUGE - 1), at = 0;
    if (collapse(m, whole, stop)) return PACKED_SHARED_HUGE;
    if (!own) return PACKED_SMALL;
    for (size_t n; at < whole && !stopped(stop); at += n) {
        n = whole - at < COPY_BYTES ? whole - at : COPY_BYTES;
        if (!replace(m, at, n)) break;
        progress_tick();
    }
    return at > 0 ? PACKED_OWN_HUGE : PACKED_SMALL;
}
