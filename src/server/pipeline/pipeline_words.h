/* pipeline_words.h: conditions in words, for people who look at a pipeline.
 *
 *     {stage: request, label: [choose, propose]}
 *     -> "request is choose or propose"
 *     {text_prefix: "sensor ", brings: text}
 *     -> "the input starts with 'sensor ' and the request brings text"
 *
 * Pure. */
#ifndef PIPELINE_PIPELINE_WORDS_H
#define PIPELINE_PIPELINE_WORDS_H

#include "pipeline/pipeline.h"

/* Append what must hold. Without its stage's name: "is choose or propose", as beside a line from it. */
void pipeline_put_condition(const stage_condition *c, bool with_name, buf *out);

/* Append when stage s runs: "always", "when ... or ..., unless ...". */
void pipeline_put_when(const config_stage *s, buf *out);

#endif
