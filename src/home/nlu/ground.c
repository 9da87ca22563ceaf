/* ground.c: from a request to calls; see ground.h.
 *
 * Sentence by sentence: units, questions, then clauses at "and", "then" and commas. A clause with a cue is a
 * task; one without adds devices or values to its neighbour. At the end a single judgement is made of all:
 * anything forbidden, put off or unexplained holds back what it may have covered. */
#include "nlu/ground.h"

#include <stdio.h>
#include <string.h>

#include "nlu/grounder.h"

static const char *const VERDICT_NAMES[] = {
#define VERDICT_NAME(e, n, about) [e] = n,
    GROUND_VERDICTS(VERDICT_NAME)
#undef VERDICT_NAME
};

const char *ground_verdict_name(ground_verdict v)
{
    return (size_t)v < sizeof VERDICT_NAMES / sizeof *VERDICT_NAMES ? VERDICT_NAMES[v] : "unknown";
}

/* ---- sentences ------------------------------------------------------------------------------------ */

/* The whole sentence is one of the phrases, fillers and signs apart. */
static bool ground_is_whole(const grounder *g, const units *u, size_t at, const phrase_list *l)
{
    for (; at < u->n;) {
        unit_set got = phrase_list_at(l, u->at, at, u->n, 0);
        if (got) {
            size_t end = at;
            for (size_t i = at; i < u->n; i++)
                if (got >> i & 1) end = i + 1;
            bool ignored;
            for (at = end; at < u->n && u->at[at].kind == UNIT_SIGN; at++)
                ;
            return clause_start(u, at, u->n, g->lex, &ignored) == u->n;
        }
        if (u->at[at].kind != UNIT_SIGN) return false;
        at++;
    }
    return false;
}

static bool is_talk(grounder *g, const units *u, size_t at)
{
    for (size_t i = 0; i < g->lex->n_talk; i++) {
        if (!ground_is_whole(g, u, at, &g->lex->talk[i].cues)) continue;
        g->talk = &g->lex->talk[i];
        return true;
    }
    return false;
}

static bool begins_with_name(const grounder *g, const units *u, size_t at)
{
    const unit *x = &u->at[at];
    if (x->kind == UNIT_DEVICE) return true;
    return x->kind == UNIT_WORD &&
           (phrase_list_has_word(&g->lex->determiners, x->s) || devices_know(&g->d, x->s)) &&
           !phrase_list_has_word(&g->lex->prepositions, x->s);
}

/* "kitchen light on?" asks; "can you turn it on?" does not. */
static bool asks_by_mark(grounder *g, const units *u, size_t at, bool lead)
{
    if (lead || u->n == 0 || u->at[u->n - 1].kind != UNIT_SIGN || strcmp(u->at[u->n - 1].s, "?") != 0)
        return false;
    clause_rest r;
    unit_set used = 0;
    if (phrase_list_in(&g->lex->leads, u->at, at, u->n, 0)) return false; /* "..., would you?" */
    for (size_t i = at; i < u->n; i++) {
        if (u->at[i].kind == UNIT_WORD && u->at[i].state) used |= (unit_set)1 << i;
    }
    clause_rest_read(&r, u, at, u->n, used, &g->d);
    if (begins_with_name(g, u, at) && (r.n_strange || r.n_values || r.forbidden)) {
        piece_note_strange(g, u, &r);
        return g->question = true;
    }
    if (!used || r.n_strange || r.n_values || !entity_mention_says_target(&r.what)) return false;
    bool group;
    device_set s = devices_find(&g->d, &r.what, UINT64_MAX, &group);
    if (!device_set_count(&s)) return false;
    grounder_name_all(g, &s);
    ask_answer_states(g, u, &s, ask_asked_state(u, used));
    return true;
}

static bool says_reported(const grounder *g, const units *u)
{
    return phrase_list_in(&g->lex->report, u->at, 0, u->n, 0) != 0;
}

static void ground_read_sentence(grounder *g, size_t from, size_t to)
{
    units *u = arena_alloc(g->a, sizeof *u);
    if (!u) {
        g->nomem = true;
        return;
    }
    units_make(u, &g->w, from, to, &g->d);
    if (u->cut) {
        g->unclear = true;
        return;
    }
    bool lead = false;
    if (is_talk(g, u, 0)) return;
    if (phrase_list_in(&g->lex->remarks, u->at, 0, u->n, 0)) g->remark = true;
    size_t at = clause_start(u, 0, u->n, g->lex, &lead);
    if (at == u->n || is_talk(g, u, at)) return;
    if (ask_is_question(g, u, at) || asks_by_mark(g, u, at, lead)) return;
    size_t named = device_set_count(&g->named);
    bool unclear = g->unclear;
    piece_read_all(g, u, 0, u->n);
    /* A sentence of its own that has to do with no device holds nothing else back. */
    bool alone = !unclear && g->unclear && device_set_count(&g->named) == named && !says_reported(g, u);
    if (alone) {
        g->unclear = false;
        g->chatter = true;
    }
}

