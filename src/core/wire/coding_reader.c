/* coding_reader.c: gzip and zstd as bytes.
 *
 * A few kilobytes can hold gigabytes, so what comes out is counted before it is given on, and is given on in
 * pieces of PIECE_BYTES: memory is a window, at most that of RFC 9659 (8 MiB), and one piece. */
#include "wire/coding.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "base/loop_work.h"

enum { PIECE_BYTES = 32 << 10, GZIP_WRAP = 16, WINDOW_LOG_MAX = 23 };

struct coding_reader {
    coding c;
    size_t room; /* bytes that may still come out */
    size_t n_in, n_out;
    bool is_open; /* within a member or frame, or before the first */
    z_stream z;
    ZSTD_DCtx *zstd;
    uint8_t out[PIECE_BYTES];
};

int coding_reader_new(coding_reader **ret, coding c, size_t max_bytes, shoal_err *err)
{
    coding_reader *r = malloc(sizeof *r);
    if (!r) return err_nomem(err);
    memset(r, 0, offsetof(coding_reader, out));
    r->room = max_bytes;
    r->is_open = true;
    bool fine;
    if (c == CODING_ZSTD) {
        r->zstd = ZSTD_createDCtx();
        fine = r->zstd && !ZSTD_isError(ZSTD_DCtx_setParameter(r->zstd, ZSTD_d_windowLogMax, WINDOW_LOG_MAX));
    } else {
        fine = inflateInit2(&r->z, c == CODING_DEFLATE ? MAX_WBITS : MAX_WBITS + GZIP_WRAP) == Z_OK;
    }
    r->c = fine ? c : CODING_NONE;
    if (fine) {
        *ret = r;
        return 0;
    }
    coding_reader_free(r);
    return err_nomem(err);
}

/* One step into r->out. Members may follow each other (RFC 1952 2.2). */
static int step_gzip(coding_reader *r, const uint8_t **at, size_t *n, size_t *ret_n, shoal_err *err)
{
    z_stream *z = &r->z;
    if (!r->is_open && *n > 0) {
        if (inflateReset(z) != Z_OK) return err_nomem(err);
        r->is_open = true;
    }
    uInt given = *n > UINT32_MAX ? UINT32_MAX : (uInt)*n;
    z->next_in = (Bytef *)(uintptr_t)*at;
    z->avail_in = given;
    z->next_out = r->out;
    z->avail_out = PIECE_BYTES;
    int rc = inflate(z, Z_NO_FLUSH);
    *at += given - z->avail_in;
    *n -= given - z->avail_in;
    *ret_n = PIECE_BYTES - z->avail_out;
    if (rc == Z_STREAM_END) r->is_open = false;
    if (rc == Z_OK || rc == Z_STREAM_END || rc == Z_BUF_ERROR) return 0;
    if (rc == Z_MEM_ERROR) return err_nomem(err);
    return err_set(err, SHOAL_EFORMAT, "the body is no %s: %s", coding_name(r->c),
                   z->msg ? z->msg : "it is damaged");
}

static int step_zstd(coding_reader *r, const uint8_t **at, size_t *n, size_t *ret_n, shoal_err *err)
{
    ZSTD_inBuffer in = {*at, *n, 0};
    ZSTD_outBuffer out = {r->out, PIECE_BYTES, 0};
    if (*n > 0) r->is_open = true;
    size_t rc = ZSTD_decompressStream(r->zstd, &out, &in);
    *at += in.pos;
    *n -= in.pos;
    *ret_n = out.pos;
    if (rc == 0) r->is_open = false;
    if (!ZSTD_isError(rc)) return 0;
    if (ZSTD_getErrorCode(rc) == ZSTD_error_memory_allocation) return err_nomem(err);
    return err_set(err, SHOAL_EFORMAT, "the body is no zstd: %s", ZSTD_getErrorName(rc));
}

static int coding_reader_count(coding_reader *r, size_t n_in, size_t n_out, shoal_err *err)
{
    r->n_in += n_in;
    r->n_out += n_out;
    if (n_out > r->room)
        return err_set(err, SHOAL_ELIMIT, "the body is longer than it may be once it is unpacked");
    if (r->n_out > CODING_RATIO_FREE && r->n_out / CODING_RATIO_MAX > r->n_in)
        return err_set(err, SHOAL_ELIMIT, "the body unpacks to more than %zu times its length; send it plain",
                       CODING_RATIO_MAX);
    r->room -= n_out;
    loop_work_add(n_out);
    return 0;
}

int coding_reader_step(coding_reader *r, const uint8_t **bytes, size_t *n, size_t most_bytes,
                       coding_take take, void *user, shoal_err *err)
{
    for (size_t n_out = 0; n_out < most_bytes;) {
        size_t got = 0, before = *n;
        if (*n == 0 && !r->is_open) return 0;
        int rc = r->c == CODING_ZSTD ? step_zstd(r, bytes, n, &got, err) : step_gzip(r, bytes, n, &got, err);
        if (rc == 0) rc = coding_reader_count(r, before - *n, got, err);
        if (rc != 0) return rc;
        n_out += got;
        if (got > 0 && !take(user, r->out, got)) return 0;
        if (got < PIECE_BYTES && (*n == 0 || *n == before)) return 0;
    }
    return 1;
}

int coding_reader_add(coding_reader *r, const void *bytes, size_t n, coding_take take, void *user,
                      shoal_err *err)
{
    const uint8_t *at = bytes;
    return coding_reader_step(r, &at, &n, SIZE_MAX, take, user, err);
}

int coding_reader_end(const coding_reader *r, shoal_err *err)
{
    return r->is_open
               ? err_set(err, SHOAL_EFORMAT, "the body ends in the middle of its %s", coding_name(r->c))
               : 0;
}

void coding_reader_free(coding_reader *r)
{
    if (!r) return;
    if (r->c == CODING_GZIP || r->c == CODING_DEFLATE) inflateEnd(&r->z);
    ZSTD_freeDCtx(r->zstd);
    free(r);
}
