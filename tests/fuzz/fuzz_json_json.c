/* JSON: what the quick reader takes is what jansson reads of the same bytes, to the value; what json_parse
 * gives can be written, and is the same when it is read again. What Python may have written is rewritten once. */
#include <stdint.h>
#include <stdlib.h>

#include "json/hub_file.h"
#include "json/json.h"
#include "json/json_memory.h"
#include "json/json_quick.h"
#include "memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void compare(const char *text, size_t n)
{
    json_t *quick = json_quick(text, n);
    if (!quick) return;
    json_error_t why;
    bool nomem;
    json_t *slow =
        json_memory_load(text, n, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY | JSON_ALLOW_NUL, &why, &nomem);
    if (holds(slow != NULL) && !json_equal(quick, slow)) abort();
    json_decref(quick);
    json_decref(slow);
}

/* A text that is JSON means the same behind it. */
static void rewrite(const uint8_t *data, size_t size)
{
    buf text = {0};
    json_t *before = NULL, *after = NULL;
    shoal_err err = {0};
    (void)hub_file_check(data, size, "text", &err);
    if (holds(buf_append(&text, data, size) == 0) && holds(hub_file_plain_json(&text) == 0) &&
        json_parse(&before, (const char *)data, size, "text", &err) == 0) {
        if (holds(json_parse(&after, text.data ? text.data : "", text.len, "plain", &err) == 0) &&
            !json_equal(before, after))
            abort();
    }
    json_decref(after);
    json_decref(before);
    buf_done(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *v = NULL, *again = NULL;
    buf out = {0};
    shoal_err err = {0};
    compare((const char *)data, size);
    rewrite(data, size);
    if (json_parse(&v, (const char *)data, size, "text", &err) == 0) {
        if (holds(json_put(&out, v) == 0) &&
            holds(json_parse(&again, out.data, out.len, "again", &err) == 0) && !json_equal(v, again))
            abort();
    }
    buf_done(&out);
    json_decref(again);
    json_decref(v);
    return 0;
}
