/* requests.c: see requests.h. */
#include "operations/requests.h"

#include <stdlib.h>
#include <string.h>

#include "messages/query.h"
#include "request/gateway_state.h"
#include "observe/recent.h"

typedef struct asked { /* texts are owned */
    char *endpoint, *model, *id;
    recent_filter filter;
} asked;

static void asked_done(asked *a)
{
    free(a->endpoint);
    free(a->model);
    free(a->id);
}

/* "200", "4xx", "error": 200, 4 and 1, as recent_filter has it. */
static int read_status(const char *query, int *ret, api_error *e)
{
    char *s = NULL;
    int rc = query_value(query, "status", &s, e);
    if (rc == 0 && s) {
        size_t n_digits = strspn(s, "0123456789");
        if (strcmp(s, "error") == 0)
            *ret = 1;
        else if (n_digits == 3 && !s[3] && *s != '0')
            *ret = atoi(s);
        else if (n_digits == 1 && strcmp(s + 1, "xx") == 0 && *s >= '2' && *s <= '5')
            *ret = *s - '0';
        else
            rc = api_error_bad(e, "status", "\"status\" must be a status, as 404, or 2xx to 5xx, or error");
    }
    free(s);
    return rc;
}

static int read_asked(const char *query, asked *a, api_error *e)
{
    int64_t slow_ms = 0, since = 0, limit = 100;
    int rc = query_value(query, "endpoint", &a->endpoint, e);
    if (rc == 0) rc = query_value(query, "model", &a->model, e);
    if (rc == 0) rc = query_value(query, "id", &a->id, e);
    if (rc == 0) rc = read_status(query, &a->filter.status, e);
    if (rc == 0) rc = query_number(query, "slow_ms", 0, 86400000, &slow_ms, e);
    if (rc == 0) rc = query_number(query, "since", 0, INT64_MAX, &since, e);
    if (rc == 0) rc = query_number(query, "limit", 1, RECENT_MAX, &limit, e);
    a->filter.endpoint = a->endpoint;
    a->filter.model = a->model;
    a->filter.id = a->id;
    a->filter.slow_ms = (double)slow_ms;
    a->filter.since = (uint64_t)since;
    a->filter.most = (size_t)limit;
    return rc;
}

void requests_list(gateway_request *rq)
{
    const recent *r = rq->gateway->recent;
    asked a = {0};
    buf out = {0};
    api_error e;
    if (read_asked(request_query(rq), &a, &e) != 0) {
        asked_done(&a);
        request_error(rq, &e);
        return;
    }
    buf_printf(&out, "{\"object\":\"list\",\"last\":%llu,\"kept\":%d,\"prompts\":%s,\"data\":",
               (unsigned long long)recent_last(r), RECENT_MAX, rq->config->log_prompts ? "true" : "false");
    recent_put(&out, r, rq->gateway->spans, &a.filter);
    buf_putc(&out, '}');
    asked_done(&a);
    request_json(rq, 200, &out);
    buf_done(&out);
}
