/* etcd_member.c: values out, values in. */
#include "discovery/etcd_member.h"

#include <string.h>

#include "base/file.h"
#include "json/json.h"
#include "json/json_put.h"
#include "base/sha256.h"
#include "base/utf8.h"
#include "cluster/connector.h"
#include "trust/identity.h"
#include "wire/address.h"

enum { TEXT_BYTES = 255, ADDRESS_BYTES = 639, MODEL_BYTES = 64, LABELS_MAX = 32 };

/* ---- keys ---------------------------------------------------------------------------------------- */

static int refuse_key(const char *key, shoal_err *err)
{
    return err_set(err, SHOAL_EINVALID, "the key %.120s names no member", key);
}

static bool starts(const char *s, const char *with)
{
    return strncmp(s, with, strlen(with)) == 0;
}

int etcd_member_key(const char *key, etcd_kind *ret, char name[64], const char **ret_id, shoal_err *err)
{
    *ret = starts(key, ETCD_NODES)      ? ETCD_NODE
           : starts(key, ETCD_MACHINES) ? ETCD_MACHINE
           : starts(key, ETCD_REPLICAS) ? ETCD_REPLICA
                                        : ETCD_OTHER;
    if (*ret == ETCD_OTHER) return 0;
    const char *id = strchr(key, '/') + 1;
    size_t n = strcspn(id, "/");
    if (n == 0 || n > 63 || !identity_name_ok(id, n)) return refuse_key(key, err);
    bool whole = *ret == ETCD_NODE ? id[n] == '\0' : id[n] == '/' && id[n + 1];
    if (*ret == ETCD_MACHINE) whole = whole && identity_name_ok(id + n + 1, strlen(id + n + 1));
    if (!whole || strlen(id) > TEXT_BYTES) return refuse_key(key, err);
    memcpy(name, id, n);
    name[n] = '\0';
    *ret_id = id;
    return 0;
}

/* ---- reading ------------------------------------------------------------------------------------- */

static int get_text(const json_t *o, const char *key, size_t max, const char **ret, shoal_err *err)
{
    int rc = json_get_str(o, key, ret, err);
    if (rc == 0 && !utf8_is_line(*ret, max))
        rc = err_set(err, SHOAL_EINVALID, "%s is longer than %zu bytes, or no line of text", key, max);
    return rc;
}

static int etcd_member_parse(json_t **ret, const uint8_t *value, size_t n, shoal_err *err)
{
    if (n > ETCD_VALUE_BYTES)
        return err_set(err, SHOAL_EINVALID, "its value is longer than %d bytes", ETCD_VALUE_BYTES);
    int rc = json_parse(ret, (const char *)value, n, "its value", err);
    if (rc != 0) return rc;
    if (json_is_object(*ret)) return 0;
    json_decref(*ret);
    return err_set(err, SHOAL_EINVALID, "its value is no JSON object");
}

static int read_state(const json_t *o, replica_state *ret, shoal_err *err)
{
    const char *said = replica_state_name(REPLICA_STARTING);
    int rc = json_get_str(o, "state", &said, err);
    if (rc != 0) return rc;
#define KNOWN(e, name)             \
    if (strcmp(said, name) == 0) { \
        *ret = e;                  \
        return 0;                  \
    }
    REPLICA_STATE_TABLE(KNOWN)
#undef KNOWN
    return err_set(err, SHOAL_EINVALID, "state is none that there is");
}

static int check_replica(const etcd_replica *r, shoal_err *err)
{
    address a;
    char relay[CONNECTOR_ADDRESS_SIZE], at[CONNECTOR_NODE_SIZE];
    const char *worker;
    if (!*r->model) return err_set(err, SHOAL_EINVALID, "model is missing");
    if (!*r->address) return err_set(err, SHOAL_EINVALID, "address is missing");
    if (connector_parse(r->address, relay, at, &worker)) return 0;
    int rc = address_parse(&a, r->address, err);
    if (rc == 0 && !a.is_unix && (!*a.host || a.port == 0))
        rc = err_set(err, SHOAL_EINVALID, "address is none to connect to");
    return rc;
}

