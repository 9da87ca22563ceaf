/* shoal lab run|list|check|clean: a cluster on one machine, a load, faults, and what became of every request.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "os/installed.h"
#include "json/json.h"
#include "json/json_put.h"
#include "cli/commands.h"
#include "lab/run.h"
#include "lab/sandbox.h"

typedef struct options {
    const char *out, *reference;
    double seconds;
    bool json;
} options;

/* ---- places ---- */

/* This program, and the folder of shoal.yaml, models and scenarios that belongs to it (os/installed.h). */
typedef struct places {
    char program[4096], share[INSTALLED_PATH_BYTES], scenarios[INSTALLED_PATH_BYTES + 64];
} places;

static int find_places(places *ret, shoal_err *err)
{
    ssize_t n = readlink("/proc/self/exe", ret->program, sizeof ret->program - 1);
    if (n <= 0) return err_set(err, SHOAL_EIO, "/proc/self/exe: %s", strerror(errno));
    ret->program[n] = '\0';
    if (!installed_find(ret->share, sizeof ret->share, "shoal.yaml"))
        return err_set(err, SHOAL_ENOTFOUND, "no shoal.yaml was installed with %s", ret->program);
    *strrchr(ret->share, '/') = '\0';
    snprintf(ret->scenarios, sizeof ret->scenarios, "%s/lab", ret->share);
    if (!file_exists(ret->scenarios))
        snprintf(ret->scenarios, sizeof ret->scenarios, "%s/examples/lab", ret->share);
    return 0;
}

static bool is_yaml(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot && dot != name && (strcmp(dot, ".yaml") == 0 || strcmp(dot, ".yml") == 0);
}

/* A path with a slash or an ending is a file; anything else a bundled scenario's name. */
static int cmd_lab_load(lab_scenario **ret, const places *p, const char *given, shoal_err *err)
{
    char path[4700];
    if (strchr(given, '/') || is_yaml(given)) return cli_opened(scenario_load(ret, given, err), err);
    snprintf(path, sizeof path, "%s/%.256s.yaml", p->scenarios, given);
    if (!file_exists(path))
        return err_set(err, SHOAL_EINVALID,
                       "there is no scenario \"%.64s\" in %.300s; \"shoal lab list\" shows them", given,
                       p->scenarios);
    return cli_opened(scenario_load(ret, path, err), err);
}

/* ---- run ---- */

static int make_folder(const char *path, shoal_err *err)
{
    struct stat st;
    if (mkdir(path, 0755) == 0 || (errno == EEXIST && stat(path, &st) == 0 && S_ISDIR(st.st_mode))) return 0;
    return err_set(err, SHOAL_EIO, "%s: %s", path, strerror(errno == EEXIST ? ENOTDIR : errno));
}

/* Logs of an earlier run do not belong into this one's. */
static void empty_folder(const char *path)
{
    DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));)
        if (e->d_name[0] != '.') unlinkat(dirfd(d), e->d_name, 0);
    if (d) closedir(d);
}

/* The folder of the report, with its logs/; *ret is malloc'd and absolute. */
static int make_out(char **ret, const char *given, const char *name, shoal_err *err)
{
    char path[4200], logs[4300];
    snprintf(path, sizeof path, "%s%s", given ? given : "lab-", given ? "" : name);
    int rc = make_folder(path, err);
    snprintf(logs, sizeof logs, "%s/logs", path);
    if (rc == 0) rc = make_folder(logs, err);
    if (rc != 0) return rc;
    empty_folder(logs);
    return (*ret = realpath(path, NULL)) ? 0 : err_nomem(err);
}

static int run_scenario(const places *p, const char *given, const options *o, int *ret_status, shoal_err *err)
{
    lab_scenario *s = NULL;
    char *out = NULL, *reference = NULL;
    int rc = sandbox_check(err);
    if (rc == 0) rc = cmd_lab_load(&s, p, given, err);
    if (rc == 0 && o->seconds > 0) s->seconds = o->seconds;
    if (rc == 0 && o->reference && !(reference = realpath(o->reference, NULL)))
        rc = err_set(err, SHOAL_ENOTFOUND, "%s: %s", o->reference, strerror(errno));
    if (rc == 0) rc = make_out(&out, o->out, s->name, err);
    if (rc == 0) {
        lab_run_options run = {
            .out = out, .program = p->program, .share = p->share, .reference = reference, .json = o->json};
        rc = lab_run(s, &run, ret_status, err);
    }
    free(reference);
    free(out);
    scenario_free(s);
    return rc;
}

/* ---- list, check, clean ---- */

static int cmd_lab_by_name(const void *x, const void *y)
{
    return strcmp(*(char *const *)x, *(char *const *)y);
}

