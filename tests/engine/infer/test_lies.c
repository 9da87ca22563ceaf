/* GGUF files that contradict themselves: each row takes a file that is right and makes one thing of it a lie.
 * A lie is refused with a sentence that names the key or the tensor, or the file loads and answers as it
 * should; it never crashes what reads it. */
#include "helper.h"

#include <unistd.h>

#include "lies.h"
#include "model/files/gguf.h"
#include "tokenizer/tokenizer.h"

#define FILES SHOAL_GGUF_DIR "/"

/* ---- what is told wrong ----------------------------------------------------------------------------- */

typedef struct forge {
    const lie *l;
    gguf *g;
    buf out, kvs, tensors, data;
    size_t n_kv, n_tensors;
    bool done[4];
} forge;

/* What is told of `name`; NULL: the truth. */
static const char *told(forge *f, const char *name)
{
    for (size_t i = 0; i < 4 && f->l->t[i].of; i++) {
        if (strcmp(f->l->t[i].of, name) != 0) continue;
        f->done[i] = true;
        return f->l->t[i].tell;
    }
    return NULL;
}

static void put_u32(buf *b, uint32_t v)
{
    buf_append(b, &v, 4);
}

static void put_u64(buf *b, uint64_t v)
{
    buf_append(b, &v, 8);
}

static void put_text(buf *b, const char *s, size_t n)
{
    put_u64(b, n);
    buf_append(b, s, n);
}

static gguf_type type_named(const char *s, size_t n)
{
#define NAMED(e, name, number, bytes) \
    if (strlen(name) == n && memcmp(name, s, n) == 0) return e;
    GGUF_TYPE_TABLE(NAMED)
#undef NAMED
    if (n == 3 && memcmp(s, "str", 3) == 0) return GGUF_STRING;
    fail_msg("no type \"%.*s\"", (int)n, s);
    return GGUF_U8;
}

/* One value of text s. */
static void put_value(buf *b, gguf_type t, const char *s, size_t n)
{
    uint64_t whole = strtoull(s, NULL, 0);
    float single = strtof(s, NULL);
    double twice = strtod(s, NULL);
    uint8_t bytes[8];
    if (s[0] == '-') whole = (uint64_t)strtoll(s, NULL, 0);
    memcpy(bytes, &whole, 8);
    switch (t) {
    case GGUF_STRING: put_text(b, s, n); break;
    case GGUF_F32: buf_append(b, &single, 4); break;
    case GGUF_F64: buf_append(b, &twice, 8); break;
    case GGUF_U8:
    case GGUF_I8:
    case GGUF_BOOL: buf_append(b, bytes, 1); break;
    case GGUF_U16:
    case GGUF_I16: buf_append(b, bytes, 2); break;
    case GGUF_U32:
    case GGUF_I32: buf_append(b, bytes, 4); break;
    default: buf_append(b, bytes, 8); break;
    }
}

/* "u32 7" or "i32[] 1 2 3", with the type in front. */
static void put_typed(buf *b, const char *tell)
{
    size_t n = strcspn(tell, " [");
    gguf_type t = type_named(tell, n);
    const char *s = tell + n;
    buf values = {0};
    uint64_t count = 0;
    bool many = strncmp(s, "[]", 2) == 0;
    if (many) s += 2;
    for (; *s == ' '; count++) {
        n = strcspn(++s, " ");
        put_value(&values, t, s, n);
        s += n;
    }
    if (many) {
        put_u32(b, GGUF_ARRAY);
        put_u32(b, t);
        put_u64(b, count);
    } else {
        put_u32(b, t);
    }
    buf_append(b, values.data, values.len);
    buf_done(&values);
}

static void put_kv(forge *f, const gguf_kv *kv, size_t n, const void *data, size_t bytes)
{
    put_text(&f->kvs, kv->key, strlen(kv->key));
    put_u32(&f->kvs, kv->type);
    if (kv->type == GGUF_ARRAY) {
        put_u32(&f->kvs, kv->elem);
        put_u64(&f->kvs, n);
    }
    buf_append(&f->kvs, data, bytes);
    f->n_kv++;
}

