/* source.c: YAML files into what the home works with; see source.h. */
#include "nlu/source.h"

#include <string.h>

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

bool word_list_has(const word_list *l, const char *s, size_t n)
{
    for (size_t i = 0; i < l->n; i++)
        if (strlen(l->at[i]) == n && memcmp(l->at[i], s, n) == 0) return true;
    return false;
}

void source_phrases(source *r, const yaml_node *n, phrase_list *ret)
{
    if (n && !r->rc) r->rc = phrase_list_read(ret, r->d, n, r->a, r->err);
}

void source_words(source *r, const yaml_node *n, bool empty, word_list *ret)
{
    if (!n || r->rc) return;
    bool list = n->kind == YAML_LIST;
    size_t count = list ? n->n : 1;
    ret->at = source_take(r, count, sizeof *ret->at);
    for (size_t i = 0; i < count && !r->rc; i++) {
        const yaml_node *item = list ? n->items[i] : n;
        words w = {0};
        bool none = empty && item->kind == YAML_SCALAR && !item->len;
        if (item->kind != YAML_SCALAR || words_split(&w, r->a, item->text, item->len) || w.n != !none)
            source_fail(r, item, "one word is expected here%s", "");
        else
            ret->at[ret->n++] = none ? "" : w.at[0].s;
    }
}

void source_texts(source *r, const yaml_node *n, word_list *ret)
{
    if (!n || r->rc) return;
    ret->at = source_take(r, n->n, sizeof *ret->at);
    for (size_t i = 0; i < n->n && !r->rc; i++) ret->at[ret->n++] = source_text(r, n->items[i]);
}

const char *source_word(source *r, const yaml_node *key)
{
    words w = {0};
    if (r->rc) return NULL;
    if (words_split(&w, r->a, key->text, key->len) || w.n != 1) {
        source_fail(r, key, "'%s' must be one word", key->text);
        return NULL;
    }
    return w.at[0].s;
}

void source_keys(source *r, const yaml_node *map, const char *const *keys, size_t n, const char *sentence)
{
    for (size_t i = 0; i < map->n && !r->rc; i++) {
        size_t k = 0;
        while (k < n && strcmp(keys[k], map->keys[i]->text) != 0) k++;
        if (k == n) source_fail(r, map->keys[i], sentence, map->keys[i]->text);
    }
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
