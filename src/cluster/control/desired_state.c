/* desired_state.c: see desired_state.h. */
#include "control/desired_state.h"

bool desired_state_open(desired_state *o, size_t n_models)
{
    *o = (desired_state){.memory = arena_new(0)};
    shoal__v1__assignments__init(&o->message);
    o->message.models =
        o->memory ? arena_alloc(o->memory, (n_models + 1) * sizeof(Shoal__V1__Assignment *)) : NULL;
    if (o->message.models) return true;
    desired_state_close(o);
    return false;
}

static Shoal__V1__ModelFile *desired_state_put_part(desired_state *o, const bundle_part *p)
{
    size_t n = p->artifact.n_files + 1;
    Shoal__V1__ModelFile *m = arena_alloc(o->memory, sizeof *m);
    Shoal__V1__FolderFile *files = arena_alloc(o->memory, n * sizeof *files);
    Shoal__V1__FolderFile **list = arena_alloc(o->memory, n * sizeof(Shoal__V1__FolderFile *));
    if (!m || !files || !list) return NULL;
    artifact_put(&p->artifact, m, files, list);
    return m;
}

static bool put_adapters(desired_state *o, Shoal__V1__Assignment *a, const bundle *t)
{
    size_t n = t->n_parts - 1;
    Shoal__V1__AssignedAdapter *x = arena_alloc(o->memory, (n + 1) * sizeof *x);
    a->adapters = arena_alloc(o->memory, (n + 1) * sizeof(Shoal__V1__AssignedAdapter *));
    if (!x || !a->adapters) return false;
    for (size_t i = 0; i < n; i++) {
        shoal__v1__assigned_adapter__init(&x[i]);
        x[i].name = t->parts[i + 1].name;
        x[i].file = desired_state_put_part(o, &t->parts[i + 1]);
        if (!x[i].file) return false;
        a->adapters[i] = &x[i];
    }
    a->n_adapters = n;
    return true;
}

static bool desired_state_put_stage(desired_state *o, Shoal__V1__Assignment *a, const worker_spec *s,
                                    const char *const *first_nodes)
{
    size_t n = 0;
    while (n < WORKER_SPEC_STAGES && s->stages[n]) n++;
    a->first_layer = (uint32_t)s->first_layer;
    a->end_layer = (uint32_t)s->end_layer;
    if (s->wire) a->wire = (char *)s->wire;
    a->stages = arena_alloc(o->memory, (n + 1) * sizeof(char *));
    a->first_nodes = arena_alloc(o->memory, 2 * sizeof(char *));
    if (!a->stages || !a->first_nodes) return false;
    for (; a->n_stages < n; a->n_stages++) a->stages[a->n_stages] = (char *)s->stages[a->n_stages];
    for (; a->n_first_nodes < 2 && first_nodes[a->n_first_nodes]; a->n_first_nodes++)
        a->first_nodes[a->n_first_nodes] = (char *)first_nodes[a->n_first_nodes];
    return true;
}

/* One a text; they lie in the spec, which may be gone before this. */
static bool desired_state_put_options(desired_state *o, Shoal__V1__Assignment *a, const worker_spec *s)
{
    char *text = arena_strdup(o->memory, s->options), *rest = NULL;
    a->options = arena_alloc(o->memory, (strlen(s->options) / 2 + 1) * sizeof(char *));
    if (!text || !a->options) return false;
    for (char *at = strtok_r(text, " ", &rest); at; at = strtok_r(NULL, " ", &rest))
        a->options[a->n_options++] = at;
    return true;
}

/* What a machine needs that has neither the file nor the options. */
static bool put_bundle(desired_state *o, Shoal__V1__Assignment *a, const worker_spec *s, const bundle *t)
{
    a->file = desired_state_put_part(o, &t->parts[0]);
    a->threads = s->n_threads > 0 ? (uint32_t)s->n_threads : 0;
    a->kv_bytes = s->kv_bytes;
    a->sound_bytes = s->sound_bytes;
    a->context = (uint32_t)s->n_ctx;
    char sampling[SAMPLING_TEXT_BYTES];
    sampling_format(&s->sampling, sampling);
    a->sampling = arena_strdup(o->memory, sampling);
    return a->file && a->sampling && desired_state_put_options(o, a, s) && put_adapters(o, a, t);
}

bool desired_state_add(desired_state *o, const worker_spec *s, const bundle *t, unsigned n_replicas,
                       unsigned n_standby, const char *const *first_nodes)
{
    Shoal__V1__Assignment *a = arena_alloc(o->memory, sizeof *a);
    if (!a) return false;
    shoal__v1__assignment__init(a);
    a->model = (char *)s->model;
    a->replicas = n_replicas;
    a->standby = n_standby;
    if (s->end_layer > 0 && !desired_state_put_stage(o, a, s, first_nodes)) return false;
    if (t && !put_bundle(o, a, s, t)) return false;
    o->message.models[o->message.n_models++] = a;
    return true;
}

void desired_state_close(desired_state *o)
{
    arena_free(o->memory);
    *o = (desired_state){0};
}
