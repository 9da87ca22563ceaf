/* shoal init [FOLDER]: writes a commented shoal.yaml for what it finds there: models, and the devices of a Home Assistant
 * export. The file is checked before it takes its name. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/utf8.h"
#include "cli/commands.h"
#include "command/cli_model.h"
#include "config/config.h"
#include "json/json.h"
#include "kinds/model_kind.h"
#include "manager/manager_find.h"
#include "os/installed.h"
#include "pipeline/pipeline.h"
#include "rules/home.h"
#include "serve/home_export.h"
#include "serve/serve_address.h"
#include "serve/serve_given.h"
#include "serve/serve_models.h"
#include "yaml/yaml.h"

#define LEXICON      "lexicons/home.yaml"
#define FUNCTIONS    "lexicons/functions.yaml"
#define BUNDLED_NAME "home-chat-s"

enum { EXPORT_MAX_BYTES = 64 << 20, LEXICON_MAX_BYTES = 4 << 20, DOMAINS_MAX = 64 };

typedef struct found {
    const char *folder;
    serve_given models; /* whole paths, malloc'd */
    home_export home;
    json_t *devices; /* NULL: no export */
    json_t *unknown; /* how many of which domains the lexicon has no words for; NULL: no export */
    size_t n_exports, n_more, n_models_more;
    buf left_out; /* comments about models that cannot be served */
    size_t n_left_out;
    bool has_bundled; /* a model of BUNDLED_NAME lies there */
} found;

/* ---- what is there ---------------------------------------------------------------------------------- */

static bool is_model(const char *path)
{
    char config[4200];
    snprintf(config, sizeof config, "%s/config.json", path);
    if (file_is_dir(path)) return file_exists(config);
    const char *slash = strrchr(path, '/');
    return model_kind_named(slash + 1) == &model_kind_gguf;
}

/* Other programs call a file config.json, too: a model's folder has weights. */
static bool has_weights(const char *folder)
{
    const model_kind *kind = model_kind_of(folder);
    DIR *d = opendir(folder);
    bool found = !d; /* its loader says why */
    for (struct dirent *e; d && !found && (e = readdir(d));)
        found = model_kind_file(kind, e->d_name) == MODEL_FILE_WEIGHTS;
    if (d) closedir(d);
    return found;
}

static bool may_be_export(const char *name)
{
    return model_name_ends(name, ".json") || strncmp(name, "core.", 5) == 0;
}

/* A file that is no JSON, or other JSON, is somebody else's. */
static int look_at_json(found *f, const char *path, shoal_err *err)
{
    json_t *j = NULL;
    bool known = false;
    int rc = json_parse_file(&j, path, EXPORT_MAX_BYTES, err);
    if (rc == 0) home_export_add(&f->home, j, &known);
    f->n_exports += known;
    json_decref(j);
    return rc == SHOAL_ENOMEM ? rc : 0;
}

/* Words of others as a part of a comment: one line, whatever they hold. */
static void put_words(buf *out, const char *s)
{
    buf quoted = {0};
    if (yaml_put_text(&quoted, s, strlen(s)) == 0) buf_append(out, quoted.data + 1, quoted.len - 2);
    out->failed |= quoted.failed;
    buf_done(&quoted);
}

static void leave_out(buf *out, const char *name, const char *why)
{
    buf_puts(out, "  # ");
    put_words(out, name);
    buf_puts(out, " is left out: ");
    put_words(out, why);
    buf_puts(out, "\n");
}

static bool can_be_named(found *f, const char *path, const char *name)
{
    if (!utf8_valid(name, strlen(name), NULL))
        leave_out(&f->left_out, name, "its name is not UTF-8");
    else if (access(path, R_OK) != 0)
        leave_out(&f->left_out, name, strerror(errno));
    else
        return true;
    f->n_left_out++;
    return false;
}

/* Takes path. */
static void add_model(found *f, char *path, const char *name)
{
    cli_list *m = &f->models.models;
    bool fits = m->n < sizeof m->v / sizeof *m->v;
    f->n_models_more += !fits;
    if (fits && can_be_named(f, path, name))
        m->v[m->n++] = path;
    else
        free(path);
}

