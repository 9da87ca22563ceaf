/* Bytes as a backup's manifest: what parses is written as something that reads the same, and its names are the table's. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "backup/manifest.h"
#include "memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    manifest m, back;
    buf text = {0};
    shoal_err err;
    if (size > MANIFEST_BYTES_MAX || manifest_parse(&m, (const char *)data, size, "manifest", &err) != 0)
        return 0;
    if (strchr(m.aside, '/') || strcmp(m.aside, "..") == 0) abort();
    for (int i = 0; i < BACKUP_N_ITEMS; i++)
        if (m.files[i].is_in && m.files[i].left_out) abort();
    manifest_put(&m, &text);
    if (holds(!text.failed) && holds(manifest_parse(&back, text.data, text.len, "manifest", &err) == 0)) {
        if (!manifest_same(&m, &back) || strcmp(m.version, back.version) != 0 ||
            strcmp(m.aside, back.aside) != 0 || strcmp(m.places, back.places) != 0)
            abort();
    }
    buf_done(&text);
    return 0;
}
