/* packed_command.c: see packed_command.h. Names of models are anybody's: they show no control characters. */
#include "inspect/packed_command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "json/json.h"
#include "logging/sanitise.h"
#include "command/cli_home.h"
#include "command/cli_model.h"
#include "config/config.h"
#include "infer/step_cost_file.h"
#include "model/packed/packed_store.h"
#include "model/packed/regroup.h"
#include "trust/state.h"
#include "view/ps_view.h"
#include "rules/home.h"

/* ---- where -------------------------------------------------------------------------------------- */

static int packed_command_place_of(const gateway_config *c, char **ret_folder, uint64_t *ret_max,
                                   shoal_err *err)
{
    if (c && c->packed_mb) *ret_max = c->packed_mb << 20;
    if (c && c->packed_folder) return (*ret_folder = strdup(c->packed_folder)) ? 0 : err_nomem(err);
    return state_path(ret_folder, c ? c->cluster_state : NULL, "packed", err);
}

/* As the server of this configuration would; without any, where the commands look. */
static int find_store(const packed_wish *w, char **ret_folder, uint64_t *ret_max, shoal_err *err)
{
    gateway_config *c = NULL;
    char *usual = NULL;
    const char *path = w->config;
    shoal_err none;
    *ret_max = PACKED_STORE_MAX_BYTES;
    if (w->folder) return (*ret_folder = strdup(w->folder)) ? 0 : err_nomem(err);
    if (!path && cli_home_find(&usual, &none) == 0) path = usual;
    int rc = path ? config_load(&c, &HOME_STAGES, path, err) : 0;
    if (rc == 0) rc = packed_command_place_of(c, ret_folder, ret_max, err);
    config_free(c);
    free(usual);
    return rc;
}

/* ---- which -------------------------------------------------------------------------------------- */

typedef struct shown {
    packed_listed *images;
    size_t n;
    uint64_t bytes;
    sha256_digest here[DT_COUNT]; /* the layouts that this program gives matrices on this machine: their own
                                   * types', then those of what is regrouped to a type */
} shown;

enum { DIGITS_MIN = 8 }; /* fewer might be the beginning of many, or a model's name */

static bool packed_command_begins(const char *digest, const char *digits)
{
    size_t n = strlen(digits);
    return n >= DIGITS_MIN && strncmp(digest, digits, n) == 0;
}

static bool is_of(const packed_listed *p, const char *model)
{
    char hex[65];
    if (p->status) return packed_command_begins(p->file, model);
    sha256_hex(&p->head.model, hex);
    return strcmp(p->head.name, model) == 0 || packed_command_begins(hex, model);
}

static void keep_those_of(shown *s, const char *model)
{
    size_t n = 0;
    s->bytes = 0;
    for (size_t i = 0; i < s->n; i++) {
        if (model && !is_of(&s->images[i], model)) continue;
        s->bytes += s->images[i].bytes;
        s->images[n++] = s->images[i];
    }
    s->n = n;
}

static const char *state_of(const shown *s, const packed_listed *p)
{
    if (p->status == SHOAL_EAUTH) return "not ours";
    if (p->status) return "unusable"; /* damaged, or of another version of the format */
    for (size_t i = 0; i < DT_COUNT; i++)
        if (memcmp(&p->head.layout, &s->here[i], sizeof s->here[i]) == 0) return "ready";
    return "stale";
}

/* ---- printing ----------------------------------------------------------------------------------- */

static void packed_command_put_row(buf *out, const shown *s, const packed_listed *p, int64_t now)
{
    char name[sizeof p->head.name], ago[16], layers[48] = "all";
    snprintf(name, sizeof name, "%s", p->status ? "-" : p->head.name);
    sanitise_text(name, "");
    if (p->head.end_layer)
        snprintf(layers, sizeof layers, "%llu-%llu", (unsigned long long)p->head.first_layer,
                 (unsigned long long)p->head.end_layer - 1);
    ps_view_ago(ago, now - p->used_s);
    buf_printf(out, "\n%-24s %-7s %-7s %9.1f %8s  %-8s %.16s", name, p->status ? "-" : p->head.type, layers,
               (double)p->bytes / 1e6, ago, state_of(s, p), p->file);
}

