/* node.c: copies of what agents say. */
#include "cluster/node.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"

enum { MIB_MAX = 1 << 30 };

static size_t size_of(const char *s)
{
    return s ? strlen(s) + 1 : 0;
}

static const char *move_in(char **at, const char *s)
{
    if (!s) return NULL;
    char *p = *at;
    size_t n = strlen(s) + 1;
    memcpy(p, s, n);
    *at += n;
    return p;
}

int node_copy(node **ret, const node *n, shoal_err *err)
{
    if (!n->name || !*n->name) return err_set(err, SHOAL_EINVALID, "a node must have a name");
    size_t table = n->n_labels * sizeof(char *) + n->n_devices * sizeof *n->devices;
    size_t bytes = sizeof *n + table + size_of(n->name) + size_of(n->site) + size_of(n->address) +
                   size_of(n->isa) + size_of(n->group);
    for (size_t i = 0; i < n->n_labels; i++) bytes += size_of(n->labels[i]);
    for (size_t i = 0; i < n->n_devices; i++)
        bytes += size_of(n->devices[i].name) + size_of(n->devices[i].kind);
    node *c = malloc(bytes);
    if (!c) return err_nomem(err);
    node_device *devices = (node_device *)(c + 1);
    const char **labels = (const char **)(devices + n->n_devices);
    char *at = (char *)(labels + n->n_labels);
    *c = *n;
    c->name = move_in(&at, n->name);
    c->site = move_in(&at, n->site);
    c->address = move_in(&at, n->address);
    c->isa = move_in(&at, n->isa);
    c->group = move_in(&at, n->group);
    for (size_t i = 0; i < n->n_labels; i++) labels[i] = move_in(&at, n->labels[i]);
    c->labels = labels;
    for (size_t i = 0; i < n->n_devices; i++)
        devices[i] = (node_device){.name = move_in(&at, n->devices[i].name),
                                   .kind = move_in(&at, n->devices[i].kind),
                                   .memory_bytes = n->devices[i].memory_bytes};
    c->devices = devices;
    *ret = c;
    return 0;
}

void node_free(node *n)
{
    free(n);
}

bool node_has_label(const node *n, const char *label)
{
    for (size_t i = 0; i < n->n_labels; i++)
        if (strcmp(n->labels[i], label) == 0) return true;
    return false;
}

/* ---- devices ------------------------------------------------------------------------------------- */

static bool word_ok(const char *s)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789:._-";
    size_t n = strlen(s);
    return n > 0 && n < NODE_DEVICE_NAME && strspn(s, letters) == n;
}

bool node_device_ok(const node_device *d)
{
    return word_ok(d->name) && word_ok(d->kind) && strcmp(d->kind, NODE_CPU) != 0;
}

uint64_t node_device_bytes(const node *n, const char *kind, uint64_t *ret_largest)
{
    uint64_t sum = 0, largest = 0;
    for (size_t i = 0; i < n->n_devices; i++) {
        uint64_t bytes = n->devices[i].memory_bytes;
        if (strcmp(n->devices[i].kind, kind) != 0) continue;
        sum += bytes;
        if (bytes > largest) largest = bytes;
    }
    if (ret_largest) *ret_largest = largest;
    return sum;
}

int node_device_parse(node_device *ret, char store[2 * NODE_DEVICE_NAME], const char *text, shoal_err *err)
{
    size_t n_name = strcspn(text, "="), n_kind = strcspn(text, ":=");
    node_device d = {.name = store, .kind = store + NODE_DEVICE_NAME};
    uint64_t mib = 0;
    bool ok = text[n_name] && n_name < NODE_DEVICE_NAME && number_u64(text + n_name + 1, &mib);
    if (ok) snprintf(store, NODE_DEVICE_NAME, "%.*s", (int)n_name, text);
    if (ok) snprintf(store + NODE_DEVICE_NAME, NODE_DEVICE_NAME, "%.*s", (int)n_kind, text);
    if (!ok || mib == 0 || mib > MIB_MAX || !node_device_ok(&d))
        return err_set(err, SHOAL_EINVALID,
                       "a device is KIND:NUMBER=MIB, such as cuda:0=24576; the cores are known without it");
    d.memory_bytes = mib << 20;
    *ret = d;
    return 0;
}

static void put_device(buf *out, const node_device *d, bool first)
{
    buf_printf(out, "%s{\"name\":\"%s\",\"kind\":\"%s\",\"memory_bytes\":%llu}", first ? "" : ",", d->name,
               d->kind, (unsigned long long)d->memory_bytes);
}

void node_put_devices(buf *out, const node *n, bool with_cores)
{
    const node_device cores = {.name = NODE_CPU, .kind = NODE_CPU, .memory_bytes = n->memory_bytes};
    buf_puts(out, ",\"devices\":[");
    if (with_cores) put_device(out, &cores, true);
    for (size_t i = 0; i < n->n_devices; i++) put_device(out, &n->devices[i], i == 0 && !with_cores);
    buf_putc(out, ']');
}
