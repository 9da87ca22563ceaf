/* serve_banner.c: see serve_banner.h. A command for the first model of each task, and one for the first pipeline. */
#include "serve/serve_banner.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command/cli_model.h"
#include "converse/pipeline_calls.h"
#include "serve/serve_address.h"
#include "tasks/task.h"

enum { MODELS_SHOWN = 8 };

/* ---- what is served --------------------------------------------------------------------------------- */

/* 131072 as "131,072". */
static void put_number(buf *out, unsigned n)
{
    if (n >= 1000) {
        put_number(out, n / 1000);
        buf_printf(out, ",%03u", n % 1000);
    } else {
        buf_printf(out, "%u", n);
    }
}

static const char *task_of(const serve_banner_model *m)
{
    return task_effective(m->info->task, m->info->n_labels);
}

static void put_model(buf *out, const serve_banner_model *m)
{
    const Shoal__V1__ModelInfo *info = m->info;
    buf_printf(out, "  %-24s %s", m->name, task_of(m));
    if (info->n_ctx) {
        buf_puts(out, ", context ");
        put_number(out, info->n_ctx);
        bool shorter = *info->longer_by && info->n_ctx_model > info->n_ctx;
        if (shorter) {
            buf_puts(out, " of ");
            put_number(out, info->n_ctx_model);
        }
        buf_puts(out, " tokens");
        if (shorter)
            buf_printf(out, " (for more: %s)",
                       strcmp(info->longer_by, "kv_mb") == 0 ? "--kv-mb, or kv_mb of shoal.yaml"
                                                             : "--context, or context of shoal.yaml");
    }
    buf_puts(out, info->default_chat_template ? ", default chat template\n" : "\n");
}

/* ---- what to try ------------------------------------------------------------------------------------ */

typedef struct sample {
    const char *task;
    task_endpoint_id at;
    const char *body; /* behind "model" in the JSON; NULL: a form with `file` */
    const char *file; /* of the form */
} sample;

static const sample SAMPLES[] = {
    {"generate", ASK_CHAT, "\"messages\": [{\"role\": \"user\", \"content\": \"Hello\"}]", NULL},
    {"seq2seq", ASK_COMPLETION, "\"prompt\": \"Good morning\"", NULL},
    {"classify", ASK_CLASSIFY, "\"input\": \"will it rain tomorrow\"", NULL},
    {"tag", ASK_TAG, "\"input\": \"wake me up at seven\"", NULL},
    {"embed", ASK_EMBED, "\"input\": \"good morning\"", NULL},
    {"rerank", ASK_RERANK,
     "\"query\": \"who makes coffee?\", \"documents\": [\"the kettle\", \"the barista\"]", NULL},
    {"fill-mask", ASK_FILL_MASK, "\"input\": \"Paris is the [MASK] of France.\"", NULL},
    {"transcribe", ASK_TRANSCRIBE, NULL, "speech.wav"},
    {"vad", ASK_VAD, NULL, "speech.wav"},
    {"classify-image", ASK_IMAGE, NULL, "picture.jpg"},
    {"score", ASK_SCORE, NULL, "table.csv"},
};

static void put_curl(buf *out, const serve_banner *b, const sample *s, const char *model)
{
    const char *path = TASK_ENDPOINTS[s->at].path;
    if (s->body)
        buf_printf(
            out, "  curl %s%s -H 'content-type: application/json' \\\n       -d '{\"model\": \"%s\", %s}'\n",
            b->url, path, model, s->body);
    else if (s->at == ASK_SCORE)
        buf_printf(out, "  curl '%s%s?model=%s' -H 'content-type: text/csv' --data-binary @%s\n", b->url,
                   path, model, s->file);
    else
        buf_printf(out, "  curl %s%s -F model=%s -F file=@%s\n", b->url, path, model, s->file);
}

/* The first pipeline that is a chat model; NULL: none is. */
static const config_pipeline *chat_pipeline_of(const gateway_config *c)
{
    for (unsigned i = 0; i < c->n_pipelines; i++)
        if (pipeline_calls_find(c, c->pipelines[i].name)) return &c->pipelines[i];
    return NULL;
}

/* A model that is for few requests, as the manifest says, is not greeted: `shoal chat` tells what it takes. Nor is it
 * offered beside a pipeline to chat with. */
static void put_sample(buf *out, const serve_banner *b, const sample *s)
{
    const serve_banner_model *m = NULL;
    for (size_t i = 0; !m && i < b->n_models; i++)
        if (strcmp(task_of(&b->models[i]), s->task) == 0) m = &b->models[i];
    if (!m) return;
    bool talks = s->at == ASK_CHAT;
    if (talks && m->use && chat_pipeline_of(b->config)) return;
    if (talks) buf_printf(out, "  %s chat %s --server %s\n", b->program, m->name, b->url);
    if (talks && m->use) return;
    if (talks) buf_printf(out, "  %s run %s --server %s \"Hello\"\n", b->program, m->name, b->url);
    put_curl(out, b, s, m->name);
}

