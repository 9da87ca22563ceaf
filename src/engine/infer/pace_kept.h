/* pace_kept.h: what pace.h learnt of a model on a machine, in a file, so that the next process begins with
 * it.
 *
 * It lies in the folder of packed weights (packed_store.h), though a model need not have an image there:
 *
 * MODEL-KEY.pace, called by the first 16 and 8 digits of the digests of the model and of all that its times
 * depend on:
 *
 *   - magic, 8 bytes: "SHOALPC\n"
 *   - version, 4, and the number of kinds of step, 4
 *   - key, 32: SHA-256 of model, layout (which is the instruction set's), layers, processor, cores, threads
 *   - lines, 16 for each kind of step and way: fixed, and a token's, in ns; doubles
 *   - digest, 32: SHA-256 of all in front of it
 *
 * All numbers are little-endian. Bytes that are damaged, or of another key, are nothing; what is read is a
 * beginning and no more, since pace_recall looks at it once more and each step corrects it. At most
 * PACE_KEPT_FILES lie there: those written the longest ago go first. Nothing that goes wrong here is an
 * error: a process without such a file begins as if the machine were new.
 *
 *     pace_kept_open(&kept, &store, &head, isa, &pace);     before the first step: recalls
 *     pace_kept_close(&kept, &store, &pace);                after the last one: writes, if there is news
 *
 * One thread. */
#ifndef INFER_PACE_KEPT_H
#define INFER_PACE_KEPT_H

#include "compute/compute.h"
#include "infer/pace.h"
#include "model/packed/packed_store.h"

#define PACE_KEPT_BYTES (16 + 32 + 32 * PACE_KINDS + 32)
#define PACE_KEPT_FILES 256

typedef struct pace_kept {
    sha256_digest key;
    char *path;       /* NULL: nothing is kept */
    pace_known known; /* what the file says */
} pace_kept;

/* Of a store without a folder, nothing is kept; of one that is read_only, nothing is written. h: whose image
 * it would be. */
void pace_kept_open(pace_kept *k, const packed_store *s, const packed_head *h, isa set, pace *p);
void pace_kept_close(pace_kept *k, const packed_store *s, const pace *p); /* zeros are fine */
/* Remove the files of a model, or of all (NULL). model: as a file's name begins with, 16 digits of its digest. */
void pace_kept_clear(const packed_store *s, const char *model);

/* The bytes alone. SHOAL_EFORMAT: damaged, or of another version. SHOAL_EDIGEST: of another key. */
void pace_kept_write(uint8_t ret[PACE_KEPT_BYTES], const sha256_digest *key, const pace_known *known);
int pace_kept_read(pace_known *ret, const void *data, size_t n, const sha256_digest *key, shoal_err *err);

#endif
