/* model_build.c: what both loaders put a model together with. */
#define _GNU_SOURCE
#include "model/model_build.h"

#include <string.h>

#include "base/file.h"
#include "gotemplate/gotemplate.h"
#include "json/hub_file.h"
#include "json/json.h"
#include "kinds/model_kind.h"
#include "model/model_priv.h"

int model_build_maps(model *m, size_t n, shoal_err *err)
{
    m->maps = arena_alloc(m->mem, n * sizeof *m->maps);
    m->map_paths = arena_alloc(m->mem, n * sizeof *m->map_paths);
    return m->maps && m->map_paths ? 0 : err_nomem(err);
}

int model_build_map_file(model *m, const char *path, shoal_err *err)
{
    int rc = file_map_open(&m->maps[m->n_maps], path, err);
    if (rc != 0) return rc;
    m->map_paths[m->n_maps++] = path;
    return hub_file_check(m->maps[m->n_maps - 1].data, m->maps[m->n_maps - 1].len, path, err);
}

int model_add_notice(model *m, const char *what, const char *why, shoal_err *err)
{
    m->notice =
        arena_printf(m->mem, "%s%s%s%s", m->notice ? m->notice : "", m->notice ? "; " : "", what, why);
    return m->notice ? 0 : err_nomem(err);
}

int model_build_tokenizer(model *m, int rc, shoal_err *err)
{
    if (rc != SHOAL_EUNSUPPORTED && rc != SHOAL_ENOTFOUND) return rc;
    size_t n = strlen(m->path); /* which whoever repeats the sentence says in front of it */
    bool named = strncmp(err->message, m->path, n) == 0 && strncmp(err->message + n, ": ", 2) == 0;
    m->tok_error = arena_strdup(m->mem, err->message + (named ? n + 2 : 0));
    return m->tok_error ? 0 : err_nomem(err);
}

int model_build_template(model *m, const char *source, size_t len, const char *what, shoal_err *err)
{
    shoal_err why;
    int rc = chat_template_compile(&m->chat, source, len, what, &why);
    if (rc == 0) return 0;
    if (rc == SHOAL_ENOMEM) return err_nomem(err);
    m->chat_error = arena_strdup(m->mem, why.message);
    return m->chat_error ? 0 : err_nomem(err);
}

/* "{{ .Prompt }}" says that Ollama has no template for the model. */
static bool says_nothing(const buf *source)
{
    static const char NOTHING[] = "{{.Prompt}}";
    size_t at = 0;
    for (size_t i = 0; i < source->len; i++) {
        if (strchr(" \t\r\n", source->data[i])) continue;
        if (source->data[i] != NOTHING[at]) return false;
        at++;
    }
    return NOTHING[at] == '\0' || at == 0;
}

/* One that cannot be used is told in the notice, and not fatal. */
static int load_beside(model *m, shoal_err *err)
{
    buf source = {0};
    shoal_err why;
    const char *path = arena_printf(m->mem, "%s%s", m->path, MODEL_TEMPLATE_SUFFIX);
    if (!path) return err_nomem(err);
    int rc = file_exists(path) ? file_read(&source, path, GOTEMPLATE_MAX_BYTES, &why) : 0;
    if (rc == 0 && source.len && !says_nothing(&source))
        rc = chat_template_compile_go(&m->chat, source.data, source.len, path, &why);
    m->chat_beside = rc == 0 && m->chat;
    buf_done(&source);
    if (rc == SHOAL_ENOMEM) return err_nomem(err);
    return rc == 0 ? 0 : model_add_notice(m, "its template cannot be used: ", why.message, err);
}

int model_build_default_template(model *m, const model_options *o, shoal_err *err)
{
    bool writes = m->config.task == TASK_GENERATE && (m->tok || o->no_tokenizer);
    if (!writes || m->chat || m->chat_error) return 0;
    int rc = load_beside(m, err);
    if (rc != 0 || m->chat) return rc;
    rc = chat_template_compile(&m->chat, chat_template_plain, strlen(chat_template_plain),
                               "the default chat template", err);
    m->default_chat = rc == 0;
    return rc;
}

static int add_end(model *m, int32_t id, bool *ret_new, shoal_err *err)
{
    model_config *c = &m->config;
    *ret_new = false;
    if (id < 0) return 0;
    for (size_t i = 0; i < c->n_eos; i++)
        if (c->eos_ids[i] == id) return 0;
    if (c->n_eos == sizeof c->eos_ids / sizeof *c->eos_ids)
        return err_set(err, SHOAL_ELIMIT, "%s: more than %zu end-of-text ids", m->path, c->n_eos);
    c->eos_ids[c->n_eos++] = id;
    *ret_new = true;
    return 0;
}

int model_build_ends(model *m, shoal_err *err)
{
    bool added;
    int32_t end = -1;
    if (m->config.task != TASK_GENERATE || !m->tok) return 0;
    int rc = add_end(m, tokenizer_eos(m->tok), &added, err);
    if (rc == 0 && m->chat) rc = chat_turn_end(m->chat, m->tok, &end, err);
    if (rc == 0) rc = add_end(m, end, &added, err);
    if (rc == 0 && added) m->template_end = end;
    return rc;
}

int model_build_input(model *m, const char **ret, const char *text, size_t len, const char *what,
                      shoal_err *err)
{
    json_t *j = NULL;
    if (len > MODEL_INPUT_JSON_MAX)
        return err_set(err, SHOAL_ELIMIT, "%s: %zu bytes of configuration, over %d", what, len,
                       MODEL_INPUT_JSON_MAX);
    int rc = json_parse(&j, text, len, what, err);
    if (rc == 0 && !json_is_object(j)) rc = err_set(err, SHOAL_EFORMAT, "%s: not a JSON object", what);
    json_decref(j);
    if (rc == 0 && !(*ret = arena_strndup(m->mem, text, len))) rc = err_nomem(err);
    return rc;
}

static const char WINDOW_UNKNOWN[] = "by its name or its sizes this is Mistral 7B v0.1, whose sliding "
                                     "attention window of %d tokens the file does "
                                     "not record: keep its context to %d tokens, "
                                     "longer ones get other answers than the "
                                     "original's";

enum { MISTRAL_WINDOW = 4096 };

int model_build_no_window(model *m, shoal_err *err)
{
    m->notice = arena_printf(m->mem, WINDOW_UNKNOWN, MISTRAL_WINDOW, MISTRAL_WINDOW);
    return m->notice ? 0 : err_nomem(err);
}

bool model_build_is_mistral(const model *m, const char *const *names, size_t n)
{
    const model_config *c = &m->config;
    /* v0.2 and later have no window and another rope_theta; Llama 3 8B has these sizes and another one, too.
     */
    if (c->pos.rope.theta != 10000 || c->n_ctx <= MISTRAL_WINDOW) return false;
    if (c->n_embd == 4096 && c->ffn.n_ff == 14336 && c->n_layer == 32 && c->attn.n_head == 32 &&
        c->attn.n_head_kv == 8)
        return true;
    for (size_t i = 0; i < n; i++)
        if (names[i] && strcasestr(names[i], "mistral")) return true;
    return false;
}
