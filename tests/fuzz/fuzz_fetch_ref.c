/* Bytes as a reference to a model, as a name from a server and as a registry's challenge. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fetch/pull_http.h"
#include "fetch/pull_ref.h"
#include "memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What is taken as a path stays inside. */
static void check_path(const char *path)
{
    if (!pull_path_ok(path)) return;
    if (*path == '/' || *path == '.' || strstr(path, "/.") || strstr(path, "//")) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const words[] = {"realm", "service", "scope"};
    arena *mem = arena_new(0);
    if (!holds(mem)) return 0;
    char *text = arena_strndup(mem, (const char *)data, size);
    pull_ref r;
    shoal_err err;
    if (text && pull_ref_parse(&r, mem, text, &err) == 0) {
        check_path(r.name);
        if (r.file) check_path(r.file);
        if (strchr(r.name, '/') || (r.repo && strstr(r.repo, ".."))) abort();
    }
    for (size_t i = 0; text && i < sizeof words / sizeof *words; i++) {
        buf value = {0};
        pull_challenge_word(text, words[i], &value);
        buf_done(&value);
    }
    if (text) check_path(text);
    arena_free(mem);
    return 0;
}
