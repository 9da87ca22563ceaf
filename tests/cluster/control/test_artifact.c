/* What travels: files, folders and adapters as messages, what is refused of them, and who is told that whom
 * has them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sha256.h"
#include "control/assignment.h"
#include "control/holders.h"
#include "control/desired_state.h"

#define DATA SHOAL_SOURCE_DIR "/tests/data"

static char hex_a[65], hex_b[65];

static int set_up(void **state)
{
    memset(hex_a, 'a', 64);
    memset(hex_b, 'b', 64);
    return 0;
}

/* ---- artifacts ------------------------------------------------------------------------------------- */

static void a_folder_is_said_and_understood(void **state)
{
    artifact p = {0}, q = {0};
    Shoal__V1__ModelFile m;
    Shoal__V1__FolderFile files[ARTIFACT_FILES_MAX], *list[ARTIFACT_FILES_MAX];
    shoal_err err;
    if (artifact_read(&p, DATA "/hf/llama-gqa/", NULL, &err) != 0) fail_msg("%s", err.message);
    assert_string_equal(p.name, "llama-gqa");
    assert_true(p.n_files >= 2);
    artifact_put(&p, &m, files, list);
    if (artifact_take(&q, &m, &err) != 0) fail_msg("%s", err.message);
    assert_string_equal(p.digest, q.digest);
    assert_int_equal(p.n_files, q.n_files);
    assert_int_equal(p.bytes, q.bytes);
    for (size_t i = 0; i < p.n_files; i++) assert_string_equal(p.files[i].path, q.files[i].path);
    artifact_done(&q);
    files[0].digest = hex_a; /* one file is another: then the list is */
    assert_int_equal(artifact_take(&q, &m, &err), SHOAL_EINVALID);
    artifact_done(&p);
    assert_int_equal(artifact_read(&p, DATA "/no-such-file", NULL, &err), SHOAL_EIO);
}

static bool has_file(const artifact *p, const char *path)
{
    for (size_t i = 0; i < p->n_files; i++)
        if (strcmp(p->files[i].path, path) == 0) return true;
    return false;
}

static void a_folder_of_ctranslate2_travels_with_its_weights(void **state)
{
    artifact p = {0};
    assert_int_equal(artifact_read(&p, DATA "/ct2/float16", NULL, NULL), 0);
    assert_true(has_file(&p, "model.bin"));
    assert_true(has_file(&p, "config.json"));
    artifact_done(&p);
}

static void a_pinned_file_is_not_read(void **state)
{
    artifact p = {0};
    char upper[65];
    memset(upper, 'A', 64);
    upper[64] = '\0';
    assert_int_equal(artifact_read(&p, DATA "/hf/llama-gqa/config.json", upper, NULL), 0);
    assert_string_equal(p.digest, hex_a);
    assert_string_equal(p.name, "config.json");
    assert_int_equal(p.n_files, 0);
    artifact_done(&p);
}

static void paths_lead_nowhere_else(void **state)
{
    static const char *const good[] = {"config.json", "1_Pooling/config.json", "a b.txt"},
                             *const bad[] = {"",      "/etc/passwd", "..",   "../x",    "a/../b",
                                             "a/b/c", "a/",          "/",    ".hidden", "a/.b",
                                             "a\nb",  "a\\b",        "\xff", "a//b",    "a/./b"};
    char longest[ARTIFACT_PATH_SIZE + 1];
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) assert_true(artifact_path_ok(good[i]));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (artifact_path_ok(bad[i])) fail_msg("\"%s\" may be a path", bad[i]);
    memset(longest, 'x', ARTIFACT_PATH_SIZE);
    longest[ARTIFACT_PATH_SIZE] = '\0';
    assert_false(artifact_path_ok(longest));
    longest[ARTIFACT_PATH_SIZE - 1] = '\0';
    assert_true(artifact_path_ok(longest));
}

