/* Bytes as the name of a stage, as machines report it: what is read is written back as it was. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/stage_name.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char name[300], model[300], again[400], once[400];
    size_t n, first, end, n2, first2, end2;
    size_t len = size < sizeof name ? size : sizeof name - 1;
    memcpy(name, data, len);
    name[len] = '\0';
    if (!stage_name_parse(name, &n, &first, &end)) return 0;
    if (n == 0 || n >= sizeof name || first >= end) abort();
    memcpy(model, name, n);
    model[n] = '\0';
    if (strpbrk(model, "@/")) abort();
    if (!stage_name_put(again, sizeof again, model, first, end)) abort();
    if (!stage_name_parse(again, &n2, &first2, &end2) || n2 != n || first2 != first || end2 != end) abort();
    if (!stage_name_put(once, strlen(again) + 1, model, first, end) || strcmp(once, again) != 0) abort();
    if (stage_name_put(once, strlen(again), model, first, end)) abort(); /* there is no room for its end */
    return 0;
}
