/* keep_impl.h: what the files of the model manager share: keep.c (its life, and the model manager's functions), keep_job.c
 * (work and who waits for it), keep_models.c (what is served), keep_kinds.c (loading and unloading, step by
 * step), keep_store.c (fetching and removing) and keep_session.c (what a supervised process finds again). */
#ifndef KEEP_KEEP_IMPL_H
#define KEEP_KEEP_IMPL_H

#include "keep/keep.h"
#include "keep/keep_book.h"
#include "keep/keep_fetch.h"
#include "keep/keep_find.h"
#include "os/room.h"

enum { KEEP_JOBS_MAX = 64, KEEP_CRASHES_MAX = 3, KEEP_TICK_MS = 500 };

/* A model that was loaded, or one of the configuration that was unloaded. */
typedef struct kept {
    struct kept *next;
    arena *mem;
    worker_spec spec;
    config_load_request wanted;
    uint64_t bytes;   /* of its files */
    bool down;        /* of the configuration: it is left out of the base */
    bool loading;     /* it was not ready yet */
    int n_before;     /* replicas that it had before the load that is under way; 0: it was not there */
    uint64_t stay_s;  /* LOAD_REQUEST_STAYS: for good */
    uint64_t used_ns; /* when it was used last, as far as is known */
} kept;

typedef enum job_kind { JOB_LOAD, JOB_UNLOAD, JOB_FETCH, JOB_REMOVE, JOB_LIST, JOB_WRITE } job_kind;
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
    keep *k;
    struct job *next;
    job_kind kind;
    job_phase phase;
    arena *mem;                 /* of the load and the texts */
    config_load_request wanted; /* of a load */
    const char *key;            /* equal ones are one piece of work */
    char model[65];             /* "": not known yet */
    unsigned how;               /* MODEL_MANAGER_... */
    keep_found found;
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
    keep_fetch *fetch;
    bool stopped;                  /* it was told to end */
    bool brought;                  /* its file was not in the store before it was asked for */
    bool is_served;                /* of a removal: a model has this name */
    bool runs;                     /* of a load: its workers may run already, so there is room for them */
    model_manager_ticket *inner;   /* for another job */
    model_manager_ticket *tickets; /* for this one */
    model_manager_step step;
    bool failed;
    api_error error;
} job;

struct keep {
    model_manager face;
    uv_loop_t *loop;
    keep_options o;
    keep_places places;
    arena *mem, *base_mem;
    worker_spec *base;
    size_t n_base;
    kept *models;
    job *jobs;
    size_t n_jobs;
    json_t *stored;       /* as of the last look */
    json_t *absent;       /* entries of the book that could not be loaded */
    json_t *book;         /* entries that were read from the book, or written to it last */
    json_t *session;      /* what the life before had, until it is loaded again; NULL: nothing */
    unsigned n_restoring; /* loads of it, and one while they are begun */
    int session_fd;       /* of what this one has; -1: nothing */
    env_timer *tick;
    uv_timer_t soon; /* the next turn of the loop */
    int n_open;      /* `soon`, and jobs on the pool: the memory goes with the last */
    unsigned n_ticks;
    uint64_t book_wanted, book_started, book_written; /* writings of the book: the last that is asked for,
                                                       * that was begun, that has succeeded */
    bool draining, closing, unwritten, writing;
};

/* The configuration that is in use: it may have been read again. */
const gateway_config *keep_config(const keep *k);
/* What makes two loads one piece of work; malloc'd, NULL: no memory. */
char *keep_load_key(const json_t *wanted);

/* ---- keep_job.c ---- */
/* The job that does the same already, or a new one, NULL with *e where there is none. *ret_new: it is to be
 * begun. key is copied. */
job *job_get(keep *k, job_kind kind, const char *key, bool *ret_new, api_error *e);
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
void keep_hide_folders(const keep_places *p, char *sentence);
void job_free(job *j);
void jobs_soon(keep *k); /* look at all that watch, a turn later */
void jobs_deliver(keep *k);
void ticket_leave(model_manager_ticket *t);
void keep_release(keep *k);

/* ---- keep_models.c ---- */
kept *kept_find(const keep *k, const char *name);
/* A model of the base, unless it was unloaded. */
const worker_spec *base_find(const keep *k, const char *name);
kept *kept_new(keep *k, const worker_spec *spec,
               const config_load_request *wanted); /* in the list; NULL: no memory */
void kept_drop(keep *k, kept *m);
int keep_apply(keep *k, shoal_err *err);
/* What this machine's replicas of a model come to. */
typedef struct kept_state {
    unsigned n, n_ready, n_leaving;
    const replica *failed; /* NULL: none has */
} kept_state;
kept_state kept_look(const keep *k, const char *name);
bool kept_elsewhere(const keep *k, const char *name); /* only others serve it */
uint64_t kept_need(uint64_t file_bytes, const worker_spec *s, unsigned n_replicas);
void kept_touch(const keep *k, kept *m); /* it is used now */
uint64_t kept_left_ms(const keep *k, const kept *m);
uint64_t keep_now_ns(const keep *k);
void kept_tick(keep *k);
void keep_write_book(keep *k);
/* job_done, once what it has changed in the book is on the disk; it fails where that cannot be written. */
void job_done_in_book(job *j, model_manager_step step);
void keep_forget_absent(keep *k, const char *name);
void keep_loaded(keep *k, job *j); /* its entry of the book is no absent one any more */

/* ---- keep_session.c ---- */
void session_open(keep *k);
void session_leave_out(keep *k); /* of a new base what was unloaded before the crash */
void session_restore(keep *k);
void session_write(keep *k); /* something was loaded or unloaded */
void session_close(keep *k);

/* ---- keep_kinds.c ---- */
void kind_load(job *j);
void kind_unload(job *j);
void kinds_look(job *j); /* of one that watches */

/* ---- keep_store.c ---- */
void kind_fetch(job *j);
void kind_remove(job *j);
void list_begin(keep *k);
void job_take_list(job *j); /* what was found is what the store has */

#endif
