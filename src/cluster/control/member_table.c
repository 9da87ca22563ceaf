/* member_table.c: the table, and the rules for what machines say. */
#include "control/member_table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "json/json.h"
#include "json/json_put.h"
#include "base/utf8.h"
#include "transfer/artifact.h"
#include "wire/address.h"

struct member_table {
    member_entry **entries;
    size_t n, cap;
};

int member_table_new(member_table **ret, shoal_err *err)
{
    member_table *r = calloc(1, sizeof *r);
    if (!r) return err_nomem(err);
    *ret = r;
    return 0;
}

static void entry_free(member_entry *e)
{
    if (e->facts) shoal__v1__node_facts__free_unpacked(e->facts, NULL);
    if (e->load) shoal__v1__node_load__free_unpacked(e->load, NULL);
    if (e->replicas) shoal__v1__replicas__free_unpacked(e->replicas, NULL);
    if (e->had) shoal__v1__replicas__free_unpacked(e->had, NULL);
    if (e->stored) shoal__v1__stored_files__free_unpacked(e->stored, NULL);
    free(e);
}

void member_table_free(member_table *r)
{
    if (!r) return;
    for (size_t i = 0; i < r->n; i++) entry_free(r->entries[i]);
    free(r->entries);
    free(r);
}

size_t member_table_count(const member_table *r)
{
    return r->n;
}

member_entry *member_table_at(const member_table *r, size_t i)
{
    return r->entries[i];
}

member_entry *member_table_find(const member_table *r, const char *name)
{
    for (size_t i = 0; i < r->n; i++)
        if (strcmp(r->entries[i]->name, name) == 0) return r->entries[i];
    return NULL;
}

static int member_table_grow(member_table *r, shoal_err *err)
{
    if (r->n < r->cap) return 0;
    if (r->n >= MEMBER_TABLE_NODES_MAX)
        return err_set(err, SHOAL_ELIMIT, "%d machines are attached, which is the limit",
                       MEMBER_TABLE_NODES_MAX);
    size_t cap = r->cap ? r->cap * 2 : 8;
    member_entry **more = realloc(r->entries, cap * sizeof *more);
    if (!more) return err_nomem(err);
    r->entries = more;
    r->cap = cap;
    return 0;
}

int member_table_admit(member_table *r, const char *name, uint64_t now_ns, member_entry **ret, shoal_err *err)
{
    member_entry *e = member_table_find(r, name);
    int rc = e ? 0 : member_table_grow(r, err);
    if (rc != 0) return rc;
    if (!e) {
        e = calloc(1, sizeof *e);
        if (!e) return err_nomem(err);
        memcpy(e->name, name, strlen(name) + 1);
        e->since_ns = now_ns;
        r->entries[r->n++] = e;
    }
    e->heard_ns = now_ns;
    *ret = e;
    return 0;
}

void member_table_leave(member_table *r, member_entry *e)
{
    size_t i = 0;
    while (i < r->n && r->entries[i] != e) i++;
    if (i == r->n) return;
    memmove(&r->entries[i], &r->entries[i + 1], (r->n - i - 1) * sizeof *r->entries);
    r->n--;
    entry_free(e);
}

/* ---- the rules ----------------------------------------------------------------------------------- */

bool member_table_text_ok(const char *s)
{
    return utf8_is_line(s, MEMBER_TABLE_TEXT_MAX);
}

static bool number_is_fine(double x)
{
    return isfinite(x) && x >= 0 && x < 1e18;
}

/* More is no machine's, and no integer of JSON readers. */
static bool bytes_are_fine(uint64_t n)
{
    return n <= (uint64_t)1 << 53;
}

/* "", ":PORT" or "HOST:PORT": it becomes a part of the addresses of its workers, and names no other machine
 * there, and no socket of this one. */
static bool address_ok(const char *s)
{
    address a;
    return !*s || (!strchr(s, '/') && address_parse(&a, s, NULL) == 0 && !a.is_unix);
}

size_t member_table_devices(const Shoal__V1__NodeFacts *f, node_device ret[NODE_DEVICES_MAX])
{
    for (size_t i = 0; i < f->n_devices; i++)
        ret[i] = (node_device){.name = f->devices[i]->name,
                               .kind = f->devices[i]->kind,
                               .memory_bytes = f->devices[i]->memory_bytes};
    return f->n_devices;
}

static bool devices_are_fine(const Shoal__V1__NodeFacts *f)
{
    node_device d[NODE_DEVICES_MAX];
    bool ok = f->n_devices <= NODE_DEVICES_MAX;
    if (ok) member_table_devices(f, d);
    for (size_t i = 0; ok && i < f->n_devices; i++)
        ok = node_device_ok(&d[i]) && bytes_are_fine(d[i].memory_bytes);
    return ok;
}

