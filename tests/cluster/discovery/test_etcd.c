/* A real etcd-server, and gateways that find each other through it while it freezes, dies, forgets and asks
 * for passwords. */
#include "etcd_house.h"

#include "../../core/grpc/certificates.h"
#include "discovery/etcd.h"
#include "etcd/rpc.pb-c.h"

#define ETCD_PUT          "/etcdserverpb.KV/Put"
#define ETCD_DELETE_RANGE "/etcdserverpb.KV/DeleteRange"

typedef struct hall {
    etcd_server s;
    house h;
    const char *endpoints[1];
    etcd_session_options o;
} hall;

static void hall_open(hall *x)
{
    server_open(&x->s);
    house_open(&x->h);
    x->endpoints[0] = x->s.endpoint;
    x->o = (etcd_session_options){.endpoints = x->endpoints, .n_endpoints = 1};
    server_start(&x->s);
}

static void hall_close(hall *x)
{
    house_close(&x->h);
    server_close(&x->s);
}

/* One publishes m/0, the other has found it. */
static void hall_pair(hall *x, gate *a, gate *b, unsigned ttl_s)
{
    x->o.lease_s = ttl_s;
    gate_open(a, &x->h, "a", &x->o);
    gate_publish(a, "/s/");
    gate_put(a, "m/0", 7);
    gate_open(b, &x->h, "b", &x->o);
    gate_read(b, "/s/", 0);
    UNTIL(&x->h, gate_sees(b, "a/m/0") && gate_synced(b));
}

/* ---- members ------------------------------------------------------------------------------------- */

static void etcd_members_come_and_go(void **state)
{
    if (missing_etcd()) skip();
    hall x;
    gate a, b;
    hall_open(&x);
    hall_pair(&x, &a, &b, 10);
    const replica *r = registry_get(b.g, "a/m/0");
    assert_int_equal(r->generation, 7);
    assert_string_equal(r->model, "m");
    assert_string_equal(r->node->name, "a");
    assert_int_equal(r->node->n_cores, 4);
    gate_put(&a, "m/1", 1);
    UNTIL(&x.h, gate_sees(&b, "a/m/1"));
    gate_put(&a, "m/0", 9); /* a new life */
    UNTIL(&x.h, registry_get(b.g, "a/m/0")->generation == 9);
    const member drains = {
        .id = "m/0", .generation = 9, .model = "m", .address = x.h.address, .state = REPLICA_DRAINING};
    OK(source_put(a.own, &drains, &err));
    UNTIL(&x.h, registry_get(b.g, "a/m/0")->state == REPLICA_DRAINING);
    source_drop(a.own, "m/0", 9);
    UNTIL(&x.h, !registry_get(b.g, "a/m/0"));
    assert_true(gate_sees(&b, "a/m/1"));
    gate_die(&b);
    gate_die(&a);
    hall_close(&x);
}

/* A machine that is attached to a is one at its own site to b, too, and the same one as when it attaches to
 * b: its replica is not another one then, and outlives a's word. */
