/* health_poller.c: keeping in touch with one worker: connect, ask what it is, poll its load, notice its silence. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bit_identity.h"
#include "base/clock.h"
#include "logging/log.h"
#include "base/strmap.h"
#include "base/utf8.h"
#include "cluster/registry_impl.h"

enum {
    RETRY_MIN_MS = 5, /* a starting worker listens after tens of milliseconds: look often at first */
    RETRY_MAX_MS = 25,
    RETRY_AWAY_MS = 1000, /* where no process is known to be starting */
    DESCRIBE_TIMEOUT_MS = 5000,
    /* Or a millisecond for each replica there is: a gateway makes 1,000 polls a second at most. */
    POLL_MS = 200,
    REST_MS = 500,     /* of one on this machine that has nothing to do, until it gets a call */
    TOGETHER_MAX = 32, /* so few are polled in one turn of the loop, for one wake instead of as many */
    MISSED_MS = 300,   /* no answer for so long: no new calls, and its agent looks what it does */
    LOOK_MS = 200,     /* until the next look at one that owes an answer */
    ABANDON_MS =
        1000, /* of one elsewhere, or whose process nobody watches: its calls move to others that answer */
    SILENT_MS = 10000,  /* nobody watches its process, and it never answers */
    STARVED_MS = 2000,  /* one that waited for cores lately may do so again */
    STARVED_SHARE = 10, /* that it waited for a core for a tenth of the time or more counts */
    AGAIN_MS = 5000,    /* given up, and no agent is there to start it again */
    /* What a worker may say of itself. */
    TEXT_MAX = 4096,
    DIGEST_MAX = 64,
    WIDTH_MAX = 4096,
};

static void start_timer(health_poller *l, uint64_t ms)
{
    l->g->e.timer_start(l->timer, ms);
}

static double ms_since(const health_poller *l, uint64_t start_ns)
{
    return (double)(registry_now(l->g) - start_ns) / 1e6;
}

/* How long the poll is unanswered, while we could have heard an answer. */
static double owed_ms(const health_poller *l)
{
    return (double)(registry_listening_ns(l->g) - l->asked_ns) / 1e6;
}

/* ---- states ------------------------------------------------------------------------------------ */

static void set_state(health_poller *l, replica_state s, const char *reason)
{
    if (!reason) reason = "";
    if (l->r.dropped || (l->r.state == s && strcmp(l->r.reason, reason) == 0)) return;
    bool expected = l->r.state == REPLICA_DRAINING;
    log_level level = s == REPLICA_FAILED ? LOG_ERROR : s == REPLICA_DOWN && !expected ? LOG_WARN : LOG_INFO;
    if (l->r.state != s) l->r.state_ns = registry_now(l->g);
    l->r.state = s;
    snprintf(l->r.reason, sizeof l->r.reason, "%s", reason);
    LOG(level, "registry", "replica_state", LOG_S("replica", l->r.id), LOG_I("generation", l->r.generation),
        LOG_S("state", replica_state_name(s)), LOG_S("reason", l->r.reason), LOG_I("pid", l->r.process.pid));
    registry_sort(l);
    registry_tell(l->g, &(registry_event){.what = REGISTRY_CHANGE, .replica = &l->r});
}

static void set_generation(health_poller *l, uint64_t generation)
{
    l->r.generation = generation;
    l->r.life = ++l->g->n_lives;
    l->r.pages = rng_mix(l->r.name ^ rng_mix(generation)) | 1;
}

static void set_silent(health_poller *l, bool silent)
{
    l->r.silent = silent;
    registry_sort(l);
}

static void retry_later(health_poller *l)
{
    if (!l->wanted) return;
    start_timer(l, l->retry_ms);
    uint64_t most = l->r.process.pid && !l->r.node ? RETRY_MAX_MS : RETRY_AWAY_MS;
    l->retry_ms += l->retry_ms / 2 + 1;
    if (l->retry_ms > most) l->retry_ms = most;
}

/* ---- describe ---------------------------------------------------------------------------------- */

/* A digest goes into answers as it is. */
static bool is_digest(const char *s)
{
    size_t n = strlen(s);
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)s[i])) return false;
    return n <= DIGEST_MAX;
}

static bool are_lines(char *const *texts, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!utf8_is_line(texts[i], TEXT_MAX)) return false;
    return true;
}

