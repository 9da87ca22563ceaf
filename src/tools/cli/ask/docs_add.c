/* docs_add.c: see docs_add.h. */
#include "cli/ask/docs_add.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "json/json.h"
#include "json/json_put.h"
#include "base/strmap.h"
#include "logging/sanitise.h"
#include "base/utf8.h"
#include "cli/ask/docs_files.h"
#include "fetch/pull_meter.h"
#include "retrieve/ingest.h"

enum { FILE_MAX_BYTES = 512 << 20, BATCH_BYTES = 256 << 10, BATCH_FILES = 64 };

typedef struct known { /* a document that is there */
    char digest[65];
    char source[];
} known;

typedef struct adding {
    const cli_command *cmd;
    docs_place *at;
    const docs_add_ask *ask;
    docs_files files;
    strmap there; /* known by source */
    json_t *metadata;
    buf metadata_text;
    buf batch;         /* documents of a request that is being filled */
    const char *first; /* its first file */
    size_t n_batch, at_file, n_chunks;
    size_t n_of[INGEST_FAILED + 1];
    json_t *errors; /* [{"source", "error"}] */
    bool live;
    size_t quarter;
} adding;

/* ---- how far it is ---------------------------------------------------------------------------------- */

static void docs_add_show(adding *a, const char *name)
{
    size_t all = a->files.n;
    if (a->ask->quiet || all == 0) return;
    if (a->live) {
        cli_live_line("%zu/%zu files, %zu chunks  %s", a->at_file, all, a->n_chunks, name);
    } else if (4 * a->at_file / all > a->quarter) {
        a->quarter = 4 * a->at_file / all;
        fprintf(stderr, "%zu/%zu files, %zu chunks\n", a->at_file, all, a->n_chunks);
    }
}

static void say_failed(adding *a, const char *source, const char *why)
{
    char *safe = strdup(source), *reason = strdup(why);
    if (safe && reason) {
        sanitise_text(safe, "");
        sanitise_text(reason, "");
        fprintf(stderr, "%s%s: %s\n", a->live ? "\r\033[K" : "", safe, reason);
    }
    free(safe);
    free(reason);
    if (!utf8_valid(source, strlen(source), NULL)) source = "a name that is not UTF-8";
    json_array_append_new(a->errors, json_pack("{s:s, s:s}", "source", source, "error", why));
    a->n_of[INGEST_FAILED]++;
}

/* ---- what is there ---------------------------------------------------------------------------------- */

static int note_known(adding *a, const json_t *o, shoal_err *err)
{
    const char *source = json_string_value(json_object_get(o, "source"));
    const char *digest = json_string_value(json_object_get(o, "digest"));
    if (!source || !digest || strlen(digest) != 64) return 0;
    known *k = malloc(sizeof *k + strlen(source) + 1);
    if (!k) return err_nomem(err);
    strcpy(k->source, source);
    strcpy(k->digest, digest);
    if (strmap_get(&a->there, k->source) || !strmap_put(&a->there, k->source, k)) {
        free(k);
        return 0; /* then the server finds out */
    }
    return 0;
}

/* One page of the list; *ret_after moves on, and is 0 behind the last. */
static int list_page(adding *a, long long *after, shoal_err *err)
{
    char path[160];
    buf reply = {0};
    json_t *o = NULL;
    size_t i;
    const json_t *d;
    snprintf(path, sizeof path, "/v1/collections/%.64s/documents?after=%lld", a->ask->collection, *after);
    int rc = docs_place_call(a->at, "GET", path, NULL, 0, &reply, err);
    if (rc == 0) rc = json_parse(&o, reply.data, reply.len, "the answer", err);
    json_array_foreach(json_object_get(o, "data"), i, d) if (rc == 0) rc = note_known(a, d, err);
    bool more = json_is_true(json_object_get(o, "has_more"));
    *after = more ? json_integer_value(json_object_get(o, "last_id")) : 0;
    json_decref(o);
    buf_done(&reply);
    return rc;
}

static int create(adding *a, shoal_err *err)
{
    buf body = {0};
    buf_putc(&body, '{');
    json_put_text(&body, "name", a->ask->collection);
    if (a->ask->model) json_put_text(&body, "model", a->ask->model);
    if (a->ask->chunk_bytes) buf_printf(&body, ",\"chunk_bytes\":%lld", a->ask->chunk_bytes);
    if (a->ask->shared) buf_puts(&body, ",\"shared\":true");
    buf_putc(&body, '}');
    int rc = body.failed ? err_nomem(err)
                         : docs_place_call(a->at, "POST", "/v1/collections", body.data, body.len, NULL, err);
    buf_done(&body);
    return rc;
}

