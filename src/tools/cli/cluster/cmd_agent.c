/* shoal agent --join HOST:PORT --token T: this machine joins a cluster and stays attached to a gateway of it.
 * Started again, with or without the token, it goes on with the certificate that it has. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "logging/tty_style.h"
#include "os/cpu_share.h"
#include "os/crash.h"
#include "os/exit_guard.h"
#include "base/file.h"
#include "os/handover.h"
#include "logging/log.h"
#include "base/sys.h"
#include "cli/commands.h"
#include "cluster/machine.h"
#include "cluster/node.h"
#include "command/cli_cluster.h"
#include "join/attach.h"
#include "join/join.h"
#include "join/relay.h"
#include "control/member_table.h"
#include "serve/worker_supervisor.h"
#include "serve/measure_here.h"
#include "serve/measure_idle.h"
#include "serve/supervised.h"
#include "serve/supervisor.h"
#include "trust/key.h"
#include "trust/state.h"
#include "wire/listening.h"
#include "wire/loop.h"

/* Once its workers had their time (worker_supervisor.c), the process ends whatever its threads do. */
enum { FDS = 256, STOP_MS = 15000, CUT_MS = 1000 };

typedef struct asked {
    const char *join, *token, *token_file, *name, *site, *state, *config, *listen;
    cli_list labels, devices;
    Shoal__V1__Device device[NODE_DEVICES_MAX], *device_at[NODE_DEVICES_MAX];
    char device_text[NODE_DEVICES_MAX][2 * NODE_DEVICE_NAME];
    long long models_gb, mb_per_s;
    bool no_measure, json_log, alone;
    const char *color;
    long long reserve, nice;
    const char *sched;
    isa chosen;    /* its kernels */
    bool measured; /* its speeds, at the start */
} asked;

typedef struct agent_run {
    uv_loop_t loop;
    uv_signal_t term, interrupt;
    attach *attach;
    worker_supervisor *supervisor; /* NULL: no workers */
    worker_supervisor *workers;    /* the same until its workers are gone */
    supervised *supervised;        /* NULL: nobody supervises */
    measure_idle *measure;         /* NULL: nothing is measured */
    char address[300];
    char name[IDENTITY_NAME_SIZE];
    bool said;
} agent_run;

/* ---- what this machine is ------------------------------------------------------------------------ */

static int cmd_agent_gather(Shoal__V1__NodeFacts *f, asked *q, shoal_err *err)
{
    static char version[] = SHOAL_VERSION;
    isa chosen = ISA_SCALAR;
    machine m;
    int rc = isa_choose(&chosen, err);
    if (rc != 0) return rc;
    machine_read(&m, "");
    f->version = version;
    f->site = (char *)(q->site ? q->site : "");
    f->isa = (char *)isa_name(chosen);
    f->n_cores = (uint32_t)sys_core_count();
    f->memory_bytes = m.memory_bytes;
    f->labels = (char **)q->labels.v;
    f->n_labels = q->labels.n;
    f->devices = q->device_at;
    f->n_devices = q->devices.n;
    q->chosen = chosen;
    q->measured = !q->no_measure && measure_here(chosen, &f->bytes_per_s, &f->multiplies_per_s);
    return 0;
}

static int take_devices(asked *q, shoal_err *err)
{
    if (q->devices.n > NODE_DEVICES_MAX)
        return err_set(err, SHOAL_EINVALID, "a machine has at most %d devices", NODE_DEVICES_MAX);
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < q->devices.n; i++) {
        node_device d;
        rc = node_device_parse(&d, q->device_text[i], q->devices.v[i], err);
        if (rc != 0) break;
        q->device_at[i] = &q->device[i];
        shoal__v1__device__init(&q->device[i]);
        q->device[i].name = (char *)d.name;
        q->device[i].kind = (char *)d.kind;
        q->device[i].memory_bytes = d.memory_bytes;
    }
    return rc;
}

