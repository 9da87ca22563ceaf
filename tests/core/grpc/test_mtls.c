/* Machines that prove to each other who they are: gRPC over mutual TLS, and everybody who must stay out. */
#include "certificates.h"
#include "grpc_world.h"

#include <arpa/inet.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

static pki p;

static int make_pki(void **state)
{
    pki_make(&p);
    return 0;
}

static int remove_pki(void **state)
{
    pki_remove(&p);
    return 0;
}

typedef struct secure {
    world w;
    tls_context *at_server, *at_client;
    int n_refused;
    char refused[320], from[64];
    grpc_channel_options opt;
} secure;

static void on_refused(void *user, const char *from, const char *why)
{
    secure *s = user;
    s->n_refused++;
    snprintf(s->from, sizeof s->from, "%s", from);
    snprintf(s->refused, sizeof s->refused, "%s", why);
}

static tls_context *context(tls_side side, const pki_pair *own, const char *ca, const char *crl)
{
    shoal_err err = {0};
    tls_context *t = NULL;
    tls_options o = {.ca_file = ca, .crl_file = crl};
    if (own) {
        o.cert_file = own->crt;
        o.key_file = own->key;
    }
    if (tls_context_new(&t, side, &o, &err) != 0) fail_msg("%s", err.message);
    return t;
}

/* Contexts are given away. */
static void secure_start(secure *s, tls_context *at_server, tls_context *at_client)
{
    shoal_err err = {0};
    memset(s, 0, sizeof *s);
    s->at_server = at_server;
    s->at_client = at_client;
    world_open_loop(&s->w);
    world_serve(&s->w, NULL);
    grpc_server_on_refused(s->w.server, on_refused, s);
    if (grpc_server_listen_tls(s->w.server, "127.0.0.1:0", at_server, &err) != 0) fail_msg("%s", err.message);
    snprintf(s->w.address, sizeof s->w.address, "127.0.0.1:%d", grpc_server_port(s->w.server));
    s->opt = (grpc_channel_options){.tls = at_client, .server_name = "node-a"};
}

/* Until it is known whether they let each other in. */
static void secure_connect(secure *s)
{
    shoal_err err = {0};
    world *w = &s->w;
    grpc_channel_events ev = {.user = w, .connected = world_connected, .disconnected = world_disconnected};
    if (grpc_channel_open(&w->ch, &w->loop, w->address, &s->opt, &ev, &err) != 0) fail_msg("%s", err.message);
    RUN_UNTIL(w, w->n_connected || w->n_disconnected);
}

static void secure_stop(secure *s)
{
    world_stop(&s->w);
    tls_context_unref(s->at_server);
    tls_context_unref(s->at_client);
}

static void echo_once(world *w, const char *text)
{
    outcome o = {0};
    char want[64];
    world_open(w, &o, "/s.S/Echo", NULL);
    grpc_client_send(o.call, text, strlen(text));
    RUN_UNTIL(w, o.n_messages == 1);
    grpc_client_half_close(o.call);
    RUN_UNTIL(w, o.status >= 0);
    snprintf(want, sizeof want, "[%s]", text);
    assert_string_equal(o.messages, want);
}

/* ---- those who are let in -------------------------------------------------------------------- */

static void both_ends_know_each_other(void **state)
{
    secure s;
    outcome o = {0};
    secure_start(&s, context(TLS_SERVER, &p.node, p.ca, p.crl), context(TLS_CLIENT, &p.gateway, p.ca, p.crl));
    s.opt.sni = "worker-3.node-a";
    secure_connect(&s);
    assert_int_equal(s.w.n_connected, 1);
    world_open(&s.w, &o, "/s.S/Echo", NULL);
    RUN_UNTIL(&s.w, s.w.n_begun == 1);
    const tls_identity *client = grpc_call_peer(s.w.last), *server = grpc_channel_peer(s.w.ch);
    assert_string_equal(client->common_name, "gate-1");
    assert_string_equal(client->unit, "gateway");
    assert_string_equal(client->serial, "3");
    assert_int_equal(strlen(client->fingerprint), 64);
    assert_true(client->not_after_s > 1500000000);
    assert_string_equal(server->common_name, "node-a");
    assert_string_equal(server->serial, "1a2b");
    assert_string_not_equal(server->fingerprint, client->fingerprint);
    assert_string_equal(grpc_call_server_name(s.w.last), "worker-3.node-a");
    grpc_client_cancel(o.call);
    RUN_UNTIL(&s.w, s.w.n_cancelled == 1);
    assert_int_equal(s.n_refused, 0);
    secure_stop(&s);
}

