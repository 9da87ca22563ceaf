/* The store of models against a real control plane and nodes that die, lie and drip: files come, go on where
 * they were, and are what their digest says. */
#include "control_world.h"

#include <sys/stat.h>

#include "base/file.h"
#include "base/sha256.h"
#include "transfer/model_send.h"
#include "transfer/model_store.h"
#include "grpc/grpc.h"

enum { FILE_BYTES = 3000000 };

static control_model models[4];
static char paths[4][256], digests[2][65];
static int n_come;

static void nothing_here(void *user, const worker_spec *workers, size_t n) {}

static void has_come(void *user)
{
    n_come++;
}

static void write_file(const char *path, const void *data, size_t n)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static void place_models(size_t n)
{
    shoal_err err;
    const control_place_options o = {.models = models, .n_models = n, .here = nothing_here};
    if (control_place(w.control, &o, &err) != 0) fail_msg("%s", err.message);
}

/* Two files that the control plane places; the second one's digest is a lie. */
static uint8_t *make_files(void)
{
    uint8_t *data = malloc(FILE_BYTES);
    sha256_digest d;
    assert_non_null(data);
    for (size_t i = 0; i < FILE_BYTES; i++) data[i] = (uint8_t)(i * 2654435761u >> 13);
    sha256_of(data, FILE_BYTES, &d);
    sha256_hex(&d, digests[0]);
    memset(digests[1], 'a', 64);
    for (int i = 0; i < 2; i++) {
        snprintf(paths[i], sizeof paths[i], "%s/m%d.gguf", place, i);
        write_file(paths[i], data, FILE_BYTES);
        models[i] = (control_model){
            .want = {.name = i ? "liar" : "good", .n_replicas = 1, .memory_bytes = FILE_BYTES},
            .spec = {.model = i ? "liar" : "good", .path = paths[i], .sha256 = digests[i]}};
    }
    return data;
}

static uint8_t *serve_files(void)
{
    uint8_t *data = make_files();
    place_models(2);
    return data;
}

static artifact artifact_of(const char *name, const char *digest)
{
    artifact p = {.bytes = FILE_BYTES};
    snprintf(p.name, sizeof p.name, "%s", name);
    snprintf(p.digest, sizeof p.digest, "%s", digest);
    return p;
}

static tls_context *node_context(tls_side side, const char *name)
{
    char cert[256], root[256];
    shoal_err err;
    tls_context *t;
    snprintf(cert, sizeof cert, "%s/%s/member.pem", place, name);
    snprintf(root, sizeof root, "%s/%s/ca.crt", place, name);
    const tls_options o = {.cert_file = cert, .key_file = cert, .ca_file = root};
    if (tls_context_new(&t, side, &o, &err) != 0) fail_msg("%s", err.message);
    return t;
}

static model_store *open_store(machine_up *m, char folder[256], uint64_t max_bytes)
{
    shoal_err err;
    model_store *s = NULL;
    up_join(m, "pi");
    n_come = 0;
    snprintf(folder, 256, "%s/store", place);
    const model_store_options o = {
        .folder = folder, .max_bytes = max_bytes, .changed = has_come, .time = env_sim_env(w.sim)};
    tls_context *nodes = node_context(TLS_CLIENT, "pi");
    if (model_store_open(&s, &w.loop, &o, &err) != 0 ||
        model_store_source(s, w.address, attach_tls(m->a), nodes, &err) != 0)
        fail_msg("%s", err.message);
    tls_context_unref(nodes);
    return s;
}

static void close_store(model_store *s, machine_up *m)
{
    bool closed = false;
    model_store_close(s, world_closed, &closed);
    TURN_UNTIL(closed);
    up_stop(m);
}

/* ---- from the gateway ---------------------------------------------------------------------------- */

static void a_file_comes_and_a_lie_keeps_no_other_waiting(void **state)
{
    machine_up m;
    char folder[256], path[MODEL_PATH_SIZE];
    uint8_t *data = serve_files();
    model_store *s = open_store(&m, folder, 0);
    const artifact a = artifact_of("x.gguf", digests[1]), b = artifact_of("y.gguf", digests[0]);
    const artifact *both[] = {&a, &b};
    model_store_want(s, both, 2);
    TURN_UNTIL(n_come == 1);
    assert_true(model_store_find(s, &b, path));
    assert_false(model_store_find(s, &a, path));
    assert_int_equal(model_store_count(s), 1);
    assert_string_equal(model_store_at(s, 0)->digest, digests[0]);
    assert_true(model_store_path(s, digests[0], path));
    assert_false(model_store_path(s, digests[1], path));
    assert_false(model_store_path(s, "../../etc/passwd", path));
    close_store(s, &m);
    free(data);
}

