/* pull.h: a model from a hub, a registry or an address into a folder.
 *
 *     pull_options o = {.ref = "hf:ORG/NAME:Q4_K_M", .folder = "models", .to = stderr};
 *     pull_done done = {0};
 *     char *choices;
 *     rc = pull_run(&o, &done, &choices, &err);
 *
 * Files appear whole and checked, or as parts that the same call goes on with (pull_file.h). Single GGUF
 * files are entered into the folder's models.json. One call at a time in a process. */
#ifndef FETCH_PULL_H
#define FETCH_PULL_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/err.h"

typedef struct pull_options {
    const char *ref;      /* what to fetch (pull_ref.h) */
    const char *folder;   /* where to; made when it is not there */
    const char *endpoint; /* another hub resp. registry for hf: and ollama:, "http://127.0.0.1:8080"; NULL */
    const char *token;    /* of the hub; of a registry "USER:PASSWORD"; NULL */
    const char *sha256;   /* what a single file must be; NULL */
    bool force;           /* replace other files of the same names */
    bool no_manifest;     /* leave models.json alone */
    const char *hosts;    /* pull_http.h: "HOST,HOST:PORT"; NULL: the host that is asked */
    int stall_s, tries;   /* pull_http.h; 0: as there */
    FILE *to;             /* progress; NULL: none */
    bool events;          /* progress is for a program: lines of JSON (pull_meter.h) */
    const volatile sig_atomic_t *stop;
} pull_options;

typedef struct pull_file {
    const char *path, *sha256;
    uint64_t bytes;
    bool was_here;
} pull_file;

typedef struct pull_done { /* texts live in mem */
    arena *mem;
    pull_file *files;
    size_t n;
    const char *model; /* what a command takes: a name of models.json, a file or a folder */
    bool named;        /* it is such a name */
} pull_done;

/* SHOAL_EINVALID when the reference must be made more precise: *ret_choices (malloc'd, NULL otherwise) then
 * lists references to choose from, a line each. On success free ret->mem. */
int pull_run(const pull_options *o, pull_done *ret, char **ret_choices, shoal_err *err);

#endif
