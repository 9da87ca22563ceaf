/* The bottom of the seam alone: what it does when there is no memory for a call, or nobody for it. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
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

/* Take all that malloc can give, down to its smallest piece. */
static void use_up_memory(void)
{
    setrlimit(RLIMIT_AS, &(struct rlimit){0, 0});
    for (size_t n = 1 << 20; n >= 8; n /= 2)
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
    if (uv_loop_init(&loop) || registry_new(&g, &loop, &err) || replica_calls_new(&c, g, &err) ||
        retry_calls_new(&c, registry_env(g), c, &err) || source_open(&src, g, "test", &err) ||
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_without_memory_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
