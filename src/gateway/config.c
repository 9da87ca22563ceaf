#include "gateway/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sys.h"
#include "gateway/config_schema.h"

#define CONFIG_MAX_BYTES (1u << 20)

#define DEFAULT_LISTEN       "127.0.0.1:8080"
#define DEFAULT_MAX_REQUESTS 256
#define DEFAULT_CACHE_MB     16
#define DEFAULT_CACHE_TTL_S  600
#define DEFAULT_DEADLINE_MS  60000
#define DEFAULT_DRAIN_MS     10000

/* ---- libcyaml's messages as one sentence ------------------------------------------------------ */

/* libcyaml reports an error as a few log lines: what is wrong, then a backtrace of the fields around
 * it, innermost first. Wanted are the first line and the fields' names and the innermost position. */
typedef struct complaint {
    char what[160];
    char fields[160]; /* "pipelines.stages.kind" once finished; gathered innermost first */
    size_t line;
} complaint;

static void add_field(complaint *c, const char *line)
{
    const char *name = strstr(line, "mapping field '");
    if (name) {
        name += strlen("mapping field '");
        size_t n = strcspn(name, "'");
        size_t n_old = strlen(c->fields);
        if (n + 1 + n_old >= sizeof c->fields) return;
        memmove(c->fields + n + (n_old > 0), c->fields, n_old + 1);
        memcpy(c->fields, name, n);
        if (n_old) c->fields[n] = '.';
    }
    const char *at = strstr(line, "(line: ");
    if (at && c->line == 0) c->line = strtoul(at + strlen("(line: "), NULL, 10);
}

static void on_log(cyaml_log_t level, void *ctx, const char *fmt, va_list args)
{
    complaint *c = ctx;
    char line[256];
    vsnprintf(line, sizeof line, fmt, args);
    line[strcspn(line, "\r\n")] = 0;
    const char *text = strncmp(line, "Load: ", 6) == 0 ? line + 6 : line;
    if (strncmp(text, "Backtrace", 9) == 0) return;
    if (*text == ' ')
        add_field(c, text);
    else if (!*c->what)
        snprintf(c->what, sizeof c->what, "%.150s", text);
}

/* libcyaml's sentences, by how they start, in our words. Where it tells of a mapping the last field is
 * the one read before; where it tells of a key the line is where the value before that ended. */
static const struct {
    const char *start, *before, *after;
    bool about_mapping, about_key;
} sentences[] = {
    {"Unexpected key: ", "there is no key '", "' here", true, true},
    {"Mapping field already seen: ", "'", "' is given twice", true, true},
    {"Missing required mapping field: ", "'", "' is required", true, false},
    {"Invalid ENUM value: ", "'", "' is none of the values it may have", false, false},
    {"Invalid uint64_t value: ", "", " is no whole number that fits", false, false},
    {"Invalid UINT value: ", "", " is no whole number that fits", false, false},
    {"Invalid FLOAT value: ", "'", "' is no number", false, false},
    {"libyaml: ", "not YAML: ", "", false, false},
};

static void drop_last_field(complaint *c)
{
    char *dot = strrchr(c->fields, '.');
    *(dot ? dot : c->fields) = 0;
}

static void reword(complaint *c, const char *yaml, size_t len)
{
    for (size_t i = 0; i < sizeof sentences / sizeof *sentences; i++) {
        size_t n = strlen(sentences[i].start), line = 0;
        if (strncmp(c->what, sentences[i].start, n) != 0) continue;
        char subject[sizeof c->what];
        snprintf(subject, sizeof subject, "%s", c->what + n);
        if (sentences[i].about_key)
            line = config_line_of_key(yaml, len, subject, c->line);
        else if (i == sizeof sentences / sizeof *sentences - 1)
            line = config_line_of(yaml, len, "");
        if (line) c->line = line;
        if (sentences[i].about_mapping) drop_last_field(c);
        snprintf(c->what, sizeof c->what, "%s%.110s%s", sentences[i].before, subject, sentences[i].after);
        return;
    }
}

static int fail_load(complaint *c, cyaml_err_t code, const char *yaml, size_t len, const char *what,
                     shoal_err *err)
{
    if (code == CYAML_ERR_OOM) return err_nomem(err);
    reword(c, yaml, len);
    const char *why = *c->what ? c->what : cyaml_strerror(code);
    char where[32] = "";
    if (c->line) snprintf(where, sizeof where, ":%zu", c->line);
    return err_set(err, SHOAL_EINVALID, "%s%s: %s%s%s", what, where, c->fields, *c->fields ? ": " : "", why);
}

/* ---- defaults and paths ----------------------------------------------------------------------- */

static int set_default(const char **s, const char *value, shoal_err *err)
{
    if (*s) return 0;
    *s = strdup(value);
    return *s ? 0 : err_nomem(err);
}

