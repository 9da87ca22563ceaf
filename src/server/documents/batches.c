/* batches.c: see batches.h. */
#include "documents/batches.h"

#include <stdlib.h>
#include <string.h>

#include "access/auth.h"
#include "base/number.h"
#include "batches/batch_put.h"
#include "batches/batch_runner.h"
#include "documents/collections_impl.h"
#include "json/json.h"
#include "json/json_put.h"
#include "messages/query.h"

enum { ID_SEGMENT = 2, MSG_ID_SEGMENT = 3, LIST_DEFAULT = 20, LIST_MAX = 100, WINDOW_MAX_S = 14 * 86400 };
enum { KEEP_MIN_S = 3600, KEEP_MAX_S = 30 * 86400, METADATA_MAX = 16 };

typedef struct batch_job {
    documents_job a; /* first */
    store_batch b;   /* to make; strings in a.mem */
    char key[65];
    batch_dialect dialect;
    int64_t now, most_open, most_bytes;
} batch_job;

static const char *prefix_of(batch_dialect d)
{
    return d == BATCH_ANTHROPIC ? BATCH_MSG_ID : BATCH_ID;
}

static void wake(gateway *g)
{
    batch_runner_wake(g);
}

/* NULL: rq is answered. */
static batch_job *job_new(gateway_request *rq, batch_dialect d,
                          int (*fn)(documents_job *, const executor_tools *, shoal_err *))
{
    batch_job *j = (batch_job *)collections_answer_new_sized(rq, fn, sizeof *j);
    if (!j) return NULL;
    j->dialect = d;
    j->now = request_date_s(rq);
    j->most_open = rq->config->batches.max_open;
    j->most_bytes = (int64_t)rq->config->batches.bytes;
    if (rq->key) sha256_hex(&rq->key->use->digest, j->key);
    return j;
}

/* ---- one -------------------------------------------------------------------------------------------- */

static void one(gateway_request *rq, batch_dialect d,
                int (*fn)(documents_job *, const executor_tools *, shoal_err *), executor_queue queue,
                void (*after)(gateway *g))
{
    api_error e;
    batch_job *j = job_new(rq, d, fn);
    if (!j) return;
    const char *id = collections_segment(rq, d == BATCH_ANTHROPIC ? MSG_ID_SEGMENT : ID_SEGMENT, j->a.mem);
    j->a.id =
        id && strncmp(id, prefix_of(d), strlen(prefix_of(d))) == 0 ? collections_id(id, prefix_of(d)) : 0;
    j->a.after_done = after;
    if (j->a.id) {
        collections_submit(&j->a, queue);
        return;
    }
    if (id)
        api_error_set(&e, 404, "invalid_request_error", "not_found", NULL, "there is no such batch");
    else
        api_error_nomem(&e);
    collections_refuse(&j->a, &e);
}

static int work_get(documents_job *a, const executor_tools *t, shoal_err *err)
{
    store_batch b;
    int rc = store_batch_get(t->store, a->id, ((batch_job *)a)->dialect, a->mem, &b, err);
    if (rc == 0) batch_put(&a->body, &b);
    return rc;
}

static int work_cancel(documents_job *a, const executor_tools *t, shoal_err *err)
{
    batch_job *j = (batch_job *)a;
    int rc = store_batch_cancel(t->store, a->id, j->dialect, j->now, err);
    return rc == 0 ? work_get(a, t, err) : rc;
}

void batches_get(gateway_request *rq)
{
    one(rq, BATCH_OPENAI, work_get, EXECUTOR_READS, NULL);
}

void batches_cancel(gateway_request *rq)
{
    one(rq, BATCH_OPENAI, work_cancel, EXECUTOR_WRITES, wake);
}

void message_batches_get(gateway_request *rq)
{
    one(rq, BATCH_ANTHROPIC, work_get, EXECUTOR_READS, NULL);
}

void message_batches_cancel(gateway_request *rq)
{
    one(rq, BATCH_ANTHROPIC, work_cancel, EXECUTOR_WRITES, wake);
}

static int work_results(documents_job *a, const executor_tools *t, shoal_err *err)
{
    store_batch b;
    store_file f;
    const char *content = "";
    int rc = store_batch_get(t->store, a->id, BATCH_ANTHROPIC, a->mem, &b, err);
    if (rc == 0 && !batch_status_ends(b.status))
        rc = err_set(err, SHOAL_EINVALID, "the batch has not ended: there are no results yet");
    if (rc == 0 && b.status == BATCH_FAILED)
        rc = err_set(err, SHOAL_EINVALID, "the batch has failed: its results could not be written");
    if (rc != 0) return rc;
    a->type = "application/x-jsonl";
    if (!b.output) return 0;
    rc = collections_get_file(a, t, b.output, &f, &content, err);
    return rc == 0 ? buf_append(&a->body, content, (size_t)f.n_bytes) : rc;
}

