/* otel_settings.c: see otel_settings.h. */
#include "telemetry/otel_settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/number.h"
#include "hosts/hosts.h"
#include "logging/log.h"

enum { BATCH = 512, INTERVAL_MS = 5000, METRICS_INTERVAL_MS = 60000, TIMEOUT_MS = 10000, MS_MAX = 86400000 };
enum { PAIR_MAX = 1024, INSTANCE_BYTES = 16, HOST_BYTES = 256 };

typedef struct reading {
    otel_settings *s;
    const config_otel *c;
    otel_env env;
    void *user;
    bool nomem;
} reading;

const char *otel_getenv(void *user, const char *name)
{
    return getenv(name);
}

/* An empty variable is one that is not set (the specification's "General SDK Configuration"). */
static const char *read_env(const reading *r, const char *name)
{
    const char *v = r->env(r->user, name);
    return v && *v ? v : NULL;
}

static void ignore(const char *name, const char *why)
{
    LOG(LOG_WARN, "telemetry", "variable_ignored", LOG_S("variable", name), LOG_S("reason", why));
}

static char *otel_keep(reading *r, const char *s, size_t n)
{
    char *copy = arena_strndup(r->s->mem, s, n);
    if (!copy) r->nomem = true;
    return copy;
}

static uint64_t number_or(const reading *r, uint64_t said, const char *name, uint64_t otherwise)
{
    const char *v = said ? NULL : read_env(r, name);
    uint64_t n;
    if (said) return said;
    if (!v) return otherwise;
    if (number_u64(v, &n) && n > 0 && n <= MS_MAX) return n;
    ignore(name, "it must be a whole number over 0, in digits alone");
    return otherwise;
}

/* ---- where to ------------------------------------------------------------------------------------------ */

static bool is_off(const reading *r, otlp_signal s)
{
    static const char *const NAMES[] = {"OTEL_TRACES_EXPORTER", "OTEL_METRICS_EXPORTER",
                                        "OTEL_LOGS_EXPORTER"};
    const config_otel_switch said[] = {r->c->traces, r->c->metrics, r->c->logs};
    const char *v = read_env(r, NAMES[s]);
    if (said[s] != OTEL_SWITCH_AUTO) return said[s] == OTEL_SWITCH_OFF;
    return v && strcmp(v, "none") == 0;
}

static const char *url_under(reading *r, const char *base, otlp_signal s)
{
    size_t n = strlen(base);
    while (n > 0 && base[n - 1] == '/') n--;
    const char *url = arena_printf(r->s->mem, "%.*s/v1/%s", (int)n, base, otlp_signal_name(s));
    if (!url) r->nomem = true;
    return url;
}

/* A variable with a URL; NULL: it is not set, or none. */
static const char *url_of(const reading *r, const char *name)
{
    shoal_err why;
    const char *v = read_env(r, name);
    if (!v || host_url_check(v, &why) == 0) return v;
    ignore(name, why.message);
    return NULL;
}

static void read_urls(reading *r)
{
    static const char *const OWN[] = {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
                                      "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
                                      "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT"};
    const char *disabled = read_env(r, "OTEL_SDK_DISABLED");
    bool asks = !r->c->endpoint && !(disabled && strcmp(disabled, "true") == 0);
    const char *base = asks ? url_of(r, "OTEL_EXPORTER_OTLP_ENDPOINT") : r->c->endpoint;
    for (int i = 0; i < OTLP_N_SIGNALS; i++) {
        const char *own = asks ? url_of(r, OWN[i]) : NULL;
        if (is_off(r, (otlp_signal)i) || !(own || base)) continue;
        r->s->urls[i] = own ? otel_keep(r, own, strlen(own)) : url_under(r, base, (otlp_signal)i);
    }
}

static void read_form(reading *r)
{
    const char *protocol = read_env(r, "OTEL_EXPORTER_OTLP_PROTOCOL");
    const char *compression = read_env(r, "OTEL_EXPORTER_OTLP_COMPRESSION");
    const char *ca = read_env(r, "OTEL_EXPORTER_OTLP_CERTIFICATE");
    otel_settings *s = r->s;
    s->protocol = r->c->protocol == OTEL_PROTOCOL_JSON ? OTLP_JSON : OTLP_PROTOBUF;
    if (r->c->protocol == OTEL_PROTOCOL_AUTO && protocol) {
        if (strcmp(protocol, "http/json") == 0) s->protocol = OTLP_JSON;
        if (strncmp(protocol, "http/", 5) != 0)
            ignore("OTEL_EXPORTER_OTLP_PROTOCOL",
                   "http/protobuf and http/json are offered; http/protobuf is taken");
    }
    s->gzip = r->c->compression == OTEL_COMPRESSION_GZIP;
    if (r->c->compression == OTEL_COMPRESSION_AUTO && compression) s->gzip = strcmp(compression, "gzip") == 0;
    s->ca = r->c->ca ? r->c->ca : ca ? otel_keep(r, ca, strlen(ca)) : NULL;
}

