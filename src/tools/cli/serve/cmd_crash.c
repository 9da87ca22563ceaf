/* shoal crash: the reports of processes of this machine that crashed. They are files, so no server is needed. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "cli/commands.h"
#include "command/cli_cluster.h"
#include "json/json.h"
#include "os/crash.h"
#include "trust/state.h"
#include "view/crash_view.h"

enum { OUTPUT_MAX = 1 << 20, OFFSET_BYTES = 24 };

extern char **environ;

/* ---- names of addresses --------------------------------------------------------------------------------- */

/* addr2line -a: "0x000000000001f2b3", or the same and ": name at file:line", begins what is at each offset. */
static bool take_names(const buf *text, size_t n, buf *out, size_t *where)
{
    size_t i = 0;
    const char *end = text->data + text->len;
    for (const char *at = text->data; at < end;) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        size_t len = stop ? (size_t)(stop - at) : (size_t)(end - at);
        if (len > 2 && memcmp(at, "0x", 2) == 0) {
            const char *name = memmem(at, len, ": ", 2);
            if (i == n) return false;
            where[i++] = out->len;
            if (name) buf_append(out, name + 2, (size_t)(at + len - name - 2));
        } else {
            buf_append(out, at, len);
        }
        buf_putc(out, '\n');
        at += len + 1;
    }
    return i == n;
}

static int run_addr2line(char *const *args, buf *out)
{
    int ends[2], status = 1;
    pid_t pid;
    shoal_err err;
    posix_spawn_file_actions_t to;
    if (pipe2(ends, O_CLOEXEC) != 0) return -1;
    posix_spawn_file_actions_init(&to);
    posix_spawn_file_actions_adddup2(&to, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&to, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    int rc = posix_spawnp(&pid, args[0], &to, NULL, args, environ);
    posix_spawn_file_actions_destroy(&to);
    close(ends[1]);
    if (rc == 0) {
        rc = file_read_open(out, ends[0], OUTPUT_MAX, &err);
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
    }
    close(ends[0]);
    return rc == 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -1;
}

/* This very program, whatever its file is called by now. False: addr2line is not installed. */
static bool name_offsets(void *user, const uint64_t *offsets, size_t n, buf *out, size_t *where)
{
    char file[64], text[CRASH_FRAMES_SHOWN][OFFSET_BYTES];
    char *args[CRASH_FRAMES_SHOWN + 8] = {"addr2line", "-a", "-p", "-f", "-i", "-C", "-e", file};
    buf names = {0};
    snprintf(file, sizeof file, "/proc/%d/exe", (int)getpid());
    for (size_t i = 0; i < n && 8 + i + 1 < sizeof args / sizeof *args; i++) {
        snprintf(text[i], sizeof text[i], "0x%llx", (unsigned long long)offsets[i]);
        args[8 + i] = text[i];
    }
    bool ok = run_addr2line(args, &names) == 0 && take_names(&names, n, out, where);
    buf_done(&names);
    return ok;
}

/* ---- reports -------------------------------------------------------------------------------------------- */

static int read_report(json_t **ret, const char *folder, const char *name, shoal_err *err)
{
    buf path = {0};
    buf_printf(&path, "%s/%s", folder, name);
    int rc = path.failed ? err_nomem(err) : json_parse_file(ret, path.data, CRASH_REPORT_BYTES, err);
    buf_done(&path);
    return rc;
}

static int is_report(const struct dirent *e)
{
    return crash_is_report(e->d_name);
}

static int newest_first(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*b)->d_name, (*a)->d_name);
}

static int cmd_crash_show(const char *folder, const char *name, bool json, shoal_err *err)
{
    json_t *report = NULL;
    buf out = {0};
    char build[CRASH_BUILD_BYTES];
    if (!crash_is_report(name))
        return err_set(err, SHOAL_EINVALID, "'%.80s' is no name of a report: shoal crash lists them", name);
    int rc = read_report(&report, folder, name, err);
    if (rc != 0) return rc;
    crash_build(build);
    const crash_symbols s = {.build = build, .name = name_offsets};
    if (json) {
        json_put(&out, report);
        buf_putc(&out, '\n');
    } else {
        crash_view_put(&out, report, &s, cli_columns(0));
    }
    if (out.failed) rc = err_nomem(err);
    if (rc == 0) cli_write(out.data, out.len);
    json_decref(report);
    buf_done(&out);
    return rc;
}

static void put_entry(buf *out, const char *folder, const char *name, bool json, bool first)
{
    json_t *report = NULL;
    shoal_err err;
    if (read_report(&report, folder, name, &err) != 0)
        report = json_object(); /* half of one, or somebody's file */
    if (json) {
        json_object_set_new(report, "report", json_string(name));
        buf_puts(out, first ? "" : ",");
        json_put(out, report);
    } else {
        crash_view_line(out, name, report, cli_columns(0));
    }
    json_decref(report);
}

static int cmd_crash_list(const char *folder, bool json, shoal_err *err)
{
    struct dirent **list = NULL;
    buf out = {0};
    int n = scandir(folder, &list, is_report, newest_first);
    if (json) buf_puts(&out, "{\"reports\":[");
    for (int i = 0; i < n; i++) {
        put_entry(&out, folder, list[i]->d_name, json, i == 0);
        free(list[i]);
    }
    free(list);
    if (json) buf_puts(&out, "]}\n");
    if (!json && n <= 0) buf_printf(&out, "no crashes are reported in %s\n", folder);
    int rc = out.failed ? err_nomem(err) : 0;
    if (rc == 0) cli_write(out.data, out.len);
    buf_done(&out);
    return rc;
}

/* "last": the newest one. */
static int find_last(char ret[CRASH_NAME_BYTES], const char *folder, shoal_err *err)
{
    struct dirent **list = NULL;
    int n = scandir(folder, &list, is_report, newest_first);
    if (n > 0) buf_copy_str(ret, CRASH_NAME_BYTES, list[0]->d_name);
    for (int i = 0; i < n; i++) free(list[i]);
    free(list);
    return n > 0 ? 0 : err_set(err, SHOAL_ENOTFOUND, "no crashes are reported in %s", folder);
}

static int cmd_crash_run(int argc, char **argv)
{
    const char *state = NULL;
    bool json = false;
    const cli_option options[] = {CLI_STATE(&state), CLI_JSON(&json), CLI_END};
    cli_args a;
    int rc = cli_parse(&a, &cmd_crash, options, 0, 1, argc, argv);
    if (rc != CLI_GO) return rc;
    shoal_err err = {0};
    char *folder = NULL, last[CRASH_NAME_BYTES];
    rc = state_path(&folder, state, "crashes", &err);
    const char *name = a.n ? a.v[0] : NULL;
    if (rc == 0 && name && strcmp(name, "last") == 0) {
        rc = find_last(last, folder, &err);
        name = last;
    }
    if (rc == 0) rc = name ? cmd_crash_show(folder, name, json, &err) : cmd_crash_list(folder, json, &err);
    free(folder);
    return cli_flush(rc == 0 ? CLI_OK : cli_fail(&cmd_crash, &err));
}

const cli_command cmd_crash = {"crash", "list this machine's reports of crashes, or show one",
                               "[REPORT|last]", cmd_crash_run, false};
