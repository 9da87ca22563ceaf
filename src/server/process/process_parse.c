/* process_parse.c: the body of /v1/process as a process_input. Everything is copied into one arena, and the
 * JSON is gone before a stage runs. A field that is not known is refused: it might be devices under another
 * name. */
#include <stdio.h>
#include <string.h>

#include "json/json.h"
#include "base/name.h"
#include "config/config_schema.h"
#include "process/process_media.h"

static int no_such_pipeline(const gateway_config *c, const char *name, api_error *e)
{
    const char *names[64];
    size_t n = 0;
    for (; n < c->n_pipelines && n < sizeof names / sizeof *names; n++) names[n] = c->pipelines[n].name;
    const char *near = config_nearest(name, names, n);
    return api_error_set(e, 404, "invalid_request_error", "pipeline_not_found", "pipeline",
                         "there is no pipeline named '%.64s'%s%s%s", name, near ? "; did you mean '" : "",
                         near ? near : "", near ? "'?" : "");
}

static int pick_pipeline(const json_t *body, const gateway_config *config, const config_pipeline **ret,
                         api_error *e)
{
    shoal_err err;
    const char *name = NULL;
    if (json_get_str(body, "pipeline", &name, &err)) return api_error_bad(e, "pipeline", "%s", err.message);
    const config_alias *alias = config_alias_find(config, name);
    char base[NAME_BYTES_MAX + 1];
    if (alias) name = alias->model;
    if (name) name = name_without_latest(base, name);
    *ret = pipeline_find(config->pipelines, config->n_pipelines, name);
    if (*ret) return 0;
    if (name) return no_such_pipeline(config, name, e);
    if (config->n_pipelines)
        return api_error_bad(e, "pipeline", "'pipeline' is required: this server has several");
    return api_error_set(e, 404, "invalid_request_error", "pipeline_not_found", "pipeline",
                         "this server has no pipeline configured");
}

/* *ret: "" when there is none; whether there must be one, process_check_media knows. */
static int pick_text(const json_t *body, size_t most, const char **ret, api_error *e)
{
    shoal_err err;
    const char *input = NULL, *text = NULL;
    if (json_get_str(body, "input", &input, &err) || json_get_str(body, "text", &text, &err))
        return api_error_bad(e, "input", "%s", err.message);
    if (input && text) return api_error_bad(e, "input", "give 'input' or 'text', not both");
    if (!input) input = text;
    if (input && !*input) return api_error_bad(e, "input", "'input' is required and must not be empty");
    if (!input) input = "";
    size_t n = strlen(input);
    if (n > most)
        return api_error_bad(e, "input", "'input' has %zu bytes, this pipeline takes at most %zu", n, most);
    *ret = input;
    return 0;
}

/* A field of a device: a string; states may be numbers or booleans too ("todo.shopping" = 3), empty or
 * absent. */
static const char *device_field(const json_t *device, const char *key, bool is_state, arena *a)
{
    const json_t *v = json_object_get(device, key);
    const char *s = NULL;
    if (is_state && (!v || json_is_null(v) || (json_is_string(v) && !*json_string_value(v)))) return "";
    if (json_is_string(v))
        s = arena_strdup(a, json_string_value(v));
    else if (is_state && json_is_integer(v))
        s = arena_printf(a, "%lld", (long long)json_integer_value(v));
    else if (is_state && json_is_real(v))
        s = arena_printf(a, "%g", json_real_value(v));
    else if (is_state && json_is_boolean(v))
        s = json_is_true(v) ? "on" : "off";
    return s && pipeline_device_text_ok(s) ? s : NULL;
}

/* Other names, or groups: a list of texts, or none. False: it is something else. */
static bool read_names(const json_t *v, size_t max, const char *const **ret, size_t *ret_n, arena *a)
{
    if (!v || json_is_null(v)) return true;
    size_t n = json_array_size(v);
    if (!json_is_array(v) || n > max) return false;
    const char **list = arena_alloc(a, (n + 1) * sizeof *list);
    for (size_t i = 0; list && i < n; i++) {
        const char *s = json_string_value(json_array_get(v, i));
        if (!s || !pipeline_device_text_ok(s) || !(list[i] = arena_strdup(a, s))) return false;
    }
    *ret = list;
    *ret_n = n;
    return list != NULL;
}

