/* shoal.yaml from hostile bytes: parsed or refused with a sentence, never anything else. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/config.h"
#include "config/config_put.h"
#include "pipeline/pipeline.h"
#include "rules/home.h"

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

static bool has_huge_seed(const gateway_config *c)
{
    for (size_t i = 0; i < c->n_pipelines; i++)
        for (unsigned k = 0; k < c->pipelines[i].n_stages; k++)
            if (c->pipelines[i].stages[k].seed > INT64_MAX) return true;
    return false;
}

static bool print(buf *out, const gateway_config *c)
{
    json_t *tree = NULL;
    if (config_to_json(&tree, c, false, NULL) != 0) return false;
    config_put_yaml(out, tree);
    json_decref(tree);
    return !out->failed;
}

/* What was accepted can be printed, and what is printed reads as the same. */
static void read_again(const gateway_config *c)
{
    buf a = {0}, b = {0};
    gateway_config *again = NULL;
    shoal_err err = {0};
    if (has_huge_seed(c) || !print(&a, c) || a.len > 1u << 20) {
        buf_done(&a);
        return;
    }
    int rc = config_parse(&again, &HOME_STAGES, a.data, a.len, "again.yaml", &err);
    bool printed = rc == 0 && print(&b, again);
    if ((rc != 0 && rc != SHOAL_ENOMEM) || (printed && strcmp(a.data, b.data) != 0)) {
        fprintf(stderr, "%s\n%s\n---\n%s\n", err.message, a.data, b.data ? b.data : "");
        abort();
    }
    config_free(again);
    buf_done(&a);
    buf_done(&b);
}

/* All that is wrong: in the order of lines, with what would be told first, and nothing where all is right. */
static void read_all(const char *text, size_t size, int rc_first, const shoal_err *first)
{
    config_faults all = {0};
    gateway_config *c = NULL;
    shoal_err err = {0};
    int rc = config_parse_all(&c, &HOME_STAGES, text, size, "fuzz.yaml", &all, &err);
    bool no_memory = rc == SHOAL_ENOMEM || rc_first == SHOAL_ENOMEM,
         same = all.n == 0 || all.n == CONFIG_FAULTS_MAX;
    config_faults_sort(&all);
    for (size_t i = 0; i < all.n; i++) same |= strcmp(all.list[i].sentence, first->message) == 0;
    for (size_t i = 1; i < all.n; i++)
        if (all.list[i].line < all.list[i - 1].line) abort();
    if (!no_memory && ((rc == 0) != (rc_first == 0) || !same || (rc == 0 && all.n > 0))) abort();
    if (rc == 0) config_free(c);
    config_faults_done(&all);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    shoal_err err = {0};
    gateway_config *c = NULL;
    int rc = config_parse(&c, &HOME_STAGES, (const char *)data, size, "fuzz.yaml", &err);
    if ((rc == 0) != (c != NULL) || (rc && !err.message[0])) abort();
    read_all((const char *)data, size, rc, &err);
    if (!rc)
        for (size_t i = 0; i < c->n_pipelines; i++) use(&c->pipelines[i]);
    if (!rc) read_again(c);
    config_free(c);
    return 0;
}