/* *ret_doubtful, malloc'd: the path of a folder without weights, which comes behind all others; else it stays NULL. */
static int look_at(found *f, const char *name, char **ret_doubtful, shoal_err *err)
{
    char *path = NULL;
    int rc = asprintf(&path, "%s/%s", f->folder, name) < 0 ? err_nomem(err) : 0;
    if (rc != 0) return rc;
    const bool models = is_model(path), folder = file_is_dir(path);
    if (models && folder && !has_weights(path)) {
        *ret_doubtful = path;
    } else if (models) {
        add_model(f, path, name);
    } else {
        if (may_be_export(name) && !folder) rc = look_at_json(f, path, err);
        free(path);
    }
    return rc;
}

static int look_into(found *f, shoal_err *err)
{
    struct dirent **all = NULL;
    int n = scandir(f->folder, &all, NULL, alphasort), rc = 0;
    if (n < 0)
        return err_set(err, SHOAL_ENOTFOUND, "%s: %s; shoal init wants a folder", f->folder, strerror(errno));
    char **doubtful = calloc((size_t)n + 1, sizeof *doubtful);
    if (!doubtful) rc = err_nomem(err);
    for (int i = 0; rc == 0 && i < n; i++)
        if (all[i]->d_name[0] != '.') rc = look_at(f, all[i]->d_name, &doubtful[i], err);
    for (int i = 0; i < n; i++) {
        if (doubtful && doubtful[i]) add_model(f, doubtful[i], all[i]->d_name);
        free(all[i]);
    }
    free(doubtful);
    free(all);
    return rc;
}

/* ---- devices ---------------------------------------------------------------------------------------- */

/* The domains that the lexicon has words for, in its order. Borrowed from *ret_doc. */
static int read_domains(const found *f, yaml_doc **ret_doc, const char *domains[DOMAINS_MAX], size_t *ret_n,
                        shoal_err *err)
{
    char path[INSTALLED_PATH_BYTES] = LEXICON;
    buf text = {0};
    *ret_n = 0;
    snprintf(path, sizeof path, "%s/" LEXICON, f->folder); /* as the file that is written finds it */
    if (!file_exists(path) && !installed_find(path, sizeof path, LEXICON))
        return err_set(err, SHOAL_ENOTFOUND, "%s, which came with this program, is not there", LEXICON);
    int rc = file_read(&text, path, LEXICON_MAX_BYTES, err);
    if (rc == 0) rc = yaml_parse(ret_doc, text.data, text.len, path, err);
    buf_done(&text);
    const yaml_node *kinds = rc == 0 ? yaml_get(yaml_root(*ret_doc), "kinds") : NULL;
    for (size_t i = 0; kinds && i < kinds->n; i++) {
        const yaml_node *list = yaml_get(kinds->items[i], "domains");
        for (size_t k = 0; list && list->kind == YAML_LIST && k < list->n && *ret_n < DOMAINS_MAX; k++)
            if (list->items[k]->kind == YAML_SCALAR) domains[(*ret_n)++] = list->items[k]->text;
    }
    return rc;
}

static int find_devices(found *f, shoal_err *err)
{
    const char *domains[DOMAINS_MAX];
    yaml_doc *doc = NULL;
    size_t n;
    if (f->n_exports == 0) return 0;
    int rc = read_domains(f, &doc, domains, &n, err);
    if (rc == 0) rc = home_export_devices(&f->home, domains, n, &f->devices, err);
    if (rc == 0) rc = home_export_left_out(&f->home, domains, n, &f->unknown, err);
    yaml_doc_free(doc);
    while (rc == 0 && json_array_size(f->devices) > PIPELINE_DEVICES_MAX) {
        json_array_remove(f->devices, json_array_size(f->devices) - 1);
        f->n_more++;
    }
    return rc;
}

/* ---- models ----------------------------------------------------------------------------------------- */

typedef struct described {
    gateway_config *config;
    worker_spec *specs;
    json_t *said;
} described;