static void etcd_tells_of_attached_machines(void **state)
{
    if (missing_etcd()) skip();
    hall x;
    gate a, b;
    source *agents, *others;
    const char *const labels[] = {"kitchen"};
    const node_device gpu = {"cuda:0", "cuda", 24000};
    node pi = {.name = "pi",
               .site = "attic",
               .isa = "neondot",
               .n_cores = 2,
               .memory_bytes = 16000,
               .memory_free_bytes = 7900,
               .load_1m = 1.2,
               .epoch = 1,
               .labels = labels,
               .n_labels = 1,
               .devices = &gpu,
               .n_devices = 1};
    hall_open(&x);
    hall_pair(&x, &a, &b, 10);
    gate_publish(&b, "/s/");
    gate_read(&a, "/s/", 0);
    OK(source_open(&agents, a.g, "agents", &err));
    OK(source_put_node(agents, &pi, &err));
    const member m = {.id = "pi/m/0", .generation = 1, .model = "m", .address = x.h.address, .node = "pi"};
    OK(source_put(agents, &m, &err));
    UNTIL(&x.h, gate_sees(&b, "pi/m/0"));
    const replica *there = registry_get(b.g, "pi/m/0");
    const node *at = there->node;
    assert_string_equal(at->name, "pi");
    assert_string_equal(at->site, "attic");
    assert_true(node_has_label(at, "kitchen"));
    assert_int_equal(node_device_bytes(at, "cuda", NULL), 24000);
    assert_int_equal(at->memory_free_bytes, 7000);
    assert_string_equal(registry_get(b.g, "a/m/0")->node->name, "a");
    pi.draining = true;
    OK(source_put_node(agents, &pi, &err));
    UNTIL(&x.h, registry_node(b.g, "pi")->draining);

    OK(source_open(&others, b.g, "agents", &err)); /* it is attached to b now, and a hears of it */
    pi.site = "cellar";
    pi.epoch = 2;
    OK(source_put_node(others, &pi, &err));
    OK(source_put(others, &m, &err));
    assert_string_equal(registry_get(b.g, "pi/m/0")->source, "agents");
    UNTIL(&x.h, strcmp(registry_node(a.g, "pi")->site, "cellar") == 0);
    pi.epoch = 1; /* what a has of it is old */
    pi.site = "attic";
    OK(source_put_node(agents, &pi, &err));
    assert_string_equal(registry_node(a.g, "pi")->site, "cellar");
    UNTIL(&x.h, strcmp(registry_get(a.g, "pi/m/0")->source, "etcd") == 0);
    source_drop_node(agents, "pi");
    gate_put(&a, "m/1", 1);
    UNTIL(&x.h, gate_sees(&b, "a/m/1"));
    assert_string_equal(registry_node(b.g, "pi")->site, "cellar");
    assert_ptr_equal(registry_get(b.g, "pi/m/0"), there);
    assert_int_equal(b.n_dropped, 0);
    assert_int_equal(a.n_dropped, 0);
    source_close(others);
    UNTIL(&x.h, !registry_get(b.g, "pi/m/0"));
    source_close(agents);
    gate_die(&b);
    gate_die(&a);
    hall_close(&x);
}

static void etcd_drops_what_a_killed_publisher_served(void **state)
{
    if (missing_etcd()) skip();
    hall x;
    gate a, b;
    hall_open(&x);
    hall_pair(&x, &a, &b, 1);
    gate_die(&a);
    grpc_server_close(x.h.worker, NULL, NULL); /* its workers die with it */
    x.h.worker = NULL;
    UNTIL(&x.h, registry_count(b.g) == 0);
    UNTIL(&x.h, registry_node(b.g, "a") == NULL);
    gate_die(&b);
    hall_close(&x);
}

/* Its key went, but it answers: it is dropped when its time is over, not sooner. */
static void etcd_keeps_a_living_replica_for_a_while(void **state)
{
    if (missing_etcd()) skip();
    hall x;
    gate a, b;
    hall_open(&x);
    x.o.lease_s = 1;
    gate_open(&a, &x.h, "a", &x.o);
    gate_publish(&a, "/s/");
    gate_put(&a, "m/0", 7);
    gate_open(&b, &x.h, "b", &x.o);
    gate_read(&b, "/s/", 1000);
    UNTIL(&x.h, gate_sees(&b, "a/m/0"));
    gate_die(&a);
    UNTIL(&x.h, registry_count(b.g) == 0);
    gate_open(&a, &x.h, "a", &x.o); /* back with an older generation, which is the truth now */
    gate_publish(&a, "/s/");
    gate_put(&a, "m/0", 3);
    UNTIL(&x.h, gate_sees(&b, "a/m/0"));
    assert_int_equal(registry_get(b.g, "a/m/0")->generation, 3);
    gate_die(&b);
    gate_die(&a);
    hall_close(&x);
}

/* ---- etcd away ----------------------------------------------------------------------------------- */

static void etcd_frozen_keeps_the_view_and_says_so(void **state)
{
    if (missing_etcd()) skip();
    hall x;
    gate a, b;
    hall_open(&x);
    hall_pair(&x, &a, &b, 2);
    kill(x.s.pid, SIGSTOP);
    UNTIL(&x.h, gate_away(&b));
    assert_non_null(strstr(source_trouble(gate_etcd(&b)), x.s.endpoint));
    house_run_ms(&x.h, 2500); /* longer than the lease */
    assert_true(gate_sees(&b, "a/m/0"));
    kill(x.s.pid, SIGCONT);
    UNTIL(&x.h, gate_synced(&b));
    gate_put(&a, "m/1", 1);
    UNTIL(&x.h, gate_sees(&b, "a/m/1"));
    assert_int_equal(b.n_dropped, 0);
    gate_die(&b);
    gate_die(&a);
    hall_close(&x);
}

