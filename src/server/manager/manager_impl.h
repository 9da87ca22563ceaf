/* manager_impl.h: what the files of the model manager share: manager.c (its life, and the model manager's functions), manager_job.c
 * (work and who waits for it), manager_models.c (what is served), manager_kinds.c (loading and unloading, step by
 * step), manager_store.c (fetching and removing) and manager_session.c (what a supervised process finds again). */
#ifndef MANAGER_MANAGER_IMPL_H
#define MANAGER_MANAGER_IMPL_H

#include "manager/manager.h"
#include "manager/manager_book.h"
#include "manager/manager_fetch.h"
#include "manager/manager_find.h"
#include "os/memory_headroom.h"

enum { MANAGER_JOBS_MAX = 64, MANAGER_CRASHES_MAX = 3, MANAGER_TICK_MS = 500 };

/* A model that was loaded, or one of the configuration that was unloaded. */
typedef struct managed_model {
    struct managed_model *next;
    arena *mem;
    worker_spec spec;
    config_load_request wanted;
    uint64_t bytes;   /* of its files */
    bool down;        /* of the configuration: it is left out of the base */
    bool loading;     /* it was not ready yet */
    int n_before;     /* replicas that it had before the load that is under way; 0: it was not there */
    uint64_t stay_s;  /* LOAD_REQUEST_STAYS: for good */
    uint64_t used_ns; /* when it was used last, as far as is known */
} managed_model;

typedef enum job_kind { JOB_LOAD, JOB_UNLOAD, JOB_FETCH, JOB_REMOVE, JOB_VARY, JOB_LIST, JOB_WRITE } job_kind;
typedef enum job_phase {
    PHASE_NEW,      /* `then` is its beginning */
    PHASE_IDLE,     /* waits for another job (`inner`), or for a process */
    PHASE_WORKING,  /* on the pool */
    PHASE_WATCHING, /* the registry tells when it is over */
    PHASE_WRITING,  /* it is over when the book of loads says so, too */
    PHASE_OVER
} job_phase;

struct model_manager_ticket {
    struct job *job;
    model_manager_watch watch;
    model_manager_ticket *next;
};

typedef struct job {
    uv_work_t work;                                      /* first */
    void (*errand)(struct job *), (*then)(struct job *); /* of it */
    manager *k;
    struct job *next;
    job_kind kind;
    job_phase phase;
    arena *mem;                 /* of the load and the texts */
    config_load_request wanted; /* of a load */
    const char *key;            /* equal ones are one piece of work */
    char model[65];             /* "": not known yet */
    unsigned how;               /* MODEL_MANAGER_... */
    manager_found found;
    sampling_defaults sampling; /* as the configuration says, over what `found` says */
    uint64_t since_ns;          /* it watches */
    uint64_t book_at;           /* the writing of the book that has its change; 0: it has none */
    json_t *list;               /* as it was found, or is to be written */
    json_t *before;             /* what was written before that */
    int rc;                     /* of the work */
    shoal_err err;
    char file[256], digest[65]; /* of what is fetched */
    uint64_t total, fetched;
    const char *got; /* of a fetch: the model's path or name */
    manager_fetch *fetch;
    bool stopped;                  /* it was told to end */
    bool brought;                  /* its file was not in the store before it was asked for */
    unsigned n_removed;            /* of a removal: files; `total` are their bytes */
    bool is_served;                /* of a removal: a model has this name */
    bool runs;                     /* of a load: its workers may run already, so there is room for them */
    model_manager_ticket *inner;   /* for another job */
    model_manager_ticket *tickets; /* for this one */
    model_manager_step step;
    bool failed;
    api_error error;
} job;

struct manager {
    model_manager face;
    model_manager_events events; /* of who observes; members NULL: nobody does */
    uv_loop_t *loop;
    manager_options o;
    manager_places places;
    arena *mem, *base_mem;
    worker_spec *base;
    size_t n_base;
    managed_model *models;
    job *jobs;
    size_t n_jobs;
    json_t *stored;            /* as of the last look */
    json_t *variants;          /* as variants.json has them: NAME: {"from", "parameters", "system", ...} */
    const char *variants_path; /* NULL: none is kept */
    json_t *absent;            /* entries of the book that could not be loaded */
    json_t *book;              /* entries that were read from the book, or written to it last */
    json_t *session;           /* what the life before had, until it is loaded again; NULL: nothing */
    unsigned n_restoring;      /* loads of it, and one while they are begun */
    int session_fd;            /* of what this one has; -1: nothing */
    env_timer *tick;
    uv_timer_t soon; /* the next turn of the loop */
    int n_open;      /* `soon`, and jobs on the pool: the memory goes with the last */
    unsigned n_ticks;
    uint64_t book_wanted, book_started, book_written; /* writings of the book: the last that is asked for,
                                                       * that was begun, that has succeeded */
    bool draining, closing, unwritten, writing;
};

