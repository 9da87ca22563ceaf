/* ct2.c: model.bin from hostile bytes; see ct2.h. */
#include "model/files/ct2.h"

#include <string.h>

#include "base/buf.h"
#include "base/cur.h"

enum { VERSION_MIN = 4, VERSION_MAX = 6 };            /* the versions with the layout of ct2.h */
enum { VARIABLE_BYTES_MIN = 8, ALIAS_BYTES_MIN = 4 }; /* of the file: lengths and counts alone */

static const size_t type_bytes[CT2_TYPES] = {
    [CT2_F32] = 4, [CT2_I8] = 1, [CT2_I16] = 2, [CT2_I32] = 4, [CT2_F16] = 2, [CT2_BF16] = 2};

typedef struct ct2_reader {
    cur c;
    const char *what;
    arena *mem;
    shoal_err *err;
} ct2_reader;

static int malformed(ct2_reader *r, const char *part)
{
    return err_set(r->err, SHOAL_EFORMAT, "%s: not a valid CTranslate2 file: %s ends or is wrong at byte %zu",
                   r->what, part, cur_offset(&r->c));
}

static int read_string(ct2_reader *r, const char **ret)
{
    size_t n = cur_u16(&r->c);
    const uint8_t *p = cur_take(&r->c, n);
    if (!p || n == 0 || p[n - 1] != 0 || strlen((const char *)p) != n - 1) return malformed(r, "a name");
    *ret = arena_strdup(r->mem, (const char *)p);
    return *ret ? 0 : err_nomem(r->err);
}

static int read_shape(ct2_reader *r, ct2_variable *v)
{
    v->n_dims = cur_u8(&r->c);
    v->n = 1;
    if (r->c.failed) return malformed(r, "a shape");
    if (v->n_dims > CT2_DIMS_MAX)
        return err_set(r->err, SHOAL_EUNSUPPORTED, "%s: %s has %zu dimensions", r->what, v->name, v->n_dims);
    for (size_t i = 0; i < v->n_dims; i++) {
        v->dims[i] = cur_u32(&r->c);
        if (r->c.failed || v->dims[i] == 0 || size_mul(v->n, v->dims[i], &v->n))
            return malformed(r, "a shape");
    }
    return 0;
}

static int read_values(ct2_reader *r, ct2_variable *v)
{
    size_t type = cur_u8(&r->c), need;
    v->bytes = cur_u32(&r->c);
    if (r->c.failed) return malformed(r, "a variable");
    if (type >= CT2_TYPES)
        return err_set(r->err, SHOAL_EUNSUPPORTED, "%s: %s has values of the unknown type %zu", r->what,
                       v->name, type);
    v->type = (ct2_type)type;
    if (size_mul(v->n, type_bytes[type], &need) || need != v->bytes)
        return err_set(r->err, SHOAL_EFORMAT, "%s: %s has %zu bytes where its shape needs %zu", r->what,
                       v->name, v->bytes, need);
    v->data = cur_take(&r->c, v->bytes);
    return v->data ? 0 : malformed(r, "a variable");
}

static int read_variable(ct2_reader *r, ct2_variable *v)
{
    int rc = read_string(r, &v->name);
    if (rc == 0) rc = read_shape(r, v);
    return rc ? rc : read_values(r, v);
}

static int ct2_read_head(ct2_reader *r, ct2_file *f)
{
    uint32_t version = cur_u32(&r->c);
    if (r->c.failed) return malformed(r, "its head");
    if (version < VERSION_MIN || version > VERSION_MAX)
        return err_set(
            r->err, SHOAL_EUNSUPPORTED,
            "%s: binary version %u of CTranslate2; %d to %d are read: convert the model again with "
            "a current ctranslate2",
            r->what, (unsigned)version, VERSION_MIN, VERSION_MAX);
    int rc = read_string(r, &f->spec);
    (void)cur_u32(&r->c); /* the spec's revision: what changed shows in the names of variables */
    return rc == 0 && r->c.failed ? malformed(r, "its head") : rc;
}

/* A count of things that each take at least `least` bytes of what is left. */
static int read_count(ct2_reader *r, size_t least, size_t size, void **ret, size_t *ret_n)
{
    size_t n = cur_u32(&r->c);
    if (r->c.failed || n > cur_left(&r->c) / least) return malformed(r, "a list");
    *ret = arena_alloc(r->mem, (n + 1) * size);
    if (!*ret) return err_nomem(r->err);
    memset(*ret, 0, (n + 1) * size);
    *ret_n = n;
    return 0;
}

int ct2_parse(ct2_file *ret, arena *mem, const void *data, size_t len, const char *what, shoal_err *err)
{
    ct2_reader r = {.c = cur_over(data, len), .what = what, .mem = mem, .err = err};
    ct2_file f = {0};
    void *list = NULL;
    int rc = ct2_read_head(&r, &f);
    if (rc == 0) rc = read_count(&r, VARIABLE_BYTES_MIN, sizeof *f.v, &list, &f.n);
    f.v = list;
    for (size_t i = 0; rc == 0 && i < f.n; i++) rc = read_variable(&r, &f.v[i]);
    if (rc == 0) rc = read_count(&r, ALIAS_BYTES_MIN, sizeof *f.aliases, &list, &f.n_aliases);
    f.aliases = list;
    for (size_t i = 0; rc == 0 && i < f.n_aliases; i++) {
        rc = read_string(&r, &f.aliases[i].name);
        if (rc == 0) rc = read_string(&r, &f.aliases[i].of);
    }
    if (rc == 0 && cur_left(&r.c) > 0) rc = malformed(&r, "its end");
    if (rc == 0) *ret = f;
    return rc;
}

const ct2_variable *ct2_find(const ct2_file *f, const char *name)
{
    for (size_t i = 0; i < f->n_aliases; i++)
        if (strcmp(f->aliases[i].name, name) == 0) name = f->aliases[i].of;
    for (size_t i = 0; i < f->n; i++)
        if (strcmp(f->v[i].name, name) == 0) return &f->v[i];
    return NULL;
}

bool ct2_number(const ct2_file *f, const char *name, int64_t *ret)
{
    const ct2_variable *v = ct2_find(f, name);
    int8_t i8;
    int16_t i16;
    int32_t i32;
    if (!v || v->n != 1) return false;
    switch (v->type) {
    case CT2_I8:
        memcpy(&i8, v->data, sizeof i8);
        *ret = i8;
        return true;
    case CT2_I16:
        memcpy(&i16, v->data, sizeof i16);
        *ret = i16;
        return true;
    case CT2_I32:
        memcpy(&i32, v->data, sizeof i32);
        *ret = i32;
        return true;
    default: return false;
    }
}
