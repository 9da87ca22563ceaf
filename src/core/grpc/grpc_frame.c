/* grpc_frame.c: gRPC's five-byte frames, timeouts and percent-encoded messages. */
#include "grpc/grpc_frame.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/loop_work.h"
#include "base/utf8.h"
#include "grpc/grpc.h"
#include "grpc/grpc_gzip.h"

int grpc_reader_feed(grpc_reader *r, const void *bytes, size_t n)
{
    buf_consume(&r->in, r->at);
    r->at = 0;
    return buf_append(&r->in, bytes, n);
}

static int unpack(grpc_reader *r, const uint8_t **msg, size_t *n)
{
    buf_clear(&r->plain);
    int rc = grpc_gunzip(&r->plain, *msg, *n, r->max_message);
    *msg = (const uint8_t *)(r->plain.data ? r->plain.data : "");
    *n = r->plain.len;
    return rc == 0 ? 1 : rc;
}

static size_t length_of(const uint8_t head[GRPC_FRAME_HEAD])
{
    return (size_t)head[1] << 24 | (size_t)head[2] << 16 | (size_t)head[3] << 8 | head[4];
}

/* A frame that will be refused is not waited for. */
bool grpc_reader_has_next(const grpc_reader *r)
{
    const uint8_t *p = (const uint8_t *)r->in.data + r->at;
    size_t left = r->in.len - r->at;
    if (left == 0) return false;
    if (p[0] > 1 || (p[0] == 1 && !r->takes_gzip)) return true;
    if (left < GRPC_FRAME_HEAD) return false;
    return length_of(p) > r->max_message || length_of(p) <= left - GRPC_FRAME_HEAD;
}

int grpc_reader_next(grpc_reader *r, const uint8_t **ret_msg, size_t *ret_n)
{
    size_t left = r->in.len - r->at;
    if (left == 0) return 0;
    const uint8_t *p = (const uint8_t *)r->in.data + r->at;
    if (p[0] > 1) return SHOAL_EPROTOCOL;
    if (p[0] == 1 && !r->takes_gzip) return SHOAL_EUNSUPPORTED;
    if (left < GRPC_FRAME_HEAD) return 0;
    size_t n = length_of(p);
    if (n > r->max_message) return SHOAL_ELIMIT;
    if (n > left - GRPC_FRAME_HEAD) return 0;
    loop_work_add(n);
    *ret_msg = p + GRPC_FRAME_HEAD;
    *ret_n = n;
    r->at += GRPC_FRAME_HEAD + n;
    return p[0] ? unpack(r, ret_msg, ret_n) : 1;
}

static const struct {
    int rc;
    grpc_status status;
    const char *why;
} WRONG_BODIES[] = {
    {1, GRPC_UNIMPLEMENTED, "one request message is expected, not a stream"},
    {SHOAL_EUNSUPPORTED, GRPC_INTERNAL, GRPC_NO_ENCODING},
    {SHOAL_ENOMEM, GRPC_RESOURCE_EXHAUSTED, "out of memory"},
    {SHOAL_ELIMIT, GRPC_RESOURCE_EXHAUSTED, "the message is too large"},
};

bool grpc_reader_only(grpc_reader *r, const uint8_t **ret_msg, size_t *ret_n, int *ret_status,
                      const char **ret_why)
{
    int rc = grpc_reader_next(r, ret_msg, ret_n);
    if (rc == 1 && grpc_reader_is_empty(r)) return true;
    *ret_status = GRPC_INTERNAL;
    *ret_why = "the message frame is malformed or cut short";
    for (size_t i = 0; i < sizeof WRONG_BODIES / sizeof *WRONG_BODIES; i++)
        if (WRONG_BODIES[i].rc == rc) {
            *ret_status = (int)WRONG_BODIES[i].status;
            *ret_why = WRONG_BODIES[i].why;
        }
    return false;
}

bool grpc_reader_is_empty(const grpc_reader *r)
{
    return r->at == r->in.len;
}

void grpc_reader_done(grpc_reader *r)
{
    buf_done(&r->in);
    buf_done(&r->plain);
    r->at = 0;
}

void grpc_frame_head(uint8_t ret[GRPC_FRAME_HEAD], size_t n, bool compressed)
{
    ret[0] = compressed;
    ret[1] = (uint8_t)(n >> 24);
    ret[2] = (uint8_t)(n >> 16);
    ret[3] = (uint8_t)(n >> 8);
    ret[4] = (uint8_t)n;
}