static size_t elem_bytes(gguf_type t)
{
#define BYTES(e, name, number, bytes) [e] = bytes,
    static const size_t table[] = {GGUF_TYPE_TABLE(BYTES)};
#undef BYTES
    return table[t];
}

/* Where element n of an array begins. */
static size_t elem_at(const gguf_kv *kv, size_t n)
{
    size_t at = 0;
    if (elem_bytes(kv->elem)) return n * elem_bytes(kv->elem);
    while (n--) {
        uint64_t len;
        memcpy(&len, kv->data + at, 8);
        at += 8 + len;
    }
    return at;
}

static void forge_kv(forge *f, const gguf_kv *kv)
{
    const char *tell = told(f, kv->key);
    if (tell && strcmp(tell, "gone") == 0) return;
    if (!tell) {
        put_kv(f, kv, kv->n, kv->data, kv->bytes);
    } else if (strcmp(tell, "twice") == 0) {
        put_kv(f, kv, kv->n, kv->data, kv->bytes);
        put_kv(f, kv, kv->n, kv->data, kv->bytes);
    } else if (strncmp(tell, "first ", 6) == 0) {
        size_t n = strtoul(tell + 6, NULL, 10);
        put_kv(f, kv, n, kv->data, elem_at(kv, n));
    } else if (strncmp(tell, "at ", 3) == 0) {
        char *value;
        size_t i = strtoul(tell + 3, &value, 10), at = elem_at(kv, i), next = elem_at(kv, i + 1);
        buf b = {0};
        buf_append(&b, kv->data, at);
        put_value(&b, kv->elem, value + 1, strlen(value + 1));
        buf_append(&b, kv->data + next, kv->bytes - next);
        put_kv(f, kv, kv->n, b.data, b.len);
        buf_done(&b);
    } else {
        put_text(&f->kvs, kv->key, strlen(kv->key));
        put_typed(&f->kvs, tell);
        f->n_kv++;
    }
}

/* Writes t's entry and its data, zeros where there are more of them. */
static void put_tensor(forge *f, const tensor *t, const char *name)
{
    size_t elements = 1, bytes;
    while (f->data.len % 32) buf_putc(&f->data, 0);
    put_text(&f->tensors, name, strlen(name));
    put_u32(&f->tensors, (uint32_t)t->n_dims);
    for (size_t i = 0; i < t->n_dims; i++) {
        put_u64(&f->tensors, t->dims[i]);
        elements *= t->dims[i];
    }
    put_u32(&f->tensors, dtype_to_gguf(t->type));
    put_u64(&f->tensors, f->data.len);
    f->n_tensors++;
    bytes = elements < 1 << 24 ? elements / dtype_block(t->type) * dtype_block_bytes(t->type) : 0;
    for (size_t i = 0; i < bytes; i++)
        buf_putc(&f->data, i < t->bytes && t->data ? ((const char *)t->data)[i] : 0);
}

static void read_dims(tensor *t, const char *s)
{
    t->n_dims = 0;
    for (char *end; *s == ' ' && t->n_dims < 4; s = end) t->dims[t->n_dims++] = strtoull(s, &end, 0);
}

static void forge_tensor(forge *f, const tensor *from)
{
    const char *tell = told(f, from->name);
    tensor t = *from;
    if (!tell) tell = "";
    if (strcmp(tell, "gone") == 0) return;
    if (strncmp(tell, "dims", 4) == 0) read_dims(&t, tell + 4);
    put_tensor(f, &t, strncmp(tell, "named ", 6) == 0 ? tell + 6 : t.name);
    if (strcmp(tell, "twice") == 0) put_tensor(f, &t, t.name);
    if (strncmp(tell, "at ", 3) == 0) {
        uint64_t offset = strtoull(tell + 3, NULL, 0);
        memcpy((char *)f->tensors.data + f->tensors.len - 8, &offset, 8);
    }
}

/* A new key or a new tensor. */
static void forge_more(forge *f, const char *of, const char *tell)
{
    if (strncmp(tell, "adds", 4) == 0) {
        tensor t = {.type = DT_F32};
        read_dims(&t, tell + 4);
        put_tensor(f, &t, of);
    } else {
        put_text(&f->kvs, of, strlen(of));
        put_typed(&f->kvs, tell);
        f->n_kv++;
    }
}

