/* scenario.c: reads a scenario and holds it against what rows cannot say. */
#include "lab/scenario.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "json/json.h"
#include "lab/scenario_schema.h"

enum { FILE_MAX_BYTES = 1 << 20, EVENTS_MAX = 100000 };

struct scenario_memory {
    arena *mem;
    yaml_doc *doc;
};

/* ---- what rows cannot say ---- */

/* Checks name a node of the document: root.KEY[i], or the root when the list is absent. */
typedef struct check {
    lab_scenario *s;
    const yaml_doc *doc;
    shoal_err *err;
} check;

static const yaml_node *entry(const check *c, const char *list, size_t i, const char *key)
{
    const yaml_node *n = yaml_get(yaml_root(c->doc), list);
    const yaml_node *item = n && i < n->n ? n->items[i] : NULL;
    const yaml_node *at = item && key ? yaml_get(item, key) : NULL;
    return at ? at : item ? item : yaml_root(c->doc);
}

static bool name_ok(const char *s)
{
    if (strcmp(s, LAB_CLIENT) == 0 || strcmp(s, "worker") == 0 || strcmp(s, "node") == 0) return false;
    for (; *s; s++)
        if (!isalnum((unsigned char)*s) && *s != '-' && *s != '_') return false;
    return true;
}

#define NAME_RULE "letters, digits, - and _, and not client, worker or node"

static bool role_taken(const lab_scenario *s, size_t node, size_t k)
{
    for (size_t j = 0; j < k; j++)
        if (strcmp(s->nodes[node].start[j].role, s->nodes[node].start[k].role) == 0) return true;
    return false;
}

static int check_node(check *c, size_t i)
{
    const lab_node *n = &c->s->nodes[i];
    if (!name_ok(n->name))
        return yaml_fail(c->doc, entry(c, "nodes", i, "name"), c->err, "nodes[%zu].name: may have " NAME_RULE,
                         i);
    if (scenario_node(c->s, n->name) != (int)i)
        return yaml_fail(c->doc, entry(c, "nodes", i, "name"), c->err, "nodes[%zu].name: \"%s\" is taken", i,
                         n->name);
    for (size_t k = 0; k < n->n_files; k++)
        if (strchr(n->files[k].name, '/') || n->files[k].name[0] == '.')
            return yaml_fail(c->doc, entry(c, "nodes", i, "files"), c->err,
                             "nodes[%zu].files[%zu].name: is a plain name, without /", i, k);
    for (size_t k = 0; k < n->n_start; k++) {
        if (!name_ok(n->start[k].role) || role_taken(c->s, i, k))
            return yaml_fail(c->doc, entry(c, "nodes", i, "start"), c->err,
                             "nodes[%zu].start[%zu].role: may have " NAME_RULE ", once a node", i, k);
    }
    return 0;
}

static int check_ends(check *c, const char *list, size_t i, const char **between)
{
    for (int k = 0; k < 2; k++)
        if (strcmp(between[k], "*") != 0 && scenario_node(c->s, between[k]) < 0)
            return yaml_fail(c->doc, entry(c, list, i, "between"), c->err,
                             "%s[%zu].between: there is no node \"%s\"", list, i, between[k]);
    return 0;
}

static int fault_wrong(check *c, size_t i, const char *key, const char *why)
{
    return yaml_fail(c->doc, entry(c, "faults", i, key), c->err, "faults[%zu]: %s", i, why);
}

static bool has_role(const lab_scenario *s, const lab_fault *f)
{
    if (strcmp(f->of, "worker") == 0 || strcmp(f->of, "node") == 0) return true;
    for (size_t i = 0; i < s->n_nodes; i++)
        for (size_t k = 0; k < s->nodes[i].n_start; k++)
            if (strcmp(s->nodes[i].start[k].role, f->of) == 0 &&
                (!f->node || strcmp(f->node, s->nodes[i].name) == 0))
                return true;
    return false;
}

static int check_target(check *c, size_t i)
{
    const lab_fault *f = &c->s->faults[i];
    bool processes = f->action == LAB_KILL || f->action == LAB_TERM || f->action == LAB_FREEZE;
    bool linked = f->action == LAB_CUT || f->action == LAB_LINK;
    if (processes != !!f->of)
        return fault_wrong(c, i, "of", "'of' goes with kill, term and freeze, which need it");
    if (processes && !has_role(c->s, f))
        return fault_wrong(c, i, "of", "nothing of that role is started there");
    if (f->action == LAB_TERM && strcmp(f->of, "node") == 0)
        return fault_wrong(c, i, "of", "term is for processes; a node is rebooted, killed or frozen");
    if (linked != (f->n_between > 0))
        return fault_wrong(c, i, "between", "'between' goes with cut and link, which need it");
    if (f->model && (!f->of || (strcmp(f->of, "worker") != 0 && strcmp(f->of, "node") != 0)))
        return fault_wrong(c, i, "model", "'model' goes with 'of: worker' and 'of: node'");
    if ((f->action == LAB_RUN) != !!f->run || (f->run && !f->node))
        return fault_wrong(c, i, "run", "'run' goes with 'do: run', and both need a 'node'");
    if (f->node && (scenario_node(c->s, f->node) < 0 || strcmp(f->node, LAB_CLIENT) == 0))
        return fault_wrong(c, i, "node", "there is no such node");
    return linked ? check_ends(c, "faults", i, f->between) : 0;
}