/* It may be said by an unchecked program on a member's machine, and the router believes its width. */
static bool makes_sense(const Shoal__V1__ModelInfo *m)
{
    char *const texts[] = {m->name,         m->task, m->architecture, m->version,
                           m->quantisation, m->isa,  m->tool_syntax};
    bool ok = is_digest(m->digest) && bit_identity_is_valid(m->identity, m->digest) &&
              m->n_parallel <= WIDTH_MAX && are_lines(texts, sizeof texts / sizeof *texts) &&
              are_lines(m->labels, m->n_labels) && are_lines(m->adapters, m->n_adapters);
    for (size_t i = 0; ok && i < m->n_adapter_digests; i++) ok = is_digest(m->adapter_digests[i]);
    return ok;
}

/* Else what answers at the address is another model by now. */
static bool is_meant(const health_poller *l, const Shoal__V1__ModelInfo *m)
{
    if (!l->g->names_required || strcmp(l->r.source, "agent") == 0 || strcmp(m->name, l->r.model) == 0)
        return true;
    LOG(LOG_WARN, "registry", "serves_another", LOG_S("replica", l->r.id), LOG_S("model", m->name));
    return false;
}

/* A worker older than identities runs our own engine on the file as it is, and resumes exactly. From here on
 * every described replica has an identity. */
static bool settle_identity(Shoal__V1__ModelInfo *m)
{
    char line[BIT_IDENTITY_BYTES];
    if (*m->identity || !*m->digest) return true;
    bit_identity_of_digest(line, m->digest);
    char *identity = strdup(line);
    if (!identity) return false;
    m->identity = identity; /* was the empty default, which is nobody's memory */
    m->exact_resume = true;
    return true;
}

static void described(void *user, const uint8_t *msg, size_t n)
{
    health_poller *l = user;
    Shoal__V1__ModelInfo *info = shoal__v1__model_info__unpack(NULL, n, msg);
    bool sense = info && makes_sense(info);
    if (info && !sense) LOG(LOG_WARN, "registry", "describes_nonsense", LOG_S("replica", l->r.id));
    if (info && (!sense || !is_meant(l, info) || !settle_identity(info))) {
        shoal__v1__model_info__free_unpacked(info, NULL);
        info = NULL;
    }
    if (l->r.info) shoal__v1__model_info__free_unpacked(l->r.info, NULL);
    l->r.info = info; /* NULL, for want of memory, is asked for again; the old one may not be true any more */
}

static void describe_ended(void *user, grpc_status status, const char *message)
{
    health_poller *l = user;
    l->describing = NULL;
    if (status == GRPC_OK && l->r.info && l->wanted) {
        l->retry_ms = RETRY_MIN_MS;
        if (l->r.state == REPLICA_DRAINING) return;
        l->has_read = false;
        start_timer(l, 0);
        set_state(l, REPLICA_READY, NULL);
        return;
    }
    LOG(LOG_DEBUG, "registry", "describe_failed", LOG_S("replica", l->r.id),
        LOG_S("status", grpc_status_name(status)), LOG_S("message", message));
    retry_later(l);
}

static void health_poller_describe(health_poller *l)
{
    if (l->describing) return;
    grpc_client_events ev = {.user = l, .message = described, .end = describe_ended};
    uint64_t deadline = registry_now(l->g) + DESCRIBE_TIMEOUT_MS * 1000000ull;
    l->describing = l->g->how.start(l->r.channel, "/shoal.v1.Worker/Describe", "", 0, NULL, 0, deadline, &ev);
    if (!l->describing) retry_later(l);
}

/* ---- the connection ---------------------------------------------------------------------------- */

static void connected(void *user)
{
    health_poller *l = user;
    if (l->wanted) health_poller_describe(l);
}

static void disconnected(void *user, const char *why)
{
    health_poller *l = user;
    if (l->r.state == REPLICA_READY) {
        l->retry_ms = RETRY_MIN_MS;
        if (l->uncounted) set_generation(l, l->r.generation + 1);
        set_state(l, REPLICA_DOWN, why);
    }
    retry_later(l);
}

static void open_channel(health_poller *l)
{
    grpc_channel_events ev = {.user = l, .connected = connected, .disconnected = disconnected};
    shoal_err err;
    int rc = l->g->how.open(l->g->how.user, &l->r.channel, l->r.address, &ev, &err);
    if (rc == SHOAL_EINVALID) {
        l->wanted = false;
        set_state(l, REPLICA_FAILED, err.message);
    } else if (rc != 0) {
        retry_later(l);
    }
}

static void retry_now(health_poller *l)
{
    if (!l->r.channel)
        open_channel(l);
    else if (l->g->how.is_connected(l->r.channel))
        health_poller_describe(l);
    else if (l->g->how.connect(l->r.channel) != 0)
        retry_later(l); /* no memory now, and no event will come */
}

