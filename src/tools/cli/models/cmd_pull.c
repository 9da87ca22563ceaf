/* shoal pull: fetch a model from a hub, a registry or an address. */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/file.h"
#include "json/json.h"
#include "kinds/model_kind.h"
#include "json/json_put.h"
#include "cli/commands.h"
#include "cli/models/pull_one.h"
#include "command/cli_model.h"
#include "fetch/pull.h"
#include "serve/serve_given.h"
#include "serve/serve_manager.h"

enum { TOKEN_MAX = 65536 };

static volatile sig_atomic_t stop;

static void cmd_pull_on_signal(int sig)
{
    (void)sig;
    stop = 1;
}

/* The first Ctrl-C stops cleanly; should that take long, the second one ends the process. */
static void catch_signals(void)
{
    struct sigaction a = {.sa_handler = cmd_pull_on_signal, .sa_flags = (int)SA_RESETHAND};
    sigemptyset(&a.sa_mask);
    sigaction(SIGINT, &a, NULL);
    sigaction(SIGTERM, &a, NULL);
}

/* Whoever asked for it may be killed: what nobody waits for stops as by Ctrl-C. The kernel's word is for a
 * parent that dies from now on, the look for one that is gone already. */
static int tie_to_parent(long long pid, shoal_err *err)
{
    if (pid == 0) return 0;
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() == pid) return 0;
    return err_set(err, SHOAL_ECANCELLED, "process %lld, for which this was to be fetched, is gone", pid);
}

/* That of the manifest in use, unless it is the package's; *ret_aside: the folder is another than the
 * manifest's, so that its names are not known. malloc'd, NULL: no memory. */
static char *default_folder(bool *ret_aside)
{
    char *manifest = NULL;
    shoal_err err;
    if (manifest_locate(&manifest, &err) == SHOAL_ENOMEM) return NULL;
    char *folder = serve_manager_store(NULL, manifest), *of = manifest ? file_folder(manifest) : NULL;
    *ret_aside = folder && of && strcmp(folder, of) != 0;
    free(manifest);
    free(of);
    return folder;
}

static bool is_hf(const char *ref)
{
    static const char *const starts[] = {"hf:", "https://huggingface.co/", "https://hf.co/"};
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        if (strncmp(ref, starts[i], strlen(starts[i])) == 0) return true;
    return false;
}

/* The token of a file, or of HF_TOKEN for that hub alone; *ret is NULL when there is none. */
static int read_token(const char *path, const char *ref, buf *text, const char **ret, shoal_err *err)
{
    const char *env = is_hf(ref) ? getenv("HF_TOKEN") : NULL;
    *ret = env && *env ? env : NULL;
    if (!path) return 0;
    int rc = file_read(text, path, TOKEN_MAX, err);
    if (rc != 0) return rc;
    while (text->len && strchr("\r\n \t", text->data[text->len - 1])) text->data[--text->len] = '\0';
    if (text->len == 0) return err_set(err, SHOAL_EINVALID, "%s: empty, a token is wanted", path);
    *ret = text->data;
    return 0;
}

/* ---- what was fetched ---------------------------------------------------------------------------------- */

/* A first call of what was fetched. */
static void put_try(buf *out, const char *task, const char *model)
{
    bool hears = task && strcmp(task, "transcribe") == 0;
    const char *command = !task ? "embed" : strcmp(task, "generate") == 0 ? "run" : task;
    buf_printf(out, "\ntry: shoal %s %s %s", command, model, hears ? "speech.wav" : "\"Hello\"");
}

static void cmd_pull_put_text(buf *out, const pull_done *d, bool aside)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < d->n; i++) sum += d->files[i].bytes;
    buf_printf(out, "%zu file%s, %llu bytes, checked: %s", d->n, d->n == 1 ? "" : "s",
               (unsigned long long)sum, d->n == 1 ? d->files[0].path : d->model);
    bool folder = !d->named && file_is_dir(d->model);
    bool gguf = d->named || model_kind_named(d->model) == &model_kind_gguf;
    if (folder)
        put_try(out, model_kind_task(d->model), d->model);
    else if (gguf)
        put_try(out, "generate", aside && d->named ? d->files[0].path : d->model);
}

static void cmd_pull_put_json(buf *out, const pull_done *d)
{
    buf_putc(out, '{');
    json_put_text(out, "model", d->model);
    buf_printf(out, ",\"in_manifest\":%s,\"files\":[", d->named ? "true" : "false");
    for (size_t i = 0; i < d->n; i++) {
        json_put_open(out, NULL, '{');
        json_put_text(out, "path", d->files[i].path);
        buf_printf(out, ",\"bytes\":%llu,\"sha256\":\"%s\",\"was_here\":%s}",
                   (unsigned long long)d->files[i].bytes, d->files[i].sha256,
                   d->files[i].was_here ? "true" : "false");
    }
    buf_puts(out, "]}");
}

static int failed(const shoal_err *err, char *choices)
{
    shoal_err said = *err;
    if (err->code == SHOAL_ECANCELLED)
        err_set(&said, SHOAL_ECANCELLED, "stopped; the same command goes on where it was");
    int rc = cli_fail(&cmd_pull, &said);
    if (choices) cli_say("%s", choices);
    return rc;
}