static int take_cpu_share(const asked *q, shoal_err *err)
{
    cpu_share s = {.reserve = (unsigned)q->reserve, .nice = (int)q->nice};
    while (cpu_sched_words[s.sched] && strcmp(cpu_sched_words[s.sched], q->sched) != 0) s.sched++;
    if (!cpu_sched_words[s.sched])
        return err_set(err, SHOAL_EINVALID, "--cpu-sched wants fair, batch, rr or fifo, not \"%s\"",
                       q->sched);
    cpu_share_apply(&s, "agent");
    return 0;
}

static int cmd_agent_check(asked *q, shoal_err *err)
{
    if (q->token && q->token_file)
        return err_set(err, SHOAL_EINVALID, "give the token with --token or in --token-file, not both");
    if (!q->join && (q->token || q->token_file))
        return err_set(err, SHOAL_EINVALID, "a token is for joining: say where with --join HOST:PORT");
    if (q->labels.n > MEMBER_TABLE_LABELS_MAX)
        return err_set(err, SHOAL_EINVALID, "a machine has at most %d labels", MEMBER_TABLE_LABELS_MAX);
    for (size_t i = 0; i < q->labels.n; i++)
        if (!member_table_text_ok(q->labels.v[i]) || !*q->labels.v[i])
            return err_set(err, SHOAL_EINVALID, "a label is a line of 1 to %d bytes", MEMBER_TABLE_TEXT_MAX);
    int rc = take_devices(q, err);
    if (rc == 0 && q->site) rc = identity_name_check(q->site, strlen(q->site), "site", err);
    return rc == 0 && q->name ? identity_name_check(q->name, strlen(q->name), "node", err) : rc;
}

/* ---- joining ------------------------------------------------------------------------------------- */

static int join_with(const asked *q, const char *token, const folder *dir, const Shoal__V1__NodeFacts *f,
                     shoal_err *err)
{
    char host[256] = "", usual[IDENTITY_NAME_SIZE];
    gethostname(host, sizeof host - 1);
    identity_name_from_host(usual, host);
    if (join_was_by(dir, token)) return join_move(dir, q->join, err);
    return join_cluster(
        &(join_ask){.address = q->join, .token = token, .name = q->name ? q->name : usual, .facts = f}, dir,
        err);
}

static int join_if_asked(const asked *q, const folder *dir, const Shoal__V1__NodeFacts *f, shoal_err *err)
{
    buf text = {0};
    if (!q->join) return 0;
    const char *file = q->token_file && strcmp(q->token_file, "-") == 0 ? "/dev/stdin" : q->token_file;
    bool is_member = folder_has(dir, "member.pem");
    if (!file && !q->token && !is_member)
        return err_set(err, SHOAL_EINVALID,
                       "--join needs a token: on the gateway's machine run shoal token create");
    if (is_member && (handover_restarts() > 0 || (!q->token && (!file || access(file, F_OK) != 0))))
        return join_move(dir, q->join, err); /* the token was used, and somebody has tidied up */
    int rc = q->token ? (buf_puts(&text, q->token) == 0 ? 0 : err_nomem(err)) : 0;
    if (file) rc = file_read(&text, file, 4096, err);
    if (rc == 0) rc = join_with(q, text.data ? text.data : "", dir, f, err);
    buf_wipe(&text);
    return rc;
}

/* ---- running ------------------------------------------------------------------------------------- */

static void on_attached(void *user, const char *gateway)
{
    agent_run *r = user;
    if (r->supervisor) worker_supervisor_follow(r->supervisor, r->attach); /* models come from that one now */
    if (r->said) return;
    r->said = true;
    if (handover_restarts() > 0) return; /* whoever reads standard output was told when it began */
    cli_printf("attached as %s to %s\n", r->name, gateway);
    fflush(stdout);
}

