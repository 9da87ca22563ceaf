/* bit_identity.h: what decides the bits of a model's answers, as one line.
 *
 *     sha256:9f86d081...;engine=shoal;precision=file;numerics=1
 *     sha256:9f86d081...;engine=shoal;precision=file,kv=q8_0;numerics=1
 *     sha256:9f86d081...;engine=onnxruntime;precision=fp16;numerics=1
 *
 * Replicas with equal lines give equal bytes to equal requests, on any machine. Whoever assumes equal bytes
 * compares these lines and never file digests: failover and silent streams before they resume, hedging before
 * it asks a second replica, the cache for its keys, streams that a client resumes.
 *
 *     digest     SHA-256 of the file; where the weights run regrouped, of that and the type (model/packed/regroup.h)
 *     engine     whose kernels run: "shoal", or the name of a foreign engine
 *     precision  what the engine was told to compute in: "file" is what the file says; then each deviation, and the chat
 *                template where that is not the file's
 *     numerics   version of the engine's contract about bits (compute/compute.h: NUMERICS_CONTRACT)
 *
 * What a request says itself (sampling, adapter) is not in it; adapters have digests of their own. Pure. */
#ifndef BASE_BIT_IDENTITY_H
#define BASE_BIT_IDENTITY_H

#include <stdbool.h>

#define BIT_IDENTITY_BYTES  192 /* a line and its NUL */
#define BIT_IDENTITY_ENGINE "shoal"
#define BIT_IDENTITY_FILE   "file" /* precision */

typedef struct bit_identity {
    const char *digest; /* hex; NULL or "": not known, and the line is "" */
    const char *engine;
    const char *precision;
    unsigned numerics;
} bit_identity;

/* The line, or "" for what is not known or does not fit. */
void bit_identity_put(char ret[BIT_IDENTITY_BYTES], const bit_identity *m);
/* The line of a worker that is older than identities and says its file's digest alone: its engine was ours, in
 * the first version of the contract. */
void bit_identity_of_digest(char ret[BIT_IDENTITY_BYTES], const char *digest);
/* May a peer's line be taken for one: "" or short visible ASCII without quotes, that begins with its digest? */
bool bit_identity_is_valid(const char *line, const char *digest);
/* An identity that says no more than its file's digest (bit_identity_of_digest): then ret is the digest,
 * else the whole line. For names that were made of digests before there were identities. */
const char *bit_identity_short(char ret[BIT_IDENTITY_BYTES], const char *line);

#endif
