/* TLS with a certificate made on the spot, and curl end to end where it is installed. */
#include "wire_fixture.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

static char cert_file[64], key_file[64];

static int make_certificate(void **state)
{
    snprintf(cert_file, sizeof cert_file, "/tmp/shoal-tls-%d.crt", (int)getpid());
    snprintf(key_file, sizeof key_file, "/tmp/shoal-tls-%d.key", (int)getpid());
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *x = X509_new();
    ASN1_INTEGER_set(X509_get_serialNumber(x), 1);
    X509_gmtime_adj(X509_getm_notBefore(x), -3600);
    X509_gmtime_adj(X509_getm_notAfter(x), 86400);
    X509_set_pubkey(x, key);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_ASC,
                               (const unsigned char *)"localhost", -1, -1, 0);
    X509_set_issuer_name(x, X509_get_subject_name(x));
    X509_sign(x, key, EVP_sha256());
    FILE *c = fopen(cert_file, "w"), *k = fopen(key_file, "w");
    PEM_write_X509(c, x);
    PEM_write_PrivateKey(k, key, NULL, NULL, 0, NULL, NULL);
    fclose(c);
    fclose(k);
    X509_free(x);
    EVP_PKEY_free(key);
    return 0;
}

static int remove_certificate(void **state)
{
    unlink(cert_file);
    unlink(key_file);
    return 0;
}

static SSL *tls_connect(const fixture *f, SSL_CTX *ctx, const char *alpn)
{
    SSL *ssl = SSL_new(ctx);
    unsigned char wire[16];
    wire[0] = (unsigned char)strlen(alpn);
    memcpy(wire + 1, alpn, wire[0]);
    if (wire[0]) SSL_set_alpn_protos(ssl, wire, wire[0] + 1u);
    SSL_set_fd(ssl, fixture_connect(f));
    return ssl;
}

static void tls_close(SSL *ssl)
{
    int fd = SSL_get_fd(ssl);
    SSL_free(ssl);
    close(fd);
}

static void answers_over_tls_and_says_goodbye(void **state)
{
    fixture f = {0};
    http_tls tls = {.cert_file = cert_file, .key_file = key_file};
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    fixture_start(&f, NULL, &tls);
    for (int version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++) {
        SSL *ssl = tls_connect(&f, ctx, "http/1.1");
        static const char request[] = "GET /big HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
        char chunk[4096];
        int n, total = 0;
        SSL_set_max_proto_version(ssl, version);
        assert_int_equal(SSL_connect(ssl), 1);
        assert_int_equal(SSL_version(ssl), version);
        SSL_write(ssl, request, sizeof request - 1);
        while ((n = SSL_read(ssl, chunk, sizeof chunk)) > 0) total += n;
        assert_int_equal(SSL_get_error(ssl, n), SSL_ERROR_ZERO_RETURN); /* close_notify came */
        assert_true(total > 200000);
        tls_close(ssl);
    }
    SSL_CTX_free(ctx);
    fixture_stop(&f);
}

static void agrees_on_the_protocol_and_refuses_others(void **state)
{
    fixture f = {0};
    http_tls tls = {.cert_file = cert_file, .key_file = key_file};
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    fixture_start(&f, NULL, &tls);
    const unsigned char *agreed;
    unsigned n;
    SSL *h2 = tls_connect(&f, ctx, "h2"), *odd = tls_connect(&f, ctx, "spdy/9"),
        *old = tls_connect(&f, ctx, "");
    assert_int_equal(SSL_connect(h2), 1);
    SSL_get0_alpn_selected(h2, &agreed, &n);
    assert_true(n == 2 && memcmp(agreed, "h2", 2) == 0);
    char first[9];
    assert_int_equal(SSL_read(h2, first, 9), 9);
    assert_int_equal(first[3], 4); /* the server's SETTINGS */
    assert_int_not_equal(SSL_connect(odd), 1);
    SSL_set_max_proto_version(old, TLS1_1_VERSION);
    assert_int_not_equal(SSL_connect(old), 1);
    tls_close(h2);
    tls_close(odd);
    tls_close(old);
    SSL_CTX_free(ctx);
    char *clear = fixture_exchange(&f, "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
    assert_null(strstr(clear, "hello"));
    free(clear);
    fixture_stop(&f);
}

/* Send it over a connection that agreed on `alpn`; what comes back, free() it. */
static char *tls_exchange(const fixture *f, const char *alpn, const char *bytes)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    SSL *ssl = tls_connect(f, ctx, alpn);
    char chunk[4096];
    buf b = {0};
    int n;
    assert_int_equal(SSL_connect(ssl), 1);
    SSL_write(ssl, bytes, (int)strlen(bytes));
    buf_reserve(&b, 1);
    while ((n = SSL_read(ssl, chunk, sizeof chunk)) > 0) buf_append(&b, chunk, (size_t)n);
    tls_close(ssl);
    SSL_CTX_free(ctx);
    return buf_take(&b);
}

