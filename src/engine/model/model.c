/* model.c: a model is opened, checked against its configuration, and asked. */
#include "model/model.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <strings.h>

#include "base/file.h"
#include "base/sha256.h"
#include "kinds/model_kind.h"
#include "model/arch/arch.h"
#include "model/model_build.h"
#include "model/model_priv.h"
#include "model/packed/regroup.h"

/* ---- the check -------------------------------------------------------------------------------------- */

static int model_by_name(const void *a, const void *b)
{
    return strcmp(((const tensor *)a)->name, ((const tensor *)b)->name);
}

const tensor *model_tensor(const model *m, const char *name)
{
    tensor probe = {.name = name};
    return m->n_tensors ? bsearch(&probe, m->tensors, m->n_tensors, sizeof *m->tensors, model_by_name) : NULL;
}

/* Some converters leave it out. A classifier on the bare first token gives other answers, which look fine. */
static int no_pooler(const model *m, const char *name, shoal_err *err)
{
    return err_set(
        err, SHOAL_EFORMAT,
        "%s: the file is incomplete: tensor %s, the pooler that its classifier reads, was left out when "
        "it was converted, and without it the answers would be wrong; convert the original folder with "
        "\"shoal quantize FOLDER OUT.gguf\" or serve the folder itself",
        m->path, name);
}

static int missing_tensor(const model *m, const char *name, shoal_err *err)
{
    if (m->config.arch->needs_pooler && strncmp(name, "cls.", 4) == 0) return no_pooler(m, name, err);
    return err_set(err, SHOAL_EFORMAT, "%s: tensor %s is missing", m->path, name);
}

/* Shapes were compared when the tensor was adopted. */
static int check_rule(const model *m, const tensor_rule *r, shoal_err *err)
{
    size_t n = rule_layers(&m->config, r);
    if (r->flags & (RULE_OPTIONAL | RULE_ALIAS)) return 0;
    for (size_t layer = 0; layer < n; layer++) {
        rule_hit h = {.rule = r, .layer = layer};
        char name[128];
        if (!rule_wanted(&m->config, r, layer)) continue;
        rule_name(&h, NAME_MEMORY, name);
        if (!model_tensor(m, name)) return missing_tensor(m, name, err);
        h.bias = true;
        rule_name(&h, NAME_MEMORY, name);
        if ((r->flags & RULE_BIAS) && !model_tensor(m, name)) return missing_tensor(m, name, err);
    }
    return 0;
}

/* A configuration of fewer layers than the file has would run, and answer wrongly. */
static int check_layer(const model *m, const tensor *t, shoal_err *err)
{
    rule_hit h;
    if (!arch_find(m->config.arch, t->name, &h) || h.layer < rule_layers(&m->config, h.rule)) return 0;
    return err_set(err, SHOAL_EFORMAT, "%s: tensor %s lies behind the %zu layers of the configuration",
                   m->path, t->name, rule_layers(&m->config, h.rule));
}

static int check_tensors(model *m, shoal_err *err)
{
    if (m->n_tensors) qsort(m->tensors, m->n_tensors, sizeof *m->tensors, model_by_name);
    for (size_t i = 1; i < m->n_tensors; i++)
        if (model_by_name(&m->tensors[i - 1], &m->tensors[i]) == 0)
            return err_set(err, SHOAL_EFORMAT, "%s: tensor %s appears twice", m->path, m->tensors[i].name);
    const tensor_rule *r;
    for (size_t i = 0; (r = arch_rule(m->config.arch, i)); i++) {
        int rc = check_rule(m, r, err);
        if (rc != 0) return rc;
    }
    for (size_t i = 0; i < m->n_tensors; i++) {
        int rc = check_layer(m, &m->tensors[i], err);
        if (rc != 0) return rc;
    }
    return 0;
}

