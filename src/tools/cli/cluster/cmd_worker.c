/* cmd_worker.c: `shoal worker`, the process of one model replica; started by the agent. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "base/sys.h"
#include "base/file.h"
#include "os/crash.h"
#include "logging/log.h"
#include "cli/commands.h"
#include "command/cli_tuning.h"
#include "backend/backend_tuning.h"
#include "worker/worker.h"

static int setup_log(const char *level, bool json)
{
    int l = log_level_parse(level);
    if (l >= 0) log_setup((log_level)l, json);
    return l >= 0 ? 0 : SHOAL_EINVALID;
}

/* "NAME=PATH" each; names point into malloc'd copies, which live as long as the process. */
static int read_adapters(const cli_list *l, backend_adapter out[WORKER_ADAPTERS_MAX], shoal_err *err)
{
    for (size_t i = 0; i < l->n; i++) {
        const char *equals = strchr(l->v[i], '=');
        if (!equals || !equals[1])
            return err_set(err, SHOAL_EINVALID, "--adapter wants NAME=PATH, not \"%s\"", l->v[i]);
        out[i] = (backend_adapter){.name = strndup(l->v[i], (size_t)(equals - l->v[i])), .path = equals + 1};
        if (!out[i].name) return err_nomem(err);
    }
    return 0;
}

/* "FIRST:END" */
static int read_layers(const char *s, net_layers *ret, shoal_err *err)
{
    int used = 0;
    if (!s) return 0;
    if (sscanf(s, "%zu:%zu%n", &ret->first, &ret->end, &used) == 2 && s[used] == 0 && s[0] != '-' &&
        ret->first < ret->end)
        return 0;
    return err_set(err, SHOAL_EINVALID, "--layers wants FIRST:END, as in 0:12, not \"%s\"", s);
}

static int read_stages(backend_options *w, const char *layers, const cli_list *stages, const char *wire,
                       shoal_err *err)
{
    int rc = read_layers(layers, &w->layers, err);
    if (rc == 0 && stages->n > 0 && !layers)
        rc = err_set(err, SHOAL_EINVALID, "--stage wants --layers 0:END, the layers that are here");
    if (rc == 0 && !rows_wire_parse(wire, &w->wire))
        rc = err_set(err, SHOAL_EINVALID, "--wire wants f32, f16 or int8, not \"%s\"", wire);
    w->stages = stages->v;
    w->n_stages = stages->n;
    return rc;
}

/* A flag of its own is put over the agent's text. */
static int read_tuning(worker_options *w, const char *text, const cli_tuning *flags, bool no_drafts,
                       bool no_vad, shoal_err *err)
{
    tuning t = {0};
    int rc = text ? tuning_parse(&t, text, err) : 0;
    if (rc == 0 && no_drafts) rc = tuning_set(&t, "drafts", "off", err);
    if (rc == 0 && no_vad) rc = tuning_set(&t, "vad", "off", err);
    if (rc == 0) rc = cli_tuning_read(flags, &t, err);
    w->no_vad = t.vad != 0;
    return rc == 0 ? backend_tune(&w->model, &t, err) : rc;
}

/* Every file that the model is made of is opened for that user, too. */
static int confine(const char *reader, shoal_err *err)
{
    static file_user user; /* as long as the process */
    if (!reader) return 0;
    if (!file_user_parse(&user, reader))
        return err_set(err, SHOAL_EINVALID, "--reader wants UID:GID:GROUP,..., not \"%s\"", reader);
    file_confine_to(&user);
    return 0;
}

