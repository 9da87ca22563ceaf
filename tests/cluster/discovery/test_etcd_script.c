/* An etcd that says what a script wants (our own gRPC server plays it), in simulated time: what a real one
 * cannot be made to do at will. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "time/env_sim.h"
#include "logging/log.h"
#include "discovery/etcd_election.h"
#include "discovery/etcd_view.h"
#include "discovery/etcd_writer.h"
#include "etcd/rpc.pb-c.h"

/* ---- the stage ----------------------------------------------------------------------------------- */

typedef struct fake {
    grpc_server *server;
    char address[80];
    uint64_t cluster;
    int64_t revision, ttl_s, lease, watched_from, asked_limit, asked_revision;
    int n_keys;   /* /s/0 .. in the listing, a page at a time */
    int max_page; /* a longer one is refused; 0: none is */
    bool mute, nonsense, compacted, is_over, full;
    int n_ranges, n_watches, n_grants, n_beats, n_txns, n_compacted;
    grpc_call *watch;
    char candidate[64], value[16]; /* of the last put */
    int64_t put_lease;
    int n_deletes, n_refused;
    grpc_status refusal;
    bool fenced, is_fence_down;
} fake;

typedef struct stage {
    uv_loop_t loop;
    env_sim *sim;
    env e;
    fake f[2];
    etcd_session *c;
    etcd_listener listener;
    etcd_view *view;
    etcd_election *election;
    int n_put, n_dropped, n_synced, n_away, n_elected, n_deposed, n_granted, n_lost;
    char away[200];
} stage;

static Etcdserverpb__ResponseHeader head_of(const fake *f)
{
    Etcdserverpb__ResponseHeader h = ETCDSERVERPB__RESPONSE_HEADER__INIT;
    h.cluster_id = f->cluster;
    h.revision = f->revision;
    return h;
}

static void say(grpc_call *c, const ProtobufCMessage *m, bool last)
{
    uint8_t out[16384];
    assert_true(protobuf_c_message_get_packed_size(m) <= sizeof out);
    grpc_call_send(c, out, protobuf_c_message_pack(m, out));
    if (last) grpc_call_end(c, GRPC_OK, NULL);
}

static void on_range(void *user, grpc_call *c, const uint8_t *msg, size_t n)
{
    fake *f = user;
    Etcdserverpb__RangeRequest *q = etcdserverpb__range_request__unpack(NULL, n, msg);
    Etcdserverpb__RangeResponse m = ETCDSERVERPB__RANGE_RESPONSE__INIT;
    Etcdserverpb__ResponseHeader h = head_of(f);
    Mvccpb__KeyValue kv[16], *kvs[16];
    char names[16][16];
    f->n_ranges++;
    f->asked_limit = q->limit;
    f->asked_revision = q->revision;
    int first = q->key.len > 3 ? atoi((const char *)q->key.data + 3) + 1 : 0;
    etcdserverpb__range_request__free_unpacked(q, NULL);
    if (f->mute) return;
    if (f->max_page && f->asked_limit > f->max_page) {
        grpc_call_end(c, GRPC_RESOURCE_EXHAUSTED, "too long");
        return;
    }
    if (f->n_compacted > 0 && first > 0) {
        f->n_compacted--;
        grpc_call_end(c, GRPC_OUT_OF_RANGE, "etcdserver: mvcc: required revision has been compacted");
        return;
    }
    while (first + (int)m.n_kvs < f->n_keys && (int64_t)m.n_kvs < f->asked_limit && m.n_kvs < 16) {
        size_t i = m.n_kvs++;
        mvccpb__key_value__init(&kv[i]);
        snprintf(names[i], sizeof names[i], "/s/%d", first + (int)i);
        kv[i].key = (ProtobufCBinaryData){.data = (uint8_t *)names[i], .len = strlen(names[i])};
        kv[i].create_revision = kv[i].mod_revision = 2;
        kvs[i] = &kv[i];
    }
    m.header = &h;
    m.kvs = kvs;
    m.more = first + (int)m.n_kvs < f->n_keys;
    say(c, &m.base, true);
}