/* A part is gone on with; one whose bytes are wrong is thrown away when that is found, and fetched again. */
static void a_part_is_gone_on_with_and_a_wrong_one_is_not_kept(void **state)
{
    machine_up m;
    char folder[256], path[MODEL_PATH_SIZE], part[MODEL_PATH_SIZE];
    uint8_t *data = serve_files();
    model_store *s = open_store(&m, folder, 0);
    const artifact file = artifact_of("x.gguf", digests[0]), *one[] = {&file};
    snprintf(part, sizeof part, "%s/%s.part", folder, digests[0]);
    for (int wrong = 0; wrong < 2; wrong++) {
        data[5] ^= (uint8_t)wrong;
        write_file(part, data, FILE_BYTES / 3);
        n_come = 0;
        model_store_want(s, one, 1);
        TURN_UNTIL(n_come == 1);
        assert_true(model_store_find(s, &file, path));
        assert_false(file_exists(part));
        assert_int_equal(remove(path), 0);
    }
    close_store(s, &m);
    free(data);
}

static void what_nobody_wants_makes_room(void **state)
{
    machine_up m;
    char folder[256], path[MODEL_PATH_SIZE], old[512];
    uint8_t *data = serve_files();
    model_store *s = open_store(&m, folder, FILE_BYTES + 1000);
    snprintf(old, sizeof old, "%s/%064d.gguf", folder, 7);
    write_file(old, data, 2000);
    const artifact file = artifact_of("x.gguf", digests[0]), *one[] = {&file};
    model_store_want(s, one, 1);
    TURN_UNTIL(n_come == 1);
    assert_true(model_store_find(s, &file, path));
    assert_false(file_exists(old));
    close_store(s, &m);
    free(data);
}

static void what_never_fits_evicts_nothing(void **state)
{
    machine_up m;
    char folder[256], path[MODEL_PATH_SIZE], old[512];
    uint8_t *data = serve_files();
    model_store *s = open_store(&m, folder, FILE_BYTES - 1);
    snprintf(old, sizeof old, "%s/%064d.gguf", folder, 7);
    write_file(old, data, 2000);
    const artifact file = artifact_of("x.gguf", digests[0]), *one[] = {&file};
    model_store_want(s, one, 1);
    assert_true(file_exists(old));
    assert_false(model_store_find(s, &file, path));
    close_store(s, &m);
    free(data);
}

static void names_from_a_gateway_lead_nowhere_else(void **state)
{
    model_file f;
    char digest[65];
    memset(digest, 'b', 64);
    digest[64] = '\0';
    assert_int_equal(model_file_make(&f, "a.b/../../x", digest, 1, NULL), 0);
    assert_string_equal(f.suffix, "");
    assert_int_equal(model_file_make(&f, "../m.gguf", digest, 1, NULL), 0);
    assert_string_equal(f.suffix, ".gguf");
    assert_int_equal(model_file_make(&f, "m.part", digest, 1, NULL), 0);
    assert_string_equal(f.suffix, "");
    assert_int_equal(model_file_make(&f, "m.d", digest, 1, NULL), 0);
    assert_string_equal(f.suffix, "");
    digest[3] = '/';
    assert_int_equal(model_file_make(&f, "m.gguf", digest, 1, NULL), SHOAL_EINVALID);
    assert_int_equal(model_file_make(&f, "m.gguf", "../../etc", 1, NULL), SHOAL_EINVALID);
}

/* ---- folders ------------------------------------------------------------------------------------- */

static void file_in(const char *folder, const char *name, const char *text)
{
    char path[MODEL_PATH_SIZE + 64];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    write_file(path, text, strlen(text));
}