static int check_facts(const Shoal__V1__NodeFacts *f, shoal_err *err)
{
    const char *const texts[] = {f->version, f->site, f->isa, f->address};
    bool ok = f->n_labels <= MEMBER_TABLE_LABELS_MAX && f->n_cores <= 65536 &&
              bytes_are_fine(f->memory_bytes) && number_is_fine(f->bytes_per_s) &&
              number_is_fine(f->multiplies_per_s);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) ok = ok && member_table_text_ok(texts[i]);
    for (size_t i = 0; ok && i < f->n_labels; i++) ok = *f->labels[i] && member_table_text_ok(f->labels[i]);
    ok = ok && (!*f->site || identity_name_ok(f->site, strlen(f->site))) && address_ok(f->address) &&
         devices_are_fine(f);
    return ok ? 0 : err_set(err, SHOAL_EPROTOCOL, "its facts make no sense");
}

static int check_load(const Shoal__V1__NodeLoad *l, shoal_err *err)
{
    bool ok = bytes_are_fine(l->memory_free_bytes) && number_is_fine(l->load_1m) && isfinite(l->celsius) &&
              number_is_fine(l->bytes_per_s) && number_is_fine(l->multiplies_per_s) &&
              fabs(l->celsius) < 1000 && l->battery_percent <= 100;
    return ok ? 0 : err_set(err, SHOAL_EPROTOCOL, "its load makes no sense");
}

static int check_replicas(const Shoal__V1__Replicas *all, shoal_err *err)
{
    bool ok = all->n_replicas <= MEMBER_TABLE_REPLICAS_MAX;
    for (size_t i = 0; ok && i < all->n_replicas; i++) {
        const Shoal__V1__ReplicaReport *r = all->replicas[i];
        ok = *r->id && *r->model && member_table_text_ok(r->id) && member_table_text_ok(r->model) &&
             member_table_text_ok(r->state) && member_table_text_ok(r->reason);
    }
    return ok ? 0 : err_set(err, SHOAL_EPROTOCOL, "its replicas make no sense");
}

static int check_files(const Shoal__V1__StoredFiles *s, shoal_err *err)
{
    bool ok = s->n_digests <= MEMBER_TABLE_FILES_MAX;
    for (size_t i = 0; ok && i < s->n_digests; i++) ok = artifact_digest_ok(s->digests[i]);
    return ok ? 0 : err_set(err, SHOAL_EPROTOCOL, "the files that it has make no sense");
}

static int member_table_check(const member_entry *e, const Shoal__V1__AgentMessage *m, shoal_err *err)
{
    if (!m->hello && !e->facts) return err_set(err, SHOAL_EPROTOCOL, "it does not begin with hello");
    if (m->epoch > INT64_MAX) return err_set(err, SHOAL_EPROTOCOL, "its epoch makes no sense");
    int rc = m->hello ? check_facts(m->hello, err) : 0;
    if (rc == 0 && m->load) rc = check_load(m->load, err);
    if (rc == 0 && m->replicas) rc = check_replicas(m->replicas, err);
    if (rc == 0 && m->stored) rc = check_files(m->stored, err);
    return rc;
}

/* What the message holds becomes the entry's. */
static unsigned member_table_take(member_entry *e, Shoal__V1__AgentMessage *m)
{
    unsigned bits = m->pong ? MEMBER_TABLE_PONG : 0;
    if (m->hello) {
        e->epoch = m->epoch;
        e->instance = m->instance;
        if (e->facts) shoal__v1__node_facts__free_unpacked(e->facts, NULL);
        e->facts = m->hello;
        bits |= MEMBER_TABLE_HELLO;
    }
    if (m->load) {
        if (e->load) shoal__v1__node_load__free_unpacked(e->load, NULL);
        e->load = m->load;
        bits |= MEMBER_TABLE_LOAD;
    }
    if (m->replicas) {
        if (e->had) shoal__v1__replicas__free_unpacked(e->had, NULL);
        e->had = e->replicas;
        e->replicas = m->replicas;
        bits |= MEMBER_TABLE_REPLICAS;
    }
    if (m->stored) {
        if (e->stored) shoal__v1__stored_files__free_unpacked(e->stored, NULL);
        e->stored = m->stored;
        bits |= MEMBER_TABLE_FILES;
    }
    m->stored = NULL;
    m->hello = NULL;
    m->load = NULL;
    m->replicas = NULL;
    return bits;
}

