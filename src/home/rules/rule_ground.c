/* rule_ground.c: ground stages: what a request means for the devices of a home, or why nothing may happen. */
#include "rules/rules.h"

#include <stdlib.h>
#include <string.h>

/* When no device is meant, a classifier may know what kind of talk it is. It is asked at the end alone, so
 * that the rules work while the classifier does. */
static const char *final_text(const stage_run *s)
{
    const char *text = s->fact->text;
    const grounding *g = s->own;
    if (!g || g->verdict != GROUND_NOTHING || !s->stage->intent) return text;
    const stage_fact *intent = process_stage(s, s->stage->intent)->fact;
    const char *say =
        intent->state == STAGE_DONE ? lexicon_talk_of(rules_lexicon(s->stage), intent->label) : NULL;
    return say ? ground_say(g, say, s->memory) : text;
}

/* The request was asked about, and this is what the person answered. */
static int take_answer(const stage_run *s, grounding *g)
{
    const process_input *in = s->run->in;
    bool mine = in->asked_by && strcmp(in->asked_by, s->stage->name) == 0;
    return mine ? follow_apply(g, rules_lexicon(s->stage), in->agrees, &in->asked_about) : 0;
}

/* Ids, a line each, as devices of the list; what is not there any more is left out. */
static device_set devices_named(const device *list, size_t n, const char *ids)
{
    device_set s = {{0}};
    while (ids && *ids) {
        size_t len = strcspn(ids, "\n");
        for (size_t i = 0; i < n && i < DEVICES_MAX; i++)
            if (strlen(list[i].id) == len && memcmp(list[i].id, ids, len) == 0) device_set_add(&s, i);
        ids += len + (ids[len] == '\n');
    }
    return s;
}

/* NULL: out of memory. */
static const char *ids_of(const device_set *s, const device *list, size_t n, arena *a)
{
    buf ids = {0};
    for (size_t i = 0; i < n && i < DEVICES_MAX; i++)
        if (device_set_has(s, i)) buf_printf(&ids, "%s\n", list[i].id);
    const char *kept = ids.failed ? NULL : arena_strdup(a, buf_text(&ids));
    buf_done(&ids);
    return kept;
}

/* The pipeline's own devices are known; those of a request are looked at now. */
static int ground_read(grounding *ret, const config_stage *s, const device *list, size_t n, const char *text,
                       const device_set *it, arena *a)
{
    const ground_own *own = s->own;
    if (list == own->home.at && n == own->home.n) return ground_home(ret, &own->home, text, it, a, NULL);
    return ground_after(ret, own->lex, list, n, text, it, a, NULL);
}

static int start_ground(stage_run *s, const call_context *ctx)
{
    (void)ctx; /* no call is made */
    pipeline_facts f = process_facts(s);
    grounding *g = arena_alloc(s->memory, sizeof *g);
    const char *input = rules_input(s);
    device_set it = devices_named(f.devices, f.n_devices, s->run->in->subject);
    if (!g || !input || ground_read(g, s->stage, f.devices, f.n_devices, input, &it, s->memory))
        return SHOAL_ENOMEM;
    if (take_answer(s, g)) return SHOAL_ENOMEM;
    s->own = g;
    if (g->verdict == GROUND_ACT) {
        s->calls = g->options[0].calls;
        s->n_calls = g->options[0].n_calls;
    }
    s->fact->label = ground_verdict_name(g->verdict);
    s->fact->text = g->text;
    return 0;
}

static stage_options options_of(const stage_run *s)
{
    const grounding *g = s->own;
    return (stage_options){&g->named, g->options, g->n_options};
}

static const char *ground_intent(const stage_run *s)
{
    const grounding *g = s->own;
    if (!g || g->verdict == GROUND_NOTHING) return NULL;
    return g->verdict == GROUND_ACT ? g->options[0].calls[0].name : ground_verdict_name(g->verdict);
}

static int ground_read_answer(stage_answer *ret, const config_stage *s, const char *text, arena *a)
{
    follow_reply answer;
    if (follow_read(&answer, rules_lexicon(s), text, a)) return SHOAL_ENOMEM;
    *ret = rules_answer(answer);
    return 0;
}

static int ground_recall(bool *ret_asked, sha256_digest *ret_about, const config_stage *s,
                         const process_input *in, const process_turn *turn)
{
    grounding g;
    const device_option *o = NULL;
    device_set it = devices_named(in->devices, in->n_devices, turn->subject);
    int rc = ground_read(&g, s, in->devices, in->n_devices, turn->request, &it, in->memory);
    if (!rc) rc = follow_asked(&o, &g, rules_lexicon(s), turn->reply, in->memory);
    *ret_asked = !rc && o;
    return *ret_asked ? follow_digest(ret_about, o) : rc;
}

static int ground_follow(stage_following *ret, const config_stage *s, const process_input *in,
                         const process_turn *turn)
{
    follow_turn t = {.request = turn->request, .reply = turn->reply, .answer = in->text};
    follow_meaning m;
    t.before = devices_named(in->devices, in->n_devices, turn->subject);
    if (follow_read_turn(&m, rules_lexicon(s), in->devices, in->n_devices, &t, in->memory))
        return SHOAL_ENOMEM;
    ret->text = m.text;
    if (!device_set_count(&m.it)) return 0;
    ret->subject = ids_of(&m.it, in->devices, in->n_devices, in->memory);
    return ret->subject ? 0 : SHOAL_ENOMEM;
}

const stage_runner rule_ground_runner = {.start = start_ground,
                                         .text = final_text,
                                         .options = options_of,
                                         .intent = ground_intent,
                                         .read_answer = ground_read_answer,
                                         .recall = ground_recall,
                                         .follow = ground_follow};

/* ---- its keys ----------------------------------------------------------------------------------- */

/* The intent is looked at in the end, nothing waits for it. */
static int ground_check_ground(stage_site *s, const config_stage *st, shoal_err *err)
{
    return stage_site_knows(s, "intent", st->intent, "classify", err);
}

static void close_ground(config_stage *s)
{
    ground_own *own = s->own;
    devices_done(&own->home);
    arena_free(own->memory);
    lexicon_free(own->lex);
    free(own);
}

static int open_ground(config_pipeline *p, unsigned i, const char *where, shoal_err *err)
{
    config_stage *s = &p->stages[i];
    shoal_err why;
    if (!s->lexicon_path) return 0;
    ground_own *own = s->own = calloc(1, sizeof *own);
    if (!own || !(own->memory = arena_new(0))) return err_nomem(err);
    int rc = lexicon_load(&own->lex, s->lexicon_path, &why);
    if (!rc)
        return devices_init(&own->home, own->lex, p->devices, p->n_devices, own->memory) ? err_nomem(err) : 0;
    if (rc == SHOAL_ENOMEM) return err_nomem(err);
    return err_set(err, SHOAL_EINVALID, "%sstages[%u].lexicon: %s", where, i, why.message);
}

#define NAME_OF(e, n, about) n,
static const char *const LABELS[] = {GROUND_VERDICTS(NAME_OF)};
#undef NAME_OF

const stage_kind rule_ground_kind = {
    .name = "ground",
    .gives =
        GIVES_LABEL | GIVES_TEXT | READS_INPUT | GIVES_OPTIONS | SPEAKS | MAY_CALL | MAY_BE_SILENT | REPEATS,
    .fields = "lexicon! intent",
    .labels = LABELS,
    .n_labels = sizeof LABELS / sizeof *LABELS,
    .check = ground_check_ground,
    .open = open_ground,
    .close = close_ground,
};
