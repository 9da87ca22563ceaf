/* Bytes as what an attached machine says. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "json/json.h"
#include "control/member_table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Two messages, cut at the first byte's count; what is kept is shown as JSON. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    member_table *r = NULL;
    member_entry *e;
    buf out = {0};
    json_t *root = NULL;
    shoal_err err;
    unsigned bits;
    uint64_t pong;
    if (size == 0 || member_table_new(&r, NULL) != 0) return 0;
    size_t cut = data[0] < size - 1 ? data[0] : size - 1;
    if (member_table_admit(r, "pi", 1, &e, NULL) == 0) {
        member_table_hear(r, e, data + 1, cut, 2, &bits, &pong, &err);
        member_table_hear(r, e, data + 1 + cut, size - 1 - cut, 3, &bits, &pong, &err);
        member_table_put_json(r, 4, &out);
        int rc = out.failed ? 0 : json_parse(&root, out.data, out.len, "nodes", &err);
        if (rc != 0 && rc != SHOAL_ENOMEM) abort();
    }
    json_decref(root);
    buf_done(&out);
    member_table_free(r);
    return 0;
}