static void on_txn(void *user, grpc_call *c, const uint8_t *msg, size_t n)
{
    fake *f = user;
    Etcdserverpb__TxnRequest *q = etcdserverpb__txn_request__unpack(NULL, n, msg);
    Etcdserverpb__TxnResponse m = ETCDSERVERPB__TXN_RESPONSE__INIT;
    Etcdserverpb__ResponseHeader h = head_of(f);
    const Etcdserverpb__PutRequest *put =
        q->success[0]->request_case == ETCDSERVERPB__REQUEST_OP__REQUEST_REQUEST_PUT
            ? q->success[0]->request_put
            : NULL;
    f->n_txns++;
    if (f->n_refused > 0) {
        f->n_refused--;
        etcdserverpb__txn_request__free_unpacked(q, NULL);
        grpc_call_end(c, f->refusal, "the script says so");
        return;
    }
    f->n_deletes += !put;
    if (put) {
        snprintf(f->candidate, sizeof f->candidate, "%.*s", (int)put->key.len, (const char *)put->key.data);
        snprintf(f->value, sizeof f->value, "%.*s", (int)put->value.len, (const char *)put->value.data);
        f->put_lease = put->lease;
    }
    f->fenced = q->n_compare > 0;
    etcdserverpb__txn_request__free_unpacked(q, NULL);
    m.header = &h;
    m.succeeded = !(f->fenced && f->is_fence_down);
    say(c, &m.base, true);
}

static void on_grant(void *user, grpc_call *c, const uint8_t *msg, size_t n)
{
    fake *f = user;
    Etcdserverpb__LeaseGrantResponse m = ETCDSERVERPB__LEASE_GRANT_RESPONSE__INIT;
    f->n_grants++;
    if (f->mute) return;
    m.id = f->lease;
    m.ttl = f->ttl_s;
    say(c, &m.base, true);
}

static const grpc_method methods[] = {{ETCD_RANGE, on_range}, {ETCD_TXN, on_txn}, {ETCD_GRANT, on_grant}};

static void tell(fake *f, const char *key, bool deleted, bool fragment)
{
    Etcdserverpb__WatchResponse m = ETCDSERVERPB__WATCH_RESPONSE__INIT;
    Etcdserverpb__ResponseHeader h = head_of(f);
    Mvccpb__Event e = MVCCPB__EVENT__INIT, *events[] = {&e};
    Mvccpb__KeyValue kv = MVCCPB__KEY_VALUE__INIT;
    kv.key = (ProtobufCBinaryData){.data = (uint8_t *)key, .len = strlen(key)};
    kv.value = (ProtobufCBinaryData){.data = (uint8_t *)"gate-1", .len = 6};
    kv.create_revision = kv.mod_revision = f->revision;
    e.kv = &kv;
    e.type = deleted ? MVCCPB__EVENT__EVENT_TYPE__DELETE : MVCCPB__EVENT__EVENT_TYPE__PUT;
    m.header = &h;
    m.events = events;
    m.n_events = 1;
    m.fragment = fragment;
    say(f->watch, &m.base, false);
}

static void on_watch(void *user, grpc_call *c, const uint8_t *msg, size_t n)
{
    fake *f = user;
    Etcdserverpb__WatchRequest *q = etcdserverpb__watch_request__unpack(NULL, n, msg);
    Etcdserverpb__WatchResponse m = ETCDSERVERPB__WATCH_RESPONSE__INIT;
    Etcdserverpb__ResponseHeader h = head_of(f);
    m.header = &h;
    if (q->request_union_case == ETCDSERVERPB__WATCH_REQUEST__REQUEST_UNION_CREATE_REQUEST) {
        f->n_watches++;
        f->watch = c;
        f->watched_from = q->create_request->start_revision;
        m.created = true;
        m.canceled = f->compacted;
        m.compact_revision = f->compacted ? f->revision : 0;
        m.cancel_reason = f->compacted ? "compacted" : "";
        f->compacted = false;
    } else {
        m.watch_id = -1;
    }
    etcdserverpb__watch_request__free_unpacked(q, NULL);
    if (f->nonsense)
        grpc_call_send(c, "\xff\xff\xff", 3);
    else if (!f->mute)
        say(c, &m.base, false);
    f->nonsense = false;
}

static void on_watch_gone(void *user, grpc_call *c)
{
    fake *f = user;
    if (f->watch == c) f->watch = NULL;
}

