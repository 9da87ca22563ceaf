/* What attached machines say: kept where it makes sense, refused whole where it does not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json/json.h"
#include "control/member_table.h"

typedef Shoal__V1__AgentMessage message;

static Shoal__V1__Device gpu, *one_device[] = {&gpu};
static char *two_labels[] = {"kitchen", "disk=ssd"};

static Shoal__V1__NodeFacts facts(void)
{
    Shoal__V1__NodeFacts f = SHOAL__V1__NODE_FACTS__INIT;
    f.version = "0.2.0";
    f.site = "attic";
    f.isa = "avx2";
    f.n_cores = 4;
    f.memory_bytes = 8u << 30;
    f.labels = two_labels;
    f.n_labels = 2;
    shoal__v1__device__init(&gpu);
    gpu.name = "cuda:0";
    gpu.kind = "cuda";
    gpu.memory_bytes = (uint64_t)24 << 30;
    f.devices = one_device;
    f.n_devices = 1;
    return f;
}

static int hear(member_table *r, member_entry *e, const message *m, unsigned *ret_bits, shoal_err *err)
{
    size_t n = shoal__v1__agent_message__get_packed_size(m);
    uint8_t *bytes = malloc(n ? n : 1);
    uint64_t pong = 0;
    assert_non_null(bytes);
    shoal__v1__agent_message__pack(m, bytes);
    int rc = member_table_hear(r, e, bytes, n, 7000000000, ret_bits, &pong, err);
    if (rc == 0) assert_true(pong == m->pong);
    free(bytes);
    return rc;
}

static void a_machine_says_what_it_is_and_how_it_is(void **state)
{
    member_table *r;
    member_entry *e;
    unsigned bits = 0;
    Shoal__V1__NodeFacts f = facts();
    Shoal__V1__NodeLoad l = SHOAL__V1__NODE_LOAD__INIT;
    Shoal__V1__ReplicaReport one = SHOAL__V1__REPLICA_REPORT__INIT, *list[] = {&one};
    Shoal__V1__Replicas all = SHOAL__V1__REPLICAS__INIT;
    message m = SHOAL__V1__AGENT_MESSAGE__INIT;
    assert_int_equal(member_table_new(&r, NULL), 0);
    assert_int_equal(member_table_admit(r, "pi", 5000000000, &e, NULL), 0);
    m.hello = &f;
    assert_int_equal(hear(r, e, &m, &bits, NULL), 0);
    assert_int_equal(bits, MEMBER_TABLE_HELLO);
    m.hello = NULL;
    l.load_1m = 1.5;
    l.on_battery = true;
    l.battery_percent = 57;
    one.id = "m/0";
    one.model = "m";
    one.state = "ready";
    all.replicas = list;
    all.n_replicas = 1;
    m.load = &l;
    m.replicas = &all;
    m.pong = 99;
    assert_int_equal(hear(r, e, &m, &bits, NULL), 0);
    assert_int_equal(bits, MEMBER_TABLE_LOAD | MEMBER_TABLE_REPLICAS | MEMBER_TABLE_PONG);
    buf out = {0};
    json_t *root = NULL, *node;
    member_table_put_json(r, 8000000000, &out);
    assert_int_equal(json_parse(&root, out.data, out.len, "nodes", NULL), 0);
    node = json_array_get(json_object_get(root, "nodes"), 0);
    assert_string_equal(json_string_value(json_object_get(node, "name")), "pi");
    assert_true(json_number_value(json_object_get(node, "attached_s")) == 3);
    assert_true(json_number_value(json_object_get(node, "silent_s")) == 1);
    assert_string_equal(json_string_value(json_object_get(node, "site")), "attic");
    assert_int_equal(json_array_size(json_object_get(node, "labels")), 2);
    const json_t *devices = json_object_get(node, "devices");
    assert_int_equal(json_array_size(devices), 2);
    assert_string_equal(json_string_value(json_object_get(json_array_get(devices, 0), "kind")), "cpu");
    assert_string_equal(json_string_value(json_object_get(json_array_get(devices, 1), "name")), "cuda:0");
    assert_int_equal(json_integer_value(json_object_get(node, "battery_percent")), 57);
    assert_int_equal(json_array_size(json_object_get(node, "replicas")), 1);
    json_decref(root);
    buf_done(&out);
    member_table_free(r);
}

/* Each row breaks one rule. */
static void spoil(message *m, int how)
{
    static char *many[MEMBER_TABLE_LABELS_MAX + 1];
    static char longest[MEMBER_TABLE_TEXT_MAX + 2];
    static Shoal__V1__ReplicaReport one = SHOAL__V1__REPLICA_REPORT__INIT;
    static Shoal__V1__ReplicaReport *list[MEMBER_TABLE_REPLICAS_MAX + 1];
    static char *nameless[] = {""};
    static Shoal__V1__Device *devices[NODE_DEVICES_MAX + 1];
    memset(longest, 'x', sizeof longest - 1);
    for (size_t i = 0; i < sizeof many / sizeof *many; i++) many[i] = "a";
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) list[i] = &one;
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++) devices[i] = &gpu;
    one.id = "m/0";
    one.model = how == 13 ? "" : "m";
    one.reason = how == 14 ? "a\nb" : "";
    switch (how) {
    case 0: m->hello->isa = longest; break;
    case 1: m->hello->version = "\x1b[2J"; break;
    case 2: m->hello->version = "\xff\xfe"; break;
    case 3: m->hello->site = "Not A Site"; break;
    case 4: m->hello->n_cores = 70000; break;
    case 5: m->hello->bytes_per_s = NAN; break;
    case 6: m->hello->multiplies_per_s = INFINITY; break;
    case 7: m->hello->labels = many, m->hello->n_labels = MEMBER_TABLE_LABELS_MAX + 1; break;
    case 8: m->hello->labels = nameless, m->hello->n_labels = 1; break;
    case 9: m->load->load_1m = -1; break;
    case 10: m->load->celsius = NAN; break;
    case 11: m->load->battery_percent = 101; break;
    case 12: m->replicas->replicas = list, m->replicas->n_replicas = MEMBER_TABLE_REPLICAS_MAX + 1; break;
    case 15: m->hello->address = "10.0.0.9:7081/other/m/0"; break;
    case 16: m->hello->address = "unix:/run/shoal/m.0.sock"; break;
    case 17: m->hello->address = "10.0.0.9"; break;
    case 18: m->hello->memory_bytes = UINT64_MAX; break;
    case 19: m->load->memory_free_bytes = UINT64_MAX; break;
    case 20: gpu.name = "a\"b"; break;
    case 21: gpu.kind = "cpu"; break; /* the cores say themselves what they have */
    case 22: m->hello->devices = devices, m->hello->n_devices = NODE_DEVICES_MAX + 1; break;
    default: m->replicas->replicas = list, m->replicas->n_replicas = 1; break;
    }
}
enum { N_SPOILS = 23 };

