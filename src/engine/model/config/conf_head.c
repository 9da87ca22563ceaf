/* conf_head.c: what a model is for, and the head that does it: labels of a classifier, pooling of an
 * embedder. */
#include <stdlib.h>
#include <string.h>

#include "json/json.h"
#include "model/config/conf.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))
enum { LABELS_MAX = 65536 };

/* ---- task ------------------------------------------------------------------------------------------- */

/* By the end of the class in "architectures"; the first that the family can do. */
static const struct {
    const char *ending;
    model_task task;
} heads[] = {
    {"ForCausalLM", TASK_GENERATE},
    {"LMHeadModel", TASK_GENERATE},
    {"LMHeadModel", TASK_SEQ2SEQ},
    {"ForSequenceClassification", TASK_CLASSIFY},
    {"ForSequenceClassification", TASK_SCORE},
    {"KeywordSpotter", TASK_SCORE},
    {"ForTokenClassification", TASK_TAG},
    {"ForMaskedLM", TASK_FILL_MASK},
    {"ElectraForPreTraining", TASK_EMBED}, /* a discriminator: its head only trains */
    {"ForPreTraining", TASK_FILL_MASK},
    {"ForPreTraining", TASK_EMBED},
    {"ForConditionalGeneration", TASK_SEQ2SEQ},
    {"ForConditionalGeneration", TASK_TRANSCRIBE},
    {"ForConditionalGeneration", TASK_GENERATE}, /* the text part of a model for pictures, too */
    {"MTModel", TASK_SEQ2SEQ},
    {"ForImageClassification", TASK_IMAGE},
    {"Model", TASK_EMBED},
};

static bool can(const arch_def *a, model_task t)
{
    return (a->tasks & CAN(t)) != 0;
}

/* Encoders, and decoders where a file says how their rows are pooled. */
static bool can_pool(const arch_def *a)
{
    return can(a, TASK_EMBED) || can(a, TASK_GENERATE);
}

static bool conf_head_ends_with(const char *s, const char *ending)
{
    size_t n = strlen(s), k = strlen(ending);
    return n >= k && strcmp(s + n - k, ending) == 0;
}

static bool task_of_class(const arch_def *a, const char *class, model_task *ret)
{
    for (size_t i = 0; i < COUNT(heads); i++) {
        if (!conf_head_ends_with(class, heads[i].ending) || !can(a, heads[i].task)) continue;
        *ret = heads[i].task;
        return true;
    }
    return false;
}

/* "BartModel": without an embedder's task it names the whole network, which is all that its own task needs.
 */
static bool is_bare(const arch_def *a, const char *class)
{
    return !can(a, TASK_EMBED) && conf_head_ends_with(class, "Model") &&
           !conf_head_ends_with(class, "EncoderModel");
}

static int read_class(conf *s, model_config *c)
{
    const char *class =
        json_string_value(json_array_get(json_object_get(s->files->config, "architectures"), 0));
    bool pools = can_pool(s->def) && (s->files->pooling || s->files->st_pooling);
    bool known = class && (task_of_class(s->def, class, &c->task) || is_bare(s->def, class));
    /* sentence-transformers folders may keep the name of the head the network was trained with. */
    if (pools && (!known || c->task == TASK_FILL_MASK || c->task == TASK_GENERATE)) c->task = TASK_EMBED;
    if (!class || known || pools) return 0;
    return conf_fail(s, SHOAL_EUNSUPPORTED, "the head \"%.60s\" is not supported for %s", class,
                     arch_name(s->def));
}

