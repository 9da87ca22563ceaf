/* A node is a value: copies, and its devices as text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "cluster/node.h"

static void a_copy_has_all_of_a_node(void **state)
{
    char name[] = "cuda:0";
    const char *const labels[] = {"attic"};
    const node_device devices[] = {{name, "cuda", 24}, {"npu:0", "npu", 8}};
    const node n = {.name = "pi", .labels = labels, .n_labels = 1, .devices = devices, .n_devices = 2};
    node *copy = NULL;
    assert_int_equal(node_copy(&copy, &n, NULL), 0);
    memset(name, 'x', sizeof name - 1);
    assert_true(node_has_label(copy, "attic"));
    assert_string_equal(copy->devices[0].name, "cuda:0");
    assert_string_equal(copy->devices[1].kind, "npu");
    assert_int_equal(node_device_bytes(copy, "cuda", NULL), 24);
    assert_int_equal(node_device_bytes(copy, "cpu", NULL), 0);
    node_free(copy);
}

static void a_device_is_read_strictly(void **state)
{
    static const char *const BAD[] = {"",
                                      "cuda:0",
                                      "cuda:0=",
                                      "cuda:0=0",
                                      "=5",
                                      ":0=5",
                                      "cpu=5",
                                      "cpu:0=5",
                                      "cu da:0=5",
                                      "cuda:0=5G",
                                      "a\"b=5",
                                      "cuda:0=-5",
                                      "cuda:0=9999999999999999",
                                      "a-name-of-more-than-thirty-one-bytes:0=5"};
    node_device d;
    char store[2 * NODE_DEVICE_NAME];
    shoal_err err;
    assert_int_equal(node_device_parse(&d, store, "cuda:0=24576", &err), 0);
    assert_string_equal(d.name, "cuda:0");
    assert_string_equal(d.kind, "cuda");
    assert_true(d.memory_bytes == (uint64_t)24 << 30);
    assert_int_equal(node_device_parse(&d, store, "npu=8", &err), 0);
    assert_string_equal(d.name, "npu");
    assert_string_equal(d.kind, "npu");
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++)
        if (node_device_parse(&d, store, BAD[i], &err) != SHOAL_EINVALID) fail_msg("\"%s\"", BAD[i]);
}

static void devices_are_shown_with_the_cores_or_without(void **state)
{
    const node_device one = {"cuda:0", "cuda", 24};
    const node n = {.name = "pi", .memory_bytes = 8, .devices = &one, .n_devices = 1};
    buf out = {0};
    node_put_devices(&out, &n, true);
    assert_string_equal(out.data, ",\"devices\":[{\"name\":\"cpu\",\"kind\":\"cpu\",\"memory_bytes\":8},"
                                  "{\"name\":\"cuda:0\",\"kind\":\"cuda\",\"memory_bytes\":24}]");
    buf_clear(&out);
    node_put_devices(&out, &n, false);
    assert_string_equal(out.data,
                        ",\"devices\":[{\"name\":\"cuda:0\",\"kind\":\"cuda\",\"memory_bytes\":24}]");
    buf_done(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_copy_has_all_of_a_node),
        cmocka_unit_test(a_device_is_read_strictly),
        cmocka_unit_test(devices_are_shown_with_the_cores_or_without),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
