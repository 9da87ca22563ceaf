/* Certificates that are replaced while their context is used. */
#include <openssl/ssl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>

#include "../grpc/certificates.h"
#include "logging/log.h"
#include "time/env_sim.h"
#include "wire/tls_link.h"
#include "wire/tls_watch.h"

typedef struct fixture {
    pki p;
    env_sim *time;
    tls_context *context;
    tls_watch *watch;
} fixture;

static int setup(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    shoal_err err;
    pki_make(&f->p);
    f->time = env_sim_new(1);
    const tls_options o = {.cert_file = f->p.node.crt, .key_file = f->p.node.key, .ca_file = f->p.ca};
    assert_int_equal(tls_context_new(&f->context, TLS_SERVER, &o, &err), 0);
    assert_int_equal(tls_watch_new(&f->watch, env_sim_env(f->time), f->context, "test", &err), 0);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    fixture *f = *state;
    tls_watch_free(f->watch);
    tls_context_unref(f->context);
    assert_int_equal(env_sim_timers(f->time), 0);
    env_sim_free(f->time);
    pki_remove(&f->p);
    free(f);
    return 0;
}

static long serial_shown(const fixture *f)
{
    return ASN1_INTEGER_get(X509_get0_serialNumber(SSL_CTX_get0_certificate(tls_context_now(f->context))));
}

static void put(const char *from, const char *to)
{
    assert_int_equal(rename(from, to), 0);
}

static void a_renewed_pair_is_shown(void **state)
{
    fixture *f = *state;
    assert_int_equal(serial_shown(f), 0x1a2b);
    env_sim_run(f->time, 3 * TLS_WATCH_MS);
    assert_int_equal(serial_shown(f), 0x1a2b);
    put(f->p.second.crt, f->p.node.crt);
    put(f->p.second.key, f->p.node.key);
    env_sim_run(f->time, TLS_WATCH_MS);
    assert_int_equal(serial_shown(f), 9);
}

/* Between the two renames the pair does not fit: the old one is shown, and the new one as soon as it is whole. */
static void half_of_a_pair_is_waited_for(void **state)
{
    fixture *f = *state;
    put(f->p.second.crt, f->p.node.crt);
    env_sim_run(f->time, 4 * TLS_WATCH_MS);
    assert_int_equal(serial_shown(f), 0x1a2b);
    put(f->p.second.key, f->p.node.key);
    env_sim_run(f->time, TLS_WATCH_MS);
    assert_int_equal(serial_shown(f), 9);
}

static void files_that_are_gone_change_nothing(void **state)
{
    fixture *f = *state;
    assert_int_equal(unlink(f->p.node.crt), 0);
    env_sim_run(f->time, 2 * TLS_WATCH_MS);
    assert_int_equal(serial_shown(f), 0x1a2b);
    put(f->p.second.crt, f->p.node.crt);
    put(f->p.second.key, f->p.node.key);
    env_sim_run(f->time, TLS_WATCH_MS);
    assert_int_equal(serial_shown(f), 9);
}

/* As the files of a volume of Kubernetes: a link to a folder that is exchanged. */
static void a_folder_behind_a_link_is_followed(void **state)
{
    fixture *f = *state;
    char old[128], new[128], link[128], next[128];
    shoal_err err;
    tls_context *context;
    tls_watch *watch;
    snprintf(old, sizeof old, "%s/old", f->p.dir);
    snprintf(new, sizeof new, "%s/new", f->p.dir);
    snprintf(link, sizeof link, "%s/data", f->p.dir);
    snprintf(next, sizeof next, "%s/data_tmp", f->p.dir);
    pki_require(mkdir(old, 0700) == 0 && mkdir(new, 0700) == 0 && symlink("old", link) == 0);
    const pki_pair *const pairs[] = {&f->p.node, &f->p.second};
    char at[2][2][160];
    for (int i = 0; i < 2; i++) {
        snprintf(at[i][0], sizeof at[i][0], "%s/tls.crt", i ? new : old);
        snprintf(at[i][1], sizeof at[i][1], "%s/tls.key", i ? new : old);
        put(pairs[i]->crt, at[i][0]);
        put(pairs[i]->key, at[i][1]);
    }
    snprintf(at[0][0], sizeof at[0][0], "%s/tls.crt", link);
    snprintf(at[0][1], sizeof at[0][1], "%s/tls.key", link);
    const tls_options o = {.cert_file = at[0][0], .key_file = at[0][1], .ca_file = f->p.ca};
    assert_int_equal(tls_context_new(&context, TLS_SERVER, &o, &err), 0);
    assert_int_equal(tls_watch_new(&watch, env_sim_env(f->time), context, "test", &err), 0);
    pki_require(symlink("new", next) == 0);
    put(next, link);
    env_sim_run(f->time, TLS_WATCH_MS);
    assert_int_equal(
        ASN1_INTEGER_get(X509_get0_serialNumber(SSL_CTX_get0_certificate(tls_context_now(context)))), 9);
    tls_watch_free(watch);
    tls_context_unref(context);
}

int main(void)
{
    log_setup(LOG_OFF, false);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_renewed_pair_is_shown, setup, teardown),
        cmocka_unit_test_setup_teardown(half_of_a_pair_is_waited_for, setup, teardown),
        cmocka_unit_test_setup_teardown(files_that_are_gone_change_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(a_folder_behind_a_link_is_followed, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
