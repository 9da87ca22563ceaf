/* stage_write.h: what kinds of stages have in common: one call, writing, tools, texts in order. Inside stages/. */
#ifndef STAGES_STAGE_WRITE_H
#define STAGES_STAGE_WRITE_H

#include "stages/stages.h"

/* One call by the runner's method, whose reply goes to its `take` (stage_ask.c): about the text that the stage reads,
 * about n texts, about the request's file, or as req says. 0 or SHOAL_ENOMEM. */
int stage_ask_text(stage_run *s, const call_context *ctx);
int stage_ask_texts(stage_run *s, const call_context *ctx, Shoal__V1__TextInput *texts, size_t n);
int stage_ask_file(stage_run *s, const call_context *ctx);
int stage_ask(stage_run *s, const call_context *ctx, const task_request *req);

/* The start and the end of a generation (stage_generate.c): text, tool calls, tokens. */
calls_generate_events stage_writing(stage_run *s);
Shoal__V1__Sampling stage_sampling(const config_stage *st);
unsigned stage_max_tokens(const config_stage *st);

/* Functions (stage_tools.c): the stage's, as they are for this request's devices, into a request for its
 * model, with memory of the run. SHOAL_EINVALID and s->err: one has to be called, and none can be. */
int stage_offer_tools(stage_run *s, Shoal__V1__GenerateRequest *req);
/* All that was called came to its end. */
bool stage_calls_are_whole(const stage_run *s);

/* n texts have these scores (stage_rank.c): the best becomes the label, all go to the trace, best first. */
void stage_rank(stage_run *s, const char *const *texts, const double *scores, size_t n);

/* With the tools of its MCP servers (stage_mcp.c): asks them for these, and then the model, in rounds. */
int stage_mcp_start(stage_run *s, const call_context *ctx, buf *messages);
void stage_mcp_done(stage_run *s);

#endif
