/* bundles.c: one job for each model; see bundles.h. */
#include "control/bundles.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "logging/log.h"
#include "base/sha256.h"
#include "base/signal_stack.h"

typedef struct job {
    bundles *of; /* NULL: closed meanwhile */
    uv_work_t work;
    bool running;          /* then all below is another thread's */
    bool verifying, right; /* its file is compared with the pinned digest; it was the right one */
    bool known;
    char *model, *pinned;
    bundle bundle;
    uint64_t mark; /* of the first part's file, as it was looked at */
    int rc;
    shoal_err err;
} job;

struct bundles {
    uv_loop_t *loop;
    job **jobs;
    size_t n;
    void (*changed)(void *user);
    void *user;
};

static void bundles_job_free(job *j)
{
    if (!j) return;
    for (size_t i = 0; i < j->bundle.n_parts; i++) {
        free(j->bundle.parts[i].path);
        free(j->bundle.parts[i].name);
        artifact_done(&j->bundle.parts[i].artifact);
    }
    free(j->bundle.parts);
    free(j->model);
    free(j->pinned);
    free(j);
}

/* Changes with the file's length and time, and when it comes or goes. */
static uint64_t mark_of(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0) return 0;
    uint64_t ns = (uint64_t)st.st_mtim.tv_sec * 1000000000u + (uint64_t)st.st_mtim.tv_nsec;
    return (ns * 31 + (uint64_t)st.st_size) | 1;
}

static void read_parts(uv_work_t *w)
{
    signal_stack_open();
    job *j = w->data;
    j->rc = 0;
    j->err = (shoal_err){0};
    for (size_t i = 0; j->rc == 0 && i < j->bundle.n_parts; i++) {
        bundle_part *p = &j->bundle.parts[i];
        artifact_done(&p->artifact);
        j->rc = artifact_read(&p->artifact, p->path, i == 0 ? j->pinned : NULL, &j->err);
    }
}

static void say_why(const job *j, const char *why)
{
    LOG(LOG_WARN, "placement", "stays_here", LOG_S("model", j->model), LOG_S("reason", why));
}

static void have_read(uv_work_t *w, int status)
{
    job *j = w->data;
    j->running = false;
    if (!j->of) {
        bundles_job_free(j);
        return;
    }
    j->known = status == 0 && j->rc == 0;
    if (!j->known) say_why(j, status == 0 ? j->err.message : "its files were not read");
    j->of->changed(j->of->user);
}

/* "NAME=PATH", as the worker is told. */
static int split_adapter(bundle_part *p, const char *text)
{
    const char *equals = strchr(text, '=');
    if (!equals) return SHOAL_EINVALID;
    p->name = strndup(text, (size_t)(equals - text));
    p->path = strdup(equals + 1);
    return p->name && p->path ? 0 : SHOAL_ENOMEM;
}

static int bundles_fill(job *j, const worker_spec *s, shoal_err *err)
{
    size_t n = 0;
    while (n < WORKER_SPEC_ADAPTERS && s->adapters[n]) n++;
    j->model = strdup(s->model);
    j->bundle.parts = calloc(n + 1, sizeof *j->bundle.parts);
    if (s->sha256) j->pinned = strdup(s->sha256);
    if (!j->model || !j->bundle.parts || (s->sha256 && !j->pinned)) return err_nomem(err);
    j->bundle.n_parts = n + 1;
    int rc = (j->bundle.parts[0].path = strdup(s->path)) ? 0 : SHOAL_ENOMEM;
    for (size_t i = 0; rc == 0 && i < n; i++) rc = split_adapter(&j->bundle.parts[i + 1], s->adapters[i]);
    return rc == 0 ? 0 : err_set(err, rc, "%s: its adapters cannot be told apart", s->model);
}

static int bundles_begin(bundles *f, uv_loop_t *loop, size_t i, const worker_spec *s, shoal_err *err)
{
    job *j = f->jobs[i] = calloc(1, sizeof *j);
    int rc = j ? bundles_fill(j, s, err) : err_nomem(err);
    if (rc != 0) return rc;
    j->of = f;
    j->work.data = j;
    j->mark = mark_of(s->path);
    if (s->sha256 && j->bundle.n_parts == 1 && !file_is_dir(s->path)) { /* nothing has to be read */
        j->known = artifact_read(&j->bundle.parts[0].artifact, s->path, s->sha256, &j->err) == 0;
        if (!j->known) say_why(j, j->err.message);
        return 0;
    }
    j->running = uv_queue_work(loop, &j->work, read_parts, have_read) == 0;
    return j->running ? 0 : err_nomem(err);
}