/* The first field that is wrong or not known, NULL: none. */
static const char *read_device(const json_t *v, config_device *d, arena *a)
{
    static const char *const fields[] = {"id", "name", "state", "unit", "area", "aliases", "groups", "kind"};
    const json_t *area = json_object_get(v, "area");
    const json_t *kind = json_object_get(v, "kind");
    bool has_area = area && !json_is_null(area) && !(json_is_string(area) && !*json_string_value(area));
    bool has_kind = kind && !json_is_null(kind);
    const json_t *unit = json_object_get(v, "unit");
    bool has_unit = unit && !json_is_null(unit);
    *d = (config_device){.id = device_field(v, "id", false, a),
                         .name = device_field(v, "name", false, a),
                         .state = device_field(v, "state", true, a),
                         .unit = has_unit ? device_field(v, "unit", false, a) : NULL,
                         .area = has_area ? device_field(v, "area", false, a) : NULL,
                         .kind = has_kind ? device_field(v, "kind", false, a) : NULL};
    const char *key;
    json_t *unused;
    json_object_foreach((json_t *)v, key, unused)
    {
        size_t k = 0;
        while (k < sizeof fields / sizeof *fields && strcmp(fields[k], key) != 0) k++;
        if (k == sizeof fields / sizeof *fields) return key;
    }
    if (!d->id || !d->name || !d->state) return !d->id ? "id" : !d->name ? "name" : "state";
    if (has_unit && !d->unit) return "unit";
    if (has_area && !d->area) return "area";
    if (has_kind && !d->kind) return "kind";
    if (!read_names(json_object_get(v, "groups"), PIPELINE_GROUPS_MAX, &d->groups, &d->n_groups, a))
        return "groups";
    bool ok = read_names(json_object_get(v, "aliases"), PIPELINE_ALIASES_MAX, &d->aliases, &d->n_aliases, a);
    return ok ? NULL : "aliases";
}

static int process_parse_read_devices(const json_t *list, process_input *in, api_error *e)
{
    size_t n = json_array_size(list);
    if (!json_is_array(list))
        return api_error_bad(e, "context.devices", "'context.devices' must be an array");
    if (n > PIPELINE_DEVICES_MAX)
        return api_error_bad(e, "context.devices", "'context.devices' has %zu entries, at most %d are taken",
                             n, PIPELINE_DEVICES_MAX);
    config_device *d = arena_alloc(in->memory, (n + 1) * sizeof *d);
    if (!d) return api_error_nomem(e);
    for (size_t i = 0; i < n; i++) {
        const char *odd = read_device(json_array_get(list, i), &d[i], in->memory);
        if (!odd) continue;
        return api_error_bad(
            e, "context.devices",
            "'context.devices[%zu].%.64s' is wrong: a device has 'id' and 'name' of 1 to 128 bytes "
            "without control characters, and perhaps 'state', 'unit', 'area', 'kind' and lists of 'aliases' "
            "and "
            "'groups'",
            i, odd);
    }
    pipeline_lend_units(in->pipeline, d, n);
    in->devices = d;
    in->n_devices = n;
    return 0;
}

/* One line as {devices} writes it: light.kitchen 'Kitchen Light' = off */
static bool read_device_line(const char *line, size_t n, config_device *ret, arena *a)
{
    static const char before[] = " '", between[] = "' = ";
    const char *end = line + n, *name = NULL, *state = NULL;
    for (const char *p = line; p + sizeof before - 1 <= end && !name; p++)
        if (memcmp(p, before, sizeof before - 1) == 0) name = p + sizeof before - 1;
    for (const char *p = name; p && p + sizeof between - 1 <= end; p++)
        if (memcmp(p, between, sizeof between - 1) == 0) state = p + sizeof between - 1;
    if (!state) return false;
    size_t n_id = (size_t)(name - line) - (sizeof before - 1);
    size_t n_name = (size_t)(state - name) - (sizeof between - 1);
    *ret = (config_device){.id = arena_strndup(a, line, n_id),
                           .name = arena_strndup(a, name, n_name),
                           .state = arena_strndup(a, state, (size_t)(end - state))};
    return ret->id && ret->name && ret->state && pipeline_device_text_ok(ret->id) &&
           pipeline_device_text_ok(ret->name) && pipeline_device_text_ok(ret->state);
}