static void etcd_killed_and_started_again_drops_nobody(void **state)
{
    if (missing_etcd()) skip();
    hall x;
    gate a, b;
    hall_open(&x);
    hall_pair(&x, &a, &b, 5);
    server_kill(&x.s);
    UNTIL(&x.h, gate_away(&b));
    gate_put(&a, "m/1", 1); /* meanwhile */
    server_start(&x.s);
    UNTIL(&x.h, gate_synced(&b) && gate_sees(&b, "a/m/1"));
    server_kill(&x.s); /* and with nothing left of its memory */
    UNTIL(&x.h, gate_away(&b));
    server_wipe(&x.s);
    server_start(&x.s);
    UNTIL(&x.h, gate_synced(&b) && etcd_publisher_waiting(a.publisher) == 0);
    gate_put(&a, "m/2", 1);
    UNTIL(&x.h, gate_sees(&b, "a/m/2"));
    assert_true(gate_sees(&b, "a/m/0"));
    assert_int_equal(b.n_dropped, 0);
    gate_die(&b);
    gate_die(&a);
    hall_close(&x);
}

static void etcd_that_was_never_there_is_said_to_be_away(void **state)
{
    house h;
    gate b;
    house_open(&h);
    const char *const nowhere[] = {"127.0.0.1:1", "127.0.0.1:2"};
    gate_open(&b, &h, "b", &(etcd_session_options){.endpoints = nowhere, .n_endpoints = 2});
    gate_read(&b, "/s/", 0);
    UNTIL(&h, gate_away(&b));
    assert_false(source_is_synced(gate_etcd(&b)));
    gate_die(&b);
    house_close(&h);
}

static void etcd_goes_to_the_next_endpoint(void **state)
{
    if (missing_etcd()) skip();
    hall x;
    gate b;
    hall_open(&x);
    const char *const three[] = {"127.0.0.1:1", x.s.endpoint, "127.0.0.1:2"};
    gate_open(&b, &x.h, "b", &(etcd_session_options){.endpoints = three, .n_endpoints = 3});
    gate_read(&b, "/s/", 0);
    UNTIL(&x.h, gate_synced(&b));
    assert_string_equal(etcd_session_endpoint(b.c), x.s.endpoint);
    gate_die(&b);
    hall_close(&x);
}

/* ---- any call ------------------------------------------------------------------------------------ */

typedef struct asked {
    bool done;
    bool unsure; /* it was asked again, and the first time may have done it */
    grpc_status status;
    char message[128];
    int64_t revision;
} asked;

/* Every answer of KV begins with the header. */
static void on_asked(void *user, const etcd_answer *a)
{
    asked *x = user;
    x->done = true;
    x->status = a->status;
    snprintf(x->message, sizeof x->message, "%s", a->message ? a->message : "");
    Etcdserverpb__PutResponse *m = etcdserverpb__put_response__unpack(NULL, a->n, a->bytes);
    if (m && m->header) x->revision = m->header->revision;
    if (m) etcdserverpb__put_response__free_unpacked(m, NULL);
}

static asked ask_once(house *h, etcd_session *c, const char *path, const ProtobufCMessage *m)
{
    asked x = {0};
    UNTIL(h, etcd_session_is_up(c));
    assert_non_null(etcd_session_call(c, path, m, on_asked, &x));
    UNTIL(h, x.done);
    return x;
}

/* A call that is late ends with its channel: a busy machine may not get to answer it in three seconds. */
static bool came_to_nothing(const asked *x)
{
    return x->status == GRPC_CANCELLED || x->status == GRPC_DEADLINE_EXCEEDED ||
           x->status == GRPC_UNAVAILABLE;
}

static asked ask(house *h, etcd_session *c, const char *path, const ProtobufCMessage *m)
{
    asked x = ask_once(h, c, path, m);
    for (int i = 0; i < 20 && came_to_nothing(&x); i++) {
        x = ask_once(h, c, path, m);
        x.unsure = !came_to_nothing(&x);
    }
    return x;
}

static int64_t write_key(house *h, etcd_session *c, const char *key, const char *value)
{
    Etcdserverpb__PutRequest m = ETCDSERVERPB__PUT_REQUEST__INIT;
    m.key = (ProtobufCBinaryData){.data = (uint8_t *)key, .len = strlen(key)};
    m.value = (ProtobufCBinaryData){.data = (uint8_t *)value, .len = strlen(value)};
    asked a = ask(h, c, ETCD_PUT, &m.base);
    if (a.status == GRPC_UNAUTHENTICATED) a = ask(h, c, ETCD_PUT, &m.base); /* with a new token */
    assert_int_equal(a.status, GRPC_OK);
    return a.revision;
}

