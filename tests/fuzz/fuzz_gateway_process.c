/* Bodies of /v1/process, for a configuration with one pipeline and for one with two. What is taken is
 * judged and expanded as a run would do it. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/config.h"
#include "gateway/process.h"
#include "memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MODELS "models:\n  - {name: a, path: a.gguf}\n  - {name: g, path: g.gguf}\n"
#define KINDS                                                                                     \
    "      - {name: english, kind: seq2seq, model: g, input: '{context} {input}'}\n"              \
    "      - {name: topic, kind: embed, model: a, input: '{text.english}', candidates: [x, y]}\n" \
    "      - {name: page, kind: rerank, model: a, input: '{label.topic}', documents: [x, y]}\n"   \
    "      - {name: mood, kind: fill-mask, model: a, input: '{Input} [MASK] {devices}'}\n"
#define STAGES                                                                                            \
    "    stages:\n      - {name: intent, kind: classify, model: a, unless: [{text_prefix: 'sensor '}]}\n" \
    "      - {name: reply, kind: generate, model: g, system: 'S {devices}', prompt: '{input} {context}'}\n"
#define HOME \
    "pipelines:\n  - name: home\n    devices: [{id: light.k, name: Kitchen Light, state: 'on'}]\n" STAGES

static gateway_config *configure(const char *yaml)
{
    gateway_config *c = NULL;
    holds(config_parse(&c, yaml, strlen(yaml), "fuzz.yaml", NULL) == 0);
    return c;
}

static void use(const process_input *in)
{
    if (!in->pipeline || !*in->text || !in->context || in->n_devices > PIPELINE_DEVICES_MAX) abort();
    stage_fact facts[6];
    for (size_t i = 0; i < 6; i++) facts[i] = (stage_fact){.label = "", .text = ""};
    pipeline_facts f = {.input = in->text,
                        .devices = in->devices,
                        .n_devices = in->n_devices,
                        .context = in->context,
                        .stages = facts};
    for (unsigned i = 0; i < in->pipeline->n_stages; i++) {
        buf why = {0}, prompt = {0};
        if (pipeline_judge(in->pipeline, i, &f, &why) == STAGE_WAIT) abort();
        facts[i].state = STAGE_DONE;
        if (in->pipeline->stages[i].system)
            pipeline_expand(in->pipeline, in->pipeline->stages[i].system, &f, &prompt);
        if (in->pipeline->stages[i].prompt)
            pipeline_expand(in->pipeline, in->pipeline->stages[i].prompt, &f, &prompt);
        if (in->pipeline->stages[i].input)
            pipeline_expand(in->pipeline, in->pipeline->stages[i].input, &f, &prompt);
        buf_done(&why);
        buf_done(&prompt);
    }
}

static void parse(const gateway_config *c, const char *body, size_t n)
{
    process_input in = {0};
    api_error e = {0};
    int rc = process_parse(&in, c, body, n, &e);
    if (rc == 0)
        use(&in);
    else if (rc != e.status || rc < 400 || !e.message[0] || in.memory)
        abort();
    else
        holds(rc <= 499);
    process_input_done(&in);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static gateway_config *one, *two; /* parsed once; reachable to the end, so no leak */
    if (!one) one = configure(MODELS HOME);
    if (!two) two = configure(MODELS HOME "  - name: other\n" STAGES KINDS);
    if (one) parse(one, (const char *)data, size);
    if (two) parse(two, (const char *)data, size);
    return 0;
}