static void worker_exited(void *user, int pid, int status)
{
    agent_run *r = user;
    if (r->workers) worker_supervisor_worker_exited(r->workers, pid, status);
}

static void workers_gone(void *user)
{
    agent_run *r = user;
    r->workers = NULL;
    supervised_close(r->supervised);
}

/* Gateways hear no more of its workers, and they finish what runs. What follows still hears signals. */
static void cmd_agent_leave(agent_run *r)
{
    if (r->supervisor) worker_supervisor_close(r->supervisor, workers_gone, r);
    if (r->attach) attach_close(r->attach, NULL, NULL);
    r->attach = NULL;
    r->supervisor = NULL;
    uv_unref((uv_handle_t *)&r->term);
    uv_unref((uv_handle_t *)&r->interrupt);
}

static void cmd_agent_on_signal(uv_signal_t *h, int number)
{
    agent_run *r = h->data;
    if (!r->attach) return;
    LOG(LOG_INFO, "agent", "stopping", LOG_I("signal", number));
    cmd_agent_leave(r);
}

static void watch_signals(agent_run *r)
{
    uv_signal_init(&r->loop, &r->term);
    uv_signal_init(&r->loop, &r->interrupt);
    r->term.data = r->interrupt.data = r;
    uv_signal_start(&r->term, cmd_agent_on_signal, SIGTERM);
    uv_signal_start(&r->interrupt, cmd_agent_on_signal, SIGINT);
    exit_guard_start(&(exit_guard){.component = "agent", .stop_ms = STOP_MS, .cut_ms = CUT_MS});
}

static void on_measured(void *user, double bytes_per_s, double multiplies_per_s)
{
    agent_run *r = user;
    if (r->attach) attach_speeds(r->attach, bytes_per_s, multiplies_per_s);
}

static int start_measuring(agent_run *r, const asked *q, shoal_err *err)
{
    const measure_idle_options o = {
        .chosen = q->chosen, .measured = q->measured, .found = on_measured, .user = r};
    return q->no_measure ? 0 : measure_idle_open(&r->measure, &r->loop, &o, err);
}

static void on_report(void *user, Shoal__V1__AgentMessage *m)
{
    agent_run *r = user;
    if (r->supervisor) worker_supervisor_report(r->supervisor, m);
}

static void on_assigned(void *user, const Shoal__V1__Assignments *a)
{
    agent_run *r = user;
    if (r->supervisor) worker_supervisor_assign(r->supervisor, a);
}

static void on_holders(void *user, const Shoal__V1__Holders *m)
{
    agent_run *r = user;
    if (r->supervisor) worker_supervisor_hear(r->supervisor, m);
}

static void on_new_files(void *user)
{
    agent_run *r = user;
    if (r->supervisor) worker_supervisor_reload(r->supervisor);
}

/* The port of a relay that listens anywhere is enough for the gateway, which sees where this machine comes
 * from. */
static int start_workers(agent_run *r, const asked *q, const folder *dir, Shoal__V1__NodeFacts *f,
                         shoal_err *err)
{
    worker_supervisor_options o = {.config = q->config,
                                   .listen = q->listen ? q->listen : ":7081",
                                   .models_bytes = (uint64_t)q->models_gb * 1000000000u,
                                   .bytes_per_s = (uint64_t)q->mb_per_s * 1000000u,
                                   .dir = dir};
    int rc = worker_supervisor_open(&r->supervisor, &r->loop, &o, err);
    if (rc == SHOAL_EIO && !q->listen) { /* somebody has the usual port: the gateway hears of another */
        o.listen = ":0";
        rc = worker_supervisor_open(&r->supervisor, &r->loop, &o, err);
    }
    if (rc != 0) return rc;
    const char *listen = o.listen;
    const char *colon = strrchr(listen, ':');
    bool anywhere =
        colon == listen || strncmp(listen, "0.0.0.0:", 8) == 0 || strncmp(listen, "[::]:", 5) == 0;
    snprintf(r->address, sizeof r->address, "%.*s:%d", anywhere ? 0 : (int)(colon - listen), listen,
             worker_supervisor_port(r->supervisor));
    f->address = r->address;
    return 0;
}