static void streams_work_over_tls_as_without(void **state)
{
    secure s;
    outcome o = {.n_to_send = 500, .n_each = 20000};
    secure_start(&s, context(TLS_SERVER, &p.node, p.ca, NULL), context(TLS_CLIENT, &p.gateway, p.ca, NULL));
    s.opt.server_name = NULL; /* the address: 127.0.0.1 is in the certificate, too */
    secure_connect(&s);
    assert_int_equal(s.w.n_connected, 1);
    world_open(&s.w, &o, "/s.S/Echo", NULL);
    outcome_feed(&o);
    RUN_UNTIL(&s.w, o.status >= 0);
    assert_int_equal(o.n_bytes, 10000000);
    secure_stop(&s);
}

static void copy_file(const char *from, const char *to)
{
    char command[256];
    snprintf(command, sizeof command, "cp %s %s", from, to);
    assert_int_equal(system(command), 0);
}

static void a_renewed_certificate_counts_for_new_connections(void **state)
{
    secure s;
    pki_pair live;
    shoal_err err = {0};
    snprintf(live.crt, sizeof live.crt, "%s/live.crt", p.dir);
    snprintf(live.key, sizeof live.key, "%s/live.key", p.dir);
    copy_file(p.node.crt, live.crt);
    copy_file(p.node.key, live.key);
    secure_start(&s, context(TLS_SERVER, &live, p.ca, NULL), context(TLS_CLIENT, &p.gateway, p.ca, NULL));
    secure_connect(&s);
    assert_string_equal(grpc_channel_peer(s.w.ch)->serial, "1a2b");
    copy_file(p.second.crt, live.crt); /* half of a renewal: the old key does not fit */
    assert_int_equal(tls_context_reload(s.at_server, &err), SHOAL_EINVALID);
    copy_file(p.second.key, live.key);
    assert_int_equal(tls_context_reload(s.at_server, &err), 0);
    echo_once(&s.w, "the old connection goes on");
    grpc_channel *old = s.w.ch;
    s.w.n_connected = 0;
    secure_connect(&s);
    assert_string_equal(grpc_channel_peer(s.w.ch)->serial, "9");
    assert_string_equal(grpc_channel_peer(old)->serial, "1a2b");
    grpc_channel_close(old);
    secure_stop(&s);
}

/* ---- those who are not ----------------------------------------------------------------------- */

static void refuses(tls_context *at_server, tls_context *at_client, const char *client_hears,
                    const char *server_says)
{
    secure s;
    secure_start(&s, at_server, at_client);
    secure_connect(&s);
    if (s.w.n_connected) fail_msg("it was let in, not told \"%s\"", client_hears);
    if (!strstr(s.w.why, client_hears))
        fail_msg("the client hears \"%s\", not \"%s\"", s.w.why, client_hears);
    RUN_UNTIL(&s.w, s.n_refused);
    if (!strstr(s.refused, server_says))
        fail_msg("the server says \"%s\", not \"%s\"", s.refused, server_says);
    assert_string_equal(s.from, "127.0.0.1");
    assert_int_equal(s.w.n_begun, 0);
    secure_stop(&s);
}

static tls_context *server(void)
{
    return context(TLS_SERVER, &p.node, p.ca, p.crl);
}

static tls_context *client(const pki_pair *own)
{
    return context(TLS_CLIENT, own, p.ca, NULL);
}

static void wrong_clients_stay_out_and_hear_why(void **state)
{
    refuses(server(), client(NULL), "wants a certificate", "showed no certificate");
    refuses(server(), client(&p.expired), "has expired: set the clocks (NTP)",
            "the certificate of \"node-old\" expired at ");
    refuses(server(), client(&p.early), "are the clocks right?", "is not valid before ");
    refuses(server(), client(&p.early), "refused our certificate", "on this machine: set the clocks (NTP)");
    refuses(server(), client(&p.revoked), "our certificate has been revoked",
            "the certificate of \"node-bad\" has been revoked");
    refuses(server(), client(&p.foreign), "does not know the CA",
            "signed by \"Other CA\", which is not among the CAs of ");
    refuses(server(), client(&p.two_names), "refused", "it has two common names");
}

static bool has(const char *text, const char *part)
{
    return strstr(text, part) != NULL;
}

/* A clock that is behind at boot, or ahead, makes the revocation list early or stale: whoever looks at it
 * says both times, and the other end that clocks may be the reason. */
