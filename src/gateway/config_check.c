#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/utf8.h"
#include "gateway/config_schema.h"

#define KIB     1024ull
#define MIB     (1024ull * KIB)
#define HOUR_MS 3600000ull

/* One bounded number of the file: absent (zero) is always fine. */
typedef struct bound {
    const char *field;
    uint64_t value, min, max;
} bound;

static int check_bounds(const char *where, const bound *b, size_t n, shoal_err *err)
{
    for (size_t i = 0; i < n; i++) {
        if (b[i].value == 0 || (b[i].value >= b[i].min && b[i].value <= b[i].max)) continue;
        return err_set(err, SHOAL_EINVALID, "%s%s: %llu is out of range, it must be from %llu to %llu", where,
                       b[i].field, (unsigned long long)b[i].value, (unsigned long long)b[i].min,
                       (unsigned long long)b[i].max);
    }
    return 0;
}

static int check_limits(const gateway_config *c, shoal_err *err)
{
    const http_limits *l = &c->limits;
    const bound b[] = {
        {"limits.max_body_bytes", l->max_body_bytes, KIB, 1024 * MIB},
        {"limits.max_header_bytes", l->max_header_bytes, KIB, MIB},
        {"limits.max_headers", l->max_headers, 8, 1000},
        {"limits.max_connections", l->max_connections, 1, 100000},
        {"limits.max_streams", l->max_streams, 1, 10000},
        {"limits.max_write_backlog_bytes", l->max_write_backlog, 16 * KIB, 1024 * MIB},
        {"limits.max_requests", c->max_requests, 1, 100000},
        {"limits.request_timeout_ms", l->request_timeout_ms, 100, HOUR_MS},
        {"limits.idle_timeout_ms", l->idle_timeout_ms, 100, 24 * HOUR_MS},
        {"limits.write_timeout_ms", l->write_timeout_ms, 100, HOUR_MS},
        {"cache.mb", c->cache_bytes / MIB, 1, 64 * KIB},
        {"cache.ttl_s", c->cache_ttl_ms / 1000, 1, 30 * 24 * 3600},
        {"deadline_ms", c->default_deadline_ms, 1, 24 * HOUR_MS},
        {"drain_ms", c->drain_ms, 1, 24 * HOUR_MS},
    };
    return check_bounds("", b, sizeof b / sizeof *b, err);
}

static int check_listen(const char *listen, shoal_err *err)
{
    if (strncmp(listen, "unix:", 5) == 0) {
        if (listen[5] && strlen(listen + 5) < 100) return 0;
        return err_set(err, SHOAL_EINVALID,
                       "listen: a Unix socket needs a path of 1 to 99 bytes after 'unix:'");
    }
    const char *colon = strrchr(listen, ':');
    char *end = NULL;
    long port = colon && isdigit((unsigned char)colon[1]) ? strtol(colon + 1, &end, 10) : -1;
    if (port >= 0 && port <= 65535 && end && !*end) return 0;
    return err_set(err, SHOAL_EINVALID,
                   "listen: '%s' is not HOST:PORT or unix:PATH (example: 127.0.0.1:8080)", listen);
}

static int check_keys(const gateway_config *c, shoal_err *err)
{
    uint8_t digest[32];
    for (size_t i = 0; i < c->n_api_keys; i++) {
        const char *k = c->api_keys[i];
        /* The wrong value may be the key itself, pasted in clear: it is not repeated in the message. */
        if (strncmp(k, "sha256:", 7) != 0 || !hex_decode(k + 7, strlen(k + 7), digest, sizeof digest))
            return err_set(err, SHOAL_EINVALID,
                           "api_keys[%zu]: must be 'sha256:' and the 64 hex digits of the key's SHA-256, "
                           "never the key itself",
                           i);
    }
    return 0;
}

static bool is_name(const char *s)
{
    if (!*s || strlen(s) > 64) return false;
    for (; *s; s++)
        if (!isalnum((unsigned char)*s) && !strchr("-_.", *s)) return false;
    return true;
}

static int check_model(const gateway_config *c, size_t i, shoal_err *err)
{
    const config_model *m = &c->models[i];
    char where[48];
    snprintf(where, sizeof where, "models[%zu].", i);
    if (!is_name(m->name))
        return err_set(err, SHOAL_EINVALID, "%sname: '%s' may hold letters, digits, '-', '_' and '.' only",
                       where, m->name);
    for (size_t k = 0; k < i; k++)
        if (strcmp(c->models[k].name, m->name) == 0)
            return err_set(err, SHOAL_EINVALID, "%sname: '%s' is already the name of models[%zu]", where,
                           m->name, k);
    uint8_t digest[32];
    if (m->sha256 && !hex_decode(m->sha256, strlen(m->sha256), digest, sizeof digest))
        return err_set(err, SHOAL_EINVALID, "%ssha256: must be the 64 hex digits of the file's SHA-256",
                       where);
    const bound b[] = {
        {"replicas", m->replicas, 1, 64},       {"threads", m->threads, 1, 1024},
        {"context", m->context, 16, 1u << 20},  {"max_batch", m->max_batch, 1, 1024},
        {"max_queue", m->max_queue, 1, 100000}, {"prefill_chunk", m->prefill_chunk, 8, 65536},
        {"kv_mb", m->kv_mb, 1, 1u << 20},
    };
    return check_bounds(where, b, sizeof b / sizeof *b, err);
}

static bool has_model(const gateway_config *c, const char *name)
{
    for (size_t i = 0; i < c->n_models; i++)
        if (strcmp(c->models[i].name, name) == 0) return true;
    return false;
}

static int check_pipeline(gateway_config *c, size_t i, shoal_err *err)
{
    config_pipeline *p = &c->pipelines[i];
    char where[48];
    snprintf(where, sizeof where, "pipelines[%zu].", i);
    if (!is_name(p->name))
        return err_set(err, SHOAL_EINVALID, "%sname: '%s' may hold letters, digits, '-', '_' and '.' only",
                       where, p->name);
    for (size_t k = 0; k < i; k++)
        if (strcmp(c->pipelines[k].name, p->name) == 0)
            return err_set(err, SHOAL_EINVALID, "%sname: '%s' is already the name of pipelines[%zu]", where,
                           p->name, k);
    int rc = pipeline_check(p, where, err);
    if (rc) return rc;
    for (unsigned s = 0; s < p->n_stages; s++)
        if (!has_model(c, p->stages[s].model))
            return err_set(err, SHOAL_EINVALID,
                           "%sstages[%u].model: '%s' is not among the models of this file", where, s,
                           p->stages[s].model);
    return 0;
}

int config_check(gateway_config *c, shoal_err *err)
{
    int rc = check_listen(c->listen, err);
    if (!rc) rc = check_limits(c, err);
    if (!rc) rc = check_keys(c, err);
    if (!rc && log_level_parse(c->log_level) < 0)
        rc = err_set(err, SHOAL_EINVALID, "log.level: '%s' is none of debug, info, warn, error, off",
                     c->log_level);
    for (size_t i = 0; !rc && i < c->n_models; i++) rc = check_model(c, i, err);
    for (size_t i = 0; !rc && i < c->n_pipelines; i++) rc = check_pipeline(c, i, err);
    return rc;
}