static void a_folder_comes_whole_and_goes_when_it_is_not_wanted(void **state)
{
    machine_up m;
    artifact p = {0};
    char folder[256], path[MODEL_PATH_SIZE], at[MODEL_PATH_SIZE + 32], hf[256];
    shoal_err err;
    buf text = {0};
    snprintf(hf, sizeof hf, "%s/hf", place);
    snprintf(at, sizeof at, "%s/1_Pooling", hf);
    assert_int_equal(mkdir(hf, 0700), 0);
    assert_int_equal(mkdir(at, 0700), 0);
    file_in(hf, "config.json", "{}");
    file_in(hf, "model.safetensors", "weights");
    file_in(hf, "copy.json", "{}"); /* one digest, two names */
    file_in(hf, "empty.txt", "");
    file_in(hf, "pytorch_model.bin", "the same weights");
    file_in(hf, ".hidden", "x");
    file_in(at, "config.json", "{\"pooling_mode\": \"mean\"}");
    models[0] = (control_model){.want = {.name = "hf", .n_replicas = 1}, .spec = {.model = "hf", .path = hf}};
    place_models(1);
    assert_int_equal(artifact_read(&p, hf, NULL, &err), 0);
    assert_int_equal(p.n_files, 5);
    model_store *s = open_store(&m, folder, 0);
    const artifact *one[] = {&p};
    assert_false(model_store_find(s, &p, path));
    model_store_want(s, one, 1);
    TURN_UNTIL(n_come == 4);
    assert_true(model_store_find(s, &p, path));
    assert_true(model_store_find(s, &p, path)); /* it is there already */
    snprintf(at, sizeof at, "%s/1_Pooling/config.json", path);
    assert_int_equal(file_read(&text, at, 100, &err), 0);
    assert_int_equal(text.len, 24);
    snprintf(at, sizeof at, "%s/pytorch_model.bin", path);
    assert_false(file_exists(at));
    model_store_want(s, NULL, 0);
    assert_false(file_is_dir(path));
    model_store_want(s, one, 1); /* its files are there still */
    assert_true(model_store_find(s, &p, path));
    buf_done(&text);
    artifact_done(&p);
    close_store(s, &m);
}

/* ---- from nodes ---------------------------------------------------------------------------------- */

typedef enum manner { HONEST, DIES, LIES, FLOODS, DRIPS, LACKS } manner;

typedef struct giver {
    manner how;
    const char *name;
    char address[32], path[256];
    int n_asked;
    uint64_t from;
    model_sends sends;
    grpc_server *server;
    tls_context *tls;
} giver;

static bool give_path(const void *user, const char *digest, char ret_path[MODEL_SEND_PATH])
{
    const giver *g = user;
    snprintf(ret_path, MODEL_SEND_PATH, "%s", g->path);
    return g->how != LACKS;
}

static void send_bytes(grpc_call *c, size_t n, int byte)
{
    static uint8_t bytes[200000], packed[200016];
    Shoal__V1__FetchChunk m = SHOAL__V1__FETCH_CHUNK__INIT;
    memset(bytes, byte, n);
    m.data.data = bytes;
    m.data.len = n;
    grpc_call_send(c, packed, shoal__v1__fetch_chunk__pack(&m, packed));
}

static void on_ask(void *user, grpc_call *c, const uint8_t *msg, size_t n)
{
    giver *g = user;
    Shoal__V1__FetchRequest *m = shoal__v1__fetch_request__unpack(NULL, n, msg);
    assert_non_null(m);
    g->n_asked++;
    g->from = m->offset;
    shoal__v1__fetch_request__free_unpacked(m, NULL);
    switch (g->how) {
    case DIES:
        send_bytes(c, 100000, 0);
        grpc_call_end(c, GRPC_UNAVAILABLE, "it dies");
        break;
    case LIES:
        for (uint64_t at = g->from; at < FILE_BYTES; at += 100000) send_bytes(c, 100000, 1);
        grpc_call_end(c, GRPC_OK, NULL);
        break;
    case FLOODS:
        for (uint64_t at = g->from; at <= FILE_BYTES; at += 100000) send_bytes(c, 100000, 1);
        grpc_call_end(c, GRPC_OK, NULL);
        break;
    case DRIPS: send_bytes(c, 1, 1); break;
    default: model_send(&g->sends, c, msg, n, "", give_path, g);
    }
}

static const grpc_method METHODS[] = {{"/shoal.v1.Models/Fetch", on_ask}};

/* A node of the cluster that says that it has the file. DIES sends the true first bytes. */
static void giver_open(giver *g, const char *name, manner how)
{
    char text[TOKEN_TEXT_SIZE];
    shoal_err err;
    *g = (giver){.name = name, .how = how};
    snprintf(g->path, sizeof g->path, "%s", paths[0]);
    world_token(ROLE_NODE, text);
    if (world_join(name, text, NULL, &err) != 0) fail_msg("%s", err.message);
    g->tls = node_context(TLS_SERVER, name);
    assert_int_equal(grpc_server_new(&g->server, &w.loop, METHODS, 1, g, NULL, NULL), 0);
    assert_int_equal(grpc_server_listen_tls(g->server, "127.0.0.1:0", g->tls, NULL), 0);
    snprintf(g->address, sizeof g->address, "127.0.0.1:%d", grpc_server_port(g->server));
}

