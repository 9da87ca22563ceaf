/* replay.c: runs a fuzz target over its seeds when libFuzzer is not there.
 *
 *     build/fuzz/fuzz_model_gguf [FILE|DIR ...]
 *
 * Prints "N seeds replayed"; a crash is the failure. */
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json/json_memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int n_unread;

static int unread(const char *path)
{
    fprintf(stderr, "replay: %s: %s\n", path, strerror(errno));
    n_unread++;
    return 0;
}

static int replay_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f) return unread(path);
    fseek(f, 0, SEEK_END);
    long size = ftell(f);
    rewind(f);
    if (size < 0) {
        fclose(f);
        return 0;
    }
    uint8_t *data = malloc((size_t)size + 1);
    size_t n = data ? fread(data, 1, (size_t)size, f) : 0;
    fclose(f);
    fprintf(stderr, "replay %s\n", path);
    /* An exact copy, so that a read past the end is seen by AddressSanitizer. */
    uint8_t *exact = malloc(n ? n : 1);
    if (data && exact) {
        memcpy(exact, data, n);
        LLVMFuzzerTestOneInput(exact, n);
    }
    int replayed = data && exact ? 1 : unread(path);
    free(exact);
    free(data);
    return replayed;
}

static int replay(const char *path)
{
    DIR *d = opendir(path);
    if (!d && errno == ENOTDIR) return replay_file(path);
    if (!d) return unread(path);
    int n = 0;
    for (struct dirent *e; (e = readdir(d));) {
        if (e->d_name[0] == '.') continue;
        char file[4096];
        snprintf(file, sizeof file, "%s/%s", path, e->d_name);
        n += replay_file(file);
    }
    closedir(d);
    return n;
}

int main(int argc, char **argv)
{
    int n = 0;
    json_memory_guard();
    for (int i = 1; i < argc; i++) n += replay(argv[i]);
    printf("%d seeds replayed\n", n);
    return n > 0 && n_unread == 0 ? 0 : 1;
}