static void lists_out_of_their_time_say_that_clocks_may_be_wrong(void **state)
{
    static const char *const limits[] = {"stale.pem expired at ", "early.pem is not valid before "};
    for (int k = 0; k < 4; k++) {
        const char *list = k % 2 ? p.early_crl : p.stale_crl;
        bool at_server = k < 2;
        secure s;
        secure_start(&s, context(TLS_SERVER, &p.node, p.ca, at_server ? list : NULL),
                     context(TLS_CLIENT, &p.gateway, p.ca, at_server ? NULL : list));
        secure_connect(&s);
        RUN_UNTIL(&s.w, s.n_refused);
        const char *looks = at_server ? s.refused : s.w.why, *other = at_server ? s.w.why : s.refused;
        if (!has(looks, limits[k % 2]) || !has(looks, " on this machine: set the clocks (NTP)"))
            fail_msg("who looks at the list says \"%s\"", looks);
        if (!has(other, "clocks")) fail_msg("the other end says \"%s\"", other);
        secure_stop(&s);
    }
}

static void wrong_servers_are_left_and_it_is_said_why(void **state)
{
    tls_context *ours = context(TLS_CLIENT, &p.gateway, p.ca, p.crl);
    static const char named[] = "the machine that answers proves to be \"gate-1\", not \"node-a\"";
    refuses(context(TLS_SERVER, &p.gateway, p.ca, NULL), tls_context_ref(ours), named, "");
    refuses(context(TLS_SERVER, &p.foreign, p.ca, NULL), tls_context_ref(ours), "signed by \"Other CA\"",
            "does not know the CA");
    refuses(context(TLS_SERVER, &p.expired, p.ca, NULL), tls_context_ref(ours), "\"node-old\" expired at ",
            "our certificate, or its revocation list, has expired");
    refuses(context(TLS_SERVER, &p.revoked, p.ca, NULL), tls_context_ref(ours),
            "\"node-bad\" has been revoked", "our certificate has been revoked");
    tls_context_unref(ours);
}

/* The role stands in the certificate: only gateways may call, whatever the CA has signed. */
static bool gateways_only(void *user, const tls_identity *who, char why[TLS_WHY_BYTES])
{
    if (strcmp(who->unit, "gateway") == 0 && *(bool *)user) return true;
    snprintf(why, TLS_WHY_BYTES, "it is no gateway");
    return false;
}

static void a_rule_of_admission_is_asked_in_the_handshake_and_again(void **state)
{
    bool open = true;
    tls_options o = {.cert_file = p.node.crt,
                     .key_file = p.node.key,
                     .ca_file = p.ca,
                     .admit = gateways_only,
                     .user = &open};
    tls_context *t;
    secure s;
    assert_int_equal(tls_context_new(&t, TLS_SERVER, &o, NULL), 0);
    refuses(tls_context_ref(t), client(&p.second), "refused", "\"node-a\" was refused: it is no gateway");
    secure_start(&s, t, client(&p.gateway));
    secure_connect(&s);
    assert_int_equal(s.w.n_connected, 1);
    grpc_server_recheck(s.w.server);
    echo_once(&s.w, "still in");
    open = false;
    grpc_server_recheck(s.w.server);
    RUN_UNTIL(&s.w, s.w.n_disconnected);
    assert_int_equal(s.n_refused, 0); /* it had been let in */
    secure_stop(&s);
}

/* ---- those who have not joined yet ---------------------------------------------------------- */

/* A server that takes guests and sends its CA along, as one does at which machines join. */
static tls_context *door(const pki_pair *own)
{
    static char chain[128];
    char bytes[8192];
    tls_context *t;
    snprintf(chain, sizeof chain, "%s/chain.pem", p.dir);
    copy_file(own->crt, chain);
    FILE *from = fopen(p.ca, "r"), *to = fopen(chain, "a");
    size_t n = fread(bytes, 1, sizeof bytes, from);
    assert_int_equal(fwrite(bytes, 1, n, to), n);
    fclose(from);
    fclose(to);
    tls_options o = {.cert_file = chain, .key_file = own->key, .ca_file = p.ca, .guests = true};
    assert_int_equal(tls_context_new(&t, TLS_SERVER, &o, NULL), 0);
    unlink(chain);
    return t;
}

static bool is_open = true;

static tls_context *newcomer(uint8_t pin[32])
{
    tls_context *t;
    tls_options o = {.ca_key_sha256 = pin, .any_name = true, .admit = gateways_only, .user = &is_open};
    assert_int_equal(tls_context_new(&t, TLS_CLIENT, &o, NULL), 0);
    return t;
}

static void pin_of(EVP_PKEY *key, uint8_t pin[32])
{
    unsigned char *der = NULL;
    int n = i2d_PUBKEY(key, &der);
    assert_true(n > 0 && EVP_Digest(der, (size_t)n, pin, NULL, EVP_sha256(), NULL) == 1);
    OPENSSL_free(der);
}