static void forge_file(const lie *l, const char *to)
{
    char path[512];
    file_map map;
    forge f = {.l = l};
    snprintf(path, sizeof path, FILES "%s.gguf", l->file);
    must(file_map_open(&map, path, &err));
    must(gguf_parse(&f.g, map.data, map.len, path, &err));
    for (size_t i = 0; i < f.g->n_kv; i++) forge_kv(&f, &f.g->kv[i]);
    for (size_t i = 0; i < f.g->n_tensors; i++) forge_tensor(&f, &f.g->tensors[i]);
    for (size_t i = 0; i < 4 && l->t[i].of; i++)
        if (!f.done[i]) forge_more(&f, l->t[i].of, l->t[i].tell);
    buf_puts(&f.out, "GGUF");
    put_u32(&f.out, 3);
    put_u64(&f.out, f.n_tensors);
    put_u64(&f.out, f.n_kv);
    buf_append(&f.out, f.kvs.data, f.kvs.len);
    buf_append(&f.out, f.tensors.data, f.tensors.len);
    while (f.out.len % 32) buf_putc(&f.out, 0);
    buf_append(&f.out, f.data.data, f.data.len);
    FILE *file = fopen(to, "wb");
    assert_true(file && fwrite(f.out.data, 1, f.out.len, file) == f.out.len && fclose(file) == 0);
    buf_done(&f.out);
    buf_done(&f.data);
    buf_done(&f.kvs);
    buf_done(&f.tensors);
    gguf_free(f.g);
    file_map_close(&map);
}

/* ---- what is made of it ----------------------------------------------------------------------------- */

/* Every text there and back, and a few tokens: nothing may be read that is not there. */
static void use(model *m, engine *e)
{
    const model_config *c = model_get_config(m);
    int32_t ids[4] = {1, 2, 3, 4};
    if (model_tokenizer(m)) {
        encoding q = {0};
        static const char text[] = "turn on the <s> light\xE2\x98\x83 42";
        must(tokenizer_encode(model_tokenizer(m), text, sizeof text - 1, NULL, 0, 3, 0, &q, &err));
        encoding_done(&q);
    }
    if (c->task == TASK_GENERATE) {
        float *out = malloc(4 * c->n_vocab * sizeof *out);
        must(engine_logits(e, NULL, ids, 4, 4, out, &err));
        free(out);
        reply *a = generate(e, &(gen_request){.ids = ids, .n_ids = 4, .max_tokens = 4});
        reply_free(a);
    } else {
        vectors v;
        vectors_init(&v);
        must(engine_encode(e, &(enc_request){.ids = ids, .n_ids = 4}, on_vectors, &v, NULL, &err));
        vectors_wait(&v);
        vectors_done(&v);
    }
}

/* What opening, its tokenizer or its engine said; "" when all went well. */
static void open_and_use(const char *path, char said[512])
{
    model *m = NULL;
    engine *e = NULL;
    shoal_err err = {0};
    said[0] = '\0';
    if (model_open(&m, path, NULL, &err) != 0) {
        snprintf(said, 512, "%s", err.message);
        return;
    }
    if (!model_tokenizer(m)) snprintf(said, 512, "%s", model_tokenizer_error(m));
    if (engine_new(&e, m, &(engine_options){.n_threads = 1}, &err) != 0)
        snprintf(said, 512, "%s", err.message);
    else
        use(m, e);
    engine_free(e);
    model_free(m);
}

static bool is_met(const lie *l)
{
    char path[] = "/tmp/shoal-lie-XXXXXX", said[512];
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    forge_file(l, path);
    open_and_use(path, said);
    unlink(path);
    bool right = l->says ? strstr(said, l->says) != NULL : said[0] == '\0';
    if (!right)
        print_error("%s with %s \"%s\": \"%s\", not \"%s\"\n", l->file, l->t[0].of, l->t[0].tell, said,
                    l->says ? l->says : "");
    return right;
}

static void a_lie_is_refused_by_name_or_harmless(void **state)
{
    size_t bad = 0;
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) bad += !is_met(&lies[i]);
    if (bad) fail_msg("%zu of %zu lies", bad, sizeof lies / sizeof *lies);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_lie_is_refused_by_name_or_harmless)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
