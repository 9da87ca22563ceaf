/* Exports of Home Assistant, a document a line: whatever they hold, each device that comes out is one that shoal.yaml
 * takes, and no id comes twice. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "pipeline/pipeline.h"
#include "serve/home_export.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look(const json_t *list)
{
    size_t i;
    const json_t *o;
    json_array_foreach(list, i, o)
    {
        const char *id = json_string_value(json_object_get(o, "id"));
        const char *name = json_string_value(json_object_get(o, "name"));
        const char *area = json_string_value(json_object_get(o, "area"));
        if (!id || !name || !pipeline_device_text_ok(id) || !pipeline_device_text_ok(name)) abort();
        const char *unit = json_string_value(json_object_get(o, "unit"));
        if (unit && (!pipeline_device_text_ok(unit) || strlen(unit) > 16)) abort();
        if (area && !pipeline_device_text_ok(area)) abort();
        if (json_array_size(json_object_get(o, "aliases")) > PIPELINE_ALIASES_MAX) abort();
        for (size_t k = 0; k < i && k < 64; k++)
            if (strcmp(json_string_value(json_object_get(json_array_get(list, k), "id")), id) == 0) abort();
    }
}

static void count(json_t *left)
{
    const char *domain;
    json_t *n;
    json_object_foreach(left, domain, n)
    {
        if (!*domain || !pipeline_device_text_ok(domain) || json_integer_value(n) < 1) abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const domains[] = {"light", "lock", "cover"};
    home_export x = {0};
    json_t *list = NULL, *left = NULL;
    shoal_err err;
    for (size_t at = 0; at < size;) {
        const uint8_t *end = memchr(data + at, '\n', size - at);
        size_t n = end ? (size_t)(end - data) - at : size - at;
        json_t *j = NULL;
        bool known;
        if (json_parse(&j, (const char *)data + at, n, "export", &err) == 0) home_export_add(&x, j, &known);
        json_decref(j);
        at += n + 1;
    }
    if (holds(home_export_devices(&x, domains, 3, &list, &err) == 0)) look(list);
    json_decref(list);
    if (holds(home_export_left_out(&x, domains, 3, &left, &err) == 0)) count(left);
    json_decref(left);
    home_export_done(&x);
    return 0;
}
