/* Where a Redis is, as its URL says it. What is kept there: tests/e2e/sessions_redis.sh, with the real
 * server. */
#include "check.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include "sessions/session_redis.h"

static void reads_every_part_of_a_url(void **state)
{
    (void)state;
    redis_place p;
    assert_ok(redis_place_parse(&p, "redis://cellar", &err_));
    assert_string_equal(p.host, "cellar");
    assert_int_equal(p.port, 6379);
    assert_string_equal(p.password, "");
    assert_ok(redis_place_parse(&p, "redis://ada:p@ss:w/rd@10.0.0.1:7000/12", &err_));
    assert_string_equal(p.user, "ada");
    assert_string_equal(p.password, "p@ss:w/rd");
    assert_string_equal(p.host, "10.0.0.1");
    assert_int_equal(p.port, 7000);
    assert_int_equal(p.database, 12);
    assert_ok(redis_place_parse(&p, "redis://:secret@h/", &err_));
    assert_string_equal(p.user, "");
    assert_string_equal(p.password, "secret");
    assert_int_equal(p.database, 0);
}

static void refuses_what_is_no_url_and_tells_no_password(void **state)
{
    (void)state;
    static const char *const BAD[] = {"",
                                      "cellar:6379",
                                      "rediss://cellar",
                                      "redis://",
                                      "redis://:6379",
                                      "redis://hunter2@cellar",
                                      "redis://h:0",
                                      "redis://h:65536",
                                      "redis://h:99999999999999999999",
                                      "redis://h:",
                                      "redis://h:7/x",
                                      "redis://:hunter2@h/-1"};
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        redis_place p = {.port = 7};
        shoal_err err;
        if (redis_place_parse(&p, BAD[i], &err) != SHOAL_EINVALID) fail_msg("%s is taken", BAD[i]);
        assert_int_equal(p.port, 7);
        assert_null(strstr(err.message, "hunter2"));
    }
}

/* ---- servers that are none ------------------------------------------------------------------------ */

typedef struct liar {
    int fd, port;
    const char *says; /* to whatever comes; NULL: nothing, ever */
    size_t n;
    useconds_t pause; /* before each byte */
    pthread_t thread;
    atomic_bool ends;
} liar;

/* However long it takes the other to say something. */
static ssize_t listen_to(const liar *l, int fd)
{
    char in[4096];
    ssize_t n;
    do n = recv(fd, in, sizeof in, 0);
    while (n < 0 && errno == EAGAIN && !l->ends);
    return n;
}

static void talk_to(const liar *l, int fd)
{
    if (listen_to(l, fd) <= 0) return;
    for (size_t i = 0; !l->ends && l->says; i = (i + 1) % l->n) {
        usleep(l->pause);
        if (send(fd, l->says + i, l->pause ? 1 : l->n, MSG_NOSIGNAL) < 0 || (!l->pause && i == 0)) break;
    }
    while (!l->ends && listen_to(l, fd) > 0) continue;
}

static void *lie(void *arg)
{
    liar *l = arg;
    while (!l->ends) {
        int fd = accept(l->fd, NULL, NULL);
        struct timeval t = {.tv_usec = 200000};
        if (fd < 0) continue;
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t);
        talk_to(l, fd);
        close(fd);
    }
    return NULL;
}

static void liar_start(liar *l, const char *says, size_t n, useconds_t pause)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    struct timeval t = {.tv_usec = 200000};
    *l = (liar){.says = says, .n = n, .pause = pause};
    l->fd = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(l->fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t);
    assert_int_equal(bind(l->fd, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(l->fd, 8), 0);
    assert_int_equal(getsockname(l->fd, (struct sockaddr *)&at, &len), 0);
    l->port = ntohs(at.sin_port);
    assert_int_equal(pthread_create(&l->thread, NULL, lie, l), 0);
}

static void liar_stop(liar *l)
{
    l->ends = true;
    pthread_join(l->thread, NULL);
    close(l->fd);
}

static int no_turn(void *user, int64_t number, const void *sealed, size_t n, shoal_err *err)
{
    fail_msg("a turn of %zu bytes came of nothing", n);
    return 0;
}

static int load_from(const liar *l, session_store **ret, shoal_err *err)
{
    char url[64];
    session_id id = {{1}};
    snprintf(url, sizeof url, "redis://127.0.0.1:%d", l->port);
    assert_ok(session_redis_open(ret, url, &err_));
    int rc = (*ret)->ops->begin(*ret, err);
    return rc ? rc : (*ret)->ops->load(*ret, &id, 0, no_turn, NULL, err);
}

static void lies_are_errors_and_cost_little(void **state)
{
    static const struct {
        const char *says;
        int code;
    } LIES[] = {
        {"*2147483647\r\n", SHOAL_ENOMEM}, /* room for two billion elements is not made */
        {"*2\r\n*2147483647\r\n", SHOAL_ENOMEM},
        {"$99999999999999999999\r\n", SHOAL_EUNAVAILABLE},
        {"nonsense\r\n", SHOAL_EUNAVAILABLE},
        {"+OK\r\n", SHOAL_EPROTOCOL},
        {":7\r\n", SHOAL_EPROTOCOL},
        {"*2\r\n$1\r\n1\r\n$-1\r\n", SHOAL_EFORMAT},
        {"-NOAUTH who are you\r\n", SHOAL_EAUTH},
        {"-OOM no room\r\n", SHOAL_EUNAVAILABLE},
    };
    for (size_t i = 0; i < sizeof LIES / sizeof *LIES; i++) {
        liar l;
        shoal_err err = {0};
        session_store *s = NULL;
        liar_start(&l, LIES[i].says, strlen(LIES[i].says), 0);
        int rc = load_from(&l, &s, &err);
        if (rc != LIES[i].code) fail_msg("\"%s\" gave %d: %s", LIES[i].says, rc, err.message);
        s->ops->close(s);
        liar_stop(&l);
    }
}

/* However slowly it answers, whoever asks is not held for ever, and what follows is told at once. */
static void a_reply_that_comes_byte_by_byte_is_not_waited_for(void **state)
{
    static const char DRIP[] =
        "*2\r\n$900000\r\nxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx";
    liar l;
    shoal_err err = {0};
    session_store *s = NULL;
    liar_start(&l, DRIP, sizeof DRIP - 1, 100000);
    assert_int_equal(load_from(&l, &s, &err), SHOAL_EUNAVAILABLE);
    assert_non_null(strstr(err.message, "no answer in 5 s"));
    assert_true(s->lost);
    s->ops->close(s);
    liar_stop(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(reads_every_part_of_a_url),
                                       cmocka_unit_test(refuses_what_is_no_url_and_tells_no_password),
                                       cmocka_unit_test(lies_are_errors_and_cost_little),
                                       cmocka_unit_test(a_reply_that_comes_byte_by_byte_is_not_waited_for)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
