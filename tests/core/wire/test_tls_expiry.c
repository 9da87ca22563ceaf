/* When certificates are warned of, and which of several counts. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <time.h>
#include <cmocka.h>

#include "../grpc/certificates.h"
#include "logging/log.h"
#include "time/env_sim.h"
#include "wire/tls_expiry.h"
#include "wire/tls_watch.h"

enum { DAY = 86400 };

typedef struct fixture {
    pki p;
    pki_pair pair; /* valid for 400 days, of which 31 are left */
    int64_t now_s, until_s;
} fixture;

static int setup(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    pki_make(&f->p);
    pki_pair_make(&f->p, &f->pair, "long",
                  &(pki_wish){.name = "node-a", .serial = 10, .from_s = -369 * DAY, .to_s = 31 * DAY}, 0);
    f->now_s = time(NULL);
    f->until_s = f->now_s + 31 * DAY;
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    fixture *f = *state;
    pki_remove(&f->p);
    free(f);
    return 0;
}

static tls_context *context_of(const pki_pair *own, const char *ca)
{
    const tls_options o = {.cert_file = own->crt, .key_file = own->key, .ca_file = ca};
    tls_context *t;
    shoal_err err;
    assert_int_equal(tls_context_new(&t, TLS_SERVER, &o, &err), 0);
    return t;
}

static unsigned step_of(int64_t life_days, double left_days)
{
    const tls_validity v = {.from_s = 0, .until_s = life_days * DAY};
    return tls_expiry_step(&v, v.until_s - (int64_t)(left_days * DAY));
}

static void a_year_is_warned_of_at_30_7_and_1_days(void **state)
{
    static const struct {
        double left;
        unsigned step;
    } at[] = {{365, 0}, {30.1, 0}, {29.9, 1}, {7.1, 1}, {6.9, 2},
              {1.1, 2}, {0.9, 3},  {0.01, 3}, {0, 4},   {-5, 4}};
    for (size_t i = 0; i < sizeof at / sizeof *at; i++)
        assert_int_equal(step_of(365, at[i].left), at[i].step);
}

static void a_short_life_is_warned_of_in_its_last_quarter(void **state)
{
    assert_int_equal(step_of(30, 29), 0);
    assert_int_equal(step_of(30, 10), 0); /* when members renew theirs */
    assert_int_equal(step_of(30, 7.4), 1);
    assert_int_equal(step_of(30, 6.9), 2);
    assert_int_equal(step_of(1, 0.9), 0);
    assert_int_equal(step_of(1, 0.26), 0);
    assert_int_equal(step_of(1, 0.24), 3);
    assert_int_equal(step_of(1, -0.1), 4);
}

static void the_first_of_several_to_expire_counts(void **state)
{
    fixture *f = *state;
    char both[128], command[512];
    tls_validity own, ca;
    snprintf(both, sizeof both, "%s/both.crt", f->p.dir);
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *brief = pki_sign(key, &(pki_wish){.name = "Brief CA", .serial = 2, .to_s = 7200}, NULL, NULL);
    pki_write_cert(both, brief);
    snprintf(command, sizeof command, "cat %s >>%s", f->p.ca, both);
    pki_require(system(command) == 0);
    tls_context *t = context_of(&f->pair, both);
    assert_true(tls_context_validity(t, TLS_OWN, &own) && tls_context_validity(t, TLS_CA, &ca));
    assert_in_range(own.until_s, f->until_s - 60, f->until_s);
    assert_in_range(f->now_s - own.from_s, 369 * DAY, 369 * DAY + 60);
    assert_in_range(ca.until_s, f->now_s + 7200 - 60, f->now_s + 7200);
    tls_context_unref(t);
    /* A chain: the certificate, and that of who signed it. */
    snprintf(command, sizeof command, "cat %s >>%s", both, f->pair.crt);
    pki_require(system(command) == 0);
    t = context_of(&f->pair, NULL);
    assert_true(tls_context_validity(t, TLS_OWN, &own));
    assert_int_equal(own.until_s, ca.until_s);
    assert_false(tls_context_validity(t, TLS_CA, &ca)); /* nobody is asked who he is */
    tls_context_unref(t);
    X509_free(brief);
    EVP_PKEY_free(key);
}