static void described_done(described *d)
{
    if (d->specs) serve_models_free(d->specs, d->config->n_models);
    config_free(d->config);
    json_decref(d->said);
}

static int describe(found *f, described *ret, shoal_err *err)
{
    if (f->models.models.n == 0) return 0;
    int rc = serve_given_config(&ret->config, &f->models, err);
    if (rc == 0) rc = serve_models_find(&ret->specs, ret->config, err);
    if (rc == 0) rc = serve_models_describe(ret->config, ret->specs, &ret->said, err);
    return rc;
}

static const char *name_in(const found *f, const char *path)
{
    return path + strlen(f->folder) + 1;
}

static size_t put_models(buf *out, found *f, const described *d)
{
    size_t n = 0;
    for (size_t i = 0; d->config && i < d->config->n_models; i++) {
        const json_t *o = json_array_get(d->said, i);
        const char *task = json_string_value(json_object_get(o, "task"));
        const char *why = json_string_value(json_object_get(o, "error")),
                   *file = name_in(f, f->models.models.v[i]);
        if (!task) {
            leave_out(out, file, why ? why : "it cannot be read");
            f->n_left_out++;
            continue;
        }
        buf_printf(out, "  # to %s\n  - name: %s\n    path: ", task, d->config->models[i].name);
        yaml_put_text(out, file, strlen(file));
        buf_puts(out, "\n");
        f->has_bundled |= strcmp(d->config->models[i].name, BUNDLED_NAME) == 0;
        n++;
    }
    return n;
}

/* ---- the file --------------------------------------------------------------------------------------- */

static const char HEAD[] =
    "# Written by `shoal init`. `shoal config check` checks it, docs/configuration.md has every key.\n"
    "# Relative paths start at this file's folder; what is not there is looked for among the program's own "
    "files.\n"
    "\n"
    "listen: 127.0.0.1:8080 # 0.0.0.0:8080 serves other machines, too: give it api_keys then\n"
    "\n"
    "models: # further keys of each: context, kv_mb, threads, replicas\n";

static const char BUNDLED[] =
    "  # bundled; chooses where the words of a request leave several services open\n"
    "  - name: " BUNDLED_NAME "\n"
    "    kv_mb: 32\n";

static const char STAGES[] =
    "    stages:\n"
    "      # What a request means for the devices. Only what is clear is acted on; calls are in the answer, "
    "and the\n"
    "      # client carries them out.\n"
    "      - name: request\n"
    "        kind: ground\n"
    "        lexicon: " LEXICON "\n"
    "      # Where several services fit, the small generator chooses one of them and nothing else.\n"
    "      - name: choice\n"
    "        kind: generate\n"
    "        model: " BUNDLED_NAME "\n"
    "        when: [{stage: request, label: [choose, propose]}]\n"
    "        choices: request\n"
    "        system: \"You are Shoal, a helper that runs this home. Devices:\\n{devices}\"\n"
    "        prompt: \"{Input}\"\n"
    "        max_tokens: 160\n"
    "        optional: true\n"
    "      - name: choice_checked\n"
    "        kind: check\n"
    "        of: choice\n"
    "        against: request\n"
    "        when: [{stage: request, label: [choose, propose]}]\n";

static void put_text(buf *out, const json_t *text)
{
    yaml_put_text(out, json_string_value(text), json_string_length(text));
}

static void put_texts(buf *out, const json_t *list)
{
    size_t i;
    const json_t *text;
    json_array_foreach(list, i, text)
    {
        buf_puts(out, i ? ", " : "[");
        put_text(out, text);
    }
    buf_puts(out, "]");
}

static void put_device(buf *out, const json_t *device)
{
    static const char *const keys[] = {"id", "name", "state", "unit", "area", "aliases"};
    const char *comma = "      - {";
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const json_t *v = json_object_get(device, keys[i]);
        if (!v) continue;
        buf_printf(out, "%s%s: ", comma, keys[i]);
        if (json_is_array(v))
            put_texts(out, v);
        else
            put_text(out, v);
        comma = ", ";
    }
    buf_puts(out, "}\n");
}

