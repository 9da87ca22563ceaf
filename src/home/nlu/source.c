/* source.c: YAML files into what this room works with; see source.h. */
#include "nlu/source.h"

#include "base/err.h"

void source_fail(source *r, const yaml_node *at, const char *sentence, const char *word)
{
    if (!r->rc) r->rc = yaml_fail(r->d, at, r->err, sentence, word);
}

void source_nomem(source *r)
{
    if (!r->rc) r->rc = err_nomem(r->err);
}

void *source_take(source *r, size_t n, size_t size)
{
    void *p = r->rc ? NULL : arena_alloc(r->a, (n + 1) * size);
    if (!p) source_nomem(r);
    return p;
}

const yaml_node *source_need(source *r, const yaml_node *map, const char *key, yaml_kind kind)
{
    const yaml_node *n = r->rc ? NULL : yaml_get(map, key);
    if (!n)
        source_fail(r, map, "'%s' is missing", key);
    else if (n->kind != kind)
        source_fail(r, n,
                    kind == YAML_MAP    ? "'%s' must be a map"
                    : kind == YAML_LIST ? "'%s' must be a list"
                                        : "'%s' must be a text",
                    key);
    return r->rc ? NULL : n;
}

const char *source_text(source *r, const yaml_node *n)
{
    if (!n || r->rc) return NULL;
    if (n->kind != YAML_SCALAR || !n->len) {
        source_fail(r, n, "a text is expected here%s", "");
        return NULL;
    }
    const char *s = arena_strdup(r->a, n->text);
    if (!s) source_nomem(r);
    return s;
}

const char *source_text_of(source *r, const yaml_node *map, const char *key)
{
    return source_text(r, source_need(r, map, key, YAML_SCALAR));
}

double source_double(source *r, const yaml_node *n, const char *field, double otherwise)
{
    double v = otherwise;
    if (n && !r->rc) r->rc = yaml_double(r->d, n, field, -1e12, 1e12, &v, r->err);
    return v;
}

bool source_bool(source *r, const yaml_node *n, const char *field)
{
    bool v = false;
    if (n && !r->rc) r->rc = yaml_bool(r->d, n, field, &v, r->err);
    return v;
}

int source_read(const char *text, size_t len, const char *what,
                int (*read)(source *, const yaml_node *, void *), void *user, arena **ret_memory,
                shoal_err *err)
{
    yaml_doc *d = NULL;
    int rc = yaml_parse(&d, text, len, what, err);
    if (rc) return rc;
    arena *a = arena_new(1 << 16);
    source r = {.d = d, .a = a, .err = err};
    rc = a ? read(&r, yaml_root(d), user) : err_nomem(err);
    yaml_doc_free(d);
    if (rc)
        arena_free(a);
    else
        *ret_memory = a;
    return rc;
}
