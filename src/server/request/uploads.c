/* uploads.c: see uploads.h. */
#include "request/uploads.h"

#include "access/auth.h"
#include "request/capacity.h"
#include "request/gateway_state.h"

enum { KEY_SHARE = 4 }; /* a key, or a connection without one, may have one part in so many */

static auth_use *use_of(const gateway_request *rq)
{
    return rq->key ? rq->key->use : NULL;
}

static int uploads_refuse(api_error *e, const char *whose, size_t n)
{
    api_error_set(e, 429, "rate_limit_error", "too_many_uploads", NULL,
                  "%zu unfinished upload%s %s, which is the limit; try again when one has ended", n,
                  n == 1 ? "" : "s", whose);
    e->retry_after_s = 1;
    return e->status;
}

/* HTTP/2 has many at a time on one. */
static size_t count_of_connection(const gateway_request *rq)
{
    size_t n = 0;
    for (const gateway_request *other = rq->gateway->requests; other; other = other->next)
        n += other->uploading && capacity_client(other) == capacity_client(rq);
    return n;
}

int uploads_begin(gateway_request *rq, api_error *e)
{
    gateway *g = rq->gateway;
    auth_use *use = use_of(rq);
    size_t most = rq->config->max_uploads, share = most / KEY_SHARE ? most / KEY_SHARE : 1;
    if (g->n_uploads >= most) return uploads_refuse(e, "of all clients", g->n_uploads);
    size_t own = use ? use->n_uploads : count_of_connection(rq);
    if (own >= share) return uploads_refuse(e, use ? "of this API key" : "of this connection", own);
    g->n_uploads++;
    if (use) use->n_uploads++;
    rq->uploading = true;
    return 0;
}

/* One that is alone may be as long as its endpoint allows. */
static bool uploads_is_over(uint64_t bytes, uint64_t most, size_t n_uploads)
{
    return n_uploads > 1 && bytes > most;
}

const char *uploads_add(gateway_request *rq, size_t n)
{
    gateway *g = rq->gateway;
    auth_use *use = use_of(rq);
    if (!rq->uploading) return NULL;
    rq->n_upload_bytes += n;
    g->n_upload_bytes += n;
    if (use) use->n_upload_bytes += n;
    uint64_t most = rq->config->max_upload_bytes;
    if (uploads_is_over(g->n_upload_bytes, most, g->n_uploads))
        return "the unfinished uploads of all clients have reached limits.max_upload_mb; try again when one "
               "has "
               "ended";
    if (use && uploads_is_over(use->n_upload_bytes, most / KEY_SHARE, use->n_uploads))
        return "the unfinished uploads of this API key have reached a quarter of limits.max_upload_mb; try "
               "again "
               "when one has ended";
    return NULL;
}

int uploads_whole(gateway_request *rq, api_error *e)
{
    if (!rq->uploading) return 0;
    uploads_end(rq);
    if (capacity_check(rq, 1, e) != 0) return e->status;
    capacity_take(rq, 1);
    return 0;
}

void uploads_end(gateway_request *rq)
{
    gateway *g = rq->gateway;
    auth_use *use = use_of(rq);
    if (!rq->uploading) return;
    rq->uploading = false;
    g->n_uploads--;
    g->n_upload_bytes -= rq->n_upload_bytes;
    if (!use) return;
    use->n_uploads--;
    use->n_upload_bytes -= rq->n_upload_bytes;
}
