/* form.h: what form a reply must have: a GenerateRequest's constraint as the engine's grammar.
 *
 *     form f;
 *     form_init(&f, quotes_results, r, &err); f.spec is NULL where any text will do
 *     rc = engine_generate(..., f.spec ...);
 *     SHOAL_EUNSUPPORTED and form_relax(&f, &err): try again
 *     form_done(&f); */
#ifndef WORKER_FORM_H
#define WORKER_FORM_H

#include <jansson.h>

#include "grammar/grammar.h"
#include "chat/toolcall.h"
#include "shoal/v1/worker.pb-c.h"

typedef struct form {
    const grammar_spec *spec; /* NULL, or `own` */
    grammar_spec own;         /* borrows from the request */
    json_t *tools, *schema;   /* while some of them are relaxed, or it is */
    char *text;               /* of either */
    bool may_relax;           /* the schema */
    int n_relaxed;
    char *quote; /* the reply, where it has to be a tool's own words */
    const char *choice[1];
} form;

/* Fields that do not go together are SHOAL_EINVALID. */
int form_check(const Shoal__V1__GenerateRequest *r, shoal_err *err);
/* *ret can be given to form_done whatever is returned; r must outlive it. quotes_results: the
 * reply to a result of a tool is that result (model_quotes_results). */
int form_init(form *ret, bool quotes_results, const Shoal__V1__GenerateRequest *r, shoal_err *err);
/* What of the form is the model's: how calls are written, and the thought (NULL: none) that may come first or
 * that the prompt ends in. */
void form_add_model(form *f, const toolcall_syntax *calls, const thinking_form *thinking, bool in_thought);
/* The grammar refused the schema, or the parameters of one tool, with `why`: leave out what it names, where
 * the request (for the tool: "strict": false) lets that be, and after some tries all of the schema. False: it
 * does not (and `why` says how it could), or the refusal is about something else. */
bool form_relax(form *f, shoal_err *why);
void form_done(form *f);

#endif
