/* The state of a CA when its processes are killed, and when several work at once: what was said to be done is
 * done, and nothing is half done. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <openssl/x509.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"
#include "trust_fixture.h"

typedef struct deed { /* what a child reports, after the authority said it is done */
    char what;        /* 'j'oined, 'r'evoked, 't'oken used twice: must never be */
    char name[24];
} deed;

static void report(int to, char what, const char *name)
{
    deed d = {.what = what};
    strcpy(d.name, name);
    if (write(to, &d, sizeof d) != (ssize_t)sizeof d) _exit(3);
}

/* Join and revoke until killed, or for n rounds. */
static void work(int to, int worker, int n)
{
    ca *c = NULL;
    EVP_PKEY *key = NULL;
    if (ca_open(&c, ca_path, NULL) != 0) _exit(4);
    for (int i = 0; i < n; i++) {
        char name[24], text[TOKEN_TEXT_SIZE];
        buf der = {0}, pem = {0};
        snprintf(name, sizeof name, "w%d-%d", worker, i);
        if (key_new(&key, NULL) != 0 || key_request(key, name, &der, NULL) != 0) _exit(5);
        if (ca_token(c, &(ca_token_ask){.name = name}, NOW, text, NULL) != 0) _exit(6);
        if (ca_enrol(c, text, (uint8_t *)der.data, der.len, NOW, &pem, NULL, NULL) != 0) _exit(7);
        report(to, 'j', name);
        if (i % 2) {
            if (ca_revoke(c, name, NOW, NULL, NULL) != 0) _exit(8);
            report(to, 'r', name);
        }
        buf_done(&der);
        buf_done(&pem);
        EVP_PKEY_free(key);
    }
    _exit(0);
}

static const ledger_cert *cert_of(const ledger *l, const char *name)
{
    for (size_t i = 0; i < l->n_certs; i++)
        if (strcmp(l->certs[i].name, name) == 0) return &l->certs[i];
    return NULL;
}

/* The ledger holds every deed, each certificate was paid for by a token, and the list of the revoked is that
 * of the ledger. */
static void check(const deed *deeds, size_t n)
{
    ca *c = NULL;
    ledger l;
    shoal_err err;
    X509_CRL *crl = NULL;
    buf pem = {0};
    size_t n_used = 0, n_revoked = 0;
    if (ca_open(&c, ca_path, &err) != 0) fail_msg("%s", err.message);
    if (ca_ledger(c, &l, &err) != 0) fail_msg("%s", err.message);
    for (size_t i = 0; i < n; i++) {
        const ledger_cert *cert = cert_of(&l, deeds[i].name);
        assert_non_null(cert);
        if (deeds[i].what == 'r') assert_true(cert->revoked > 0);
    }
    for (size_t i = 0; i < l.n_tokens; i++) {
        n_used += l.tokens[i].used > 0;
        assert_true((l.tokens[i].used > 0) == (cert_of(&l, l.tokens[i].name) != NULL));
    }
    assert_int_equal(n_used, l.n_certs);
    assert_int_equal(ca_put_crl(c, NOW, &pem, NULL), 0);
    assert_int_equal(cert_crl_from_pem(&crl, pem.data, pem.len, "crl.pem", NULL), 0);
    assert_int_equal(cert_crl_number(crl), l.crl_number);
    for (size_t i = 0; i < l.n_certs; i++) n_revoked += l.certs[i].revoked > 0;
    STACK_OF(X509_REVOKED) *listed = X509_CRL_get_REVOKED(crl); /* NULL: nobody is */
    assert_int_equal(listed ? sk_X509_REVOKED_num(listed) : 0, (int)n_revoked);
    X509_CRL_free(crl);
    buf_done(&pem);
    ledger_done(&l);
    ca_close(c);
}

static size_t take_deeds(int from, deed *deeds, size_t cap)
{
    size_t n = 0;
    while (n < cap && read(from, &deeds[n], sizeof *deeds) == (ssize_t)sizeof *deeds) n++;
    return n;
}

static pid_t start(int *ret_from, int worker, int n)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        close(ends[0]);
        work(ends[1], worker, n);
    }
    close(ends[1]);
    *ret_from = ends[0];
    return pid;
}

enum { MAX_DEEDS = 4000 };
static deed deeds[MAX_DEEDS];

