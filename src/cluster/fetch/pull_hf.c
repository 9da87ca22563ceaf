/* pull_hf.c: what to take of a Hugging Face repository; see pull_plan.h. */
#include <stdio.h>
#include <string.h>

#include "json/json.h"
#include "base/utf8.h"
#include "fetch/pull_plan.h"
#include "kinds/model_kind.h"

void pull_put_size(buf *to, uint64_t bytes)
{
    static const char *const units[] = {"bytes", "kB", "MB", "GB", "TB"};
    double v = (double)bytes;
    size_t u = 0;
    while (v >= 999.5 && u < 4) v /= 1000, u++;
    buf_printf(to, u && v < 9.95 ? "%.1f %s" : "%.0f %s", v, units[u]);
}

/* ---- listing ------------------------------------------------------------------------------------------- */

/* A digest of n hexadecimal digits, copied; "" when it is none. */
static const char *digest_of(arena *mem, const json_t *v, size_t n)
{
    const char *s = json_string_value(v);
    uint8_t bytes[32];
    return s && strlen(s) == n && hex_decode(s, n, bytes, n / 2) ? arena_strdup(mem, s) : "";
}

static int read_entry(pull_list *l, const json_t *o, pull_item *ret, shoal_err *err)
{
    const char *path = json_string_value(json_object_get(o, "path"));
    const json_t *lfs = json_object_get(o, "lfs");
    int64_t size = -1;
    int rc = json_get_int(o, "size", 0, (int64_t)PULL_SIZE_MAX, &size, err);
    if (rc == 0 && json_is_object(lfs)) rc = json_get_int(lfs, "size", 0, (int64_t)PULL_SIZE_MAX, &size, err);
    if (rc != 0) return rc;
    *ret = (pull_item){.path = arena_strdup(l->mem, path),
                       .has_size = size >= 0,
                       .size = size < 0 ? 0 : (uint64_t)size,
                       .sha256 = digest_of(l->mem, json_object_get(lfs, "oid"), 64),
                       .sha1 = json_is_object(lfs) ? "" : digest_of(l->mem, json_object_get(o, "oid"), 40)};
    ret->source = ret->path;
    return ret->path && ret->sha256 && ret->sha1 ? 0 : err_nomem(err);
}

int pull_list_add_hf(pull_list *l, const json_t *page, shoal_err *err)
{
    if (!json_is_array(page)) return err_set(err, SHOAL_EPROTOCOL, "the list of files is no list");
    for (size_t i = 0; i < json_array_size(page); i++) {
        const json_t *o = json_array_get(page, i);
        const char *type = json_string_value(json_object_get(o, "type"));
        const char *path = json_string_value(json_object_get(o, "path"));
        if (!type || strcmp(type, "file") != 0 || !path || !pull_path_ok(path))
            continue; /* such as .gitattributes */
        if (l->n == PULL_FILES_MAX) return err_set(err, SHOAL_ELIMIT, "more than %d files", PULL_FILES_MAX);
        if (l->n == l->cap) {
            size_t cap = l->cap ? l->cap * 2 : 64;
            pull_item *items = arena_alloc(l->mem, cap * sizeof *items);
            if (!items) return err_nomem(err);
            if (l->n) memcpy(items, l->items, l->n * sizeof *items);
            l->items = items;
            l->cap = cap;
        }
        int rc = read_entry(l, o, &l->items[l->n], err);
        if (rc != 0) return rc;
        l->n++;
    }
    return 0;
}

/* ---- choosing ------------------------------------------------------------------------------------------ */

/* Length of what is before "-00001-of-00003.EXT"; 0 when a name is not numbered so. */
static size_t shard_stem(const char *path)
{
    const char *dot = strrchr(path, '.');
    unsigned part, parts;
    int used = 0;
    if (!dot || dot - path < 16) return 0;
    const char *of = dot - 15;
    return sscanf(of, "-%5u-of-%5u%n", &part, &parts, &used) == 2 && used == 15 ? (size_t)(of - path) : 0;
}

/* Are both parts of one numbered set, or the same file? */
static bool same_set(const char *a, const char *b)
{
    if (strlen(a) != strlen(b)) return false;
    if (strcmp(a, b) == 0) return true;
    size_t n = shard_stem(a);
    return n && n == shard_stem(b) && strncmp(a, b, n) == 0 && strcmp(strrchr(a, '.'), strrchr(b, '.')) == 0;
}