/* A list with the right digest whose paths cannot lie beside each other. */
static int take_list(const char *first, const char *second)
{
    artifact made = {.n_files = 2, .files = calloc(2, sizeof(artifact_file))}, q = {0};
    Shoal__V1__ModelFile m;
    Shoal__V1__FolderFile files[2], *list[2];
    char lines[2 * (ARTIFACT_PATH_SIZE + 80)];
    sha256_digest d;
    snprintf(made.files[0].path, ARTIFACT_PATH_SIZE, "%s", first);
    snprintf(made.files[1].path, ARTIFACT_PATH_SIZE, "%s", second);
    memcpy(made.files[0].digest, hex_a, 65);
    memcpy(made.files[1].digest, hex_b, 65);
    int n = snprintf(lines, sizeof lines, "%s %s\n%s %s\n", hex_a, first, hex_b, second);
    sha256_of(lines, (size_t)n, &d);
    sha256_hex(&d, made.digest);
    artifact_put(&made, &m, files, list);
    int rc = artifact_take(&q, &m, NULL);
    artifact_done(&q);
    artifact_done(&made);
    return rc;
}

static void lists_that_contradict_themselves_are_refused(void **state)
{
    assert_int_equal(take_list("a", "b"), 0);
    assert_int_equal(take_list("b", "a"), SHOAL_EINVALID);
    assert_int_equal(take_list("a", "a"), SHOAL_EINVALID);
    assert_int_equal(take_list("a", "a/b"), SHOAL_EINVALID);
    assert_int_equal(take_list("a", "../b"), SHOAL_EINVALID);
}

/* ---- assignments --------------------------------------------------------------------------------- */

static void an_assignment_with_adapters_is_said_and_understood(void **state)
{
    bundle_part parts[2] = {{.path = "m.gguf"}, {.path = DATA "/adapters/llama-one", .name = "one"}};
    const bundle t = {.parts = parts, .n_parts = 2};
    const worker_spec s = {.model = "llama", .n_threads = 2, .kv_bytes = 1 << 20, .n_ctx = 512};
    desired_state o;
    assignment a = {0};
    shoal_err err;
    snprintf(parts[0].artifact.name, 20, "m.gguf");
    snprintf(parts[0].artifact.digest, 65, "%s", hex_a);
    assert_int_equal(artifact_read(&parts[1].artifact, parts[1].path, NULL, &err), 0);
    assert_true(desired_state_open(&o, 1));
    assert_true(desired_state_add(&o, &s, &t, 2, 1, NULL));
    assert_int_equal(o.message.n_models, 1);
    if (assignment_take(&a, o.message.models[0], &err) != 0) fail_msg("%s", err.message);
    assert_string_equal(a.model, "llama");
    assert_int_equal(a.spec.n_replicas, 3);
    assert_int_equal(a.n_serving, 2);
    assert_int_equal(a.spec.n_ctx, 512);
    assert_int_equal(a.n_adapters, 1);
    assert_string_equal(a.adapters[0].name, "one");
    assert_string_equal(a.adapters[0].artifact.digest, parts[1].artifact.digest);
    assignment_done(&a);
    artifact_done(&parts[1].artifact);
    desired_state_close(&o);
}

static void assignments_that_make_no_sense_are_refused(void **state)
{
    assignment a = {0};
    shoal_err err;
    Shoal__V1__ModelFile f = SHOAL__V1__MODEL_FILE__INIT;
    f.digest = hex_a;
    for (int how = 0; how < 11; how++) {
        Shoal__V1__AssignedAdapter x = SHOAL__V1__ASSIGNED_ADAPTER__INIT, *list[WORKER_SPEC_ADAPTERS + 1];
        Shoal__V1__Assignment m = SHOAL__V1__ASSIGNMENT__INIT;
        for (size_t i = 0; i <= WORKER_SPEC_ADAPTERS; i++) list[i] = &x;
        m.model = how == 1 ? "" : how == 2 ? "a\nb" : "m";
        m.file = how == 3 ? NULL : &f;
        m.replicas = how == 4 ? 0 : how == 5 ? UINT32_MAX : 1;
        m.standby = how == 6 ? UINT32_MAX : 0;
        m.threads = how == 7 ? 5000 : 0;
        x.name = how == 8 ? "a=/etc/passwd" : "x";
        x.file = how == 9 ? NULL : &f;
        m.adapters = list;
        m.n_adapters = how == 8 || how == 9 ? 1 : how == 10 ? 2 : 0;
        int rc = assignment_take(&a, &m, &err);
        assert_int_equal(rc, how == 0 ? 0 : SHOAL_EINVALID);
        if (how == 0) assignment_done(&a);
    }
}

