/* verify_nli.h: does each sentence of an answer follow from the context? A model of natural language
 * inference says so for pairs of texts; here they are made, and its replies judged.
 *
 *     verify_nli n;
 *     rc = verify_nli_ask(&n, "The pump runs at 40 Hz. It is hot.", "The pump runs.", 800, arena);
 *     ... n.why == VERIFY_FINE: calls_classify(calls, model, &n.request, ...), then
 *     why = verify_nli_judge(&n, reply, "entailment", 0.5);
 *
 * A context that is long is asked about in pieces of whole lines and sentences; a sentence follows when it
 * follows from one of them, and an answer when all its sentences do. After P. Laban et al., "SummaC", 2022
 * (their zero-shot form, with the least sentence instead of the mean). Pure. */
#ifndef ENSEMBLE_VERIFY_NLI_H
#define ENSEMBLE_VERIFY_NLI_H

#include "ensemble/verify.h"

#define VERIFY_NLI_SENTENCES_MAX 16
#define VERIFY_NLI_PIECES_MAX    16
#define VERIFY_NLI_PIECE_BYTES   800 /* about 200 tokens */

typedef struct verify_nli {
    verify_why why; /* VERIFY_FINE: the request can be made */
    size_t n_sentences, n_pieces;
    Shoal__V1__ClassifyRequest request; /* pair [sentence * n_pieces + piece]; lives in the arena */
} verify_nli;

/* Pieces have at most so many bytes, but for a longer sentence, which is one by itself. */
size_t verify_nli_piece_bytes(size_t n_ctx); /* of the model, in tokens; 0: not known */

/* SHOAL_ENOMEM, or 0. Without sentences or context, or with too many, `why` says so. */
int verify_nli_ask(verify_nli *ret, const char *context, const char *text, size_t piece_bytes, arena *mem);
verify_why verify_nli_judge(const verify_nli *n, const Shoal__V1__ClassifyReply *reply, const char *entails,
                            double min_score);

#endif