int pull_one(char **ret, const char *reference, shoal_err *err)
{
    pull_options o = {.ref = reference, .to = stderr, .stop = &stop, .stall_s = 30, .tries = 6};
    pull_done done = {0};
    char *choices = NULL;
    bool aside;
    char *folder = default_folder(&aside);
    const char *env = getenv("HF_ENDPOINT");
    o.folder = folder;
    if (env && *env && is_hf(reference)) o.endpoint = env;
    catch_signals();
    int rc = folder ? read_token(NULL, reference, NULL, &o.token, err) : err_nomem(err);
    if (rc == 0) rc = pull_run(&o, &done, &choices, err);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    if (choices) cli_say("%s", choices);
    if (rc == SHOAL_ECANCELLED) rc = err_set(err, rc, "stopped; the same command goes on where it was");
    const char *got = rc != 0 ? NULL : done.named && done.n > 0 ? done.files[0].path : done.model;
    if (rc == 0 && !(*ret = realpath(got, NULL)))
        rc = errno == ENOMEM ? err_nomem(err) : err_set(err, SHOAL_EIO, "%s: %s", got, strerror(errno));
    arena_free(done.mem);
    free(choices);
    free(folder);
    return rc;
}

int pull_if_reference(char **ret, bool *ret_here, const char *model, shoal_err *err)
{
    char name[NAME_BYTES_MAX + 1];
    shoal_err why;
    if (!model_is_reference(model)) return 0;
    *ret_here = serve_given_find(ret, name, model, &why) == 0;
    return *ret_here ? 0 : pull_one(ret, model, err);
}

static int pull_and_print(const pull_options *o, bool aside, bool json)
{
    shoal_err err = {0};
    pull_done done = {0};
    char *choices = NULL;
    buf out = {0};
    int rc = pull_run(o, &done, &choices, &err);
    if (rc != 0) {
        rc = failed(&err, choices);
        free(choices);
        return rc;
    }
    if (json)
        cmd_pull_put_json(&out, &done);
    else
        cmd_pull_put_text(&out, &done, aside);
    rc = cli_print(&out);
    buf_done(&out);
    arena_free(done.mem);
    return rc;
}

static int cmd_pull_run(int argc, char **argv)
{
    pull_options o = {.to = stderr, .stop = &stop};
    const char *to = NULL, *token_file = NULL;
    bool json = false, quiet = false, events = false, aside = false;
    long long stall = 30, tries = 6, parent = 0;
    const cli_option options[] = {
        CLI_STRING(0, "to", "DIR", "folder to put it in [that of models.json, or models]", &to),
        CLI_STRING(0, "token-file", "FILE",
                   "file with the hub's token [HF_TOKEN], or a registry's USER:PASSWORD", &token_file),
        CLI_STRING(0, "endpoint", "URL", "another hub for hf:, another registry for ollama: [HF_ENDPOINT]",
                   &o.endpoint),
        CLI_STRING(0, "sha256", "HEX", "what the one file must be", &o.sha256),
        CLI_FLAG(0, "force", "replace other files of the same names", &o.force),
        CLI_FLAG(0, "no-manifest", "do not add it to models.json", &o.no_manifest),
        CLI_INT(0, "stall", "S", 1, 3600, "try again when nothing came for S seconds", &stall),
        CLI_INT(0, "tries", "N", 1, 100, "tries of what may pass, such as a lost connection", &tries),
        CLI_STRING(0, "hosts", "LIST",
                   "hosts of this machine or private networks that a redirect may point at [the one asked]",
                   &o.hosts),
        CLI_FLAG('q', "quiet", "no progress", &quiet),
        CLI_FLAG(0, "events", "for a program: progress and the end as lines of JSON on stdout", &events),
        CLI_INT(0, "parent", "PID", 1, INT_MAX, "for a program: stop when this one, which started it, ends",
                &parent),
        CLI_JSON(&json),
        CLI_END,
    };
    cli_args a;
    shoal_err err = {0};
    buf token = {0};
    int rc = cli_parse(&a, &cmd_pull, options, 1, 1, argc, argv);
    if (rc != CLI_GO) return rc;
    if (to && !*to) {
        err_set(&err, SHOAL_EINVALID, "--to wants a folder");
        return cli_fail(&cmd_pull, &err);
    }
    char *folder = to ? strdup(to) : default_folder(&aside);
    const char *env = getenv("HF_ENDPOINT");
    o.ref = a.v[0];
    o.folder = folder;
    o.stall_s = (int)stall;
    o.tries = (int)tries;
    if (quiet) o.to = NULL;
    if (events) o.to = stdout;
    o.events = events;
    if (!o.endpoint && env && *env && is_hf(o.ref)) o.endpoint = env;
    catch_signals();
    rc = tie_to_parent(parent, &err);
    if (rc == 0) rc = folder ? read_token(token_file, o.ref, &token, &o.token, &err) : err_nomem(&err);
    rc = rc == 0 ? pull_and_print(&o, aside, json || events) : cli_fail(&cmd_pull, &err);
    buf_done(&token);
    free(folder);
    return rc;
}

const cli_command cmd_pull = {"pull", "fetch a model: hf:ORG/NAME, ollama:NAME, oci://... or an address",
                              "REF", cmd_pull_run, false};
