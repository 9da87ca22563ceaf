/* multipart.c: the parts of a form; see multipart.h. One pass over each piece; between pieces only a part's
 * headers, and how much of a boundary was seen, are kept. */
#define _GNU_SOURCE
#include "messages/multipart.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/loop_work.h"

typedef struct cursor {
    const char *at, *end;
} cursor;

static int malformed(api_error *e, const char *why)
{
    return api_error_bad(e, NULL, "the multipart body is malformed: %s", why);
}

static bool multipart_is_blank(char c)
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
    while (c->at < c->end && multipart_is_blank(*c->at)) c->at++;
}

/* ---- parameters: ; name=token, ; name="quoted" -------------------------------------------------- */

typedef struct parameter {
    const char *name;
    size_t n_name;
    char value[256]; /* cut when longer */
    bool cut;
} parameter;

static void multipart_put(parameter *p, size_t *n, char ch)
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
        multipart_put(p, &n, *c->at);
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
        for (; c->at < c->end && is_token_char(*c->at); c->at++) multipart_put(p, &n, *c->at);
        p->value[n] = '\0';
        if (n == 0) return false;
    }
    *ret_bad = false;
    return true;
}

static bool multipart_is_named(const parameter *p, const char *name)
{
    return p->n_name == strlen(name) && strncasecmp(p->name, name, p->n_name) == 0;
}

/* ---- the boundary ------------------------------------------------------------------------------- */

static const char FORM[] = "multipart/form-data";