/* ---- stages -------------------------------------------------------------------------------------- */

/* The layers of a model, from a gateway's assignments to what a machine starts. */
static void stages_arrive_as_they_were_ordered(void **state)
{
    bundle_part part = {.path = "m.gguf"};
    const bundle t = {.parts = &part, .n_parts = 1};
    const worker_spec s = {.model = "m",
                           .first_layer = 0,
                           .end_layer = 3,
                           .wire = "f16",
                           .options = "kv_type=q8_0 vad=off new=1.5,2",
                           .stages = {"m@3:5/0", "relay:10.0.0.2:7081/pi/m@5:8/0"}};
    const char *const first_nodes[2] = {"attic", NULL};
    worker_spec later = {.model = "m", .first_layer = 3, .end_layer = 5};
    desired_state o;
    assignment a = {0};
    shoal_err err;
    snprintf(part.artifact.name, 20, "m.gguf");
    snprintf(part.artifact.digest, 65, "%s", hex_a);
    assert_true(desired_state_open(&o, 2));
    assert_true(desired_state_add(&o, &s, &t, 1, 0, first_nodes));
    assert_true(desired_state_add(&o, &later, &t, 1, 0, first_nodes));
    if (assignment_take(&a, o.message.models[0], &err) != 0) fail_msg("%s", err.message);
    assert_true(a.spec.first_layer == 0 && a.spec.end_layer == 3);
    assert_string_equal(a.spec.wire, "f16");
    assert_int_equal(o.message.models[0]->n_options, 3);
    assert_string_equal(a.spec.options, s.options); /* also what only the worker may know */
    assert_string_equal(a.spec.stages[1], s.stages[1]);
    assert_null(a.spec.stages[2]);
    assignment_done(&a);
    if (assignment_take(&a, o.message.models[1], &err) != 0) fail_msg("%s", err.message);
    assert_true(a.spec.first_layer == 3 && a.spec.end_layer == 5 && !a.spec.wire && !a.spec.stages[0]);
    assert_int_equal(a.n_first_nodes, 1);
    assert_string_equal(a.first_nodes[0], "attic");
    assignment_done(&a);
    desired_state_close(&o);
}

static void layers_that_make_no_sense_are_refused(void **state)
{
    Shoal__V1__ModelFile f = SHOAL__V1__MODEL_FILE__INIT;
    char *many[WORKER_SPEC_STAGES + 1];
    f.name = "m.gguf";
    f.digest = (char *)hex_a;
    for (size_t i = 0; i <= WORKER_SPEC_STAGES; i++) many[i] = "m@3:8/0";
    for (int how = 0; how < 10; how++) {
        assignment a = {0};
        shoal_err err = {0};
        Shoal__V1__Assignment m = SHOAL__V1__ASSIGNMENT__INIT;
        char *line[] = {"a\nb"};
        m.model = "m";
        m.file = &f;
        m.replicas = how == 1 ? 2 : 1;
        m.standby = how == 2;
        m.first_layer = how == 3 ? 3 : how == 4 ? 2 : 0;
        m.end_layer = how == 4 ? 2 : how == 5 ? 0 : 3;
        m.stages = how == 6 ? line : many;
        m.n_stages = how == 7 ? WORKER_SPEC_STAGES + 1 : how == 8 ? 0 : 1;
        m.wire = how == 9 ? "f8" : "int8";
        assert_int_equal(assignment_take(&a, &m, &err), how == 0 ? 0 : SHOAL_EINVALID);
        if (how == 0) assignment_done(&a);
    }
}

