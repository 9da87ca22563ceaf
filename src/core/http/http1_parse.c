/* http1_parse.c: lines, fields, lengths and chunks of HTTP/1.1, each by its rule of RFC 9112 or 9110. */
#include "http/http1_parse.h"

#include <string.h>
#include <strings.h>

#include "base/utf8.h"
#include "http/http.h"

enum { METHOD_MAX = 32, CHUNK_LINE_BYTES = 256, CHUNK_SIZE_DIGITS = 12 };

static bool is_alnum(unsigned char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_tchar(unsigned char c)
{
    return is_alnum(c) || c == '-' || (c && strchr("!#$%&'*+.^_`|~", c));
}

bool http1_is_token(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!is_tchar((unsigned char)s[i])) return false;
    return n > 0;
}

bool http1_is_field_value(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)s[i];
        if ((c < 0x20 && c != '\t') || c == 0x7f) return false;
    }
    return true;
}

static bool is_target(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)s[i];
        if (c <= 0x20 || c >= 0x7f || c == '#') return false;
    }
    return n > 0;
}

static bool is_known_form(const char *method, size_t n_method, const char *target, size_t n)
{
    if (target[0] == '/') return true;
    if (n == 1 && target[0] == '*') return n_method == 7 && memcmp(method, "OPTIONS", 7) == 0;
    return (n > 7 && memcmp(target, "http://", 7) == 0) || (n > 8 && memcmp(target, "https://", 8) == 0);
}

static bool is_version(const char *s, size_t n)
{
    return n == 8 && memcmp(s, "HTTP/", 5) == 0 && s[5] >= '0' && s[5] <= '9' && s[6] == '.' && s[7] >= '0' &&
           s[7] <= '9';
}

/* RFC 9110, section 9.1: a method is a token; the longest that is registered has 17 bytes. */
static bool is_served_method(const char *s, size_t n)
{
    return n <= METHOD_MAX && !(n == 7 && memcmp(s, "CONNECT", 7) == 0);
}

int http1_parse_request_line(const char *line, size_t n, http1_request_line *ret, const char **ret_why)
{
    const char *end = line + n;
    const char *sp1 = memchr(line, ' ', n);
    const char *sp2 = sp1 ? memchr(sp1 + 1, ' ', (size_t)(end - sp1 - 1)) : NULL;
    *ret_why = "the request line is malformed";
    if (!sp2) return 400;
    size_t n_method = (size_t)(sp1 - line), n_target = (size_t)(sp2 - sp1 - 1),
           n_version = (size_t)(end - sp2 - 1);
    if (!http1_is_token(line, n_method) || !is_target(sp1 + 1, n_target) || !is_version(sp2 + 1, n_version))
        return 400;
    bool is_11 = memcmp(sp2 + 1, "HTTP/1.1", 8) == 0, is_10 = memcmp(sp2 + 1, "HTTP/1.0", 8) == 0;
    *ret_why = "only HTTP/1.0, HTTP/1.1 and HTTP/2 are spoken here";
    if (!is_11 && !is_10) return 505;
    *ret_why = "this method is not served here";
    if (!is_served_method(line, n_method)) return 501;
    *ret_why = "the request target is neither a path nor an http URL";
    if (!is_known_form(line, n_method, sp1 + 1, n_target)) return 400;
    *ret = (http1_request_line){line, sp1 + 1, n_method, n_target, is_11 ? 11 : 10};
    return 0;
}

static bool http1_parse_is_blank(char c)
{
    return c == ' ' || c == '\t';
}

int http1_parse_field(const char *line, size_t n, http1_field *ret, const char **ret_why)
{
    *ret_why = "folded header lines are not accepted";
    if (n && http1_parse_is_blank(line[0])) return 400;
    const char *colon = memchr(line, ':', n);
    *ret_why = "a header line is malformed";
    if (!colon || !http1_is_token(line, (size_t)(colon - line))) return 400;
    const char *value = colon + 1, *end = line + n;
    *ret_why = "a header value contains a control character";
    if (!http1_is_field_value(value, (size_t)(end - value))) return 400;
    while (value < end && http1_parse_is_blank(*value)) value++;
    while (value < end && http1_parse_is_blank(end[-1])) end--;
    *ret = (http1_field){line, value, (size_t)(colon - line), (size_t)(end - value)};
    return 0;
}

bool http1_lists(const char *list, const char *word)
{
    size_t n_word = strlen(word);
    while (*list) {
        list += strspn(list, ", \t");
        size_t n = strcspn(list, ",");
        const char *next = list + n;
        while (n && http1_parse_is_blank(list[n - 1])) n--;
        if (n == n_word && strncasecmp(list, word, n) == 0) return true;
        list = next;
    }
    return false;
}