int conf_task_read(conf *s, model_config *c)
{
    const char *task = NULL;
    c->task = s->def->task;
    if (!s->g) return read_class(s, c);
    if (can(s->def, TASK_CLASSIFY) && conf_tensor(s, "cls.output.weight")) c->task = TASK_CLASSIFY;
    int64_t pooled = 0; /* 1 mean, 2 first token, 3 last */
    int rc = conf_str(s, "shoal.task", NULL, &task);
    if (rc == 0 && can(s->def, TASK_GENERATE)) rc = conf_int(s, "pooling_type", NULL, 0, UINT32_MAX, &pooled);
    if (rc == 0 && !task && pooled >= 1 && pooled <= 3) c->task = TASK_EMBED;
    if (rc != 0 || !task) return rc;
    if (strcmp(task, task_name(TASK_RERANK)) == 0) task = task_name(TASK_CLASSIFY); /* of one label */
    if (task_parse(task, &c->task) && (can(s->def, c->task) || (c->task == TASK_EMBED && can_pool(s->def))))
        return 0;
    return conf_fail(s, SHOAL_EUNSUPPORTED, "the task \"%.40s\" is not supported for %s", task,
                     arch_name(s->def));
}

static bool has_labels(model_task t)
{
    return t == TASK_CLASSIFY || t == TASK_TAG || t == TASK_IMAGE || t == TASK_SCORE;
}

/* ---- labels ----------------------------------------------------------------------------------------- */

static int make_labels(conf *s, model_config *c, size_t n)
{
    c->head.n_labels = n;
    c->head.labels = arena_alloc(s->mem, n * sizeof *c->head.labels + 1);
    return c->head.labels ? 0 : err_nomem(s->err);
}

static int number_labels(conf *s, model_config *c, size_t n)
{
    int rc = make_labels(s, c, n);
    for (size_t i = 0; rc == 0 && i < n; i++)
        if (!(c->head.labels[i] = arena_printf(s->mem, "LABEL_%zu", i))) rc = err_nomem(s->err);
    return rc;
}

static int label_index(const char *key, size_t n, size_t *ret)
{
    char *end;
    unsigned long v = strtoul(key, &end, 10);
    if (*key < '0' || *key > '9' || *end || v >= n) return SHOAL_EINVALID;
    *ret = v;
    return 0;
}

static int read_id2label(conf *s, model_config *c, json_t *map)
{
    size_t n = json_object_size(map), i;
    const char *key;
    json_t *v;
    if (n == 0 || n > LABELS_MAX)
        return conf_fail(s, SHOAL_EINVALID, "\"id2label\" has %zu labels; 1 to %d are allowed", n,
                         LABELS_MAX);
    int rc = make_labels(s, c, n);
    if (rc != 0) return rc;
    json_object_foreach(map, key, v)
    {
        if (label_index(key, n, &i) != 0 || c->head.labels[i])
            return conf_fail(s, SHOAL_EINVALID,
                             "\"id2label\" has the key \"%.40s\"; its %zu keys must be 0 to %zu", key, n,
                             n - 1);
        const char *label = json_string_value(v);
        if (!label || strlen(label) != json_string_length(v))
            return conf_fail(s, SHOAL_EINVALID, "\"id2label\" entry %zu is no plain string", i);
        if (!(c->head.labels[i] = arena_strdup(s->mem, label))) return err_nomem(s->err);
    }
    return 0;
}

static int read_json_labels(conf *s, model_config *c)
{
    json_t *map = json_object_get(s->json, "id2label");
    const char *problem = "";
    size_t n = 2; /* the reference's default when a configuration names no labels */
    int rc = conf_str(s, NULL, "problem_type", &problem);
    if (rc != 0) return rc;
    c->head.multi_label = strcmp(problem, "multi_label_classification") == 0;
    if (json_is_object(map)) return read_id2label(s, c, map);
    rc = conf_size(s, NULL, "num_labels", 1, LABELS_MAX, &n);
    return rc != 0 ? rc : number_labels(s, c, n);
}

static int read_gguf_labels(conf *s, model_config *c)
{
    const char *const *strings = NULL;
    const size_t *lens = NULL;
    char key[96];
    const tensor *out = conf_tensor(s, "cls.output.weight");
    size_t n = 0, n_out = out ? out->dims[1] : 0;
    conf_key(s->def, "classifier.output_labels", key);
    int rc = gguf_get_strings(s->g, key, &n, &strings, &lens, s->err);
    if (rc == 0) rc = conf_bool(s, "shoal.multi_label", NULL, &c->head.multi_label);
    if (rc != 0) return rc;
    if (n_out > LABELS_MAX || (strings && n != n_out))
        return conf_fail(s, SHOAL_EFORMAT, "%zu labels for a classifier of %zu outputs", n, n_out);
    if (!strings) return number_labels(s, c, n_out);
    rc = make_labels(s, c, n);
    for (size_t i = 0; rc == 0 && i < n; i++)
        if (!(c->head.labels[i] = arena_strndup(s->mem, strings[i], lens[i]))) rc = err_nomem(s->err);
    return rc;
}