/* --shared counts for a new collection: whoever gives it for one that is not shared is told so. */
static int check_shared(adding *a, shoal_err *err)
{
    buf reply = {0};
    char path[128];
    json_t *o = NULL;
    snprintf(path, sizeof path, "/v1/collections/%.64s", a->ask->collection);
    int rc = docs_place_call(a->at, "GET", path, NULL, 0, &reply, err);
    if (rc == 0) rc = json_parse(&o, reply.data, reply.len, "the answer", err);
    if (rc == 0 && json_is_false(json_object_get(o, "shared")))
        rc = err_set(
            err, SHOAL_EINVALID,
            "%s exists and is not shared, and --shared counts only for a new collection: take another "
            "name, or remove this one first (shoal docs remove %s)",
            a->ask->collection, a->ask->collection);
    json_decref(o);
    buf_done(&reply);
    return rc;
}

static int docs_add_look(adding *a, shoal_err *err)
{
    long long after = 0;
    int rc;
    do rc = list_page(a, &after, err);
    while (rc == 0 && after > 0);
    if (rc == SHOAL_ENOTFOUND) return create(a, err);
    return rc == 0 && a->ask->shared ? check_shared(a, err) : rc;
}

/* ---- sending ---------------------------------------------------------------------------------------- */

static void count_outcome(adding *a, const json_t *o)
{
    const char *word = json_string_value(json_object_get(o, "status"));
    const char *source = json_string_value(json_object_get(o, "source"));
    const char *why = json_string_value(json_object_get(o, "error"));
    for (size_t i = 0; word && i < INGEST_FAILED; i++)
        if (strcmp(word, ingest_status_word((ingest_status)i)) == 0) a->n_of[i]++;
    if (word && strcmp(word, "failed") == 0)
        say_failed(a, source ? source : "", why ? why : "");
    else
        a->n_chunks += (size_t)json_integer_value(json_object_get(o, "chunks"));
}

/* The documents that were gathered. What is wrong with a single one is its own; more are tried one by one. */
static int send_batch(adding *a, const char *body, size_t n, shoal_err *err)
{
    char path[128];
    buf reply = {0};
    json_t *o = NULL;
    size_t i;
    const json_t *d;
    snprintf(path, sizeof path, "/v1/collections/%.64s/documents", a->ask->collection);
    int rc = docs_place_call(a->at, "POST", path, body, n, &reply, err);
    if (rc == 0) rc = json_parse(&o, reply.data, reply.len, "the answer", err);
    json_array_foreach(json_object_get(o, "data"), i, d) count_outcome(a, d);
    json_decref(o);
    buf_done(&reply);
    return rc;
}

static int docs_add_flush(adding *a, shoal_err *err)
{
    if (a->n_batch == 0) return 0;
    buf_puts(&a->batch, "]}");
    int rc = a->batch.failed ? err_nomem(err) : send_batch(a, a->batch.data, a->batch.len, err);
    if (a->n_batch == 1 && (rc == SHOAL_EINVALID || rc == SHOAL_ELIMIT)) {
        say_failed(a, a->first, err->message); /* this one alone */
        rc = 0;
    }
    buf_clear(&a->batch);
    a->n_batch = 0;
    return rc;
}

static void put_document(adding *a, const char *path, plain_type type, const buf *text)
{
    if (a->n_batch == 0) a->first = path;
    buf_puts(&a->batch, a->n_batch ? "," : "{\"documents\":[");
    buf_putc(&a->batch, '{');
    json_put_text(&a->batch, "source", path);
    buf_printf(&a->batch, ",\"type\":\"%s\",\"metadata\":", plain_type_name(type));
    buf_join(&a->batch, &a->metadata_text);
    json_put_buf(&a->batch, "text", text);
    buf_putc(&a->batch, '}');
    a->n_batch++;
}

static plain_type type_of(const adding *a, const char *path)
{
    plain_type t = PLAIN_TEXT;
    if (!a->ask->type || !plain_type_parse(a->ask->type, &t)) plain_type_of(path, &t);
    return t;
}

static bool is_there(adding *a, const char *path, plain_type type, const buf *text)
{
    char digest[65];
    const known *k = strmap_get(&a->there, path);
    return k &&
           ingest_digest(type, a->metadata_text.data, text->data ? text->data : "", text->len, digest, NULL,
                         NULL) == 0 &&
           strcmp(digest, k->digest) == 0;
}