static void options_that_are_no_texts_of_their_own_are_refused(void **state)
{
    Shoal__V1__ModelFile f = SHOAL__V1__MODEL_FILE__INIT;
    char longest[WORKER_SPEC_OPTIONS] = "k=";
    char *const good[] = {"kv_type=q8_0", "max_batch=4", "empty="}, *const bad[] = {
                                                                        "kv_type", "=q8_0", "a b=1",
                                                                        "a=1 b=2", "a=1\n", "a=\x80",
                                                                        "KV=1",    "",      longest};
    f.name = "m.gguf";
    f.digest = (char *)hex_a;
    memset(longest + 2, 'x', sizeof longest - 3);
    longest[sizeof longest - 1] = '\0';
    for (size_t i = 0; i <= sizeof bad / sizeof *bad; i++) {
        assignment a = {0};
        shoal_err err = {0};
        Shoal__V1__Assignment m = SHOAL__V1__ASSIGNMENT__INIT;
        bool is_good = i == sizeof bad / sizeof *bad;
        m.model = "m";
        m.file = &f;
        m.replicas = 1;
        m.options = is_good ? (char **)good : (char **)&bad[i];
        m.n_options = is_good ? 3 : 1;
        assert_int_equal(assignment_take(&a, &m, &err), is_good ? 0 : SHOAL_EINVALID);
        if (is_good) assert_string_equal(a.spec.options, "kv_type=q8_0 max_batch=4 empty=");
        if (is_good) assignment_done(&a);
    }
}

/* ---- who has what -------------------------------------------------------------------------------- */

static member_entry *attached(member_table *r, const char *name, const char *site, char *digest)
{
    member_entry *e;
    unsigned bits;
    uint64_t pong;
    uint8_t bytes[400];
    Shoal__V1__AgentMessage m = SHOAL__V1__AGENT_MESSAGE__INIT;
    Shoal__V1__NodeFacts f = SHOAL__V1__NODE_FACTS__INIT;
    Shoal__V1__StoredFiles stored = SHOAL__V1__STORED_FILES__INIT;
    f.site = (char *)site;
    f.address = ":7081";
    m.hello = &f;
    m.stored = &stored;
    stored.digests = &digest;
    stored.n_digests = digest != NULL;
    assert_int_equal(member_table_admit(r, name, 1, &e, NULL), 0);
    size_t n = shoal__v1__agent_message__pack(&m, bytes);
    assert_int_equal(member_table_hear(r, e, bytes, n, 1, &bits, &pong, NULL), 0);
    assert_true(bits & MEMBER_TABLE_FILES);
    return e;
}

static bool where(const member_entry *e, char *ret, size_t size)
{
    snprintf(ret, size, "10.0.0.%c:7081", e->name[0]);
    return e->name[0] != 'x'; /* it cannot be reached */
}

static void who_lacks_a_file_hears_of_those_that_have_it_the_near_ones_first(void **state)
{
    member_table *r;
    holders_list l = {0};
    assert_int_equal(member_table_new(&r, NULL), 0);
    attached(r, "1-far", "town", hex_a);
    member_entry *me = attached(r, "2-me", "house", hex_b);
    attached(r, "3-near", "house", hex_a);
    attached(r, "4-other", "house", hex_b);
    attached(r, "x-nowhere", "house", hex_a);
    assert_true(holders_add(&l, r, me, hex_b, where)); /* it has that */
    assert_true(holders_add(&l, r, me, hex_a, where));
    assert_true(holders_add(&l, r, me, hex_a, where));
    const Shoal__V1__Holders *m = holders_message(&l);
    assert_non_null(m);
    assert_int_equal(m->n_files, 1);
    assert_string_equal(m->files[0]->digest, hex_a);
    assert_int_equal(m->files[0]->n_holders, 2);
    assert_string_equal(m->files[0]->holders[0]->node, "3-near");
    assert_string_equal(m->files[0]->holders[0]->address, "10.0.0.3:7081");
    assert_string_equal(m->files[0]->holders[1]->node, "1-far");
    holders_done(&l);
    member_table_free(r);
}

