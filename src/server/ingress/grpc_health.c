/* grpc_health.c: grpc.health.v1 (proto/grpc/health/v1/health.proto): is a service, or a model, ready?
 *
 * The service "" and those that are spoken here are ready when /readyz says so. Any other name is one that
 * /readyz?model= takes (readiness.h), which only those may ask about who may use it. A watch is told when its answer changes, and ends when the
 * server drains. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/proto_wire.h"
#include "ingress/grpc_ingress_impl.h"
#include "ingress/grpc_access.h"
#include "request/gateway_state.h"
#include "observe/readiness.h"

enum { NAME_BYTES = 256, WATCHES_MAX = 512 };
typedef enum { HEALTH_NONE = 0, HEALTH_SERVING = 1, HEALTH_NOT_SERVING = 2, HEALTH_UNKNOWN = 3 } health;

struct grpc_watch {
    grpc_ingress *at;
    grpc_call *call;
    char service[NAME_BYTES];
    health said;
    list_node link; /* in the watches of grpc */
};

/* False: it has been answered. */
static bool read_service(grpc_call *call, const uint8_t *msg, size_t n, char ret[NAME_BYTES])
{
    cur c = cur_over(msg, n);
    proto_item it;
    int rc;
    *ret = '\0';
    while ((rc = proto_next(&c, &it)) == 1) {
        if (it.number != 1 || it.wire != PROTO_BYTES) continue;
        size_t len = it.n < NAME_BYTES ? it.n : NAME_BYTES - 1;
        if (len) memcpy(ret, it.bytes, len);
        ret[len] = '\0';
    }
    if (rc != 0) grpc_call_end(call, GRPC_INVALID_ARGUMENT, "the request is malformed");
    return rc == 0;
}

static bool is_service(const grpc_ingress *grpc, const char *name)
{
    for (size_t i = 0; i < proto_schema_services(grpc->schema); i++)
        if (strcmp(proto_schema_service(grpc->schema, i), name) == 0) return true;
    return *name == '\0';
}

static health grpc_health_look(const grpc_ingress *grpc, const char *service)
{
    const gateway *g = grpc->gateway;
    if (is_service(grpc, service))
        return !g->withdrawn && registry_all_ready(g->registry) ? HEALTH_SERVING : HEALTH_NOT_SERVING;
    char why[READINESS_WHY_SIZE];
    readiness r = readiness_of(g, service, why);
    if (r == READINESS_UNKNOWN) return HEALTH_UNKNOWN;
    return r == READINESS_READY && !g->withdrawn ? HEALTH_SERVING : HEALTH_NOT_SERVING;
}

/* False: it has been answered. */
static bool may_ask(const grpc_ingress *grpc, grpc_call *call, const char *service)
{
    bool may = is_service(grpc, service) || grpc_access_has(grpc->gateway, call, service);
    grpc_status why =
        grpc_access_has(grpc->gateway, call, NULL) ? GRPC_PERMISSION_DENIED : GRPC_UNAUTHENTICATED;
    if (!may) grpc_call_end(call, why, "an API key that may use the model is needed to ask about it");
    return may;
}

static void grpc_health_say(grpc_call *call, health h)
{
    uint8_t msg[] = {1 << 3 | PROTO_VARINT, (uint8_t)h};
    grpc_call_send(call, msg, sizeof msg);
}

static void on_check(void *user, grpc_call *call, const uint8_t *msg, size_t n)
{
    const grpc_ingress *grpc = user;
    char service[NAME_BYTES];
    if (!read_service(call, msg, n, service) || !may_ask(grpc, call, service)) return;
    health h = grpc_health_look(grpc, service);
    if (h == HEALTH_UNKNOWN) {
        grpc_call_end(call, GRPC_NOT_FOUND, "there is no such service or model");
        return;
    }
    grpc_health_say(call, h);
    grpc_call_end(call, GRPC_OK, NULL);
}