static void put_table(buf *out, const shown *s, const char *folder, uint64_t max)
{
    int64_t now = time(NULL);
    buf_printf(out, "%-24s %-7s %-7s %9s %8s  %-8s %s", "MODEL", "TYPE", "LAYERS", "MB", "USED", "STATE",
               "DIGEST");
    for (size_t i = 0; i < s->n; i++) packed_command_put_row(out, s, &s->images[i], now);
    buf_printf(out, "\n\n%zu image%s, %.1f MB (at most %.0f) in %s", s->n, s->n == 1 ? "" : "s",
               (double)s->bytes / 1e6, (double)max / 1e6, folder);
}

static json_t *image_json(const shown *s, const packed_listed *p)
{
    char hex[65], name[sizeof p->head.name];
    sha256_hex(&p->head.model, hex);
    snprintf(name, sizeof name, "%s", p->head.name);
    sanitise_text(name, "");
    json_t *o = json_pack("{s:s, s:s, s:I, s:I}", "file", p->file, "state", state_of(s, p), "bytes",
                          (json_int_t)p->bytes, "used_at", (json_int_t)p->used_s);
    if (!o || p->status) return o;
    json_object_set_new(o, "model", json_string(name));
    json_object_set_new(o, "sha256", json_string(hex));
    json_object_set_new(o, "type", json_string(p->head.type));
    if (p->head.end_layer)
        json_object_set_new(
            o, "layers",
            json_pack("[I,I]", (json_int_t)p->head.first_layer, (json_int_t)p->head.end_layer - 1));
    return o;
}

static int packed_command_print_json(const shown *s, const char *folder, uint64_t max)
{
    json_t *all = json_pack("{s:s, s:I, s:I, s:[]}", "folder", folder, "bytes", (json_int_t)s->bytes,
                            "max_bytes", (json_int_t)max, "images");
    for (size_t i = 0; all && i < s->n; i++)
        json_array_append_new(json_object_get(all, "images"), image_json(s, &s->images[i]));
    int rc = cli_print_json(all, 0);
    json_decref(all);
    return rc;
}

static int packed_command_show(const shown *s, const packed_wish *w, const char *folder, uint64_t max)
{
    if (w->json) return packed_command_print_json(s, folder, max);
    buf out = {0};
    put_table(&out, s, folder, max);
    int rc = cli_print(&out);
    buf_done(&out);
    return rc;
}

/* ---- all of it ---------------------------------------------------------------------------------- */

static int clear(const packed_store *store, const shown *s, const packed_wish *w, shoal_err *err)
{
    uint64_t bytes;
    int rc = packed_store_remove(store, s->images, s->n, &bytes, err);
    if (rc) return rc;
    if (!w->model) step_cost_file_clear(store, NULL);
    for (size_t i = 0; w->model && i < s->n; i++) step_cost_file_clear(store, s->images[i].file);
    if (w->json)
        cli_printf("{\"removed\":%zu,\"bytes\":%llu}\n", s->n, (unsigned long long)bytes);
    else
        cli_printf("%zu image%s removed, %.1f MB; the next start of a model packs it again\n", s->n,
                   s->n == 1 ? "" : "s", (double)bytes / 1e6);
    return 0;
}

static int packed_command_look(const packed_store *store, const packed_wish *w, shown *ret, shoal_err *err)
{
    isa set;
    int rc = isa_choose(&set, err);
    if (rc == 0) rc = weights_layout(set, &ret->here[0], err);
    for (size_t i = 1; rc == 0 && i < DT_COUNT; i++) {
        ret->here[i] = ret->here[0];
        if (regroup_is_type((dtype)i)) rc = regroup_layout_of((dtype)i, &ret->here[i], err);
    }
    if (rc == 0) rc = packed_store_list(store, &ret->images, &ret->n, err);
    if (rc) return rc;
    keep_those_of(ret, w->model);
    if (w->model && ret->n == 0)
        return err_set(err, SHOAL_ENOTFOUND, "%s: no packed weights of \"%.80s\"", store->folder, w->model);
    return 0;
}

int packed_command(const cli_command *cmd, const packed_wish *w)
{
    shoal_err err = {0};
    char *folder = NULL;
    uint64_t max;
    shown s = {0};
    int code = CLI_OK, rc = find_store(w, &folder, &max, &err);
    const packed_store store = {.folder = folder, .max_bytes = max};
    if (rc == 0) rc = packed_command_look(&store, w, &s, &err);
    if (rc == 0 && w->clear)
        rc = clear(&store, &s, w, &err);
    else if (rc == 0)
        code = packed_command_show(&s, w, folder, max);
    free(s.images);
    free(folder);
    return rc ? cli_fail(cmd, &err) : code;
}
