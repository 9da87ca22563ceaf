/* stages.h: how the server's kinds of stages run, one file a kind.
 *
 * A new one is an id and a row in pipeline/stage_kind.c, a runner in a file here, and a row below. */
#ifndef STAGES_STAGES_H
#define STAGES_STAGES_H

#include "process/stage_run.h"

extern const stage_runner stage_classify, stage_tag, stage_generate, stage_embed, stage_rerank, stage_seq2seq,
    stage_fill_mask, stage_transcribe, stage_vad, stage_image, stage_score, stage_retrieve, stage_http;

/* The rows of a registry. */
#define SERVER_STAGE_ROWS                                                                           \
    {&STAGE_KINDS[STAGE_CLASSIFY], &stage_classify}, {&STAGE_KINDS[STAGE_TAG], &stage_tag},         \
        {&STAGE_KINDS[STAGE_GENERATE], &stage_generate}, {&STAGE_KINDS[STAGE_EMBED], &stage_embed}, \
        {&STAGE_KINDS[STAGE_RERANK], &stage_rerank}, {&STAGE_KINDS[STAGE_SEQ2SEQ], &stage_seq2seq}, \
        {&STAGE_KINDS[STAGE_FILL_MASK], &stage_fill_mask},                                          \
        {&STAGE_KINDS[STAGE_TRANSCRIBE], &stage_transcribe}, {&STAGE_KINDS[STAGE_VAD], &stage_vad}, \
        {&STAGE_KINDS[STAGE_IMAGE], &stage_image}, {&STAGE_KINDS[STAGE_SCORE], &stage_score},       \
        {&STAGE_KINDS[STAGE_RETRIEVE], &stage_retrieve},                                            \
    {                                                                                               \
        &STAGE_KINDS[STAGE_HTTP], &stage_http                                                       \
    }

/* These alone. */
extern const stage_registry SERVER_STAGES;

#endif