bool multipart_is_form(const char *content_type)
{
    size_t n = sizeof FORM - 1;
    return content_type && strncasecmp(content_type, FORM, n) == 0 &&
           (content_type[n] == '\0' || content_type[n] == ';' || multipart_is_blank(content_type[n]));
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
        if (!multipart_is_named(&p, "boundary")) continue;
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
        if (multipart_is_named(&q, "name")) {
            if (named || q.cut || strlen(q.value) >= sizeof p->name || !*q.value)
                return malformed(e, "a part's name is given twice, empty or too long");
            named = true;
            memcpy(p->name, q.value, strlen(q.value) + 1);
        } else if (multipart_is_named(&q, "filename")) {
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

/* Lines of headers, the empty one at their end included. */
static int multipart_read_head(multipart_part *p, cursor c, api_error *e)
{
    bool has_disposition = false;
    for (;;) {
        const char *cr = memmem(c.at, (size_t)(c.end - c.at), "\r\n", 2);
        cursor line = {c.at, cr};
        c.at = cr + 2;
        if (line.at == line.end) break;
        int rc = read_header(p, line, &has_disposition, e);
        if (rc != 0) return rc;
    }
    return has_disposition ? 0 : malformed(e, "a part has no Content-Disposition");
}

/* ---- reading in pieces --------------------------------------------------------------------------- */

enum {
    AT_FRONT,  /* in front of the first boundary */
    AT_LINE,   /* behind a boundary: two dashes, or the end of the line */
    AT_DASH,   /* behind the first of the dashes */
    AT_BLANKS, /* behind blanks that end the boundary's line */
    AT_CR,
    AT_HEAD, /* in a part's headers */
    AT_DATA, /* in a part's data */
    AT_END,  /* behind the last boundary, where nothing is read */
};

/* Behind a CRLF that may be the boundary's: that of a part's headers, or the body's beginning. */
static void begin_data(multipart_reader *r, unsigned state)
{
    r->state = state;
    r->n_matched = r->n_implied = 2;
}

int multipart_open(multipart_reader *ret, const char *content_type, const multipart_events *ev, api_error *e)
{
    if (!multipart_is_form(content_type))
        return api_error_set(e, 415, "invalid_request_error", "unsupported_media_type", NULL,
                             "the content type must be multipart/form-data");
    ret->ev = *ev;
    ret->n_parts = ret->n_head = ret->line_at = 0;
    begin_data(ret, AT_FRONT);
    return find_boundary(content_type, ret->boundary, &ret->n_boundary, e);
}

static int multipart_give(const multipart_reader *r, const char *bytes, size_t n, api_error *e)
{
    return r->state == AT_DATA && n > 0 ? r->ev.data(r->ev.user, bytes, n, e) : 0;
}

/* Goes on with a boundary that has begun in front of this piece. Where it turns out to be none, what looked
 * like it is data. */
static int go_on_matching(multipart_reader *r, cursor *c, api_error *e)
{
    size_t left = r->n_boundary - r->n_matched, n = (size_t)(c->end - c->at);
    if (n > left) n = left;
    size_t same = 0;
    while (same < n && c->at[same] == r->boundary[r->n_matched + same]) same++;
    if (same == n) {
        c->at += n;
        r->n_matched += n;
        if (r->n_matched == r->n_boundary) r->state = AT_LINE;
        return 0;
    }
    /* What lies in this piece is looked at again as any data: no boundary begins in it but at a CR, and
     * behind its first byte a boundary has none. */
    size_t n_before = r->n_matched, implied = r->n_implied;
    r->n_matched = r->n_implied = 0;
    return multipart_give(r, r->boundary + implied, n_before - implied, e);
}

/* Where a boundary may have begun that the piece cuts; end: nowhere. */
static const char *find_cut(const multipart_reader *r, cursor c)
{
    size_t n = (size_t)(c.end - c.at), most = r->n_boundary - 1;
    const char *tail = n > most ? c.end - most : c.at;
    const char *cr = memrchr(tail, '\r', (size_t)(c.end - tail));
    return cr && memcmp(cr, r->boundary, (size_t)(c.end - cr)) == 0 ? cr : c.end;
}

static int read_data(multipart_reader *r, cursor *c, api_error *e)
{
    if (r->n_matched > 0) return go_on_matching(r, c, e);
    const char *from = c->at, *end = memmem(from, (size_t)(c->end - from), r->boundary, r->n_boundary);
    const char *to = end ? end : find_cut(r, *c);
    int rc = multipart_give(r, from, (size_t)(to - from), e);
    r->n_matched = (size_t)(c->end - to);
    r->n_implied = 0;
    c->at = end ? end + r->n_boundary : c->end;
    if (end) r->state = AT_LINE;
    return rc;
}

static int read_line_end(multipart_reader *r, char ch, api_error *e)
{
    if (r->state == AT_LINE && ch == '-') {
        r->state = AT_DASH;
    } else if (r->state == AT_DASH && ch == '-') {
        r->state = AT_END;
    } else if ((r->state == AT_LINE || r->state == AT_BLANKS) && (multipart_is_blank(ch) || ch == '\r')) {
        r->state = ch == '\r' ? AT_CR : AT_BLANKS;
    } else if (r->state == AT_CR && ch == '\n') {
        r->state = AT_HEAD;
        r->n_head = r->line_at = 0;
    } else {
        return malformed(e, "a boundary does not end its line");
    }
    return 0;
}

static bool is_of_list(const char *name)
{
    size_t n = strlen(name);
    return n > 2 && strcmp(name + n - 2, "[]") == 0;
}

/* Of a name that is there twice only one part would count, and which one is not said anywhere. */
static int note_name(multipart_reader *r, const char *name, api_error *e)
{
    for (size_t i = 0; i < r->n_parts && !is_of_list(name); i++)
        if (strcmp(r->names[i], name) == 0)
            return api_error_bad(e, name, "the form has two parts named \"%s\"", name);
    memcpy(r->names[r->n_parts++], name, strlen(name) + 1);
    return 0;
}

static int begin_part(multipart_reader *r, api_error *e)
{
    multipart_part p = {0};
    if (r->n_parts == MULTIPART_PARTS_MAX)
        return api_error_bad(e, NULL, "the form has more than %d parts", MULTIPART_PARTS_MAX);
    int rc = multipart_read_head(&p, (cursor){r->head, r->head + r->n_head}, e);
    if (rc == 0) rc = note_name(r, p.name, e);
    begin_data(r, AT_DATA);
    return rc == 0 ? r->ev.part(r->ev.user, &p, e) : rc;
}

static int read_head_byte(multipart_reader *r, char ch, api_error *e)
{
    if (r->n_head == sizeof r->head) return malformed(e, "a part's headers are too long");
    r->head[r->n_head++] = ch;
    if (ch != '\n' || r->n_head < 2 || r->head[r->n_head - 2] != '\r') return 0;
    bool empty = r->n_head - r->line_at == 2;
    r->line_at = r->n_head;
    return empty ? begin_part(r, e) : 0;
}

int multipart_push(multipart_reader *r, const char *bytes, size_t n, api_error *e)
{
    cursor c = {bytes, bytes + n};
    int rc = 0;
    loop_work_add(n);
    while (rc == 0 && c.at < c.end && r->state != AT_END) {
        switch (r->state) {
        case AT_FRONT:
        case AT_DATA: rc = read_data(r, &c, e); break;
        case AT_HEAD: rc = read_head_byte(r, *c.at++, e); break;
        default: rc = read_line_end(r, *c.at++, e);
        }
    }
    return rc;
}

int multipart_close(const multipart_reader *r, api_error *e)
{
    switch (r->state) {
    case AT_END: return 0;
    case AT_FRONT: return malformed(e, "its boundary does not occur in it");
    case AT_HEAD: return malformed(e, "a part's headers have no end");
    case AT_DATA: return malformed(e, "the last part has no end");
    default: return malformed(e, "a boundary does not end its line");
    }
}

/* ---- the whole at once --------------------------------------------------------------------------- */

static int add_part(void *user, const multipart_part *head, api_error *e)
{
    multipart *m = user;
    m->parts[m->n] = *head;
    m->parts[m->n++].data = "";
    return 0;
}

/* Of one piece, all of a part's data comes at once. */
static int set_data(void *user, const char *bytes, size_t n, api_error *e)
{
    multipart *m = user;
    m->parts[m->n - 1].data = bytes;
    m->parts[m->n - 1].len = n;
    return 0;
}

int multipart_parse(multipart *ret, const char *content_type, const char *body, size_t len, api_error *e)
{
    multipart_reader r;
    multipart_events ev = {.user = ret, .part = add_part, .data = set_data};
    ret->n = 0;
    int rc = multipart_open(&r, content_type, &ev, e);
    if (rc == 0) rc = multipart_push(&r, body, len, e);
    return rc == 0 ? multipart_close(&r, e) : rc;
}

const multipart_part *multipart_find(const multipart *m, const char *name)
{
    for (size_t i = 0; i < m->n; i++)
        if (strcmp(m->parts[i].name, name) == 0) return &m->parts[i];
    return NULL;
}
