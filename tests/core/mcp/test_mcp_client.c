/* Programs that speak MCP by standard input and output: how much they may list, and when one that hangs is started again.
 * The program is a script of sh; its list of tools says its process id, and its pages have two tools each. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>
#include <uv.h>

#include "base/clock.h"
#include "mcp/mcp_client.h"

enum { TIMEOUT_MS = 5000, SHORT_MS = 20, LATE = 3, ROUNDS_MAX = 2000, MS = 1000000 };

/* $1: the tool "work" answers "every" call, every "second" one, or "no" call, and none with the argument "hang".
 * $2: pages of the list. */
static const char SCRIPT[] =
    "n=0\n"
    "page() {\n"
    "  text=\"$1$1$1$1$1$1$1$1$1$1\"; text=\"$text$text$text$text$text$text$text$text$text$text\"\n"
    "  tool=\"\\\"inputSchema\\\":{\\\"type\\\":\\\"object\\\"}\"\n"
    "  next=; [ \"$1\" -lt \"$2\" ] && next=\",\\\"nextCursor\\\":\\\"$(($1 + 1))\\\"\"\n"
    "  echo "
    "\"{\\\"jsonrpc\\\":\\\"2.0\\\",\\\"id\\\":$id,\\\"result\\\":{\\\"tools\\\":[{\\\"name\\\":\\\"p$$\\\",$"
    "tool},"
    "{\\\"name\\\":\\\"work\\\",\\\"description\\\":\\\"$text$text$text$text$text\\\",$tool}]$next}}\"\n"
    "}\n"
    "answer() { echo \"{\\\"jsonrpc\\\":\\\"2.0\\\",\\\"id\\\":$id,\\\"result\\\":$1}\"; }\n"
    "while IFS= read -r line; do\n"
    "  id=${line#*\\\"id\\\":}; id=${id%%,*}\n"
    "  case $line in\n"
    "  *'\"method\":\"initialize\"'*) answer '{\"protocolVersion\":\"2025-06-18\"}' ;;\n"
    "  *'\"method\":\"tools/list\"'*)\n"
    "    at=1; case $line in *cursor*) at=${line#*\\\"cursor\\\":\\\"}; at=${at%%\\\"*} ;; esac\n"
    "    page $at \"$2\" ;;\n"
    "  *'\"hang\"'*) ;;\n"
    "  *'\"method\":\"tools/call\"'*)\n"
    "    n=$((n + 1))\n"
    "    case $1$((n % 2)) in every?|second0) answer '{\"content\":[]}' ;; esac ;;\n"
    "  esac\n"
    "done\n";

typedef struct world {
    uv_loop_t loop;
    mcp_client *m;
    mcp_rule rule;
    const char *command[7];
    /* The latest call's end. */
    bool over;
    int status;
    char message[480], first[64];
    size_t n_tools;
    unsigned n_hung; /* calls of `hang` that are over */
} world;

static void open_world(world *w, const char *answers, const char *pages, uint64_t max_tools,
                       uint64_t tools_bytes, uint64_t timeout_ms)
{
    static const char *tools[] = {"work"};
    shoal_err err;
    *w = (world){.command = {"/bin/sh", "-c", SCRIPT, "program", answers, pages}};
    w->rule = (mcp_rule){.name = "notes",
                         .command = w->command,
                         .n_command = 6,
                         .tools = tools,
                         .n_tools = 1,
                         .timeout_ms = timeout_ms,
                         .max_bytes = 65536,
                         .text_bytes = 1024,
                         .max_tools = max_tools,
                         .tools_bytes = tools_bytes};
    assert_int_equal(uv_loop_init(&w->loop), 0);
    assert_int_equal(mcp_open(&w->m, &w->loop, &w->rule, 1, NULL, NULL, &err), 0);
}

static void close_world(world *w)
{
    mcp_free(w->m);
    uv_run(&w->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&w->loop), 0);
}