void message_batches_results(gateway_request *rq)
{
    one(rq, BATCH_ANTHROPIC, work_results, EXECUTOR_READS, NULL);
}

static int work_delete(documents_job *a, const executor_tools *t, shoal_err *err)
{
    buf_printf(&a->body, "{\"id\":\"" BATCH_MSG_ID "%lld\",\"type\":\"message_batch_deleted\"}",
               (long long)a->id);
    return store_batch_delete(t->store, a->id, BATCH_ANTHROPIC, err);
}

void message_batches_delete(gateway_request *rq)
{
    one(rq, BATCH_ANTHROPIC, work_delete, EXECUTOR_WRITES, NULL);
}

/* ---- lists ------------------------------------------------------------------------------------------ */

typedef struct batch_list {
    buf *out;
    int64_t n, most, first, last;
} batch_list;

static int list_batch(void *user, const store_batch *b)
{
    batch_list *l = user;
    if (l->n++ == l->most) return 0; /* one more, to know that there is one */
    if (l->n == 1)
        l->first = b->id;
    else
        buf_putc(l->out, ',');
    l->last = b->id;
    batch_put(l->out, b);
    return l->out->failed ? SHOAL_ENOMEM : 0;
}

static int work_list(documents_job *a, const executor_tools *t, shoal_err *err)
{
    batch_job *j = (batch_job *)a;
    const char *prefix = prefix_of(j->dialect);
    batch_list l = {.out = &a->body, .most = a->limit};
    bool fits = !a->source || strncmp(a->source, prefix, strlen(prefix)) == 0;
    int64_t after = a->source && fits ? collections_id(a->source, prefix) : 0;
    if (a->source && !after) return err_set(err, SHOAL_ENOTFOUND, "after: there is no such batch");
    buf_puts(&a->body, "{\"object\":\"list\",\"data\":[");
    int rc = store_batches(t->store, j->dialect, after, (size_t)a->limit + 1, list_batch, &l, err);
    buf_printf(&a->body, "],\"has_more\":%s", l.n > l.most ? "true" : "false");
    if (l.n)
        buf_printf(&a->body, ",\"first_id\":\"%s%lld\",\"last_id\":\"%s%lld\"}", prefix, (long long)l.first,
                   prefix, (long long)l.last);
    else
        buf_puts(&a->body, ",\"first_id\":null,\"last_id\":null}");
    return rc;
}

static void list(gateway_request *rq, batch_dialect d, const char *after_name, int64_t most)
{
    api_error e;
    char *after = NULL;
    batch_job *j = job_new(rq, d, work_list);
    if (!j) return;
    const char *query = request_query(rq);
    j->a.limit = LIST_DEFAULT;
    int rc = query_number(query, "limit", 1, most, &j->a.limit, &e);
    if (rc == 0) rc = query_value(query, after_name, &after, &e);
    if (rc == 0 && after && !(j->a.source = arena_strdup(j->a.mem, after))) rc = api_error_nomem(&e);
    free(after);
    if (rc != 0)
        collections_refuse(&j->a, &e);
    else
        collections_submit(&j->a, EXECUTOR_READS);
}

void batches_list(gateway_request *rq)
{
    list(rq, BATCH_OPENAI, "after", LIST_MAX);
}

void message_batches_list(gateway_request *rq)
{
    list(rq, BATCH_ANTHROPIC, "after_id", 1000);
}

/* ---- making ----------------------------------------------------------------------------------------- */

/* What is there already; the batch's answers come on top, and are bounded when they are stored. */
static int check_room(batch_job *j, store *s, shoal_err *err)
{
    int64_t has = 0;
    int rc = store_batch_bytes(s, &has, err);
    if (rc != 0 || has + (int64_t)j->a.in.len < j->most_bytes) return rc;
    return err_set(
        err, SHOAL_ELIMIT,
        "your files of batches take %lld bytes, and batches.max_mb allows no more: delete some files",
        (long long)has);
}