static void a_guest_knows_the_ca_by_its_key_alone(void **state)
{
    secure s;
    outcome o = {0};
    uint8_t pin[32];
    pin_of(p.ca_key, pin);
    secure_start(&s, door(&p.gateway), newcomer(pin));
    secure_connect(&s);
    if (!s.w.n_connected) fail_msg("%s", s.w.why);
    world_open(&s.w, &o, "/s.S/Echo", NULL);
    RUN_UNTIL(&s.w, s.w.n_begun == 1);
    assert_null(grpc_call_peer(s.w.last)); /* nobody in particular */
    assert_string_equal(grpc_call_from(s.w.last), "127.0.0.1");
    assert_string_equal(grpc_channel_peer(s.w.ch)->common_name, "gate-1");
    grpc_server_recheck(s.w.server); /* guests stay */
    grpc_client_send(o.call, "x", 1);
    RUN_UNTIL(&s.w, o.n_messages == 1);
    grpc_client_cancel(o.call);
    RUN_UNTIL(&s.w, s.w.n_cancelled == 1);
    secure_stop(&s);
}

static void a_member_comes_in_by_the_same_door(void **state)
{
    secure s;
    outcome o = {0};
    secure_start(&s, door(&p.gateway), context(TLS_CLIENT, &p.node, p.ca, p.crl));
    s.opt.server_name = "gate-1";
    secure_connect(&s);
    if (!s.w.n_connected) fail_msg("%s", s.w.why);
    world_open(&s.w, &o, "/s.S/Echo", NULL);
    RUN_UNTIL(&s.w, s.w.n_begun == 1);
    assert_string_equal(grpc_call_peer(s.w.last)->common_name, "node-a");
    grpc_client_cancel(o.call);
    RUN_UNTIL(&s.w, s.w.n_cancelled == 1);
    secure_stop(&s);
    refuses(door(&p.node), context(TLS_CLIENT, &p.foreign, p.ca, NULL), "does not know the CA",
            "another cluster");
}

static void a_pin_is_believed_to_the_last_bit(void **state)
{
    uint8_t pin[32];
    pin_of(p.ca_key, pin);
    for (int bit = 0; bit < 256; bit += 51) {
        pin[bit / 8] ^= (uint8_t)(1 << bit % 8);
        refuses(door(&p.gateway), newcomer(pin), "its CA has another key", "");
        pin[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    pin_of(p.other_key, pin);
    refuses(door(&p.gateway), newcomer(pin), "its CA has another key", "");
    /* A node of the cluster is no gateway, and gets no token either. */
    pin_of(p.ca_key, pin);
    refuses(door(&p.second), newcomer(pin), "it is no gateway", "");
    refuses(door(&p.expired), newcomer(pin), "expired at", "");
}

static void options_that_would_trust_anybody_are_refused(void **state)
{
    tls_context *t;
    shoal_err err;
    const tls_options wrong[] = {
        {.any_name = true}, {.any_name = true, .ca_file = p.ca}, {.any_name = true, .admit = gateways_only}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(tls_context_new(&t, TLS_CLIENT, &wrong[i], &err), SHOAL_EINVALID);
        assert_non_null(strstr(err.message, "rule of admission"));
    }
}

static void others_do_not_get_past_the_door(void **state)
{
    secure s;
    tls_context *plain = NULL;
    secure_start(&s, server(), client(&p.gateway));
    grpc_channel_options secure_opt = s.opt;
    s.opt = (grpc_channel_options){.tls = plain}; /* clear text */
    secure_connect(&s);
    RUN_UNTIL(&s.w, s.n_refused == 1 && s.w.n_disconnected == 1);
    assert_int_equal(s.w.n_begun, 0);
    grpc_channel_close(s.w.ch);
    s.w.n_connected = s.w.n_disconnected = 0;
    s.opt = secure_opt;
    secure_connect(&s);
    echo_once(&s.w, "and others come in after it");
    secure_stop(&s);
}

/* A client of our own making, on a thread-less loop: it writes first, then the loop turns until it is
 * refused. */
static void tls_1_2_is_not_spoken_between_machines(void **state)
{
    secure s;
    secure_start(&s, server(), client(&p.gateway));
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    SSL *ssl = SSL_new(ctx);
    BIO *in = BIO_new(BIO_s_mem()), *out = BIO_new(BIO_s_mem());
    struct sockaddr_in sa = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)grpc_server_port(s.w.server))};
    char bytes[4096];
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    SSL_set_max_proto_version(ssl, TLS1_2_VERSION);
    SSL_set_bio(ssl, in, out);
    assert_int_not_equal(SSL_connect(ssl), 1);
    int n = BIO_read(out, bytes, sizeof bytes);
    assert_int_equal(connect(fd, (struct sockaddr *)&sa, sizeof sa), 0);
    assert_int_equal(send(fd, bytes, (size_t)n, 0), n);
    shutdown(fd, SHUT_WR);
    RUN_UNTIL(&s.w, s.n_refused == 1);
    assert_non_null(strstr(s.refused, "does not speak TLS 1.3"));
    n = (int)recv(fd, bytes, sizeof bytes, 0);
    assert_true(n == 7 && bytes[0] == 21 && bytes[6] == 70); /* alert: protocol_version */
    close(fd);
    SSL_free(ssl);
    SSL_CTX_free(ctx);
    secure_stop(&s);
}

