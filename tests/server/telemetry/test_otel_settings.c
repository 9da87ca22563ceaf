/* What is exported, by shoal.yaml and by the environment where a key is absent. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the four above first. */
#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "logging/log.h"
#include "telemetry/otel_settings.h"

/* name, value, name, value ..., NULL */
static const char *from_list(void *user, const char *name)
{
    for (const char *const *at = user; *at; at += 2)
        if (strcmp(at[0], name) == 0) return at[1];
    return NULL;
}

static otel_settings settings_of(const config_otel *c, const char *const *env)
{
    otel_settings s;
    shoal_err err;
    assert_int_equal(otel_settings_read(&s, c, from_list, (void *)env, &err), 0);
    return s;
}

static const otlp_attribute *resource(const otel_settings *s, const char *key)
{
    for (size_t i = 0; i < s->n_resource; i++)
        if (strcmp(s->resource[i].key, key) == 0) return &s->resource[i];
    fail_msg("no %s", key);
    return NULL;
}

#define ENV(...) ((const char *const[]){__VA_ARGS__, NULL, NULL})
#define BASE     "OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318"

static void nothing_is_exported_where_nobody_says_so(void **state)
{
    otel_settings s = settings_of(&(config_otel){0}, ENV("OTEL_SERVICE_NAME", "x"));
    assert_false(otel_settings_is_on(&s));
    otel_settings_done(&s);
    s = settings_of(&(config_otel){0}, ENV(BASE, "OTEL_SDK_DISABLED", "true"));
    assert_false(otel_settings_is_on(&s));
    otel_settings_done(&s);
    s = settings_of(&(config_otel){0}, ENV("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4318"));
    assert_false(otel_settings_is_on(&s));
    otel_settings_done(&s);
}

static void paths_follow_the_endpoint(void **state)
{
    otel_settings s = settings_of(&(config_otel){.endpoint = "https://c/otlp/"}, ENV(BASE));
    assert_string_equal(s.urls[OTLP_TRACES], "https://c/otlp/v1/traces");
    assert_string_equal(s.urls[OTLP_METRICS], "https://c/otlp/v1/metrics");
    assert_string_equal(s.urls[OTLP_LOGS], "https://c/otlp/v1/logs");
    otel_settings_done(&s);
    s = settings_of(&(config_otel){0}, ENV(BASE, "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", "http://l/logs"));
    assert_string_equal(s.urls[OTLP_TRACES], "http://c:4318/v1/traces");
    assert_string_equal(s.urls[OTLP_LOGS], "http://l/logs");
    otel_settings_done(&s);
}

static void signals_are_switched_by_key_then_by_variable(void **state)
{
    const char *const *none =
        ENV("OTEL_TRACES_EXPORTER", "none", "OTEL_METRICS_EXPORTER", "none", "OTEL_LOGS_EXPORTER", "otlp");
    config_otel c = {.endpoint = "http://c", .traces = OTEL_SWITCH_ON};
    otel_settings s = settings_of(&c, none);
    assert_non_null(s.urls[OTLP_TRACES]);
    assert_null(s.urls[OTLP_METRICS]);
    assert_non_null(s.urls[OTLP_LOGS]);
    otel_settings_done(&s);
    c.logs = c.traces = OTEL_SWITCH_OFF;
    s = settings_of(&c, none);
    assert_false(otel_settings_is_on(&s));
    otel_settings_done(&s);
}

static void form_and_numbers_come_from_both(void **state)
{
    const char *const *env =
        ENV(BASE, "OTEL_EXPORTER_OTLP_PROTOCOL", "http/json", "OTEL_EXPORTER_OTLP_COMPRESSION", "gzip",
            "OTEL_EXPORTER_OTLP_CERTIFICATE", "/ca.pem", "OTEL_BSP_SCHEDULE_DELAY", "250",
            "OTEL_METRIC_EXPORT_INTERVAL", "never", "OTEL_EXPORTER_OTLP_TIMEOUT", "0");
    otel_settings s = settings_of(&(config_otel){0}, env);
    assert_int_equal(s.protocol, OTLP_JSON);
    assert_true(s.gzip);
    assert_string_equal(s.ca, "/ca.pem");
    assert_int_equal(s.interval_ms, 250);
    assert_int_equal(s.metrics_interval_ms, 60000);
    assert_int_equal(s.timeout_ms, 10000);
    otel_settings_done(&s);
    config_otel c = {.protocol = OTEL_PROTOCOL_PROTOBUF,
                     .compression = OTEL_COMPRESSION_NONE,
                     .ca = "/mine.pem",
                     .interval_ms = 7,
                     .batch = 3};
    s = settings_of(&c, env);
    assert_int_equal(s.protocol, OTLP_PROTOBUF);
    assert_false(s.gzip);
    assert_string_equal(s.ca, "/mine.pem");
    assert_int_equal(s.interval_ms, 7);
    assert_int_equal(s.batch, 3);
    otel_settings_done(&s);
    s = settings_of(&(config_otel){0}, ENV(BASE, "OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"));
    assert_int_equal(s.protocol, OTLP_PROTOBUF);
    otel_settings_done(&s);
}

