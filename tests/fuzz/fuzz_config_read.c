/* shoal.yaml from hostile bytes: parsed or refused with a sentence, never anything else. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "config/config.h"
#include "pipeline/pipeline.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A pipeline that was accepted must be judged and expanded without surprises, whatever it says. */
static void use(const config_pipeline *p)
{
    stage_fact *facts = calloc(p->n_stages, sizeof *facts);
    pipeline_facts f = {.input = "turn on the kitchen light",
                        .devices = p->devices,
                        .n_devices = p->n_devices,
                        .context = "",
                        .stages = facts};
    for (unsigned i = 0; facts && i < p->n_stages; i++) facts[i].label = facts[i].text = "";
    for (unsigned i = 0; facts && i < p->n_stages; i++) {
        buf b = {0};
        if (pipeline_judge(p, i, &f, &b) == STAGE_WAIT) abort(); /* all earlier ones are settled */
        facts[i].state = STAGE_DONE;
        facts[i].label = "iot_hue_lighton";
        if (p->stages[i].system) pipeline_expand(p, p->stages[i].system, &f, &b);
        if (p->stages[i].prompt) pipeline_expand(p, p->stages[i].prompt, &f, &b);
        if (p->stages[i].input) pipeline_expand(p, p->stages[i].input, &f, &b);
        buf_done(&b);
    }
    free(facts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    shoal_err err = {0};
    gateway_config *c = NULL;
    int rc = config_parse(&c, (const char *)data, size, "fuzz.yaml", &err);
    if ((rc == 0) != (c != NULL) || (rc && !err.message[0])) abort();
    if (!rc)
        for (size_t i = 0; i < c->n_pipelines; i++) use(&c->pipelines[i]);
    config_free(c);
    return 0;
}
