/* Feeds: who reads what, what is kept, and when the source rests. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "calls/feed.h"

static void count(void *user)
{
    ++*(int *)user;
}

static void put(call_feed *f, size_t n, int fill)
{
    Shoal__V1__TranscribeRequest m = SHOAL__V1__TRANSCRIBE_REQUEST__INIT;
    uint8_t *bytes = malloc(n);
    memset(bytes, fill, n);
    m.audio = (ProtobufCBinaryData){.data = bytes, .len = n};
    assert_int_equal(call_feed_put(f, &m.base), 0);
    free(bytes);
}

static size_t read_all(feed_reader *r)
{
    size_t n, n_read = 0;
    for (; feed_peek(r, &n); feed_took(r)) n_read += n;
    return n_read;
}

static void each_reader_has_all_from_the_beginning(void **state)
{
    int woken = 0, again = 0;
    feed_reader a = {0}, b = {0};
    call_feed *f = call_feed_new(&(call_feed_options){0});
    put(f, 100, 1);
    assert_true(feed_join(&a, f, count, &woken));
    size_t first = read_all(&a);
    assert_true(first > 100 && woken == 0);
    put(f, 50, 2);
    assert_int_equal(woken, 1);
    size_t second = read_all(&a);
    feed_leave(&a);
    assert_true(feed_join(&b, f, count, &again));
    assert_int_equal(read_all(&b), first + second);
    assert_false(feed_is_read(&b));
    assert_null(call_feed_digest(f));
    call_feed_end(f, &(sha256_digest){{7}});
    assert_true(feed_is_read(&b) && again == 1 && woken == 1);
    assert_int_equal(call_feed_digest(f)->bytes[0], 7);
    call_feed_leave(f); /* the reader holds it */
    feed_leave(&b);
    feed_leave(&b);
}

static void beyond_what_is_kept_the_beginning_goes(void **state)
{
    int woken = 0;
    feed_reader a = {0}, slow = {0}, late = {0};
    call_feed *f = call_feed_new(&(call_feed_options){.keep_bytes = 1000});
    assert_true(feed_join(&a, f, count, &woken) && feed_join(&slow, f, count, &woken));
    put(f, 600, 1);
    read_all(&a);
    put(f, 600, 2);
    read_all(&a);
    assert_true(call_feed_is_kept(f)); /* as long as one has not read it */
    assert_true(read_all(&slow) > 1200);
    assert_false(call_feed_is_kept(f));
    assert_false(feed_join(&late, f, count, &woken));
    feed_leave(&a);
    feed_leave(&slow);
    call_feed_leave(f);
}

static void the_source_rests_until_most_is_read(void **state)
{
    int woken = 0, rooms = 0;
    feed_reader a = {0};
    call_feed *f = call_feed_new(&(call_feed_options){.user = &rooms, .room = count});
    for (size_t i = 0; i < 8; i++) put(f, FEED_AHEAD_BYTES / 8, 1);
    assert_true(call_feed_is_full(f)); /* protobuf's own bytes are over it */
    assert_true(feed_join(&a, f, count, &woken));
    feed_took(&a);
    assert_true(!call_feed_is_full(f) && rooms == 0);
    read_all(&a);
    assert_int_equal(rooms, 1);
    feed_leave(&a); /* the next reader begins again: what was read is unread */
    assert_true(call_feed_is_full(f));
    assert_true(feed_join(&a, f, count, &woken));
    read_all(&a);
    assert_int_equal(rooms, 2);
    feed_leave(&a);
    call_feed_leave(f);
}

static void on_end_of_feed(void *user)
{
    feed_reader *r = user;
    assert_non_null(call_feed_digest(r->feed));
    feed_leave(r);
}

/* Who watches hears of the end before the readers do, and may let them leave. */
static void the_end_is_told_to_watches_first(void **state)
{
    int woken = 0, others = 0;
    feed_reader a = {0}, b = {0};
    feed_watch watch = {0}, gone = {0};
    call_feed *f = call_feed_new(&(call_feed_options){0});
    assert_true(feed_join(&a, f, count, &woken) && feed_join(&b, f, count, &others));
    feed_watch_end(&watch, f, on_end_of_feed, &a);
    feed_watch_end(&gone, f, on_end_of_feed, &b);
    feed_unwatch(&gone);
    feed_unwatch(&gone);
    call_feed_end(f, &(sha256_digest){{7}});
    assert_int_equal(woken, 0);
    assert_int_equal(others, 1);
    feed_leave(&b);
    call_feed_leave(f);
    feed_unwatch(&watch); /* it held the feed */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_reader_has_all_from_the_beginning),
        cmocka_unit_test(beyond_what_is_kept_the_beginning_goes),
        cmocka_unit_test(the_source_rests_until_most_is_read),
        cmocka_unit_test(the_end_is_told_to_watches_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
