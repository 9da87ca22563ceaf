/* Bytes as the text of a caption: JSON stays JSON, and a subtitle file has one cue. */
#include <stdint.h>
#include <string.h>

#include "json/json.h"
#include "base/utf8.h"
#include "memory.h"
#include "formats/captions.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t count(const char *s, const char *what)
{
    size_t n = 0;
    while ((s = strstr(s, what))) {
        n++;
        s++;
    }
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    caption c = {.end_ms = 1000, .text = (const char *)data, .len = size};
    transcript t = {.segments = &c, .n_segments = 1};
    for (int f = 0; f < CAPTIONS_COUNT; f++) {
        buf out = {0};
        json_t *j = NULL;
        if (holds(captions_write(&out, (captions_format)f, &t) == 0) && out.len > 0) {
            holds(utf8_valid(out.data, out.len, NULL));
            if (f == CAPTIONS_SRT || f == CAPTIONS_VTT) holds(count(out.data, "-->") <= 1);
            if (f == CAPTIONS_JSON || f == CAPTIONS_VERBOSE_JSON)
                holds(json_parse(&j, out.data, out.len, "answer", NULL) == 0);
        }
        json_decref(j);
        buf_done(&out);
    }
    return 0;
}