static void holds_to_what_was_agreed(void **state)
{
    static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
                      hello[] = "GET /hello HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    static const struct {
        const char *alpn, *bytes, *want;
    } cases[] = {
        {"http/1.1", hello, "HTTP/1.1 200 "},
        {"http/1.1", preface, "HTTP/1.1 505 "},
        {"", hello, "HTTP/1.1 200 "},
        {"", preface, "HTTP/1.1 505 "},
    };
    fixture f = {0};
    http_tls tls = {.cert_file = cert_file, .key_file = key_file};
    fixture_start(&f, NULL, &tls);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *answer = tls_exchange(&f, cases[i].alpn, cases[i].bytes);
        if (strncmp(answer, cases[i].want, strlen(cases[i].want)) != 0)
            fail_msg("agreed '%s', sent %.8s: %.60s", cases[i].alpn, cases[i].bytes, answer);
        free(answer);
    }
    int served = atomic_load(&f.n_requests);
    free(tls_exchange(&f, "h2", hello));
    assert_int_equal(atomic_load(&f.n_requests), served);
    fixture_stop(&f);
}

/* Encrypted and authenticated in one (AEAD), with a key that is forgotten; in TLS 1.3 there are no others. */
static void offers_aead_suites_alone(void **state)
{
    static const char *const suites[] = {"ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-ECDSA-CHACHA20-POLY1305",
                                         "ECDHE-ECDSA-AES128-SHA", "ECDHE-ECDSA-AES256-SHA384"};
    fixture f = {0};
    http_tls tls = {.cert_file = cert_file, .key_file = key_file};
    fixture_start(&f, NULL, &tls);
    for (size_t i = 0; i < sizeof suites / sizeof *suites; i++) {
        SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
        SSL_CTX_set_max_proto_version(ctx, TLS1_2_VERSION);
        assert_int_equal(SSL_CTX_set_cipher_list(ctx, suites[i]), 1);
        SSL *ssl = tls_connect(&f, ctx, "");
        assert_int_equal(SSL_connect(ssl) == 1, i < 2);
        tls_close(ssl);
        SSL_CTX_free(ctx);
    }
    fixture_stop(&f);
}

static void a_silent_handshake_is_cut(void **state)
{
    fixture f = {0};
    http_tls tls = {.cert_file = cert_file, .key_file = key_file};
    http_limits l = {.request_timeout_ms = 50};
    fixture_start(&f, &l, &tls);
    int fd = fixture_connect(&f);
    char *nothing = read_all(fd, NULL);
    assert_string_equal(nothing, "");
    free(nothing);
    close(fd);
    fixture_stop(&f);
}

