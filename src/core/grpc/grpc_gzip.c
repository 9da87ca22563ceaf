/* grpc_gzip.c: coding.h over one message. */
#include "grpc/grpc_gzip.h"

#include <string.h>
#include <strings.h>

#include "wire/coding.h"

static bool grpc_gzip_take(void *user, const uint8_t *bytes, size_t n)
{
    buf *out = user;
    return buf_append(out, bytes, n) == 0;
}

int grpc_gunzip(buf *out, const void *bytes, size_t n, size_t max)
{
    coding_reader *r;
    int rc = coding_reader_new(&r, CODING_GZIP, max, NULL);
    if (rc != 0) return rc;
    rc = coding_reader_add(r, bytes, n, grpc_gzip_take, out, NULL);
    if (rc == 0) rc = out->failed ? SHOAL_ENOMEM : coding_reader_end(r, NULL);
    coding_reader_free(r);
    return rc == SHOAL_EFORMAT ? SHOAL_EPROTOCOL : rc;
}

int grpc_gzip(buf *out, const void *bytes, size_t n)
{
    return coding_pack(CODING_GZIP, bytes, n, out);
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