static int work_create(documents_job *a, const executor_tools *t, shoal_err *err)
{
    batch_job *j = (batch_job *)a;
    store_file f = {.name = "requests.jsonl", .purpose = "batch", .created = j->now};
    int rc = store_begin(t->store, true, err);
    if (rc != 0) return rc;
    rc = check_room(j, t->store, err);
    if (rc == 0 && j->dialect == BATCH_ANTHROPIC) {
        rc = store_file_put_bytes(t->store, &f, a->in.data, a->in.len, err);
        j->b.input = f.id;
    }
    if (rc == 0) rc = store_batch_create(t->store, &j->b, j->most_open, err);
    if (rc == 0) rc = store_commit(t->store, err);
    if (rc == 0) batch_put(&a->body, &j->b);
    return rc;
}

static int read_window(const char *s, int64_t *ret_s, api_error *e)
{
    static const char WRONG[] = "completion_window must be hours or days up to two weeks, such as 24h";
    uint64_t n;
    char digits[8];
    size_t k = strspn(s, "0123456789");
    if (k == 0 || k >= sizeof digits || strlen(s) != k + 1 || !strchr("hd", s[k]))
        return api_error_bad(e, "completion_window", "%s", WRONG);
    memcpy(digits, s, k);
    digits[k] = '\0';
    if (!number_u64(digits, &n)) return api_error_bad(e, "completion_window", "%s", WRONG);
    *ret_s = (int64_t)n * (s[k] == 'h' ? 3600 : 86400);
    bool fits = *ret_s > 0 && *ret_s <= WINDOW_MAX_S;
    return fits ? 0 : api_error_bad(e, "completion_window", "%s", WRONG);
}

/* OpenAI's bounds: 16 pairs, keys of 64 and values of 512 characters. */
static int read_metadata(batch_job *j, const json_t *o, api_error *e)
{
    const json_t *m = fields_get(o, "metadata"), *v;
    const char *key;
    j->b.metadata = "null";
    if (!m) return 0;
    if (!json_is_object(m) || json_object_size(m) > METADATA_MAX)
        return api_error_bad(e, "metadata", "metadata must be an object of at most %d texts", METADATA_MAX);
    json_object_foreach((json_t *)(uintptr_t)m, key, v)
    {
        if (!json_is_string(v) || json_string_length(v) > 4 * 512 || strlen(key) > 4 * 64)
            return api_error_bad(
                e, "metadata", "metadata: the value of '%.64s' must be a text of up to 512 characters", key);
    }
    buf out = {0};
    int rc = json_put(&out, m);
    if (rc == 0 && !(j->b.metadata = arena_strndup(j->a.mem, out.data, out.len))) rc = SHOAL_ENOMEM;
    buf_done(&out);
    return rc == 0 ? 0 : api_error_nomem(e);
}

static int read_keep(batch_job *j, const json_t *o, api_error *e)
{
    const json_t *k = fields_get(o, "output_expires_after");
    const char *anchor = "created_at";
    if (!k) return 0;
    if (!json_is_object(k))
        return api_error_bad(e, "output_expires_after", "output_expires_after must be an object");
    int rc = fields_str(k, "anchor", &anchor, e);
    if (rc == 0 && strcmp(anchor, "created_at") != 0)
        rc = api_error_bad(e, "output_expires_after", "output_expires_after.anchor must be created_at");
    if (rc == 0) rc = fields_int(k, "seconds", KEEP_MIN_S, KEEP_MAX_S, &j->b.keep_s, e);
    if (rc == 0 && !j->b.keep_s)
        rc = api_error_bad(e, "output_expires_after", "output_expires_after.seconds is missing");
    return rc;
}

static int read_endpoint(batch_job *j, const char *given, api_error *e)
{
    buf all = {0};
    if (given && batch_endpoint_is_known(given)) {
        j->b.endpoint = arena_strdup(j->a.mem, given);
        return j->b.endpoint ? 0 : api_error_nomem(e);
    }
    for (const char *const *p = BATCH_ENDPOINTS; *p; p++) buf_printf(&all, "%s%s", all.len ? ", " : "", *p);
    int rc = all.failed ? api_error_nomem(e)
                        : api_error_bad(e, "endpoint", "endpoint must be one of %s", all.data);
    buf_done(&all);
    return rc;
}