static void says_what_is_wrong_with_a_certificate(void **state)
{
    uv_loop_t loop;
    http_server *s;
    shoal_err err = {0};
    http_handler h = {0};
    uv_loop_init(&loop);
    assert_int_equal(http_server_new(&s, &loop, &h, NULL, &err), 0);
    http_tls missing = {.cert_file = "/nonexistent.crt", .key_file = key_file},
             swapped = {.cert_file = cert_file, .key_file = cert_file};
    assert_int_equal(http_server_listen(s, "127.0.0.1:0", &missing, &err), SHOAL_EINVALID);
    assert_non_null(strstr(err.message, "/nonexistent.crt"));
    assert_int_equal(http_server_listen(s, "127.0.0.1:0", &swapped, &err), SHOAL_EINVALID);
    assert_non_null(strstr(err.message, "key"));
    http_server_close(s, NULL, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
}

static char *run_curl(const char *options, const char *scheme, int port, const char *path)
{
    char command[512], chunk[4096];
    buf b = {0};
    snprintf(command, sizeof command, "curl -s -S -m 20 --noproxy '*' %s %s://127.0.0.1:%d%s 2>&1", options,
             scheme, port, path);
    FILE *p = popen(command, "r");
    buf_reserve(&b, 1);
    for (size_t n; p && (n = fread(chunk, 1, sizeof chunk, p)) > 0;) buf_append(&b, chunk, n);
    if (p) pclose(p);
    return buf_take(&b);
}

static void curl_gets_answers(void **state)
{
    if (system("curl --version 2>/dev/null | grep -q HTTP2") != 0) {
        fprintf(stderr, "SKIP curl_gets_answers: no curl with HTTP/2 here\n");
        skip();
    }
    static const struct {
        const char *options, *path, *want;
        bool tls;
    } cases[] = {
        {"--http1.1 -w '%{http_version}'", "/hello", "hello\n1.1", false},
        {"--http2-prior-knowledge -w '%{http_version}'", "/hello", "hello\n2", false},
        {"--http2-prior-knowledge", "/stream", "one two three", false},
        {"--http1.1 -d abc -H 'Expect: 100-continue'", "/echo", "abc", false},
        {"--http1.1 -d abc -H 'Transfer-Encoding: chunked'", "/echo", "abc", false},
        {"-k --http2 -w '%{http_version}'", "/hello", "hello\n2", true},
        {"-k --http1.1 -w '%{http_version}'", "/stream", "one two three1.1", true},
        {"-k --http2 -d abc", "/echo", "abc", true},
    };
    fixture clear = {0}, secret = {0};
    http_tls tls = {.cert_file = cert_file, .key_file = key_file};
    fixture_start(&clear, NULL, NULL);
    fixture_start(&secret, NULL, &tls);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int port = cases[i].tls ? secret.port : clear.port;
        char *got = run_curl(cases[i].options, cases[i].tls ? "https" : "http", port, cases[i].path);
        if (strcmp(got, cases[i].want) != 0) fail_msg("curl %s: %s", cases[i].options, got);
        free(got);
    }
    fixture_stop(&clear);
    fixture_stop(&secret);
}

static void update_keys(SSL *ssl, int n)
{
    for (int i = 0; i < n; i++) {
        if (SSL_key_update(ssl, SSL_KEY_UPDATE_NOT_REQUESTED) != 1 || SSL_do_handshake(ssl) != 1) return;
    }
}

/* A few new keys are fine. */
static void a_client_that_only_updates_its_keys_is_closed(void **state)
{
    static const char request[] = "GET /hello HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    fixture f = {0};
    http_tls tls = {.cert_file = cert_file, .key_file = key_file};
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    fixture_start(&f, NULL, &tls);
    for (int many = 0; many < 2; many++) {
        char chunk[4096];
        SSL *ssl = tls_connect(&f, ctx, "http/1.1");
        assert_int_equal(SSL_connect(ssl), 1);
        update_keys(ssl, many ? 3000 : 20);
        SSL_write(ssl, request, sizeof request - 1);
        int n = SSL_read(ssl, chunk, sizeof chunk);
        assert_int_equal(n > 0, !many);
        if (!many) assert_memory_equal(chunk, "HTTP/1.1 200 ", 13);
        tls_close(ssl);
    }
    SSL_CTX_free(ctx);
    fixture_stop(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_over_tls_and_says_goodbye),
        cmocka_unit_test(agrees_on_the_protocol_and_refuses_others),
        cmocka_unit_test(holds_to_what_was_agreed),
        cmocka_unit_test(a_client_that_only_updates_its_keys_is_closed),
        cmocka_unit_test(offers_aead_suites_alone),
        cmocka_unit_test(a_silent_handshake_is_cut),
        cmocka_unit_test(says_what_is_wrong_with_a_certificate),
        cmocka_unit_test(curl_gets_answers),
    };
    return cmocka_run_group_tests(tests, make_certificate, remove_certificate);
}
