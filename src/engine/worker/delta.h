/* delta.h: gathers what a stream has to say and packs it into one GenerateEvent.
 *
 * Tokens, text, log-probabilities and tool calls are added as they come; delta_pack gives the message
 * and empties the delta. Its buffers are reused from one message to the next. Loop thread. */
#ifndef WORKER_DELTA_H
#define WORKER_DELTA_H

#include "base/buf.h"
#include "infer/engine.h"
#include "tokenizer/tokenizer.h"

typedef struct delta {
    buf ids;      /* int32_t */
    buf thought;  /* as text */
    buf text;     /* NUL bytes replaced: protobuf-c's strings end at them */
    buf logprobs; /* Shoal__V1__TokenLogprob: each chosen token followed by its n_top alternatives */
    buf tools;    /* struct tool_piece */
    buf strings;  /* NUL-terminated strings of the tool pieces */
    buf pointers; /* arrays of pointers that protobuf-c wants */
    size_t n_logprobs;
    double prob_sum;  /* as the last id has it */
    buf earlier_sums; /* double: as those before it had it */
    uint64_t n_skip;  /* bytes of texts, names and arguments that are still to be dropped */
    bool cuts;        /* the next byte that is not dropped comes behind some that were, */
    bool bad_cut;     /* and there no piece ended */
} delta;

/* A zeroed delta is an empty one. Additions that find no memory surface in delta_pack. */
void delta_done(delta *d);
bool delta_failed(delta *d); /* something found no memory: delta_pack will say so */
bool delta_is_empty(const delta *d);
bool delta_has_tools(const delta *d);

/* Who reads this has the first n_bytes of the texts, names and arguments that are to be added: they are left
 * out. What is skipped but for the ends of pieces is seen by delta_skips. */
void delta_skip(delta *d, uint64_t n_bytes);
/* There is more to be skipped than has been added, or it ended within a character or name. */
bool delta_skips(const delta *d);

/* Strings are copied. */
void delta_add_id(delta *d, int32_t id, double prob_sum);
void delta_add_text(delta *d, const char *s, size_t n);
void delta_add_thought(delta *d, const char *s, size_t n);
/* The chosen token and its alternatives; `t` may be NULL (texts stay empty). */
void delta_add_logprob(delta *d, const tokenizer *t, const gen_event *ev);
/* The first token of a prompt, before which nothing stands that it could follow from. */
void delta_add_first(delta *d, const tokenizer *t, int32_t id);
void delta_add_tool_begin(delta *d, int index, const char *name);
void delta_add_tool_arguments(delta *d, int index, const char *s, size_t n);

/* Append the packed GenerateEvent to `out` and empty the delta; SHOAL_ENOMEM when an addition or the
 * packing found no memory. */
int delta_pack(delta *d, buf *out);

#endif