bool http1_is_host(const char *s)
{
    if (*s == '[') {
        size_t n = strspn(s + 1, "0123456789abcdefABCDEF:.");
        if (n == 0 || s[1 + n] != ']') return false;
        s += n + 2;
    } else {
        while (is_alnum((unsigned char)*s) || (*s && strchr("-._~%!$&'()*+;=", *s))) s++;
    }
    if (*s == ':') s += 1 + strspn(s + 1, "0123456789");
    return *s == '\0';
}

bool http1_parse_length(const char *s, uint64_t *ret)
{
    size_t n = strlen(s);
    if (n == 0 || n > 18 || strspn(s, "0123456789") != n) return false;
    uint64_t v = 0;
    for (size_t i = 0; i < n; i++) v = v * 10 + (uint64_t)(s[i] - '0');
    *ret = v;
    return true;
}

http1_line http1_next_line(const char *data, size_t n, size_t *ret_len, size_t *ret_used)
{
    const char *lf = memchr(data, '\n', n);
    const char *cr = memchr(data, '\r', lf ? (size_t)(lf - data) : n);
    if (!lf) return cr && cr != data + n - 1 ? HTTP1_LINE_BAD : HTTP1_LINE_PARTIAL;
    if (!cr || cr + 1 != lf) return HTTP1_LINE_BAD;
    *ret_len = (size_t)(cr - data);
    *ret_used = *ret_len + 2;
    return HTTP1_LINE;
}

/* chunk-size [ BWS ";" chunk-ext ]: extensions are checked for control characters and ignored. */
static bool parse_chunk_size(const char *line, size_t n, uint64_t *ret)
{
    size_t i = 0;
    uint64_t v = 0;
    for (; i < n && hex_digit(line[i]) >= 0; i++) {
        if (i == CHUNK_SIZE_DIGITS) return false;
        v = v * 16 + (uint64_t)hex_digit(line[i]);
    }
    if (i == 0 || (i < n && line[i] != ';')) return false;
    *ret = v;
    return http1_is_field_value(line + i, n - i);
}

static int take_size(http1_chunks *c, const char *line, size_t n, size_t max_body, const buf *body,
                     const char **ret_why)
{
    if (!parse_chunk_size(line, n, &c->left)) {
        *ret_why = "a chunk size is malformed";
        return 400;
    }
    if (c->left > max_body - body->len) {
        *ret_why = HTTP_BODY_TOO_LARGE;
        return 413;
    }
    c->state = c->left ? CHUNK_DATA : CHUNK_TRAILERS;
    return 0;
}

static int take_line(http1_chunks *c, const char *line, size_t n, size_t max_body, size_t max_trailers,
                     const buf *body, const char **ret_why)
{
    if (c->state == CHUNK_SIZE) return take_size(c, line, n, max_body, body, ret_why);
    if (c->state == CHUNK_DATA_END) {
        c->state = CHUNK_SIZE;
        *ret_why = "a chunk is longer than its size";
        return n == 0 ? 0 : 400;
    }
    if (n == 0) {
        c->state = CHUNK_DONE;
        return 0;
    }
    c->trailer_bytes += n + 2;
    if (c->trailer_bytes > max_trailers) {
        *ret_why = "the trailers are too large";
        return 431;
    }
    http1_field trailer;
    return http1_parse_field(line, n, &trailer, ret_why);
}

static size_t line_limit(const http1_chunks *c, size_t max_trailers)
{
    if (c->state == CHUNK_DATA_END) return 2;
    return c->state == CHUNK_SIZE ? CHUNK_LINE_BYTES : max_trailers;
}

int http1_chunks_feed(http1_chunks *c, const char *data, size_t n, size_t max_body, size_t max_trailers,
                      buf *body, size_t *ret_used, const char **ret_why)
{
    size_t at = 0;
    int rc = 0;
    while (rc == 0 && at < n && c->state != CHUNK_DONE) {
        if (c->state == CHUNK_DATA) {
            size_t take = c->left < n - at ? (size_t)c->left : n - at;
            buf_append(body, data + at, take);
            at += take;
            c->left -= take;
            if (c->left == 0) c->state = CHUNK_DATA_END;
            continue;
        }
        size_t len = 0, used = 0;
        http1_line l = http1_next_line(data + at, n - at, &len, &used);
        size_t limit = line_limit(c, max_trailers);
        if (l == HTTP1_LINE_BAD || (l == HTTP1_LINE_PARTIAL ? n - at : len) > limit) {
            *ret_why = "a line of the chunked body is malformed or too long";
            rc = 400;
        } else if (l == HTTP1_LINE_PARTIAL) {
            break;
        } else {
            rc = take_line(c, data + at, len, max_body, max_trailers, body, ret_why);
            at += used;
        }
    }
    *ret_used = at;
    return rc;
}
