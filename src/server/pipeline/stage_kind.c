/* stage_kind.c: the server's kinds of stages, and looking kinds up. */
#include "pipeline/stage_kind.h"

#include <string.h>

#include "pipeline/pipeline.h"

#define MODEL    "model! timeout_ms "
#define ADAPTED  MODEL "adapter "
#define WRITES   ADAPTED "max_tokens temperature top_p seed "
#define TEMPLATE (READS_TEXT | REPEATS)
#define LABELLED (GIVES_LABEL | GIVES_SCORE)
#define SPOKEN   (GIVES_TEXT | SPEAKS)

#define NAME_OF(e, name) name,
static const char *const VOICE_NAMES[] = {VOICE_LABELS(NAME_OF)};
static const char *const FOUND_NAMES[] = {FOUND_LABELS(NAME_OF)};
#undef NAME_OF

const stage_kind STAGE_KINDS[N_STAGE_IDS] = {
    [STAGE_CLASSIFY] = {STAGE_CLASSIFY, "classify", "classify", LABELLED | TEMPLATE, ADAPTED "input"},
    [STAGE_TAG] = {STAGE_TAG, "tag", "tag", TEMPLATE, ADAPTED "input"},
    [STAGE_GENERATE] = {STAGE_GENERATE, "generate", "generate", SPOKEN | GIVES_PROB | MAY_CALL | REPEATS,
                        WRITES "system prompt schema choices near tools tool_choice parallel_tool_calls mcp mcp_rounds"},
    [STAGE_EMBED] = {STAGE_EMBED, "embed", "embed", LABELLED | TEMPLATE, ADAPTED "input candidates!"},
    [STAGE_RERANK] = {STAGE_RERANK, "rerank", "rerank", LABELLED | TEMPLATE, ADAPTED "input documents!"},
    [STAGE_SEQ2SEQ] = {STAGE_SEQ2SEQ, "seq2seq", "seq2seq", SPOKEN | GIVES_PROB | TEMPLATE,
                       WRITES "input beams"},
    [STAGE_FILL_MASK] = {STAGE_FILL_MASK, "fill-mask", "fill-mask", LABELLED | SPOKEN | TEMPLATE,
                         ADAPTED "input"},
    [STAGE_TRANSCRIBE] = {STAGE_TRANSCRIBE, "transcribe", "transcribe",
                          GIVES_LABEL | SPOKEN | MAY_BE_SILENT | GIVES_PROB | READS_AUDIO,
                          MODEL "prompt language translate"},
    [STAGE_VAD] = {STAGE_VAD, "vad", "vad", LABELLED | READS_AUDIO,
                   MODEL "threshold min_speech_ms min_silence_ms pad_ms", VOICE_NAMES, 2},
    [STAGE_IMAGE] = {STAGE_IMAGE, "image", "classify-image", LABELLED | READS_IMAGE, MODEL},
    [STAGE_SCORE] = {STAGE_SCORE, "score", "score", LABELLED | SPOKEN | MAY_BE_SILENT | READS_CSV,
                     MODEL "alert row"},
    [STAGE_RETRIEVE] = {STAGE_RETRIEVE, "retrieve", NULL, LABELLED | SPOKEN | TEMPLATE,
                        "input collection! limit timeout_ms", FOUND_NAMES, 2},
    [STAGE_HTTP] = {STAGE_HTTP, "http", NULL, GIVES_TEXT | REPEATS, "host! method path body timeout_ms"},
};

#define PLAIN_ROW(id, name) {&STAGE_KINDS[id], NULL},
static const stage_row PLAIN_ROWS[] = {STAGE_TABLE(PLAIN_ROW)};
#undef PLAIN_ROW

const stage_registry PLAIN_STAGES = {.stages = PLAIN_ROWS,
                                     .n_stages = sizeof PLAIN_ROWS / sizeof *PLAIN_ROWS};

const stage_row *stage_registry_find(const stage_registry *r, const char *name)
{
    if (!r) r = &PLAIN_STAGES;
    for (size_t i = 0; i < r->n_stages; i++)
        if (strcmp(r->stages[i].kind->name, name) == 0) return &r->stages[i];
    return NULL;
}

const stage_row *stage_registry_row(const stage_registry *r, const stage_kind *kind)
{
    if (!r) r = &PLAIN_STAGES;
    for (size_t i = 0; i < r->n_stages; i++)
        if (r->stages[i].kind == kind) return &r->stages[i];
    return NULL;
}
