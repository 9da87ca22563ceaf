/* cli_model.c: what commands with a MODEL share; see cli_model.h. A name is looked up in the manifest, which
 * then pins the file's digest. */
#include "command/cli_model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/number.h"
#include "model/packed/regroup.h"
#include "trust/state.h"

#define STDIN_MAX (16u << 20)

/* "PATH:0.5": what follows the last colon is a strength when it is a number. *ret_path is malloc'd, NULL
 * without an adapter. */
static int read_adapter(const cli_model_options *o, char **ret_path, float *ret_strength, shoal_err *err)
{
    double strength = 1;
    *ret_path = NULL;
    *ret_strength = 1;
    if (!o->adapter) return 0;
    const char *colon = strrchr(o->adapter, ':');
    bool has = colon && colon > o->adapter && number_double(colon + 1, &strength);
    if (has && strength == 0)
        return err_set(err, SHOAL_EINVALID, "--adapter %s: with strength 0 it would do nothing", o->adapter);
    *ret_path = strndup(o->adapter, has ? (size_t)(colon - o->adapter) : strlen(o->adapter));
    *ret_strength = (float)(has ? strength : 1);
    return *ret_path ? 0 : err_nomem(err);
}

int cli_kv_type(kv_type *ret, const char *name, shoal_err *err)
{
    *ret = KV_AS_WEIGHTS;
    if (!name || (*name && kv_type_parse(name, ret))) return 0;
    return err_set(err, SHOAL_EINVALID, "--kv-type wants %s, not \"%s\"", kv_type_choices, name);
}

/* What a server on this machine packed is used, where it keeps it usually. */
static char *packed_here(void)
{
    char *path = NULL;
    return state_path(&path, NULL, "packed", NULL) == 0 ? path : NULL;
}

int cli_model_open(shoal_model **ret, const char *arg, const cli_model_options *o, shoal_err *err)
{
    char *path = NULL, *sha256 = NULL, *adapter = NULL, *packed = packed_here();
    float strength;
    kv_type kept;
    int rc = cli_kv_type(&kept, o->kv_type, err);
    if (rc == 0) rc = read_adapter(o, &adapter, &strength, err);
    if (rc == 0) rc = manifest_resolve(arg, o->manifest, &path, &sha256, err);
    if (rc == 0) {
        shoal_options so = {.n_threads = (int)o->threads,
                            .n_ctx = (size_t)o->context,
                            .kv_bytes = (size_t)o->kv_mb << 20,
                            .sha256 = sha256,
                            .adapter = adapter,
                            .adapter_strength = strength,
                            .packed = packed,
                            .kv_type = kv_type_name(kept),
                            .regroup = o->regroup};
        rc = shoal_model_open(ret, path, &so, err);
    }
    shoal_model_info info;
    if (rc == 0 && shoal_model_describe(*ret, &info, NULL) == 0 && info.notice)
        cli_say("note: %s: %s\n", info.name, info.notice);
    free(adapter);
    free(path);
    free(sha256);
    free(packed);
    return rc;
}

const char *cli_model_option(const cli_model_options *o)
{
    return o->manifest  ? "--manifest"
           : o->threads ? "--threads"
           : o->context ? "--context"
           : o->kv_mb   ? "--kv-mb"
           : o->adapter ? "--adapter"
                        : NULL;
}

char *cli_model_use(const char *name, const char *path)
{
    manifest *m = NULL;
    char *found = NULL, *use = NULL;
    shoal_err err;
    if (!path && manifest_locate(&found, &err) == 0) path = found;
    if (path && manifest_open(&m, path, &err) == 0) {
        const manifest_entry *e = manifest_find(m, name);
        if (e && *e->use) use = strdup(e->use);
    }
    manifest_free(m);
    free(found);
    return use;
}

int cli_engine_start(cli_engine *c, const cli_model_options *o, const engine_options *more, shoal_err *err)
{
    char *adapter = NULL;
    engine_options eo = more ? *more : (engine_options){0};
    eo.n_threads = (int)o->threads;
    eo.n_ctx = (size_t)o->context;
    if (o->kv_mb) eo.kv_bytes = (size_t)o->kv_mb << 20;
    int rc = cli_kv_type(&eo.kv_type, o->kv_type, err);
    if (rc == 0) rc = read_adapter(o, &adapter, &eo.adapter_strength, err);
    eo.adapter = adapter;
    if (rc == 0) rc = engine_new(&c->e, c->m, &eo, err);
    free(adapter);
    return rc;
}

int cli_engine_open(cli_engine *ret, const char *arg, const cli_model_options *o, bool with_engine,
                    shoal_err *err)
{
    cli_engine c = {0};
    char *path = NULL, *sha256 = NULL, *packed = packed_here();
    const packed_store store = {.folder = packed, .read_only = true};
    model_options mo = {.store = &store};
    int rc = o->regroup ? regroup_parse(o->regroup, &mo.regroup, err) : 0;
    if (rc == 0) rc = manifest_resolve(arg, o->manifest, &path, &sha256, err);
    mo.expect_sha256 = sha256;
    if (rc == 0) rc = cli_opened(model_open(&c.m, path, &mo, err), err);
    if (rc == 0 && with_engine) rc = cli_engine_start(&c, o, NULL, err);
    free(path);
    free(sha256);
    free(packed);
    if (rc == 0)
        *ret = c;
    else
        cli_engine_close(&c);
    return rc;
}

void cli_engine_close(cli_engine *c)
{
    engine_free(c->e);
    model_free(c->m);
    *c = (cli_engine){0};
}

int cli_text(buf *ret, const char *arg, shoal_err *err)
{
    if (strcmp(arg, "-") != 0) return buf_puts(ret, arg) == 0 ? 0 : err_nomem(err);
    char chunk[65536];
    for (size_t n; (n = fread(chunk, 1, sizeof chunk, stdin)) > 0;) {
        if (ret->len + n > STDIN_MAX)
            return err_set(err, SHOAL_ELIMIT, "standard input is longer than %u bytes", STDIN_MAX);
        if (buf_append(ret, chunk, n) != 0) return err_nomem(err);
    }
    if (ret->len && ret->data[ret->len - 1] == '\n') ret->data[--ret->len] = '\0';
    if (ret->len && memchr(ret->data, '\0', ret->len))
        return err_set(err, SHOAL_EINVALID, "standard input holds a NUL byte: it is not text");
    return buf_reserve(ret, 0) == 0 ? 0 : err_nomem(err);
}

void cli_put_floats(buf *out, const float *v, size_t n)
{
    buf_putc(out, '[');
    for (size_t i = 0; i < n; i++) {
        if (i) buf_putc(out, ',');
        if (isfinite(v[i]))
            buf_printf(out, "%.9g", (double)v[i]);
        else
            buf_puts(out, "null");
    }
    buf_putc(out, ']');
}