/* ---- watches ------------------------------------------------------------------------------------- */

static void unlink_watch(grpc_watch *w)
{
    list_take(&w->link);
    w->at->n_watches--;
    free(w);
}

static void end_watch(grpc_watch *w, grpc_status status, const char *why)
{
    grpc_call *call = w->call;
    unlink_watch(w);
    grpc_call_end(call, status, why);
}

/* What a client has not read is not said again: the last counts, and comes when it has. False: there was no
 * memory to say it, and the watch has ended. */
static bool tell_grpc_health(grpc_watch *w)
{
    health h = grpc_health_look(w->at, w->service);
    if (h == w->said || grpc_call_unsent(w->call) > 0) return true;
    w->said = h;
    grpc_health_say(w->call, h);
    if (!grpc_call_is_broken(w->call)) return true;
    end_watch(w, GRPC_RESOURCE_EXHAUSTED, "out of memory");
    return false;
}

static void on_cancelled(void *user, grpc_call *call)
{
    unlink_watch(user);
}

static void on_drained(void *user, grpc_call *call)
{
    tell_grpc_health(user);
}

/* Unauthenticated clients leave most of the room to those who have a key. False: it has been answered. */
static bool grpc_health_has_room(const grpc_ingress *grpc, grpc_call *call)
{
    size_t most = grpc_access_has(grpc->gateway, call, NULL) ? WATCHES_MAX : WATCHES_MAX / 4;
    char why[96];
    if (grpc->n_watches < most) return true;
    snprintf(why, sizeof why, "%zu calls watch, which is the limit; end some of them, or call Check", most);
    grpc_call_end(call, GRPC_RESOURCE_EXHAUSTED, why);
    return false;
}

static void on_watch(void *user, grpc_call *call, const uint8_t *msg, size_t n)
{
    grpc_ingress *grpc = user;
    char service[NAME_BYTES];
    if (!read_service(call, msg, n, service) || !may_ask(grpc, call, service) ||
        !grpc_health_has_room(grpc, call))
        return;
    grpc_watch *w = grpc->gateway->draining ? NULL : calloc(1, sizeof *w);
    if (!w) {
        grpc_health_say(call, HEALTH_NOT_SERVING);
        grpc_call_end(call, GRPC_UNAVAILABLE,
                      grpc->gateway->draining ? "the server is shutting down" : "out of memory");
        return;
    }
    *w = (grpc_watch){.at = grpc, .call = call};
    memcpy(w->service, service, sizeof w->service);
    list_put(&grpc->watches, &w->link);
    grpc->n_watches++;
    grpc_call_set_idle(call, true);
    grpc_call_on_cancel(call, on_cancelled, w);
    grpc_call_on_drained(call, on_drained, w);
    tell_grpc_health(w);
}

void grpc_health_tell(grpc_ingress *grpc)
{
    list_each (w, &grpc->watches, grpc_watch, link) tell_grpc_health(w);
}

static void on_change(void *user, const registry_event *e)
{
    grpc_health_tell(user);
}

int grpc_health_open(grpc_ingress *grpc, shoal_err *err)
{
    int rc = registry_listen(grpc->gateway->registry, on_change, grpc, err);
    grpc->hears = rc == 0;
    return rc;
}

void grpc_health_deafen(grpc_ingress *grpc)
{
    if (grpc->hears) registry_unlisten(grpc->gateway->registry, on_change, grpc);
    grpc->hears = false;
}

void grpc_health_drain(grpc_ingress *grpc)
{
    for (grpc_watch *w; (w = list_first(&grpc->watches, grpc_watch, link));)
        if (tell_grpc_health(w)) end_watch(w, GRPC_UNAVAILABLE, "the server is shutting down");
}

const grpc_method GRPC_HEALTH_METHODS[N_GRPC_HEALTH_METHODS] = {
    {"/grpc.health.v1.Health/Check", on_check},
    {"/grpc.health.v1.Health/Watch", on_watch},
};
