/* assignment.c: see assignment.h. */
#include "control/assignment.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool adapter_name_ok(const char *s)
{
    size_t n = strlen(s);
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)s[i]) && !strchr("-_.", s[i])) return false;
    return n > 0 && n < ASSIGNMENT_ADAPTER_NAME;
}

static int take_adapters(assignment *a, const Shoal__V1__Assignment *m, shoal_err *err)
{
    if (m->n_adapters > WORKER_SPEC_ADAPTERS)
        return err_set(err, SHOAL_EINVALID, "it has more than %d adapters", WORKER_SPEC_ADAPTERS);
    if (m->n_adapters && !(a->adapters = calloc(m->n_adapters, sizeof *a->adapters))) return err_nomem(err);
    for (size_t i = 0; i < m->n_adapters; i++) {
        const Shoal__V1__AssignedAdapter *from = m->adapters[i];
        assignment_adapter *to = &a->adapters[a->n_adapters++];
        if (!from->file || !adapter_name_ok(from->name))
            return err_set(err, SHOAL_EINVALID, "it has an adapter without a name or a file");
        strcpy(to->name, from->name);
        for (size_t k = 0; k < i; k++)
            if (strcmp(a->adapters[k].name, to->name) == 0)
                return err_set(err, SHOAL_EINVALID, "it has two adapters called %s", to->name);
        int rc = artifact_take(&to->artifact, from->file, err);
        if (rc != 0) return rc;
    }
    return 0;
}

static int assignment_check(const Shoal__V1__Assignment *m, shoal_err *err)
{
    if (!*m->model || !member_table_text_ok(m->model))
        return err_set(err, SHOAL_EINVALID, "it names no model");
    if (!m->file) return err_set(err, SHOAL_EINVALID, "%s: it has no file", m->model);
    bool ok = m->replicas <= ASSIGNMENT_REPLICAS_MAX && m->standby <= ASSIGNMENT_REPLICAS_MAX &&
              m->replicas + m->standby > 0 && m->replicas + m->standby <= ASSIGNMENT_REPLICAS_MAX;
    if (!ok) return err_set(err, SHOAL_EINVALID, "%s: no machine has so many replicas", m->model);
    if (m->threads > ASSIGNMENT_THREADS_MAX)
        return err_set(err, SHOAL_EINVALID, "%s: no machine has so many threads", m->model);
    return 0;
}

/* ---- stages --------------------------------------------------------------------------------------- */

static bool texts_ok(char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!*list[i] || !member_table_text_ok(list[i])) return false;
    return true;
}

static int check_stages(const Shoal__V1__Assignment *m, shoal_err *err)
{
    bool cut = m->end_layer > 0,
         ok = texts_ok(m->stages, m->n_stages) && texts_ok(m->first_nodes, m->n_first_nodes);
    ok = ok && m->n_stages <= WORKER_SPEC_STAGES && m->n_first_nodes <= ASSIGNMENT_REPLICAS_MAX &&
         (!*m->wire || strcmp(m->wire, "f16") == 0 || strcmp(m->wire, "int8") == 0);
    if (cut) ok = ok && m->first_layer < m->end_layer && (m->first_layer == 0) == (m->n_stages > 0);
    if (cut) ok = ok && m->replicas == 1 && m->standby == 0 && m->n_adapters == 0;
    if (!cut) ok = ok && m->first_layer == 0 && m->n_stages == 0;
    return ok ? 0 : err_set(err, SHOAL_EINVALID, "%s: its layers make no sense", m->model);
}

static const char *assignment_keep(assignment *a, const char *s, bool *ok)
{
    const char *copy = *s ? arena_strdup(a->strings, s) : NULL;
    *ok = *ok && (copy || !*s);
    return copy;
}

static int take_stages(assignment *a, const Shoal__V1__Assignment *m, shoal_err *err)
{
    bool ok = true;
    if (m->end_layer == 0) return 0;
    a->strings = arena_new(0);
    a->first_nodes =
        a->strings ? arena_alloc(a->strings, (m->n_first_nodes + 1) * sizeof *a->first_nodes) : NULL;
    if (!a->first_nodes) return err_nomem(err);
    a->spec.first_layer = m->first_layer;
    a->spec.end_layer = m->end_layer;
    a->spec.wire = assignment_keep(a, m->wire, &ok);
    for (size_t i = 0; i < m->n_stages; i++) a->spec.stages[i] = assignment_keep(a, m->stages[i], &ok);
    for (; a->n_first_nodes < m->n_first_nodes; a->n_first_nodes++)
        a->first_nodes[a->n_first_nodes] = assignment_keep(a, m->first_nodes[a->n_first_nodes], &ok);
    return ok ? 0 : err_nomem(err);
}

/* ---- all of it ------------------------------------------------------------------------------------ */

/* The worker knows what they mean; here each has to be "key=value" in letters that no text around it ends in. */
static bool option_ok(const char *s)
{
    size_t n_key = strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789_");
    if (n_key == 0 || s[n_key] != '=') return false;
    for (s += n_key; *s; s++)
        if (*s <= ' ' || *s > '~') return false;
    return true;
}

static int take_options(assignment *a, const Shoal__V1__Assignment *m, shoal_err *err)
{
    size_t n = 0, room = sizeof a->spec.options;
    for (size_t i = 0; i < m->n_options; i++) {
        const char *s = m->options[i];
        if (!option_ok(s) || strlen(s) + 2 > room - n)
            return err_set(err, SHOAL_EINVALID, "%s: its options make no sense", m->model);
        n += (size_t)snprintf(a->spec.options + n, room - n, "%s%s", n ? " " : "", s);
    }
    return 0;
}

int assignment_take(assignment *ret, const Shoal__V1__Assignment *m, shoal_err *err)
{
    assignment a = {.spec = {.n_replicas = (int)(m->replicas + m->standby),
                             .n_threads = (int)m->threads,
                             .kv_bytes = m->kv_bytes,
                             .sound_bytes = m->sound_bytes,
                             .n_ctx = m->context}};
    int rc = assignment_check(m, err);
    if (rc == 0) rc = check_stages(m, err);
    if (rc == 0) rc = take_stages(&a, m, err);
    if (rc == 0) rc = take_options(&a, m, err);
    if (rc == 0 && sampling_parse(&a.spec.sampling, m->sampling, err) != 0)
        rc = err_prefix(err, SHOAL_EINVALID, "%s: sampling", m->model);
    if (rc == 0) rc = artifact_take(&a.artifact, m->file, err);
    if (rc == 0) rc = take_adapters(&a, m, err);
    if (rc != 0) {
        assignment_done(&a);
        return rc;
    }
    snprintf(a.model, sizeof a.model, "%s", m->model);
    a.n_serving = m->replicas;
    *ret = a;
    return 0;
}

void assignment_done(assignment *a)
{
    for (size_t i = 0; i < a->n_adapters; i++) artifact_done(&a->adapters[i].artifact);
    free(a->adapters);
    artifact_done(&a->artifact);
    arena_free(a->strings);
    *a = (assignment){0};
}
