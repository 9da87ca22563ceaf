/* permessage-deflate: which offers are kept, and what messages become. The packed texts are RFC 7692's own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "http/websocket_deflate.h"

#define OURS "permessage-deflate; server_no_context_takeover; client_no_context_takeover"

static void offers_are_kept_that_can_be(void **state)
{
    static const struct {
        const char *offer, *answer;
    } CASES[] = {
        {"permessage-deflate", OURS},
        {"permessage-deflate; client_max_window_bits", OURS},
        {"permessage-deflate; client_max_window_bits=10", OURS},
        {"Permessage-Deflate ; Server_No_Context_Takeover", OURS},
        {"permessage-deflate; server_max_window_bits=10", OURS "; server_max_window_bits=10"},
        {"permessage-deflate; server_max_window_bits=\"9\"", OURS "; server_max_window_bits=9"},
        {"permessage-deflate; server_max_window_bits=8, permessage-deflate", OURS},
        {"x-webkit-deflate-frame, permessage-deflate", OURS},
        {"permessage-deflate; unknown, permessage-deflate; client_max_window_bits", OURS},
        {"permessage-deflate; server_max_window_bits=8", ""},
        {"permessage-deflate; server_max_window_bits=16", ""},
        {"permessage-deflate; server_max_window_bits=010", ""},
        {"permessage-deflate; server_max_window_bits", ""},
        {"permessage-deflate; client_max_window_bits=7", ""},
        {"permessage-deflate; server_no_context_takeover=1", ""},
        {"permessage-deflate; client_no_context_takeover; client_no_context_takeover", ""},
        {"permessage-deflate; ", ""},
        {"permessage-deflate x", ""},
        {"permessage-deflat", ""},
        {"", ""},
        {NULL, ""},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        char answer[WEBSOCKET_DEFLATE_ANSWER] = "";
        int bits = websocket_deflate_choose(CASES[i].offer, answer);
        if (strcmp(answer, CASES[i].answer) != 0 || (bits > 0) != (*answer != '\0'))
            fail_msg("'%s' is answered '%s' (%d)", CASES[i].offer, answer, bits);
    }
}

static void expect(const char *packed, size_t n, int rc, const char *plain)
{
    buf out = {0};
    assert_int_equal(websocket_deflate_unpack(packed, n, 100, &out), rc);
    if (rc == 0) {
        assert_int_equal(out.len, strlen(plain));
        if (out.len) assert_memory_equal(out.data, plain, out.len);
    }
    buf_done(&out);
}

/* RFC 7692 7.2.3: one block, no compression, BFINAL, two blocks, and an empty message. */
static void messages_of_the_rfc_are_read(void **state)
{
    expect("\xf2\x48\xcd\xc9\xc9\x07\x00", 7, 0, "Hello");
    expect("\x00\x05\x00\xfa\xff\x48\x65\x6c\x6c\x6f\x00", 11, 0, "Hello");
    expect("\xf3\x48\xcd\xc9\xc9\x07\x00\x00", 8, 0, "Hello");
    expect("\xf2\x48\x05\x00\x00\x00\xff\xff\xca\xc9\xc9\x07\x00", 13, 0, "Hello");
    expect("\x00", 1, 0, "");
    expect("", 0, 0, "");
    expect("\xff\xff\xff", 3, SHOAL_EFORMAT, NULL);
    expect("\xf3\x48\xcd\xc9\xc9\x07\x00\x00junk", 12, SHOAL_EFORMAT, NULL);
}

static void messages_come_back_as_they_were(void **state)
{
    static char text[100000];
    for (size_t i = 0; i < sizeof text; i++) text[i] = (char)('a' + i * i % 23);
    for (int bits = 9; bits <= 15; bits++)
        for (size_t n = 1; n <= sizeof text; n = n * 3 + 1) {
            buf packed = {0}, plain = {0};
            assert_int_equal(websocket_deflate_pack(text, n, bits, &packed), 0);
            assert_int_equal(websocket_deflate_unpack(packed.data, packed.len, n, &plain), 0);
            assert_int_equal(plain.len, n);
            assert_memory_equal(plain.data, text, n);
            buf_clear(&plain);
            assert_int_equal(websocket_deflate_unpack(packed.data, packed.len, n - 1, &plain), SHOAL_ELIMIT);
            buf_done(&packed);
            buf_done(&plain);
        }
}

static void messages_that_grow_too_far_are_cut_off(void **state)
{
    size_t n = (size_t)32 << 20;
    char *zeros = calloc(1, n);
    buf packed = {0}, plain = {0};
    assert_non_null(zeros);
    assert_int_equal(websocket_deflate_pack(zeros, n, 15, &packed), 0);
    assert_true(packed.len < n / 200);
    assert_int_equal(websocket_deflate_unpack(packed.data, packed.len, 1 << 20, &plain), SHOAL_ELIMIT);
    assert_true(plain.len <= 1 << 20);
    buf_done(&packed);
    buf_done(&plain);
    free(zeros);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(offers_are_kept_that_can_be),
                                       cmocka_unit_test(messages_of_the_rfc_are_read),
                                       cmocka_unit_test(messages_come_back_as_they_were),
                                       cmocka_unit_test(messages_that_grow_too_far_are_cut_off)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
