/* weights_mapping.c: see weights_mapping.h. Nothing that goes wrong with an image is an error: the weights are packed instead, and
 * a line in the log says why. */
#define _GNU_SOURCE
#include "infer/weights_mapping.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/signal_stack.h"
#include "logging/log.h"
#include "os/memory_headroom.h"
#include "model/packed/regroup.h"
#include "store/lru_folder.h"

#define BESIDE_NICE 10
#define PAUSE_MS    500
#define PAUSE_BYTES ((size_t)64 << 20) /* less is copied in a few milliseconds */

/* ---- loading -------------------------------------------------------------------------------------- */

/* What the model's matrices take when each is packed once. Too much costs addresses only, too little another
 * mapping. */
static size_t estimate(const model *m)
{
    size_t all = 0;
    for (size_t i = 0; i < model_tensor_count(m); i++) {
        const tensor *t = model_tensor_at(m, i);
        size_t n = 1, bytes;
        if (t->n_dims < 2) continue;
        for (size_t d = 2; d < t->n_dims; d++) n *= t->dims[d]; /* experts: each is a matrix */
        bytes = wmat_packed_bytes(regroup_type(m, t), t->dims[1], t->dims[0]);
        if (bytes == SIZE_MAX || size_mul(bytes, n, &bytes) || size_add(all, bytes, &all)) return 0;
    }
    return all;
}

static void log_refused(const char *path, const shoal_err *why)
{
    LOG(LOG_WARN, "weights", "image_refused", LOG_S("image", path), LOG_S("why", why->message));
}

/* The image of this model, if there is one that can be used. */
static int find_image(weights_mapping *h, model *m, team *t, const net_limits *l, shoal_err *err)
{
    shoal_err why;
    h->store = *model_packs(m);
    if (!h->store.folder) return 0;
    int rc = model_digest(m, &h->head.model, err);
    if (rc == 0) rc = weights_layout(team_isa(t), &h->head.layout, err);
    if (rc == 0) rc = regroup_layout(m, &h->head.layout, err);
    if (rc) return rc;
    h->head.first_layer = l->part.first;
    h->head.end_layer = l->part.end;
    h->head.file = *model_identity(m);
    snprintf(h->head.name, sizeof h->head.name, "%s", model_name(m));
    char *path = packed_store_path(&h->store, &h->head);
    if (!path) return err_nomem(err);
    h->seen = packed_store_seen(path);
    rc = packed_open(&h->image, path, &h->head, h->store.whole, &why);
    if (rc == 0)
        lru_folder_touch(path);
    else if (rc != SHOAL_ENOTFOUND)
        log_refused(path, &why);
    free(path);
    return 0;
}

/* An image is used whole or not at all: with a part of it, its pages would be read beside others. */
static int load_net(weights_mapping *h, const net_ops *ops, model *m, team *t, const net_limits *l,
                    shoal_err *err)
{
    size_t n;
    int rc = weights_new(&h->weights, t, h->image ? 0 : estimate(m), err);
    if (rc) return rc;
    if (h->image) {
        const weights_item *items = packed_items(h->image, &n);
        weights_give(h->weights, items, n);
    }
    model_pack_into(m, h->weights);
    rc = ops->load(&h->net, m, t, l, err);
    model_pack_into(m, NULL);
    return rc;
}

/* ---- beside the network --------------------------------------------------------------------------- */

static void write_image(weights_mapping *h)
{
    shoal_err err;
    int rc = packed_store_keep(&h->store, &h->head, h->weights, h->seen, &h->stop, &err);
    if (rc && rc != SHOAL_ECANCELLED)
        LOG(LOG_WARN, "weights", "image_not_kept", LOG_S("folder", h->store.folder),
            LOG_S("why", err.message));
}

/* A copy of one's own leaves room for as much again. */
static bool may_copy(const weights_mapping *h)
{
    return !h->store.shared && memory_headroom_read("").free_bytes / 2 > weights_bytes(h->weights);
}

/* The first requests read all weights once, at the memory's speed: a copy beside them would slow them down.
 */
static void pause_first(weights_mapping *h)
{
    for (int ms = 0; ms < PAUSE_MS && !atomic_load(&h->stop); ms += 10)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
}

static void enlarge_image(weights_mapping *h)
{
    static const char *const pages[] = {"small", "shared_huge", "own_huge"};
    packed_pages p = packed_enlarge(h->image, may_copy(h), &h->stop);
    LOG(LOG_DEBUG, "weights", "image_used", LOG_S("pages", pages[p]),
        LOG_I("bytes", weights_bytes(h->weights)));
}

static void *beside(void *arg)
{
    signal_stack_open();
    weights_mapping *h = arg;
    setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), BESIDE_NICE); /* requests come first */
    if (weights_bytes(h->weights) > PAUSE_BYTES) pause_first(h);
    if (weights_fresh(h->weights) > 0)
        write_image(h);
    else
        enlarge_image(h);
    return NULL;
}

/* Without a thread there is no image this time, or no huge pages. */
static void go_on_beside(weights_mapping *h)
{
    sigset_t all, before;
    if (!h->store.folder || weights_count(h->weights) == 0) return;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    h->has_thread = pthread_create(&h->thread, NULL, beside, h) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* ---- all of it ------------------------------------------------------------------------------------ */

static void forget_image(weights_mapping *h, const net_ops *ops)
{
    if (h->net) ops->free(h->net);
    weights_free(h->weights);
    packed_close(h->image);
    h->net = NULL;
    h->weights = NULL;
    h->image = NULL;
}

int weights_mapping_load(weights_mapping *h, const net_ops *ops, model *m, team *t, const net_limits *l,
                         shoal_err *err)
{
    int rc = find_image(h, m, t, l, err);
    if (rc == 0) rc = load_net(h, ops, m, t, l, err);
    if (rc == 0 && h->image && weights_fresh(h->weights) > 0) {
        LOG(LOG_WARN, "weights", "image_refused", LOG_S("why", "the network has other matrices"));
        forget_image(h, ops);
        rc = load_net(h, ops, m, t, l, err);
    }
    if (rc == 0) go_on_beside(h);
    return rc;
}

void weights_mapping_settle(weights_mapping *h)
{
    if (h->has_thread) pthread_join(h->thread, NULL);
    h->has_thread = false;
}

void weights_mapping_free(weights_mapping *h, const net_ops *ops)
{
    atomic_store(&h->stop, true);
    weights_mapping_settle(h);
    forget_image(h, ops);
}