/* The configuration that is in use: it may have been read again. */
const gateway_config *manager_config(const manager *k);
/* What makes two loads one piece of work; malloc'd, NULL: no memory. A job's key has JOB_KEY_ANY before it where the load
 * may name any path, and the user where it may name his files: no other is to share its outcome. */
#define JOB_KEY_ANY "any "
char *manager_load_key(const json_t *wanted);

/* ---- manager_job.c ---- */
/* The job that does the same already, or a new one, NULL with *e where there is none. *ret_new: it is to be
 * begun. key is copied. */
job *job_get(manager *k, job_kind kind, const char *key, bool *ret_new, api_error *e);
model_manager_ticket *job_ticket(job *j, const model_manager_watch *w, api_error *e);
void job_tell(job *j, model_manager_step step);
/* Its end; told a turn of the loop later. */
void job_done(job *j, model_manager_step step);
void job_fail(job *j, int status, const char *code, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
void job_over(job *j); /* who waits is told a turn later */
/* Of a load whose model is no good: remove what was fetched for it, and then it is over. False: there is
 * nothing. */
bool job_drops_brought(job *j);
void job_fail_as(job *j, const shoal_err *err); /* with the status that suits it */
/* On a thread of the pool; then `then` on the loop, unless the model manager closes. */
void job_work(job *j, void (*errand)(job *j), void (*then)(job *j));
/* Take this machine's folders out of a sentence for clients: names of files are left. */
void manager_hide_folders(const manager_places *p, char *sentence);
void job_free(job *j);
void jobs_soon(manager *k); /* look at all that watch, a turn later */
void jobs_deliver(manager *k);
void ticket_leave(model_manager_ticket *t);
void manager_release(manager *k);

/* ---- manager_models.c ---- */
managed_model *managed_model_find(const manager *k, const char *name);
/* A model of the base, unless it was unloaded. */
const worker_spec *base_find(const manager *k, const char *name);
/* "an alias", "a route" ... of the configuration has that name; NULL: none. */
const char *manager_name_taken(const manager *k, const char *name);
managed_model *managed_model_new(manager *k, const worker_spec *spec,
                                 const config_load_request *wanted); /* in the list; NULL: no memory */
void managed_model_drop(manager *k, managed_model *m);
int manager_apply(manager *k, shoal_err *err);
/* What this machine's replicas of a model come to. */
typedef struct managed_model_state {
    unsigned n, n_ready, n_leaving;
    const replica *failed; /* NULL: none has */
} managed_model_state;
managed_model_state managed_model_look(const manager *k, const char *name);
bool managed_model_elsewhere(const manager *k, const char *name); /* only others serve it */
uint64_t managed_model_need(uint64_t file_bytes, const worker_spec *s, unsigned n_replicas);
void managed_model_touch(const manager *k, managed_model *m); /* it is used now */
uint64_t managed_model_left_ms(const manager *k, const managed_model *m);
uint64_t manager_now_ns(const manager *k);
void managed_model_tick(manager *k);
void manager_write_book(manager *k);
/* job_done, once what it has changed in the book is on the disk; it fails where that cannot be written. */
void job_done_in_book(job *j, model_manager_step step);
void manager_forget_absent(manager *k, const char *name);
void manager_loaded(manager *k, job *j); /* its entry of the book is no absent one any more */

/* ---- manager_session.c ---- */
void session_open(manager *k);
void session_leave_out(manager *k); /* of a new base what was unloaded before the crash */
void session_restore(manager *k);
void session_write(manager *k); /* something was loaded or unloaded */
void session_close(manager *k);

/* ---- manager_kinds.c ---- */
void kind_load(job *j);
void kind_unload(job *j);
void kinds_look(job *j); /* of one that watches */

/* ---- manager_variants.c ---- */
bool manager_variants_open(manager *k); /* false: no memory */
/* That writes the variant, or (NULL) removes it; NULL with *e: refused. */
job *manager_vary_job(manager *k, const char *name, const json_t *variant, api_error *e);
void kind_vary(job *j);

/* ---- manager_store.c ---- */
void kind_fetch(job *j);
void kind_remove(job *j);
void list_begin(manager *k);
void job_take_list(job *j); /* what was found is what the store has */

#endif
