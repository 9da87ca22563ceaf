/* constraint.h: the output constraint of a GenerateRequest (schema, offered tools, choices) as the engine's grammar.
 *
 *     output_constraint c;
 *     constraint_init(&c, quotes_results, r, &err);       c.spec is NULL where any text will do
 *     rc = ops->generate(..., c.spec ...);
 *     SHOAL_EUNSUPPORTED and constraint_relax(&c, &err): try again
 *     constraint_done(&c); */
#ifndef WORKER_CONSTRAINT_H
#define WORKER_CONSTRAINT_H

#include <jansson.h>

#include "grammar/grammar.h"
#include "chat/toolcall.h"
#include "shoal/v1/worker.pb-c.h"

typedef struct output_constraint {
    const grammar_spec *spec; /* NULL, or `own` */
    grammar_spec own;         /* borrows from the request */
    json_t *tools, *schema;   /* while some of them are relaxed, or it is */
    char *text;               /* of either */
    bool may_relax;           /* the schema */
    int n_relaxed;
    char *quote; /* the reply, where it has to be a tool's own words */
    const char *choice[1];
} output_constraint;

/* Fields that do not go together are SHOAL_EINVALID. */
int constraint_check(const Shoal__V1__GenerateRequest *r, shoal_err *err);
/* *ret can be given to constraint_done whatever is returned; r must outlive it. quotes_results: the
 * reply to a result of a tool is that result (model_quotes_results). */
int constraint_init(output_constraint *ret, bool quotes_results, const Shoal__V1__GenerateRequest *r,
                    shoal_err *err);
/* What of the constraint is the model's: how calls are written, and the thought (NULL: none) that may come first or
 * that the prompt ends in. */
void constraint_add_model(output_constraint *f, const toolcall_syntax *calls, const thinking_form *thinking,
                          bool in_thought);
/* The grammar refused the schema, or the parameters of one tool, with `why`: leave out what it names, where
 * the request (for the tool: "strict": false) lets that be, and after some tries all of the schema. False: it
 * does not (and `why` says how it could), or the refusal is about something else. */
bool constraint_relax(output_constraint *f, shoal_err *why);
void constraint_done(output_constraint *f);

#endif