static bool ground_ends_sentence(const words *w, size_t i)
{
    const word *x = &w->at[i];
    if (!x->sign) return false;
    if (strcmp(x->s, "!") == 0 || strcmp(x->s, ";") == 0 || strcmp(x->s, "?") == 0) return true;
    if (strcmp(x->s, ".") != 0) return false;
    /* "8 a.m." and "light.kitchen" are no ends */
    bool inside = x->glued && i + 1 < w->n && w->at[i + 1].glued && !w->at[i + 1].sign;
    if (inside) return false;
    bool letter = i > 0 && w->at[i - 1].end - w->at[i - 1].begin == 1 && !w->at[i - 1].number;
    return !letter;
}

static bool is_punctuation(const word *x)
{
    return x->end - x->begin == 1 && strchr(".,;:!?-()\"", x->s[0]);
}

/* Words but no end: "!!!" begins no sentence. */
static void ground_read_sentences(grounder *g)
{
    size_t from = 0;
    for (size_t i = 0; i < g->w.n && !g->nomem; i++) {
        bool end = ground_ends_sentence(&g->w, i);
        if (!end && i + 1 < g->w.n) continue;
        size_t to = end && strcmp(g->w.at[i].s, "?") != 0 ? i : i + 1;
        if (to > from && !(to - from == 1 && g->w.at[from].sign))
            ground_read_sentence(g, from, to);
        else if (to > from && !is_punctuation(&g->w.at[from]))
            g->chatter = true;
        from = i + 1;
    }
}

/* ---- the judgement ---------------------------------------------------------------------------------- */

/* Of the first device of these kinds that has one, "" without. */
static const char *example_of(grounder *g, uint64_t kinds)
{
    for (size_t i = 0; i < g->d.n; i++) {
        const kind_def *kind = devices_kind(&g->d, i);
        if (!(g->d.index.devices[i].kinds & kinds) || !kind->example) continue;
        reply_field f[] = {{"name", g->d.at[i].name}};
        return grounder_fill(g, kind->example, f, 1);
    }
    return "";
}

static const char *example(grounder *g)
{
    return example_of(g, UINT64_MAX);
}

static const char *fallback(grounder *g)
{
    device_set all = {{0}};
    for (size_t i = 0; i < g->d.n; i++) device_set_add(&all, i);
    reply_field f[] = {{"example", example(g)}, {"names", grounder_names(g, &all, false)}};
    return grounder_fill(g, g->d.n ? g->lex->reply.fallback : g->lex->reply.no_devices, f, 2);
}

static const char *about_named(grounder *g, const char *one, const char *none)
{
    size_t n = device_set_count(&g->named), first = device_set_first(&g->named);
    bool alike = true; /* what they can do is told of one for all */
    for (size_t i = 0; i < g->d.n; i++)
        alike =
            alike && (!device_set_has(&g->named, i) || devices_kind(&g->d, i) == devices_kind(&g->d, first));
    if (n == 0 || n > 4 || (strstr(one, "{can}") && (!alike || !*attempt_abilities(g, first)))) {
        reply_field f[] = {{"example", example(g)}, {"what", g->strange ? g->strange : ""}};
        return grounder_fill(g, none, f, 2);
    }
    reply_field f[] = {{"names", grounder_names(g, &g->named, false)},
                       {"can", attempt_abilities(g, first)},
                       {"what", g->strange ? g->strange : ""},
                       {"example", example(g)},
                       {"it_is", grounder_it_is(g, &g->named)}};
    return grounder_fill(g, one, f, 5);
}

/* A yes carries an offer out, so none is made where what was said speaks against it. */
static bool may_propose(const grounder *g)
{
    bool held = g->question || g->remark || g->limited || g->forbidden || g->later;
    return device_set_count(&g->named) == 1 && !g->n_tasks && !g->n_problems && !held;
}