static double sample(const char *sampler, const char *arg)
{
    otel_settings s = settings_of(&(config_otel){0},
                                  ENV(BASE, "OTEL_TRACES_SAMPLER", sampler, "OTEL_TRACES_SAMPLER_ARG", arg));
    double ratio = s.sample;
    otel_settings_done(&s);
    return ratio;
}

static void samplers_are_those_of_the_specification(void **state)
{
    assert_true(sample("always_on", "0.5") == 1);
    assert_true(sample("parentbased_always_off", "0.5") == 0);
    assert_true(sample("traceidratio", "0.25") == 0.25);
    assert_true(sample("parentbased_traceidratio", "0.125") == 0.125);
    assert_true(sample("traceidratio", "") == 1);
    assert_true(sample("traceidratio", "2") == 1);
    assert_true(sample("jaeger_remote", "0.5") == 1);
    double own = 0.75;
    otel_settings s = settings_of(&(config_otel){.endpoint = "http://c", .sample = &own},
                                  ENV("OTEL_TRACES_SAMPLER", "always_off"));
    assert_true(s.sample == 0.75);
    otel_settings_done(&s);
}

static void the_resource_is_put_together(void **state)
{
    config_otel_pair own[] = {{"deployment.environment.name", "home"}};
    const char *const *env =
        ENV(BASE, "OTEL_RESOURCE_ATTRIBUTES",
            "deployment.environment.name=test, team = a%20b%2Cc,broken,service.name=from-list",
            "OTEL_SERVICE_NAME", "named");
    otel_settings s = settings_of(&(config_otel){.resource = own, .n_resource = 1}, env);
    assert_string_equal(resource(&s, "service.name")->text, "named");
    assert_string_equal(resource(&s, "deployment.environment.name")->text, "home");
    assert_string_equal(resource(&s, "team")->text, "a b,c");
    assert_int_equal(resource(&s, "process.pid")->i, getpid());
    assert_int_equal(strlen(resource(&s, "service.instance.id")->text), 32);
    otel_settings_done(&s);
    s = settings_of(&(config_otel){.service_name = "mine"}, env);
    assert_string_equal(resource(&s, "service.name")->text, "mine");
    otel_settings_done(&s);
    s = settings_of(&(config_otel){0}, ENV(BASE, "OTEL_RESOURCE_ATTRIBUTES", "service.name=from-list"));
    assert_string_equal(resource(&s, "service.name")->text, "from-list");
    otel_settings_done(&s);
}

static void headers_come_from_keys_or_from_the_variable(void **state)
{
    static const char LIST[] = "authorization=Bearer%20abc,bad name=x,host=other,x-tenant=7,x-line=a%0Ab";
    otel_settings s = settings_of(&(config_otel){0}, ENV(BASE, "OTEL_EXPORTER_OTLP_HEADERS", LIST));
    assert_string_equal(s.headers, "authorization: Bearer abc\r\nx-tenant: 7\r\n");
    otel_settings_done(&s);
    host_header own[] = {{.name = "x-own", .value = "1"}};
    s = settings_of(&(config_otel){.headers = own, .n_headers = 1},
                    ENV(BASE, "OTEL_EXPORTER_OTLP_HEADERS", LIST));
    assert_string_equal(s.headers, "x-own: 1\r\n");
    otel_settings_done(&s);
    own[0] = (host_header){.name = "x-own", .file = "/does/not/exist"};
    shoal_err err;
    config_otel c = {.endpoint = "http://c", .headers = own, .n_headers = 1};
    assert_int_equal(otel_settings_read(&s, &c, from_list, (void *)ENV(BASE), &err), SHOAL_EINVALID);
    assert_non_null(strstr(err.message, "otel.headers[0].file: "));
}

int main(void)
{
    log_setup(LOG_OFF, true);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_exported_where_nobody_says_so),
        cmocka_unit_test(paths_follow_the_endpoint),
        cmocka_unit_test(signals_are_switched_by_key_then_by_variable),
        cmocka_unit_test(form_and_numbers_come_from_both),
        cmocka_unit_test(samplers_are_those_of_the_specification),
        cmocka_unit_test(the_resource_is_put_together),
        cmocka_unit_test(headers_come_from_keys_or_from_the_variable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
