/* Bytes as a document of each type, read and cut: blocks and pieces stay in their bounds, and characters
 * whole. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "memory.h"
#include "retrieve/piece.h"
#include "retrieve/query.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_blocks(const plain *p)
{
    size_t at = 0;
    for (size_t i = 0; i < p->n; i++) {
        const plain_block *b = &p->blocks[i];
        holds(b->start >= at && b->end > b->start && b->end <= p->text.len && b->line >= 1);
        at = b->end;
    }
}

static void cut(const plain *p, size_t most)
{
    pieces ps = {0};
    shoal_err err;
    if (holds(pieces_cut(&ps, p, most, most / 5, NULL, &err) == 0))
        for (size_t i = 0; i < ps.n; i++) {
            const piece *one = &ps.v[i];
            holds(one->end > one->start && one->end - one->start <= most && one->end <= p->text.len);
            holds(utf8_valid(p->text.data + one->start, one->end - one->start, NULL));
            holds(utf8_valid(one->title, strlen(one->title), NULL));
        }
    pieces_done(&ps);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static query q;
    char *text = malloc(size + 1); /* exactly as long, for the sanitizer */
    if (!text) return 0;
    memcpy(text, data, size);
    for (int type = 0; type < PLAIN_N_TYPES; type++) {
        plain p = {0};
        shoal_err err;
        if (plain_read(&p, (plain_type)type, text, size, "fuzz", NULL, &err) == 0) {
            check_blocks(&p);
            cut(&p, PIECE_BYTES_MIN);
            cut(&p, 400);
        }
        plain_done(&p);
    }
    if (utf8_valid(text, size, NULL)) {
        buf out = {0};
        query_parse(&q, text, size);
        query_put(&out, &q);
        buf_done(&out);
    }
    free(text);
    return 0;
}
