/* The bottom of the seam alone: what it does when there is no memory for a call, or nobody for it. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "calls/replica_calls.h"
#include "calls/retry_calls.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HAS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HAS_SANITIZER 1
#endif
#endif

static void never(void *user, const call_result *r, const Shoal__V1__EmbedReply *reply)
{
    _exit(3);
}

/* Take all that malloc can give, down to its smallest piece; small ones that were freed are kept by size. */
static void use_up_memory(void)
{
    setrlimit(RLIMIT_AS, &(struct rlimit){0, 0});
    for (size_t n = 1 << 20; n >= 8; n = n > 2048 ? n / 2 : n - 8)
        for (void *volatile p; (p = malloc(n));) {
        }
}

static int call_without_memory(void)
{
    uv_loop_t loop;
    registry *g;
    calls *c;
    source *src;
    shoal_err err;
    Shoal__V1__TextInput in = SHOAL__V1__TEXT_INPUT__INIT, *list[] = {&in};
    Shoal__V1__EmbedRequest req = SHOAL__V1__EMBED_REQUEST__INIT;
    in.text = "a text";
    req.n_inputs = 1;
    req.inputs = list;
    if (uv_loop_init(&loop) || registry_new(&g, &loop, &err) || replica_calls_new(&c, g, NULL, &err) ||
        retry_calls_new(&c, registry_env(g), c, 0, &err) || source_open(&src, g, "test", &err) ||
        source_put(src, &(member){.id = "m/0", .model = "m", .address = "unix:/nowhere"}, &err))
        return 2;
    use_up_memory();
    return calls_embed(c, "m", &req, NULL, never, NULL) ? 1 : 0;
}

static void a_call_without_memory_is_refused(void **state)
{
#ifdef HAS_SANITIZER
    skip();
#endif
    pid_t pid = fork();
    if (pid == 0) _exit(call_without_memory());
    int status = 0;
    waitpid(pid, &status, 0);
    if (!WIFEXITED(status)) fail_msg("killed by signal %d", WTERMSIG(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

typedef struct ending {
    int status;
    char message[256];
} ending;

static void on_end(void *user, const call_result *r, const Shoal__V1__EmbedReply *reply)
{
    ending *e = user;
    e->status = r->status;
    snprintf(e->message, sizeof e->message, "%s", r->message);
}

static ending ask(uv_loop_t *loop, calls *c)
{
    Shoal__V1__EmbedRequest req = SHOAL__V1__EMBED_REQUEST__INIT;
    ending e = {.status = 1};
    assert_non_null(calls_embed(c, "m", &req, &(call_context){.deadline_ns = UINT64_MAX}, on_end, &e));
    while (e.status == 1) uv_run(loop, UV_RUN_ONCE);
    return e;
}

/* Both with a deadline that never comes. */
static void calls_of_a_model_that_is_given_up_are_told_so_and_of_none_that_there_is_none(void **state)
{
    uv_loop_t loop;
    registry *g;
    calls *c;
    assert_int_equal(uv_loop_init(&loop), 0);
    assert_int_equal(registry_new(&g, &loop, NULL), 0);
    assert_int_equal(replica_calls_new(&c, g, NULL, NULL), 0);
    assert_int_equal(retry_calls_new(&c, registry_env(g), c, 0, NULL), 0);
    assert_int_equal(registry_declare(g, "m", NULL), 0);
    registry_give_up(g, "m", "pi has left", false);
    ending e = ask(&loop, c);
    assert_int_equal(e.status, SHOAL_EUNAVAILABLE);
    assert_string_equal(e.message, "the model m is not served now: pi has left");
    registry_undeclare(g, "m");
    e = ask(&loop, c);
    assert_int_equal(e.status, SHOAL_ENOTFOUND);
    assert_string_equal(e.message, "the model 'm' does not exist here");
    calls_free(c);
    registry_free(g);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_of_a_model_that_is_given_up_are_told_so_and_of_none_that_there_is_none),
        cmocka_unit_test(a_call_without_memory_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