/* What a request brings beside its text: an option of shoal process; NULL: nothing. */
static const char *medium_of(const config_pipeline *p)
{
    unsigned gives = 0;
    for (unsigned i = 0; i < p->n_stages; i++) gives |= p->stages[i].kind->gives;
    return gives & READS_AUDIO   ? "--audio speech.wav"
           : gives & READS_IMAGE ? "--image picture.jpg"
           : gives & READS_CSV   ? "--csv table.csv"
                                 : NULL;
}

/* "turn on the kitchen light", of the first device that is one to turn on. */
static void put_request(buf *out, const config_pipeline *p)
{
    static const char *const kinds[] = {"light.", "switch.", "fan."};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        for (unsigned i = 0; i < p->n_devices; i++) {
            const config_device *d = &p->devices[i];
            if (strncmp(d->id, kinds[k], strlen(kinds[k])) != 0 || strpbrk(d->name, "\"\\$`!")) continue;
            buf_puts(out, "\"turn on the ");
            for (const char *c = d->name; *c; c++) buf_putc(out, (char)tolower((unsigned char)*c));
            buf_puts(out, "\"\n");
            return;
        }
    }
    buf_puts(out, "\"good morning\"\n");
}

static void put_pipeline(buf *out, const serve_banner *b)
{
    const gateway_config *c = b->config;
    if (c->n_pipelines == 0) return;
    const config_pipeline *p = &c->pipelines[0];
    const char *medium = medium_of(p);
    buf_printf(out, "  %s process --server %s ", b->program, b->url);
    if (c->n_pipelines > 1) buf_printf(out, "--pipeline %s ", p->name);
    if (medium)
        buf_printf(out, "%s\n", medium);
    else
        put_request(out, p);
    p = chat_pipeline_of(c);
    if (p) buf_printf(out, "  %s chat %s --server %s\n", b->program, p->name, b->url);
}

static void put_uses(buf *out, const serve_banner *b)
{
    for (size_t i = 0; i < b->n_models; i++)
        if (b->models[i].use && strcmp(task_of(&b->models[i]), "generate") == 0)
            buf_printf(out, "\n%s is for %s.", b->models[i].name, b->models[i].use);
}

void serve_banner_put(buf *out, const serve_banner *b)
{
    bool browser = strncmp(b->url, "unix:", 5) != 0;
    for (size_t i = 0; i < b->n_models && i < MODELS_SHOWN; i++) put_model(out, &b->models[i]);
    if (b->n_models > MODELS_SHOWN)
        buf_printf(out, "  and %zu more: %s ps --server %s\n", b->n_models - MODELS_SHOWN, b->program,
                   b->url);
    if (browser) buf_printf(out, "\nSee it, and try it, in a browser: %s\n", b->url);
    if (b->n_models + b->config->n_pipelines > 0) buf_puts(out, "\nTry\n");
    put_pipeline(out, b);
    for (size_t i = 0; i < sizeof SAMPLES / sizeof *SAMPLES; i++) {
        if (browser || SAMPLES[i].at == ASK_CHAT) put_sample(out, b, &SAMPLES[i]);
    }
    if (b->n_models == 0)
        buf_printf(out, "\nNo model is served yet: %s load MODEL --server %s\n", b->program, b->url);
    put_uses(out, b);
    buf_puts(out, "\nCtrl-C stops it.\n");
}

/* ---- of what is ready ------------------------------------------------------------------------------- */

void serve_banner_print(const char *url, const gateway_config *c, const registry *g)
{
    char program[4096];
    buf out = {0};
    serve_banner_model *models = calloc(c->n_models + 1, sizeof *models);
    serve_banner b = {.program = program, .url = url, .config = c, .models = models};
    serve_program(program, sizeof program);
    for (size_t i = 0; models && i < c->n_models; i++) {
        const replica_set *set = registry_find(g, c->models[i].name);
        const Shoal__V1__ModelInfo *info = NULL;
        for (size_t k = 0; set && !info && k < set->n; k++)
            if (set->replicas[k]->state == REPLICA_READY) info = set->replicas[k]->info;
        if (!info) continue;
        char *use = c->models[i].path ? NULL : cli_model_use(c->models[i].name, c->manifest);
        models[b.n_models++] = (serve_banner_model){.name = c->models[i].name, .info = info, .use = use};
    }
    if (models) serve_banner_put(&out, &b);
    if (!out.failed && out.data) fputs(out.data, stdout);
    for (size_t i = 0; i < b.n_models; i++) free((void *)models[i].use);
    free(models);
    buf_done(&out);
}