/* ---- stats ------------------------------------------------------------------------------------- */

/* Where no agent watches its process nobody ends it, and it is asked again. */
static void health_poller_give_up(health_poller *l, const char *why)
{
    if (l->polling) l->g->how.cancel(l->polling);
    l->polling = NULL;
    start_timer(l, AGAIN_MS);
    set_state(l, REPLICA_DOWN, why);
}

/* What it says of its own waiting: the only view of a worker on another machine. */
static void note_starved(health_poller *l, const Shoal__V1__Stats *now)
{
    const Shoal__V1__Stats *before = l->r.stats;
    uint64_t at = registry_now(l->g), passed_ms = (at - l->heard_ns) / 1000000;
    bool same_life = before && now->run_delay_ms >= before->run_delay_ms;
    if (same_life && l->heard_ns && (now->run_delay_ms - before->run_delay_ms) * STARVED_SHARE > passed_ms)
        l->r.starved_until_ns = at + STARVED_MS * 1000000ull;
    l->heard_ns = at;
}

/* An answer can be late for many reasons and early for none: the shortest way counts, and a way that has
 * become longer is believed bit by bit. */
static void learn_rtt(health_poller *l)
{
    double ms = ms_since(l, l->polled_ns), known = l->r.rtt_ms;
    l->r.rtt_ms = known == 0 || ms < known ? ms : known + (ms - known) / 16;
}

static void polled(void *user, const uint8_t *msg, size_t n)
{
    health_poller *l = user;
    Shoal__V1__Stats *s = shoal__v1__stats__unpack(NULL, n, msg);
    if (!s) return;
    note_starved(l, s);
    if (l->r.stats) shoal__v1__stats__free_unpacked(l->r.stats, NULL);
    l->r.stats = s;
    learn_rtt(l);
    set_silent(l, false);
}

/* Until the next poll: of a few replicas all at the same time, else counted from the last. */
static uint64_t poll_in_ms(const health_poller *l)
{
    uint64_t every = l->rests ? REST_MS : POLL_MS;
    if (l->g->n <= TOGETHER_MAX) return every - registry_now(l->g) / 1000000 % every;
    double of_all = (double)(l->g->n > every ? l->g->n : every), past = ms_since(l, l->polled_ns);
    return past < of_all ? (uint64_t)(of_all - past) : 0;
}

static bool has_nothing_to_do(const health_poller *l)
{
    const Shoal__V1__Stats *s = l->r.stats;
    return !l->r.node && l->r.load.n_in_flight == 0 && s && s->n_running + s->n_waiting == 0;
}

void replica_gets_call(replica *r)
{
    health_poller *l = (health_poller *)r;
    if (!l->rests) return;
    l->rests = false;
    if (l->r.state == REPLICA_READY && !l->polling) start_timer(l, poll_in_ms(l));
}

static void poll_ended(void *user, grpc_status status, const char *message)
{
    health_poller *l = user;
    l->polling = NULL;
    l->rests = has_nothing_to_do(l);
    if (l->r.state == REPLICA_READY) start_timer(l, poll_in_ms(l));
}

static void poll(health_poller *l)
{
    grpc_client_events ev = {.user = l, .message = polled, .end = poll_ended};
    l->polled_ns = registry_now(l->g);
    l->asked_ns = registry_listening_ns(l->g);
    l->polling = l->g->how.start(l->r.channel, "/shoal.v1.Worker/GetStats", "", 0, NULL, 0, 0, &ev);
}

/* No answer can be chance, or one long turn of its loop: it gets no new calls until it answers. */
static void note_silence(health_poller *l)
{
    set_silent(l, true);
    LOG(LOG_INFO, "registry", "worker_silent", LOG_S("replica", l->r.id), LOG_I("pid", l->r.process.pid));
}

bool replica_is_at_work(const replica *r)
{
    const health_poller *l = (const health_poller *)r;
    if (r->process.is_at_work) return r->process.is_at_work(r->process.worker);
    return registry_now(l->g) < r->starved_until_ns;
}

/* It owes an answer. */
static void health_poller_look(health_poller *l)
{
    double past = owed_ms(l);
    bool alone = l->r.node || !l->r.process.is_at_work;
    start_timer(l, l->r.silent || past >= MISSED_MS ? LOOK_MS : (uint64_t)(MISSED_MS - past) + 1);
    if (!l->r.silent && past >= MISSED_MS) note_silence(l);
    if (past >= SILENT_MS && !l->r.process.is_at_work)
        health_poller_give_up(l, "the worker does not answer");
    else if (alone && past >= ABANDON_MS && !replica_is_at_work(&l->r))
        registry_tell(l->g, &(registry_event){.what = REGISTRY_SILENT, .replica = &l->r});
}

