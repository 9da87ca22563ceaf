/* vllm.c: see vllm.h. Loop thread. */
#include "compat/vllm.h"

#include "request/gateway_state.h"

static void answer_text(gateway_request *rq, buf *out)
{
    request_json(rq, 200, out);
    buf_done(out);
}

void vllm_ping(gateway_request *rq)
{
    buf out = {0};
    buf_puts(&out, "{}");
    answer_text(rq, &out);
}

void vllm_version(gateway_request *rq)
{
    buf out = {0};
    buf_puts(&out, "{\"version\":\"" SHOAL_VERSION "\"}");
    answer_text(rq, &out);
}

/* This request is one that is being answered, and no load. */
void vllm_load(gateway_request *rq)
{
    size_t n = rq->gateway->n_requests;
    buf out = {0};
    buf_printf(&out, "{\"server_load\":%zu}", n > 0 ? n - 1 : 0);
    answer_text(rq, &out);
}
