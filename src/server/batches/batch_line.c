/* batch_line.c: see batch_line.h. */
#include "batches/batch_line.h"

#include <stdio.h>
#include <string.h>

const char *const BATCH_ENDPOINTS[] = {"/v1/chat/completions",
                                       "/v1/completions",
                                       "/v1/embeddings",
                                       "/v1/responses",
                                       "/v1/moderations",
                                       "/v1/messages",
                                       "/v1/classify",
                                       "/v1/process",
                                       "/v1/rerank",
                                       "/v1/tag",
                                       NULL};

bool batch_endpoint_is_known(const char *path)
{
    for (const char *const *e = BATCH_ENDPOINTS; *e; e++)
        if (strcmp(*e, path) == 0) return true;
    return false;
}

/* ---- one line ----------------------------------------------------------------------------------- */

static int fault(batch_fault *f, const char *code, const char *param, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
static int fault(batch_fault *f, const char *code, const char *param, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    *f = (batch_fault){.code = code, .param = param};
    vsnprintf(f->message, sizeof f->message, fmt, ap);
    va_end(ap);
    return SHOAL_EINVALID;
}

static int check_custom_id(const json_t *v, batch_fault *f)
{
    if (!v)
        return fault(f, "missing_required_parameter", "custom_id",
                     "Missing required parameter: 'custom_id'.");
    const char *s = json_string_value(v);
    if (!s || !*s || json_string_length(v) > BATCH_CUSTOM_ID_MAX || strlen(s) != json_string_length(v))
        return fault(f, "invalid_custom_id", "custom_id", "custom_id must be a text of 1 to %d bytes.",
                     BATCH_CUSTOM_ID_MAX);
    return 0;
}

static int check_target(const json_t *root, const char *endpoint, batch_fault *f)
{
    const json_t *method = json_object_get(root, "method"), *url = json_object_get(root, "url");
    if (!method)
        return fault(f, "missing_required_parameter", "method", "Missing required parameter: 'method'.");
    if (!url) return fault(f, "missing_required_parameter", "url", "Missing required parameter: 'url'.");
    if (!json_is_string(method) || strcmp(json_string_value(method), "POST") != 0)
        return fault(f, "invalid_method", "method", "The method must be POST.");
    if (!json_is_string(url) || strcmp(json_string_value(url), endpoint) != 0)
        return fault(f, "invalid_url", "url",
                     "The URL of this request is not the batch's endpoint, which is %.64s.", endpoint);
    return 0;
}

/* An item of /v1/responses' input that names a stored one; the type may be left out. */
static bool is_reference(const json_t *item)
{
    const json_t *type = json_object_get(item, "type"), *role = json_object_get(item, "role");
    if (type && !json_is_null(type))
        return json_is_string(type) && strcmp(json_string_value(type), "item_reference") == 0;
    return (!role || json_is_null(role)) && json_is_string(json_object_get(item, "id"));
}

static int check_items(const json_t *body, batch_fault *f)
{
    const json_t *input = json_object_get(body, "input");
    for (size_t i = 0; i < json_array_size(input); i++)
        if (is_reference(json_array_get(input, i)))
            return fault(f, "invalid_body", "body.input",
                         "A request of a batch has no conversation: send input[%zu] whole, not as an "
                         "item_reference.",
                         i);
    return 0;
}

/* What needs a client that waits, or a conversation of the key's. */
static int check_body(const json_t *body, const char *endpoint, batch_fault *f)
{
    static const char *const ALONE[] = {"previous_response_id", "conversation", "session"};
    if (!body) return fault(f, "missing_required_parameter", "body", "Missing required parameter: 'body'.");
    if (!json_is_object(body)) return fault(f, "invalid_body", "body", "The body must be a JSON object.");
    if (json_is_true(json_object_get(body, "stream")))
        return fault(f, "invalid_body", "body.stream", "A request of a batch cannot be streamed.");
    if (json_is_true(json_object_get(body, "background")))
        return fault(f, "invalid_body", "body.background",
                     "A request of a batch is in the background already.");
    for (size_t i = 0; i < sizeof ALONE / sizeof *ALONE; i++) {
        const json_t *v = json_object_get(body, ALONE[i]);
        if (v && !json_is_null(v))
            return fault(f, "invalid_body", "body",
                         "A request of a batch has no conversation: leave out '%s'.", ALONE[i]);
    }
    return strcmp(endpoint, "/v1/responses") == 0 ? check_items(body, f) : 0;
}

int batch_line_parse(batch_line *ret, const char *text, size_t n, const char *endpoint,
                     batch_fault *ret_fault)
{
    json_t *root = NULL;
    int rc = json_parse_request(&root, text, n, "the line", NULL);
    if (rc == SHOAL_ENOMEM) return rc;
    if (rc != 0 || !json_is_object(root))
        rc = fault(ret_fault, "invalid_json_line", NULL, "This line is not parseable as valid JSON.");
    if (rc == 0) rc = check_custom_id(json_object_get(root, "custom_id"), ret_fault);
    if (rc == 0) rc = check_target(root, endpoint, ret_fault);
    if (rc == 0) rc = check_body(json_object_get(root, "body"), endpoint, ret_fault);
    if (rc != 0) {
        json_drop(root);
        return rc;
    }
    *ret = (batch_line){json_string_value(json_object_get(root, "custom_id")), json_object_get(root, "body"),
                        root};
    return 0;
}

/* A stored response would be nobody's: the key's text, which names its owner, is not kept. */
int batch_line_put_body(buf *out, const batch_line *l, const char *endpoint)
{
    json_t *sent = NULL;
    if (strcmp(endpoint, "/v1/responses") != 0) return json_put(out, l->body);
    sent = json_copy((json_t *)(uintptr_t)l->body);
    int rc =
        sent && json_object_set_new(sent, "store", json_false()) == 0 ? json_put(out, sent) : SHOAL_ENOMEM;
    json_decref(sent);
    return rc;
}

/* ---- lines of a file ------------------------------------------------------------------------------ */

static bool is_blank(const char *s, size_t n)
{
    size_t i = 0;
    while (i < n && (s[i] == ' ' || s[i] == '\t' || s[i] == '\r')) i++;
    return i == n;
}

static int hand_out(batch_reader *r, batch_line_fn *fn, void *user, shoal_err *err)
{
    const char *text = r->over ? NULL : buf_text(&r->rest);
    int rc = 0;
    r->n++;
    if (!text || !is_blank(text, r->rest.len)) rc = fn(user, r->n, r->start, r->n_bytes, text, err);
    r->start += r->n_bytes + 1;
    r->n_bytes = 0;
    r->over = false;
    buf_clear(&r->rest);
    return rc;
}

int batch_reader_push(batch_reader *r, const char *bytes, size_t n, batch_line_fn *fn, void *user,
                      shoal_err *err)
{
    int rc = 0;
    while (rc == 0 && n > 0) {
        const char *end = memchr(bytes, '\n', n);
        size_t k = end ? (size_t)(end - bytes) : n;
        r->n_bytes += (int64_t)k;
        r->over = r->over || r->rest.len + k > r->most_bytes;
        if (!r->over && buf_append(&r->rest, bytes, k) != 0) return err_nomem(err);
        if (end) rc = hand_out(r, fn, user, err);
        bytes += k + (end != NULL);
        n -= k + (end != NULL);
    }
    return rc;
}

int batch_reader_end(batch_reader *r, batch_line_fn *fn, void *user, shoal_err *err)
{
    return r->n_bytes > 0 ? hand_out(r, fn, user, err) : 0;
}

void batch_reader_done(batch_reader *r)
{
    buf_done(&r->rest);
}
