/* flight.h: encodings that a blocking caller has under way in an engine, in the order in which they began.
 *
 *     flight f;
 *     flight_open(&f, engine, n_values, NULL, &err);
 *     while (...) {
 *         if (flight_full(&f)) ... flight_wait(&f, &seat, &err) ... use seat->values ...
 *         flight_add(&f, &request, &seat, &err);       // seat->tag is the caller's
 *     }
 *     flight_close(&f);                                // cancels what is still under way, and waits for it
 *
 * One thread uses a flight; the engine's writes into its seats. */
#ifndef INFER_FLIGHT_H
#define INFER_FLIGHT_H

#include <pthread.h>

#include "base/buf.h"
#include "base/cancel.h"
#include "infer/engine.h"

enum { FLIGHT_SEATS = 64 };

typedef struct flight_seat {
    struct flight *owner;
    uint64_t id;   /* the engine's */
    float *values; /* [n_values] */
    buf tag;       /* the caller's note, emptied when the seat is taken anew */
    size_t at[2];  /* the same, as numbers */
    bool done;
    int status;
    char message[256];
} flight_seat;

enum { FLIGHT_ASK_MS = 20 };

typedef struct flight {
    engine *engine;
    cancel_check cancel;
    size_t n_values, first, n; /* seats first .. first + n - 1, modulo FLIGHT_SEATS, are taken */
    pthread_mutex_t lock;      /* guards the seats' results */
    pthread_cond_t changed;
    float *values;
    flight_seat seats[FLIGHT_SEATS];
} flight;

/* Results are n_values floats each; another number is SHOAL_EINTERNAL. Whoever waits asks every FLIGHT_ASK_MS
 * whether to go on (cancel NULL: always). */
int flight_open(flight *f, engine *e, size_t n_values, const cancel_check *cancel, shoal_err *err);
bool flight_full(const flight *f);
bool flight_empty(const flight *f);
/* As engine_encode; *ret (may be NULL) is the seat. Not on a full flight. */
int flight_add(flight *f, const enc_request *r, flight_seat **ret, shoal_err *err);
/* Wait for the one that began first; *ret is valid until the next flight_add. Not on an empty flight.
 * Cancelled, it is the error that was answered with, and the flight is only good to be closed. */
int flight_wait(flight *f, flight_seat **ret, shoal_err *err);
void flight_close(flight *f);

#endif
