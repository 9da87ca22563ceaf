/* Bytes as a path and as a URL of a host. A path that is taken stays below the URL, however a server decodes
 * it; a URL that is taken names a host and nothing else. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "hosts/host_rule.h"
#include "memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Decoded as a careless server does: %XX everywhere, '\\' as '/'. */
static void decode(const char *path, char *to)
{
    size_t n = strcspn(path, "?");
    for (size_t i = 0; i < n; i++) {
        uint8_t byte = (uint8_t)path[i];
        if (path[i] == '%' && n - i > 2 && hex_decode(path + i + 1, 2, &byte, 1)) i += 2;
        *to++ = byte == '\\' ? '/' : (char)byte;
    }
    *to = 0;
}

static void expect_below(const char *path)
{
    char *plain = malloc(strlen(path) + 1);
    if (!plain) return;
    decode(path, plain);
    for (const char *s = plain; *s; s += strcspn(s, "/")) {
        s += strspn(s, "/");
        size_t n = strcspn(s, "/");
        if ((n == 1 && *s == '.') || (n == 2 && s[0] == '.' && s[1] == '.')) abort();
    }
    free(plain);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    shoal_err err = {0};
    if (!text) return 0;
    memcpy(text, data, size);
    text[size] = 0;
    if (host_path_ok(text)) {
        for (const char *c = text; *c; c++)
            if (*c <= ' ' || *c == 0x7f) abort();
        expect_below(text);
    }
    if (host_url_check(text, &err) == 0) {
        const char *host = strstr(text, "//") + 2;
        if (strpbrk(text, "@?# \r\n") || strncmp(text, "http", 4) != 0 || *host == '/' || !*host) abort();
    } else {
        holds(err.message[0] != 0);
    }
    free(text);
    return 0;
}
