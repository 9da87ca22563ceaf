/* files_upload.c: POST /v1/files: a file of any allowed size, with little of it in memory.
 *
 * The form is taken apart as it comes. What has come of the file goes, a chunk at a time, to a thread of the
 * executor's, which puts it into a nameless file beside the store; meanwhile the next chunk is
 * filled, and when that is full, too, the client waits. Only when the form has ended well does the file go
 * into the store, as one transaction: a client that stalls, lies about the length or leaves has put nothing
 * there. */
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "messages/multipart.h"
#include "documents/collections_impl.h"
#include "documents/vector_stores.h"
#include "retrieve/store_batch.h"
#include "store/partial.h"

enum { CHUNK_BYTES = 256 << 10, FIELD_MAX = 64, EXPIRES_MIN_S = 3600, EXPIRES_MAX_S = 30 * 86400 };

typedef struct field { /* a short text of the form */
    char text[FIELD_MAX + 1];
} field;

typedef struct upload_job {
    executor_job job;    /* first */
    gateway_request *rq; /* NULL: it has its answer, or its client has gone */
    executor *executor;
    char owner[REQUEST_OWNER_SIZE];
    multipart_reader form;
    bool in_file, has_file;
    field *in; /* the part that comes is this one; NULL: another */
    field purpose, anchor, seconds;
    int64_t most_bytes; /* of batches' files */
    char name[sizeof((multipart_part *)0)->filename];
    buf chunk, writing; /* being filled; at the executor */
    partial spool;      /* nameless file; not open: none yet */
    int64_t created;
    bool at_executor, ended, waits;
    store_file file;
} upload_job;

static void files_upload_job_free(upload_job *j)
{
    partial_close(&j->spool);
    buf_done(&j->chunk);
    buf_done(&j->writing);
    free(j);
}

/* The thread may have it: then `done` frees it. */
static void let_go(upload_job *j)
{
    j->rq = NULL;
    if (j->at_executor)
        executor_cancel(j->executor, &j->job);
    else
        files_upload_job_free(j);
}

static void files_upload_on_gone(void *work)
{
    let_go(work);
}

static void files_upload_refuse(upload_job *j, const api_error *e)
{
    gateway_request *rq = j->rq;
    let_go(j);
    request_error(rq, e);
}

/* ---- in the executor's thread -------------------------------------------------------------------- */

static int write_chunk(upload_job *j, const executor_tools *t, shoal_err *err)
{
    int rc = j->spool.path ? 0 : store_spool_open(t->store, &j->spool, err);
    return rc == 0 ? partial_append(&j->spool, j->writing.data, j->writing.len, err) : rc;
}

static int work_chunk(executor_job *job, const executor_tools *t, shoal_err *err)
{
    return write_chunk((upload_job *)job, t, err);
}

static int check_room(const upload_job *j, store *s, shoal_err *err)
{
    int64_t has = 0;
    int rc = store_batch_bytes(s, &has, err);
    if (rc != 0 || has + j->file.n_bytes <= j->most_bytes) return rc;
    return err_set(
        err, SHOAL_ELIMIT,
        "your files of batches would take over batches.max_mb: %lld bytes are there; delete some files",
        (long long)has);
}

static int work_last(executor_job *job, const executor_tools *t, shoal_err *err)
{
    upload_job *j = (upload_job *)job;
    int rc = write_chunk(j, t, err);
    j->file = (store_file){.name = j->name,
                           .purpose = j->purpose.text,
                           .n_bytes = (int64_t)j->spool.at,
                           .created = j->created,
                           .expires = j->file.expires};
    if (rc == 0 && strcmp(j->purpose.text, "batch") == 0) rc = check_room(j, t->store, err);
    return rc == 0 ? store_file_put_spool(t->store, &j->file, j->spool.fd, err) : rc;
}

/* ---- on the loop --------------------------------------------------------------------------------- */

static void done(executor_job *job);

static void submit(upload_job *j, int (*work)(executor_job *, const executor_tools *, shoal_err *))
{
    buf full = j->chunk;
    j->chunk = j->writing;
    j->writing = full;
    buf_clear(&j->chunk);
    j->at_executor = true;
    j->job = (executor_job){.work = work,
                            .done = done,
                            .queue = work == work_last ? EXECUTOR_WRITES : EXECUTOR_SPOOL,
                            .owner = j->owner};
    executor_submit(j->executor, &j->job);
}

static void files_upload_go_on(upload_job *j)
{
    bool full = j->chunk.len >= CHUNK_BYTES;
    if (!j->at_executor && (full || j->ended)) submit(j, full && !j->ended ? work_chunk : work_last);
    bool waits = j->at_executor && j->chunk.len >= CHUNK_BYTES;
    if (waits == j->waits) return;
    j->waits = waits;
    request_pause(j->rq, waits);
}