/* The same shape as LeaseRevokeRequest: one number, in field 1. */
static void compact(house *h, etcd_session *c, int64_t revision)
{
    Etcdserverpb__LeaseRevokeRequest m = ETCDSERVERPB__LEASE_REVOKE_REQUEST__INIT;
    m.id = revision;
    asked a = ask(h, c, "/etcdserverpb.KV/Compact", &m.base);
    if (a.status != GRPC_OK && !a.unsure) fail_msg("compact: %s", a.message);
}

/* ---- what others write --------------------------------------------------------------------------- */

static void etcd_nonsense_is_refused_and_disturbs_nobody(void **state)
{
    if (missing_etcd()) skip();
    hall x;
    gate a, b;
    hall_open(&x);
    hall_pair(&x, &a, &b, 10);
    static const char *const values[] = {
        "",
        "{",
        "[1]",
        "{\"model\":\"m\"}",
        "{\"model\":\"m\",\"address\":\"nowhere\"}",
        "{\"model\":\"m\\n\",\"address\":\"10.0.0.1:1\"}",
        "{\"model\":\"m\",\"address\":\"10.0.0.1:1\",\"generation\":-1}",
        "{\"model\":\"m\",\"address\":\"10.0.0.1:1\",\"state\":\"asleep\"}",
    };
    char key[64];
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        snprintf(key, sizeof key, "/s/replicas/evil/m/%zu", i);
        write_key(&x.h, a.c, key, values[i]);
    }
    write_key(&x.h, a.c, "/s/replicas/EVIL/m/0", "{\"model\":\"m\",\"address\":\"10.0.0.1:1\"}");
    write_key(&x.h, a.c, "/s/replicas/evil", "{\"model\":\"m\",\"address\":\"10.0.0.1:1\"}");
    write_key(&x.h, a.c, "/s/replicas/e\x01/m", "x");
    write_key(&x.h, a.c, "/s/replicas/far/m/0",
              "{\"model\":\"m\",\"address\":\"unix:/tmp/x.sock\",\"machine\":\"elsewhere\"}");
    write_key(&x.h, a.c, "/s/replicas/a/m/0", "{}"); /* over a good one: it stays as it was last seen */
    write_key(&x.h, a.c, "/s/replicas/good/m/0", "{\"model\":\"m\",\"address\":\"127.0.0.1:9\",\"new\":1}");
    UNTIL(&x.h, registry_get(b.g, "good/m/0"));
    assert_int_equal(registry_count(b.g), 2);
    assert_true(gate_sees(&b, "a/m/0"));
    gate_die(&b);
    gate_die(&a);
    hall_close(&x);
}

/* ---- compaction ---------------------------------------------------------------------------------- */

/* The reader stands on a loop of its own, so that it sleeps while the others go on. */
static void etcd_lists_anew_what_was_compacted(void **state)
{
    if (missing_etcd()) skip();
    hall x;
    house sleeper;
    gate a, b;
    hall_open(&x);
    house_open(&sleeper);
    gate_open(&a, &x.h, "a", &x.o);
    write_key(&x.h, a.c, "/s/replicas/old/m/0", "{\"model\":\"m\",\"address\":\"127.0.0.1:9\"}");
    gate_open(&b, &sleeper, "b", &x.o);
    gate_read(&b, "/s/", 0);
    UNTIL(&sleeper, gate_synced(&b));
    assert_non_null(registry_get(b.g, "old/m/0"));
    etcd_session_doubt(b.c, "the test says so");
    Etcdserverpb__DeleteRangeRequest gone = ETCDSERVERPB__DELETE_RANGE_REQUEST__INIT;
    gone.key = (ProtobufCBinaryData){.data = (uint8_t *)"/s/replicas/old/m/0", .len = 19};
    assert_int_equal(ask(&x.h, a.c, ETCD_DELETE_RANGE, &gone.base).status, GRPC_OK);
    write_key(&x.h, a.c, "/s/replicas/new/m/0", "{\"model\":\"m\",\"address\":\"127.0.0.1:9\"}");
    int64_t revision = write_key(&x.h, a.c, "/elsewhere", "");
    compact(&x.h, a.c, revision);
    UNTIL(&sleeper, registry_get(b.g, "new/m/0"));
    assert_null(registry_get(b.g, "old/m/0"));
    write_key(&x.h, a.c, "/s/replicas/new/m/1", "{\"model\":\"m\",\"address\":\"127.0.0.1:9\"}");
    UNTIL(&sleeper, registry_get(b.g, "new/m/1"));
    gate_die(&b);
    gate_die(&a);
    house_close(&sleeper);
    hall_close(&x);
}

