/* envelope.c: reading a message in JSON. */
#include "ingress/envelope.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/number.h"
#include "base/utf8.h"
#include "request/admission.h"

/* X(member) */
#define MEMBERS(X) X("id") X("cancel") X("method") X("path") X("headers") X("body") X("body_base64")

static int check_members(const json_t *root, api_error *e)
{
    static const char *const known[] = {
#define NAME(s) s,
        MEMBERS(NAME)
#undef NAME
    };
    const char *key;
    json_t *v;
    json_object_foreach((json_t *)root, key, v)
    {
        size_t i = 0;
        while (i < sizeof known / sizeof *known && strcmp(known[i], key) != 0) i++;
        if (i == sizeof known / sizeof *known)
            return api_error_bad(e, NULL,
                                 "'%.40s' is no member of a message; they are id, method, path, headers, "
                                 "body, body_base64 and cancel",
                                 key);
    }
    return 0;
}

static bool is_printable(const char *s)
{
    for (; *s; s++)
        if ((unsigned char)*s < 0x20 || *s == 0x7F) return false;
    return true;
}

static int take_id(envelope *a, api_error *e)
{
    const json_t *id = json_object_get(a->root, "id");
    const char *s = json_string_value(id);
    size_t n = json_string_length(id);
    if (!s || n == 0 || n > ENVELOPE_ID_MAX || strlen(s) != n || !is_printable(s))
        return api_error_bad(e, "id", "a message needs an id: a text of 1 to %d characters", ENVELOPE_ID_MAX);
    memcpy(a->id, s, n + 1);
    return 0;
}

static int take_headers(envelope *a, api_error *e)
{
    const char *name;
    json_t *v;
    a->headers = json_object_get(a->root, "headers");
    if (!a->headers || json_is_null(a->headers)) {
        a->headers = NULL;
        return 0;
    }
    bool ok = json_is_object(a->headers) && json_object_size(a->headers) <= ENVELOPE_HEADERS_MAX;
    json_object_foreach(a->headers, name, v)
    {
        const char *s = json_string_value(v);
        ok = ok && s && strlen(s) == json_string_length(v) && is_printable(s) && is_printable(name);
    }
    return ok ? 0
              : api_error_bad(e, "headers", "headers must be an object of at most %d texts",
                              ENVELOPE_HEADERS_MAX);
}

static int take_body(envelope *a, api_error *e)
{
    const json_t *body = json_object_get(a->root, "body"), *coded = json_object_get(a->root, "body_base64");
    if (body && coded) return api_error_bad(e, "body", "body and body_base64 do not go together");
    if (body && json_put(&a->body, body) != 0) return api_error_nomem(e);
    json_object_del(a->root, "body"); /* here, in the pool, if it is large */
    if (!coded) return 0;
    int rc = json_is_string(coded)
                 ? base64_decode(&a->body, json_string_value(coded), json_string_length(coded))
                 : SHOAL_EINVALID;
    if (rc == SHOAL_ENOMEM) return api_error_nomem(e);
    return rc == 0 ? 0 : api_error_bad(e, "body_base64", "body_base64 must be bytes in base64");
}

static bool is_target(const char *s)
{
    for (const char *p = s; *p; p++)
        if (*p <= 0x20 || *p >= 0x7F || *p == '#') return false;
    return *s == '/';
}

static int take_target(envelope *a, api_error *e)
{
    const json_t *path = json_object_get(a->root, "path"), *method = json_object_get(a->root, "method");
    const char *s = json_string_value(path);
    if (!s || strlen(s) != json_string_length(path) || !is_target(s))
        return api_error_bad(e, "path", "a message needs a path, such as \"/v1/chat/completions\"");
    a->method = method ? json_string_value(method) : a->body.len ? "POST" : "GET";
    if (!a->method || !is_printable(a->method) || strlen(a->method) > 16)
        return api_error_bad(e, "method", "method must be GET, POST or DELETE");
    a->target = strdup(s);
    if (!a->target) return api_error_nomem(e);
    char *mark = strchr(a->target, '?');
    if (mark) *mark = '\0';
    a->path = a->target;
    a->query = mark ? mark + 1 : "";
    return 0;
}

static const char *header_of(const void *of, const char *name)
{
    return envelope_header(of, name);
}

/* A deadline that is no number is refused later, as over HTTP. */
static void note_key_and_deadline(envelope *a)
{
    const char *s = envelope_header(a, "x-shoal-deadline-ms");
    uint64_t ms;
    a->key = admission_shown(header_of, a);
    a->has_timeout = s && number_u64(s, &ms) && ms <= ENVELOPE_TIMEOUT_MAX_MS;
    if (a->has_timeout) a->timeout_ms = ms;
}

int envelope_parse(envelope *ret, const char *bytes, size_t n, api_error *e)
{
    shoal_err err = {0};
    const json_t *cancel;
    *ret = (envelope){.method = "", .path = "", .query = ""};
    int rc = json_parse_request(&ret->root, bytes, n, "the message", &err);
    if (rc == SHOAL_ENOMEM) return api_error_nomem(e);
    if (rc != 0) return api_error_bad(e, NULL, "%s", err.message);
    if (!json_is_object(ret->root)) return api_error_bad(e, NULL, "a message is a JSON object");
    if ((rc = take_id(ret, e)) || (rc = check_members(ret->root, e))) return rc;
    cancel = json_object_get(ret->root, "cancel");
    ret->cancels = json_is_true(cancel);
    if (cancel && !ret->cancels) return api_error_bad(e, "cancel", "cancel is true or not there");
    if (ret->cancels) return 0;
    if ((rc = take_headers(ret, e)) || (rc = take_body(ret, e)) || (rc = take_target(ret, e))) return rc;
    note_key_and_deadline(ret);
    return 0;
}

void envelope_done(envelope *a)
{
    json_drop(a->root);
    free(a->target);
    buf_done(&a->body);
    *a = (envelope){0};
}

const char *envelope_header(const envelope *a, const char *name)
{
    const char *key;
    json_t *v;
    json_object_foreach(a->headers, key, v) if (strcasecmp(key, name) == 0) return json_string_value(v);
    return NULL;
}
