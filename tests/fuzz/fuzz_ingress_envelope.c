/* Messages of a WebSocket: a refusal is a 4xx with a sentence; what is taken has an id, a path and headers
 * without line breaks. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "ingress/envelope.h"
#include "memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const envelope *a)
{
    if (!*a->id || strlen(a->id) > ENVELOPE_ID_MAX) abort();
    if (a->cancels) return;
    if (*a->path != '/' || strchr(a->path, '?') || !*a->method) abort();
    if (a->key && !a->headers) abort();
    if (a->has_timeout && a->timeout_ms > ENVELOPE_TIMEOUT_MAX_MS) abort();
    const char *names[] = {"authorization", "content-type", "x"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *v = envelope_header(a, names[i]);
        if (v && (strchr(v, '\n') || strchr(v, '\r'))) abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    envelope a;
    api_error e = {0};
    int rc = envelope_parse(&a, (const char *)data, size, &e);
    if (rc == 0)
        check(&a);
    else if (rc != e.status || rc < 400 || !e.message[0])
        abort();
    else
        holds(rc <= 499);
    envelope_done(&a);
    return 0;
}