static int cmd_worker_run(int argc, char **argv)
{
    worker_options w = {0};
    bool json_log = false, no_drafts = false, no_vad = false;
    cli_tuning flags = {0};
    cli_list adapters = {0}, stages = {0};
    const char *layers = NULL, *wire = "f32", *tuned = NULL;
    backend_adapter list[WORKER_ADAPTERS_MAX];
    const char *level = "info", *sampling = NULL, *reader = NULL, *crashes = NULL;
    long long threads = 0, kv = 0, context = 0, fd = -1, slot = -1, parent = 0, sound = 0, packed_mb = 0,
              packed_min = PACKED_STORE_MIN_MB;
    const cli_option options[] = {
        CLI_STRING('n', "name", "NAME", "the model's name for clients and logs", &w.model.name),
        CLI_STRING('m', "model", "PATH", "model file or folder", &w.model.path),
        CLI_STRING(0, "sha256", "HEX", "refuse any other file", &w.model.sha256),
        CLI_STRING(0, "reader", "UID:GID:GROUP,...", "read only what this user may read as well", &reader),
        CLI_STRING('a', "address", "ADDR", "where to listen: unix:/path; with --tls-cert HOST:PORT",
                   &w.address),
        CLI_STRING(0, "tls-cert", "FILE", "our certificate (PEM), for gateways of other machines",
                   &w.tls.cert),
        CLI_STRING(0, "tls-key", "FILE", "its key", &w.tls.key),
        CLI_STRING(0, "tls-ca", "FILE", "the CA of gateways and workers", &w.tls.ca),
        CLI_STRING(0, "tls-client", "NAME", "the name in the gateways' certificates (any that the CA signed)",
                   &w.tls.client),
        CLI_INT('t', "threads", "N", 0, 64, "compute threads (all cores)", &threads),
        CLI_INT(0, "kv-bytes", "N", 0, 1LL << 46, "ceiling of the KV cache", &kv),
        CLI_STRING(0, "options", "KEY=VALUE ...", "those below in one text, as the agent has them", &tuned),
        CLI_INT(0, "sound-bytes", "N", 0, 1LL << 46, "of all sounds that it hears at once (256 MiB)", &sound),
        CLI_INT(0, "context", "N", 0, 1 << 24, "context length (the model's)", &context),
        CLI_FLAG(0, "no-vad", "--vad off", &no_vad),
        CLI_STRING(0, "sampling", "FIELD=N,...", "what requests mean that do not say it (the model's)",
                   &sampling),
        CLI_FLAG(0, "no-drafts", "--drafts off", &no_drafts),
        CLI_LIST(0, "adapter", "NAME=PATH", "a LoRA adapter that requests may name", &adapters),
        CLI_STRING(0, "layers", "FIRST:END", "serve these layers alone (all)", &layers),
        CLI_LIST(0, "stage", "ADDR", "where the next layers are: once a stage, in order", &stages),
        CLI_STRING(0, "member", "DIR", "this machine's certificate, to reach stages of other machines",
                   &w.model.member),
        CLI_STRING(0, "wire", "KIND", "rows between stages: f32 (exact), f16 or int8", &wire),
        CLI_STRING(0, "packed", "DIR", "keep packed weights in DIR (not kept)", &w.model.store.folder),
        CLI_INT(0, "packed-mb", "N", 1, 1LL << 40, "MB that they may take together", &packed_mb),
        CLI_INT(0, "packed-min-mb", "N", 0, 1LL << 40, "keep none of a model of fewer MB (32)", &packed_min),
        CLI_FLAG(0, "packed-check", "compare them with their digest before they are used",
                 &w.model.store.whole),
        CLI_FLAG(0, "shared", "other workers here serve the same model", &w.model.store.shared),
        CLI_INT(0, "arbiter-fd", "FD", -1, 1 << 20, "inherited descriptor of the core arbiter", &fd),
        CLI_INT(0, "arbiter-slot", "N", -1, 63, "this worker's place in it", &slot),
        CLI_INT(0, "parent", "PID", 0, 1LL << 31, "exit when this process is gone", &parent),
        CLI_STRING(0, "crashes", "DIR", "write a report to DIR when it crashes (no report)", &crashes),
        CLI_STRING(0, "log-level", "LEVEL", "debug, info, warn, error or off", &level),
        CLI_FLAG(0, "json-log", "log lines as JSON", &json_log),
        CLI_END,
    };
    cli_args a;
    prctl(PR_SET_NAME, "shoal-worker"); /* it was executed as /proc/self/exe */
    sys_short_turns();
    int rc = cli_parse(&a, &cmd_worker, cli_tuning_behind(&flags, options), 0, 0, argc, argv);
    if (rc != CLI_GO) return rc;
    shoal_err err;
    if (!w.model.path || !w.address) {
        err_set(&err, SHOAL_EINVALID, "--model and --address are needed");
        return cli_fail(&cmd_worker, &err);
    }
    if (setup_log(level, json_log) != 0) {
        err_set(&err, SHOAL_EINVALID, "\"%s\" is no log level", level);
        return cli_fail(&cmd_worker, &err);
    }
    crash_open("worker", json_log);
    crash_keep(crashes);
    crash_fact("model", w.model.name ? w.model.name : w.model.path);
    if (confine(reader, &err) != 0) return cli_fail(&cmd_worker, &err);
    if (read_adapters(&adapters, list, &err) != 0) return cli_fail(&cmd_worker, &err);
    if (read_stages(&w.model, layers, &stages, wire, &err) != 0) return cli_fail(&cmd_worker, &err);
    if (sampling && sampling_parse(&w.model.sampling, sampling, &err) != 0)
        return cli_fail(&cmd_worker, &err);
    w.model.adapters = list;
    w.model.n_adapters = adapters.n;
    if (!w.model.name) w.model.name = w.model.path;
    w.model.engine =
        (engine_options){.n_threads = (int)threads, .n_ctx = (size_t)context, .kv_bytes = (size_t)kv};
    if (read_tuning(&w, tuned, &flags, no_drafts, no_vad, &err) != 0) return cli_fail(&cmd_worker, &err);
    w.model.store.max_bytes = (uint64_t)packed_mb << 20;
    w.model.store.min_bytes = (uint64_t)packed_min << 20;
    w.arbiter_fd = slot >= 0 ? (int)fd : -1;
    w.arbiter_slot = (int)slot;
    w.parent_pid = (int)parent;
    w.sound_bytes = (size_t)sound;
    return worker_run(&w);
}

const cli_command cmd_worker = {"worker", "serve one model on a socket (started by the agent)", "",
                                cmd_worker_run, true};