static void on_done(void *user, const mcp_end *e)
{
    world *w = user;
    const json_t *tools = json_object_get(e->result, "tools");
    const char *first = json_string_value(json_object_get(json_array_get(tools, 0), "name"));
    w->over = true;
    w->status = e->status;
    w->n_tools = json_array_size(tools);
    snprintf(w->message, sizeof w->message, "%s", e->message);
    snprintf(w->first, sizeof w->first, "%s", first ? first : "");
}

/* within_ms 0: the server's timeout alone. */
static void ask(world *w, const char *tool, uint64_t within_ms)
{
    mcp_ask a = {.server = "notes",
                 .tool = tool,
                 .deadline_ns = within_ms ? clock_ns() + within_ms * MS : 0,
                 .user = w,
                 .done = on_done};
    w->over = false;
    assert_non_null(mcp_start(w->m, &a));
    while (!w->over) uv_run(&w->loop, UV_RUN_ONCE);
}

/* Which process answers. */
static void list(world *w, char ret[64])
{
    ask(w, NULL, 0);
    assert_int_equal(w->status, 0);
    memcpy(ret, w->first, 64);
}

/* ---- how much may be listed ----------------------------------------------------------------------------- */

static void refuses_more_tools_than_max_tools(void **state)
{
    world w;
    open_world(&w, "every", "3", 5, 1 << 20, 60000);
    ask(&w, NULL, 0);
    assert_int_equal(w.status, SHOAL_ELIMIT);
    assert_string_equal(w.message,
                        "MCP server 'notes': it lists more than 5 tools, the most that its max_tools allows");
    close_world(&w);
    open_world(&w, "every", "3", 6, 1 << 20, 60000);
    ask(&w, NULL, 0);
    assert_int_equal(w.status, 0);
    assert_int_equal(w.n_tools, 6);
    ask(&w, NULL, 0); /* each list is counted from nothing */
    assert_int_equal(w.status, 0);
    close_world(&w);
}

static void refuses_a_list_longer_than_tools_kb(void **state)
{
    world w;
    open_world(&w, "every", "4", 100, 2048, 60000); /* a page has more than 512 bytes */
    ask(&w, NULL, 0);
    assert_int_equal(w.status, SHOAL_ELIMIT);
    assert_string_equal(w.message,
                        "MCP server 'notes': its list of tools is longer than 2 KiB, the most that "
                        "its tools_kb allows");
    close_world(&w);
    open_world(&w, "every", "4", 100, 4096, 60000);
    ask(&w, NULL, 0);
    assert_int_equal(w.status, 0);
    close_world(&w);
}

static void refuses_a_list_that_does_not_end(void **state)
{
    world w;
    open_world(&w, "every", "100000", 4096, 1 << 20, 60000);
    ask(&w, NULL, 0);
    assert_int_equal(w.status, SHOAL_ELIMIT);
    assert_string_equal(w.message, "MCP server 'notes': its list of tools has more than 16 pages");
    close_world(&w);
}

/* ---- programs that hang --------------------------------------------------------------------------------- */

static void starts_again_a_program_whose_calls_hang(void **state)
{
    world w;
    char first[64], now[64];
    int n = 0;
    open_world(&w, "no", "1", 100, 1 << 20, TIMEOUT_MS);
    list(&w, first);
    for (memcpy(now, first, sizeof now); strcmp(now, first) == 0 && n < ROUNDS_MAX; n++) {
        ask(&w, "work", SHORT_MS);
        assert_int_equal(w.status, SHOAL_EDEADLINE);
        list(&w, now);
    }
    assert_string_not_equal(now, first);
    assert_true(n >= 3);
    close_world(&w);
}

/* Short deadlines of callers alone do not tell that it hangs. */
static void lets_a_program_run_within_its_timeout(void **state)
{
    world w;
    char first[64], now[64];
    open_world(&w, "no", "1", 100, 1 << 20, 3600000);
    list(&w, first);
    for (int i = 0; i < 5; i++) {
        ask(&w, "work", SHORT_MS);
        assert_int_equal(w.status, SHOAL_EDEADLINE);
        list(&w, now);
        assert_string_equal(now, first);
    }
    close_world(&w);
}

