/* load.h: the load of a lab: clients that ask, wait, measure and judge.
 *
 *     lab_load *l;
 *     lab_load_new(&l, scenario, &client_node, urls, err);
 *     lab_load_calm(l, err);                          // each distinct request once: the reference
 *     lab_load_begin(l, clock_ns(), err);             // threads; until lab_load_end
 *     ... lab_load_now(l) ...
 *     lab_load_end(l, record, err);                   // no more requests; waits for those under way
 *     lab_load_free(l);
 *
 * Each client is a thread in the client node's network that sends its next request when the last one is
 * over, every attempt on a connection of its own. What is asked i-th is drawn from (seed, i). */
#ifndef LAB_LOAD_H
#define LAB_LOAD_H

#include <stdio.h>

#include "lab/host.h"
#include "lab/record.h"

typedef struct lab_load lab_load;

/* urls[n_gateways] with their fields filled in; borrowed, as the rest, for the load's life. */
int lab_load_new(lab_load **ret, const lab_scenario *s, const host *client, const char *const *urls,
                 shoal_err *err);
void lab_load_free(lab_load *l); /* NULL is fine; after lab_load_end */

/* Ask every distinct request once and keep its canonical bytes. SHOAL_EUNAVAILABLE when one is lost: what
 * cannot answer undisturbed needs no faults. */
int lab_load_calm(lab_load *l, shoal_err *err);
/* References of an earlier run (answers.jsonl) in place of lab_load_calm's; each distinct request must be in
 * it. SHOAL_EFORMAT, SHOAL_ENOTFOUND. */
int lab_load_read(lab_load *l, const char *path, shoal_err *err);
/* answers.jsonl: {"request","variant","answer"} a line. */
void lab_load_write(const lab_load *l, FILE *out);

int lab_load_begin(lab_load *l, uint64_t start_ns, shoal_err *err);
void lab_load_stop(lab_load *l);                                /* no further requests; does not wait */
bool lab_load_busy(const lab_load *l);                          /* some are still under way */
int lab_load_end(lab_load *l, lab_record *ret, shoal_err *err); /* stops; adds answers and figures to *ret */

typedef struct lab_load_counts {
    size_t n_started, n_answered, n_lost, n_different;
} lab_load_counts;
lab_load_counts lab_load_now(const lab_load *l);

/* Whether a GET of the URL answers 200 within ms; the calling thread must be in the client's network. */
bool lab_load_answers(const char *url, unsigned ms);

#endif
