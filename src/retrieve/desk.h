/* desk.h: threads that do what blocks (the store, the scan) for a loop that must not.
 *
 * One thread writes and two read, each with a connection of its own, so that searches go on while documents
 * come. A job is a struct of its owner's: `work` runs in a thread, then `done` on the loop, always and once.
 *
 *     typedef struct count_job { desk_job job; int n; } count_job;
 *     static int work(desk_job *j, const desk_tools *t, shoal_err *err) { return store_each(t->store, count,
 * ...); }
 *     ...
 *     c->job = (desk_job){.work = work, .done = done};
 *     desk_submit(d, &c->job);
 *
 * Threads start with the first job, and a file is made with the first that comes. Loop thread, but for
 * `work`. */
#ifndef RETRIEVE_DESK_H
#define RETRIEVE_DESK_H

#include <uv.h>

#include "retrieve/store.h"

typedef struct desk desk;
typedef struct shelf shelf; /* shelf.h */
typedef struct desk_job desk_job;

typedef struct desk_tools { /* what a job's thread has */
    store *store;
    shelf *shelf;
} desk_tools;

struct desk_job {
    int (*work)(desk_job *j, const desk_tools *t, shoal_err *err);
    void (*done)(desk_job *j); /* with rc and err; frees the job, or submits it again */
    bool writes;
    int rc; /* what work returned; or why it did not run */
    shoal_err err;
    desk_job *next; /* the desk's */
};

/* The file is looked at when the first job runs. path is copied; NULL: there is no place for one, which every job hears. */
int desk_new(desk **ret, uv_loop_t *loop, const char *path, size_t memory_bytes, int n_threads,
             shoal_err *err);
void desk_submit(desk *d, desk_job *j);
/* Waits for the jobs that run, cuts them short where it can, and ends the others with SHOAL_ECANCELLED; run
 * the loop once more afterwards. Accepts NULL. */
void desk_free(desk *d);

#endif