static void judge_unclear(grounder *g, grounding *out)
{
    bool named = device_set_count(&g->named) > 0;
    out->verdict = named || g->n_tasks || g->n_problems ? GROUND_UNCLEAR : GROUND_NOTHING;
    out->text = out->verdict == GROUND_NOTHING ? fallback(g)
                : named ? about_named(g, g->strange ? g->lex->reply.remark_word : g->lex->reply.remark,
                                      g->lex->reply.not_understood)
                        : about_named(g, g->lex->reply.not_understood, g->lex->reply.not_understood);
    if (!may_propose(g)) return;
    option_give_guesses(g, out);
    if (out->n_options) out->verdict = GROUND_PROPOSE;
}

static const char *with_problems(grounder *g, const char *said)
{
    buf b = {0};
    if (said) buf_puts(&b, said);
    for (size_t i = 0; i < g->n_problems; i++) ask_say_more(g, &b, g->problems[i].text);
    if (device_set_count(&g->left_out)) {
        reply_field f[] = {{"names", grounder_names(g, &g->left_out, false)},
                           {"it_is", grounder_it_is(g, &g->left_out)}};
        ask_say_more(g, &b, grounder_fill(g, g->lex->reply.left_out, f, 2));
    }
    const char *s = ask_keep(g, &b);
    if (!s) g->nomem = true;
    return s ? s : "";
}

static void judge_tasks(grounder *g, grounding *out)
{
    bool open = g->n_tasks == 1 && g->tasks[0]->n_ways > 1 && !g->n_problems;
    bool unsure = false;
    for (size_t i = 0; i < g->n_tasks; i++) unsure = unsure || g->tasks[i]->n_ways > 1;
    if (unsure && !open) {
        out->verdict = GROUND_UNCLEAR;
        out->text = about_named(g, g->lex->reply.remark, g->lex->reply.not_understood);
        return;
    }
    out->verdict = open ? GROUND_CHOOSE : GROUND_ACT;
    if (open)
        option_give_ways(g, out);
    else
        option_give_tasks(g, out);
    if (g->nomem) return;
    out->text = open ? about_named(g, g->lex->reply.remark, g->lex->reply.not_understood)
                     : with_problems(g, out->options[0].say);
}

static bool share_device(const device_set *a, const device_set *b)
{
    for (size_t k = 0; k < DEVICES_MAX / 64; k++)
        if (a->bits[k] & b->bits[k]) return true;
    return false;
}

static bool undoes(const action_def *a, const action_def *b)
{
    return a->undoes && b->service && strcmp(a->undoes, b->service) == 0;
}

/* "lock and unlock the door": it is not clear what is wanted. */
static bool undo_each_other(const grounder *g)
{
    for (size_t i = 0; i < g->n_tasks; i++)
        for (size_t k = 0; k < i; k++) {
            const attempt *a = &g->tasks[i]->ways[0], *b = &g->tasks[k]->ways[0];
            if ((undoes(a->action, b->action) || undoes(b->action, a->action)) &&
                share_device(&a->targets, &b->targets))
                return true;
        }
    return false;
}

/* Does any task act on what was forbidden elsewhere in the request? */
static bool contradicts(const grounder *g)
{
    for (size_t i = 0; i < g->n_tasks; i++)
        if (share_device(&g->tasks[i]->ways[0].targets, &g->forbidden_targets)) return true;
    return false;
}

/* "all the lights off but keep the hall lit": what is kept leaves the group. */
static void spare_forbidden(grounder *g)
{
    for (size_t i = 0; i < g->n_tasks; i++) {
        attempt *t = &g->tasks[i]->ways[0];
        device_set left = t->targets;
        device_set_drop_all(&left, &g->forbidden_targets);
        if (device_set_count(&t->targets) > 1 && device_set_count(&left)) t->targets = left;
    }
}

static void give_request(const problem *p, grounding *out)
{
    out->request = p->request;
    out->about = p->about;
    out->odd_value = p->odd_value;
}

/* "72" of a thermostat whose unit nobody knows cannot be degrees Celsius: is it meant in another unit? */
static void propose_other(grounder *g, grounding *out)
{
    bool held = g->n_problems > 1 || g->remark || device_set_count(&g->named) != 1;
    if (held) return;
    option_give_other(g, out);
    if (g->nomem) return;
    reply_field f[] = {{"say", out->options[0].say}};
    out->text = grounder_fill(g, g->lex->reply.propose, f, 1);
    out->verdict = GROUND_PROPOSE;
}

