/* Where a Redis is, as its URL says it. What is kept there: tests/e2e/sessions_redis.sh, with the real
 * server. */
#include "check.h"

#include "sessions/talk_redis.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(reads_every_part_of_a_url),
                                       cmocka_unit_test(refuses_what_is_no_url_and_tells_no_password)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