/* Looking takes two turns: what there is to be read is read in between. An answer that waits for us, because
 * our own loop was late, is no silence of the worker. */
static void due(void *arg)
{
    health_poller *l = arg;
    if (l->r.state != REPLICA_READY) {
        retry_now(l);
    } else if (!l->polling) {
        set_silent(l, false);
        poll(l);
        start_timer(l, l->polling ? MISSED_MS : POLL_MS);
    } else if (!l->has_read) {
        l->has_read = true;
        start_timer(l, 0);
    } else {
        l->has_read = false;
        health_poller_look(l);
    }
}

/* ---- life -------------------------------------------------------------------------------------- */

static bool copy_strings(health_poller *l, const member *m)
{
    size_t id = strlen(m->id) + 1, model = strlen(m->model) + 1, address = strlen(m->address) + 1;
    l->strings = malloc(id + model + address);
    if (!l->strings) return false;
    l->r.id = memcpy(l->strings, m->id, id);
    l->r.model = memcpy(l->strings + id, m->model, model);
    l->r.address = memcpy(l->strings + id + model, m->address, address);
    return true;
}

health_poller *health_poller_new(registry *g, const member *m)
{
    health_poller *l = calloc(1, sizeof *l);
    if (!l) return NULL;
    l->g = g;
    l->n_refs = 1;
    l->uncounted = m->generation == 0;
    l->r.name = strmap_hash(m->id) | 1;
    set_generation(l, m->generation ? m->generation : 1);
    l->timer = g->e.timer_new(g->e.user, due, l);
    if (l->timer && copy_strings(l, m)) return l;
    health_poller_free(l);
    return NULL;
}

void health_poller_free(health_poller *l)
{
    if (!l) return;
    registry *g = l->g;
    if (l->describing) g->how.cancel(l->describing);
    if (l->polling) g->how.cancel(l->polling);
    if (l->r.channel) g->how.close(l->r.channel);
    if (l->r.info) shoal__v1__model_info__free_unpacked(l->r.info, NULL);
    if (l->r.stats) shoal__v1__stats__free_unpacked(l->r.stats, NULL);
    g->e.timer_free(l->timer);
    free(l->strings);
    free(l);
}

static bool is_there(replica_state s)
{
    return s == REPLICA_STARTING || s == REPLICA_READY || s == REPLICA_DRAINING;
}

/* A process is there that was not, or not so: look for it. */
static void begin_life(health_poller *l, const member *m)
{
    set_silent(l, false);
    set_state(l, m->state == REPLICA_DRAINING ? REPLICA_DRAINING : REPLICA_STARTING, m->reason);
    if (m->state == REPLICA_DRAINING) return;
    l->retry_ms = RETRY_MIN_MS;
    retry_now(l);
}

/* One that stood by is asked from now on, or the other way round. */
static void set_standby(health_poller *l, bool standby)
{
    if (l->r.standby == standby) return;
    l->r.standby = standby;
    registry_sort(l);
    registry_tell(l->g, &(registry_event){.what = REGISTRY_CHANGE, .replica = &l->r});
}

void health_poller_hear(health_poller *l, const member *m)
{
    bool drains = m->state == REPLICA_DRAINING, was_there = l->wanted;
    bool same_life = m->generation <= l->r.generation;
    l->r.process = m->process;
    l->r.guest = m->guest;
    set_standby(l, m->standby);
    if (l->r.dropped) return; /* whoever was told of it dropped it */
    if (!same_life) set_generation(l, m->generation);
    l->wanted = is_there(m->state);
    if (l->wanted) {
        if (same_life && was_there && drains == (l->r.state == REPLICA_DRAINING)) return;
        begin_life(l, m);
        return;
    }
    l->g->e.timer_stop(l->timer);
    set_silent(l, false);
    set_state(l, m->state, m->reason);
}

void health_poller_leave(health_poller *l)
{
    registry *g = l->g;
    l->wanted = false;
    l->r.dropped = true;
    l->r.process = (process){0}; /* its agent may free the worker */
    g->e.timer_stop(l->timer);
    if (l->describing) g->how.cancel(l->describing);
    if (l->polling) g->how.cancel(l->polling);
    l->describing = l->polling = NULL;
}
