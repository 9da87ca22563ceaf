/* dns_answer.c: a DNS message through a bounded cursor. */
#include "discovery/dns_answer.h"

#include <arpa/inet.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cur.h"

enum {
    TYPE_A = 1,
    TYPE_AAAA = 28,
    TYPE_SRV = 33,
    CLASS_IN = 1,
    POINTERS_MAX = 64, /* each leads back, so that they end; a name has no use for more */
};

/* DNS counts from the big end. */
static unsigned be16(cur *c)
{
    const uint8_t *p = cur_take(c, 2);
    return p ? (unsigned)p[0] << 8 | p[1] : 0;
}

static uint32_t be32(cur *c)
{
    uint32_t high = be16(c);
    return high << 16 | be16(c);
}

/* ---- names (RFC 1035, 4.1.4) --------------------------------------------------------------------- */

/* What a host name may consist of; all else is none, whatever a log or a terminal would make of it. */
static bool is_host_char(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

static bool put_label(char *out, size_t *n, const uint8_t *label, size_t len)
{
    if (*n + len + 2 > DNS_NAME_BYTES) return false;
    if (*n > 0) out[(*n)++] = '.';
    for (size_t i = 0; i < len; i++) {
        if (!is_host_char(label[i])) return false;
        out[(*n)++] = (char)label[i];
    }
    return true;
}

/* Read a name, compressed or not, and step over it. "" is the root. False: it is none. */
static bool take_name(cur *c, char out[DNS_NAME_BYTES])
{
    cur at = *c;
    size_t n = 0;
    bool away = false;
    for (int jumps = 0;;) {
        size_t here = cur_offset(&at);
        const uint8_t *p = cur_take(&at, 1);
        if (!p) return false;
        if (*p == 0) break;
        if (*p >= 0xC0) {
            const uint8_t *low = cur_take(&at, 1);
            if (!low || ++jumps > POINTERS_MAX) return false;
            size_t to = (size_t)(*p & 0x3F) << 8 | *low;
            if (to >= here) return false; /* a pointer leads back */
            if (!away) *c = at;
            away = true;
            at.at = at.start + to;
            continue;
        }
        const uint8_t *label = *p < 0x40 ? cur_take(&at, *p) : NULL;
        if (!label || !put_label(out, &n, label, *p)) return false;
    }
    if (!away) *c = at;
    out[n] = '\0';
    return true;
}

/* ---- records ------------------------------------------------------------------------------------- */

typedef struct record_head {
    char name[DNS_NAME_BYTES];
    unsigned type, class, n_data;
    uint32_t ttl_s;
} record_head;

static bool take_head(cur *c, record_head *h)
{
    if (!take_name(c, h->name)) return false;
    h->type = be16(c);
    h->class = be16(c);
    h->ttl_s = be32(c);
    h->n_data = be16(c);
    return !c->failed && h->n_data <= cur_left(c);
}

static bool take_srv(cur *c, const record_head *h, dns_record *r)
{
    size_t end = cur_offset(c) + h->n_data;
    *r = (dns_record){0};
    r->priority = (uint16_t)be16(c);
    r->weight = (uint16_t)be16(c);
    r->port = (uint16_t)be16(c);
    return take_name(c, r->host) && !c->failed && cur_offset(c) == end;
}

static bool take_answers(cur *c, unsigned n, dns_answer *a)
{
    a->ttl_s = UINT32_MAX;
    for (unsigned i = 0; i < n; i++) {
        record_head h;
        dns_record *r = &a->list[a->n];
        if (!take_head(c, &h)) return false;
        if (h.type != TYPE_SRV || h.class != CLASS_IN) {
            cur_take(c, h.n_data);
            continue;
        }
        if (!take_srv(c, &h, r)) return false;
        if (h.ttl_s < a->ttl_s) a->ttl_s = h.ttl_s;
        if (*r->host && r->port) a->n++;
    }
    return true;
}

static void note_address(dns_answer *a, const record_head *h, const uint8_t *data)
{
    char ip[sizeof a->list->ip];
    bool v4 = h->type == TYPE_A && h->n_data == 4, v6 = h->type == TYPE_AAAA && h->n_data == 16;
    if (h->class != CLASS_IN || !(v4 || v6) || !inet_ntop(v4 ? AF_INET : AF_INET6, data, ip, sizeof ip))
        return;
    for (size_t i = 0; i < a->n; i++)
        if (!*a->list[i].ip && strcasecmp(a->list[i].host, h->name) == 0) strcpy(a->list[i].ip, ip);
}

/* Further addresses are a favour: where they end, or are wrong, the names remain. */
static void take_addresses(cur *c, unsigned n_skip, unsigned n, dns_answer *a)
{
    record_head h;
    for (unsigned i = 0; i < n_skip + n && take_head(c, &h); i++) {
        const uint8_t *data = cur_take(c, h.n_data);
        if (i >= n_skip && data) note_address(a, &h, data);
    }
}

static bool skip_questions(cur *c, unsigned n)
{
    char name[DNS_NAME_BYTES];
    for (unsigned i = 0; i < n; i++)
        if (!take_name(c, name) || !cur_take(c, 4)) return false;
    return true;
}

int dns_answer_parse(const uint8_t *msg, size_t n, dns_answer *ret, shoal_err *err)
{
    cur c = cur_over(msg, n);
    dns_answer a = {0};
    cur_take(&c, 4); /* id and flags: whoever asked has looked at them */
    unsigned n_questions = be16(&c), n_answers = be16(&c), n_authorities = be16(&c), n_more = be16(&c);
    if (c.failed) return err_set(err, SHOAL_EFORMAT, "the DNS answer of %zu bytes has no whole header", n);
    if (n_answers > DNS_RECORDS_MAX)
        return err_set(err, SHOAL_ELIMIT, "the DNS answer has %u records; at most %d are read", n_answers,
                       DNS_RECORDS_MAX);
    a.list = calloc(n_answers + 1u, sizeof *a.list);
    if (!a.list) return err_nomem(err);
    if (!skip_questions(&c, n_questions) || !take_answers(&c, n_answers, &a)) {
        dns_answer_done(&a);
        return err_set(err, SHOAL_EFORMAT, "the DNS answer is malformed at byte %zu", cur_offset(&c));
    }
    take_addresses(&c, n_authorities, n_more, &a);
    *ret = a;
    return 0;
}

void dns_answer_done(dns_answer *a)
{
    free(a->list);
    *a = (dns_answer){0};
}

uint64_t dns_retry_ms(uint64_t last_ms, bool empty)
{
    const uint64_t first = 1000, most = empty ? 4000 : 30000;
    uint64_t next = last_ms ? 2 * last_ms : first;
    return next < most ? next : most;
}