/* A text for a pipeline whose templates have no {context} can only be its device list. */
static int read_device_lines(const char *text, process_input *in, api_error *e)
{
    config_device *d = arena_alloc(in->memory, PIPELINE_DEVICES_MAX * sizeof *d);
    if (!d) return api_error_nomem(e);
    size_t n_devices = 0;
    for (const char *p = text + strspn(text, "\r\n"); *p; p += strspn(p, "\r\n")) {
        size_t n = strcspn(p, "\r\n");
        if (n_devices == PIPELINE_DEVICES_MAX)
            return api_error_bad(e, "context", "'context' has over %d devices", PIPELINE_DEVICES_MAX);
        if (!read_device_line(p, n, &d[n_devices++], in->memory))
            return api_error_bad(e, "context",
                                 "pipeline '%s' reads 'context' as devices, and line %zu is none; it takes "
                                 "lines like: light.kitchen 'Kitchen Light' = off, or "
                                 "{\"devices\":[{\"id\",\"name\",\"state\"},...]}",
                                 in->pipeline->name, n_devices);
        p += n;
    }
    pipeline_lend_units(in->pipeline, d, n_devices);
    in->devices = d;
    in->n_devices = n_devices;
    return 0;
}

static int read_free_text(const char *text, process_input *in, api_error *e)
{
    if (strlen(text) > PIPELINE_INPUT_MAX_BYTES)
        return api_error_bad(e, "context", "'context' has %zu bytes of text, at most %d are taken",
                             strlen(text), PIPELINE_INPUT_MAX_BYTES);
    if (!pipeline_uses(in->pipeline, "context")) return read_device_lines(text, in, e);
    in->context = arena_strdup(in->memory, text);
    return in->context ? 0 : api_error_nomem(e);
}

static int read_confirm(const json_t *v, process_input *in, api_error *e)
{
    if (!v || json_is_null(v)) return 0;
    if (!json_is_string(v) || in->confirm)
        return api_error_bad(
            e, "confirm",
            "'confirm' must be one token, as the answer's guard.confirm or proposal.confirm has it");
    in->confirm = arena_strdup(in->memory, json_string_value(v));
    return in->confirm ? 0 : api_error_nomem(e);
}

static int read_session(const json_t *v, process_input *in, api_error *e)
{
    enum { SESSION_MAX_BYTES = 128 };
    if (!v || json_is_null(v)) return 0;
    size_t n = json_string_length(v);
    if (n == 0 || n > SESSION_MAX_BYTES)
        return api_error_bad(e, "session",
                             "'session' must be a text of 1 to %d bytes, the same for each request of a "
                             "conversation",
                             SESSION_MAX_BYTES);
    in->session = arena_strdup(in->memory, json_string_value(v));
    return in->session ? 0 : api_error_nomem(e);
}