/* ---- pooling ---------------------------------------------------------------------------------------- */

static const char *const pool_names[] = {[POOL_MEAN] = "mean", [POOL_CLS] = "cls", [POOL_LAST] = "last"};

static int parse_pooling(conf *s, model_config *c, const char *mode)
{
    if (strcmp(mode, "lasttoken") == 0) mode = "last";
    for (size_t i = 0; i < COUNT(pool_names); i++) {
        if (strcmp(pool_names[i], mode) != 0) continue;
        c->head.pool = (pooling)i;
        return 0;
    }
    return conf_fail(s, SHOAL_EUNSUPPORTED, "pooling \"%.40s\" is not supported (mean, cls and last are)",
                     mode);
}

/* 1_Pooling/config.json: flags in older files, "pooling_mode" in newer ones. */
static int read_st_pooling(conf *s, model_config *c)
{
    static const char *const flags[][2] = {{"pooling_mode_mean_tokens", "mean"},
                                           {"pooling_mode_cls_token", "cls"},
                                           {"pooling_mode_lasttoken", "last"},
                                           {"pooling_mode_max_tokens", "max"},
                                           {"pooling_mode_mean_sqrt_len_tokens", "mean_sqrt_len"},
                                           {"pooling_mode_weightedmean_tokens", "weightedmean"}};
    const json_t *o = s->files->st_pooling;
    const char *mode = NULL;
    int rc = json_is_object(o) ? json_get_str(o, "pooling_mode", &mode, s->err) : 0;
    for (size_t i = 0; rc == 0 && json_is_object(o) && i < COUNT(flags); i++) {
        if (!json_is_true(json_object_get(o, flags[i][0]))) continue;
        if (mode && strcmp(mode, flags[i][1]) != 0)
            return conf_fail(s, SHOAL_EUNSUPPORTED, "pooling \"%.20s\" and \"%s\" together is not supported",
                             mode, flags[i][1]);
        mode = flags[i][1];
    }
    return rc == 0 && mode ? parse_pooling(s, c, mode) : rc;
}

static int read_st_modules(conf *s, model_config *c)
{
    if (!json_is_array(s->files->st_modules)) return 0;
    c->head.normalize = false;
    size_t i;
    json_t *module;
    json_array_foreach((json_t *)s->files->st_modules, i, module)
    {
        const char *type = json_string_value(json_object_get(module, "type"));
        if (type && strstr(type, ".Normalize")) c->head.normalize = true;
        if (type && !strstr(type, ".Normalize") && !strstr(type, ".Transformer") && !strstr(type, ".Pooling"))
            return conf_fail(
                s, SHOAL_EUNSUPPORTED,
                "modules.json has a \"%.60s\" behind the network, which is not supported: without "
                "it the vectors would be others",
                type);
    }
    return 0;
}

/* null and 0 set no limit. */
static int read_st_bert(conf *s, model_config *c)
{
    const json_t *o = s->files->st_bert, *n = json_object_get(o, "max_seq_length");
    int64_t length = 0;
    if (!json_is_object(o) || json_is_null(n)) return 0;
    int rc = json_get_int(o, "max_seq_length", 0, INT32_MAX, &length, s->err);
    if (rc != 0) return err_prefix(s->err, rc, "sentence_bert_config.json");
    c->n_text = (size_t)length < c->n_ctx ? (size_t)length : 0;
    return 0;
}

