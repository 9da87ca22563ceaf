/* backend_model.c: see backend_model.h. */
#include "backend/backend_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "logging/log.h"
#include "base/sha256.h"
#include "base/sys.h"
#include "model/packed/regroup.h"

/* Vocabularies of equal digest mean the same by every id. */
static int digest_vocabulary(const tokenizer *t, char ret_hex[65], shoal_err *err)
{
    sha256 *h = sha256_new();
    sha256_digest d;
    if (!h) return err_nomem(err);
    for (size_t i = 0, n = tokenizer_vocab_size(t); i < n; i++) {
        size_t len = 0;
        bool special = false;
        const char *text = tokenizer_bytes(t, (int32_t)i, &len, &special);
        uint64_t head = (uint64_t)len << 1 | special;
        sha256_add(h, &head, sizeof head);
        if (text) sha256_add(h, text, len);
    }
    sha256_end(h, &d);
    sha256_hex(&d, ret_hex);
    return 0;
}

/* A syntax that is guessed is better known before calls are missed. */
static void log_tool_syntax(const backend_model *b)
{
    const chat_template *t = model_chat_template(b->m);
    if (!t) return;
    if (model_chat_template_is_default(b->m))
        LOG(LOG_WARN, "worker", "default_chat_template", LOG_S("model", b->name),
            LOG_S("notice",
                  "its files bring no chat template: messages are written as lines of \"User: ...\", and a "
                  "model that was not trained for talk may reply with anything"));
    if (chat_template_calls_source(t) == CALLS_UNKNOWN)
        LOG(LOG_WARN, "worker", "tool_syntax_unknown", LOG_S("model", b->name),
            LOG_S(
                "notice",
                "the chat template has tools, but writes calls in no syntax that is known: calls are read as "
                "<tool_call>{\"name\": ..., \"arguments\": ...}</tool_call>, others stay text"));
    else
        LOG(LOG_INFO, "worker", "tool_syntax", LOG_S("model", b->name),
            LOG_S("syntax", chat_template_calls_label(t, NULL)));
}

static int backend_model_take(backend_model *b, backend_source *s, shoal_err *err)
{
    const model *m;
    int rc = backend_source_model(s, &m, err);
    b->m = s->model;
    s->model = NULL;
    b->name = strdup(s->o->name);
    b->path = strdup(s->o->path);
    return rc || (b->name && b->path) ? rc : err_nomem(err);
}

/* Answers of regrouped weights are told apart from the others. */
static int make_digests(backend_model *b, backend_digests *ret, shoal_err *err)
{
    int rc = model_digest(b->m, &ret->file, err);
    ret->identity = ret->file;
    if (rc == 0) rc = regroup_identity(b->m, &ret->identity, err);
    if (rc == 0) sha256_hex(&ret->identity, b->identity);
    return rc;
}

int backend_model_open(backend_model *ret, backend_source *s, backend_digests *ret_digests, shoal_err *err)
{
    *ret = (backend_model){0};
    int rc = backend_model_take(ret, s, err);
    if (rc == 0) rc = model_check_text(ret->m, err);
    if (rc == 0) rc = make_digests(ret, ret_digests, err);
    if (rc != 0) return rc;
    const tokenizer *t = model_tokenizer(ret->m);
    if (t && (rc = digest_vocabulary(t, ret->vocabulary, err)) != 0) return rc;
    if (model_notice(ret->m))
        LOG(LOG_WARN, "worker", "model_notice", LOG_S("model", ret->name),
            LOG_S("notice", model_notice(ret->m)));
    log_tool_syntax(ret);
    ret->facts = backend_facts_of(ret->m, ret->path);
    return 0;
}

void backend_model_close(backend_model *b)
{
    model_free(b->m);
    free(b->name);
    free(b->path);
    *b = (backend_model){0};
}

void backend_model_describe(const backend_model *b, backend_about *ret)
{
    const model_config *c = model_get_config(b->m);
    ret->task = c->task;
    ret->architecture = arch_name(c->arch);
    ret->version = model_version(b->m);
    ret->quantisation = model_file_type(b->m);
    ret->vocabulary = b->vocabulary;
    ret->facts = b->facts;
    ret->config = c;
    ret->tokenizer = model_tokenizer(b->m);
    ret->no_tokenizer = model_tokenizer_error(b->m);
    ret->chat_template = model_chat_template(b->m);
    ret->default_chat_template = model_chat_template_is_default(b->m);
    ret->no_chat_template = model_chat_template_error(b->m);
    ret->quotes_results = model_quotes_results(b->m);
    ret->sampling = c->sampling;
    ret->n_threads = b->n_threads;
    if (*b->precision) ret->precision = b->precision;
    ret->exact_resume = true;
}

/* ",template=DIGEST" of a template that the file's digest does not know. */
static void name_template(const model *m, char ret[24])
{
    sha256_digest d;
    char hex[65];
    *ret = '\0';
    if (!model_chat_template_is_beside(m)) return;
    const char *source = chat_template_source(model_chat_template(m));
    sha256_of(source, strlen(source), &d);
    sha256_hex(&d, hex);
    snprintf(ret, 24, ",template=%.12s", hex);
}

void backend_model_precision(backend_model *b, const backend_options *o)
{
    char kept[32] = "", wire[32] = "", template[24];
    kv_type t = o->engine.kv_type;
    if (net_kv_type_deviates(b->m, t)) snprintf(kept, sizeof kept, ",kv=%s", kv_type_name(t));
    if (o->n_stages > 0 && o->wire != ROWS_F32)
        snprintf(wire, sizeof wire, ",wire=%.8s@%zu", rows_wire_name(o->wire), o->layers.end);
    name_template(b->m, template);
    snprintf(b->precision, sizeof b->precision, BIT_IDENTITY_FILE "%.24s%.30s%s", kept, wire, template);
}

int backend_model_is_for(backend_source *s, model_task task, shoal_err *err)
{
    const model *m;
    int rc = backend_source_model(s, &m, err);
    return rc ? rc : model_get_config(m)->task == task;
}

int backend_model_threads(backend_model *b, const engine_options *o)
{
    b->n_threads = o->n_threads > 0 ? o->n_threads : sys_core_count();
    return b->n_threads;
}
