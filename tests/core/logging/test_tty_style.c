/* Whether colours show, by what the environment says. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <fcntl.h>
#include <unistd.h>

#include "logging/tty_style.h"

/* A terminal of this process's own. */
static int open_terminal(void)
{
    int fd = posix_openpt(O_RDWR | O_NOCTTY);
    if (fd >= 0 && grantpt(fd) == 0 && unlockpt(fd) == 0 && isatty(fd)) return fd;
    if (fd >= 0) close(fd);
    return -1;
}

static void set(const char *name, const char *value)
{
    if (value)
        setenv(name, value, 1);
    else
        unsetenv(name);
}

static void the_environment_has_its_say(void **state)
{
    static const struct {
        const char *term, *colorterm, *no_color, *asked;
        bool terminal, pipe;
    } cases[] = {
        {"xterm", NULL, NULL, NULL, true, false},         {"dumb", NULL, NULL, NULL, false, false},
        {NULL, NULL, NULL, NULL, false, false},           {NULL, "truecolor", NULL, NULL, true, false},
        {"dumb", "truecolor", NULL, NULL, false, false},  {"xterm", NULL, "1", NULL, false, false},
        {"xterm", NULL, "", NULL, true, false},           {"xterm", NULL, "1", "always", true, true},
        {"dumb", NULL, NULL, "always", true, true},       {"xterm", NULL, NULL, "never", false, false},
        {"xterm", "truecolor", "1", "auto", false, false}};
    int terminal = open_terminal(), pipe_ends[2];
    if (terminal < 0 || pipe(pipe_ends) != 0) skip();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        set("TERM", cases[i].term);
        set("COLORTERM", cases[i].colorterm);
        set("NO_COLOR", cases[i].no_color);
        unsetenv("SHOAL_COLOR");
        assert_int_equal(tty_style_choose(cases[i].asked, NULL), 0);
        if (tty_style_shows(terminal) != cases[i].terminal) fail_msg("case %zu, a terminal", i);
        if (tty_style_shows(pipe_ends[1]) != cases[i].pipe) fail_msg("case %zu, a pipe", i);
    }
    shoal_err err;
    assert_int_equal(tty_style_choose("yes", &err), SHOAL_EINVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_environment_has_its_say)};
    return cmocka_run_group_tests_name("colour", tests, NULL, NULL);
}