static int read_batch(batch_job *j, const json_t *o, api_error *e)
{
    const char *file = NULL, *endpoint = NULL, *window = NULL;
    int64_t window_s = 0;
    int rc = fields_str(o, "input_file_id", &file, e);
    if (rc == 0) rc = fields_str(o, "endpoint", &endpoint, e);
    if (rc == 0) rc = fields_str(o, "completion_window", &window, e);
    if (rc == 0 && !file) rc = api_error_bad(e, "input_file_id", "input_file_id is missing");
    if (rc == 0 && !window)
        rc = api_error_bad(e, "completion_window", "completion_window is missing: say 24h");
    if (rc == 0) rc = read_endpoint(j, endpoint, e);
    if (rc == 0) rc = read_window(window, &window_s, e);
    if (rc == 0) rc = read_metadata(j, o, e);
    if (rc == 0) rc = read_keep(j, o, e);
    if (rc != 0) return rc;
    bool named = strncmp(file, INGEST_FILE, strlen(INGEST_FILE)) == 0;
    j->b.input = named ? collections_id(file, INGEST_FILE) : 0;
    if (!j->b.input) return api_error_bad(e, "input_file_id", "input_file_id: there is no such file");
    j->b.window = arena_strdup(j->a.mem, window);
    j->b.expires = j->now + window_s;
    return j->b.window ? 0 : api_error_nomem(e);
}

/* {"custom_id", "params"} of Anthropic's as a line of a batch. */
static int put_request(buf *out, const json_t *r, size_t at, api_error *e)
{
    const json_t *id = json_object_get(r, "custom_id"), *params = json_object_get(r, "params");
    if (!json_is_object(r) || !json_is_string(id) || !json_string_length(id) || !json_is_object(params))
        return api_error_bad(e, "requests",
                             "requests[%zu] must have a custom_id, which is a text, and params", at);
    buf_puts(out, "{\"custom_id\":");
    json_put(out, id);
    buf_puts(out, ",\"method\":\"POST\",\"url\":\"/v1/messages\",\"body\":");
    json_put(out, params);
    buf_puts(out, "}\n");
    return out->failed ? api_error_nomem(e) : 0;
}

/* Lines are checked before the answer: Anthropic's clients know no batch that fails as a whole. */
static int check_lines(batch_job *j, size_t most, api_error *e)
{
    batch_fault f;
    const char *at = j->a.in.data, *end = at + j->a.in.len;
    size_t n = 0;
    json_t *seen = json_object();
    int rc = seen ? 0 : api_error_nomem(e);
    for (; rc == 0 && at < end; n++) {
        batch_line l = {0};
        size_t k = (size_t)((const char *)memchr(at, '\n', (size_t)(end - at)) - at);
        int why = batch_line_parse(&l, at, k, "/v1/messages", &f);
        if (why == 0 && json_object_get(seen, l.custom_id))
            rc = api_error_bad(e, "requests", "requests[%zu]: the custom_id '%.64s' was used before", n,
                               l.custom_id);
        else if (why == 0 && json_object_set_new(seen, l.custom_id, json_true()) != 0)
            rc = api_error_nomem(e);
        else if (why == SHOAL_EINVALID)
            rc = api_error_bad(e, "requests", "requests[%zu]: %s", n, f.message);
        else if (why != 0)
            rc = api_error_nomem(e);
        json_drop(l.root);
        at += k + 1;
    }
    json_decref(seen);
    if (rc == 0 && n > most)
        rc = api_error_bad(e, "requests", "requests: there may be %zu (batches.max_lines)", most);
    return rc;
}

static int read_message_batch(batch_job *j, const json_t *o, api_error *e)
{
    const json_t *requests = fields_get(o, "requests"), *r;
    size_t i;
    int rc = 0;
    if (!json_is_array(requests) || json_array_size(requests) == 0)
        return api_error_bad(e, "requests", "requests must be a list of requests");
    json_array_foreach(requests, i, r) if (rc == 0) rc = put_request(&j->a.in, r, i, e);
    if (rc == 0) rc = check_lines(j, j->a.rq->config->batches.max_lines, e);
    j->b.endpoint = "/v1/messages";
    j->b.window = "24h";
    j->b.metadata = "null";
    j->b.expires = j->now + 86400;
    return rc;
}

static void create(gateway_request *rq, batch_dialect d,
                   int (*read)(batch_job *, const json_t *, api_error *))
{
    api_error e;
    size_t len;
    json_t *root = NULL;
    const char *body = request_body(rq, &len);
    batch_job *j = job_new(rq, d, work_create);
    if (!j) return;
    j->b.dialect = d;
    j->b.key = j->key;
    j->b.errors = "";
    j->b.at[0] = j->now;
    int rc = fields_parse(&root, body, len, &e);
    if (rc == 0) rc = read(j, root, &e);
    json_drop(root);
    j->a.after_done = wake;
    if (rc != 0)
        collections_refuse(&j->a, &e);
    else
        collections_submit(&j->a, EXECUTOR_WRITES);
}

void batches_create(gateway_request *rq)
{
    create(rq, BATCH_OPENAI, read_batch);
}

void message_batches_create(gateway_request *rq)
{
    create(rq, BATCH_ANTHROPIC, read_message_batch);
}
