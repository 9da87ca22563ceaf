/* Messages of a WebSocket: a refusal is a 4xx with a sentence; what is taken has an id, a path and headers
 * without line breaks. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "ingress/ws_ask.h"
#include "memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const ws_ask *a)
{
    if (!*a->id || strlen(a->id) > WS_ID_MAX) abort();
    if (a->cancels) return;
    if (*a->path != '/' || strchr(a->path, '?') || !*a->method) abort();
    const char *names[] = {"authorization", "content-type", "x"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *v = ws_ask_header(a, names[i]);
        if (v && (strchr(v, '\n') || strchr(v, '\r'))) abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ws_ask a;
    api_error e = {0};
    int rc = ws_ask_parse(&a, (const char *)data, size, &e);
    if (rc == 0)
        check(&a);
    else if (rc != e.status || rc < 400 || !e.message[0])
        abort();
    else
        holds(rc <= 499);
    ws_ask_done(&a);
    return 0;
}
