/* Bodies of /v1/process, for a configuration with one pipeline and for one with several, as JSON and, where a
 * line of multipart/form-data comes first, as a form. What is taken is judged and expanded as a run would do
 * it. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "config/config.h"
#include "messages/multipart.h"
#include "process/process.h"
#include "memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MODELS "models:\n  - {name: a, path: a.gguf}\n  - {name: g, path: g.gguf}\n"
#define KINDS                                                                                     \
    "      - {name: english, kind: seq2seq, model: g, input: '{context} {input}'}\n"              \
    "      - {name: topic, kind: embed, model: a, input: '{text.english}', candidates: [x, y]}\n" \
    "      - {name: page, kind: rerank, model: a, input: '{label.topic}', documents: [x, y]}\n"   \
    "      - {name: mood, kind: fill-mask, model: a, input: '{Input} [MASK] {devices}'}\n"
#define LISTENS                                                                                              \
    "  - name: voice\n    stages:\n"                                                                         \
    "      - {name: voice, kind: vad, model: a, when: [{brings: audio}]}\n"                                  \
    "      - {name: words, kind: transcribe, model: a, unless: [{stage: voice, label: [silence]}, {brings: " \
    "text}]}\n"                                                                                              \
    "      - {name: seen, kind: image, model: a, when: [{brings: image}]}\n"                                 \
    "      - {name: rows, kind: score, model: a, when: [{brings: csv}]}\n"                                   \
    "      - {name: say, kind: generate, model: g, prompt: '{Input} {text.words} {label.seen} "              \
    "{text.rows}'}\n"                                                                                        \
    "  - name: ears\n    stages: [{name: words, kind: transcribe, model: a, prompt: '{devices}'}]\n"
#define STAGES                                                                                            \
    "    stages:\n      - {name: intent, kind: classify, model: a, unless: [{text_prefix: 'sensor '}]}\n" \
    "      - {name: reply, kind: generate, model: g, system: 'S {devices}', prompt: '{input} {context}'}\n"
#define HOME \
    "pipelines:\n  - name: home\n    devices: [{id: light.k, name: Kitchen Light, state: 'on'}]\n" STAGES

static gateway_config *configure(const char *yaml)
{
    gateway_config *c = NULL;
    holds(config_parse(&c, NULL, yaml, strlen(yaml), "fuzz.yaml", NULL) == 0);
    return c;
}

static void use(const process_input *in)
{
    if (!in->pipeline || !in->context || in->n_devices > PIPELINE_DEVICES_MAX) abort();
    bool any = *in->text;
    for (int m = 0; m < N_MEDIA; m++) {
        if (!in->files[m].data) continue;
        any = true;
        if (in->files[m].len == 0 || !pipeline_takes(in->pipeline, (medium)m)) abort();
        volatile uint8_t last = in->files[m].data[in->files[m].len - 1]; /* its bytes are there */
        (void)last;
    }
    if (!any) abort();
    stage_fact facts[8];
    for (size_t i = 0; i < 8; i++) facts[i] = (stage_fact){.label = "", .text = ""};
    pipeline_facts f = {.input = in->text,
                        .devices = in->devices,
                        .n_devices = in->n_devices,
                        .context = in->context,
                        .stages = facts};
    for (int m = 0; m < N_MEDIA; m++)
        if (in->files[m].data) f.brings |= 1u << m;
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

static void parse(const gateway_config *c, const char *type, const char *body, size_t n)
{
    process_input in = {0};
    api_error e = {0};
    int rc = type ? process_parse_form(&in, c, type, body, n, &e) : process_parse(&in, c, body, n, &e);
    if (rc == 0)
        use(&in);
    else if (rc != e.status || rc < 400 || !e.message[0] || in.memory)
        abort();
    else
        holds(rc <= 499);
    process_input_done(&in);
}

/* A first line that is the Content-Type of a form, into type[1024]. */
static bool take_type(const uint8_t **data, size_t *size, char *type)
{
    const uint8_t *line = memchr(*data, '\n', *size);
    size_t n = line ? (size_t)(line - *data) : 0;
    if (n == 0 || n >= 1024 || memchr(*data, '\0', n)) return false;
    memcpy(type, *data, n);
    type[n] = '\0';
    if (!multipart_is_form(type)) return false;
    *data += n + 1;
    *size -= n + 1;
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static gateway_config *one, *all; /* parsed once; reachable to the end, so no leak */
    char type[1024];
    bool form = take_type(&data, &size, type);
    char *body = malloc(size ? size : 1); /* exact, so that a byte too far is seen */
    if (!one) one = configure(MODELS HOME);
    if (!all) all = configure(MODELS HOME "  - name: other\n" STAGES KINDS LISTENS);
    if (!body) return 0;
    memcpy(body, data, size);
    if (one) parse(one, form ? type : NULL, body, size);
    if (all) parse(all, form ? type : NULL, body, size);
    free(body);
    return 0;
}
