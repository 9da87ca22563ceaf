/* agent_args.c: the command line of one worker. */
#include "agent/agent_impl.h"

#include "kinds/model_kind.h"
#include "os/handover.h"

#include <string.h>
#include <unistd.h>

enum { ARBITER_FD = 3 }; /* its number in the worker */

static void agent_args_put(args *x, const char *s)
{
    if (x->n + 1 < MAX_ARGS) x->v[x->n++] = (char *)s;
}

static void agent_args_put_str(args *x, const char *flag, const char *value)
{
    if (!value) return;
    agent_args_put(x, flag);
    agent_args_put(x, value);
}

static void put_size(args *x, const char *flag, size_t value)
{
    char *s = value ? arena_printf(x->a, "%zu", value) : NULL;
    x->failed |= value && !s;
    agent_args_put_str(x, flag, s);
}

static void agent_args_put_sampling(args *x, const sampling_defaults *d)
{
    char text[SAMPLING_TEXT_BYTES];
    sampling_format(d, text);
    char *s = *text ? arena_strdup(x->a, text) : NULL;
    x->failed |= *text && !s;
    agent_args_put_str(x, "--sampling", s);
}

/* Where the stages are; those of this machine by the socket that they have now. */
static void put_stages(args *x, const child *c)
{
    const worker_spec *s = &c->spec;
    bool far = false;
    char *layers = s->end_layer ? arena_printf(x->a, "%zu:%zu", s->first_layer, s->end_layer) : NULL;
    x->failed |= s->end_layer && !layers;
    agent_args_put_str(x, "--layers", layers);
    agent_args_put_str(x, "--wire", s->wire);
    for (size_t i = 0; i < WORKER_SPEC_STAGES && s->stages[i]; i++) {
        bool elsewhere = strncmp(s->stages[i], "relay:", 6) == 0;
        const child *there = elsewhere ? NULL : agent_child(c->a, s->stages[i]);
        x->failed |= !elsewhere && !there;
        far |= elsewhere;
        agent_args_put_str(x, "--stage", elsewhere ? s->stages[i] : there ? there->address : NULL);
    }
    if (far) agent_args_put_str(x, "--member", c->a->member);
}

/* Replicas on one machine read one copy of the weights. None is kept of a model that is opened for another user: an image
 * is found by what stat says of a file, and mapped without the file being opened. */
static void put_packed(args *x, const child *c)
{
    const agent *a = c->a;
    if (c->spec.reader) return;
    agent_args_put_str(x, "--packed", a->packed);
    if (!a->packed) return;
    put_size(x, "--packed-mb", a->packed_mb);
    char *least = arena_printf(x->a, "%zu", a->packed_min_mb);
    x->failed |= !least;
    agent_args_put_str(x, "--packed-min-mb", least);
    if (a->packed_check) agent_args_put(x, "--packed-check");
    if (c->spec.n_replicas > 1) agent_args_put(x, "--shared");
}

void args_build(args *x, const child *c)
{
    const agent *a = c->a;
    /* To recognise a kind is to open files with this process's permissions, which a reader's file may not allow. */
    const model_kind *kind = c->spec.reader ? &model_kind_gguf : model_kind_of(c->spec.path);
    agent_args_put(x, a->shown);
    agent_args_put(x, "worker");
    agent_args_put_str(x, "--name", c->spec.model);
    agent_args_put_str(x, "--model", c->spec.path);
    agent_args_put_str(x, "--sha256", c->spec.sha256);
    agent_args_put_str(x, "--reader", c->spec.reader);
    agent_args_put_str(x, "--address", c->address);
    put_size(x, "--parent", (size_t)(a->book ? handover_supervisor() : getpid()));
    put_size(x, "--threads", c->spec.n_threads > 0 ? (size_t)c->spec.n_threads : 0);
    put_size(x, "--kv-bytes", c->spec.kv_bytes);
    put_size(x, "--sound-bytes", c->spec.sound_bytes);
    put_size(x, "--context", c->spec.n_ctx);
    agent_args_put_str(x, "--options", *c->spec.options ? c->spec.options : NULL);
    agent_args_put_sampling(x, &c->spec.sampling);
    for (size_t i = 0; i < WORKER_SPEC_ADAPTERS; i++) agent_args_put_str(x, "--adapter", c->spec.adapters[i]);
    put_stages(x, c);
    put_packed(x, c);
    agent_args_put_str(x, "--crashes", a->crashes);
    agent_args_put_str(x, "--log-level", a->log_level);
    agent_args_put(x, "--json-log");       /* agent_lines.c reads it */
    if (a->has_arbiter && !kind->device) { /* who computes on a device waits for no core */
        put_size(x, "--arbiter-fd", ARBITER_FD);
        char *slot = arena_printf(x->a, "%d", c->slot);
        x->failed |= !slot;
        agent_args_put_str(x, "--arbiter-slot", slot);
    }
}
