/* conf_read.c: a family's description and a file -> model_config, and back; see conf.h. */
#include "json/json.h"
#include "model/config/conf.h"

/* ---- end of text ------------------------------------------------------------------------------------ */

static int add_eos(conf *s, model_config *c, int64_t id)
{
    if (id < 0 || (uint64_t)id >= c->n_vocab)
        return conf_fail(s, s->g ? SHOAL_EFORMAT : SHOAL_EINVALID,
                         "the end-of-text id (\"eos_token_id\") %lld is outside the vocabulary of %zu",
                         (long long)id, c->n_vocab);
    for (size_t i = 0; i < c->n_eos; i++)
        if (c->eos_ids[i] == id) return 0;
    if (c->n_eos == sizeof c->eos_ids / sizeof *c->eos_ids)
        return conf_fail(s, SHOAL_ELIMIT, "more than %zu end-of-text ids", c->n_eos);
    c->eos_ids[c->n_eos++] = (int32_t)id;
    return 0;
}

static int read_json_eos(conf *s, model_config *c)
{
    const json_t *v = json_object_get(s->files->generation, "eos_token_id");
    if (!v || json_is_null(v)) v = conf_json(s, "eos_token_id");
    if (!v || json_is_null(v)) v = json_object_get(s->files->config, "eos_token_id");
    if (!v || json_is_null(v)) return 0;
    if (!json_is_array(v)) return add_eos(s, c, json_is_integer(v) ? json_integer_value(v) : -1);
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < json_array_size(v); i++) {
        const json_t *id = json_array_get(v, i);
        rc = add_eos(s, c, json_is_integer(id) ? json_integer_value(id) : -1);
    }
    return rc;
}

static int read_gguf_eos(conf *s, model_config *c)
{
    static const char *const keys[] = {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                                       "tokenizer.ggml.eom_token_id"};
    size_t n = 0;
    const void *list = NULL;
    int rc = gguf_get_array(s->g, "shoal.eos_token_ids", GGUF_I32, &n, &list, s->err);
    for (size_t i = 0; rc == 0 && i < n; i++) rc = add_eos(s, c, ((const int32_t *)list)[i]);
    for (size_t i = 0; rc == 0 && !list && i < sizeof keys / sizeof *keys; i++) {
        int64_t id = -1;
        rc = conf_int(s, keys[i], NULL, -1, UINT32_MAX, &id);
        if (rc == 0 && id >= 0 && id != UINT32_MAX) rc = add_eos(s, c, id);
    }
    return rc;
}

static bool writes_text(const model_config *c)
{
    return c->task == TASK_GENERATE || c->task == TASK_SEQ2SEQ || c->task == TASK_TRANSCRIBE;
}

/* ---- all of it -------------------------------------------------------------------------------------- */

static void settle_heads(model_config *c)
{
    if (c->attn.n_head == 0) return;
    if (c->attn.head_dim == 0 && c->n_embd % c->attn.n_head == 0)
        c->attn.head_dim = c->n_embd / c->attn.n_head;
    if (c->attn.n_head_kv == 0) c->attn.n_head_kv = c->attn.n_head;
}

static int read_tied(conf *s, model_config *c)
{
    bool decodes = s->def->tasks & CAN(TASK_GENERATE);
    if (c->task == TASK_EMBED && decodes) c->tied = true; /* what follows the last norm is left out */
    if (!writes_text(c) && c->task != TASK_FILL_MASK) return 0;
    if (!s->g) return conf_bool(s, NULL, "tie_word_embeddings", &c->tied);
    c->tied = !conf_tensor(s, "output.weight");
    return 0;
}

static int conf_read_read_all(conf *s, model_config *c)
{
    const tensor *embd = conf_tensor(s, "token_embd.weight");
    if (embd) c->n_vocab = embd->dims[1];
    int rc = conf_task_read(s, c);
    if (rc == 0) rc = conf_rows_read(s, c);
    if (rc != 0) return rc;
    settle_heads(c);
    rc = conf_rows_again(s, c);
    if (rc == 0) rc = read_tied(s, c);
    if (rc == 0 && s->def->rope) rc = conf_rope_read(s, c);
    if (rc == 0) rc = conf_head_read(s, c);
    if (rc == 0) rc = conf_layers_read(s, c);
    if (rc == 0 && s->def->finish) rc = s->def->finish(s, c);
    if (rc == 0 && writes_text(c)) rc = s->g ? read_gguf_eos(s, c) : read_json_eos(s, c);
    if (rc == 0 && writes_text(c)) conf_sampling_read(s, c);
    return rc;
}

/* A list of layers that are all alike is none. */
static void forget_plain_layers(model_config *c)
{
    for (size_t i = 0; c->layers && i < c->n_layer; i++)
        if (c->layers[i] != 0) return;
    c->layers = NULL;
}

int conf_read(conf *s, model_config *ret)
{
    model_config c = s->def->base;
    c.arch = s->def;
    int rc = conf_read_read_all(s, &c);
    if (rc != 0) return s->g ? rc : err_prefix(s->err, rc, "%s", s->what);
    rc = arch_check_config(&c, s->what, s->err);
    if (rc == 0) forget_plain_layers(&c);
    if (rc == 0) *ret = c;
    return rc;
}

void conf_write(gguf_out *o, const model_config *c)
{
    conf_rows_write(o, c);
    if (c->arch->rope) conf_rope_write(o, c);
    if (writes_text(c) && c->n_eos) gguf_out_array(o, "shoal.eos_token_ids", GGUF_I32, c->eos_ids, c->n_eos);
    conf_head_write(o, c);
    conf_layers_write(o, c);
    conf_sampling_write(o, c);
    if (c->arch->write) c->arch->write(o, c);
}
