/* verify_case.h: what a request gives, and what of it an answer is held against.
 *
 * Who writes a message decides what it is good for. Devices and facts are taken from system messages and
 * from results of tools alone, which the application writes; what a user says is the question and nothing
 * else, so a list of devices in it is no list.
 *
 *     {"role": "system", "content": "Devices:\nlight.kitchen 'Kitchen Light' = off"}   -> devices, context
 *     {"role": "user", "content": "turn it on"}                                       -> question
 *
 * A completion has no messages: its prompt is the question. Pure; everything lives in the caller's arena and
 * borrows nothing of the request. */
#ifndef ENSEMBLE_VERIFY_CASE_H
#define ENSEMBLE_VERIFY_CASE_H

#include <stdbool.h>

#include "ensemble/made_calls.h"
#include "pipeline/device.h"
#include "shoal/v1/worker.pb-c.h"

#define VERIFY_CALLS_MAX 32 /* of one answer: as many as endpoints keep */

typedef struct verify_case {
    const char *question; /* the last message of a user; "": there is none */
    const char *context;  /* what system and tools said, a line behind the other; "": nothing */
    const char *known;    /* the same with what users said */
    const char *given;    /* text with which the answer begins anyway (echo); "": none */
    size_t n_devices;
    const device *devices; /* of system messages; of two with one id the later counts */
    bool offers_tools;
    size_t n_tools;
    const char **tools; /* names; of a tool_choice that names one, that one */
    bool no_calls;      /* the request wants none (tool_choice), */
    bool one_call;      /* or one at a time */
    size_t n_made;
    const device_call *made;  /* called since the question, */
    const made_call *results; /* with what came of it */
    const char *report;       /* what that is, in sentences that are given; "": nothing was called */
    bool failed;              /* some result says no success, or there is none */
    bool formed;              /* JSON or one of given texts is wanted: no sentence can stand in for it */
    bool searches;            /* by beams, which cannot be told what to choose from */
} verify_case;

/* What cannot be read as messages or tools counts as none. SHOAL_ENOMEM, or 0. */
int verify_case_read(verify_case *ret, const Shoal__V1__GenerateRequest *r, arena *a);

/* The device of a line "light.kitchen 'Kitchen Light' = off", spaces or "- " before it; false: it is none. */
bool verify_case_device(device *ret, const char *line, size_t n, arena *a, bool *ret_nomem);

#endif
