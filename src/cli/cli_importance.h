/* cli_importance.h: run a model over a text to learn which of its columns matter (model/importance.h). */
#ifndef CLI_CLI_IMPORTANCE_H
#define CLI_CLI_IMPORTANCE_H

#include "base/err.h"
#include "model/importance.h"

/* The model at `path` (folder or GGUF) reads the text file: a decoder in windows of 512 tokens, an encoder
 * line by line. The caller frees *ret; *ret_tokens is what was read. SHOAL_EINVALID for a text with nothing
 * in it, SHOAL_EUNSUPPORTED for a model without a tokenizer or of another kind. */
int cli_importance(importance **ret, const char *path, const char *text, size_t *ret_tokens, shoal_err *err);

#endif
