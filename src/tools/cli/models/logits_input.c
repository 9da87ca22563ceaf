/* logits_input.c: ids and tensors from the command line; see logits_input.h. */
#include "cli/models/logits_input.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/file.h"
#include "compute/compute.h"
#include "model/files/safetensors.h"

int logits_ids(const char *text, const char *what, int32_t **ret, size_t *ret_n, shoal_err *err)
{
    size_t n = 1;
    for (const char *p = text; *p; p++) n += *p == ',';
    int32_t *ids = malloc(n * sizeof *ids);
    if (!ids) return err_nomem(err);
    const char *p = text;
    for (size_t i = 0; i < n; i++, p++) {
        char *end;
        errno = 0;
        long v = strtol(p, &end, 10);
        if (end == p || errno != 0 || v < 0 || v > INT32_MAX || (*end != ',' && *end != '\0')) {
            free(ids);
            return err_set(err, SHOAL_EINVALID, "%s wants numbers with commas between them, not \"%s\"", what,
                           text);
        }
        ids[i] = (int32_t)v;
        p = end;
    }
    *ret = ids;
    *ret_n = n;
    return 0;
}

static const tensor *logits_input_find(const st_list *l, const char **ret_name)
{
    static const char *const names[] = {"px", "x", "mel"};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        for (size_t i = 0; i < l->n; i++)
            if (strcmp(l->items[i].t.name, names[k]) == 0) return *ret_name = names[k], &l->items[i].t;
    return NULL;
}

/* dims[0] is contiguous: the width of a row. Of pictures all channels' rows are one input's. */
static bool shape(logits_input *in, const tensor *t, const char *name)
{
    bool picture = strcmp(name, "px") == 0, speech = strcmp(name, "mel") == 0;
    size_t want = picture ? 4 : 3, rows = t->dims[1];
    if (t->n_dims != want && !(speech && t->n_dims == 2)) return false;
    if (picture && size_mul(rows, t->dims[2], &rows)) return false;
    in->n = t->n_dims == want ? t->dims[want - 1] : 1;
    in->width = speech ? t->dims[1] : t->dims[0];
    in->n_features = speech ? t->dims[0] : rows;
    return in->n > 0 && in->n_features > 0 && in->width > 0;
}

/* Speech comes band by band and is heard frame by frame. */
static void turn(float *v, const float *from, size_t bands, size_t frames)
{
    for (size_t b = 0; b < bands; b++)
        for (size_t f = 0; f < frames; f++) v[f * bands + b] = from[b * frames + f];
}

static int logits_input_take(logits_input *in, const tensor *t, const char *name, shoal_err *err)
{
    size_t each, all;
    if (size_mul(in->n_features, in->width, &each) || size_mul(each, in->n, &all)) return err_nomem(err);
    float *v = calloc(all, sizeof *v);
    if (!v) return err_nomem(err);
    dtype_to_f32(t->type, t->data, v, all);
    if (strcmp(name, "mel") != 0) {
        in->features = v;
        return 0;
    }
    in->features = calloc(all, sizeof *v);
    for (size_t i = 0; in->features && i < in->n; i++)
        turn(in->features + i * each, v + i * each, in->width, in->n_features);
    free(v);
    return in->features ? 0 : err_nomem(err);
}

static int read_tensors(logits_input *ret, const st_list *l, const char *path, shoal_err *err)
{
    const char *name = NULL;
    const tensor *t = logits_input_find(l, &name);
    if (!t)
        return err_set(err, SHOAL_EFORMAT,
                       "%s: none of the tensors px (pictures), x (series) and mel (speech)", path);
    if (t->type != DT_F32 && t->type != DT_F16)
        return err_set(err, SHOAL_EFORMAT, "%s: tensor %s must be F32 or F16", path, name);
    if (!shape(ret, t, name))
        return err_set(err, SHOAL_EFORMAT,
                       "%s: tensor %s has another shape than px [n][channels][height][width], x "
                       "[n][rows][columns] or mel [bands][frames]",
                       path, name);
    return logits_input_take(ret, t, name, err);
}

int logits_input_read(logits_input *ret, const char *path, shoal_err *err)
{
    logits_input in = {0};
    file_map map = {0};
    st_list l = {0};
    arena *mem = arena_new(0);
    int rc = mem ? file_map_open(&map, path, err) : err_nomem(err);
    if (rc == 0) rc = safetensors_parse(&l, mem, map.data, map.len, path, err);
    if (rc == 0) rc = read_tensors(&in, &l, path, err);
    safetensors_list_done(&l);
    file_map_close(&map);
    arena_free(mem);
    if (rc == 0) *ret = in;
    return rc;
}

void logits_input_done(logits_input *in)
{
    free(in->features);
    *in = (logits_input){0};
}

enc_request logits_input_at(const logits_input *in, size_t i)
{
    return (enc_request){.features = in->features + i * in->n_features * in->width,
                         .n_features = in->n_features,
                         .width = in->width};
}