/* null, text, a list of devices, or an object that may hold "devices" and "text". */
static int read_context(const json_t *context, process_input *in, api_error *e)
{
    if (!context || json_is_null(context)) return 0;
    if (json_is_string(context)) return read_free_text(json_string_value(context), in, e);
    if (json_is_array(context)) return process_parse_read_devices(context, in, e);
    if (!json_is_object(context))
        return api_error_bad(e, "context",
                             "'context' must be a string, a list of devices, or an object with 'devices' or "
                             "'text'");
    const char *key;
    json_t *v;
    json_object_foreach((json_t *)context, key, v)
    {
        int status;
        if (strcmp(key, "devices") == 0)
            status = process_parse_read_devices(v, in, e);
        else if (strcmp(key, "confirm") == 0)
            status = read_confirm(v, in, e);
        else if (strcmp(key, "text") == 0 && json_is_string(v))
            status = read_free_text(json_string_value(v), in, e);
        else if (strcmp(key, "text") == 0)
            status = api_error_bad(e, "context.text", "'context.text' must be a string");
        else
            status = api_error_bad(e, "context",
                                   "'context.%.64s' is not known; 'devices', 'text' and 'confirm' are", key);
        if (status) return status;
    }
    return 0;
}

/* A field that is not known may be a device list under another name: to answer for the pipeline's own devices
 * then would act on another home. */
static int check_fields(const json_t *body, api_error *e)
{
    static const char *const fields[] = {"pipeline", "input", "text",  "context", "devices", "stream", "user",
                                         "metadata", "audio", "image", "csv",     "confirm", "session"};
    const char *key;
    json_t *unused;
    json_object_foreach((json_t *)body, key, unused)
    {
        size_t k = 0;
        while (k < sizeof fields / sizeof *fields && strcmp(fields[k], key) != 0) k++;
        if (k == sizeof fields / sizeof *fields)
            return api_error_bad(e, key,
                                 "'%.64s' is not known; 'pipeline', 'input', 'context', 'devices', "
                                 "'confirm', 'session', 'audio', 'image' and "
                                 "'csv' are",
                                 key);
    }
    if (json_object_get(body, "devices") && json_object_get(body, "context"))
        return api_error_bad(e, "devices", "give 'devices' or 'context', not both");
    return 0;
}

int process_read_fields(const json_t *body, const gateway_config *config, process_input *in, api_error *e)
{
    if (!json_is_object(body)) return api_error_bad(e, NULL, "the body must be a JSON object");
    const json_t *stream = json_object_get(body, "stream");
    if (stream && !json_is_boolean(stream) && !json_is_null(stream))
        return api_error_bad(e, "stream", "'stream' must be true or false");
    in->stream = json_is_true(stream);
    const char *text = NULL;
    int status = check_fields(body, e);
    if (!status) status = pick_pipeline(body, config, &in->pipeline, e);
    if (!status) status = pick_text(body, pipeline_input_max(in->pipeline), &text, e);
    if (status) return status;
    in->devices = in->pipeline->devices;
    in->n_devices = in->pipeline->n_devices;
    in->text = arena_strdup(in->memory, text);
    in->context = arena_strdup(in->memory, "");
    if (!in->text || !in->context) return api_error_nomem(e);
    status = read_context(json_object_get(body, "context"), in, e);
    if (!status) status = read_confirm(json_object_get(body, "confirm"), in, e);
    if (!status) status = read_session(json_object_get(body, "session"), in, e);
    const json_t *devices = json_object_get(body, "devices");
    if (!status && devices && !json_is_null(devices)) status = process_parse_read_devices(devices, in, e);
    return status ? status : process_read_media(body, in, e);
}

int process_parse(process_input *ret, const gateway_config *config, const char *body, size_t len,
                  api_error *ret_error)
{
    shoal_err err;
    json_t *json = NULL;
    int parsed = json_parse_request(&json, body, len, "body", &err);
    if (parsed == SHOAL_ENOMEM) return api_error_nomem(ret_error);
    if (parsed != 0) return api_error_bad(ret_error, NULL, "%s", err.message);
    process_input in = {.memory = arena_new(0)};
    int status = in.memory ? process_read_fields(json, config, &in, ret_error) : api_error_nomem(ret_error);
    if (!status) status = process_check_media(&in, ret_error);
    json_drop(json);
    if (status)
        process_input_done(&in);
    else
        *ret = in;
    return status;
}

void process_input_done(process_input *in)
{
    arena_free(in->memory);
    for (int m = 0; m < N_MEDIA; m++) buf_done(&in->decoded[m]);
    *in = (process_input){0};
}