static void giver_close(giver *g)
{
    bool closed = false;
    grpc_server_close(g->server, world_closed, &closed);
    TURN_UNTIL(closed);
    tls_context_unref(g->tls);
}

static void say_holders(model_store *s, giver *const *givers, size_t n)
{
    Shoal__V1__Holders all = SHOAL__V1__HOLDERS__INIT;
    Shoal__V1__HeldFile f = SHOAL__V1__HELD_FILE__INIT, *files[] = {&f};
    Shoal__V1__Holder h[4], *list[4];
    for (size_t i = 0; i < n; i++) {
        shoal__v1__holder__init(&h[i]);
        h[i].node = (char *)givers[i]->name;
        h[i].address = givers[i]->address;
        list[i] = &h[i];
    }
    f.digest = digests[0];
    f.holders = list;
    f.n_holders = n;
    all.files = files;
    all.n_files = 1;
    model_store_hear(s, &all);
}

/* The first is asked first, the others follow as it fails; what came is what was asked for. */
static void fetch_from(giver *const *givers, size_t n)
{
    machine_up m;
    char folder[256], path[MODEL_PATH_SIZE];
    sha256_digest d;
    char hex[65];
    model_store *s = open_store(&m, folder, 0);
    const artifact file = artifact_of("x.gguf", digests[0]), *one[] = {&file};
    say_holders(s, givers, n);
    model_store_want(s, one, 1);
    TURN_UNTIL(n_come == 1);
    assert_true(model_store_find(s, &file, path));
    assert_int_equal(sha256_file(path, &d, NULL), 0);
    sha256_hex(&d, hex);
    assert_string_equal(hex, digests[0]);
    close_store(s, &m);
}

static void a_node_that_has_it_is_asked_and_the_gateway_is_not(void **state)
{
    giver a;
    uint8_t *data = make_files(); /* the gateway places nothing: it has no file to give */
    giver_open(&a, "attic", HONEST);
    fetch_from((giver *[]){&a}, 1);
    assert_int_equal(a.n_asked, 1);
    giver_close(&a);
    free(data);
}

static void a_fetch_goes_on_at_the_next_where_one_dies(void **state)
{
    giver a, b;
    uint8_t *data = make_files();
    memset(data, 0, 100000); /* what attic sends before it dies is right */
    sha256_digest d;
    sha256_of(data, FILE_BYTES, &d);
    sha256_hex(&d, digests[0]);
    write_file(paths[0], data, FILE_BYTES);
    giver_open(&a, "attic", DIES);
    giver_open(&b, "barn", HONEST);
    fetch_from((giver *[]){&a, &b}, 2);
    assert_int_equal(a.n_asked, 1);
    assert_int_equal(b.n_asked, 1);
    assert_int_equal(b.from, 100000);
    giver_close(&a);
    giver_close(&b);
    free(data);
}

/* A lie, a file too long, one that is not there, and a gateway that has it. */
static void who_lies_is_not_asked_again(void **state)
{
    giver a, b, c;
    uint8_t *data = serve_files();
    giver_open(&a, "attic", LIES);
    giver_open(&b, "barn", FLOODS);
    giver_open(&c, "cellar", LACKS);
    fetch_from((giver *[]){&a, &b, &c}, 3);
    assert_int_equal(a.n_asked, 1);
    assert_int_equal(b.n_asked, 1);
    assert_int_equal(c.n_asked, 1);
    giver_close(&a);
    giver_close(&b);
    giver_close(&c);
    free(data);
}

/* The first bytes of one and the last of another make a wrong file: nobody knows whose. Both are left alone.
 */
static void where_two_had_a_part_neither_is_asked_again(void **state)
{
    giver a, b;
    uint8_t *data = serve_files();
    giver_open(&a, "attic", DIES); /* zeroes, which are wrong here */
    giver_open(&b, "barn", HONEST);
    fetch_from((giver *[]){&a, &b}, 2);
    assert_int_equal(a.n_asked, 1);
    assert_int_equal(b.n_asked, 1); /* then the gateway */
    giver_close(&a);
    giver_close(&b);
    free(data);
}

static void who_drips_is_left(void **state)
{
    giver a, b;
    uint8_t *data = make_files();
    giver_open(&a, "attic", DRIPS);
    giver_open(&b, "barn", HONEST);
    snprintf(b.path, sizeof b.path, "%s", paths[0]);
    data[0] = 1; /* the byte that drips is right */
    sha256_digest d;
    sha256_of(data, FILE_BYTES, &d);
    sha256_hex(&d, digests[0]);
    write_file(paths[0], data, FILE_BYTES);
    fetch_from((giver *[]){&a, &b}, 2);
    assert_int_equal(a.n_asked, 1);
    assert_int_equal(b.from, 1);
    giver_close(&a);
    giver_close(&b);
    free(data);
}

