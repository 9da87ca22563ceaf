/* Bytes as what an earlier process kept of its steps. The digest would stop every change of a seed at once,
 * so it is put right in a copy: lines that are accepted then still leave a cost model that chooses and learns. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "infer/step_cost_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { KEY_AT = 16, DIGEST_AT = STEP_COST_FILE_BYTES - 32 };

static void take_steps(step_cost *p)
{
    for (int i = 0; i < 48; i++) {
        step_kind k = (step_kind)(i % STEP_KINDS);
        size_t n = (size_t)(1 + i * 7 % 200);
        int n_members = step_cost_choose(p, k, n);
        if (n_members < 1 || n_members > p->n_members) abort();
        step_cost_note(p, k, n, n_members, 100000 + 1000 * n);
        for (int way = 0; way < STEP_WAYS; way++) {
            const step_cost_line *l = &p->of[k].way[way];
            if (!(l->fixed_ns >= 0 && l->token_ns >= 0 && l->fixed_ns + l->token_ns < 1e18)) abort();
        }
    }
}

static void read_it(const uint8_t *data, size_t size)
{
    sha256_digest key = {0};
    step_cost p = {0};
    step_cost_known known;
    shoal_err err;
    if (size >= STEP_COST_FILE_BYTES) memcpy(key.bytes, data + KEY_AT, sizeof key.bytes);
    if (step_cost_file_read(&known, data, size, &key, &err) != 0) return;
    p.n_members = key.bytes[0] % 2 ? 2 : 12;
    step_cost_recall(&p, &known);
    take_steps(&p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t copy[STEP_COST_FILE_BYTES];
    sha256_digest d;
    read_it(data, size);
    if (size < STEP_COST_FILE_BYTES) return 0;
    memcpy(copy, data, sizeof copy);
    memcpy(copy, "SHOALPC\n\2\0\0\0\25\0\0\0", KEY_AT);
    sha256_of(copy, DIGEST_AT, &d);
    memcpy(copy + DIGEST_AT, d.bytes, sizeof d.bytes);
    read_it(copy, sizeof copy);
    return 0;
}