static void on_beat(void *user, grpc_call *c, const uint8_t *msg, size_t n)
{
    fake *f = user;
    Etcdserverpb__LeaseKeepAliveResponse m = ETCDSERVERPB__LEASE_KEEP_ALIVE_RESPONSE__INIT;
    f->n_beats++;
    if (f->mute) return;
    m.id = f->lease;
    m.ttl = f->is_over ? 0 : f->ttl_s;
    if (f->is_over) f->lease++;
    f->is_over = false;
    say(c, &m.base, false);
}

static void on_begin(void *user, grpc_call *c) {}

static const grpc_stream_method streams[] = {
    {.path = ETCD_WATCH, .begin = on_begin, .message = on_watch, .cancelled = on_watch_gone},
    {.path = ETCD_KEEP_ALIVE, .begin = on_begin, .message = on_beat}};

/* ---- time ---------------------------------------------------------------------------------------- */

static void pump(stage *s)
{
    for (int i = 0; i < 12; i++) uv_run(&s->loop, UV_RUN_NOWAIT);
}

/* Simulated; what the network has to do is done after each of its steps. */
static void pass_ms(stage *s, unsigned ms)
{
    pump(s);
    for (unsigned i = 0; i < ms; i += 20) {
        env_sim_run(s->sim, ms - i < 20 ? ms - i : 20);
        pump(s);
    }
}

static void fake_open(stage *s, fake *f)
{
    static int number; /* a test that failed holds its sockets */
    shoal_err err;
    *f = (fake){.cluster = 1, .revision = 5, .ttl_s = 10, .lease = 0xabc};
    snprintf(f->address, sizeof f->address, "unix:/tmp/shoal-etcd-script-%d-%d", (int)getpid(), number++);
    assert_int_equal(grpc_server_new(&f->server, &s->loop, methods, 3, f, NULL, &err), 0);
    assert_int_equal(grpc_server_add_streams(f->server, streams, 2, f, &err), 0);
    if (grpc_server_listen(f->server, f->address, &err) != 0) fail_msg("%s", err.message);
}

static uint64_t no_chance(void *user)
{
    return 0; /* the first endpoint first */
}

static void stage_open_with(stage *s, int n_endpoints, unsigned lease_s)
{
    *s = (stage){0};
    log_setup(getenv("SHOAL_TEST_LOG") ? LOG_DEBUG : LOG_OFF, false);
    assert_int_equal(uv_loop_init(&s->loop), 0);
    s->sim = env_sim_new(1);
    s->e = *env_sim_env(s->sim);
    s->e.random = no_chance;
    const char *endpoints[2];
    for (int i = 0; i < 2; i++) {
        fake_open(s, &s->f[i]);
        endpoints[i] = s->f[i].address;
    }
    const etcd_session_options o = {
        .endpoints = endpoints, .n_endpoints = (size_t)n_endpoints, .lease_s = lease_s};
    assert_int_equal(etcd_session_open(&s->c, &s->loop, &s->e, &o, NULL), 0);
}

static void stage_open(stage *s, int n_endpoints)
{
    stage_open_with(s, n_endpoints, 0);
}

static void stage_close(stage *s)
{
    etcd_election_close(s->election);
    etcd_view_close(s->view);
    etcd_session_unlisten(&s->listener);
    etcd_session_close(s->c);
    assert_int_equal(env_sim_timers(s->sim), 0);
    for (int i = 0; i < 2; i++) {
        grpc_server_close(s->f[i].server, NULL, NULL);
        unlink(s->f[i].address + 5);
    }
    uv_run(&s->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&s->loop), 0);
    env_sim_free(s->sim);
}

/* ---- who listens --------------------------------------------------------------------------------- */

static void on_put(void *user, etcd_key *k, const uint8_t *value, size_t n)
{
    ((stage *)user)->n_put++;
}

static void on_drop(void *user, etcd_key *k)
{
    ((stage *)user)->n_dropped++;
}

static void on_synced(void *user)
{
    ((stage *)user)->n_synced++;
}

static void on_away(void *user, const char *why)
{
    stage *s = user;
    s->n_away++;
    snprintf(s->away, sizeof s->away, "%s", why);
}

