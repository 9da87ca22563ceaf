/* Bytes as a DNS message; what is read of it holds what its header promises. */
#include <stdint.h>
#include <string.h>

#include "discovery/dns_answer.h"
#include "memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    dns_answer a;
    if (dns_answer_parse(data, size, &a, NULL) != 0) return 0;
    holds(a.n <= DNS_RECORDS_MAX);
    for (size_t i = 0; i < a.n; i++) {
        const dns_record *r = &a.list[i];
        holds(r->port != 0 && *r->host && strlen(r->host) < sizeof r->host && strlen(r->ip) < sizeof r->ip);
        for (const char *p = r->host; *p; p++) holds(*p > ' ' && *p < 127);
    }
    dns_answer_done(&a);
    return 0;
}