int etcd_member_read_replica(etcd_replica *ret, json_t **ret_root, const uint8_t *value, size_t n,
                             shoal_err *err)
{
    etcd_replica r = {.model = "", .address = "", .machine = "", .reason = "", .node = ""};
    json_t *o;
    int64_t generation = 0;
    int rc = etcd_member_parse(&o, value, n, err);
    if (rc != 0) return rc;
    rc = get_text(o, "model", MODEL_BYTES, &r.model, err);
    if (rc == 0) rc = get_text(o, "address", ADDRESS_BYTES, &r.address, err);
    if (rc == 0) rc = get_text(o, "machine", MODEL_BYTES, &r.machine, err);
    if (rc == 0) rc = get_text(o, "reason", TEXT_BYTES, &r.reason, err);
    if (rc == 0) rc = get_text(o, "node", MODEL_BYTES, &r.node, err);
    if (rc == 0 && *r.node) rc = identity_name_check(r.node, strlen(r.node), "node", err);
    if (rc == 0) rc = json_get_int(o, "generation", 0, INT64_MAX, &generation, err);
    if (rc == 0) rc = json_get_bool(o, "standby", &r.standby, err);
    if (rc == 0) rc = read_state(o, &r.state, err);
    if (rc == 0) rc = check_replica(&r, err);
    if (rc != 0) {
        json_decref(o);
        return rc;
    }
    r.generation = (uint64_t)generation;
    *ret = r;
    *ret_root = o;
    return 0;
}

static int read_labels(etcd_node *r, const json_t *o, shoal_err *err)
{
    const json_t *all = json_object_get(o, "labels");
    if (!all) return 0;
    if (!json_is_array(all) || json_array_size(all) > LABELS_MAX)
        return err_set(err, SHOAL_EINVALID, "labels is no list of at most %d", LABELS_MAX);
    for (size_t i = 0; i < json_array_size(all); i++) {
        const char *label = json_string_value(json_array_get(all, i));
        if (!label || !*label || !utf8_is_line(label, TEXT_BYTES))
            return err_set(err, SHOAL_EINVALID, "a label is no line of text");
        r->labels[i] = label;
    }
    r->facts.labels = r->labels;
    r->facts.n_labels = json_array_size(all);
    return 0;
}

static int read_device(node_device *ret, const json_t *o, shoal_err *err)
{
    int64_t bytes = 0;
    *ret = (node_device){.name = "", .kind = ""};
    int rc = get_text(o, "name", NODE_DEVICE_NAME, &ret->name, err);
    if (rc == 0) rc = get_text(o, "kind", NODE_DEVICE_NAME, &ret->kind, err);
    if (rc == 0) rc = json_get_int(o, "memory_bytes", 0, INT64_C(1) << 53, &bytes, err);
    ret->memory_bytes = (uint64_t)bytes;
    return rc == 0 && !node_device_ok(ret) ? err_set(err, SHOAL_EINVALID, "a device has no name or kind")
                                           : rc;
}

static int read_devices(etcd_node *r, const json_t *o, shoal_err *err)
{
    const json_t *all = json_object_get(o, "devices");
    int rc = 0;
    if (!all) return 0;
    if (!json_is_array(all) || json_array_size(all) > NODE_DEVICES_MAX)
        return err_set(err, SHOAL_EINVALID, "devices is no list of at most %d", NODE_DEVICES_MAX);
    for (size_t i = 0; rc == 0 && i < json_array_size(all); i++)
        rc = read_device(&r->devices[i], json_array_get(all, i), err);
    r->facts.devices = r->devices;
    r->facts.n_devices = json_array_size(all);
    return rc;
}