/* ---- who may --------------------------------------------------------------------------------------- */

static void set_password(const char *path, const char *password)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f, "%s\n", password);
    fclose(f);
}

/* UserAdd and UserChangePassword have the shape of AuthenticateRequest, as have UserGrantRole (user, role),
 * RoleAdd (name) and AuthEnable (nothing). */
static void administer(hall *x, etcd_session *c, const char *method, const char *first, const char *second)
{
    Etcdserverpb__AuthenticateRequest m = ETCDSERVERPB__AUTHENTICATE_REQUEST__INIT;
    char path[64];
    snprintf(path, sizeof path, "/etcdserverpb.Auth/%s", method);
    m.name = (char *)first;
    m.password = (char *)second;
    asked a = ask(&x->h, c, path, &m.base);
    if (a.status != GRPC_OK && !a.unsure) fail_msg("%s: %s", method, a.message);
}

static void lock_up(hall *x)
{
    gate admin;
    gate_open(&admin, &x->h, "admin", &x->o);
    administer(x, admin.c, "UserAdd", "root", "secret");
    administer(x, admin.c, "RoleAdd", "root", "");
    administer(x, admin.c, "UserGrantRole", "root", "root");
    administer(x, admin.c, "UserAdd", "guest", "guest");
    administer(x, admin.c, "AuthEnable", "", "");
    gate_die(&admin);
}

static void etcd_wants_certificates_and_passwords(void **state)
{
    if (missing_etcd()) skip();
    hall x;
    pki p;
    gate b, c;
    char file[96];
    tls_context *tls;
    pki_make(&p);
    server_open(&x.s);
    house_open(&x.h);
    x.s.crt = p.node.crt, x.s.key = p.node.key, x.s.ca = p.ca;
    server_start(&x.s);
    const tls_options t = {.cert_file = p.gateway.crt, .key_file = p.gateway.key, .ca_file = p.ca};
    OK(tls_context_new(&tls, TLS_CLIENT, &t, &err));
    x.endpoints[0] = x.s.endpoint;
    x.o = (etcd_session_options){.endpoints = x.endpoints,
                                 .n_endpoints = 1,
                                 .tls = tls,
                                 .call_ms = 30000,
                                 .connect_ms = 30000}; /* it hashes slowly */
    lock_up(&x);
    snprintf(file, sizeof file, "%s/password", x.s.dir);

    gate_open(&b, &x.h, "b", &x.o); /* the name in a certificate is a user, too; this one has no rights */
    gate_read(&b, "/s/", 0);
    UNTIL(&x.h, strstr(source_trouble(gate_etcd(&b)), "permission denied") != NULL);
    gate_die(&b);

    set_password(file, "guess");
    x.o.user = "root";
    x.o.password_file = file;
    gate_open(&b, &x.h, "b", &x.o); /* the wrong one */
    gate_read(&b, "/s/", 0);
    UNTIL(&x.h, strstr(source_trouble(gate_etcd(&b)), "invalid user ID or password") != NULL);
    assert_null(strstr(source_trouble(gate_etcd(&b)), "guess"));
    set_password(file, "secret"); /* mended under it */
    UNTIL(&x.h, gate_synced(&b));

    administer(&x, b.c, "UserChangePassword", "root", "other"); /* which ends the token */
    set_password(file, "other");
    write_key(&x.h, b.c, "/s/replicas/x/m/0", "{\"model\":\"m\",\"address\":\"127.0.0.1:9\"}");
    UNTIL(&x.h, registry_get(b.g, "x/m/0"));

    set_password(file, "guest"); /* a user without a right */
    x.o.user = "guest";
    gate_open(&c, &x.h, "c", &x.o);
    gate_read(&c, "/s/", 0);
    UNTIL(&x.h, strstr(source_trouble(gate_etcd(&c)), "permission denied") != NULL);
    gate_die(&c);
    gate_die(&b);
    tls_context_unref(tls);
    unlink(file);
    hall_close(&x);
    pki_remove(&p);
}

