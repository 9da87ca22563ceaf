/* provenance.h: the models that decide an answer, whatever name was asked.
 *
 * An answer may be kept when every file that may have a part in it is known, and nothing but them and the
 * request decides it. A model is one file, a cascade or a vote is those of its members, a pipeline those of
 * its stages; what a clock decides (a refine, a template that reads the time) is not kept. Their identities
 * (base/bit_identity.h) go into the key, and their names, versions and digests are the tags by which answers are purged.
 *
 *     provenance a = {0};
 *     provenance_add(&a, rq, "home-cascade", NULL);
 *     if (provenance_end(&a)) ... a.identity, a.tags ...      // a.identity: of one model its own
 *
 * The replicas of a name must agree about their file where more than one name or a pipeline is asked, since
 * nobody sees afterwards who of them answered: while a new version rolls in, such answers are not kept. Loop
 * thread. */
#ifndef ANSWERS_PROVENANCE_H
#define ANSWERS_PROVENANCE_H

#include "base/bit_identity.h"
#include "cache/cache_key.h"
#include "request/request.h"

enum { PROVENANCE_TAGS = 48, PROVENANCE_TAG_BYTES = 112 };

typedef struct provenance {            /* zeroed: nobody yet */
    char identity[BIT_IDENTITY_BYTES]; /* of all of it: of one model its own, as `file` */
    char file[BIT_IDENTITY_BYTES];     /* "": more than a model was asked */
    bool varies;      /* not to be kept: somebody is not known, or more than files and request decide it */
    bool reads_clock; /* a chat template of theirs does */
    bool joins;       /* more than a model was asked */
    size_t n_files;
    cache_key *key;
    size_t n_tags;
    char tags[PROVENANCE_TAGS][PROVENANCE_TAG_BYTES];
} provenance;

/* A model or an ensemble, and an adapter's name (NULL: none; else it is the model's). */
void provenance_add(provenance *a, const gateway_request *rq, const char *name, const char *adapter);
/* What follows are parts of something more: ("pipeline", "home"), whose rules its name stands for. */
void provenance_join(provenance *a, const char *kind, const char *name);
/* False: such an answer cannot be kept now. Frees what the collecting took, and must be called. */
bool provenance_end(provenance *a);

#endif