/* Ids past the embedding matrix would be reads past the weights. */
static int check_vocabulary(const model *m, shoal_err *err)
{
    if (!m->tok || tokenizer_vocab_size(m->tok) <= m->config.n_vocab) return 0;
    return err_set(err, SHOAL_EINVALID, "%s: its tokenizer has %zu tokens but the model embeds %zu", m->path,
                   tokenizer_vocab_size(m->tok), m->config.n_vocab);
}

static const char *commonest_type(const model *m)
{
    size_t count[DT_COUNT] = {0};
    for (size_t i = 0; i < m->n_tensors; i++) {
        const tensor *t = &m->tensors[i];
        if (t->dims[1] > 1) count[regroup_type(m, t)] += t->dims[0] * t->dims[1];
    }
    int best = 0;
    for (int i = 1; i < DT_COUNT; i++)
        if (count[i] > count[best]) best = i;
    return dtype_name((dtype)best);
}

/* ---- digests ------------------------------------------------------------------------------------------ */

static int digest_folder(const model *m, sha256_digest *ret, shoal_err *err)
{
    sha256 *s = sha256_new();
    char *config = arena_printf(m->mem, "%s/config.json", m->path);
    if (!s || !config) {
        sha256_digest unused;
        if (s) sha256_end(s, &unused);
        return err_nomem(err);
    }
    int rc = 0;
    for (size_t i = 0; rc == 0 && i <= m->n_maps; i++) {
        file_map f;
        rc = file_map_open(&f, i == 0 ? config : m->map_paths[i - 1], err);
        if (rc != 0) break;
        if (f.len) sha256_add(s, f.data, f.len);
        file_map_close(&f);
    }
    sha256_digest d;
    sha256_end(s, &d);
    if (rc == 0) *ret = d;
    return rc;
}

int model_digest(model *m, sha256_digest *ret, shoal_err *err)
{
    if (!m->has_digest) {
        int rc = 0;
        if (m->store.whole || !packed_store_recall(&m->store, &m->identity, &m->digest))
            rc = m->is_folder ? digest_folder(m, &m->digest, err) : sha256_file(m->path, &m->digest, err);
        if (rc != 0) return rc;
        m->has_digest = true;
    }
    *ret = m->digest;
    return 0;
}

static int check_digest(model *m, const char *expected, shoal_err *err)
{
    sha256_digest d;
    int rc = model_digest(m, &d, err);
    if (rc != 0) return rc;
    char hex[65];
    sha256_hex(&d, hex);
    if (strcasecmp(hex, expected) == 0) return 0;
    return err_set(
        err, SHOAL_EDIGEST,
        "%s: its SHA-256 is %s but %.64s is pinned: the file is damaged or is not the one that was checked",
        m->path, hex, expected);
}

/* ---- open and close ----------------------------------------------------------------------------------- */

static const char *last_part(arena *mem, const char *path)
{
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/') n--;
    size_t begin = n;
    while (begin > 0 && path[begin - 1] != '/') begin--;
    return arena_strndup(mem, path + begin, n - begin);
}

static int model_new(model **ret, const char *path, shoal_err *err)
{
    arena *mem = arena_new(16384);
    model *m = mem ? arena_alloc(mem, sizeof *m) : NULL;
    if (!m) {
        arena_free(mem);
        return err_nomem(err);
    }
    m->mem = mem;
    m->path = arena_strdup(mem, path);
    m->name = last_part(mem, path);
    m->version = "";
    m->template_end = -1;
    if (!m->path || !m->name) {
        model_free(m);
        return err_nomem(err);
    }
    *ret = m;
    return 0;
}

/* What tells this model apart from others by what the file system says. Of a folder, its configuration at
 * first; the loader adds each file of weights when it maps it. */
static int identify(const model *m, packed_identity *ret, shoal_err *err)
{
    if (!m->is_folder) return packed_identify(ret, m->path, err);
    char *config = arena_printf(m->mem, "%s/config.json", m->path);
    if (!config) return err_nomem(err);
    if (file_exists(config)) return packed_identify(ret, config, err);
    *ret = (packed_identity){0}; /* the loader says what is missing */
    return 0;
}