static void open_view(stage *s, unsigned page)
{
    const etcd_view_options o = {.prefix = "/s/",
                                 .keys = {.user = s, .put = on_put, .drop = on_drop},
                                 .synced = on_synced,
                                 .away = on_away,
                                 .page = page};
    assert_int_equal(etcd_view_open(&s->view, s->c, &o, NULL), 0);
}

static void on_ready(void *user) {}

static void on_lease(void *user, etcd_lease_event what)
{
    stage *s = user;
    s->n_granted += what == ETCD_LEASE_GRANTED;
    s->n_lost += what == ETCD_LEASE_LOST;
}

static void on_elected(void *user, int64_t term)
{
    ((stage *)user)->n_elected++;
}

static void on_deposed(void *user, const char *why)
{
    ((stage *)user)->n_deposed++;
}

static void open_election(stage *s)
{
    const etcd_election_events ev = {.user = s, .elected = on_elected, .deposed = on_deposed};
    s->listener = (etcd_listener){.user = s, .ready = on_ready, .lease = on_lease};
    assert_int_equal(etcd_session_listen(s->c, &s->listener, NULL), 0);
    assert_int_equal(etcd_election_open(&s->election, s->c, "/s/", "gate-1", &ev, NULL), 0);
    etcd_election_campaign(s->election);
}

/* The script's own part of an election: the candidate's key came to be. */
static void elect(stage *s)
{
    pass_ms(s, 100);
    assert_int_equal(s->f[0].n_txns, 1);
    s->f[0].revision++;
    tell(&s->f[0], s->f[0].candidate, false, false);
    pass_ms(s, 20);
    assert_true(etcd_election_leads(s->election));
}

/* ---- listings ------------------------------------------------------------------------------------ */

static void etcd_lists_in_pages_that_fit(void **state)
{
    stage s;
    stage_open(&s, 1);
    s.f[0].n_keys = 11;
    s.f[0].max_page = 3; /* of 12 keys, 6, 3 */
    open_view(&s, 12);
    pass_ms(&s, 100);
    assert_int_equal(s.n_synced, 1);
    assert_int_equal(s.n_put, 11);
    assert_int_equal(s.f[0].asked_limit, 3);
    assert_int_equal(s.f[0].asked_revision, 5);
    assert_int_equal(s.f[0].n_ranges, 2 + 4);
    assert_int_equal(s.f[0].watched_from, 6);
    assert_int_equal(s.n_away, 0);
    stage_close(&s);
}

static void etcd_begins_a_listing_again_that_was_compacted(void **state)
{
    stage s;
    stage_open(&s, 1);
    s.f[0].n_keys = 5;
    s.f[0].n_compacted = 1;
    open_view(&s, 3);
    pass_ms(&s, 1000);
    assert_int_equal(s.n_synced, 1);
    assert_int_equal(s.n_put, 5);
    assert_int_equal(s.n_dropped, 0);
    stage_close(&s);
}

/* ---- watches ------------------------------------------------------------------------------------- */

static void etcd_resumes_within_a_revision_that_came_in_part(void **state)
{
    stage s;
    stage_open(&s, 1);
    open_view(&s, 0);
    pass_ms(&s, 100);
    s.f[0].revision = 8;
    tell(&s.f[0], "/s/a", false, true);
    pass_ms(&s, 20);
    assert_int_equal(s.n_put, 1);
    etcd_session_doubt(s.c, "the test says so");
    pass_ms(&s, 1000);
    assert_int_equal(s.f[0].n_watches, 2);
    assert_int_equal(s.f[0].watched_from, 6);
    tell(&s.f[0], "/s/a", false, true); /* again: nothing new */
    tell(&s.f[0], "/s/b", false, false);
    pass_ms(&s, 20);
    assert_int_equal(s.n_put, 2);
    assert_int_equal(etcd_keys_revision(etcd_view_keys(s.view)), 8);
    stage_close(&s);
}