/* Mean and normalised unless the folder says otherwise. */
static int read_json_pooling(conf *s, model_config *c)
{
    int rc = read_st_pooling(s, c);
    if (rc == 0) rc = read_st_modules(s, c);
    if (rc == 0) rc = read_st_bert(s, c);
    const json_t *p = s->files->pooling, *first = json_object_get(p, "0");
    if (rc != 0 || !json_is_object(p)) return rc;
    const char *mode = NULL;
    if (json_is_object(first)) rc = json_get_str(first, "mode", &mode, s->err);
    if (rc == 0 && mode) rc = parse_pooling(s, c, mode);
    return rc == 0 ? json_get_bool(p, "normalize", &c->head.normalize, s->err) : rc;
}

static int read_gguf_pooling(conf *s, model_config *c)
{
    /* The field's numbers: 0 none (the caller pools; we take the mean), 1 mean, 2 first token, 3 last. */
    static const char *const numbered[] = {"mean", "mean", "cls", "last"};
    const char *mode = NULL;
    int64_t type = 1;
    int rc = conf_str(s, "shoal.pooling", NULL, &mode);
    if (rc == 0) rc = conf_bool(s, "shoal.normalize", NULL, &c->head.normalize);
    if (rc == 0) rc = conf_size(s, "shoal.max_seq_length", NULL, 0, INT32_MAX, &c->n_text);
    if (c->n_text >= c->n_ctx) c->n_text = 0;
    if (rc == 0 && !mode) rc = conf_int(s, "pooling_type", NULL, 0, UINT32_MAX, &type);
    if (rc != 0) return rc;
    if (mode) return parse_pooling(s, c, mode);
    if (type < (int64_t)COUNT(numbered)) return parse_pooling(s, c, numbered[type]);
    return conf_fail(s, SHOAL_EUNSUPPORTED, "pooling of type %lld is not supported (mean, cls and last are)",
                     (long long)type);
}

/* A decoder's tokens see what stands before them; some embedders were trained to see all. */
static int read_causal(conf *s, model_config *c)
{
    bool causal = true, both = false;
    int rc = conf_bool(s, "attention.causal", "is_causal", &causal);
    if (rc == 0) rc = conf_bool(s, NULL, "use_bidirectional_attention", &both);
    c->attn.causal = true;
    if (rc == 0 && (!causal || both))
        rc = conf_fail(s, SHOAL_EUNSUPPORTED,
                       "a decoder that embeds with attention in both directions is not "
                       "supported");
    return rc;
}

int conf_head_read(conf *s, model_config *c)
{
    if (has_labels(c->task)) return s->g ? read_gguf_labels(s, c) : read_json_labels(s, c);
    if (c->task != TASK_EMBED) return 0;
    c->head.pool = POOL_MEAN;
    c->head.normalize = true;
    int rc = can(s->def, TASK_EMBED) ? 0 : read_causal(s, c);
    if (rc != 0) return rc;
    return s->g ? read_gguf_pooling(s, c) : read_json_pooling(s, c);
}

void conf_head_write(gguf_out *o, const model_config *c)
{
    char key[96];
    bool encodes = can(c->arch, TASK_EMBED) || c->task == TASK_EMBED;
    /* The field's pooling numbers; 4: the first token into a classifier. */
    static const uint32_t numbers[] = {[POOL_MEAN] = 1, [POOL_CLS] = 2, [POOL_LAST] = 3};
    uint32_t number = c->task == TASK_CLASSIFY ? 4 : c->task == TASK_EMBED ? numbers[c->head.pool] : 0;
    if (encodes) gguf_out_u32(o, conf_key(c->arch, "pooling_type", key), number);
    if (c->task == TASK_EMBED) {
        gguf_out_str(o, "shoal.pooling", pool_names[c->head.pool]);
        gguf_out_bool(o, "shoal.normalize", c->head.normalize);
        if (c->n_text) gguf_out_u32(o, "shoal.max_seq_length", (uint32_t)c->n_text);
    }
    if (!has_labels(c->task)) return;
    gguf_out_strings(o, conf_key(c->arch, "classifier.output_labels", key), c->head.labels, NULL,
                     c->head.n_labels);
    gguf_out_bool(o, "shoal.multi_label", c->head.multi_label);
}