/* ---- lists of pairs: "key=value,key=value", percent-encoded -------------------------------------------- */

static int hex(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static void percent_decode(char *s)
{
    char *to = s;
    for (; *s; s++) {
        bool coded = *s == '%' && hex(s[1]) >= 0 && hex(s[2]) >= 0;
        *to++ = coded ? (char)(hex(s[1]) << 4 | hex(s[2])) : *s;
        if (coded) s += 2;
    }
    *to = '\0';
}

static char *trimmed(char *s)
{
    size_t n = strlen(s);
    while (n > 0 && (s[n - 1] == ' ' || s[n - 1] == '\t')) s[--n] = '\0';
    return s + strspn(s, " \t");
}

/* The next pair, kept; *at moves behind it. False: there is none, or no memory. */
static bool next_pair(reading *r, const char *name, const char **at, char **ret_key, char **ret_value)
{
    while (**at) {
        size_t n = strcspn(*at, ",");
        const char *item = *at;
        *at += n + (item[n] == ',');
        const char *equals = memchr(item, '=', n);
        if (!equals || n > PAIR_MAX) {
            if (n > 0) ignore(name, "it must be key=value,key=value");
            continue;
        }
        *ret_key = otel_keep(r, item, (size_t)(equals - item));
        *ret_value = otel_keep(r, equals + 1, n - (size_t)(equals - item) - 1);
        if (r->nomem) return false;
        *ret_key = trimmed(*ret_key);
        *ret_value = trimmed(*ret_value);
        percent_decode(*ret_value);
        return true;
    }
    return false;
}

/* ---- headers ------------------------------------------------------------------------------------------- */

static void headers_of_env(reading *r, buf *to)
{
    static const char NAME[] = "OTEL_EXPORTER_OTLP_HEADERS";
    const char *at = read_env(r, NAME);
    char *key, *value;
    while (at && next_pair(r, NAME, &at, &key, &value)) {
        if (host_header_name_ok(key) && host_header_value_ok(value))
            buf_printf(to, "%s: %s\r\n", key, value);
        else
            ignore(NAME, "it has what is no header");
    }
}

static int read_headers(reading *r, shoal_err *err)
{
    buf lines = {0};
    shoal_err why;
    int rc = 0;
    if (r->c->n_headers == 0) headers_of_env(r, &lines);
    for (size_t i = 0; rc == 0 && i < r->c->n_headers; i++) {
        rc = host_header_put(&lines, &r->c->headers[i], &why);
        if (rc == SHOAL_EINVALID) err_set(err, rc, "otel.headers[%zu].file: %s", i, why.message);
    }
    r->s->headers = otel_keep(r, buf_text(&lines), lines.len);
    r->nomem |= lines.failed || rc == SHOAL_ENOMEM;
    buf_done(&lines);
    return rc == SHOAL_EINVALID ? rc : 0;
}

/* ---- the resource -------------------------------------------------------------------------------------- */

static void set_text(reading *r, const char *key, const char *value)
{
    otel_settings *s = r->s;
    size_t i = 0;
    while (i < s->n_resource && strcmp(s->resource[i].key, key) != 0) i++;
    if (i == OTEL_RESOURCE_MAX) return;
    if (i == s->n_resource) s->n_resource++;
    s->resource[i] = (otlp_attribute){.key = key, .text = value};
}

/* Another one for each process. */
static const char *instance_id(reading *r)
{
    uint8_t drawn[INSTANCE_BYTES];
    char text[2 * INSTANCE_BYTES + 1];
    rng_draw(drawn, sizeof drawn);
    for (size_t i = 0; i < sizeof drawn; i++) snprintf(text + 2 * i, 3, "%02x", drawn[i]);
    return otel_keep(r, text, strlen(text));
}

static void read_resource(reading *r)
{
    static const char NAME[] = "OTEL_RESOURCE_ATTRIBUTES";
    const char *name = r->c->service_name ? r->c->service_name : read_env(r, "OTEL_SERVICE_NAME");
    const char *at = read_env(r, NAME);
    char host[HOST_BYTES] = "", *key, *value;
    set_text(r, "service.name", "shoal");
    set_text(r, "service.version", SHOAL_VERSION);
    set_text(r, "service.instance.id", instance_id(r));
    if (gethostname(host, sizeof host - 1) == 0) set_text(r, "host.name", otel_keep(r, host, strlen(host)));
    set_text(r, "telemetry.sdk.name", "shoal");
    set_text(r, "telemetry.sdk.language", "c");
    set_text(r, "telemetry.sdk.version", SHOAL_VERSION);
    while (at && next_pair(r, NAME, &at, &key, &value)) set_text(r, key, value);
    for (size_t i = 0; i < r->c->n_resource; i++) set_text(r, r->c->resource[i].key, r->c->resource[i].value);
    if (name) set_text(r, "service.name", otel_keep(r, name, strlen(name)));
    r->s->resource[r->s->n_resource < OTEL_RESOURCE_MAX ? r->s->n_resource++ : OTEL_RESOURCE_MAX - 1] =
        (otlp_attribute){.key = "process.pid", .kind = OTLP_INT, .i = getpid()};
}

/* ---- which traces -------------------------------------------------------------------------------------- */

/* All samplers respect the parent here; those that do not are taken as those that do. */
static double sample_of(const reading *r)
{
    static const char NAME[] = "OTEL_TRACES_SAMPLER", ARG[] = "OTEL_TRACES_SAMPLER_ARG",
                      BASED[] = "parentbased_";
    const char *v = read_env(r, NAME), *arg = read_env(r, ARG);
    double ratio = 1;
    if (r->c->sample) return *r->c->sample;
    if (!v) return 1;
    if (strncmp(v, BASED, sizeof BASED - 1) == 0) v += sizeof BASED - 1;
    if (strcmp(v, "always_on") == 0) return 1;
    if (strcmp(v, "always_off") == 0) return 0;
    if (strcmp(v, "traceidratio") != 0) {
        ignore(NAME, "always_on, always_off and traceidratio are offered, also with parentbased_ in front");
        return 1;
    }
    if (!arg) return 1;
    if (number_double(arg, &ratio) && ratio >= 0 && ratio <= 1) return ratio;
    ignore(ARG, "it must be a number from 0 to 1");
    return 1;
}

static void read_numbers(reading *r)
{
    otel_settings *s = r->s;
    const config_otel *c = r->c;
    s->sample = sample_of(r);
    s->keep_failed = c->keep_failed;
    s->slow_ms = c->slow_ms;
    s->semconv = c->semconv;
    s->batch = number_or(r, c->batch, "OTEL_BSP_MAX_EXPORT_BATCH_SIZE", BATCH);
    s->interval_ms = number_or(r, c->interval_ms, "OTEL_BSP_SCHEDULE_DELAY", INTERVAL_MS);
    s->metrics_interval_ms =
        number_or(r, c->metrics_interval_ms, "OTEL_METRIC_EXPORT_INTERVAL", METRICS_INTERVAL_MS);
    s->timeout_ms = number_or(r, c->timeout_ms, "OTEL_EXPORTER_OTLP_TIMEOUT", TIMEOUT_MS);
    s->queue_bytes = c->queue_bytes;
}

int otel_settings_read(otel_settings *ret, const config_otel *c, otel_env env, void *user, shoal_err *err)
{
    reading r = {.s = ret, .c = c, .env = env, .user = user};
    *ret = (otel_settings){.mem = arena_new(0), .headers = ""};
    if (!ret->mem) return err_nomem(err);
    read_urls(&r);
    int rc = 0;
    if (!r.nomem && otel_settings_is_on(ret)) {
        read_form(&r);
        read_resource(&r);
        read_numbers(&r);
        rc = read_headers(&r, err);
    }
    if (rc == 0 && r.nomem) rc = err_nomem(err);
    if (rc) otel_settings_done(ret);
    return rc;
}

void otel_settings_done(otel_settings *s)
{
    arena_free(s->mem);
    *s = (otel_settings){0};
}

bool otel_settings_is_on(const otel_settings *s)
{
    for (int i = 0; i < OTLP_N_SIGNALS; i++)
        if (s->urls[i]) return true;
    return false;
}
