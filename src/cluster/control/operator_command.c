/* operator_command.c: an operator drains, resumes or removes a machine, and that is kept on disk. */
#include <stdlib.h>
#include <string.h>

#include "logging/log.h"
#include "control/drained_set.h"
#include "control/placement/placer.h"

/* The command is kept before it is obeyed. On failure all is as it was. */
static int keep_drained(const placer *p, shoal_err *err)
{
    const char **names = calloc(p->n_nodes + 1, sizeof *names);
    size_t n = 0;
    if (!names) return err_nomem(err);
    for (size_t i = 0; i < p->n_nodes; i++)
        if (p->nodes[i].drains) names[n++] = p->nodes[i].name;
    int rc = drained_set_write(&p->g->credential.dir, names, n, err);
    free(names);
    return rc;
}

void placer_keep_drained(const placer *p)
{
    shoal_err err;
    if (keep_drained(p, &err) != 0)
        LOG(LOG_ERROR, "placement", "drains_unkept", LOG_S("reason", err.message));
}

static int set_drained(const placer *p, placer_node *n, bool drains, shoal_err *err)
{
    bool before = n->drains;
    n->drains = drains;
    int rc = before == drains ? 0 : keep_drained(p, err);
    if (rc != 0) n->drains = before;
    return rc;
}

static int remember_drain(void *user, const char *name)
{
    placer *p = user;
    placer_node *n = placer_find_node(p, name);
    if (!n) n = placer_add_node(p, name);
    if (!n) return SHOAL_ENOMEM;
    n->drains = true;
    return 0;
}

int placer_read_drained(placer *p, shoal_err *err)
{
    return drained_set_read(&p->g->credential.dir, remember_drain, p, err);
}

static int check_command(const placer *p, operator_command what, shoal_err *err)
{
    const char *leader =
        p->o.shared_plan && !p->leads ? p->o.shared_plan->leader(p->o.shared_plan->user) : NULL;
    if (what == OPERATOR_REMOVE)
        return p->g->credential.ca ? 0 : err_set(err, SHOAL_EINVALID, "ask the gateway that has the CA");
    if (p->leads) return 0;
    return leader ? err_set(err, SHOAL_EINVALID, "the gateway %s places models now: ask there", leader)
                  : err_set(err, SHOAL_EFULL, "no gateway places models now; try again when etcd is back");
}

static int expel(control *g, placer_node *n, member_entry *e, shoal_err *err)
{
    size_t n_revoked = 0;
    if (g->jobs) return err_set(err, SHOAL_EFULL, "the CA is at work; try again in a second");
    int rc = ca_revoke(g->credential.ca, n->name, control_now(), &n_revoked, err);
    if (rc != 0) return rc;
    n->removed = true;
    residency_lacks_others(&g->residency, n->name, NULL, NULL); /* it may be away */
    if (set_drained(g->placer, n, false, err) != 0)             /* it is out all the same */
        LOG(LOG_ERROR, "placement", "drains_unkept", LOG_S("reason", err->message));
    if (e) control_attach_expel(e, "this machine was removed from the cluster");
    return 0;
}

bool control_node_drains(const control *g, const char *name)
{
    const placer_node *n = g->placer ? placer_find_node(g->placer, name) : NULL;
    return n && n->drains;
}

int control_node_command(control *g, const char *name, operator_command what, shoal_err *err)
{
    placer_node *n = g->placer ? placer_find_node(g->placer, name) : NULL;
    if (!g->placer)
        return err_set(err, SHOAL_EINVALID, "this gateway places no models: ask the one that has the CA");
    int rc = check_command(g->placer, what, err);
    if (rc != 0) return rc;
    if (!n) return err_set(err, SHOAL_ENOTFOUND, "no machine is called '%s' (see shoal nodes)", name);
    if (n->here && what == OPERATOR_REMOVE)
        return err_set(err, SHOAL_EINVALID, "%s is this gateway itself", name);
    member_entry *e = member_table_find(g->member_table, name);
    rc = what == OPERATOR_REMOVE ? expel(g, n, e, err)
                                 : set_drained(g->placer, n, what == OPERATOR_DRAIN, err);
    if (rc != 0) return rc;
    LOG(LOG_INFO, "placement", "told", LOG_S("node", name),
        LOG_S("what", what == OPERATOR_DRAIN    ? "drain"
                      : what == OPERATOR_RESUME ? "resume"
                                                : "remove"));
    if (what != OPERATOR_REMOVE && e) {
        e->drains = n->drains;
        control_attach_retell(e);
    }
    placer_changed(g);
    return 0;
}
