/* config_diff.c: see config_diff.h. */
#include "config/config_diff.h"

#include <stdio.h>
#include <string.h>

#include "config/config_put.h"

enum { PATH_BYTES = 512, VALUE_BYTES = 80 };

typedef struct differ {
    void (*each)(void *user, const config_change *c);
    void *user;
    char path[PATH_BYTES];
    size_t n_path;
    bool failed;
} differ;

/* A value as it is, and as it may be shown; both NULL where it is not there. */
typedef struct side {
    const json_t *is, *shown;
} side;

static void compare(differ *d, side a, side b);

/* ---- when ---------------------------------------------------------------------------------------- */

static bool config_diff_begins(const char *path, const char *with)
{
    size_t n = strlen(with);
    return strncmp(path, with, n) == 0 && (!path[n] || path[n] == '.' || path[n] == '[');
}

/* Of a model that both have: what the gateway alone looks at, and how many replicas there are. */
static bool is_of_gateway(const char *path)
{
    static const char *const KEYS[] = {"cost", "energy_j", "fallback", "replicas", "standby"};
    const char *key = strstr(path, "].");
    for (size_t i = 0; key && i < sizeof KEYS / sizeof *KEYS; i++)
        if (config_diff_begins(key + 2, KEYS[i])) return true;
    return false;
}

config_when config_when_of(const char *path)
{
    static const char *const AT_START[] = {"listen",
                                           "also_listen",
                                           "tls.cert",
                                           "tls.key",
                                           "cluster",
                                           "discovery.etcd",
                                           "discovery.tls",
                                           "discovery.dns",
                                           "discovery.dns_server",
                                           "library",
                                           "packed",
                                           "cpu",
                                           "watts_per_core",
                                           "manifest",
                                           "retrieval.path",
                                           "retrieval.memory_mb",
                                           "sessions",
                                           "failover_wait_ms",
                                           "hedge",
                                           "cache.semantic",
                                           "retrieval.threads",
                                           "requests",
                                           "limits.max_connections",
                                           "log.json",
                                           "otel"};
    for (size_t i = 0; i < sizeof AT_START / sizeof *AT_START; i++)
        if (config_diff_begins(path, AT_START[i])) return CONFIG_RESTART;
    if (strcmp(path, "discovery") == 0)
        return CONFIG_RESTART; /* all of it; its list of workers alone follows */
    return config_diff_begins(path, "models") && !is_of_gateway(path) ? CONFIG_MODELS : CONFIG_NOW;
}

/* ---- walking ------------------------------------------------------------------------------------- */

static size_t config_diff_enter(differ *d, const char *fmt, const char *key)
{
    size_t before = d->n_path, room = sizeof d->path - before;
    int n = snprintf(d->path + before, room, fmt, key);
    d->n_path += (size_t)n < room ? (size_t)n : room - 1;
    return before;
}

static void config_diff_leave(differ *d, size_t before)
{
    d->n_path = before;
    d->path[before] = '\0';
}

/* Entries of lists, such as models, are told by their names alone. */
static bool is_entry(const differ *d)
{
    return d->n_path > 0 && d->path[d->n_path - 1] == ']';
}

/* A short value in one line. */
static const char *config_diff_say(differ *d, const json_t *v, char out[VALUE_BYTES + 4])
{
    buf b = {0};
    if (!v) return NULL;
    json_put_digits(&b, v, 10);
    d->failed |= b.failed;
    if (b.failed || b.len > VALUE_BYTES || (json_is_object(v) && is_entry(d)))
        strcpy(out, "...");
    else
        memcpy(out, b.data, b.len + 1);
    buf_done(&b);
    return out;
}

static void config_diff_tell(differ *d, const json_t *from, const json_t *to)
{
    char a[VALUE_BYTES + 4], b[VALUE_BYTES + 4];
    config_change c = {.path = d->path, .from = config_diff_say(d, from, a), .to = config_diff_say(d, to, b)};
    c.when = config_when_of(d->path);
    d->each(d->user, &c);
}

static side member(side s, const char *key)
{
    return (side){json_object_get(s.is, key), json_object_get(s.shown, key)};
}

static void compare_member(differ *d, const char *key, side a, side b)
{
    size_t before = config_diff_enter(d, d->n_path ? ".%s" : "%s", key);
    compare(d, member(a, key), member(b, key));
    config_diff_leave(d, before);
}

static void compare_maps(differ *d, side a, side b)
{
    const char *key;
    json_t *v;
    json_object_foreach((json_t *)a.is, key, v) compare_member(d, key, a, b);
    json_object_foreach((json_t *)b.is, key, v) if (!json_object_get(a.is, key)) compare_member(d, key, a, b);
}