static void lets_a_program_run_that_answers_calls_between(void **state)
{
    world w;
    char first[64], now[64];
    open_world(&w, "second", "1", 100, 1 << 20, TIMEOUT_MS);
    list(&w, first);
    for (uint64_t until = clock_ns() + (uint64_t)(TIMEOUT_MS + 500) * MS; clock_ns() < until;) {
        ask(&w, "work", SHORT_MS);
        assert_int_equal(w.status, SHOAL_EDEADLINE);
        ask(&w, "work", 0);
        assert_int_equal(w.status, 0);
        list(&w, now);
        assert_string_equal(now, first);
    }
    close_world(&w);
}

static void on_hung(void *user, const mcp_end *e)
{
    world *w = user;
    assert_int_equal(e->status, SHOAL_EDEADLINE);
    w->n_hung++;
}

static void hang(world *w)
{
    mcp_ask a = {.server = "notes", .tool = "work", .arguments = "{\"hang\":1}", .user = w, .done = on_hung};
    assert_non_null(mcp_start(w->m, &a));
}

/* Until all that hang are over. False: others waited for long, too, as on a machine that stood still. */
static bool answers_others(world *w)
{
    bool ok = true;
    while (w->n_hung < LATE) {
        uint64_t begun_ns = clock_ns();
        ask(w, "work", 0);
        nanosleep(&(struct timespec){.tv_nsec = 5 * MS}, NULL); /* to leave others the core */
        ok &= w->status == 0 && clock_ms_since(begun_ns) < (double)TIMEOUT_MS / 2;
    }
    return ok;
}

/* They end at once, a moment after another call was answered. */
static void lets_a_program_run_that_answers_others(void **state)
{
    bool fair = false;
    for (int i = 0; i < 10 && !fair; i++) {
        world w;
        char first[64], now[64];
        open_world(&w, "every", "1", 100, 1 << 20, TIMEOUT_MS);
        list(&w, first);
        for (int k = 0; k < LATE; k++) hang(&w);
        fair = answers_others(&w);
        if (fair) list(&w, now);
        if (fair) assert_string_equal(now, first);
        close_world(&w);
    }
    assert_true(fair);
}

static void lets_a_program_run_that_is_silent_within_its_timeout(void **state)
{
    world w;
    char first[64], now[64];
    open_world(&w, "no", "1", 100, 1 << 20, 3600000);
    list(&w, first);
    for (int i = 0; i < 2 * LATE; i++) {
        ask(&w, "work", SHORT_MS);
        assert_int_equal(w.status, SHOAL_EDEADLINE);
    }
    list(&w, now);
    assert_string_equal(now, first);
    close_world(&w);
}

static void starts_again_a_program_that_says_nothing(void **state)
{
    world w;
    char first[64], now[64];
    open_world(&w, "no", "1", 100, 1 << 20, TIMEOUT_MS);
    list(&w, first);
    uint64_t until_ns = clock_ns() + (uint64_t)TIMEOUT_MS * MS;
    for (int n = 0; n <= LATE || clock_ns() < until_ns; n++) ask(&w, "work", SHORT_MS);
    list(&w, now);
    assert_string_not_equal(now, first);
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_more_tools_than_max_tools),
        cmocka_unit_test(refuses_a_list_longer_than_tools_kb),
        cmocka_unit_test(refuses_a_list_that_does_not_end),
        cmocka_unit_test(starts_again_a_program_whose_calls_hang),
        cmocka_unit_test(lets_a_program_run_within_its_timeout),
        cmocka_unit_test(lets_a_program_run_that_answers_calls_between),
        cmocka_unit_test(lets_a_program_run_that_answers_others),
        cmocka_unit_test(lets_a_program_run_that_is_silent_within_its_timeout),
        cmocka_unit_test(starts_again_a_program_that_says_nothing),
    };
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