/* A machine with another name at that address, however honest. */
static void who_is_somebody_else_is_not_believed(void **state)
{
    giver a;
    uint8_t *data = serve_files();
    giver_open(&a, "attic", HONEST);
    a.name = "barn";
    fetch_from((giver *[]){&a}, 1);
    assert_int_equal(a.n_asked, 0);
    giver_close(&a);
    free(data);
}

static bool is_file(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0;
}

static void damaged_files_get_another_name_and_few_of_them_stay(void **state)
{
    char folder[200], path[MODEL_PATH_SIZE], digest[65] = "";
    blob_store s;
    model_file f;
    size_t n_aside = 0;
    snprintf(folder, sizeof folder, "%s/blobs", place);
    assert_int_equal(blob_store_open(&s, folder, 0, NULL), 0);
    for (int i = 0; i < 5; i++) {
        memset(digest, 'a' + i, 64);
        assert_int_equal(model_file_make(&f, "m.gguf", digest, 3, NULL), 0);
        blob_store_path(&s, &f, false, path);
        write_file(path, "bad", 3);
        blob_store_look(&s);
        assert_int_equal(s.n_held, 1);
        assert_true(blob_store_set_aside(&s, &f));
        assert_false(is_file(path));
        blob_store_look(&s);
        assert_int_equal(s.n_held, 0); /* nobody is told that it is here */
    }
    for (int i = 0; i < 5; i++) {
        memset(digest, 'a' + i, 64);
        snprintf(path, sizeof path, "%s/damaged-%s.gguf", folder, digest);
        n_aside += is_file(path);
    }
    assert_int_equal(n_aside, BLOB_STORE_DAMAGED);
    assert_true(is_file(path));                /* the last one */
    assert_true(blob_store_set_aside(&s, &f)); /* it is not there */
    blob_store_close(&s);
}

static void count_change(void *user)
{
    ++*(int *)user;
}

static void files_that_are_not_what_their_names_say_are_found(void **state)
{
    char folder[200], path[MODEL_PATH_SIZE];
    uint8_t *data = make_files();
    model_store *s;
    shoal_err err;
    int n_changed = 0;
    bool closed = false;
    snprintf(folder, sizeof folder, "%s/store", place);
    const model_store_options o = {
        .folder = folder, .changed = count_change, .user = &n_changed, .time = env_sim_env(w.sim)};
    assert_int_equal(model_store_open(&s, &w.loop, &o, &err), 0);
    artifact good = artifact_of("m.gguf", digests[0]), other = artifact_of("m.gguf", digests[1]);
    const artifact *all[] = {&good, &other};
    snprintf(path, sizeof path, "%s/%s.gguf", folder, digests[0]);
    write_file(path, data, FILE_BYTES);
    snprintf(path, sizeof path, "%s/%s.gguf", folder, digests[1]);
    write_file(path, data, FILE_BYTES); /* as long, and another one */
    model_store_check(s, all, 2);
    TURN_UNTIL(n_changed > 0);
    assert_true(model_store_find(s, &good, path));
    assert_false(model_store_find(s, &other, path));
    model_store_check(s, all, 1);
    model_store_close(s, world_closed, &closed); /* while it runs */
    TURN_UNTIL(closed);
    free(data);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, world_open, world_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_file_comes_and_a_lie_keeps_no_other_waiting),
        TEST(a_part_is_gone_on_with_and_a_wrong_one_is_not_kept),
        TEST(what_nobody_wants_makes_room),
        TEST(what_never_fits_evicts_nothing),
        TEST(damaged_files_get_another_name_and_few_of_them_stay),
        TEST(files_that_are_not_what_their_names_say_are_found),
        cmocka_unit_test(names_from_a_gateway_lead_nowhere_else),
        TEST(a_folder_comes_whole_and_goes_when_it_is_not_wanted),
        TEST(a_node_that_has_it_is_asked_and_the_gateway_is_not),
        TEST(a_fetch_goes_on_at_the_next_where_one_dies),
        TEST(who_lies_is_not_asked_again),
        TEST(where_two_had_a_part_neither_is_asked_again),
        TEST(who_drips_is_left),
        TEST(who_is_somebody_else_is_not_believed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
