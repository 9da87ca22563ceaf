/* confidence_watch.h: the confidences of each classifier that this gateway asks, and their metrics (confidence_shift.h).
 *
 * Of each text that a model classifies the score of its best label counts, whoever asked: a client, a pipeline, an ensemble.
 * Each file of a model has a reference of its own; the metrics are of the file that answered last. The CONFIDENCE_MODELS files
 * that were asked last are watched. Loop thread. */
#ifndef REQUEST_CONFIDENCE_WATCH_H
#define REQUEST_CONFIDENCE_WATCH_H

#include "calls/observer.h"
#include "request/metrics.h"

enum { CONFIDENCE_MODELS = 128 };

typedef struct confidence_watch confidence_watch;

confidence_watch *confidence_watch_new(void);    /* NULL: no memory */
void confidence_watch_free(confidence_watch *w); /* accepts NULL */
/* One answer of a model; identity as a replica has it. Without memory it is not counted. */
void confidence_watch_add(confidence_watch *w, const char *model, const char *identity,
                          const call_confidences *c);
/* Write what is known, behind metrics_scrape, which has dropped what was. */
void confidence_watch_put(const confidence_watch *w, metrics *m);

#endif
