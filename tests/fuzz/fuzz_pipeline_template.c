/* A template, a line, and below it what is filled in: as input, and as JSON of an earlier stage. What the
 * check lets pass can be filled in, and stays text where it was text. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "json/json.h"
#include "base/utf8.h"
#include "memory.h"
#include "pipeline/pipeline_template.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fill_in(const config_pipeline *p, const char *input, const json_t *value)
{
    buf out = {0};
    stage_fact f[3] = {{.state = STAGE_DONE, .label = "l", .text = input, .value = value},
                       {.state = STAGE_DONE, .label = "", .text = input, .value = value},
                       {.label = "", .text = ""}};
    pipeline_facts facts = {.input = input, .context = "c", .stages = f};
    holds(pipeline_expand(p, p->stages[2].prompt, &facts, &out) == 0);
    if (utf8_valid(input, strlen(input), NULL) &&
        utf8_valid(p->stages[2].prompt, strlen(p->stages[2].prompt), NULL) &&
        !utf8_valid(out.data ? out.data : "", out.len, NULL))
        abort();
    buf_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    if (!text) return 0;
    memcpy(text, data, size);
    text[size] = 0;
    char *input = strchr(text, '\n');
    if (input) *input++ = 0;
    config_stage stages[3] = {
        {.name = "t", .kind = &STAGE_KINDS[STAGE_TAG], .model = "m"},
        {.name = "g", .kind = &STAGE_KINDS[STAGE_CLASSIFY], .model = "m"},
        {.name = "r", .kind = &STAGE_KINDS[STAGE_GENERATE], .model = "m", .prompt = text}};
    config_pipeline p = {.name = "p", .stages = stages, .n_stages = 3};
    json_t *value = NULL;
    if (input && pipeline_check(&p, "", NULL) == 0) {
        json_parse(&value, input, strlen(input), "fuzz", NULL);
        fill_in(&p, input, value);
    }
    json_decref(value);
    free(text);
    return 0;
}