/* ---- what the log says ---------------------------------------------------------------------------------- */

static char text[8192];

/* Standard error in `text` from here on. */
static int divert(const char *path)
{
    int old = dup(STDERR_FILENO), to = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    pki_require(old >= 0 && to >= 0 && dup2(to, STDERR_FILENO) >= 0);
    close(to);
    log_setup(LOG_WARN, false);
    return old;
}

static void read_back(const char *path, int old)
{
    pki_require(dup2(old, STDERR_FILENO) >= 0);
    close(old);
    FILE *file = fopen(path, "r");
    pki_require(file != NULL);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
}

static size_t count(const char *what)
{
    size_t n = 0;
    for (const char *at = text; (at = strstr(at, what)); at++) n++;
    return n;
}

static void each_warning_comes_once_and_a_renewal_begins_anew(void **state)
{
    fixture *f = *state;
    char path[128], wanted[256];
    tls_expiry e = {0};
    shoal_err err;
    snprintf(path, sizeof path, "%s/log", f->p.dir);
    tls_context *t = context_of(&f->pair, NULL);
    int old = divert(path);
    for (int day = 0; day < 33; day++)
        for (int i = 0; i < 3; i++) tls_expiry_tell(&e, t, "test", f->now_s + day * DAY + i);
    read_back(path, old);
    assert_int_equal(count("level=warn component=test event=certificate_expires "), 3);
    assert_int_equal(count("level=error component=test event=certificate_expired "), 1);
    snprintf(wanted, sizeof wanted, " file=%s kind=certificate days=", f->pair.crt);
    assert_int_equal(count(wanted), 4);
    /* Renewed, and late again. */
    pki_pair_make(&f->p, &f->pair, "long",
                  &(pki_wish){.name = "node-a", .serial = 11, .from_s = -300 * DAY, .to_s = 60 * DAY}, 0);
    assert_int_equal(tls_context_reload(t, &err), 0);
    old = divert(path);
    tls_expiry_tell(&e, t, "test", f->now_s);
    tls_expiry_tell(&e, t, "test", f->now_s + 31 * DAY);
    read_back(path, old);
    assert_int_equal(count("event=certificate_expires "), 1);
    assert_int_equal(count("event=certificate_expired "), 0);
    tls_context_unref(t);
}

/* Whoever watches the files of a context hears of its end, too. */
static void watched_contexts_are_warned_of(void **state)
{
    fixture *f = *state;
    char path[128];
    tls_watch *w;
    shoal_err err;
    env_sim *time = env_sim_new(1);
    snprintf(path, sizeof path, "%s/log", f->p.dir);
    const int64_t begin_s = env_wall_s(env_sim_env(time)), real_s = f->now_s;
    /* By the simulation's clock this one has ten days left. */
    pki_pair_make(&f->p, &f->pair, "long",
                  &(pki_wish){.name = "node-a",
                              .serial = 12,
                              .from_s = (long)(begin_s - real_s) - 300 * DAY,
                              .to_s = (long)(begin_s - real_s) + 10 * DAY},
                  0);
    tls_context *t = context_of(&f->pair, NULL);
    int old = divert(path);
    assert_int_equal(tls_watch_new(&w, env_sim_env(time), t, "gateway", &err), 0);
    env_sim_run(time, 3 * TLS_WATCH_MS);
    read_back(path, old);
    assert_int_equal(count("component=gateway event=certificate_expires "), 1);
    tls_watch_free(w);
    tls_context_unref(t);
    env_sim_free(time);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_year_is_warned_of_at_30_7_and_1_days),
        cmocka_unit_test(a_short_life_is_warned_of_in_its_last_quarter),
        cmocka_unit_test_setup_teardown(the_first_of_several_to_expire_counts, setup, teardown),
        cmocka_unit_test_setup_teardown(each_warning_comes_once_and_a_renewal_begins_anew, setup, teardown),
        cmocka_unit_test_setup_teardown(watched_contexts_are_warned_of, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