static void etcd_of_another_ca_is_not_trusted(void **state)
{
    if (missing_etcd()) skip();
    hall x;
    pki p;
    gate b;
    tls_context *tls;
    pki_make(&p);
    server_open(&x.s);
    house_open(&x.h);
    x.s.crt = p.node.crt, x.s.key = p.node.key, x.s.ca = p.ca;
    server_start(&x.s);
    OK(tls_context_new(&tls, TLS_CLIENT, &(tls_options){.ca_file = p.other_ca}, &err));
    x.endpoints[0] = x.s.endpoint;
    x.o = (etcd_session_options){.endpoints = x.endpoints, .n_endpoints = 1, .tls = tls};
    gate_open(&b, &x.h, "b", &x.o);
    gate_read(&b, "/s/", 0);
    UNTIL(&x.h, strstr(source_trouble(gate_etcd(&b)), "certificate") != NULL);
    assert_false(source_is_synced(gate_etcd(&b)));
    gate_die(&b);
    tls_context_unref(tls);
    hall_close(&x);
    pki_remove(&p);
}

/* ---- leaders ------------------------------------------------------------------------------------- */

/* Who leads is deposed when for nine tenths of ttl_s nothing has confirmed its lease, be it for a thread that
 * stood still. Where the test waits for that, or for the lease to run out, ttl_s is short, but not too short.
 */
static void candidate(hall *x, gate *g, const char *name, unsigned ttl_s)
{
    x->o.lease_s = ttl_s;
    gate_open(g, &x->h, name, &x->o);
    gate_stand(g, "/s/leader/");
}

static void etcd_has_one_leader_and_then_the_next(void **state)
{
    if (missing_etcd()) skip();
    hall x;
    gate a, b, c;
    hall_open(&x);
    candidate(&x, &a, "a", 6);
    UNTIL(&x.h, etcd_election_leads(a.election));
    candidate(&x, &b, "b", 2);
    UNTIL(&x.h, strcmp(b.leader, "a") == 0);
    assert_false(etcd_election_leads(b.election));
    etcd_election_resign(a.election);
    assert_false(etcd_election_leads(a.election));
    UNTIL(&x.h, etcd_election_leads(b.election));
    UNTIL(&x.h, strcmp(a.leader, "b") == 0);
    assert_true(b.term > a.term);
    etcd_election_campaign(a.election);
    gate_die(&b); /* killed: the lease has to run out */
    UNTIL(&x.h, etcd_election_leads(a.election));
    assert_true(a.n_elected >= 2);
    candidate(&x, &c, "c", 60);
    UNTIL(&x.h, strcmp(c.leader, "a") == 0 && etcd_election_leads(a.election));
    int n_deposed = a.n_deposed;
    kill(x.s.pid, SIGSTOP);
    UNTIL(&x.h, a.n_deposed > n_deposed); /* nobody confirms its lease */
    assert_false(etcd_election_leads(a.election));
    assert_false(etcd_election_leads(c.election));
    kill(x.s.pid, SIGCONT);
    UNTIL(&x.h, etcd_election_leads(a.election) || etcd_election_leads(c.election));
    house_run_ms(&x.h, 500);
    UNTIL(&x.h, etcd_election_leads(a.election) || etcd_election_leads(c.election));
    assert_true(etcd_election_leads(a.election) != etcd_election_leads(c.election));
    gate_die(&c);
    gate_die(&a);
    hall_close(&x);
}

/* Its lease is kept when etcd is back, long before that runs out: it is its key that has to go. */
static void etcd_hears_of_a_resignation_when_it_is_back(void **state)
{
    if (missing_etcd()) skip();
    hall x;
    gate a, b;
    hall_open(&x);
    candidate(&x, &a, "a", 600);
    UNTIL(&x.h, etcd_election_leads(a.election));
    candidate(&x, &b, "b", 600);
    UNTIL(&x.h, strcmp(b.leader, "a") == 0);
    server_kill(&x.s);
    UNTIL(&x.h, !etcd_session_is_up(a.c));
    etcd_election_resign(a.election);
    server_start(&x.s);
    UNTIL(&x.h, etcd_election_leads(b.election));
    gate_die(&b);
    gate_die(&a);
    hall_close(&x);
}

/* ---- plans --------------------------------------------------------------------------------------- */