static int stay(agent_run *r, const asked *q, const folder *dir, const char *address, Shoal__V1__NodeFacts *f,
                shoal_err *err)
{
    attach_options o = {.address = address,
                        .roams = true,
                        .dir = dir,
                        .facts = f,
                        .report = on_report,
                        .attached = on_attached,
                        .changed = on_new_files,
                        .assigned = on_assigned,
                        .holders = on_holders,
                        .user = r};
    int rc = loop_open(&r->loop, FDS + 2 * RELAY_CONNECTIONS_MAX, err);
    if (rc != 0) return rc;
    listening_open(&r->loop);
    watch_signals(r);
    rc = start_workers(r, q, dir, f, err);
    if (rc == 0) rc = attach_open(&r->attach, &r->loop, &o, err);
    if (rc == 0 && r->supervisor) worker_supervisor_follow(r->supervisor, r->attach);
    if (rc == 0) rc = start_measuring(r, q, err);
    r->workers = r->supervisor;
    const supervised_events ev = {.exited = worker_exited, .user = r};
    if (rc == 0) rc = supervised_open(&r->supervised, &r->loop, &ev, q->json_log, LOG_INFO, err);
    if (rc == 0) {
        handover_discard();
        handover_tell(HANDOVER_READY, 0, 0);
    } else {
        cmd_agent_leave(r);
    }
    uv_run(&r->loop, UV_RUN_DEFAULT);
    uv_close((uv_handle_t *)&r->term, NULL);
    uv_close((uv_handle_t *)&r->interrupt, NULL);
    measure_idle_close(r->measure);
    listening_close();
    uv_run(&r->loop, UV_RUN_DEFAULT);
    uv_loop_close(&r->loop);
    return rc;
}

/* A gateway has joined: what it is for, another command does. */
static int say_gateway(const credential *c, const folder *dir)
{
    cli_printf("joined %s as the gateway %s; start it with: shoal serve, and in shoal.yaml cluster: {listen: "
               "\":7080\", "
               "state: %s}\n",
               c->id.cluster, c->id.name, dir->path);
    return 0;
}

static int cmd_agent_go_on(const asked *q, const folder *dir, Shoal__V1__NodeFacts *f, shoal_err *err)
{
    agent_run r = {0};
    credential c = {0};
    char *address = NULL;
    int rc = join_address(dir, &address, err);
    if (rc == 0) rc = credential_load(&c, dir, err);
    if (rc == 0) memcpy(r.name, c.id.name, sizeof r.name);
    if (rc == 0) rc = c.id.role == ROLE_GATEWAY ? say_gateway(&c, dir) : stay(&r, q, dir, address, f, err);
    credential_done(&c);
    free(address);
    log_tell_repeats(true);
    return rc;
}

static int open_state(const asked *q, const char *path, folder *ret, shoal_err *err)
{
    shoal_err why;
    int rc = folder_open(ret, path, q->join != NULL, &why);
    if (rc == SHOAL_ENOTFOUND && !q->join)
        return err_set(err, rc,
                       "%s: this machine has not joined a cluster: give --join HOST:PORT and a token", path);
    if (rc == 0) return 0;
    return err_set(err, rc,
                   "%s: the state folder must be one that this user can write; say where with --state DIR",
                   why.message);
}

static void keep_crashes(const char *state)
{
    buf path = {0};
    buf_printf(&path, "%s/crashes", state);
    if (!path.failed) crash_keep(path.data);
    buf_done(&path);
}

