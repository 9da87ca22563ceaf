/* grpc_access.c: see grpc_access.h. */
#include "ingress/grpc_access.h"

#include "request/admission.h"

static const char *header_of_call(const void *call, const char *lower_name)
{
    return grpc_call_metadata(call, lower_name);
}

bool grpc_access_shown(const gateway *g, const char *shown, const char *model)
{
    const auth *a = g->settings->auth;
    if (!admission_knows(g, shown)) return false;
    return auth_count(a) == 0 || !model || auth_may_use(auth_find(a, shown), model);
}

bool grpc_access_has(const gateway *g, const grpc_call *call, const char *model)
{
    return grpc_access_shown(g, admission_shown(header_of_call, call), model);
}
