/* fields.c: json/json.h's getters, with errors as the API gives them; see fields.h. */
#include "messages/fields.h"

#include <string.h>
#include <strings.h>

#include "json/json.h"
#include "base/utf8.h"

/* What a model said may hold one, and a client sends it back as it was. Conversations travel as JSON, which
 * can. */
static bool is_models_own(const json_t *o)
{
    const char *role = json_string_value(json_object_get(o, "role"));
    return role && strcmp(role, "assistant") == 0;
}

/* Texts go to workers as C strings: what one call cannot take, none takes. */
static bool has_nul(const json_t *v)
{
    const char *key;
    json_t *part;
    size_t i;
    if (is_models_own(v)) return false;
    if (json_is_string(v)) return memchr(json_string_value(v), '\0', json_string_length(v)) != NULL;
    json_array_foreach((json_t *)v, i, part)
    {
        if (has_nul(part)) return true;
    }
    json_object_foreach((json_t *)v, key, part)
    {
        if (has_nul(part)) return true;
    }
    return false;
}

static int refuse_nul(const json_t *o, api_error *e)
{
    const char *key;
    json_t *v;
    json_object_foreach((json_t *)o, key, v)
    {
        if (has_nul(v))
            return api_error_bad(
                e, key, "\"%.64s\" holds a NUL character (\\u0000), which no text may: leave it out", key);
    }
    return 0;
}

int fields_parse(json_t **ret, const char *body, size_t len, api_error *e)
{
    shoal_err err;
    json_t *o = NULL;
    int rc = json_parse_request(&o, body, len, "body", &err);
    if (rc == SHOAL_ENOMEM) return api_error_nomem(e);
    if (rc != 0) return api_error_bad(e, NULL, "%s", err.message);
    if (!json_is_object(o)) {
        json_drop(o);
        return api_error_bad(e, NULL, "body: must be a JSON object");
    }
    rc = refuse_nul(o, e);
    if (rc == 0)
        *ret = o;
    else
        json_drop(o);
    return rc;
}

static int fields_refuse(api_error *e, const char *key, const shoal_err *err)
{
    return api_error_bad(e, key, "%s", err->message);
}

int fields_str(const json_t *o, const char *key, const char **ret, api_error *e)
{
    shoal_err err;
    return json_get_str(o, key, ret, &err) == 0 ? 0 : fields_refuse(e, key, &err);
}

int fields_int(const json_t *o, const char *key, int64_t min, int64_t max, int64_t *ret, api_error *e)
{
    shoal_err err;
    return json_get_int(o, key, min, max, ret, &err) == 0 ? 0 : fields_refuse(e, key, &err);
}

/* An integer of 64 bits without a sign has become a real number in json.h; half of it has room. */
int fields_seed(const json_t *o, int64_t *ret, api_error *e)
{
    double seed = json_real_value(json_object_get(o, "seed"));
    if (!(seed >= 0x1p63 && seed <= 0x1p64)) return fields_int(o, "seed", INT64_MIN, INT64_MAX, ret, e);
    *ret = seed < 0x1p64 ? (int64_t)(seed / 2) : INT64_MAX;
    return 0;
}

int fields_num(const json_t *o, const char *key, double min, double max, float *ret, api_error *e)
{
    shoal_err err;
    double v = *ret;
    if (json_get_num(o, key, min, max, &v, &err) != 0) return fields_refuse(e, key, &err);
    *ret = (float)v;
    return 0;
}

int fields_bool(const json_t *o, const char *key, bool *ret, api_error *e)
{
    shoal_err err;
    return json_get_bool(o, key, ret, &err) == 0 ? 0 : fields_refuse(e, key, &err);
}

const json_t *fields_get(const json_t *o, const char *key)
{
    const json_t *v = json_object_get(o, key);
    return json_is_null(v) ? NULL : v;
}

int fields_put(json_t *o, const char *key, json_t *v, api_error *e)
{
    return json_object_set_new(o, key, v) == 0 ? 0 : api_error_nomem(e);
}

int fields_append(json_t *list, json_t *v, api_error *e)
{
    return json_array_append_new(list, v) == 0 ? 0 : api_error_nomem(e);
}

int fields_rename(json_t *to, const json_t *from, const fields_name *rows, size_t n, api_error *e)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < n; i++) {
        const json_t *v = fields_get(from, rows[i].theirs);
        if (v) rc = fields_put(to, rows[i].ours, json_incref((json_t *)v), e);
    }
    return rc;
}

const char *fields_text(const json_t *v)
{
    if (!json_is_string(v)) return NULL;
    const char *s = json_string_value(v);
    return strlen(s) == json_string_length(v) ? s : NULL;
}

/* A URL elsewhere is not fetched: a server that fetches what any client names exposes its own network. */
int fields_file(const json_t *o, const char *key, const char *what, buf *ret, api_error *e)
{
    static const char BASE64[] = ";base64,";
    const char *text = fields_text(fields_get(o, key));
    if (!text || !*text)
        return api_error_bad(e, key, "\"%s\" must be a %s in base64, or a data: URL of one", key, what);
    if (strncasecmp(text, "data:", 5) == 0) {
        const char *comma = strchr(text, ',');
        size_t head = comma ? (size_t)(comma - text) + 1 : 0, n = strlen(BASE64);
        if (head < n || strncasecmp(text + head - n, BASE64, n) != 0)
            return api_error_bad(e, key, "\"%s\": a data: URL must be in base64", key);
        text += head;
    } else if (strstr(text, "://")) {
        return api_error_bad(e, key, "\"%s\": addresses are not fetched; send the file in base64", key);
    }
    int rc = base64_decode(ret, text, strlen(text));
    if (rc == SHOAL_EFORMAT) return api_error_bad(e, key, "\"%s\" is no base64", key);
    return rc == 0 ? 0 : api_error_nomem(e);
}