static int cmd_agent_run(int argc, char **argv)
{
    asked q = {.models_gb = 64, .sched = "fair"};
    const cli_option options[] = {
        CLI_STRING(0, "join", "HOST:PORT", "the gateway's cluster port, or several: A:7080,B:7080", &q.join),
        CLI_STRING(0, "token", "TOKEN", "from shoal token create; other users of this machine see it",
                   &q.token),
        CLI_STRING(0, "token-file", "FILE", "the same in a file; - reads standard input", &q.token_file),
        CLI_STRING(0, "name", "NAME", "what this machine is called [its host name]", &q.name),
        CLI_STRING(0, "site", "SITE", "where it stands", &q.site),
        CLI_LIST('L', "label", "TEXT", "what models may ask for, such as kitchen; may be repeated",
                 &q.labels),
        CLI_LIST(0, "device", "NAME=MIB",
                 "what computes here beside the cores: cuda:0=24576; may be repeated", &q.devices),
        CLI_STRING('c', "config", "FILE", "a shoal.yaml whose models this machine serves [none]", &q.config),
        CLI_STRING('l', "listen", "ADDR", "where gateways reach these models [:7081]", &q.listen),
        CLI_INT(0, "models-gb", "GB", 0, 100000, "room for models that come from others; 0: no bound [64]",
                &q.models_gb),
        CLI_INT(0, "fetch-mb", "MB", 0, 100000, "a second, with which they come; 0: no bound [0]",
                &q.mb_per_s),
        CLI_INT(0, "cpu-reserve", "N", 0, CPU_RESERVE_MAX, "cores that are left to other programs [0]",
                &q.reserve),
        CLI_INT(0, "cpu-nice", "N", CPU_NICE_MIN, CPU_NICE_MAX,
                "nice level of agent and workers; 0: as it is started [0]", &q.nice),
        CLI_STRING(0, "cpu-sched", "POLICY", "scheduling policy of both: fair, batch, rr or fifo [fair]",
                   &q.sched),
        CLI_FLAG(0, "no-measure", "never measure its speed, neither at the start (0.5 s) nor later",
                 &q.no_measure),
        CLI_STATE(&q.state),
        CLI_FLAG(0, "json-log", "log lines as JSON on a terminal, too", &q.json_log),
        CLI_COLOR(&q.color),
        CLI_FLAG(0, "no-supervise", "do not start it again after a crash (for debuggers)", &q.alone),
        CLI_END,
    };
    cli_args a;
    shoal_err err = {0};
    char *path = NULL;
    folder dir = FOLDER_NONE;
    Shoal__V1__NodeFacts f = SHOAL__V1__NODE_FACTS__INIT;
    int rc = cli_parse(&a, &cmd_agent, options, 0, 0, argc, argv);
    if (rc != CLI_GO) return rc;
    rc = q.alone ? -1 : supervise(argc, argv, "shoal-agent");
    if (rc >= 0) return rc;
    if (tty_style_choose(q.color, &err) != 0) return cli_fail(&cmd_agent, &err);
    q.json_log = log_wants_json(q.json_log);
    log_setup(LOG_INFO, q.json_log);
    crash_open("agent", q.json_log);
    rc = take_cpu_share(&q, &err);
    if (rc == 0) rc = cmd_agent_check(&q, &err);
    if (rc == 0) rc = state_path(&path, q.state, NULL, &err);
    if (rc == 0) rc = open_state(&q, path, &dir, &err);
    if (rc == 0) rc = state_hold(&(int){-1}, path, &err); /* for as long as it lives */
    if (rc == 0) keep_crashes(path);
    if (rc == 0) rc = cmd_agent_gather(&f, &q, &err);
    if (rc == 0) rc = join_if_asked(&q, &dir, &f, &err);
    if (rc == 0) rc = cmd_agent_go_on(&q, &dir, &f, &err);
    folder_close(&dir);
    free(path);
    return rc ? cli_fail(&cmd_agent, &err) : CLI_OK;
}

const cli_command cmd_agent = {"agent", "join a cluster with this machine and stay attached to its gateway",
                               "", cmd_agent_run, false};
