/* conf.c: values by name from either kind of file; see conf.h. */
#include "model/config/conf.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "json/json.h"

int conf_fail(const conf *s, int code, const char *fmt, ...)
{
    char text[400];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    /* hf_config.c puts config.json's path in front of all that concerns it. */
    return s->g ? err_set(s->err, code, "%s: %s", s->what, text) : err_set(s->err, code, "%s", text);
}

const char *conf_key(const arch_def *def, const char *key, char out[96])
{
    bool whole = strncmp(key, "shoal.", 6) == 0 || strncmp(key, "tokenizer.", 10) == 0 ||
                 strncmp(key, "general.", 8) == 0;
    snprintf(out, 96, "%s%s%s", whole ? "" : def->name, whole ? "" : ".", key);
    return out;
}

/* The key as the file has it: files of another of the family's names begin their keys with that. */
static const char *file_key(conf *s, const char *key, char out[96])
{
    conf_key(s->def, key, out);
    if (gguf_find(s->g, out) || !s->def->gguf_names) return out;
    const char *arch = s->def->name;
    shoal_err unused;
    gguf_get_str(s->g, "general.architecture", &arch, &unused);
    const bool whole = strncmp(out, s->def->name, strlen(s->def->name)) != 0;
    if (!whole) snprintf(out, 96, "%.40s.%s", arch, key);
    return out;
}

/* Copy the next of `names` to word[64]; returns what is behind it, NULL at the end. */
static const char *next_name(const char *names, char word[64])
{
    size_t n = strcspn(names, " ");
    if (n == 0) return NULL;
    snprintf(word, 64, "%.*s", (int)n, names);
    names += n;
    return names + strspn(names, " ");
}

/* The first of the names that is there, in word[64]; NULL when none is. */
static const json_t *find_json(const conf *s, const char *names, char word[64])
{
    for (const char *p = names; p && (p = next_name(p, word));) {
        const json_t *v = json_object_get(s->json, word);
        if (v && !json_is_null(v)) return v;
    }
    return NULL;
}

const json_t *conf_json(const conf *s, const char *names)
{
    char word[64];
    return s->g ? NULL : find_json(s, names, word);
}

bool conf_has(conf *s, const char *key, const char *json)
{
    char buf[96];
    if (!s->g) return conf_json(s, json) != NULL;
    return key && gguf_find(s->g, file_key(s, key, buf));
}

const tensor *conf_tensor(const conf *s, const char *name)
{
    for (size_t i = 0; s->g && i < s->g->n_tensors; i++)
        if (strcmp(s->g->tensors[i].name, name) == 0) return &s->g->tensors[i];
    return NULL;
}

/* As the file says; 0 when it does not. */
static int64_t layers_told(conf *s)
{
    char key[96];
    int64_t n = 0;
    shoal_err unused;
    return gguf_get_int(s->g, file_key(s, "block_count", key), 1, UINT32_MAX, &n, &unused) == 0 ? n : 0;
}

/* A list of one value for each layer: all that are not 0 must be equal, and 0 be allowed. */
static int get_even_list(conf *s, const char *key, int64_t min, int64_t max, int64_t *ret)
{
    const void *list;
    size_t n = 0;
    const gguf_kv *kv = gguf_find(s->g, key);
    if (kv->elem != GGUF_I32 && kv->elem != GGUF_U32)
        return conf_fail(s, SHOAL_EFORMAT, "\"%s\" must be numbers", key);
    int rc = gguf_get_array(s->g, key, kv->elem, &n, &list, s->err);
    int64_t common = 0, n_layer = layers_told(s);
    if (rc == 0 && (int64_t)n != n_layer)
        return conf_fail(s, SHOAL_EFORMAT, "\"%s\" tells of %zu layers; the model has %lld", key, n,
                         (long long)n_layer);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        int64_t v = kv->elem == GGUF_U32 ? (int64_t)((const uint32_t *)list)[i] : ((const int32_t *)list)[i];
        if (v < min || v > max || (common && v && v != common))
            return conf_fail(s, SHOAL_EUNSUPPORTED, "\"%s\" differs from layer to layer (%lld and %lld)", key,
                             (long long)common, (long long)v);
        if (v) common = v;
    }
    if (rc == 0 && common) *ret = common;
    return rc;
}

int conf_int(conf *s, const char *key, const char *json, int64_t min, int64_t max, int64_t *ret)
{
    char buf[96], word[64];
    if (!s->g)
        return json && find_json(s, json, word) ? json_get_int(s->json, word, min, max, ret, s->err) : 0;
    if (!key) return 0;
    file_key(s, key, buf);
    const gguf_kv *kv = gguf_find(s->g, buf);
    if (kv && kv->type == GGUF_ARRAY) return get_even_list(s, buf, min, max, ret);
    return gguf_get_int(s->g, buf, min, max, ret, s->err);
}

int conf_size(conf *s, const char *key, const char *json, size_t min, size_t max, size_t *ret)
{
    int64_t v = (int64_t)*ret;
    int rc = conf_int(s, key, json, (int64_t)min, (int64_t)max, &v);
    if (rc == 0) *ret = (size_t)v;
    return rc;
}

int conf_num(conf *s, const char *key, const char *json, double min, double max, double *ret)
{
    char buf[96], word[64];
    if (!s->g)
        return json && find_json(s, json, word) ? json_get_num(s->json, word, min, max, ret, s->err) : 0;
    return key ? gguf_get_num(s->g, file_key(s, key, buf), min, max, ret, s->err) : 0;
}

int conf_bool(conf *s, const char *key, const char *json, bool *ret)
{
    char buf[96], word[64];
    if (!s->g) return json && find_json(s, json, word) ? json_get_bool(s->json, word, ret, s->err) : 0;
    return key ? gguf_get_bool(s->g, file_key(s, key, buf), ret, s->err) : 0;
}

int conf_str(conf *s, const char *key, const char *json, const char **ret)
{
    char buf[96], word[64];
    if (!s->g) return json && find_json(s, json, word) ? json_get_str(s->json, word, ret, s->err) : 0;
    return key ? gguf_get_str(s->g, file_key(s, key, buf), ret, s->err) : 0;
}

int conf_activation(conf *s, const char *key, const char *json, activation *ret)
{
    const char *name = NULL;
    int rc = conf_str(s, key, json, &name);
    if (rc != 0 || !name || activation_parse(name, ret)) return rc;
    return conf_fail(s, SHOAL_EUNSUPPORTED, "the activation \"%.40s\" is not supported", name);
}