/* What an entry of a list is called; NULL: nothing. */
static const char *config_diff_name_of(const json_t *item)
{
    static const char *const KEYS[] = {"name", "id"};
    for (size_t i = 0; i < sizeof KEYS / sizeof *KEYS; i++)
        if (json_object_get(item, KEYS[i])) return json_string_value(json_object_get(item, KEYS[i]));
    return NULL;
}

static side entry(side list, size_t i)
{
    return (side){json_array_get(list.is, i), json_array_get(list.shown, i)};
}

/* The places of a list's entries by their names, the caller's; NULL: one has no name, or another one's. */
static json_t *index_of(differ *d, const json_t *list)
{
    json_t *index = json_object();
    bool named = index != NULL;
    if (!index) d->failed = true;
    for (size_t i = 0; named && i < json_array_size(list); i++) {
        const char *name = config_diff_name_of(json_array_get(list, i));
        named = name && !json_object_get(index, name);
        if (named && json_object_set_new(index, name, json_integer((json_int_t)i)) != 0) d->failed = true;
    }
    if (named) return index;
    json_decref(index);
    return NULL;
}

static side named_entry(side list, const json_t *index, const char *name)
{
    const json_t *at = json_object_get(index, name);
    return at ? entry(list, (size_t)json_integer_value(at)) : (side){NULL, NULL};
}

static void compare_named(differ *d, side a, side b, const json_t *index_a, const json_t *index_b)
{
    for (size_t i = 0; i < json_array_size(a.is); i++) {
        const char *name = config_diff_name_of(json_array_get(a.is, i));
        size_t before = config_diff_enter(d, "[%s]", name);
        compare(d, entry(a, i), named_entry(b, index_b, name));
        config_diff_leave(d, before);
    }
    for (size_t i = 0; i < json_array_size(b.is); i++) {
        const char *name = config_diff_name_of(json_array_get(b.is, i));
        if (json_object_get(index_a, name)) continue;
        size_t before = config_diff_enter(d, "[%s]", name);
        compare(d, (side){NULL, NULL}, entry(b, i));
        config_diff_leave(d, before);
    }
}

static void compare_lists(differ *d, side a, side b)
{
    char at[24];
    size_t n = json_array_size(a.is), n_b = json_array_size(b.is);
    for (size_t i = 0; i < (n > n_b ? n : n_b); i++) {
        snprintf(at, sizeof at, "%zu", i);
        size_t before = config_diff_enter(d, "[%s]", at);
        compare(d, entry(a, i), entry(b, i));
        config_diff_leave(d, before);
    }
}

static bool is_list_of_maps(const json_t *v)
{
    return json_is_array(v) && json_is_object(json_array_get(v, 0));
}

/* A list that is not there at all is an empty one. */
static side or_empty(side s, const json_t *empty)
{
    return s.is ? s : (side){empty, empty};
}

static void compare_any(differ *d, side a, side b, const json_t *empty)
{
    if (json_is_object(a.is) && json_is_object(b.is)) {
        compare_maps(d, a, b);
    } else if (is_list_of_maps(a.is ? a.is : b.is) || is_list_of_maps(b.is)) {
        a = or_empty(a, empty);
        b = or_empty(b, empty);
        json_t *index_a = index_of(d, a.is), *index_b = index_of(d, b.is);
        if (index_a && index_b)
            compare_named(d, a, b, index_a, index_b);
        else
            compare_lists(d, a, b);
        json_decref(index_a);
        json_decref(index_b);
    } else {
        config_diff_tell(d, a.shown, b.shown);
    }
}

static void compare(differ *d, side a, side b)
{
    if (json_equal(a.is, b.is)) return;
    json_t *empty = json_array();
    if (empty)
        compare_any(d, a, b, empty);
    else
        d->failed = true;
    json_decref(empty);
}

int config_diff(const gateway_config *a, const gateway_config *b,
                void (*each)(void *user, const config_change *c), void *user, shoal_err *err)
{
    json_t *tree[4] = {0};
    differ d = {.each = each, .user = user};
    int rc = config_to_json(&tree[0], a, false, err);
    if (rc == 0) rc = config_to_json(&tree[1], a, true, err);
    if (rc == 0) rc = config_to_json(&tree[2], b, false, err);
    if (rc == 0) rc = config_to_json(&tree[3], b, true, err);
    if (rc == 0) compare(&d, (side){tree[0], tree[1]}, (side){tree[2], tree[3]});
    for (size_t i = 0; i < 4; i++) json_decref(tree[i]);
    return rc == 0 && d.failed ? err_nomem(err) : rc;
}