static void etcd_lists_anew_and_tells_the_difference(void **state)
{
    stage s;
    stage_open(&s, 1);
    s.f[0].n_keys = 4;
    open_view(&s, 0);
    pass_ms(&s, 100);
    s.f[0].revision = 20;
    s.f[0].n_keys = 3;
    s.f[0].compacted = true;
    etcd_session_doubt(s.c, "the test says so");
    pass_ms(&s, 1000);
    assert_int_equal(s.n_put, 4);
    assert_int_equal(s.n_dropped, 1);
    assert_int_equal(s.n_synced, 2);
    assert_int_equal(s.n_away, 0); /* too short to be said */
    s.f[0].revision = 4;           /* an older copy was put in place: each key counts as changed */
    etcd_session_doubt(s.c, "the test says so");
    pass_ms(&s, 1000);
    assert_int_equal(s.n_put, 4 + 3);
    assert_int_equal(s.n_dropped, 1);
    stage_close(&s);
}

static void etcd_that_says_nonsense_is_left(void **state)
{
    stage s;
    stage_open(&s, 2);
    s.f[0].n_keys = s.f[1].n_keys = 2;
    s.f[0].nonsense = true;
    open_view(&s, 0);
    pass_ms(&s, 1000);
    assert_string_equal(etcd_session_endpoint(s.c), s.f[1].address);
    assert_int_equal(s.n_synced, 1);
    assert_int_equal(s.n_put, 2);
    stage_close(&s);
}

static void etcd_that_is_silent_is_left_for_the_next(void **state)
{
    stage s;
    stage_open(&s, 2);
    s.f[0].n_keys = s.f[1].n_keys = 2;
    open_view(&s, 0);
    pass_ms(&s, 60000); /* idle, but it answers */
    assert_int_equal(s.f[0].n_watches, 1);
    s.f[0].mute = true;
    pass_ms(&s, 4000);
    assert_string_equal(etcd_session_endpoint(s.c), s.f[0].address);
    pass_ms(&s, 4000);
    assert_string_equal(etcd_session_endpoint(s.c), s.f[1].address);
    assert_int_equal(s.f[1].watched_from, 6); /* no listing: the same store */
    assert_int_equal(s.n_synced, 2);
    assert_int_equal(s.n_away, 0);
    stage_close(&s);
}

static void etcd_away_is_said_and_asked_for_with_patience(void **state)
{
    stage s;
    stage_open(&s, 2);
    s.f[0].mute = s.f[1].mute = true; /* they connect, and say nothing */
    open_view(&s, 0);
    pass_ms(&s, 1400);
    assert_int_equal(s.n_away, 0);
    pass_ms(&s, 200);
    assert_int_equal(s.n_away, 1);
    pass_ms(&s, 600000);
    assert_true(s.f[0].n_ranges > 30 && s.f[0].n_ranges < 120);
    assert_non_null(strstr(s.away, "no answer in 3000 ms"));
    s.f[1].mute = false;
    pass_ms(&s, 10000);
    assert_int_equal(s.n_synced, 1);
    stage_close(&s);
}

/* ---- leases -------------------------------------------------------------------------------------- */

static void etcd_lease_that_ran_out_is_asked_for_anew(void **state)
{
    stage s;
    stage_open_with(&s, 1, 10);
    open_election(&s);
    elect(&s);
    pass_ms(&s, 60000);
    assert_true(s.f[0].n_beats >= 17 && s.f[0].n_beats <= 20); /* every third of it */
    assert_int_equal(s.n_granted, 1);
    s.f[0].is_over = true;
    pass_ms(&s, 4000);
    assert_int_equal(s.n_lost, 1);
    assert_int_equal(s.n_granted, 2);
    assert_int_equal(s.n_deposed, 1);
    assert_false(etcd_election_leads(s.election));
    assert_int_equal(s.f[0].n_txns, 2); /* it stands again, with the new one */
    assert_string_equal(s.f[0].candidate, "/s/abd");
    stage_close(&s);
}

static void etcd_leader_ends_by_its_own_clock(void **state)
{
    stage s;
    stage_open_with(&s, 1, 10);
    open_election(&s);
    elect(&s);
    pass_ms(&s, 3400); /* a keepalive was answered at 3.3 s */
    s.f[0].mute = true;
    uint64_t until = etcd_session_lease_until_ns(s.c), now = s.e.now_ns(s.e.user);
    assert_true(until > now + 8500000000ull && until <= now + 9000000000ull);
    pass_ms(&s, (unsigned)((until - now) / 1000000) - 20);
    assert_true(etcd_election_leads(s.election));
    assert_int_equal(s.n_deposed, 0);
    pass_ms(&s, 40);
    assert_int_equal(s.n_deposed, 1);
    assert_false(etcd_election_leads(s.election));
    s.f[0].mute = false; /* the lease lives, and its key is still the first */
    pass_ms(&s, 12000);
    assert_true(etcd_election_leads(s.election));
    assert_int_equal(s.n_elected, 2);
    stage_close(&s);
}

