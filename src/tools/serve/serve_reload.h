/* serve_reload.h: `shoal serve` reads its file again.
 *
 * The file is read and checked in a thread of its own, so that streams go on meanwhile; then it takes the old
 * one's place between two turns of the loop, or, where anything is wrong with it, nothing changes and the log
 * says what and in which line. What changed is a line of the log each; so is what takes a start, as long as
 * the file differs in it from what was started.
 *
 *     serve_reload_new(&r, &(serve_reload_options){.loop = loop, .path = "shoal.yaml", ...}, err);
 *     serve_reload_start(r);      // SIGHUP; one that comes meanwhile is done after it
 *     serve_reload_free(r);       // before the gateway goes
 *
 * Loop thread. */
#ifndef SERVE_SERVE_RELOAD_H
#define SERVE_SERVE_RELOAD_H

#include <uv.h>

#include "cluster/registry.h"
#include "config/config.h"
#include "gateway/gateway.h"

typedef struct serve_reload serve_reload;

typedef struct serve_reload_options {
    uv_loop_t *loop;
    const char *path; /* copied */
    gateway *gateway;
    const registry *registry;
    const gateway_config *started; /* what the program was started with; must outlive this */
    /* Called with the configuration that counts from now on: its numbers of replicas may be others. May be
     * NULL. */
    void (*taken)(void *user, const gateway_config *now);
    void *user;
    bool json_log;     /* as it began */
    bool listen_given; /* the address is the command line's, and not the file's to change */
} serve_reload_options;

int serve_reload_new(serve_reload **ret, const serve_reload_options *o, shoal_err *err);
void serve_reload_start(serve_reload *r);
/* A read that is under way is waited for. Run the loop once more. NULL is fine. */
void serve_reload_free(serve_reload *r);

#endif