const bundle *bundles_of(const bundles *f, size_t model)
{
    const job *j = f->jobs[model];
    return !j->running && j->known ? &j->bundle : NULL;
}

static void verify(uv_work_t *w)
{
    signal_stack_open();
    job *j = w->data;
    j->right = sha256_file_is(j->bundle.parts[0].path, j->pinned);
}

/* Its length is what it should be, whatever was seen before. */
static void have_verified(uv_work_t *w, int status)
{
    job *j = w->data;
    bundle_part *p = &j->bundle.parts[0];
    uint64_t had = p->artifact.bytes;
    shoal_err err;
    j->verifying = false;
    if (!j->of) {
        bundles_job_free(j);
        return;
    }
    if (status != 0 || !j->right || artifact_read(&p->artifact, p->path, j->pinned, &err) != 0) return;
    if (p->artifact.bytes != had) j->of->changed(j->of->user);
}

/* A file that was not there, or was cut, may be put back. One that is known by its pinned digest is compared
 * with that before its new length is believed. */
static void look_again(job *j)
{
    uv_work_cb work = j->known ? verify : read_parts;
    uv_after_work_cb after = j->known ? have_verified : have_read;
    uint64_t mark = mark_of(j->bundle.parts[0].path);
    if (j->running || j->verifying || mark == j->mark || (j->known && (!j->pinned || j->bundle.n_parts > 1)))
        return;
    j->mark = mark;
    LOG(LOG_INFO, "placement", "file_changed", LOG_S("model", j->model));
    bool begun = uv_queue_work(j->of->loop, &j->work, work, after) == 0;
    *(j->known ? &j->verifying : &j->running) = begun;
}

void bundles_look(bundles *f)
{
    for (size_t i = 0; i < f->n; i++) look_again(f->jobs[i]);
}

bool bundles_pending(const bundles *f, size_t model)
{
    return f->jobs[model]->running;
}

const char *bundles_why(const bundles *f, size_t model)
{
    const job *j = f->jobs[model];
    return j->running || j->known ? NULL : *j->err.message ? j->err.message : "it was not read";
}

static bool find_in(const bundle_part *p, const char *digest, char ret[MODEL_SEND_PATH])
{
    int n = -1;
    if (p->artifact.n_files == 0 && strcmp(p->artifact.digest, digest) == 0)
        n = snprintf(ret, MODEL_SEND_PATH, "%s", p->path);
    for (size_t i = 0; n < 0 && i < p->artifact.n_files; i++)
        if (strcmp(p->artifact.files[i].digest, digest) == 0)
            n = snprintf(ret, MODEL_SEND_PATH, "%s/%s", p->path, p->artifact.files[i].path);
    return n > 0 && n < MODEL_SEND_PATH;
}

bool bundles_find(const bundles *f, const char *digest, char ret_path[MODEL_SEND_PATH])
{
    for (size_t i = 0; i < f->n; i++) {
        const bundle *t = bundles_of(f, i);
        for (size_t k = 0; t && k < t->n_parts; k++)
            if (find_in(&t->parts[k], digest, ret_path)) return true;
    }
    return false;
}

int bundles_open(bundles **ret, uv_loop_t *loop, const control_model *models, size_t n_models,
                 void (*changed)(void *user), void *user, shoal_err *err)
{
    bundles *f = calloc(1, sizeof *f);
    job **jobs = calloc(n_models + 1, sizeof(job *));
    if (!f || !jobs) {
        free(f);
        free(jobs);
        return err_nomem(err);
    }
    *f = (bundles){.loop = loop, .jobs = jobs, .n = n_models, .changed = changed, .user = user};
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < n_models; i++) rc = bundles_begin(f, loop, i, &models[i].spec, err);
    if (rc == 0)
        *ret = f;
    else
        bundles_close(f);
    return rc;
}

void bundles_close(bundles *f)
{
    for (size_t i = 0; f && i < f->n; i++) {
        if (f->jobs[i] && (f->jobs[i]->running || f->jobs[i]->verifying))
            f->jobs[i]->of = NULL;
        else
            bundles_job_free(f->jobs[i]);
    }
    free(f ? f->jobs : NULL);
    free(f);
}