/* "12 automation, 3 update" */
static void put_unknown(buf *out, const found *f)
{
    enum { SHOWN = 20 };
    const char *domain;
    json_t *n;
    size_t k = 0;
    json_object_foreach(f->unknown, domain, n)
    {
        if (k++ < SHOWN)
            buf_printf(out, "%s%lld %s", k > 1 ? ", " : "", (long long)json_integer_value(n), domain);
    }
    if (k > SHOWN) buf_printf(out, " and others");
}

static size_t n_unknown(const found *f)
{
    const char *domain;
    json_t *n;
    size_t all = 0;
    json_object_foreach(f->unknown, domain, n) all += (size_t)json_integer_value(n);
    return all;
}

static void put_home(buf *out, const found *f)
{
    size_t i;
    const json_t *device;
    buf_puts(
        out,
        "\npipelines:\n  - name: home\n"
        "    use: controlling the devices of this home and answering about them\n"
        "    # As a chat model: which functions of a request carry out its calls.\n"
        "    functions: " FUNCTIONS "\n"
        "    # As exported; a request's context.devices replaces the list, with the states of that moment.\n"
        "    devices:\n");
    json_array_foreach(f->devices, i, device) put_device(out, device);
    if (json_object_size(f->unknown)) {
        buf_puts(out, "      # left out, as the lexicon has no words for them: ");
        put_unknown(out, f);
        buf_putc(out, '\n');
    }
    if (f->n_more)
        buf_printf(out, "      # %zu more are left out: a list holds %d\n", f->n_more, PIPELINE_DEVICES_MAX);
    buf_puts(out, STAGES);
}

static int put_file(buf *out, found *f, size_t *ret_models, shoal_err *err)
{
    described d = {0};
    int rc = describe(f, &d, err);
    buf_puts(out, HEAD);
    if (rc == 0) *ret_models = put_models(out, f, &d);
    buf_append(out, f->left_out.data, f->left_out.len);
    if (f->n_models_more)
        buf_printf(out, "  # %zu more are left out: name those that are to be served\n", f->n_models_more);
    if (json_array_size(f->devices) > 0) {
        if (!f->has_bundled) buf_puts(out, BUNDLED);
        put_home(out, f);
    }
    described_done(&d);
    return rc == 0 && (out->failed || f->left_out.failed) ? err_nomem(err) : rc;
}

/* An empty file that was not there before, beside path, so that errors name it and nothing of anybody's is lost. *ret is
 * malloc'd. */
static int make_draft(char **ret, const char *path, shoal_err *err)
{
    char *draft = NULL;
    if (asprintf(&draft, "%s.XXXXXX", path) < 0) return err_nomem(err);
    int fd = mkstemp(draft);
    if (fd < 0) {
        int rc = err_set(err, SHOAL_EIO, "%s: %s", draft, strerror(errno));
        free(draft);
        return rc;
    }
    close(fd);
    *ret = draft;
    return 0;
}

/* Under another name until it is known to be right. */
static int write_checked(const char *path, const buf *text, shoal_err *err)
{
    char *draft = NULL;
    gateway_config *c = NULL;
    worker_spec *specs = NULL;
    int rc = make_draft(&draft, path, err);
    if (rc != 0) return rc;
    rc = file_replace(draft, text, err);
    if (rc == 0) rc = config_load(&c, &HOME_STAGES, draft, err);
    if (rc == 0) rc = serve_models_find(&specs, c, err);
    if (rc == 0 && rename(draft, path) != 0) rc = err_set(err, SHOAL_EIO, "%s: %s", path, strerror(errno));
    if (rc != 0) unlink(draft);
    if (specs) serve_models_free(specs, c->n_models);
    config_free(c);
    free(draft);
    return rc;
}

/* ---- the command ------------------------------------------------------------------------------------ */