static int check_fault(check *c, size_t i)
{
    const lab_fault *f = &c->s->faults[i];
    if (f->action == LAB_CLOCK)
        return fault_wrong(
            c, i, "do",
            "a wall clock cannot be stepped for one node: all namespaces share the machine's, and "
            "time namespaces shift the monotonic clocks alone");
    bool lasts = f->action == LAB_FREEZE || f->action == LAB_CUT || f->action == LAB_LINK ||
                 f->action == LAB_FILL || f->action == LAB_REBOOT;
    if (f->for_s > 0 && !lasts && f->action != LAB_KILL && f->action != LAB_TERM)
        return fault_wrong(c, i, "for_s", "'for_s' means nothing here");
    if (f->silent && f->action != LAB_KILL && f->action != LAB_FREEZE)
        return fault_wrong(c, i, "silent",
                           "'silent' goes with kill and freeze; a reboot and a cut are always silent");
    if (lasts && f->for_s <= 0) return fault_wrong(c, i, "do", "'for_s' is required: how long it lasts");
    if (f->every_s > 0 && c->s->seconds / f->every_s > EVENTS_MAX)
        return fault_wrong(c, i, "every_s", "that is too often");
    if (f->for_s > 0 && f->every_s > 0 && f->for_s >= f->every_s)
        return fault_wrong(c, i, "for_s",
                           "it would begin again before it is over: 'for_s' is under 'every_s'");
    return check_target(c, i);
}

/* With the first variant in place a body must be one JSON object; whether it streams is read from it. */
static const char *one(void *user, const char *name, size_t n)
{
    return n == 1 && *name == 'n' ? "1" : NULL;
}

static int check_request(check *c, size_t i)
{
    lab_request *r = &c->s->requests[i];
    buf b = {0};
    json_t *v = NULL;
    shoal_err why = {0};
    const yaml_node *load = yaml_get(yaml_root(c->doc), "load"), *list = yaml_get(load, "requests");
    int rc = scenario_expand(&b, r->body, one, NULL) != 0 ? err_nomem(c->err) : 0;
    if (rc == 0 && json_parse(&v, b.data, b.len, "body", &why) != 0)
        rc = yaml_fail(c->doc, yaml_get(list->items[i], "body"), c->err, "load.requests[%zu].%s", i,
                       why.message);
    if (rc == 0 && (!json_is_object(v) || r->path[0] != '/'))
        rc = yaml_fail(c->doc, list->items[i], c->err,
                       "load.requests[%zu]: a path begins with /, and a body is an object", i);
    if (rc == 0) r->stream = json_is_true(json_object_get(v, "stream"));
    json_decref(v);
    buf_done(&b);
    return rc;
}

static int check_all(check *c)
{
    int rc = 0;
    lab_scenario *s = c->s;
    for (size_t i = 0; !rc && i < s->n_nodes; i++) rc = check_node(c, i);
    for (size_t i = 0; !rc && i < s->n_links; i++) rc = check_ends(c, "links", i, s->links[i].between);
    for (size_t i = 0; !rc && i < s->n_faults; i++) rc = check_fault(c, i);
    for (size_t i = 0; !rc && i < s->n_requests; i++) rc = check_request(c, i);
    return rc;
}

/* ---- reading ---- */

int scenario_parse(lab_scenario **ret, const char *text, size_t len, const char *what, shoal_err *err)
{
    lab_scenario *s = calloc(1, sizeof *s);
    struct scenario_memory *m = calloc(1, sizeof *m);
    int rc = s && m && (m->mem = arena_new(0)) ? 0 : err_nomem(err);
    if (rc == 0) rc = yaml_parse(&m->doc, text, len, what, err);
    if (rc == 0) rc = config_read(&scenario_schema, NULL, m->doc, m->mem, s, err);
    if (rc == 0) rc = check_all(&(check){s, m->doc, err});
    if (s) s->memory = m;
    if (rc == 0)
        *ret = s;
    else if (s)
        scenario_free(s);
    else
        free(m);
    return rc;
}

int scenario_load(lab_scenario **ret, const char *path, shoal_err *err)
{
    buf text = {0};
    int rc = file_read(&text, path, FILE_MAX_BYTES, err);
    if (rc == 0) rc = scenario_parse(ret, text.data ? text.data : "", text.len, path, err);
    buf_done(&text);
    return rc;
}

void scenario_free(lab_scenario *s)
{
    if (!s) return;
    if (s->memory) {
        yaml_doc_free(s->memory->doc);
        arena_free(s->memory->mem);
        free(s->memory);
    }
    free(s);
}

int scenario_node(const lab_scenario *s, const char *name)
{
    if (strcmp(name, LAB_CLIENT) == 0) return (int)s->n_nodes;
    for (size_t i = 0; i < s->n_nodes; i++)
        if (strcmp(s->nodes[i].name, name) == 0) return (int)i;
    return -1;
}

int scenario_expand(buf *ret, const char *text, const char *(*lookup)(void *user, const char *name, size_t n),
                    void *user)
{
    while (*text) {
        size_t n = strcspn(text, "{");
        buf_append(ret, text, n);
        text += n;
        if (!*text) break;
        size_t name = strcspn(text + 1, "{}");
        const char *v = text[1 + name] == '}' ? lookup(user, text + 1, name) : NULL;
        if (v)
            buf_puts(ret, v);
        else
            buf_putc(ret, '{');
        text += v ? name + 2 : 1;
    }
    if (!ret->data) buf_reserve(ret, 1); /* so that an empty text is one */
    return ret->failed ? SHOAL_ENOMEM : 0;
}