typedef struct reader {
    char node[64], plan[64];
    int n_read, n_gone, n_synced;
} reader;

static void on_plan(void *user, const char *node, const uint8_t *plan, size_t n)
{
    reader *r = user;
    snprintf(r->node, sizeof r->node, "%s", node);
    snprintf(r->plan, sizeof r->plan, "%.*s", (int)n, plan ? (const char *)plan : "");
    r->n_read += plan != NULL;
    r->n_gone += plan == NULL;
}

static void on_plans(void *user)
{
    ((reader *)user)->n_synced++;
}

static etcd_shared_plan *board(gate *g, reader *r)
{
    etcd_shared_plan *b;
    const etcd_plan_events ev = {.user = r, .read = on_plan, .synced = on_plans};
    OK(etcd_shared_plan_open(&b, g->c, g->election, "/s/plan/", &ev, &err));
    return b;
}

static void post(etcd_shared_plan *b, const char *node, const char *plan)
{
    etcd_shared_plan_put(b, node, (const uint8_t *)plan, plan ? strlen(plan) : 0);
}

/* Only who leads is heard, and what was written outlives it. */
static void etcd_keeps_the_plans_of_who_leads(void **state)
{
    if (missing_etcd()) skip();
    hall x;
    gate a, b;
    reader of_a = {0}, of_b = {0};
    hall_open(&x);
    candidate(&x, &a, "a", 6);
    UNTIL(&x.h, etcd_election_leads(a.election));
    candidate(&x, &b, "b", 60);
    etcd_shared_plan *at_a = board(&a, &of_a), *at_b = board(&b, &of_b);
    UNTIL(&x.h, of_a.n_synced && of_b.n_synced && strcmp(b.leader, "a") == 0);
    post(at_b, "pi", "b's"); /* it does not lead: nobody hears it */
    assert_int_equal(etcd_shared_plan_waiting(at_b), 0);
    post(at_a, "pi", "first");
    post(at_a, "pi", "second"); /* in the place of one that was not sent yet, or after it */
    post(at_a, "attic", "");
    UNTIL(&x.h, etcd_shared_plan_waiting(at_a) == 0 && strcmp(of_b.node, "attic") == 0);
    assert_int_equal(of_b.n_gone, 0);
    post(at_a, "attic", NULL);
    UNTIL(&x.h, of_b.n_gone == 1);
    post(at_a, "pi", "third");
    UNTIL(&x.h, strcmp(of_b.plan, "third") == 0 && etcd_election_leads(a.election));

    int n_deposed = a.n_deposed;
    kill(x.s.pid, SIGSTOP); /* what is asked for now comes too late: another will lead */
    post(at_a, "pi", "too late");
    UNTIL(&x.h, a.n_deposed > n_deposed);
    etcd_election_resign(a.election);
    kill(x.s.pid, SIGCONT);
    UNTIL(&x.h, etcd_election_leads(b.election));
    UNTIL(&x.h, etcd_shared_plan_waiting(at_a) == 0);
    post(at_b, "kit", "b's");
    UNTIL(&x.h, strcmp(of_a.node, "kit") == 0);
    etcd_shared_plan_close(at_b);
    reader after = {0};
    at_b = board(&b, &after);
    UNTIL(&x.h, after.n_synced);
    assert_int_equal(after.n_read, 2); /* pi's and kit's */
    etcd_shared_plan_close(at_b);
    etcd_shared_plan_close(at_a);
    gate_die(&b);
    gate_die(&a);
    hall_close(&x);
}

/* The fence holds though the writer has not heard yet that it was deposed: its key is taken from it by
 * somebody on another loop, while its own stands still. */
