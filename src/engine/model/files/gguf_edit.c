/* gguf_edit.c: a GGUF file again, with other metadata and the same weights.
 *
 * Keys keep their order; a key that is set anew stays where it was, a new one comes last. The tensors'
 * bytes are copied, so that no weight changes by being packed once more. */
#include <string.h>

#include "model/files/gguf_writer.h"
#include "base/file.h"
#include "json/hub_file.h"
#include "base/sha256.h"
#include "model/model.h"

enum { TENSOR_PIECE = 1 << 20 };

static const gguf_setting *setting_of(const gguf_setting *set, size_t n, const char *key)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(set[i].key, key) == 0) return &set[i];
    return NULL;
}

/* Texts only: an array or a number that became a text would not load. */
static int check_settings(const gguf *g, const gguf_setting *set, size_t n, shoal_err *err)
{
    for (size_t i = 0; i < n; i++) {
        const gguf_kv *kv = gguf_find(g, set[i].key);
        if (!*set[i].key || setting_of(set, i, set[i].key))
            return err_set(err, SHOAL_EINVALID, "the key \"%.64s\" is empty or set twice", set[i].key);
        if (kv && kv->type != GGUF_STRING)
            return err_set(err, SHOAL_EINVALID, "%s: \"%s\" is no text", g->what, set[i].key);
    }
    return 0;
}

static void put_metadata(gguf_out *o, const gguf *g, const gguf_setting *set, size_t n)
{
    for (size_t i = 0; i < g->n_kv; i++) {
        const gguf_setting *s = setting_of(set, n, g->kv[i].key);
        if (strcmp(g->kv[i].key, "general.alignment") == 0) continue; /* the writer has its own */
        if (s)
            gguf_out_str(o, s->key, s->value);
        else
            gguf_out_copy(o, &g->kv[i]);
    }
    for (size_t i = 0; i < n; i++)
        if (!gguf_find(g, set[i].key)) gguf_out_str(o, set[i].key, set[i].value);
}

static int put_tensors(gguf_out *o, const gguf *g, shoal_err *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < g->n_tensors; i++) {
        const tensor *t = &g->tensors[i];
        const uint8_t *bytes = t->data;
        for (size_t at = 0; rc == 0 && at < t->bytes; at += TENSOR_PIECE)
            rc = gguf_out_data(o, bytes + at, t->bytes - at < TENSOR_PIECE ? t->bytes - at : TENSOR_PIECE,
                               err);
    }
    return rc;
}

static int write(const gguf *g, const char *out, const gguf_setting *set, size_t n, sha256_digest *ret,
                 shoal_err *err)
{
    gguf_out o = {0};
    uint64_t bytes;
    put_metadata(&o, g, set, n);
    for (size_t i = 0; i < g->n_tensors; i++) {
        const tensor *t = &g->tensors[i];
        gguf_out_tensor(&o, t->name, t->type, t->n_dims, t->dims);
    }
    int rc = gguf_out_open(&o, out, err);
    if (rc == 0) rc = put_tensors(&o, g, err);
    if (rc == 0) rc = gguf_out_close(&o, ret, &bytes, err);
    gguf_out_done(&o);
    return rc;
}

int gguf_edit_file(const char *in, const char *out, const gguf_setting *set, size_t n, sha256_digest *ret,
                   shoal_err *err)
{
    file_map map = {0};
    gguf *g = NULL;
    int rc = file_map_open(&map, in, err);
    if (rc == 0) rc = hub_file_check(map.data, map.len, in, err);
    if (rc != 0) return rc;
    rc = gguf_parse(&g, map.data, map.len, in, err);
    if (rc == 0) rc = check_settings(g, set, n, err);
    if (rc == 0) rc = write(g, out, set, n, ret, err);
    gguf_free(g);
    file_map_close(&map);
    return rc;
}
