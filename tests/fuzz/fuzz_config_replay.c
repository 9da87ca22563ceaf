/* Bytes as a line of a decision: whatever it says, deciding ends, has reasons, and can be written down again.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "json/json.h"
#include "config/config.h"
#include "memory.h"
#include "routes/replay.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char BOOK[] =
    "models: [{name: a}, {name: b}, {name: c}]\n"
    "domains: [{name: t, model: a, min_score: 0.5, of: [{name: on, labels: ['iot_*']}, {name: off}]}]\n"
    "routes:\n"
    "  - name: r\n    domains: t\n    rules:\n"
    "      - {language: [de], wants: [tools], model: q}\n"
    "      - {matches: 'x', header: [{name: x-a}], max_load: 2, max_wait_ms: 9, model: a}\n"
    "      - {domain: [on], max_deadline_ms: 100, split: [{model: a, share: 1}, {model: b, share: 2}]}\n"
    "    fallback: [q, c]\n"
    "  - {name: q, domains: t, rules: [{domain: [off], min_bytes: 9, model: b}], fallback: [a]}\n";

static void decide_again(const gateway_config *c, const json_t *line)
{
    static replay r;
    decision d;
    bool same;
    shoal_err err;
    buf out = {0};
    if (replay_read(&r, &c->book, line, &err) != 0) return;
    decide_what what = replay_decide(&r, &c->book, &d, &same);
    if (what == DECIDE_ASK || (what == DECIDE_DONE) != (d.n > 0) || d.n + d.n_skipped == 0) abort();
    replay_put(&out, &c->book, &r.facts, &r.evidence, &d);
    decide_put_header(&out, &c->book, &d, &r.facts);
    decide_put_json(&out, &c->book, &d, &r.facts);
    holds(!out.failed);
    buf_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    gateway_config *c = NULL;
    json_t *line = NULL;
    shoal_err err;
    if (!holds(config_parse(&c, NULL, BOOK, sizeof BOOK - 1, "book", &err) == 0)) return 0;
    if (json_parse(&line, (const char *)data, size, "line", &err) == 0) decide_again(c, line);
    json_decref(line);
    config_free(c);
    return 0;
}
