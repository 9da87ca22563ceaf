/* peft.h: adapters for the tests: PEFT folders with drawn numbers for a fixture's modules, and the fixture
 * with the same change merged into its weights, which is what the adapter must give. Include behind helper.h.
 */
#ifndef TESTS_INFER_PEFT_H
#define TESTS_INFER_PEFT_H

#include <dirent.h>
#include <unistd.h>

#include "infer/decoding/sampler.h"
#include "model/adapter.h"
#include "model/files/safetensors.h"

typedef struct peft_spec {
    const char *base;    /* tests/data/hf/BASE */
    const char *modules; /* last words of their names, with spaces around each */
    bool turned;         /* weights are [in][out] */
    size_t rank;
    float alpha;
    uint64_t seed;
    const char *more; /* of the configuration: ", \"key\": value" */
} peft_spec;

static inline float drawn(uint64_t seed, size_t i)
{
    return (float)((double)(rng_mix(seed * 0x10001 + i) >> 11) / 9007199254740992.0 - 0.5);
}

/* ---- writing safetensors ---------------------------------------------------------------------------- */

typedef struct st_out {
    buf header, data;
} st_out;

static inline void st_put(st_out *o, const char *name, size_t rows, size_t cols, const float *v)
{
    size_t begin = o->data.len;
    assert_int_equal(buf_append(&o->data, v, rows * cols * sizeof *v), 0);
    assert_int_equal(buf_printf(&o->header,
                                "%s\"%s\":{\"dtype\":\"F32\",\"shape\":[%zu,%zu],\"data_offsets\":[%zu,%zu]}",
                                o->header.len ? "," : "{", name, rows, cols, begin, o->data.len),
                     0);
}

static inline void put_file(const char *path, const void *a, size_t n_a, const void *b, size_t n_b)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(a, 1, n_a, f), n_a);
    if (n_b) assert_int_equal(fwrite(b, 1, n_b, f), n_b);
    assert_int_equal(fclose(f), 0);
}

static inline void st_close(st_out *o, const char *path)
{
    buf head = {0};
    while (o->header.len % 8 != 7) buf_putc(&o->header, ' '); /* the closing brace makes it a multiple */
    buf_putc(&o->header, '}');
    uint64_t n = o->header.len;
    buf_append(&head, &n, sizeof n);
    assert_int_equal(buf_append(&head, o->header.data, o->header.len), 0);
    put_file(path, head.data, head.len, o->data.data, o->data.len);
    buf_done(&head);
    buf_done(&o->header);
    buf_done(&o->data);
}

/* ---- a base's tensors ------------------------------------------------------------------------------- */

typedef struct base_file {
    file_map map;
    arena *mem;
    st_list list;
} base_file;

static inline void base_open(base_file *b, const char *name)
{
    char path[512];
    *b = (base_file){.mem = arena_new(0)};
    snprintf(path, sizeof path, DATA "hf/%s/model.safetensors", name);
    must(file_map_open(&b->map, path, &err));
    must(safetensors_parse(&b->list, b->mem, b->map.data, b->map.len, path, &err));
}

static inline void base_close(base_file *b)
{
    safetensors_list_done(&b->list);
    arena_free(b->mem);
    file_map_close(&b->map);
}

static inline bool is_target(const peft_spec *s, const tensor *t)
{
    char word[64];
    const char *end = strstr(t->name, ".weight"), *at = end;
    if (!end || t->n_dims != 2) return false;
    while (at > t->name && at[-1] != '.') at--;
    snprintf(word, sizeof word, " %.*s ", (int)(end - at), at);
    return strstr(s->modules, word) != NULL;
}

/* A [rank][in] and B [out][rank] of the i-th tensor. */
static inline void draw_pair(const peft_spec *s, size_t i, size_t in, size_t out, float **a, float **b)
{
    *a = malloc(s->rank * in * sizeof **a);
    *b = malloc(s->rank * out * sizeof **b);
    for (size_t k = 0; k < s->rank * in; k++) (*a)[k] = drawn(s->seed + 2 * i, k) / sqrtf((float)in);
    for (size_t k = 0; k < s->rank * out; k++)
        (*b)[k] = drawn(s->seed + 2 * i + 1, k) / sqrtf((float)s->rank);
}

static inline void put_config(const peft_spec *s, const char *folder)
{
    char path[512], text[1024];
    int n = snprintf(text, sizeof text,
                     "{\"peft_type\": \"LORA\", \"r\": %zu, \"lora_alpha\": %g, \"bias\": \"none\", "
                     "\"fan_in_fan_out\": %s, \"modules_to_save\": null, \"use_rslora\": false%s}",
                     s->rank, (double)s->alpha, s->turned ? "true" : "false", s->more ? s->more : "");
    snprintf(path, sizeof path, "%s/adapter_config.json", folder);
    put_file(path, text, (size_t)n, NULL, 0);
}

