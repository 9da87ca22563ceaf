/* step_cost_file.h: what step_cost.h learnt of a model on a machine, in a file, so that the next process begins with
 * it.
 *
 * It lies in the folder of packed weights (packed_store.h), though a model need not have an image there:
 *
 * MODEL-KEY.pace, called by the first 16 and 8 digits of the digests of the model and of all that its times
 * depend on:
 *
 *   - magic, 8 bytes: "SHOALPC\n"
 *   - version, 4, and the number of lines, 4
 *   - key, 32: SHA-256 of model, layout (which is the instruction set's), layers, processor, cores, threads
 *   - lines, 16 for each kind of step and way: fixed, and a token's, in ns; doubles
 *   - digest, 32: SHA-256 of all in front of it
 *
 * All numbers are little-endian. Bytes that are damaged, or of another key, are nothing; what is read is a
 * beginning and no more, since step_cost_recall looks at it once more and each step corrects it. At most
 * STEP_COST_FILES lie there: those written the longest ago go first. Nothing that goes wrong here is an
 * error: a process without such a file begins as if the machine were new.
 *
 *     step_cost_file_open(&kept, &store, &head, isa, &pace);     before the first step: recalls
 *     step_cost_file_close(&kept, &store, &pace);                after the last one: writes, if there is news
 *
 * One thread. */
#ifndef INFER_STEP_COST_FILE_H
#define INFER_STEP_COST_FILE_H

#include "compute/compute.h"
#include "infer/step_cost.h"
#include "model/packed/packed_store.h"

#define STEP_COST_FILE_BYTES (16 + 32 + 16 * STEP_KINDS * STEP_WAYS + 32)
#define STEP_COST_FILES      256

typedef struct step_cost_file {
    sha256_digest key;
    char *path;            /* NULL: nothing is kept */
    step_cost_known known; /* what the file says */
} step_cost_file;

/* Of a store without a folder, nothing is kept; of one that is read_only, nothing is written. h: whose image
 * it would be. */
void step_cost_file_open(step_cost_file *k, const packed_store *s, const packed_head *h, isa set,
                         step_cost *p);
void step_cost_file_close(step_cost_file *k, const packed_store *s, const step_cost *p); /* zeros are fine */
/* Remove the files of a model, or of all (NULL). model: as a file's name begins with, 16 digits of its digest. */
void step_cost_file_clear(const packed_store *s, const char *model);

/* The bytes alone. SHOAL_EFORMAT: damaged, or of another version. SHOAL_EDIGEST: of another key. */
void step_cost_file_write(uint8_t ret[STEP_COST_FILE_BYTES], const sha256_digest *key,
                          const step_cost_known *known);
int step_cost_file_read(step_cost_known *ret, const void *data, size_t n, const sha256_digest *key,
                        shoal_err *err);

#endif