static void etcd_leader_whose_key_is_deleted_leads_no_more(void **state)
{
    stage s;
    stage_open_with(&s, 1, 10);
    open_election(&s);
    elect(&s);
    s.f[0].revision++;
    tell(&s.f[0], "/s/zzz", false, false); /* a later one waits */
    pass_ms(&s, 20);
    assert_true(etcd_election_leads(s.election));
    s.f[0].revision++;
    tell(&s.f[0], s.f[0].candidate, true, false);
    pass_ms(&s, 20);
    assert_false(etcd_election_leads(s.election));
    assert_int_equal(s.n_deposed, 1);
    pass_ms(&s, 2000);
    assert_int_equal(s.f[0].n_txns, 2); /* it stands again, behind the other */
    s.f[0].revision++;
    tell(&s.f[0], s.f[0].candidate, false, false);
    pass_ms(&s, 20);
    assert_false(etcd_election_leads(s.election));
    stage_close(&s);
}

/* ---- writers ------------------------------------------------------------------------------------- */

typedef struct writing {
    etcd_writer *w;
    int n_failed, n_refused;
    bool leads;
} writing;

static void on_failed(void *user, const char *key, const char *why)
{
    writing *x = user;
    if (why)
        x->n_failed++;
    else
        x->n_refused++;
}

static const char *fence(void *user, int64_t *ret_revision)
{
    *ret_revision = 3;
    return ((writing *)user)->leads ? "/s/leader/abc" : NULL;
}

static void open_writer(stage *s, writing *x, bool leased)
{
    stage_open_with(s, 1, leased ? 10 : 0);
    s->listener = (etcd_listener){.user = s, .ready = on_ready, .lease = on_lease};
    assert_int_equal(etcd_session_listen(s->c, &s->listener, NULL), 0);
    *x = (writing){.leads = true};
    const etcd_writer_options o = {
        .user = x, .leased = leased, .fence = leased ? NULL : fence, .failed = on_failed};
    assert_int_equal(etcd_writer_open(&x->w, s->c, &o, NULL), 0);
}

static void put_text(writing *x, const char *key, const char *value)
{
    assert_int_equal(etcd_writer_put(x->w, key, value, value ? strlen(value) : 0), 0);
}

static void etcd_writer_tries_again_with_growing_pauses(void **state)
{
    stage s;
    writing x;
    open_writer(&s, &x, true);
    s.f[0].refusal = GRPC_RESOURCE_EXHAUSTED;
    s.f[0].n_refused = 2;
    put_text(&x, "/s/a", "1");
    assert_int_equal(etcd_writer_waiting(x.w), 1);
    pass_ms(&s, 160);
    assert_int_equal(s.f[0].n_txns, 1);
    assert_int_equal(x.n_failed, 1);
    pass_ms(&s, 200);
    assert_int_equal(s.f[0].n_txns, 2);
    pass_ms(&s, 200);
    assert_int_equal(s.f[0].n_txns, 2);
    pass_ms(&s, 200);
    assert_int_equal(s.f[0].n_txns, 3);
    assert_int_equal(x.n_failed, 2);
    assert_int_equal(etcd_writer_waiting(x.w), 0);
    assert_string_equal(s.f[0].value, "1");
    etcd_writer_close(x.w);
    stage_close(&s);
}