int member_table_hear(member_table *r, member_entry *e, const uint8_t *bytes, size_t n, uint64_t now_ns,
                      unsigned *ret_bits, uint64_t *ret_pong, shoal_err *err)
{
    if (n > MEMBER_TABLE_MESSAGE_MAX)
        return err_set(err, SHOAL_EPROTOCOL, "its message is longer than %d bytes", MEMBER_TABLE_MESSAGE_MAX);
    Shoal__V1__AgentMessage *m = shoal__v1__agent_message__unpack(NULL, n, bytes);
    if (!m) return err_set(err, SHOAL_EPROTOCOL, "its message cannot be read");
    int rc = member_table_check(e, m, err);
    if (rc == 0) {
        *ret_pong = m->pong;
        *ret_bits = member_table_take(e, m);
        e->heard_ns = now_ns;
    }
    shoal__v1__agent_message__free_unpacked(m, NULL);
    return rc;
}

/* ---- JSON ---------------------------------------------------------------------------------------- */

/* Speeds may have been measured since the facts were said. */
static void member_table_put_facts(buf *out, const Shoal__V1__NodeFacts *f, const Shoal__V1__NodeLoad *l)
{
    double bytes_per_s = l && l->bytes_per_s > 0 ? l->bytes_per_s : f->bytes_per_s;
    double multiplies_per_s = l && l->multiplies_per_s > 0 ? l->multiplies_per_s : f->multiplies_per_s;
    json_put_text(out, "version", f->version);
    json_put_text(out, "site", f->site);
    json_put_text(out, "isa", f->isa);
    json_put_text(out, "address", f->address);
    buf_printf(
        out,
        ",\"cores\":%u,\"memory_bytes\":%llu,\"bytes_per_s\":%.6g,\"multiplies_per_s\":%.6g,\"labels\":[",
        f->n_cores, (unsigned long long)f->memory_bytes, bytes_per_s, multiplies_per_s);
    for (size_t i = 0; i < f->n_labels; i++) json_put_text(out, NULL, f->labels[i]);
    buf_putc(out, ']');
    node_device devices[NODE_DEVICES_MAX];
    const node n = {
        .memory_bytes = f->memory_bytes, .devices = devices, .n_devices = member_table_devices(f, devices)};
    node_put_devices(out, &n, true);
}

static void put_load(buf *out, const Shoal__V1__NodeLoad *l)
{
    buf_printf(
        out,
        ",\"memory_free_bytes\":%llu,\"load\":%.6g,\"celsius\":%.6g,\"on_battery\":%s,\"battery_percent\":%u",
        (unsigned long long)l->memory_free_bytes, l->load_1m, l->celsius, l->on_battery ? "true" : "false",
        l->battery_percent);
}

static void put_replicas(buf *out, const Shoal__V1__Replicas *all)
{
    buf_puts(out, ",\"replicas\":[");
    for (size_t i = 0; i < all->n_replicas; i++) {
        const Shoal__V1__ReplicaReport *r = all->replicas[i];
        json_put_open(out, NULL, '{');
        json_put_text(out, "id", r->id);
        json_put_text(out, "model", r->model);
        json_put_text(out, "state", r->state);
        json_put_text(out, "reason", r->reason);
        buf_putc(out, '}');
    }
    buf_putc(out, ']');
}

static double seconds(uint64_t now_ns, uint64_t then_ns)
{
    return now_ns > then_ns ? (double)(now_ns - then_ns) / 1e9 : 0;
}

void member_table_put_entry(const member_entry *e, uint64_t now_ns, buf *out)
{
    buf_putc(out, '{');
    json_put_text(out, "name", e->name);
    json_put_text(out, "role", role_name(e->role));
    buf_printf(out, ",\"attached_s\":%.3f,\"silent_s\":%.3f,\"rtt_ms\":%.3f", seconds(now_ns, e->since_ns),
               seconds(now_ns, e->heard_ns), e->rtt_ms);
    buf_printf(out, ",\"drains\":%s", e->drains ? "true" : "false");
    buf_printf(out, ",\"files\":%zu", e->stored ? e->stored->n_digests : 0);
    if (e->twice_ns) {
        json_put_text(out, "from", e->from);
        json_put_text(out, "also_from", e->twice_from);
        buf_printf(out, ",\"also_s\":%.3f", seconds(now_ns, e->twice_ns));
    }
    if (e->facts) member_table_put_facts(out, e->facts, e->load);
    if (e->load) put_load(out, e->load);
    if (e->replicas) put_replicas(out, e->replicas);
    buf_putc(out, '}');
}

void member_table_put_json(const member_table *r, uint64_t now_ns, buf *out)
{
    buf_puts(out, "{\"nodes\":[");
    for (size_t i = 0; i < r->n; i++) {
        if (i) buf_putc(out, ',');
        member_table_put_entry(r->entries[i], now_ns, out);
    }
    buf_puts(out, "]}");
}