static int nothing_found(const found *f, shoal_err *err)
{
    const char *folder = f->folder;
    if (n_unknown(f)) {
        buf others = {0};
        put_unknown(&others, f);
        int rc = others.failed ? err_nomem(err)
                               : err_set(err, SHOAL_ENOTFOUND,
                                         "%s: " LEXICON " has no words for any of the devices there (%s); "
                                         "docs/understanding.md tells how to add a kind",
                                         folder, buf_text(&others));
        buf_done(&others);
        return rc;
    }
    return err_set(
        err, SHOAL_ENOTFOUND,
        "%s holds no model and no Home Assistant export; put a GGUF file, a Hugging Face folder, or the "
        "answer of GET /api/states as states.json there",
        folder);
}

static void say_done(const found *f, const char *path, size_t n_models, bool json)
{
    char program[4096];
    serve_program(program, sizeof program);
    size_t n = json_array_size(f->devices), n_without = f->n_left_out + f->n_models_more;
    bool here = strcmp(f->folder, ".") == 0;
    if (json) {
        json_t *o = json_pack("{s:s, s:I, s:I, s:I, s:I, s:O*}", "file", path, "models", (json_int_t)n_models,
                              "devices", (json_int_t)n, "left_out", (json_int_t)(f->n_more + n_unknown(f)),
                              "models_left_out", (json_int_t)n_without, "unknown", f->unknown);
        cli_print_json(o, JSON_COMPACT);
        json_decref(o);
        return;
    }
    cli_printf("%s: %zu model%s", path, n_models, n_models == 1 ? "" : "s");
    if (n_without) cli_printf(" (%zu left out; the file says why)", n_without);
    if (n) cli_printf(", %zu device%s%s", n, n == 1 ? "" : "s", f->n_more ? " (more are left out)" : "");
    buf others = {0};
    put_unknown(&others, f);
    if (others.len && !others.failed)
        cli_printf("\nleft out, as %s has no words for them: %s", LEXICON, buf_text(&others));
    buf_done(&others);
    cli_printf("\nnext: %s serve%s%s\n", program, here ? "" : " -c ", here ? "" : path);
}

static int init(found *f, bool force, bool json, shoal_err *err)
{
    char *path = NULL;
    buf text = {0};
    size_t n_models = 0;
    bool here = strcmp(f->folder, ".") == 0;
    int rc =
        asprintf(&path, "%s%sshoal.yaml", here ? "" : f->folder, here ? "" : "/") < 0 ? err_nomem(err) : 0;
    if (rc == 0 && !force && file_exists(path))
        rc = err_set(err, SHOAL_EINVALID, "%s is there already; --force replaces it", path);
    if (rc == 0) rc = look_into(f, err);
    if (rc == 0) rc = find_devices(f, err);
    if (rc == 0) rc = put_file(&text, f, &n_models, err);
    if (rc == 0 && n_models == 0 && json_array_size(f->devices) == 0) rc = nothing_found(f, err);
    if (rc == 0) rc = write_checked(path, &text, err);
    if (rc == 0) say_done(f, path, n_models, json);
    buf_done(&text);
    free(path);
    return rc;
}

static int cmd_init_run(int argc, char **argv)
{
    bool force = false, json = false;
    const cli_option options[] = {
        CLI_FLAG('f', "force", "replace a shoal.yaml that is there", &force),
        CLI_JSON(&json),
        CLI_END,
    };
    cli_args a;
    shoal_err err = {0};
    int rc = cli_parse(&a, &cmd_init, options, 0, 1, argc, argv);
    if (rc != CLI_GO) return rc;
    found f = {.folder = a.n ? a.v[0] : "."};
    size_t n = strlen(f.folder);
    while (a.n && n > 1 && a.v[0][n - 1] == '/') a.v[0][--n] = '\0';
    rc = init(&f, force, json, &err);
    for (size_t i = 0; i < f.models.models.n; i++) free((void *)f.models.models.v[i]);
    home_export_done(&f.home);
    buf_done(&f.left_out);
    json_decref(f.devices);
    json_decref(f.unknown);
    return rc == 0 ? cli_flush(CLI_OK) : cli_fail(&cmd_init, &err);
}

const cli_command cmd_init = {"init", "write a shoal.yaml for the models and devices in a folder", "[FOLDER]",
                              cmd_init_run, false};