static void files_upload_answer(upload_job *j)
{
    gateway_request *rq = j->rq;
    buf out = {0};
    files_put(&out, &j->file);
    let_go(j);
    request_json(rq, 200, &out);
    buf_done(&out);
}

static void done(executor_job *job)
{
    upload_job *j = (upload_job *)job;
    api_error e;
    j->at_executor = false;
    if (!j->rq) {
        files_upload_job_free(j);
    } else if (j->job.rc != 0) {
        collections_error(&e, j->job.rc, j->job.err.message, NULL);
        files_upload_refuse(j, &e);
    } else if (j->job.work == work_last) {
        files_upload_answer(j);
    } else {
        files_upload_go_on(j);
    }
}

static int on_part(void *user, const multipart_part *head, api_error *e)
{
    upload_job *j = user;
    j->in_file = !j->has_file && strcmp(head->name, "file") == 0;
    j->in = strcmp(head->name, "purpose") == 0                  ? &j->purpose
            : strcmp(head->name, "expires_after[anchor]") == 0  ? &j->anchor
            : strcmp(head->name, "expires_after[seconds]") == 0 ? &j->seconds
                                                                : NULL;
    if (j->in) *j->in->text = '\0';
    if (!j->in_file) return 0;
    j->has_file = true;
    memcpy(j->name, head->filename, sizeof j->name);
    return *j->name ? 0 : api_error_bad(e, "file", "file: the form must have a file with a name");
}

static int files_upload_on_data(void *user, const char *bytes, size_t n, api_error *e)
{
    upload_job *j = user;
    size_t room = j->in ? FIELD_MAX - strlen(j->in->text) : 0;
    if (j->in) strncat(j->in->text, bytes, n < room ? n : room);
    return j->in_file && buf_append(&j->chunk, bytes, n) != 0 ? api_error_nomem(e) : 0;
}

static void on_body(void *work, const uint8_t *bytes, size_t n)
{
    upload_job *j = work;
    api_error e;
    if (multipart_push(&j->form, (const char *)bytes, n, &e) != 0)
        files_upload_refuse(j, &e);
    else
        files_upload_go_on(j);
}

/* OpenAI's bounds: an hour to thirty days after it was made. */
static int read_expires(upload_job *j, api_error *e)
{
    int64_t s = 0;
    if (!*j->anchor.text && !*j->seconds.text) return 0;
    if (strcmp(j->anchor.text, "created_at") != 0)
        return api_error_bad(e, "expires_after", "expires_after[anchor] must be created_at");
    if (!number_i64(j->seconds.text, &s) || s < EXPIRES_MIN_S || s > EXPIRES_MAX_S)
        return api_error_bad(e, "expires_after", "expires_after[seconds] must be %d to %d", EXPIRES_MIN_S,
                             EXPIRES_MAX_S);
    j->file.expires = j->created + s;
    return 0;
}

static void on_body_end(void *work, int status, const char *why)
{
    upload_job *j = work;
    api_error e = {0};
    int rc = status ? api_error_from_status(&e, status, why) : multipart_close(&j->form, &e);
    if (rc == 0 && !j->has_file)
        rc = api_error_bad(&e, "file", "file: the form must have a file with a name");
    j->created = request_date_s(j->rq);
    if (rc == 0 && strcmp(j->purpose.text, "batch_output") == 0)
        rc = api_error_bad(&e, "purpose", "purpose: batch_output is of files that a batch has written");
    if (rc == 0) rc = read_expires(j, &e);
    if (rc != 0) {
        files_upload_refuse(j, &e);
        return;
    }
    j->ended = true;
    files_upload_go_on(j);
}

void files_upload(gateway_request *rq)
{
    const char *type = request_header(rq, "content-type");
    api_error e = {0};
    upload_job *j = calloc(1, sizeof *j);
    multipart_events ev = {.user = j, .part = on_part, .data = files_upload_on_data};
    int rc = j ? 0 : api_error_nomem(&e);
    if (rc == 0 && !multipart_is_form(type))
        rc = api_error_bad(&e, "file", "send the file in a form (multipart/form-data) as \"file\"");
    if (rc == 0) rc = multipart_open(&j->form, type, &ev, &e);
    if (rc != 0) {
        free(j);
        request_error(rq, &e);
        return;
    }
    j->rq = rq;
    j->executor = rq->gateway->executor;
    request_owner(rq, j->owner);
    j->spool = PARTIAL_NONE;
    strcpy(j->purpose.text, "assistants");
    j->most_bytes = (int64_t)rq->config->batches.bytes;
    request_watch(rq, files_upload_on_gone, j);
    request_on_body(rq, on_body, on_body_end);
}