/* Read it, and send what was gathered when it is enough. */
static int add_file(adding *a, const char *path, shoal_err *err)
{
    buf text = {0};
    shoal_err own = {0};
    plain p = {0};
    plain_type type = type_of(a, path);
    int rc = 0, bad = 0;
    if (!utf8_valid(path, strlen(path), NULL)) /* by which it would be found again, and told from others */
        bad = err_set(&own, SHOAL_EINVALID, "its name is not UTF-8: rename it");
    if (bad == 0) bad = file_read(&text, path, FILE_MAX_BYTES, &own);
    if (bad == 0 && text.len && (memchr(text.data, 0, text.len) || !utf8_valid(text.data, text.len, NULL)))
        bad = plain_read(&p, PLAIN_TEXT, text.data, text.len, "the document", NULL, &own); /* says why */
    if (bad == SHOAL_ENOMEM) {
        rc = err_nomem(err);
    } else if (bad != 0) {
        say_failed(a, path, own.message);
    } else if (is_there(a, path, type, &text)) {
        a->n_of[INGEST_UNCHANGED]++;
    } else {
        if (a->n_batch && a->batch.len + text.len > BATCH_BYTES) rc = docs_add_flush(a, err);
        if (rc == 0) put_document(a, path, type, &text);
        if (rc == 0 && (a->batch.len >= BATCH_BYTES || a->n_batch == BATCH_FILES))
            rc = docs_add_flush(a, err);
    }
    plain_done(&p);
    buf_done(&text);
    return rc;
}

/* ---- all of it -------------------------------------------------------------------------------------- */

static int read_metadata(adding *a, shoal_err *err)
{
    a->metadata = json_object();
    a->errors = json_array();
    if (!a->metadata || !a->errors) return err_nomem(err);
    for (size_t i = 0; i < a->ask->meta->n; i++) {
        const char *pair = a->ask->meta->v[i], *eq = strchr(pair, '=');
        char key[65];
        json_error_t e;
        if (!eq || eq == pair || eq - pair > 64)
            return err_set(err, SHOAL_EINVALID, "--meta takes KEY=VALUE, not '%.80s'", pair);
        snprintf(key, sizeof key, "%.*s", (int)(eq - pair), pair);
        json_t *v = json_loads(eq + 1, JSON_DECODE_ANY, &e); /* 7 and true are no texts */
        if (!json_is_number(v) && !json_is_boolean(v)) {
            json_decref(v);
            v = json_string(eq + 1);
        }
        if (!v || json_object_set_new(a->metadata, key, v) != 0)
            return err_set(err, SHOAL_EINVALID, "--meta %s: not in UTF-8", key);
    }
    json_put(&a->metadata_text, a->metadata);
    return a->metadata_text.failed ? err_nomem(err) : 0;
}

static int docs_add_run(adding *a, char *const *paths, int n_paths, shoal_err *err)
{
    int rc = read_metadata(a, err);
    for (int i = 0; rc == 0 && i < n_paths; i++) rc = docs_files_add(&a->files, paths[i], err);
    if (rc == 0) rc = docs_add_look(a, err);
    for (; rc == 0 && a->at_file < a->files.n; a->at_file++) {
        docs_add_show(a, a->files.v[a->at_file]);
        rc = add_file(a, a->files.v[a->at_file], err);
    }
    if (rc == 0) rc = docs_add_flush(a, err);
    if (rc == 0) docs_add_show(a, "");
    if (a->live && !a->ask->quiet) cli_live_line("%s", "");
    return rc;
}

static void docs_add_report(const adding *a)
{
    size_t skipped = a->files.n_skipped;
    if (!a->ask->json) {
        printf("%s: %zu added, %zu replaced, %zu unchanged, %zu failed; %zu chunks", a->ask->collection,
               a->n_of[INGEST_ADDED], a->n_of[INGEST_REPLACED], a->n_of[INGEST_UNCHANGED],
               a->n_of[INGEST_FAILED], a->n_chunks);
        if (skipped) printf("; %zu files of other kinds left out", skipped);
        putchar('\n');
        return;
    }
    buf out = {0};
    buf_putc(&out, '{');
    json_put_text(&out, "collection", a->ask->collection);
    for (size_t i = 0; i <= INGEST_FAILED; i++)
        buf_printf(&out, ",\"%s\":%zu", ingest_status_word((ingest_status)i), a->n_of[i]);
    buf_printf(&out, ",\"skipped\":%zu,\"chunks\":%zu,\"errors\":", skipped, a->n_chunks);
    json_put(&out, a->errors);
    buf_putc(&out, '}');
    if (!out.failed) printf("%s\n", out.data);
    buf_done(&out);
}

static void adding_done(adding *a)
{
    size_t at = 0;
    for (known *k; (k = strmap_next(&a->there, &at));) free(k);
    strmap_done(&a->there);
    docs_files_done(&a->files);
    json_decref(a->metadata);
    json_decref(a->errors);
    buf_done(&a->metadata_text);
    buf_done(&a->batch);
}

int docs_add(const cli_command *cmd, docs_place *at, const docs_add_ask *ask, char *const *paths, int n_paths)
{
    shoal_err err = {0};
    adding a = {.cmd = cmd, .at = at, .ask = ask, .live = isatty(STDERR_FILENO)};
    int rc = docs_add_run(&a, paths, n_paths, &err);
    if (rc == 0) {
        docs_add_report(&a);
        rc = a.n_of[INGEST_FAILED] ? CLI_FAILED : CLI_OK;
    } else {
        rc = cli_fail(cmd, &err);
    }
    adding_done(&a);
    return rc;
}