static void ground_judge(grounder *g, grounding *out)
{
    const lexicon *l = g->lex;
    if (g->d.n == 0 && !(g->talk && !strstr(g->talk->say, "{example}"))) { /* nothing can be done or shown */
        out->verdict = GROUND_NOTHING;
        out->question = g->question;
        out->text = l->reply.no_devices;
        return;
    }
    if (g->forbidden) spare_forbidden(g);
    if (undo_each_other(g)) g->unclear = true;
    bool doubt = g->chatter || g->n_problems || g->mended;
    for (size_t i = 0; i < g->n_tasks; i++)
        if (doubt && attempt_is_careful(g, &g->tasks[i]->ways[0])) g->unclear = true;
    out->question = g->question;
    if (g->withdrawn) {
        out->verdict = GROUND_LEAVE;
        out->text = l->reply.leave_all;
    } else if (g->later) {
        out->verdict = GROUND_LATER;
        out->text = about_named(g, l->reply.later, l->reply.later_all);
    } else if (g->forbidden && (!g->n_tasks || g->unclear || g->forbidden_unsure || contradicts(g))) {
        out->verdict = GROUND_LEAVE;
        out->text = about_named(g, l->reply.leave, l->reply.leave_all);
    } else if (g->question) {
        out->verdict = device_set_count(&g->named) ? GROUND_UNCLEAR : GROUND_NOTHING;
        out->text = out->verdict == GROUND_NOTHING ? fallback(g)
                                                   : about_named(g, l->reply.question, l->reply.question);
    } else if (g->unclear || (g->chatter && !g->n_tasks && !g->n_problems && !g->talk && !g->answer)) {
        judge_unclear(g, out);
    } else if (g->n_tasks) {
        judge_tasks(g, out);
    } else if (g->n_problems) {
        out->verdict = g->problems[0].verdict;
        out->text = with_problems(g, g->answer);
        if (g->n_problems == 1) give_request(&g->problems[0], out);
        if (g->other) propose_other(g, out);
    } else if (g->answer) {
        out->verdict = GROUND_ANSWER;
        out->text = g->answer;
    } else if (g->talk) {
        out->verdict = GROUND_TALK;
        const char *own = example_of(g, g->talk->kinds);
        reply_field f[] = {{"example", *own ? own : example(g)}};
        out->text = grounder_fill(g, g->talk->say, f, 1);
    } else {
        out->verdict = GROUND_NOTHING;
        out->text = fallback(g);
    }
}

/* Words and devices are there: read them. False: out of memory. */
static bool understand(grounder *g, grounding *out)
{
    *out = (grounding){.verdict = GROUND_UNCLEAR, .text = g->lex->reply.too_long};
    if (g->w.n <= GROUND_WORDS_MAX) {
        g->mended = units_mend(&g->w, &g->d);
        ground_read_sentences(g);
        ground_judge(g, out);
    }
    if (g->nomem || !out->text) return false;
    out->named = g->named;
    for (size_t i = 0; out->verdict == GROUND_ACT && i < g->n_tasks; i++)
        device_set_join(&out->done, &g->tasks[i]->ways[0].targets);
    out->example = example(g);
    if (!*out->text) out->text = g->lex->reply.not_understood;
    return true;
}

int ground(grounding *ret, const lexicon *lex, const device *list, size_t n, const char *text, arena *a,
           shoal_err *err)
{
    return ground_after(ret, lex, list, n, text, NULL, a, err);
}

int ground_home(grounding *ret, const devices *home, const char *text, const device_set *before, arena *a,
                shoal_err *err)
{
    grounder *g = arena_alloc(a, sizeof *g);
    word_memo memo;
    grounding out;
    if (!g) return err_nomem(err);
    g->lex = home->lex;
    g->d = *home;
    memset(memo.word, 0, sizeof memo.word);
    g->d.memo = &memo;
    g->a = a;
    if (before) g->last = *before;
    g->earlier = before && device_set_count(before);
    if (words_split(&g->w, a, text, strlen(text)) || !understand(g, &out)) return err_nomem(err);
    *ret = out;
    return 0;
}

int ground_after(grounding *ret, const lexicon *lex, const device *list, size_t n, const char *text,
                 const device_set *before, arena *a, shoal_err *err)
{
    devices d;
    int rc = devices_init(&d, lex, list, n, a) ? err_nomem(err) : ground_home(ret, &d, text, before, a, err);
    devices_done(&d);
    return rc;
}

const char *ground_say(const grounding *g, const char *say, arena *a)
{
    reply_field f[] = {{"example", g->example}};
    return reply_fill(a, say, f, 1);
}