static int find_store(model *m, const model_options *opts, shoal_err *err)
{
    if (!opts->store || !opts->store->folder) return 0;
    m->store = *opts->store;
    m->store.folder = arena_strdup(m->mem, opts->store->folder);
    return m->store.folder ? identify(m, &m->identity, err) : err_nomem(err);
}

/* What was read is what was identified, or nobody may be told that it is. */
static void confirm_identity(model *m)
{
    packed_identity now = {0};
    if (!packed_identity_known(&m->identity)) return;
    int rc = identify(m, &now, NULL);
    for (size_t i = 0; rc == 0 && m->is_folder && i < m->n_maps; i++)
        rc = packed_identify_also(&now, m->map_paths[i], NULL);
    if (rc || memcmp(&now, &m->identity, sizeof now) != 0) m->identity = (packed_identity){0};
}

/* A generator takes token ids; who expects to send it text learns it here and not from each request. */
static int add_notices(model *m, shoal_err *err)
{
    const char *left_out = m->config.sampling_left_out;
    int rc = 0;
    if (!m->tok && m->tok_error && m->config.task == TASK_GENERATE)
        rc = model_add_notice(m, "it takes token ids and no text: ", m->tok_error, err);
    return rc == 0 && left_out
               ? model_add_notice(m, "sampling values of its files that are left out: ", left_out, err)
               : rc;
}

/* What reads a kind's files; of a kind that is not here, its program reads them. */
static const struct {
    const model_kind *kind;
    int (*load)(model *m, const model_options *opts, shoal_err *err);
} LOADERS[] = {{&model_kind_gguf, model_load_gguf},
               {&model_kind_llama2c, model_load_gguf}, /* which knows such a file by its length */
               {&model_kind_bare, model_load_voice},
               {&model_kind_ct2, model_load_ct2},
               {&model_kind_hf, model_load_hf}};

static int load_files(model *m, const model_options *opts, shoal_err *err)
{
    const model_kind *kind = model_kind_of(m->path);
    for (size_t i = 0; i < sizeof LOADERS / sizeof *LOADERS; i++)
        if (LOADERS[i].kind == kind) return LOADERS[i].load(m, opts, err);
    return m->is_folder ? model_load_hf(m, opts, err) : model_load_gguf(m, opts, err);
}

static int model_model_load(model *m, const model_options *opts, shoal_err *err)
{
    m->is_folder = file_is_dir(m->path);
    m->regroup = regroup_is_type(opts->regroup) ? opts->regroup : 0;
    int rc = find_store(m, opts, err);
    /* A pinned file is compared before anything in it is believed. */
    if (rc == 0 && opts->expect_sha256 && !m->is_folder) rc = check_digest(m, opts->expect_sha256, err);
    if (rc == 0) rc = load_files(m, opts, err);
    if (rc == 0) confirm_identity(m);
    if (rc == 0 && opts->expect_sha256 && m->is_folder) rc = check_digest(m, opts->expect_sha256, err);
    if (rc == 0) rc = check_tensors(m, err);
    if (rc == 0) rc = check_vocabulary(m, err);
    if (rc == 0) rc = model_build_default_template(m, opts, err);
    if (rc == 0) rc = model_build_ends(m, err);
    if (rc == 0) rc = add_notices(m, err);
    if (rc == 0) rc = regroup_check(m, err);
    if (rc == 0) m->quantisation = commonest_type(m);
    return rc;
}

static bool is_empty_file(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == 0;
}

/* A copy or a download that broke off is told as such, whatever the loader met first. */
static int say_damage(const char *path, int rc, shoal_err *err)
{
    static const char *const CUT[] = {"past the file", "than the file has room for",
                                      "than fit into the file"};
    shoal_err why = *err;
    if (rc != SHOAL_EFORMAT) return rc;
    if (is_empty_file(path))
        return err_set(err, rc, "%s: the file is empty; copy or download it again", path);
    for (size_t i = 0; i < sizeof CUT / sizeof *CUT; i++)
        if (strstr(why.message, CUT[i]))
            return err_set(err, rc, "%.400s: the file is incomplete; copy or download it again", why.message);
    return rc;
}

