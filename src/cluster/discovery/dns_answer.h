/* dns_answer.h: the SRV records of a DNS message (RFC 1035, RFC 2782), from bytes that anybody may have sent.
 *
 *     dns_answer a;
 *     if (dns_answer_parse(msg, n, &a, &err) == 0) use(a.list, a.n, a.ttl_s);
 */
#ifndef DISCOVERY_DNS_ANSWER_H
#define DISCOVERY_DNS_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum { DNS_RECORDS_MAX = 1024, DNS_NAME_BYTES = 256 };

typedef struct dns_record {
    char host[DNS_NAME_BYTES]; /* "pi.example", as people write it: printable, without the last dot */
    char ip[48];               /* where the answer says it, in its additional section; "" elsewhere */
    uint16_t port, priority, weight;
} dns_record;

typedef struct dns_answer {
    dns_record *list; /* malloc'd; in the order of the answer */
    size_t n;
    uint32_t ttl_s; /* the least of its records */
} dns_answer;

/* SHOAL_EFORMAT: no DNS message, or one that contradicts itself; SHOAL_ELIMIT: more than DNS_RECORDS_MAX
 * records; SHOAL_ENOMEM. Records of other types are stepped over; "no such service" (a target of ".") is
 * none. */
int dns_answer_parse(const uint8_t *msg, size_t n, dns_answer *ret, shoal_err *err);
void dns_answer_done(dns_answer *a);

/* How long to wait before a name is queried again that was not answered with records; last_ms: the wait before, 0 after an
 * answer. It doubles: up to 30 s if the query failed, up to 4 s if the name has no records (empty), since a model that
 * has been scaled to zero gets its first worker while requests wait for it. */
uint64_t dns_retry_ms(uint64_t last_ms, bool empty);

#endif