static void etcd_writer_has_the_last_value_written(void **state)
{
    stage s;
    writing x;
    open_writer(&s, &x, true);
    pass_ms(&s, 100);
    put_text(&x, "/s/a", "1");
    put_text(&x, "/s/a", "2"); /* the first is on its way */
    put_text(&x, "/s/a", "3");
    put_text(&x, "/s/b", NULL); /* was never there */
    assert_int_equal(etcd_writer_waiting(x.w), 2);
    pass_ms(&s, 20);
    put_text(&x, "/s/a", "3");
    pass_ms(&s, 20);
    assert_int_equal(s.f[0].n_txns, 2);
    assert_string_equal(s.f[0].value, "3");
    put_text(&x, "/s/a", NULL);
    pass_ms(&s, 20);
    assert_int_equal(s.f[0].n_deletes, 1);
    put_text(&x, "/s/a", NULL);
    pass_ms(&s, 20);
    assert_int_equal(s.f[0].n_txns, 3);
    etcd_writer_close(x.w);
    stage_close(&s);
}

static void etcd_writer_writes_all_under_the_next_lease(void **state)
{
    stage s;
    writing x;
    open_writer(&s, &x, true);
    put_text(&x, "/s/a", "1");
    pass_ms(&s, 100);
    assert_int_equal(s.f[0].put_lease, 0xabc);
    s.f[0].lease = 0xabd;
    s.f[0].refusal = GRPC_NOT_FOUND; /* no such lease */
    s.f[0].n_refused = 1;
    put_text(&x, "/s/b", "1");
    pass_ms(&s, 100);
    assert_int_equal(s.n_lost, 1);
    assert_int_equal(s.n_granted, 2);
    assert_int_equal(s.f[0].n_txns, 1 + 1 + 2);
    assert_int_equal(s.f[0].put_lease, 0xabd);
    assert_int_equal(etcd_writer_waiting(x.w), 0);
    etcd_writer_rewrite(x.w); /* somebody deleted them */
    pass_ms(&s, 300);
    assert_int_equal(s.f[0].n_txns, 4 + 2);
    etcd_writer_close(x.w);
    stage_close(&s);
}

static void etcd_writer_behind_a_fence_gives_up(void **state)
{
    stage s;
    writing x;
    open_writer(&s, &x, false);
    pass_ms(&s, 100);
    put_text(&x, "/s/a", "1");
    pass_ms(&s, 20);
    assert_true(s.f[0].fenced);
    assert_int_equal(s.f[0].put_lease, 0);
    put_text(&x, "/s/a", "1"); /* what was written is forgotten: it may have been changed */
    put_text(&x, "/s/b", NULL);
    pass_ms(&s, 20);
    assert_int_equal(s.f[0].n_txns, 3);
    assert_int_equal(s.f[0].n_deletes, 1);
    s.f[0].is_fence_down = true;
    put_text(&x, "/s/a", "2");
    put_text(&x, "/s/b", "2");
    pass_ms(&s, 20);
    assert_int_equal(s.f[0].n_txns, 4);
    assert_int_equal(x.n_refused, 1);
    assert_int_equal(etcd_writer_waiting(x.w), 0);
    x.leads = false;
    put_text(&x, "/s/a", "3");
    assert_int_equal(etcd_writer_waiting(x.w), 0);
    pass_ms(&s, 20);
    assert_int_equal(s.f[0].n_txns, 4);
    assert_int_equal(x.n_failed, 0);
    etcd_writer_close(x.w);
    stage_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(etcd_lists_in_pages_that_fit),
        cmocka_unit_test(etcd_begins_a_listing_again_that_was_compacted),
        cmocka_unit_test(etcd_resumes_within_a_revision_that_came_in_part),
        cmocka_unit_test(etcd_lists_anew_and_tells_the_difference),
        cmocka_unit_test(etcd_that_says_nonsense_is_left),
        cmocka_unit_test(etcd_that_is_silent_is_left_for_the_next),
        cmocka_unit_test(etcd_away_is_said_and_asked_for_with_patience),
        cmocka_unit_test(etcd_lease_that_ran_out_is_asked_for_anew),
        cmocka_unit_test(etcd_leader_ends_by_its_own_clock),
        cmocka_unit_test(etcd_leader_whose_key_is_deleted_leads_no_more),
        cmocka_unit_test(etcd_writer_tries_again_with_growing_pauses),
        cmocka_unit_test(etcd_writer_has_the_last_value_written),
        cmocka_unit_test(etcd_writer_writes_all_under_the_next_lease),
        cmocka_unit_test(etcd_writer_behind_a_fence_gives_up),
    };
    return cmocka_run_group_tests_name("etcd_script", tests, NULL, NULL);
}
