/* service_vote.c: Vote: a reply whose tokens are chosen together with other models; see worker.proto. The
 * first message begins it as Generate does (service_generate.c), each further one brings the mean for one
 * token. */
#include <string.h>

#include "shoal/v1/worker.pb-c.h"
#include "worker/service.h"

static void vote_begin(void *user, grpc_call *c)
{
    grpc_call_set_data(c, NULL); /* the generation, once it has begun */
}

/* Ballots that have come meanwhile follow. */
static void begun(grpc_call *c, struct gen_job *g)
{
    grpc_call_set_data(c, g);
    grpc_call_pause(c, false);
}

static int vote_start(worker *w, grpc_call *c, const call_trace *trace, const uint8_t *msg, size_t n,
                      shoal_err *err)
{
    grpc_call_pause(c, true);
    return service_generate_start(w, c, trace, true, msg, n, begun, err);
}

/* A mean that comes too late, when the reply has ended here, is none of ours. */
static int take_mean(worker *w, const struct gen_job *g, const Shoal__V1__Ballot *b, shoal_err *err)
{
    size_t n_vocab = w->backend.about.config->n_vocab;
    buf aligned = {0};
    if (!b || b->values.len != n_vocab * sizeof(float))
        return err_set(err, SHOAL_EINVALID, "a ballot of %zu bytes: one of %zu numbers has %zu",
                       b ? b->values.len : 0, n_vocab, n_vocab * sizeof(float));
    if (buf_append(&aligned, b->values.data, b->values.len)) return err_nomem(err);
    int rc = w->backend.ops->ballot(w->backend.state, service_generate_id(g), b->position,
                                    (const float *)(void *)aligned.data, n_vocab);
    buf_done(&aligned);
    if (rc == SHOAL_EINVALID)
        return err_set(err, SHOAL_EINVALID, "the ballot for token %u is no distribution", b->position);
    return 0;
}

static int vote_take_message(worker *w, const struct gen_job *g, const uint8_t *msg, size_t n, shoal_err *err)
{
    ProtobufCMessage *m;
    int rc = service_call_unpack(&shoal__v1__generate_request__descriptor, msg, n, &m, err);
    if (rc == 0) rc = take_mean(w, g, ((const Shoal__V1__GenerateRequest *)m)->ballot, err);
    if (m) protobuf_c_message_free_unpacked(m, NULL);
    return rc;
}

static void vote_message(void *user, grpc_call *c, const uint8_t *msg, size_t n)
{
    worker *w = user;
    struct gen_job *g = grpc_call_data(c);
    call_trace trace = {.method = "Vote"};
    shoal_err err;
    if (!g) service_call_begin(w, c, "Vote", &trace);
    int rc = g ? vote_take_message(w, g, msg, n, &err) : vote_start(w, c, &trace, msg, n, &err);
    if (rc == 0) return;
    if (g) service_generate_gone(g);
    service_call_refuse(w, c, &trace, &err);
}

/* Nobody brings a mean any more. */
static void vote_ended(void *user, grpc_call *c)
{
    struct gen_job *g = grpc_call_data(c);
    call_trace trace = {.method = "Vote"};
    shoal_err err;
    if (g) service_generate_gone(g);
    err_set(&err, SHOAL_EINVALID, "the stream of ballots ended before the reply");
    service_call_refuse(user, c, &trace, &err);
}

const grpc_stream_method service_vote = {
    .path = "/shoal.v1.Worker/Vote", .begin = vote_begin, .message = vote_message, .ended = vote_ended};
