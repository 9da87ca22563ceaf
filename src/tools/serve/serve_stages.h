/* serve_stages.h: models whose layers are dealt out (shards): what they are made of, and the workers that a
 * machine has of them that serves alone.
 *
 *     serve_stages st = {0};
 *     serve_stages_open(&st, config, specs, err);       reads files in a process of its own: before threads
 *     ... st.shapes[i], if models[i] is cut; st.alone: what an agent without a control plane starts ...
 *     serve_stages_done(&st); */
#ifndef SERVE_SERVE_STAGES_H
#define SERVE_SERVE_STAGES_H

#include "base/arena.h"
#include "json/json.h"
#include "config/config.h"
#include "agent/agent.h"
#include "model/model.h"

typedef struct serve_stages {
    split_shape *shapes; /* [n_models]; zeroed for those that are whole */
    size_t n_cut;        /* models that are not whole */
    worker_spec *alone;  /* [n_alone]; borrows from specs */
    size_t n_alone;
    arena *strings;
} serve_stages;

/* SHOAL_EINVALID, with file and line: a model that cannot be cut, in so many stages, or at these layers. */
int serve_stages_open(serve_stages *ret, const gateway_config *c, const worker_spec *specs, shoal_err *err);
void serve_stages_done(serve_stages *st); /* a zeroed one is fine */

/* What is said of a model between the reading process and this one: a JSON object, NULL without memory. */
json_t *serve_stages_describe(const model *m);

#endif