static void a_client_of_tls_does_not_wait_for_ever(void **state)
{
    secure s;
    shoal_err err = {0};
    struct sockaddr_in sa = {.sin_family = AF_INET};
    socklen_t n = sizeof sa;
    int deaf = socket(AF_INET, SOCK_STREAM, 0);
    sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(deaf, (struct sockaddr *)&sa, sizeof sa), 0);
    listen(deaf, 1);
    getsockname(deaf, (struct sockaddr *)&sa, &n);
    secure_start(&s, server(), client(&p.gateway));
    snprintf(s.w.address, sizeof s.w.address, "127.0.0.1:%d", ntohs(sa.sin_port));
    s.opt.connect_timeout_ms = 30;
    secure_connect(&s);
    assert_int_equal(s.w.n_connected, 0);
    assert_non_null(strstr(s.w.why, "it does not answer"));
    grpc_channel *never;
    assert_int_equal(
        grpc_channel_open(&never, &s.w.loop, ":1", &(grpc_channel_options){.tls = s.at_client}, NULL, &err),
        SHOAL_EINVALID);
    assert_non_null(strstr(err.message, "needs the name"));
    close(deaf);
    secure_stop(&s);
}

static void contexts_are_checked_when_they_are_made(void **state)
{
    shoal_err err = {0};
    tls_context *t;
    tls_options none = {.ca_file = p.ca}, half = {.cert_file = p.node.crt, .ca_file = p.ca},
                no_ca = {.cert_file = p.node.crt, .key_file = p.node.key, .crl_file = p.crl},
                bad_ca = {.cert_file = p.node.crt, .key_file = p.node.key, .ca_file = p.node.key},
                bad_list = {
                    .cert_file = p.node.crt, .key_file = p.node.key, .ca_file = p.ca, .crl_file = p.ca};
    assert_int_equal(tls_context_new(&t, TLS_SERVER, &none, &err), SHOAL_EINVALID);
    assert_int_equal(tls_context_new(&t, TLS_CLIENT, &half, &err), SHOAL_EINVALID);
    assert_int_equal(tls_context_new(&t, TLS_SERVER, &no_ca, &err), SHOAL_EINVALID);
    assert_int_equal(tls_context_new(&t, TLS_SERVER, &bad_ca, &err), SHOAL_EINVALID);
    assert_non_null(strstr(err.message, "as the TLS CA"));
    assert_int_equal(tls_context_new(&t, TLS_SERVER, &bad_list, &err), SHOAL_EINVALID);
    assert_non_null(strstr(err.message, "as the TLS revocation list"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_ends_know_each_other),
        cmocka_unit_test(a_guest_knows_the_ca_by_its_key_alone),
        cmocka_unit_test(a_member_comes_in_by_the_same_door),
        cmocka_unit_test(a_pin_is_believed_to_the_last_bit),
        cmocka_unit_test(options_that_would_trust_anybody_are_refused),
        cmocka_unit_test(streams_work_over_tls_as_without),
        cmocka_unit_test(a_renewed_certificate_counts_for_new_connections),
        cmocka_unit_test(wrong_clients_stay_out_and_hear_why),
        cmocka_unit_test(lists_out_of_their_time_say_that_clocks_may_be_wrong),
        cmocka_unit_test(wrong_servers_are_left_and_it_is_said_why),
        cmocka_unit_test(a_rule_of_admission_is_asked_in_the_handshake_and_again),
        cmocka_unit_test(others_do_not_get_past_the_door),
        cmocka_unit_test(tls_1_2_is_not_spoken_between_machines),
        cmocka_unit_test(a_client_of_tls_does_not_wait_for_ever),
        cmocka_unit_test(contexts_are_checked_when_they_are_made),
    };
    return cmocka_run_group_tests(tests, make_pki, remove_pki);
}
