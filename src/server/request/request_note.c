/* request_note.c: facts of a request, noted while it is computed: model, place, times, moves. */
#include "request/request.h"

#include "request/gateway_state.h"

void request_note_model(gateway_request *rq, const char *model, const char *version, const char *quantisation)
{
    buf_copy_str(rq->model, sizeof rq->model, model);
    buf_copy_str(rq->version, sizeof rq->version, version);
    buf_copy_str(rq->quantisation, sizeof rq->quantisation, quantisation);
}

void request_note_time(gateway_request *rq, request_time t, double ms)
{
    request_facts *f = &rq->facts;
    metrics_observe_traced_s(rq->metrics, METRIC_STAGE_S, ms / 1000, rq->model, request_time_name(t),
                             rq->trace, (uint64_t)env_wall_ns(&rq->gateway->time));
    if (t == REQUEST_TOTAL)
        metrics_set(rq->metrics, METRIC_LAST_CALL, (double)request_date_s(rq), rq->model, NULL, NULL);
    if (!(f->known & 1u << t) || f->ms[t] < ms) f->ms[t] = ms;
    f->known |= 1u << t;
}

const char *request_time_name(request_time t)
{
    static const char *const NAMES[] = {
#define REQUEST_TIME_NAME(e, name) name,
        REQUEST_TIME_TABLE(REQUEST_TIME_NAME)
#undef REQUEST_TIME_NAME
    };
    return NAMES[t];
}

void request_note_move(gateway_request *rq, const call_move *m)
{
    rq->facts.n_moves++;
    rq->facts.n_restarts += m->restarted;
    rq->facts.move_gap_ms = m->gap_ms;
    buf_copy_str(rq->facts.move_cause, sizeof rq->facts.move_cause, m->cause);
}

void request_note_result(gateway_request *rq, const call_result *r)
{
    if (r->replica_id && *r->replica_id)
        buf_copy_str(rq->facts.replica, sizeof rq->facts.replica, r->replica_id);
    request_note_model(rq, r->model, r->version, r->quantisation);
    if (r->wanted && r->status == 0) degraded_set(&rq->degraded, r->wanted, r->model, r->why);
    if (r->trace) buf_copy_str(rq->ensemble, sizeof rq->ensemble, r->trace);
}

void request_note_place(gateway_request *rq, const call_place *p)
{
    if (p->wanted && p->model) degraded_set(&rq->degraded, p->wanted, p->model, p->why);
    if (p->trace) buf_copy_str(rq->ensemble, sizeof rq->ensemble, p->trace);
}
