/* A folder of files of any bytes: "\xFF" and a letter begin each, the letter naming it. What loads must
 * encode. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tokenizer/tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct {
    char letter;
    const char *name;
} files[] = {{'v', "vocab.txt"},
             {'j', "vocab.json"},
             {'m', "merges.txt"},
             {'c', "config.json"},
             {'t', "tokenizer_config.json"},
             {'s', "special_tokens_map.json"},
             {'a', "added_tokens.json"},
             {'p', "tokenizer.model"},
             {'o', "source.spm"}};
enum { N_FILES = sizeof files / sizeof *files };

static char dir[64];

static void remove_dir(void)
{
    char path[160];
    for (size_t i = 0; i < N_FILES; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, files[i].name);
        unlink(path);
    }
    rmdir(dir);
}

static void write_files(const uint8_t *data, size_t size)
{
    char path[160];
    for (size_t i = 0; i < N_FILES; i++) {
        const uint8_t *at = data, *end = data + size, *from = NULL;
        while (at && !from && at + 1 < end && (at = memchr(at, 0xFF, (size_t)(end - at - 1)))) {
            if (at[1] == (uint8_t)files[i].letter) from = at + 2;
            at++;
        }
        snprintf(path, sizeof path, "%s/%s", dir, files[i].name);
        unlink(path);
        FILE *f = from ? fopen(path, "wb") : NULL;
        if (!f) continue;
        const uint8_t *to = memchr(from, 0xFF, (size_t)(end - from));
        fwrite(from, 1, (size_t)((to ? to : end) - from), f);
        fclose(f);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char text[] = "Hello  na\xC3\xAFve world's [CLS] <s> 12 \xE6\x97\xA5";
    if (!dir[0]) {
        snprintf(dir, sizeof dir, "/tmp/shoal-fuzz-folder-XXXXXX");
        if (!mkdtemp(dir)) abort();
        atexit(remove_dir);
    }
    write_files(data, size);
    tokenizer *t = NULL;
    encoding e = {0};
    buf out = {0};
    if (tokenizer_from_folder(&t, dir, NULL)) return 0;
    if (tokenizer_encode(t, text, sizeof text - 1, "two", 3, TOK_ADD_SPECIAL | TOK_PARSE_SPECIAL, 0, &e,
                         NULL) == 0)
        tokenizer_decode(t, e.ids, e.n, false, &out);
    buf_done(&out);
    encoding_done(&e);
    tokenizer_free(t);
    return 0;
}
