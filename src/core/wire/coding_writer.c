/* coding_writer.c: bytes as gzip or zstd.
 *
 * Answers are packed on the loop, so what counts is the time; a level more would save a few bytes in a
 * hundred. A stream keeps its coder between events: their windows are small, since a token's event repeats
 * what the last one said. */
#include "wire/coding.h"

#include <stdlib.h>
#include <zlib.h>
#include <zstd.h>

#include "base/loop_work.h"

enum { LEVEL = 1, GZIP_WRAP = 16, WINDOW_BITS_MIN = 9, STREAM_WINDOW_BITS = 12, STREAM_MEMORY_LEVEL = 5 };
enum { STREAM_WINDOW_LOG = 12, STREAM_TABLE_LOG = 12 };

struct coding_writer {
    coding c;
    z_stream z;
    ZSTD_CCtx *zstd;
};

static void end_at(buf *out, size_t len)
{
    out->len = len;
    out->data[len] = '\0';
}

/* ---- gzip ---------------------------------------------------------------------------------------- */

/* Room for what deflate says that it may need, so that one call is enough. */
static int deflate_all(z_stream *z, const void *bytes, size_t n, int flush, buf *out)
{
    z->next_in = (Bytef *)(uintptr_t)bytes;
    z->avail_in = (uInt)n;
    for (;;) {
        if (buf_reserve(out, 256 + z->avail_in / 2) != 0) return SHOAL_ENOMEM;
        size_t room = out->cap - out->len - 1;
        z->next_out = (Bytef *)out->data + out->len;
        z->avail_out = room > UINT32_MAX ? UINT32_MAX : (uInt)room;
        uInt before = z->avail_out;
        int rc = deflate(z, flush);
        end_at(out, out->len + before - z->avail_out);
        if (rc == Z_STREAM_END || (rc == Z_BUF_ERROR && z->avail_in == 0)) return 0;
        if (rc != Z_OK) return SHOAL_ENOMEM;
        if (z->avail_out > 0 && flush != Z_FINISH) return 0;
    }
}

/* The window that so much fits into: a small answer need not pay for 32 KiB of it. */
static int window_bits(size_t n)
{
    int bits = WINDOW_BITS_MIN;
    while (bits < MAX_WBITS && ((size_t)1 << bits) < n) bits++;
    return bits;
}

static int pack_gzip(const void *bytes, size_t n, buf *out)
{
    z_stream z = {0};
    int bits = window_bits(n), memory = bits - 7 < 8 ? bits - 7 : 8;
    if (n > UINT32_MAX ||
        deflateInit2(&z, LEVEL, Z_DEFLATED, bits + GZIP_WRAP, memory, Z_DEFAULT_STRATEGY) != Z_OK)
        return SHOAL_ENOMEM;
    int rc = deflate_all(&z, bytes, n, Z_FINISH, out);
    deflateEnd(&z);
    return rc;
}

/* ---- zstd ---------------------------------------------------------------------------------------- */

static int pack_zstd(const void *bytes, size_t n, buf *out)
{
    size_t most = ZSTD_compressBound(n);
    if (buf_reserve(out, most) != 0) return SHOAL_ENOMEM;
    size_t got = ZSTD_compress(out->data + out->len, most, bytes, n, LEVEL);
    if (ZSTD_isError(got)) return SHOAL_ENOMEM;
    end_at(out, out->len + got);
    return 0;
}

static int zstd_all(ZSTD_CCtx *z, const void *bytes, size_t n, ZSTD_EndDirective how, buf *out)
{
    ZSTD_inBuffer in = {bytes, n, 0};
    for (size_t left = 1; left > 0;) {
        if (buf_reserve(out, 256 + (n - in.pos) / 2) != 0) return SHOAL_ENOMEM;
        ZSTD_outBuffer to = {out->data + out->len, out->cap - out->len - 1, 0};
        left = ZSTD_compressStream2(z, &to, &in, how);
        if (ZSTD_isError(left)) return SHOAL_ENOMEM;
        end_at(out, out->len + to.pos);
    }
    return 0;
}

/* ---- both ---------------------------------------------------------------------------------------- */

int coding_pack(coding c, const void *bytes, size_t n, buf *out)
{
    loop_work_add(n);
    int rc = c == CODING_GZIP ? pack_gzip(bytes, n, out) : pack_zstd(bytes, n, out);
    if (rc != 0) out->failed = true;
    return rc;
}

static bool open_zstd(coding_writer *w)
{
    w->zstd = ZSTD_createCCtx();
    return w->zstd && !ZSTD_isError(ZSTD_CCtx_setParameter(w->zstd, ZSTD_c_compressionLevel, LEVEL)) &&
           !ZSTD_isError(ZSTD_CCtx_setParameter(w->zstd, ZSTD_c_windowLog, STREAM_WINDOW_LOG)) &&
           !ZSTD_isError(ZSTD_CCtx_setParameter(w->zstd, ZSTD_c_hashLog, STREAM_TABLE_LOG)) &&
           !ZSTD_isError(ZSTD_CCtx_setParameter(w->zstd, ZSTD_c_chainLog, STREAM_TABLE_LOG));
}

int coding_writer_new(coding_writer **ret, coding c, shoal_err *err)
{
    coding_writer *w = calloc(1, sizeof *w);
    if (!w) return err_nomem(err);
    bool fine = c == CODING_ZSTD ? open_zstd(w)
                                 : deflateInit2(&w->z, LEVEL, Z_DEFLATED, STREAM_WINDOW_BITS + GZIP_WRAP,
                                                STREAM_MEMORY_LEVEL, Z_DEFAULT_STRATEGY) == Z_OK;
    w->c = fine || c == CODING_ZSTD ? c : CODING_NONE;
    if (fine) {
        *ret = w;
        return 0;
    }
    coding_writer_free(w);
    return err_nomem(err);
}

int coding_writer_add(coding_writer *w, const void *bytes, size_t n, bool last, buf *out)
{
    loop_work_add(n);
    int rc = n > UINT32_MAX        ? SHOAL_ENOMEM
             : w->c == CODING_ZSTD ? zstd_all(w->zstd, bytes, n, last ? ZSTD_e_end : ZSTD_e_flush, out)
                                   : deflate_all(&w->z, bytes, n, last ? Z_FINISH : Z_SYNC_FLUSH, out);
    if (rc != 0) out->failed = true;
    return rc;
}

void coding_writer_free(coding_writer *w)
{
    if (!w) return;
    if (w->c == CODING_GZIP) deflateEnd(&w->z);
    ZSTD_freeCCtx(w->zstd);
    free(w);
}
