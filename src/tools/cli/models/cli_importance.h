/* cli_importance.h: run a model over a text to learn which of its columns matter (model/quantize/importance.h). */
#ifndef CLI_MODELS_CLI_IMPORTANCE_H
#define CLI_MODELS_CLI_IMPORTANCE_H

#include "base/err.h"
#include "model/quantize/importance.h"

/* So many bytes of the text have been read: after every window or line, on the caller's thread. A result
 * other than 0 ends it with SHOAL_ECANCELLED. */
typedef int cli_importance_progress(void *user, size_t done, size_t total);

/* The model at `path` (folder or GGUF) reads the text file: a decoder in windows of 512 tokens, an encoder
 * line by line. progress may be NULL. The caller frees *ret; *ret_tokens is what was read. SHOAL_EINVALID for
 * a text with nothing in it, SHOAL_EUNSUPPORTED for a model without a tokenizer or of another kind. */
int cli_importance(importance **ret, const char *path, const char *text, cli_importance_progress *progress,
                   void *user, size_t *ret_tokens, shoal_err *err);

#endif