static uint64_t value_or(const uint64_t *v, uint64_t otherwise)
{
    return v ? *v : otherwise;
}

/* A product that would overflow stays larger than any bound that is checked afterwards. */
static uint64_t scaled(uint64_t v, uint64_t unit)
{
    return v > UINT64_MAX / unit ? UINT64_MAX : v * unit;
}

static int set_defaults(config_file *f, shoal_err *err)
{
    gateway_config *c = &f->pub;
    int rc = set_default(&c->listen, DEFAULT_LISTEN, err);
    if (!rc) rc = set_default(&c->log_level, "info", err);
    if (!c->max_requests) c->max_requests = DEFAULT_MAX_REQUESTS;
    c->cache_bytes = scaled(value_or(f->cache_mb, DEFAULT_CACHE_MB), 1u << 20);
    c->cache_ttl_ms = scaled(value_or(f->cache_ttl_s, DEFAULT_CACHE_TTL_S), 1000);
    c->default_deadline_ms = value_or(f->deadline_ms, DEFAULT_DEADLINE_MS);
    c->drain_ms = value_or(f->drain_ms, DEFAULT_DRAIN_MS);
    return rc;
}

/* Relative paths start at the configuration's folder, so that a service finds its files from any
 * working directory. */
static int resolve(const char **path, const char *dir, shoal_err *err)
{
    if (!*path || **path == '/') return 0;
    buf b = {0};
    buf_printf(&b, "%s/%s", dir, *path);
    char *joined = buf_take(&b);
    buf_done(&b);
    if (!joined) return err_nomem(err);
    free((void *)*path);
    *path = joined;
    return 0;
}

static int resolve_paths(gateway_config *c, const char *config_path, shoal_err *err)
{
    const char *slash = strrchr(config_path, '/');
    if (!slash) return 0;
    char *dir = strndup(config_path, (size_t)(slash - config_path));
    if (!dir) return err_nomem(err);
    int rc = resolve(&c->tls_cert, dir, err);
    if (!rc) rc = resolve(&c->tls_key, dir, err);
    if (!rc) rc = resolve(&c->manifest, dir, err);
    for (size_t i = 0; !rc && i < c->n_models; i++) rc = resolve(&c->models[i].path, dir, err);
    free(dir);
    return rc;
}

/* ---- parse ------------------------------------------------------------------------------------ */

/* Puts "file:line: " before a sentence that starts with a field's path. */
static int locate(const char *yaml, size_t len, const char *what, int rc, shoal_err *err)
{
    if (!err || rc == SHOAL_ENOMEM) return rc;
    char path[128];
    size_t n = strcspn(err->message, ":");
    snprintf(path, sizeof path, "%.*s", (int)(n < 127 ? n : 127), err->message);
    return err_prefix(err, rc, "%s:%zu", what, config_line_of(yaml, len, path));
}

int gateway_config_parse(gateway_config **ret, const char *yaml, size_t len, const char *what, shoal_err *err)
{
    if (len > CONFIG_MAX_BYTES)
        return err_set(err, SHOAL_ELIMIT, "%s: a configuration may hold %u bytes, this one has %zu", what,
                       CONFIG_MAX_BYTES, len);
    complaint told = {0};
    cyaml_config_t cy = *config_cyaml();
    cy.log_fn = on_log;
    cy.log_ctx = &told;
    config_file *f = NULL;
    cyaml_err_t loaded =
        cyaml_load_data((const uint8_t *)yaml, len, &cy, &config_schema, (cyaml_data_t **)&f, NULL);
    if (loaded != CYAML_OK) return fail_load(&told, loaded, yaml, len, what, err);
    if (!f) return err_set(err, SHOAL_EINVALID, "%s: the file is empty, it needs at least 'models:'", what);
    shoal_err own = {0};
    int rc = set_defaults(f, &own);
    if (!rc) rc = config_check(&f->pub, &own);
    if (rc) {
        locate(yaml, len, what, rc, &own);
        if (err) *err = own;
        gateway_config_free(&f->pub);
        return rc;
    }
    *ret = &f->pub;
    return 0;
}

int gateway_config_load(gateway_config **ret, const char *path, shoal_err *err)
{
    buf text = {0};
    gateway_config *c = NULL;
    int rc = file_read(&text, path, CONFIG_MAX_BYTES, err);
    if (!rc) rc = gateway_config_parse(&c, text.data ? text.data : "", text.len, path, err);
    if (!rc) rc = resolve_paths(c, path, err);
    if (rc)
        gateway_config_free(c);
    else
        *ret = c;
    buf_done(&text);
    return rc;
}

void gateway_config_free(gateway_config *c)
{
    if (c) cyaml_free(config_cyaml(), &config_schema, (config_file *)c, 0);
}