int model_open(model **ret, const char *path, const model_options *opts, shoal_err *err)
{
    static const model_options defaults;
    shoal_err local;
    model *m = NULL;
    if (!err) err = &local; /* the loaders read the sentence back */
    int rc = model_new(&m, path, err);
    if (rc == 0) rc = model_model_load(m, opts ? opts : &defaults, err);
    if (rc != 0) {
        model_free(m);
        return say_damage(path, rc, err);
    }
    *ret = m;
    return 0;
}

void model_measure(model *m, importance *imp)
{
    m->importance = imp;
}
importance *model_measured(const model *m)
{
    return m->importance;
}

void model_pack_into(model *m, weights *home)
{
    m->home = home;
}
weights *model_home(const model *m)
{
    return m->home;
}

const packed_store *model_packs(const model *m)
{
    return &m->store;
}
const packed_identity *model_identity(const model *m)
{
    return &m->identity;
}

void model_release(const model *m, const void *data, size_t bytes)
{
    for (size_t i = 0; i < m->n_maps; i++) file_map_release(&m->maps[i], data, bytes);
}

void model_drop_weights(model *m)
{
    gguf_free(m->file);
    m->file = NULL;
    arena_free(m->weights);
    m->weights = NULL;
    for (size_t i = 0; i < m->n_maps; i++) file_map_close(&m->maps[i]);
    for (size_t i = 0; i < m->n_tensors; i++) m->tensors[i].data = NULL;
}

void model_free(model *m)
{
    if (!m) return;
    model_drop_weights(m);
    tokenizer_free(m->tok);
    chat_template_free(m->chat);
    arena_free(m->mem);
}

/* ---- getters --------------------------------------------------------------------------------- */

const model_config *model_get_config(const model *m)
{
    return &m->config;
}

size_t model_tensor_count(const model *m)
{
    return m->n_tensors;
}

const tensor *model_tensor_at(const model *m, size_t i)
{
    return i < m->n_tensors ? &m->tensors[i] : NULL;
}

const tokenizer *model_tokenizer(const model *m)
{
    return m->tok;
}

const char *model_tokenizer_error(const model *m)
{
    return m->tok_error;
}

int model_check_text(const model *m, shoal_err *err)
{
    static const bool reads_text[TASK_COUNT] = {
        [TASK_CLASSIFY] = true, [TASK_TAG] = true,       [TASK_EMBED] = true,
        [TASK_RERANK] = true,   [TASK_FILL_MASK] = true, [TASK_SEQ2SEQ] = true};
    if (m->tok || !m->tok_error || !reads_text[m->config.task]) return 0;
    return err_set(err, SHOAL_EUNSUPPORTED, "%s: it reads text, but %s", m->path, m->tok_error);
}

const chat_template *model_chat_template(const model *m)
{
    return m->chat;
}

bool model_chat_template_is_default(const model *m)
{
    return m->default_chat;
}

bool model_chat_template_is_beside(const model *m)
{
    return m->chat_beside;
}

const char *model_chat_template_error(const model *m)
{
    return m->chat_error;
}

int32_t model_template_end(const model *m)
{
    return m->template_end;
}

const char *model_generation_json(const model *m)
{
    return m->generation_json;
}

const char *model_series_json(const model *m)
{
    return m->series_json;
}

const char *model_preprocessor_json(const model *m)
{
    return m->preprocessor_json;
}

const char *model_notice(const model *m)
{
    return m->notice;
}

bool model_quotes_results(const model *m)
{
    return m->quotes_results;
}

const char *model_path(const model *m)
{
    return m->path;
}

const char *model_name(const model *m)
{
    return m->name;
}

const char *model_file_type(const model *m)
{
    return m->file_type && !m->regroup ? m->file_type : m->quantisation;
}

const char *model_quantisation(const model *m)
{
    return m->quantisation;
}

const char *model_version(const model *m)
{
    return m->version;
}
