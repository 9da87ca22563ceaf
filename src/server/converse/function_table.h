/* function_table.h: which function of an application carries out which call of a home's service; a YAML file
 * (lexicons/functions.yaml tells its form).
 *
 *     function_table *t;
 *     rc = function_table_load(&t, "lexicons/functions.yaml", err);
 *     rc = function_table_map(&made, &fits, t, &k, &devices, call, arena);
 *     function_table_free(t);
 *
 * A table is immutable after it was loaded; any thread may use it. Pure but for the file. */
#ifndef CONVERSE_FUNCTION_TABLE_H
#define CONVERSE_FUNCTION_TABLE_H

#include "base/err.h"
#include "converse/chat_case.h"
#include "converse/device_list.h"
#include "ensemble/verify_calls.h"

/* Sentences; X(name, fields that are filled in). */
#define FUNCTION_REPLIES(X)       \
    X(call, "{service} {name}")   \
    X(no_functions, "{calls}")    \
    X(no_fit, "{calls}")          \
    X(not_allowed, "{calls}")     \
    X(failed, "{function} {why}") \
    X(no_result, "{function}")    \
    X(said, "{function} {why}")   \
    X(done, "{functions}")

typedef struct function_table function_table;

/* path NULL: functions that have the names of services, and English sentences. Errors begin with "file:line: ". */
int function_table_load(function_table **ret, const char *path, shoal_err *err);
int function_table_parse(function_table **ret, const char *text, size_t len, const char *what,
                         shoal_err *err);
void function_table_free(function_table *t); /* accepts NULL */

/* A reply with {FIELD} filled in, of pairs (field, value) up to NULL, in the arena; NULL: out of memory. */
typedef enum function_reply {
#define REPLY_ENUM(name, fields) REPLY_##name,
    FUNCTION_REPLIES(REPLY_ENUM)
#undef REPLY_ENUM
        N_REPLIES
} function_reply;
const char *function_table_say(const function_table *t, function_reply r, arena *a, ...);

/* What a request names as its devices: by its system messages and the results of functions that tell states, else by the
 * allowed values of its functions' arguments. *ret->n 0: by nothing. SHOAL_ENOMEM, or 0. */
int function_table_devices(device_list *ret, const function_table *t, const chat_case *k, arena *a);

/* Give the devices that a request lists the unit that its messages say, where they have none; it is the table's. */
void function_table_lend_units(device *list, size_t n, const function_table *t, const chat_case *k);
/* Add those that are there where a function is offered, such as a timer. SHOAL_ENOMEM, or 0. */
int function_table_add_offered(device_list *to, const function_table *t, const chat_case *k, arena *a);
/* Give each device the table's services for which a function is offered; texts are the table's. SHOAL_ENOMEM, or 0. */
int function_table_add_services(device *list, size_t n, const function_table *t, const chat_case *k,
                                arena *a);

/* The call of an offered function that carries out `call`, whose "target" is the id of a device. *ret_fits false: none
 * does. SHOAL_ENOMEM, or 0. */
int function_table_map(device_call *ret, bool *ret_fits, const function_table *t, const chat_case *k,
                       const device *list, size_t n, const device_call *call, arena *a);

/* Is a function offered that tells states? */
bool function_table_offers_states(const function_table *t, const chat_case *k);
/* Does the function tell states, and is it asked for an answer of this verdict? */
bool function_table_tells_states(const function_table *t, const char *function);
bool function_table_wants_states(const function_table *t, const char *verdict);

/* What the results of calls say. Functions that tell states are left out. */
typedef struct result_report {
    const char
        *text;   /* a sentence about each that says no success, then what succeeded; "": none was called */
    bool well;   /* all say success */
    bool failed; /* one says that it failed, or nothing */
} result_report;
/* Texts live in the arena. SHOAL_ENOMEM, or 0. */
int function_table_report(result_report *ret, const function_table *t, const made_call *made, size_t n,
                          arena *a);

/* The same for checks of answers; close accepts a zeroed one. */
typedef struct function_reporter {
    verify_reporter base;
    function_table *table;
} function_reporter;
int function_reporter_open(function_reporter *ret, const char *path,
                           shoal_err *err); /* as function_table_load */
void function_reporter_close(function_reporter *r);

/* RESULT_NONE: it says nothing, not even that it was done. */
typedef enum result_kind { RESULT_DONE, RESULT_FAILED, RESULT_SAID, RESULT_NONE } result_kind;
/* *ret_why: what it says, one line, in the arena. SHOAL_ENOMEM, or 0. */
int function_table_result(result_kind *ret, const char **ret_why, const function_table *t, const char *result,
                          arena *a);

#endif
