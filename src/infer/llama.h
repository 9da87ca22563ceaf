/* llama.h: the Llama family's forward pass over a mixed batch.
 *
 * One step takes items: a sequence and its next tokens, one for a decode step, many for a chunk of
 * prefill. The tokens of all items lie one after the other in one matrix [n_tokens][n_embd], so that
 * every weight is read once a step whatever the mixture. The whole step is one team_run.
 *
 * A token's bits depend on the tokens before it alone: attention takes its keys in order of position,
 * one softmax over the whole row, one weighted sum in order of position. How prefill was cut, who
 * else is in the batch and how many threads there are changes nothing. */
#ifndef INFER_LLAMA_H
#define INFER_LLAMA_H

#include "base/err.h"
#include "compute/compute.h"
#include "infer/kv.h"
#include "model/model.h"

typedef struct llama llama;

typedef struct llama_item {
    kv_seq *seq;        /* room for n more is reserved; committed by the caller after the step */
    const int32_t *ids; /* [n], at positions seq->n_tokens ... */
    size_t n;
    size_t n_out; /* logits of the last n_out of them are wanted */
} llama_item;

/* Called by one member for each wanted row, different rows at the same time on different members.
 * `at` counts the item's wanted rows. logits[n_vocab] may be written to. */
typedef void (*llama_row_fn)(void *user, team_member *m, size_t item, size_t at, float *logits);

/* max_tokens and max_rows bound a step's tokens and wanted rows. Weights are packed from m. */
int llama_new(llama **ret, const model *m, team *t, size_t n_ctx, size_t max_tokens, size_t max_rows,
              shoal_err *err);
void llama_free(llama *l);
/* Beside quantised weights the cache is F16, which is finer than they are; beside float weights it is F32. */
kv_shape llama_kv_shape(const model *m);

/* Tokens, rows and positions within the bounds given to llama_new (asserted). The thread that owns t; fn is
 * called before it returns. */
void llama_step(llama *l, team *t, const kv *cache, const llama_item *items, size_t n_items, llama_row_fn fn,
                void *user);

#endif
