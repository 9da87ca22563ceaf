/* Bytes as what an etcd server answers, and as the keys and values that it keeps. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "json/json.h"
#include "logging/log.h"
#include "discovery/etcd_keys.h"
#include "discovery/etcd_member.h"
#include "memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What was read is written, and read again as the same. */
static void replica_goes_around(const etcd_replica *r)
{
    etcd_replica again;
    json_t *root = NULL;
    buf out = {0};
    shoal_err err;
    etcd_member_put_replica(&out, r);
    if (!holds(!out.failed)) goto done;
    if (!holds(etcd_member_read_replica(&again, &root, (uint8_t *)out.data, out.len, &err) == 0)) goto done;
    holds(again.generation == r->generation && again.state == r->state);
    holds(again.standby == r->standby && strcmp(again.node, r->node) == 0);
    holds(strcmp(again.address, r->address) == 0 && strcmp(again.model, r->model) == 0);
done:
    json_decref(root);
    buf_done(&out);
}

static void node_goes_around(etcd_node *n)
{
    etcd_node again;
    json_t *root = NULL;
    buf out = {0};
    shoal_err err;
    etcd_member_put_node(&out, &n->facts, n->instance);
    if (holds(!out.failed) &&
        holds(etcd_member_read_node(&again, &root, (uint8_t *)out.data, out.len, &err) == 0))
        holds(again.facts.n_cores == n->facts.n_cores && again.facts.n_labels == n->facts.n_labels &&
              again.facts.epoch == n->facts.epoch);
    json_decref(root);
    buf_done(&out);
}

static void look(const char *key, const uint8_t *value, size_t n)
{
    etcd_kind kind;
    char name[64];
    const char *id = NULL;
    json_t *root = NULL;
    shoal_err err;
    etcd_replica r;
    etcd_node x;
    if (etcd_member_key(key, &kind, name, &id, &err) == 0 && kind != ETCD_OTHER && strlen(id) == 0) abort();
    if (etcd_member_read_replica(&r, &root, value, n, &err) == 0) {
        replica_goes_around(&r);
        json_decref(root);
    }
    if (etcd_member_read_node(&x, &root, value, n, &err) == 0) {
        node_goes_around(&x);
        json_decref(root);
    }
}

static void on_put(void *user, etcd_key *k, const uint8_t *value, size_t n)
{
    ++*(int *)user;
    look(k->name, value, n);
}

static void on_drop(void *user, etcd_key *k)
{
    --*(int *)k->data;
}

static void put_and_count(void *user, etcd_key *k, const uint8_t *value, size_t n)
{
    int *count = user;
    if (!k->data) ++*count;
    k->data = count;
    int puts = 0;
    on_put(&puts, k, value, n);
}

/* The first byte's bits say what each of up to eight messages is, the next of each how long. */
static void hear(const uint8_t *data, size_t size)
{
    int count = 0;
    etcd_keys *k;
    shoal_err err;
    const etcd_keys_events ev = {.user = &count, .put = put_and_count, .drop = on_drop};
    if (etcd_keys_new(&k, "/s/", &ev, &err) != 0) return;
    uint8_t kinds = data[0];
    data++, size--;
    for (; size > 0; kinds >>= 1) {
        size_t n = data[0] < size - 1 ? data[0] : size - 1;
        etcd_page page = {0};
        etcd_news news;
        if (kinds & 1) {
            etcd_keys_begin_list(k);
            if (etcd_keys_hear_page(k, data + 1, n, &page, &err) == 0) etcd_keys_end_list(k);
            free(page.next);
        } else {
            etcd_keys_hear_watch(k, data + 1, n, &news, &err);
        }
        if ((size_t)count != etcd_keys_count(k)) abort();
        data += n + 1, size -= n + 1;
    }
    etcd_keys_free(k);
    if (count != 0) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    log_setup(LOG_OFF, false);
    if (size == 0) return 0;
    hear(data, size);
    look("replicas/a/m/0", data, size);
    return 0;
}