static const struct {
    char unit;
    uint64_t ns;
} units[] = {{'n', 1},          {'u', 1000},           {'m', 1000000},
             {'S', 1000000000}, {'M', 60000000000ull}, {'H', 3600000000000ull}};

bool grpc_timeout_parse(const char *s, uint64_t *ret_ns)
{
    size_t n = strspn(s, "0123456789");
    if (n == 0 || n > 8 || !s[n] || s[n + 1]) return false;
    uint64_t v = strtoull(s, NULL, 10);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (units[i].unit == s[n]) {
            *ret_ns = v && units[i].ns > UINT64_MAX / v ? UINT64_MAX : v * units[i].ns;
            return true;
        }
    return false;
}

void grpc_timeout_format(uint64_t ns, char ret[16])
{
    size_t i = 0;
    /* The finest unit in which eight digits are enough; rounded up, so that it is never early. */
    while (i + 1 < sizeof units / sizeof *units && ns / units[i].ns >= 99999999) i++;
    uint64_t v = ns / units[i].ns + (ns % units[i].ns != 0);
    snprintf(ret, 16, "%u%c", (unsigned)(v > 99999999 ? 99999999 : v), units[i].unit);
}

void grpc_message_encode(buf *out, const char *s)
{
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c >= 0x20 && c < 0x7f && c != '%')
            buf_putc(out, *s);
        else
            buf_printf(out, "%%%02X", c);
    }
}

void grpc_message_decode(buf *out, const char *s)
{
    for (; *s; s++) {
        int hi = *s == '%' ? hex_digit(s[1]) : -1, lo = hi >= 0 ? hex_digit(s[2]) : -1;
        if (lo < 0 || (hi == 0 && lo == 0)) {
            buf_putc(out, *s);
            continue;
        }
        buf_putc(out, (char)(hi * 16 + lo));
        s += 2;
    }
}

bool grpc_is_content_type(const char *s)
{
    static const char type[] = "application/grpc";
    if (strncasecmp(s, type, sizeof type - 1) != 0) return false;
    s += sizeof type - 1;
    if (strncasecmp(s, "+proto", 6) == 0) s += 6;
    return *s == '\0' || *s == ';';
}

/* ---- status ---------------------------------------------------------------------------------- */

const char *grpc_status_name(int status)
{
    switch (status) {
#define STATUS_NAME(e, n) \
    case n: return &#e[5]; /* without GRPC_ */
        GRPC_STATUS_TABLE(STATUS_NAME)
#undef STATUS_NAME
    default: return "UNKNOWN";
    }
}

static const struct {
    int code;
    grpc_status status;
} both_ways[] = {
    {SHOAL_OK, GRPC_OK},
    {SHOAL_EINVALID, GRPC_INVALID_ARGUMENT},
    {SHOAL_ENOTFOUND, GRPC_NOT_FOUND},
    {SHOAL_EUNSUPPORTED, GRPC_UNIMPLEMENTED},
    {SHOAL_ELIMIT, GRPC_OUT_OF_RANGE},
    {SHOAL_EFULL, GRPC_RESOURCE_EXHAUSTED},
    {SHOAL_ECANCELLED, GRPC_CANCELLED},
    {SHOAL_EDEADLINE, GRPC_DEADLINE_EXCEEDED},
    {SHOAL_EDIGEST, GRPC_FAILED_PRECONDITION},
    {SHOAL_EUNAVAILABLE, GRPC_UNAVAILABLE},
    {SHOAL_EAUTH, GRPC_PERMISSION_DENIED},
    {SHOAL_EPROTOCOL, GRPC_DATA_LOSS},
    {SHOAL_EINTERNAL, GRPC_INTERNAL},
    /* From here on one way only: the first row of each column decides. */
    {SHOAL_ENOMEM, GRPC_RESOURCE_EXHAUSTED},
    {SHOAL_EFORMAT, GRPC_INVALID_ARGUMENT},
    {SHOAL_EIO, GRPC_INTERNAL},
    {SHOAL_EAUTH, GRPC_UNAUTHENTICATED},
    {SHOAL_EUNAVAILABLE, GRPC_ABORTED},
};

grpc_status grpc_status_from_err(int shoal_code)
{
    for (size_t i = 0; i < sizeof both_ways / sizeof *both_ways; i++)
        if (both_ways[i].code == shoal_code) return both_ways[i].status;
    return GRPC_UNKNOWN;
}

int grpc_status_to_err(int status)
{
    for (size_t i = 0; i < sizeof both_ways / sizeof *both_ways; i++)
        if (both_ways[i].status == (grpc_status)status) return both_ways[i].code;
    return SHOAL_EINTERNAL;
}