static int read_facts(etcd_node *r, const json_t *o, shoal_err *err)
{
    node *f = &r->facts;
    int64_t cores = 0, memory = 0, memory_free = 0, battery = 0, epoch = 0;
    f->isa = "";
    int rc = get_text(o, "instance", MODEL_BYTES, &r->instance, err);
    if (rc == 0) rc = get_text(o, "isa", MODEL_BYTES, &f->isa, err);
    const char *site = "", *where = "", *group = "";
    if (rc == 0) rc = get_text(o, "group", 40, &group, err);
    if (rc == 0) rc = get_text(o, "site", 63, &site, err);
    if (rc == 0 && *site) rc = identity_name_check(site, strlen(site), "site", err);
    if (rc == 0) rc = get_text(o, "address", TEXT_BYTES, &where, err);
    if (rc == 0) rc = json_get_int(o, "cores", 0, 65536, &cores, err);
    if (rc == 0) rc = json_get_int(o, "memory_bytes", 0, INT64_C(1) << 53, &memory, err);
    if (rc == 0) rc = json_get_num(o, "bytes_per_s", 0, 1e18, &f->bytes_per_s, err);
    if (rc == 0) rc = json_get_num(o, "multiplies_per_s", 0, 1e18, &f->multiplies_per_s, err);
    if (rc == 0) rc = json_get_int(o, "memory_free_bytes", 0, INT64_C(1) << 53, &memory_free, err);
    if (rc == 0) rc = json_get_num(o, "load", 0, 1e6, &f->load_1m, err);
    if (rc == 0) rc = json_get_bool(o, "on_battery", &f->on_battery, err);
    if (rc == 0) rc = json_get_int(o, "battery_percent", 0, 100, &battery, err);
    if (rc == 0) rc = json_get_bool(o, "draining", &f->draining, err);
    if (rc == 0) rc = json_get_int(o, "epoch", 0, INT64_MAX, &epoch, err);
    if (rc == 0) rc = read_labels(r, o, err);
    if (rc == 0) rc = read_devices(r, o, err);
    f->epoch = (uint64_t)epoch;
    f->site = *site ? site : NULL;
    f->address = *where ? where : NULL;
    f->group = *group ? group : NULL;
    f->n_cores = (unsigned)cores;
    f->memory_bytes = (uint64_t)memory;
    f->memory_free_bytes = (uint64_t)memory_free;
    f->battery_percent = (unsigned)battery;
    return rc;
}

int etcd_member_read_node(etcd_node *ret, json_t **ret_root, const uint8_t *value, size_t n, shoal_err *err)
{
    json_t *o;
    int rc = etcd_member_parse(&o, value, n, err);
    if (rc != 0) return rc;
    *ret = (etcd_node){.instance = ""};
    rc = read_facts(ret, o, err);
    if (rc != 0)
        json_decref(o);
    else
        *ret_root = o;
    return rc;
}

/* ---- writing ------------------------------------------------------------------------------------- */

void etcd_member_put_replica(buf *out, const etcd_replica *r)
{
    buf_printf(out, "{\"generation\":%llu", (unsigned long long)r->generation);
    json_put_filled(out, "model", r->model);
    json_put_filled(out, "address", r->address);
    json_put_filled(out, "machine", r->machine);
    json_put_filled(out, "state", replica_state_name(r->state));
    json_put_filled(out, "reason", r->reason);
    json_put_filled(out, "node", r->node);
    if (r->standby) buf_puts(out, ",\"standby\":true");
    buf_putc(out, '}');
}

void etcd_member_put_node(buf *out, const node *n, const char *instance)
{
    buf_printf(out, "{\"cores\":%u,\"memory_bytes\":%llu,\"bytes_per_s\":%.6g,\"multiplies_per_s\":%.6g",
               n->n_cores, (unsigned long long)n->memory_bytes, n->bytes_per_s, n->multiplies_per_s);
    json_put_filled(out, "instance", instance);
    json_put_filled(out, "site", n->site);
    json_put_filled(out, "address", n->address);
    json_put_filled(out, "isa", n->isa);
    json_put_filled(out, "group", n->group);
    if (n->memory_free_bytes)
        buf_printf(out, ",\"memory_free_bytes\":%llu", (unsigned long long)n->memory_free_bytes);
    if (n->load_1m > 0) buf_printf(out, ",\"load\":%.6g", n->load_1m);
    if (n->on_battery) buf_puts(out, ",\"on_battery\":true");
    if (n->battery_percent) buf_printf(out, ",\"battery_percent\":%u", n->battery_percent);
    if (n->draining) buf_puts(out, ",\"draining\":true");
    if (n->epoch) buf_printf(out, ",\"epoch\":%llu", (unsigned long long)n->epoch);
    buf_puts(out, ",\"labels\":[");
    for (size_t i = 0; i < n->n_labels; i++) json_put_text(out, NULL, n->labels[i]);
    buf_putc(out, ']');
    if (n->n_devices) node_put_devices(out, n, false);
    buf_putc(out, '}');
}

/* ---- this machine -------------------------------------------------------------------------------- */

void etcd_member_machine(char ret[33])
{
    buf id = {0};
    sha256_digest digest;
    char hex[65];
    ret[0] = '\0';
    if (file_read(&id, "/proc/sys/kernel/random/boot_id", 64, NULL) == 0 && id.len) {
        sha256_of(id.data, id.len, &digest);
        sha256_hex(&digest, hex);
        memcpy(ret, hex, 32);
        ret[32] = '\0';
    }
    buf_done(&id);
}