static void what_makes_no_sense_changes_nothing(void **state)
{
    member_table *r;
    member_entry *e;
    unsigned bits;
    assert_int_equal(member_table_new(&r, NULL), 0);
    assert_int_equal(member_table_admit(r, "pi", 5000000000, &e, NULL), 0);
    for (int how = 0; how < N_SPOILS; how++) {
        shoal_err err;
        Shoal__V1__NodeFacts f = facts();
        Shoal__V1__NodeLoad l = SHOAL__V1__NODE_LOAD__INIT;
        Shoal__V1__Replicas all = SHOAL__V1__REPLICAS__INIT;
        message m = SHOAL__V1__AGENT_MESSAGE__INIT;
        m.hello = &f;
        m.load = &l;
        m.replicas = &all;
        spoil(&m, how);
        if (hear(r, e, &m, &bits, &err) != SHOAL_EPROTOCOL) fail_msg("rule %d does not hold", how);
        assert_null(e->facts);
        assert_true(e->heard_ns == 5000000000);
    }
    member_table_free(r);
}

static void it_begins_with_hello(void **state)
{
    member_table *r;
    member_entry *e;
    unsigned bits;
    uint64_t pong;
    shoal_err err;
    Shoal__V1__NodeLoad l = SHOAL__V1__NODE_LOAD__INIT;
    message m = SHOAL__V1__AGENT_MESSAGE__INIT;
    assert_int_equal(member_table_new(&r, NULL), 0);
    assert_int_equal(member_table_admit(r, "pi", 1, &e, NULL), 0);
    m.load = &l;
    assert_int_equal(hear(r, e, &m, &bits, &err), SHOAL_EPROTOCOL);
    assert_non_null(strstr(err.message, "hello"));
    assert_int_equal(member_table_hear(r, e, (const uint8_t *)"\xff\xff", 2, 1, &bits, &pong, &err),
                     SHOAL_EPROTOCOL);
    assert_int_equal(member_table_hear(r, e, NULL, MEMBER_TABLE_MESSAGE_MAX + 1, 1, &bits, &pong, &err),
                     SHOAL_EPROTOCOL);
    member_table_free(r);
}

static void machines_come_back_and_go(void **state)
{
    member_table *r;
    member_entry *e, *again;
    char name[16];
    shoal_err err;
    assert_int_equal(member_table_new(&r, NULL), 0);
    for (int i = 0; i < MEMBER_TABLE_NODES_MAX; i++) {
        snprintf(name, sizeof name, "n%d", i);
        assert_int_equal(member_table_admit(r, name, 1, &e, NULL), 0);
    }
    assert_int_equal(member_table_admit(r, "one-more", 1, &again, &err), SHOAL_ELIMIT);
    assert_int_equal(member_table_admit(r, name, 9, &again, &err), 0);
    assert_ptr_equal(again, e);
    assert_true(e->since_ns == 1 && e->heard_ns == 9);
    member_table_leave(r, member_table_find(r, "n7"));
    assert_null(member_table_find(r, "n7"));
    assert_int_equal(member_table_count(r), MEMBER_TABLE_NODES_MAX - 1);
    assert_string_equal(member_table_at(r, 7)->name, "n8");
    member_table_leave(r, NULL);
    member_table_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_machine_says_what_it_is_and_how_it_is),
        cmocka_unit_test(what_makes_no_sense_changes_nothing),
        cmocka_unit_test(it_begins_with_hello),
        cmocka_unit_test(machines_come_back_and_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