static void a_killed_command_leaves_whole_state(void **state)
{
    ca_close(new_ca());
    size_t n = 0;
    for (int round = 0; round < 25; round++) {
        int from;
        pid_t pid = start(&from, round, 1000000);
        n += take_deeds(from, deeds + n, 1); /* however slow the machine is: in the midst of its work */
        nanosleep(&(struct timespec){.tv_nsec = 2000000 + (long)(rng_mix((uint64_t)round) % 30000000)}, NULL);
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        n += take_deeds(from, deeds + n, MAX_DEEDS - n);
        close(from);
        check(deeds, n);
    }
    assert_true(n >= 25);
}

static void commands_at_once_lose_nothing_of_each_other(void **state)
{
    enum { WORKERS = 4, ROUNDS = 12 };
    ca_close(new_ca());
    int from[WORKERS], status;
    pid_t pids[WORKERS];
    size_t n = 0;
    for (int i = 0; i < WORKERS; i++) pids[i] = start(&from[i], i, ROUNDS);
    for (int i = 0; i < WORKERS; i++) {
        n += take_deeds(from[i], deeds + n, MAX_DEEDS - n);
        close(from[i]);
        waitpid(pids[i], &status, 0);
        assert_int_equal(status, 0);
    }
    assert_int_equal(n, WORKERS * (ROUNDS + ROUNDS / 2));
    check(deeds, n);
}

/* One token, many at its door: exactly one gets in. */
static void of_those_who_bring_one_token_at_once_one_joins(void **state)
{
    enum { RIVALS = 6 };
    char text[TOKEN_TEXT_SIZE];
    ca *c = new_ca();
    pid_t pids[RIVALS];
    int n_in = 0, status;
    new_token(c, ROLE_NODE, text);
    for (int i = 0; i < RIVALS; i++) {
        if ((pids[i] = fork()) != 0) continue;
        char name[16];
        buf der = {0}, pem = {0};
        ca *own = NULL;
        snprintf(name, sizeof name, "rival-%d", i);
        new_request(name, &der);
        if (ca_open(&own, ca_path, NULL) != 0) _exit(2);
        int rc = ca_enrol(own, text, (uint8_t *)der.data, der.len, NOW, &pem, NULL, NULL);
        _exit(rc == 0 ? 0 : rc == SHOAL_EAUTH ? 1 : 2);
    }
    for (int i = 0; i < RIVALS; i++) {
        waitpid(pids[i], &status, 0);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) != 2);
        n_in += WEXITSTATUS(status) == 0;
    }
    assert_int_equal(n_in, 1);
    ca_close(c);
}

static void of_two_who_make_a_ca_at_once_one_does(void **state)
{
    enum { RIVALS = 4 };
    pid_t pids[RIVALS];
    int n_made = 0, status;
    for (int i = 0; i < RIVALS; i++)
        if ((pids[i] = fork()) == 0) _exit(ca_init(ca_path, "home", NOW, NULL) == 0 ? 0 : 1);
    for (int i = 0; i < RIVALS; i++) {
        waitpid(pids[i], &status, 0);
        n_made += WIFEXITED(status) && WEXITSTATUS(status) == 0;
    }
    assert_int_equal(n_made, 1);
    check(NULL, 0);
    DIR *d = opendir(place); /* the losers' folders are gone */
    for (struct dirent *e; (e = readdir(d));) assert_null(strstr(e->d_name, ".new."));
    closedir(d);
}

static void write_file(const char *name, const char *data, size_t n)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", ca_path, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    assert_true(fd >= 0 && write(fd, data, n) == (ssize_t)n);
    close(fd);
}

/* A crash at any byte of a write leaves NAME.new cut there; it is never read, and the next write makes its
 * own. */
static void a_write_that_was_cut_anywhere_changes_nothing(void **state)
{
    ca *c = new_ca();
    ledger before, after;
    buf text = {0};
    struct stat st;
    char path[256];
    X509_free(join(c, "pi", ROLE_NODE, NOW));
    assert_int_equal(ca_ledger(c, &before, NULL), 0);
    assert_int_equal(ledger_put(&before, &text, NULL), 0);
    for (size_t n = 0; n <= text.len; n += 13) {
        write_file("ledger.new", text.data, n);
        assert_int_equal(ca_ledger(c, &after, NULL), 0);
        assert_int_equal(after.n_certs, 1);
        ledger_done(&after);
    }
    X509_free(join(c, "pi2", ROLE_NODE, NOW));
    assert_int_equal(ca_ledger(c, &after, NULL), 0);
    assert_int_equal(after.n_certs, 2);
    snprintf(path, sizeof path, "%s/ledger", ca_path);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600); /* not the leftover's */
    ledger_done(&before);
    ledger_done(&after);
    buf_done(&text);
    ca_close(c);
}

