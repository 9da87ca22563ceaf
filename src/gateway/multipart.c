/* multipart.c: the parts of a form; see multipart.h. One pass over the body with a cursor that never goes
 * back. */
#define _GNU_SOURCE
#include "gateway/multipart.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

typedef struct cursor {
    const char *at, *end;
} cursor;

static int malformed(api_error *e, const char *why)
{
    return api_error_bad(e, NULL, "the multipart body is malformed: %s", why);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* RFC 9110: tchar. */
static bool is_token_char(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
           (c && strchr("!#$%&'*+-.^_`|~", c));
}

static void skip_blanks(cursor *c)
{
    while (c->at < c->end && is_blank(*c->at)) c->at++;
}

static bool starts_with(const cursor *c, const char *s, size_t n)
{
    return (size_t)(c->end - c->at) >= n && memcmp(c->at, s, n) == 0;
}

/* ---- parameters: ; name=token, ; name="quoted" -------------------------------------------------- */

typedef struct parameter {
    const char *name;
    size_t n_name;
    char value[256]; /* cut when longer */
    bool cut;
} parameter;

static void put(parameter *p, size_t *n, char ch)
{
    p->cut = *n + 1 >= sizeof p->value;
    if (p->cut) return;
    p->value[(*n)++] = ch;
}

/* Browsers write a quote as %22, others as \" (RFC 7578 section 4.2). */
static bool read_quoted(cursor *c, parameter *p)
{
    size_t n = 0;
    for (c->at++; c->at < c->end && *c->at != '"'; c->at++) {
        if (*c->at == '\\' && c->at + 1 < c->end && (c->at[1] == '"' || c->at[1] == '\\')) c->at++;
        if ((unsigned char)*c->at < 0x20 || *c->at == 0x7F) return false;
        put(p, &n, *c->at);
    }
    p->value[n] = '\0';
    if (c->at == c->end) return false;
    c->at++;
    return true;
}

/* The next parameter; false when there is none, or *ret_bad. */
static bool next_parameter(cursor *c, parameter *p, bool *ret_bad)
{
    size_t n = 0;
    skip_blanks(c);
    *ret_bad = false;
    if (c->at == c->end) return false;
    *ret_bad = true;
    if (*c->at++ != ';') return false;
    skip_blanks(c);
    *p = (parameter){.name = c->at};
    while (c->at < c->end && is_token_char(*c->at)) c->at++;
    p->n_name = (size_t)(c->at - p->name);
    if (p->n_name == 0 || c->at == c->end || *c->at++ != '=') return false;
    if (c->at < c->end && *c->at == '"') {
        if (!read_quoted(c, p)) return false;
    } else {
        for (; c->at < c->end && is_token_char(*c->at); c->at++) put(p, &n, *c->at);
        p->value[n] = '\0';
        if (n == 0) return false;
    }
    *ret_bad = false;
    return true;
}

static bool is_named(const parameter *p, const char *name)
{
    return p->n_name == strlen(name) && strncasecmp(p->name, name, p->n_name) == 0;
}

/* ---- the boundary ------------------------------------------------------------------------------- */

static const char FORM[] = "multipart/form-data";

bool multipart_is_form(const char *content_type)
{
    size_t n = sizeof FORM - 1;
    return content_type && strncasecmp(content_type, FORM, n) == 0 &&
           (content_type[n] == '\0' || content_type[n] == ';' || is_blank(content_type[n]));
}

/* RFC 2046: what a boundary may hold. */
static bool is_boundary(const char *s, size_t n)
{
    if (n == 0 || n > MULTIPART_BOUNDARY_MAX || s[n - 1] == ' ') return false;
    for (size_t i = 0; i < n; i++) {
        bool letter = (s[i] >= '0' && s[i] <= '9') || ((s[i] | 0x20) >= 'a' && (s[i] | 0x20) <= 'z');
        if (!letter && !strchr("'()+_,-./:=? ", s[i])) return false;
    }
    return true;
}

/* "\r\n--BOUNDARY" into out[76]. */
static int find_boundary(const char *content_type, char *out, size_t *ret_n, api_error *e)
{
    cursor c = {content_type + sizeof FORM - 1, content_type + strlen(content_type)};
    parameter p;
    bool bad, found = false;
    while (next_parameter(&c, &p, &bad)) {
        if (!is_named(&p, "boundary")) continue;
        if (found || p.cut || !is_boundary(p.value, strlen(p.value))) bad = true;
        if (bad) break;
        found = true;
        *ret_n = 4 + strlen(p.value);
        memcpy(out, "\r\n--", 4);
        memcpy(out + 4, p.value, *ret_n - 4);
    }
    if (found && !bad) return 0;
    return api_error_bad(e, NULL, "the content type multipart/form-data needs one well-formed boundary");
}

/* ---- parts -------------------------------------------------------------------------------------- */

static int read_disposition(multipart_part *p, cursor c, api_error *e)
{
    static const char form_data[] = "form-data";
    parameter q;
    bool bad, named = false;
    skip_blanks(&c);
    if ((size_t)(c.end - c.at) < sizeof form_data - 1 ||
        strncasecmp(c.at, form_data, sizeof form_data - 1) != 0)
        return malformed(e, "a part's Content-Disposition is not form-data");
    c.at += sizeof form_data - 1;
    while (next_parameter(&c, &q, &bad)) {
        if (is_named(&q, "name")) {
            if (named || q.cut || strlen(q.value) >= sizeof p->name || !*q.value)
                return malformed(e, "a part's name is given twice, empty or too long");
            named = true;
            memcpy(p->name, q.value, strlen(q.value) + 1);
        } else if (is_named(&q, "filename")) {
            p->has_filename = true;
            snprintf(p->filename, sizeof p->filename, "%.*s", (int)sizeof p->filename - 1, q.value);
        }
    }
    if (bad) return malformed(e, "a part's Content-Disposition cannot be read");
    return named ? 0 : malformed(e, "a part has no name");
}

/* One header line, without its CRLF. */
static int read_header(multipart_part *p, cursor line, bool *has_disposition, api_error *e)
{
    const char *name = line.at;
    while (line.at < line.end && is_token_char(*line.at)) line.at++;
    size_t n = (size_t)(line.at - name);
    if (n == 0 || line.at == line.end || *line.at != ':')
        return malformed(e, "a part's header line has no name");
    line.at++;
    for (const char *s = line.at; s < line.end; s++)
        if (((unsigned char)*s < 0x20 && *s != '\t') || *s == 0x7F)
            return malformed(e, "a control character in a part's header");
    if (n == 19 && strncasecmp(name, "content-disposition", n) == 0) {
        if (*has_disposition) return malformed(e, "a part has two Content-Dispositions");
        *has_disposition = true;
        return read_disposition(p, line, e);
    }
    if (n == 25 && strncasecmp(name, "content-transfer-encoding", n) == 0) {
        cursor v = line;
        skip_blanks(&v);
        size_t len = (size_t)(v.end - v.at);
        if (!(len == 6 && strncasecmp(v.at, "binary", 6) == 0) &&
            !(len == 4 && (strncasecmp(v.at, "8bit", 4) == 0 || strncasecmp(v.at, "7bit", 4) == 0)))
            return malformed(e, "transfer encodings are not understood: send the bytes as they are");
    }
    return 0;
}

static int read_head(multipart_part *p, cursor *c, api_error *e)
{
    bool has_disposition = false;
    const char *begin = c->at;
    for (;;) {
        const char *cr = memmem(c->at, (size_t)(c->end - c->at), "\r\n", 2);
        if (!cr || cr - begin > MULTIPART_HEAD_MAX)
            return malformed(e, "a part's headers have no end, or are too long");
        cursor line = {c->at, cr};
        c->at = cr + 2;
        if (line.at == line.end) break;
        int rc = read_header(p, line, &has_disposition, e);
        if (rc != 0) return rc;
    }
    return has_disposition ? 0 : malformed(e, "a part has no Content-Disposition");
}

/* Behind a boundary: "--" is the end, CRLF (and blanks before it) another part. */
static int read_boundary_end(cursor *c, bool *ret_last, api_error *e)
{
    *ret_last = starts_with(c, "--", 2);
    if (*ret_last) return 0;
    skip_blanks(c);
    if (!starts_with(c, "\r\n", 2)) return malformed(e, "a boundary does not end its line");
    c->at += 2;
    return 0;
}

/* To behind the first boundary, which may begin the body without a CRLF in front. */
static int find_first(cursor *c, const char *boundary, size_t n, api_error *e)
{
    if (starts_with(c, boundary + 2, n - 2)) {
        c->at += n - 2;
        return 0;
    }
    const char *at = memmem(c->at, (size_t)(c->end - c->at), boundary, n);
    if (!at) return malformed(e, "its boundary does not occur in it");
    c->at = at + n;
    return 0;
}

static int read_part(multipart *m, cursor *c, const char *boundary, size_t n, api_error *e)
{
    if (m->n == MULTIPART_PARTS_MAX)
        return api_error_bad(e, NULL, "the form has more than %d parts", MULTIPART_PARTS_MAX);
    multipart_part *p = &m->parts[m->n];
    *p = (multipart_part){0};
    int rc = read_head(p, c, e);
    if (rc != 0) return rc;
    /* An empty part: the boundary's CRLF is the one that ended the headers. */
    const char *from = c->at - 2, *end = memmem(from, (size_t)(c->end - from), boundary, n);
    if (!end) return malformed(e, "the last part has no end");
    p->data = c->at;
    p->len = end > c->at ? (size_t)(end - c->at) : 0;
    c->at = end + n;
    m->n++;
    return 0;
}

int multipart_parse(multipart *ret, const char *content_type, const char *body, size_t len, api_error *e)
{
    char boundary[4 + MULTIPART_BOUNDARY_MAX];
    size_t n = 0;
    bool last = false;
    cursor c = {body, body + len};
    ret->n = 0;
    if (!multipart_is_form(content_type))
        return api_error_set(e, 415, "invalid_request_error", "unsupported_media_type", NULL,
                             "the content type must be multipart/form-data");
    int rc = find_boundary(content_type, boundary, &n, e);
    if (rc == 0) rc = find_first(&c, boundary, n, e);
    if (rc == 0) rc = read_boundary_end(&c, &last, e);
    while (rc == 0 && !last) {
        rc = read_part(ret, &c, boundary, n, e);
        if (rc == 0) rc = read_boundary_end(&c, &last, e);
    }
    return rc;
}

const multipart_part *multipart_find(const multipart *m, const char *name)
{
    for (size_t i = 0; i < m->n; i++)
        if (strcmp(m->parts[i].name, name) == 0) return &m->parts[i];
    return NULL;
}