static bool is_gguf_model(const char *path)
{
    return model_kind_named(path) == &model_kind_gguf && !pull_has_word(path, "mmproj") &&
           !strstr(path, "imatrix");
}

static void pull_hf_add(pull_plan *p, const pull_item *item)
{
    p->items[p->n++] = *item;
}

/* The first item of each set of GGUF files that `word` (NULL: any) names; the number of sets. */
static size_t gguf_sets(const pull_list *l, const char *word, const pull_item **ret, size_t max)
{
    size_t n = 0;
    for (size_t i = 0; i < l->n; i++) {
        const pull_item *it = &l->items[i];
        bool known = false;
        if (!is_gguf_model(it->path) || (word && !pull_has_word(it->path, word))) continue;
        for (size_t k = 0; k < n && k < max; k++) known |= same_set(ret[k]->path, it->path);
        if (known) continue;
        if (n < max) ret[n] = it;
        n++;
    }
    return n;
}

static uint64_t set_size(const pull_list *l, const char *path)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < l->n; i++)
        if (same_set(path, l->items[i].path)) sum += l->items[i].size;
    return sum;
}

/* What a set of GGUF files is called for short: its file. */
void pull_choices(buf *to, const pull_list *l, const pull_ref *ref)
{
    const pull_item *sets[256];
    size_t n = gguf_sets(l, NULL, sets, 256);
    for (size_t i = 0; i < n && i < 256; i++) {
        buf_printf(to, "hf:%s:%s  ", ref->repo, sets[i]->path);
        pull_put_size(to, set_size(l, sets[i]->path));
        buf_putc(to, '\n');
    }
}

static int too_many(const pull_list *l, const pull_item *const *sets, size_t n, const pull_ref *ref,
                    shoal_err *err)
{
    buf names = {0};
    size_t shown = n < 6 ? n : 6;
    for (size_t i = 0; i < shown; i++) {
        const char *slash = strrchr(sets[i]->path, '/');
        buf_printf(&names, "%s%s (", i ? ", " : "", slash ? slash + 1 : sets[i]->path);
        pull_put_size(&names, set_size(l, sets[i]->path));
        buf_putc(&names, ')');
    }
    int rc = names.failed
                 ? err_nomem(err)
                 : err_set(err, SHOAL_EINVALID,
                           "hf:%.100s has %zu GGUF models; name one behind a colon (hf:%.100s:%.80s): %s%s",
                           ref->repo, n, ref->repo, sets[0]->path, names.data, n > shown ? ", ..." : "");
    buf_done(&names);
    return rc;
}

static void add_set(pull_plan *p, const pull_list *l, const char *path)
{
    for (size_t i = 0; i < l->n; i++)
        if (same_set(path, l->items[i].path)) pull_hf_add(p, &l->items[i]);
}

/* ref->file is a file's name, or a word that names one GGUF model. */
static int choose_named(pull_plan *p, const pull_list *l, const pull_ref *ref, shoal_err *err)
{
    const pull_item *sets[256];
    for (size_t i = 0; i < l->n; i++) {
        if (strcmp(l->items[i].path, ref->file) != 0) continue;
        add_set(p, l, ref->file);
        return 0;
    }
    size_t n = gguf_sets(l, ref->file, sets, 256);
    if (n > 1) return too_many(l, sets, n < 256 ? n : 256, ref, err);
    if (n == 0) {
        size_t all = gguf_sets(l, NULL, sets, 256);
        if (all) (void)too_many(l, sets, all < 256 ? all : 256, ref, err);
        return all ? err_prefix(err, SHOAL_ENOTFOUND, "no file \"%.100s\"", ref->file)
                   : err_set(err, SHOAL_ENOTFOUND, "hf:%.200s has no file \"%.100s\"", ref->repo, ref->file);
    }
    add_set(p, l, sets[0]->path);
    return 0;
}

/* The safetensors at the top: the usual names first, then the only one. */
static const char *main_weights(const pull_list *l, size_t *ret_n)
{
    const char *best = NULL;
    *ret_n = 0;
    for (size_t i = 0; i < l->n; i++) {
        const char *path = l->items[i].path;
        if (model_kind_hf.file(path) != MODEL_FILE_WEIGHTS) continue;
        bool usual = strcmp(path, "model.safetensors") == 0 ||
                     strcmp(path, "adapter_model.safetensors") == 0 ||
                     (strncmp(path, "model-", 6) == 0 && shard_stem(path));
        if (usual && (!best || strcmp(path, "model.safetensors") == 0)) best = path;
        if (!usual) ++*ret_n;
    }
    if (best) *ret_n = 1;
    for (size_t i = 0; !best && *ret_n == 1 && i < l->n; i++)
        if (model_kind_hf.file(l->items[i].path) == MODEL_FILE_WEIGHTS) best = l->items[i].path;
    return best;
}