/* A ledger that the disk has cut: nothing is signed from it, and the sentence names the file. */
static void a_damaged_ledger_stops_the_authority(void **state)
{
    ca *c = new_ca();
    char text[TOKEN_TEXT_SIZE], path[256];
    buf whole = {0}, der = {0}, pem = {0};
    shoal_err err;
    X509_free(join(c, "pi", ROLE_NODE, NOW));
    new_token(c, ROLE_NODE, text);
    EVP_PKEY_free(new_request("pi2", &der));
    folder f = FOLDER_NONE;
    assert_int_equal(folder_open(&f, ca_path, false, NULL), 0);
    assert_int_equal(folder_read(&f, "ledger", 1 << 20, true, &whole, NULL), 0);
    snprintf(path, sizeof path, "%s/ledger", ca_path);
    for (size_t n = 0; n < whole.len; n += 29) {
        write_file("ledger", whole.data, n);
        assert_int_equal(ca_enrol(c, text, (uint8_t *)der.data, der.len, NOW, &pem, NULL, &err),
                         SHOAL_EFORMAT);
        assert_true(says(&err, path));
        assert_int_equal(ca_revoke(c, "pi", NOW, NULL, &err), SHOAL_EFORMAT);
    }
    write_file("ledger", whole.data, whole.len);
    assert_int_equal(ca_enrol(c, text, (uint8_t *)der.data, der.len, NOW, &pem, NULL, &err), 0);
    folder_close(&f);
    buf_done(&whole);
    buf_done(&der);
    buf_done(&pem);
    ca_close(c);
}

/* Between the ledger and the list of the revoked a crash may come: the list is mended when it is next asked
 * for. */
static void a_list_of_the_revoked_that_is_behind_is_mended(void **state)
{
    ca *c = new_ca();
    buf old = {0}, crl = {0};
    trust *t;
    X509 *pi = join(c, "pi", ROLE_NODE, NOW);
    assert_int_equal(ca_put_crl(c, NOW, &old, NULL), 0);
    assert_int_equal(ca_revoke(c, "pi", NOW, NULL, NULL), 0);
    for (size_t n = 0; n <= old.len; n += old.len / 9) {
        write_file("crl.pem", old.data, n);
        t = trust_of(c, NOW);
        assert_int_equal(trust_check(t, pi, &(trust_want){.any_role = true}, NOW, NULL, NULL), TRUST_REVOKED);
        trust_close(t);
    }
    X509_free(pi);
    buf_done(&old);
    buf_done(&crl);
    ca_close(c);
}

static void a_link_in_the_folder_leads_nowhere(void **state)
{
    char elsewhere[128], path[128], text[TOKEN_TEXT_SIZE];
    ca *c = new_ca();
    shoal_err err;
    snprintf(elsewhere, sizeof elsewhere, "%s/elsewhere", place);
    snprintf(path, sizeof path, "%s/ledger.new", ca_path);
    assert_int_equal(symlink(elsewhere, path), 0);
    new_token(c, ROLE_NODE, text); /* the link is replaced, not followed */
    assert_int_equal(access(elsewhere, F_OK), -1);
    snprintf(path, sizeof path, "%s/ledger", ca_path);
    assert_int_equal(rename(path, elsewhere), 0);
    assert_int_equal(symlink(elsewhere, path), 0);
    assert_true(ca_token(c, &(ca_token_ask){0}, NOW, text, &err) < 0);
    ca_close(c);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, place_open, place_close)
    const struct CMUnitTest tests[] = {
        TEST(a_killed_command_leaves_whole_state),
        TEST(commands_at_once_lose_nothing_of_each_other),
        TEST(of_those_who_bring_one_token_at_once_one_joins),
        TEST(of_two_who_make_a_ca_at_once_one_does),
        TEST(a_write_that_was_cut_anywhere_changes_nothing),
        TEST(a_damaged_ledger_stops_the_authority),
        TEST(a_list_of_the_revoked_that_is_behind_is_mended),
        TEST(a_link_in_the_folder_leads_nowhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