static void etcd_refuses_a_plan_of_who_leads_no_more(void **state)
{
    if (missing_etcd()) skip();
    hall x;
    house other;
    gate a, b, thief;
    reader of_a = {0}, of_b = {0};
    hall_open(&x);
    house_open(&other);
    gate_open(&thief, &other, "thief", &x.o);
    candidate(&x, &a, "a", 60);
    UNTIL(&x.h, etcd_election_leads(a.election));
    candidate(&x, &b, "b", 60);
    etcd_shared_plan *at_a = board(&a, &of_a), *at_b = board(&b, &of_b);
    UNTIL(&x.h, of_a.n_synced && of_b.n_synced && strcmp(b.leader, "a") == 0);
    Etcdserverpb__DeleteRangeRequest taken = ETCDSERVERPB__DELETE_RANGE_REQUEST__INIT;
    taken.key = (ProtobufCBinaryData){.data = (uint8_t *)"/s/leader/", .len = 10};
    taken.range_end = (ProtobufCBinaryData){.data = (uint8_t *)"/s/leader0", .len = 10}; /* the prefix */
    assert_int_equal(ask(&other, thief.c, ETCD_DELETE_RANGE, &taken.base).status, GRPC_OK);
    assert_true(etcd_election_leads(a.election)); /* or so it believes */
    post(at_a, "pi", "old");
    UNTIL(&x.h, etcd_shared_plan_waiting(at_a) == 0);
    UNTIL(&x.h, etcd_election_leads(a.election) || etcd_election_leads(b.election));
    post(etcd_election_leads(b.election) ? at_b : at_a, "pi", "new");
    UNTIL(&x.h, strcmp(of_b.plan, "new") == 0);
    assert_int_equal(of_b.n_read, 1);
    etcd_shared_plan_close(at_b);
    etcd_shared_plan_close(at_a);
    gate_die(&b);
    gate_die(&a);
    gate_die(&thief);
    house_close(&other);
    hall_close(&x);
}

/* ---- all together -------------------------------------------------------------------------------- */

static void closed(void *user)
{
    *(bool *)user = true;
}

static void etcd_together_publishes_leads_and_takes_its_leave(void **state)
{
    if (missing_etcd()) skip();
    hall x;
    gate b;
    registry *g;
    source *own;
    etcd *e;
    bool is_closed = false;
    hall_open(&x);
    OK(registry_new(&g, &x.h.loop, &err));
    OK(source_open(&own, g, "agent", &err));
    const node self = {.name = "a"};
    const char *const urls[] = {"ftp://here"};
    char url[64];
    snprintf(url, sizeof url, "http://%s", x.s.endpoint);
    etcd_options o = {.endpoints = urls, .n_endpoints = 1, .prefix = "/s", .self = &self};
    assert_int_equal(etcd_open(&e, &x.h.loop, g, &o, NULL), SHOAL_EINVALID);
    o.endpoints = (const char *const[]){url};
    OK(etcd_open(&e, &x.h.loop, g, &o, &err));
    const member m = {.id = "m/0", .generation = 1, .model = "m", .address = "127.0.0.1:9"};
    OK(source_put(own, &m, &err));
    gate_open(&b, &x.h, "b", &x.o);
    gate_read(&b, "/s/", 0);
    UNTIL(&x.h, registry_get(b.g, "a/m/0") && etcd_leads(e));
    assert_string_equal(etcd_leader(e), "a");
    etcd_drain(e);
    UNTIL(&x.h, registry_get(b.g, "a/m/0")->state == REPLICA_DRAINING);
    etcd_close(e, closed, &is_closed);
    UNTIL(&x.h, is_closed && registry_count(b.g) == 0);
    registry_free(g);
    gate_die(&b);
    hall_close(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(etcd_members_come_and_go),
        cmocka_unit_test(etcd_tells_of_attached_machines),
        cmocka_unit_test(etcd_drops_what_a_killed_publisher_served),
        cmocka_unit_test(etcd_keeps_a_living_replica_for_a_while),
        cmocka_unit_test(etcd_frozen_keeps_the_view_and_says_so),
        cmocka_unit_test(etcd_killed_and_started_again_drops_nobody),
        cmocka_unit_test(etcd_that_was_never_there_is_said_to_be_away),
        cmocka_unit_test(etcd_goes_to_the_next_endpoint),
        cmocka_unit_test(etcd_nonsense_is_refused_and_disturbs_nobody),
        cmocka_unit_test(etcd_lists_anew_what_was_compacted),
        cmocka_unit_test(etcd_wants_certificates_and_passwords),
        cmocka_unit_test(etcd_of_another_ca_is_not_trusted),
        cmocka_unit_test(etcd_has_one_leader_and_then_the_next),
        cmocka_unit_test(etcd_hears_of_a_resignation_when_it_is_back),
        cmocka_unit_test(etcd_keeps_the_plans_of_who_leads),
        cmocka_unit_test(etcd_refuses_a_plan_of_who_leads_no_more),
        cmocka_unit_test(etcd_together_publishes_leads_and_takes_its_leave),
    };
    return cmocka_run_group_tests_name("etcd", tests, NULL, NULL);
}