/* Write the adapter into `folder`, which exists. Returns how many modules it changes. */
static inline size_t peft_write(const peft_spec *s, const char *folder)
{
    base_file b;
    st_out o = {{0}, {0}};
    size_t n = 0;
    base_open(&b, s->base);
    for (size_t i = 0; i < b.list.n; i++) {
        const tensor *t = &b.list.items[i].t;
        char name[256];
        float *va, *vb;
        if (!is_target(s, t)) continue;
        size_t in = t->dims[s->turned ? 1 : 0], out = t->dims[s->turned ? 0 : 1];
        int stem = (int)(strlen(t->name) - strlen(".weight"));
        draw_pair(s, i, in, out, &va, &vb);
        snprintf(name, sizeof name, "base_model.model.%.*s.lora_A.weight", stem, t->name);
        st_put(&o, name, s->rank, in, va);
        snprintf(name, sizeof name, "base_model.model.%.*s.lora_B.weight", stem, t->name);
        st_put(&o, name, out, s->rank, vb);
        free(va);
        free(vb);
        n++;
    }
    char path[512];
    snprintf(path, sizeof path, "%s/adapter_model.safetensors", folder);
    st_close(&o, path);
    put_config(s, folder);
    base_close(&b);
    return n;
}

static inline void merge(const peft_spec *s, size_t i, const tensor *t, float *w)
{
    size_t in = t->dims[s->turned ? 1 : 0], out = t->dims[s->turned ? 0 : 1];
    float *a, *b;
    draw_pair(s, i, in, out, &a, &b);
    for (size_t r = 0; r < out; r++)
        for (size_t c = 0; c < in; c++) {
            double sum = 0;
            for (size_t k = 0; k < s->rank; k++) sum += (double)b[r * s->rank + k] * (double)a[k * in + c];
            w[s->turned ? c * out + r : r * in + c] += (float)(sum * (double)s->alpha / (double)s->rank);
        }
    free(a);
    free(b);
}

/* The base's folder with W + scale B A in place of W, as floats. */
static inline void peft_write_merged(const peft_spec *s, const char *folder)
{
    base_file b;
    buf header = {0}, data = {0};
    char path[512], from[512];
    base_open(&b, s->base);
    for (size_t i = 0; i < b.list.n; i++) {
        const tensor *t = &b.list.items[i].t;
        size_t n = 1, begin = data.len;
        for (size_t d = 0; d < 4; d++) n *= t->dims[d];
        float *w = malloc(n * sizeof *w);
        void *copy = memcpy(malloc(t->bytes + 1), t->data, t->bytes);
        dtype_to_f32(t->type, copy, w, n);
        if (is_target(s, t)) merge(s, i, t, w);
        buf_append(&data, w, n * sizeof *w);
        buf_printf(&header, "%s\"%s\":{\"dtype\":\"F32\",\"shape\":[", i ? "," : "{", t->name);
        for (size_t d = t->n_dims; d-- > 0;) buf_printf(&header, "%zu%s", t->dims[d], d ? "," : "");
        buf_printf(&header, "],\"data_offsets\":[%zu,%zu]}", begin, data.len);
        free(copy);
        free(w);
    }
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    st_close(&(st_out){header, data}, path);
    base_close(&b);
    snprintf(from, sizeof from, DATA "hf/%s", s->base);
    DIR *d = opendir(from);
    assert_non_null(d);
    for (const struct dirent *at; (at = readdir(d));) {
        if (at->d_name[0] == '.' || strcmp(at->d_name, "model.safetensors") == 0) continue;
        snprintf(from, sizeof from, DATA "hf/%s/%s", s->base, at->d_name);
        snprintf(path, sizeof path, "%s/%s", folder, at->d_name);
        assert_int_equal(symlink(from, path), 0);
    }
    closedir(d);
}

/* ---- folders that go away --------------------------------------------------------------------------- */

static inline void folder_make(char path[64])
{
    strcpy(path, "/tmp/shoal-adapter-XXXXXX");
    assert_non_null(mkdtemp(path));
}

static inline void folder_remove(const char *path)
{
    char file[512];
    DIR *d = opendir(path);
    assert_non_null(d);
    for (const struct dirent *at; (at = readdir(d));) {
        if (strcmp(at->d_name, ".") == 0 || strcmp(at->d_name, "..") == 0) continue;
        snprintf(file, sizeof file, "%s/%s", path, at->d_name);
        assert_int_equal(unlink(file), 0);
    }
    closedir(d);
    assert_int_equal(rmdir(path), 0);
}

#endif
