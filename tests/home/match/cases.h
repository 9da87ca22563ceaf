/* cases.h: files of requests and what must come of them (lexicons/devices.tests.yaml,
 * tests/data/match/held.yaml). Include once a test file. */
#ifndef TESTS_MATCH_CASES_H
#define TESTS_MATCH_CASES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/file.h"
#include "yaml/yaml.h"
#include "match/match.h"

#define DEVICES_LEX SHOAL_SOURCE_DIR "/lexicons/devices.yaml"

enum { CASE_FILE_MAX = 1 << 20, CASE_HOME_MAX = 64 };

static inline device_lexicon *load_devices(const char *path)
{
    device_lexicon *l = NULL;
    shoal_err err = {0};
    if (device_lexicon_load(&l, path, &err)) fail_msg("%s", err.message);
    return l;
}

typedef struct case_file {
    const char *path;
    buf text;
    yaml_doc *d;
} case_file;

static inline case_file open_cases(const char *path)
{
    case_file f = {.path = path};
    shoal_err err = {0};
    if (file_read(&f.text, path, CASE_FILE_MAX, &err)) fail_msg("%s", err.message);
    if (yaml_parse(&f.d, f.text.data, f.text.len, path, &err)) fail_msg("%s", err.message);
    return f;
}

static inline void close_cases(case_file *f)
{
    yaml_doc_free(f->d);
    buf_done(&f->text);
}

static inline const char *case_text(const yaml_node *map, const char *key)
{
    const yaml_node *n = yaml_get(map, key);
    return n && n->kind == YAML_SCALAR ? n->text : NULL;
}

static inline const char **case_texts(const yaml_node *list, size_t *ret_n, arena *a)
{
    *ret_n = list ? list->n : 0;
    const char **out = arena_alloc(a, (*ret_n + 1) * sizeof *out);
    for (size_t i = 0; i < *ret_n; i++) out[i] = list->items[i]->text;
    return out;
}

static inline size_t read_case_home(const yaml_node *list, device out[CASE_HOME_MAX], arena *a)
{
    assert_true(list && list->n <= CASE_HOME_MAX);
    for (size_t i = 0; i < list->n; i++) {
        const yaml_node *n = list->items[i];
        device *d = &out[i];
        *d = (device){.id = case_text(n, "id"),
                      .name = case_text(n, "name"),
                      .area = case_text(n, "area"),
                      .kind = case_text(n, "kind"),
                      .state = ""};
        d->aliases = case_texts(yaml_get(n, "aliases"), &d->n_aliases, a);
        d->groups = case_texts(yaml_get(n, "groups"), &d->n_groups, a);
        assert_true(d->id && d->name);
    }
    return list->n;
}

/* "light.a light.b" in the home's order, "none", "unknown" or "ambiguous". */
static inline char *describe_match(const matching *m, const device *home, arena *a)
{
    buf b = {0};
    if (m->label != MATCH_ONE && m->label != MATCH_MANY) return arena_strdup(a, match_label_name(m->label));
    for (size_t i = 0; i < m->n; i++) buf_printf(&b, "%s%s", i ? " " : "", home[m->devices[i].device].id);
    char *s = arena_strndup(a, b.data, b.len);
    buf_done(&b);
    return s;
}

static inline bool has_id(const char *ids, const char *id)
{
    size_t n = strlen(id);
    for (const char *at = strstr(ids, id); at; at = strstr(at + 1, id))
        if ((at == ids || at[-1] == ' ') && (!at[n] || at[n] == ' ')) return true;
    return false;
}

/* The same ids, in any order; or the same word. */
static inline bool same_ids(const char *a, const char *b)
{
    if (strlen(a) != strlen(b)) return false;
    char copy[4096], *save = NULL;
    snprintf(copy, sizeof copy, "%s", a);
    for (char *id = strtok_r(copy, " ", &save); id; id = strtok_r(NULL, " ", &save))
        if (!has_id(b, id)) return false;
    return true;
}

/* Of ids that were found and were meant. */
typedef struct tally {
    size_t n, right, found, meant, both;
} tally;

static inline size_t count_ids(const char *s)
{
    size_t n = strchr(s, '.') != NULL;
    for (; n && *s; s++) n += *s == ' ';
    return n;
}

static inline void tally_ids(tally *t, const char *got, const char *want)
{
    char copy[4096], *save = NULL;
    t->n++;
    t->right += same_ids(got, want);
    t->found += count_ids(got);
    t->meant += count_ids(want);
    snprintf(copy, sizeof copy, "%s", strchr(got, '.') ? got : "");
    for (char *id = strtok_r(copy, " ", &save); id; id = strtok_r(NULL, " ", &save))
        t->both += has_id(want, id);
}

#endif