static int no_weights(const pull_list *l, const pull_ref *ref, size_t n, shoal_err *err)
{
    bool bin = false;
    for (size_t i = 0; i < l->n; i++)
        bin |= model_name_ends(l->items[i].path, ".bin") || model_name_ends(l->items[i].path, ".pt");
    if (n > 1)
        return err_set(err, SHOAL_EINVALID,
                       "hf:%.200s has %zu safetensors of unusual names; name one: hf:%.200s:FILE", ref->repo,
                       n, ref->repo);
    if (bin)
        return err_set(
            err, SHOAL_EUNSUPPORTED,
            "hf:%.200s has its weights as PyTorch files alone (.bin), which can run code; look for a "
            "repository with safetensors or GGUF, or convert it with the transformers package "
            "(save_pretrained with safe_serialization=True)",
            ref->repo);
    return err_set(err, SHOAL_ENOTFOUND,
                   "hf:%.200s has neither safetensors nor GGUF; name a file: hf:%.200s:FILE", ref->repo,
                   ref->repo);
}

/* The kind of a repository without safetensors and GGUF; *ret is NULL where it is none. */
static int other_kind(const pull_list *l, const model_kind **ret, shoal_err *err)
{
    const char **names = arena_alloc(l->mem, l->n * sizeof *names + 1);
    if (!names) return err_nomem(err);
    for (size_t i = 0; i < l->n; i++) names[i] = l->items[i].path;
    *ret = model_kind_listed(names, l->n);
    return 0;
}

/* What belongs to a model of that kind; weights: one of its safetensors, NULL: all weights. */
static void add_files(pull_plan *p, const pull_list *l, const model_kind *kind, const char *weights)
{
    for (size_t i = 0; i < l->n; i++) {
        const char *path = l->items[i].path;
        model_file_role role = model_kind_file(kind, path);
        bool index = weights && shard_stem(weights) && strcmp(path, "model.safetensors.index.json") == 0;
        bool is_weights = weights ? same_set(weights, path) : role == MODEL_FILE_WEIGHTS;
        if (is_weights || role == MODEL_FILE_SIDE || index) pull_hf_add(p, &l->items[i]);
    }
}

static int choose_model(pull_plan *p, const pull_list *l, const pull_ref *ref, shoal_err *err)
{
    const pull_item *sets[256];
    size_t n_weights, n_gguf = gguf_sets(l, NULL, sets, 256);
    const char *weights = main_weights(l, &n_weights);
    const model_kind *kind = weights ? &model_kind_hf : NULL;
    int rc = !weights && n_gguf == 0 ? other_kind(l, &kind, err) : 0;
    if (rc != 0) return rc;
    if (!kind && n_gguf > 1) return too_many(l, sets, n_gguf < 256 ? n_gguf : 256, ref, err);
    if (!kind && n_gguf == 0) return no_weights(l, ref, n_weights, err);
    if (!kind) {
        add_set(p, l, sets[0]->path);
        return 0;
    }
    add_files(p, l, kind, weights);
    p->folder = ref->name;
    return 0;
}

int pull_plan_hf(pull_plan *ret, arena *mem, const pull_list *l, const pull_ref *ref, shoal_err *err)
{
    pull_plan p = {.mem = mem, .items = arena_alloc(mem, l->n * sizeof *p.items + 1)};
    if (!p.items) return err_nomem(err);
    int rc = ref->file ? choose_named(&p, l, ref, err) : choose_model(&p, l, ref, err);
    if (rc != 0) return rc;
    if (!p.folder && p.n > 1) p.folder = ref->name; /* the parts of one model stay together */
    for (size_t i = 0; !p.folder && i < p.n; i++) {
        const char *slash = strrchr(p.items[i].path, '/');
        if (slash) p.items[i].path = slash + 1;
        if (!pull_path_ok(p.items[i].path))
            return err_set(err, SHOAL_EINVALID, "\"%.100s\" is no name for a file here", p.items[i].path);
    }
    *ret = p;
    return 0;
}