static int cmd_lab_show(const places *p, const char *file, bool json, bool first, shoal_err *err)
{
    char path[4700];
    lab_scenario *s = NULL;
    buf line = {0};
    snprintf(path, sizeof path, "%s/%.256s", p->scenarios, file);
    int rc = scenario_load(&s, path, err);
    if (rc == 0 && json) {
        json_put_open(&line, NULL, '{');
        json_put_text(&line, "name", s->name);
        json_put_text(&line, "about", s->about);
        buf_printf(&line, ",\"seconds\":%g,\"nodes\":%zu}", s->seconds, s->n_nodes);
    } else if (rc == 0) {
        buf_printf(&line, "%-16s %5g s  %s", s->name, s->seconds, s->about);
        cli_end_line(&line, 0, 26);
    }
    if (rc == 0) printf("%s", line.data ? line.data : "");
    buf_done(&line);
    scenario_free(s);
    return rc;
}

static int cmd_lab_list(const places *p, bool json, shoal_err *err)
{
    char *names[256];
    size_t n = 0;
    DIR *d = opendir(p->scenarios);
    if (!d) return err_set(err, SHOAL_EIO, "%s: %s", p->scenarios, strerror(errno));
    for (struct dirent *e; n < 256 && (e = readdir(d));)
        if (is_yaml(e->d_name) && (names[n] = strdup(e->d_name))) n++;
    closedir(d);
    qsort(names, n, sizeof *names, cmd_lab_by_name);
    int rc = 0;
    if (json) printf("{\"scenarios\":[");
    for (size_t i = 0; i < n; i++) {
        if (rc == 0) rc = cmd_lab_show(p, names[i], json, i == 0, err);
        free(names[i]);
    }
    if (json && rc == 0) printf("]}\n");
    return rc;
}

static int cmd_lab_check(const places *p, const char *given, shoal_err *err)
{
    lab_scenario *s = NULL;
    int rc = cmd_lab_load(&s, p, given, err);
    if (rc == 0)
        printf("ok: %s: %zu node%s, %zu fault%s, %zu kind%s of requests, %g s\n", s->name, s->n_nodes,
               s->n_nodes == 1 ? "" : "s", s->n_faults, s->n_faults == 1 ? "" : "s", s->n_requests,
               s->n_requests == 1 ? "" : "s", s->seconds);
    scenario_free(s);
    return rc;
}

static void say_removed(const char *path)
{
    printf("removed %s\n", path);
}

/* ---- the command ---- */

static const cli_verb VERBS[] = {{"run", "NAME|FILE", "do what a scenario says, and report", 1, 1},
                                 {"check", "NAME|FILE", "look a scenario over", 1, 1},
                                 {"list", "", "list the scenarios that are there", 0, 0},
                                 {"clean", "", "remove what killed labs left", 0, 0},
                                 CLI_VERB_END};
enum { VERB_RUN, VERB_CHECK, VERB_LIST, VERB_CLEAN };

static int cmd_lab_run(int argc, char **argv)
{
    options o = {0};
    const cli_option table[] = {
        CLI_STRING('o', "out", "DIR", "run: where the report goes [lab-NAME]", &o.out),
        CLI_NUM('s', "seconds", "N", "run: how long, instead of what the scenario says", &o.seconds),
        CLI_STRING('r', "reference", "FILE", "run: compare with answers.jsonl of an earlier run",
                   &o.reference),
        CLI_JSON(&o.json),
        CLI_END,
    };
    cli_args a;
    const cli_verb *verb;
    int rc = cli_parse_verb(&a, &verb, &cmd_lab, table, VERBS, argc, argv), status = CLI_OK;
    if (rc != CLI_GO) return rc;
    shoal_err err = {0};
    places p;
    if ((rc = find_places(&p, &err)) != 0) return cli_fail(&cmd_lab, &err);
    if (o.seconds < 0 || o.seconds > 1e6)
        rc = err_set(&err, SHOAL_EINVALID, "--seconds is from 0 to 1000000, not %g", o.seconds);
    else if (verb == &VERBS[VERB_RUN])
        rc = run_scenario(&p, a.v[0], &o, &status, &err);
    else if (verb == &VERBS[VERB_CHECK])
        rc = cmd_lab_check(&p, a.v[0], &err);
    else if (verb == &VERBS[VERB_LIST])
        rc = cmd_lab_list(&p, o.json, &err);
    else
        printf("left of labs that were killed: %zu\n", sandbox_clean(say_removed));
    return rc == 0 ? status : cli_fail(&cmd_lab, &err);
}

const cli_command cmd_lab = {"lab", "break a cluster here, and see what became of every request",
                             "run|check|list|clean [NAME|FILE]", cmd_lab_run, false};