static void a_machine_that_claims_what_cannot_be_is_refused(void **state)
{
    member_table *r;
    member_entry *e;
    unsigned bits;
    uint64_t pong;
    uint8_t bytes[400];
    char *odd = "../../etc/passwd";
    Shoal__V1__AgentMessage m = SHOAL__V1__AGENT_MESSAGE__INIT;
    Shoal__V1__StoredFiles stored = SHOAL__V1__STORED_FILES__INIT;
    assert_int_equal(member_table_new(&r, NULL), 0);
    e = attached(r, "pi", "house", hex_a);
    m.stored = &stored;
    stored.digests = &odd;
    stored.n_digests = 1;
    size_t n = shoal__v1__agent_message__pack(&m, bytes);
    assert_int_equal(member_table_hear(r, e, bytes, n, 1, &bits, &pong, NULL), SHOAL_EPROTOCOL);
    assert_string_equal(e->stored->digests[0], hex_a); /* what it said before stays */
    member_table_free(r);
}

static int hear_one(model_holders *h, const char *digest, const char *node, const char *address)
{
    Shoal__V1__Holder x = SHOAL__V1__HOLDER__INIT, *list[] = {&x};
    Shoal__V1__HeldFile f = SHOAL__V1__HELD_FILE__INIT, *files[] = {&f};
    Shoal__V1__Holders m = SHOAL__V1__HOLDERS__INIT;
    x.node = (char *)node;
    x.address = (char *)address;
    f.digest = (char *)digest;
    f.holders = list;
    f.n_holders = 1;
    m.files = files;
    m.n_files = 1;
    return model_holders_hear(h, &m, NULL);
}

static void holders_are_asked_unless_they_have_failed(void **state)
{
    model_holders h = {0};
    assert_null(model_holders_pick(&h, hex_a, 1));
    assert_int_equal(hear_one(&h, hex_a, "pi", "10.0.0.1:7081"), 0);
    assert_string_equal(model_holders_pick(&h, hex_a, 1)->node, "pi");
    assert_null(model_holders_pick(&h, hex_b, 1));
    assert_int_equal(hear_one(&h, "xyz", "pi", "10.0.0.1:7081"), SHOAL_EINVALID);
    assert_int_equal(hear_one(&h, hex_a, "p i", "10.0.0.1:7081"), SHOAL_EINVALID);
    assert_int_equal(hear_one(&h, hex_a, "pi", "unix:/run/x"), SHOAL_EINVALID);
    assert_int_equal(hear_one(&h, hex_a, "pi", ":7081"), SHOAL_EINVALID);
    assert_int_equal(hear_one(&h, hex_a, "pi", "10.0.0.1:0"), SHOAL_EINVALID);
    assert_non_null(model_holders_pick(&h, hex_a, 1)); /* what it knew stays */
    model_holders_shun(&h, "pi", hex_b, 100);
    assert_non_null(model_holders_pick(&h, hex_a, 1));
    model_holders_shun(&h, "pi", hex_a, 100);
    assert_null(model_holders_pick(&h, hex_a, 99));
    assert_non_null(model_holders_pick(&h, hex_a, 100));
    model_holders_shun(&h, "pi", NULL, 1000);
    for (int i = 0; i < 3 * HOLDERS_SHUNNED_MAX; i++) model_holders_shun(&h, "barn", hex_a, 500); /* others */
    assert_null(model_holders_pick(&h, hex_a, 999));
    assert_int_equal(hear_one(&h, hex_a, "pi", "10.0.0.1:7081"), 0); /* said again, it is shunned still */
    assert_null(model_holders_pick(&h, hex_a, 999));
    model_holders_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_folder_is_said_and_understood),
        cmocka_unit_test(a_folder_of_ctranslate2_travels_with_its_weights),
        cmocka_unit_test(a_pinned_file_is_not_read),
        cmocka_unit_test(paths_lead_nowhere_else),
        cmocka_unit_test(lists_that_contradict_themselves_are_refused),
        cmocka_unit_test(an_assignment_with_adapters_is_said_and_understood),
        cmocka_unit_test(assignments_that_make_no_sense_are_refused),
        cmocka_unit_test(stages_arrive_as_they_were_ordered),
        cmocka_unit_test(layers_that_make_no_sense_are_refused),
        cmocka_unit_test(options_that_are_no_texts_of_their_own_are_refused),
        cmocka_unit_test(who_lacks_a_file_hears_of_those_that_have_it_the_near_ones_first),
        cmocka_unit_test(a_machine_that_claims_what_cannot_be_is_refused),
        cmocka_unit_test(holders_are_asked_unless_they_have_failed),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
