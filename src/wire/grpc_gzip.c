/* grpc_gzip.c: zlib over one message. */
#include "wire/grpc_gzip.h"

#include <string.h>
#include <strings.h>
#include <zlib.h>

#include "base/err.h"

enum { GZIP_WINDOW = 15 + 16, PIECE_BYTES = 16 << 10, MEMORY_LEVEL = 8, FAST = 1 };

/* A bomb is found out when it has given one byte more than it may. */
int grpc_gunzip(buf *out, const void *bytes, size_t n, size_t max)
{
    z_stream z = {.next_in = (Bytef *)bytes, .avail_in = (uInt)n};
    char piece[PIECE_BYTES];
    size_t taken = 0;
    int rc = n <= UINT32_MAX ? 0 : SHOAL_ELIMIT, state = Z_OK;
    if (rc == 0 && inflateInit2(&z, GZIP_WINDOW) != Z_OK) rc = SHOAL_ENOMEM;
    if (rc != 0) return rc;
    while (rc == 0 && state == Z_OK) {
        z.next_out = (Bytef *)piece;
        z.avail_out = sizeof piece;
        state = inflate(&z, Z_NO_FLUSH);
        size_t got = sizeof piece - z.avail_out;
        taken += got;
        if (state == Z_MEM_ERROR)
            rc = SHOAL_ENOMEM;
        else if ((state != Z_OK && state != Z_STREAM_END) || (state == Z_OK && z.avail_out && !z.avail_in))
            rc = SHOAL_EPROTOCOL;
        else if (taken > max)
            rc = SHOAL_ELIMIT;
        else
            rc = buf_append(out, piece, got);
    }
    if (rc == 0 && z.avail_in) rc = SHOAL_EPROTOCOL;
    inflateEnd(&z);
    return rc;
}

int grpc_gzip(buf *out, const void *bytes, size_t n)
{
    z_stream z = {.next_in = (Bytef *)bytes, .avail_in = (uInt)n};
    if (n > UINT32_MAX || deflateInit2(&z, FAST, Z_DEFLATED, GZIP_WINDOW, MEMORY_LEVEL, Z_DEFAULT_STRATEGY))
        return SHOAL_ENOMEM;
    size_t most = deflateBound(&z, n);
    int rc = buf_reserve(out, most);
    if (rc == 0) {
        z.next_out = (Bytef *)out->data + out->len;
        z.avail_out = (uInt)most;
        rc = deflate(&z, Z_FINISH) == Z_STREAM_END ? 0 : SHOAL_ENOMEM;
        if (rc == 0) out->len += most - z.avail_out;
    }
    deflateEnd(&z);
    return rc;
}

bool grpc_coding_is_in(const char *list, const char *coding)
{
    size_t n = strlen(coding);
    for (const char *s = list ? list : ""; *s;) {
        s += strspn(s, ", \t");
        size_t len = strcspn(s, ", \t");
        if (len == n && strncasecmp(s, coding, n) == 0) return true;
        s += len;
    }
    return false;
}
