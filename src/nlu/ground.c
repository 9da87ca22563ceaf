/* ground.c: from a request to calls; see ground.h.
 *
 * Sentence by sentence: units, questions, then chunks at "and", "then" and commas. A chunk with a cue is a
 * task; one without adds devices or values to its neighbour. At the end a single judgement is made of all:
 * anything forbidden, put off or unexplained holds back what it may have covered. */
#include "nlu/ground.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "nlu/chunk.h"
#include "nlu/reply.h"

#define CHUNKS_MAX   16
#define TASKS_MAX    32
#define PROBLEMS_MAX 8

enum { DURATION_MAX_S = 100 * 86400 };

static const char *const VERDICT_NAMES[] = {
#define VERDICT_NAME(e, n, about) [e] = n,
    GROUND_VERDICTS(VERDICT_NAME)
#undef VERDICT_NAME
};

const char *ground_verdict_name(ground_verdict v)
{
    return (size_t)v < sizeof VERDICT_NAMES / sizeof *VERDICT_NAMES ? VERDICT_NAMES[v] : "unknown";
}

/* How an attempt to carry out a cue ends; of several failures the first in this order is told. */
typedef enum outcome {
    DO_IT,
    ASK_WHICH,
    OUT_OF_RANGE,
    ASK_VALUE,
    CANNOT,
    FOR_A_TIME,
    NO_TARGET,
    NOT_HERE,
    NOT_CLEAR,
} outcome;

typedef struct attempt {
    outcome how;
    const action_def *action;
    const chunk_rest *rest;
    device_set targets;
    const chunk_value *given[4]; /* for action->takes */
    const char *text;            /* a TEXT value */
    const value_def *odd;        /* OUT_OF_RANGE, ASK_VALUE */
} attempt;

typedef struct task {
    const units *u;
    size_t n_ways;
    attempt ways[4]; /* more than one: a cue that means several services of the device */
} task;

typedef struct problem {
    ground_verdict verdict;
    const char *text;
} problem;

typedef struct grounder {
    const lexicon *lex;
    devices d;
    words w;
    arena *a;
    task tasks[TASKS_MAX];
    size_t n_tasks;
    problem problems[PROBLEMS_MAX];
    size_t n_problems;
    device_set named, forbidden_targets, last;
    bool forbidden, later, withdrawn, unclear, question;
    bool chatter;                   /* something was said that is no request and names nothing */
    bool forbidden_unsure;          /* something was forbidden, and it is not clear what */
    size_t task_mark, problem_mark; /* before the last piece: what a correction takes back */
    const char *answer, *talk, *strange;
    bool nomem;
} grounder;

static size_t set_len(unit_set s)
{
    return (size_t)__builtin_popcountll(s);
}

static bool run_at(const phrase_list *l, const units *u, size_t i, size_t to, size_t *ret_n)
{
    unit_set got = phrase_list_at(l, u->at, i, to, 0);
    *ret_n = set_len(got);
    return got && got == (((unit_set)1 << *ret_n) - 1) << i;
}

static void name_all(grounder *g, const device_set *s)
{
    for (size_t i = 0; i < DEVICES_MAX / 64; i++) g->named.bits[i] |= s->bits[i];
}

static const char *slice(grounder *g, size_t begin, size_t end)
{
    const char *s = arena_strndup(g->a, g->w.text + begin, end - begin);
    if (!s) g->nomem = true;
    return s ? s : "";
}

static const char *fill(grounder *g, const char *template, const reply_field *f, size_t n)
{
    const char *s = reply_fill(g->a, template, f, n);
    if (!s) g->nomem = true;
    return s ? s : "";
}

static const char *names(grounder *g, const device_set *s, bool any)
{
    const char *t = reply_names(g->a, &g->d, s, any ? g->lex->reply.or : g->lex->reply.and);
    if (!t) g->nomem = true;
    return t ? t : "";
}

static void add_problem(grounder *g, ground_verdict v, const char *text)
{
    for (size_t i = 0; i < g->n_problems; i++)
        if (strcmp(g->problems[i].text, text) == 0) return;
    if (g->n_problems < PROBLEMS_MAX) g->problems[g->n_problems++] = (problem){v, text};
}

/* ---- what can a device do ------------------------------------------------------------------------ */

static bool serves(const grounder *g, const action_def *x, size_t device)
{
    size_t kind = g->d.words[device].kind;
    return kind != SIZE_MAX && x->kinds >> kind & 1;
}

/* "turn on, turn off and toggle": what a device of the set can do, each verb once. */
static const char *abilities(grounder *g, size_t device)
{
    buf b = {0};
    const char *last = NULL;
    for (size_t i = 0; i < g->lex->n_actions; i++) {
        const action_def *x = &g->lex->actions[i];
        if (!x->service || !serves(g, x, device) || (b.data && strstr(b.data, x->verb)) ||
            (last && strcmp(last, x->verb) == 0))
            continue;
        if (last) buf_printf(&b, "%s%s", b.len ? ", " : "", last);
        last = x->verb;
    }
    if (last && b.len)
        buf_printf(&b, " %s %s", g->lex->reply.or, last);
    else if (last)
        buf_puts(&b, last);
    const char *s = b.len ? arena_strndup(g->a, b.data, b.len) : "";
    if (b.failed || !s) g->nomem = true;
    buf_done(&b);
    return s ? s : "";
}

static size_t first_of(const device_set *s)
{
    for (size_t i = 0; i < DEVICES_MAX; i++)
        if (device_set_has(s, i)) return i;
    return SIZE_MAX;
}

/* ---- one attempt --------------------------------------------------------------------------------- */

static bool says_target(const mention *m)
{
    return m->n || m->all || m->both || m->everything;
}

static void drop_all(device_set *s, const device_set *gone)
{
    for (size_t i = 0; i < DEVICES_MAX / 64; i++) s->bits[i] &= ~gone->bits[i];
}

static device_set all_of(const grounder *g, const action_def *x)
{
    device_set s = {{0}};
    for (size_t i = 0; i < g->d.n; i++)
        if (serves(g, x, i)) device_set_add(&s, i);
    return s;
}

/* Nothing was named: what was named before, or the only device that can be meant. */
static outcome unnamed_target(grounder *g, attempt *t, const chunk_rest *r)
{
    bool before = device_set_count(&g->last) > 0;
    if (before && (r->what.pronoun || r->n_values || r->only_state || !t->action->implied)) {
        t->targets = g->last;
        return DO_IT;
    }
    if (r->what.pronoun || r->only_state || !t->action->implied) return NO_TARGET;
    t->targets = all_of(g, t->action);
    size_t n = device_set_count(&t->targets);
    return n == 1 ? DO_IT : n ? ASK_WHICH : NOT_HERE;
}

static outcome named_target(grounder *g, attempt *t, const chunk_rest *r)
{
    bool group, unused;
    mention said = r->what, *m = &said;
    t->targets = devices_find(&g->d, m, t->action->kinds, &group);
    if (!device_set_count(&t->targets) && m->n > 1 &&
        phrase_list_has_word(&g->lex->pronouns, m->at[m->n - 1])) {
        m->n--; /* "the right one" */
        t->targets = devices_find(&g->d, m, t->action->kinds, &group);
    }
    if (r->n_whole == 1 && !group && !devices_has_stranger(&g->d, m) && device_set_count(&t->targets) != 1) {
        t->targets = (device_set){{0}};
        device_set_add(&t->targets, r->device);
    }
    for (size_t i = 0; i < r->n_except; i++) {
        device_set gone = devices_find(&g->d, &r->except[i], UINT64_MAX, &unused);
        if (device_set_count(&gone) == 0) return NOT_CLEAR;
        drop_all(&t->targets, &gone);
    }
    size_t n = device_set_count(&t->targets);
    name_all(g, &t->targets);
    if (n == 0) return NOT_HERE;
    if (!group && n > 1) return ASK_WHICH;
    if (m->both && n != 2) return ASK_WHICH;
    return m->count && m->count != n ? ASK_WHICH : DO_IT;
}

static outcome check_kinds(grounder *g, attempt *t)
{
    size_t n = device_set_count(&t->targets), fits = 0;
    device_set fit = {{0}};
    for (size_t i = 0; i < g->d.n; i++) {
        if (!device_set_has(&t->targets, i) || !serves(g, t->action, i)) continue;
        device_set_add(&fit, i);
        fits++;
    }
    if (fits == 0 || (n == 1 && fits != 1)) return CANNOT;
    t->targets = fit;
    return DO_IT;
}

static outcome check_number(const units *u, const value_def *def, const chunk_value *v)
{
    double x = u->at[v->at].value;
    if (!v->choice && def->kind == VALUE_DURATION) return x > 0 && x <= DURATION_MAX_S ? DO_IT : NOT_CLEAR;
    if (v->choice || def->kind != VALUE_NUMBER) return DO_IT;
    return x >= def->min && x <= def->max ? DO_IT : OUT_OF_RANGE;
}

static outcome assign_values(attempt *t, const units *u, const chunk_rest *r)
{
    bool used[CHUNK_VALUES_MAX] = {false};
    size_t n_used = 0;
    for (size_t k = 0; k < t->action->n_takes; k++) {
        const value_def *def = t->action->takes[k];
        if (def->kind == VALUE_TEXT) continue;
        const char *means;
        size_t i = 0;
        while (i < r->n_values && (used[i] || !chunk_value_fits(&r->values[i], u, def, &means))) i++;
        t->odd = def;
        if (i == r->n_values) return ASK_VALUE;
        used[i] = true;
        n_used++;
        t->given[k] = &r->values[i];
        outcome how = check_number(u, def, &r->values[i]);
        if (how) return how;
    }
    if (n_used == r->n_values) return DO_IT;
    for (size_t i = 0; i < r->n_values; i++)
        if (!used[i] && u->at[r->values[i].at].kind == UNIT_DURATION) return FOR_A_TIME;
    return CANNOT;
}

/* Of what was said, the words that name some device. */
static mention known_part(const grounder *g, const mention *m)
{
    mention known = *m;
    known.n = 0;
    for (size_t i = 0; i < m->n; i++)
        if (devices_know(&g->d, m->at[i]) || devices_is_kind_word(g->lex, m->at[i], NULL))
            known.at[known.n++] = m->at[i];
    return known;
}

/* An action that only says something does so whatever else was said: "remove milk from the list". */
static attempt explain(grounder *g, const action_def *x, const chunk_rest *r)
{
    attempt t = {.action = x, .rest = r, .how = NOT_CLEAR};
    mention known = known_part(g, &r->what);
    bool group;
    if (r->later || r->forbidden || r->withdrawn || !known.n) return t;
    t.targets = devices_find(&g->d, &known, x->kinds, &group);
    name_all(g, &t.targets);
    if (device_set_count(&t.targets) == 1) t.how = check_kinds(g, &t) == DO_IT ? DO_IT : NOT_CLEAR;
    return t;
}

static attempt try_action(grounder *g, const action_def *x, const units *u, const chunk_rest *r)
{
    attempt t = {.action = x, .rest = r};
    bool strange = r->n_strange > 0;
    if (!x->service && strange) return explain(g, x, r);
    t.how = says_target(&r->what) ? named_target(g, &t, r) : unnamed_target(g, &t, r);
    if (r->later || r->forbidden || r->withdrawn) t.how = r->later ? FOR_A_TIME : NOT_CLEAR;
    if (strange) t.how = t.how == NOT_HERE && says_target(&r->what) ? NOT_HERE : NOT_CLEAR;
    if (t.how == DO_IT) t.how = check_kinds(g, &t);
    if (t.how == DO_IT) t.how = assign_values(&t, u, r);
    return t;
}

/* ---- replies about attempts ----------------------------------------------------------------------- */

static const char *target_names(grounder *g, const attempt *t, bool any)
{
    return names(g, &t->targets, any);
}

static const char *what_was_said(grounder *g, const attempt *t)
{
    const mention *m = &t->rest->what;
    return m->n ? slice(g, m->begin, m->end) : t->action->verb ? t->action->verb : "";
}

static void tell_range(grounder *g, const attempt *t)
{
    char min[32], max[32];
    snprintf(min, sizeof min, "%g", t->odd->min);
    snprintf(max, sizeof max, "%g", t->odd->max);
    reply_field f[] = {
        {"what", t->odd->said}, {"min", min}, {"max", max}, {"name", target_names(g, t, false)}};
    add_problem(g, GROUND_CANNOT, fill(g, g->lex->reply.out_of_range, f, 4));
}

static void tell_cannot(grounder *g, const attempt *t)
{
    if (!t->action->verb) { /* an action that only explains does not fit: no verb to speak of */
        g->unclear = true;
        return;
    }
    size_t first = first_of(&t->targets);
    const char *can = first == SIZE_MAX ? "" : abilities(g, first);
    reply_field f[] = {{"verb", t->action->verb}, {"name", target_names(g, t, true)}, {"can", can}};
    add_problem(g, GROUND_CANNOT, fill(g, *can ? g->lex->reply.cannot : g->lex->reply.no_action, f, 3));
}

static void tell(grounder *g, const attempt *t)
{
    reply_field what[] = {{"what", what_was_said(g, t)}, {"names", target_names(g, t, true)}};
    reply_field value[] = {{"what", t->odd ? t->odd->said : ""}, {"name", what[1].value}};
    switch (t->how) {
    case ASK_WHICH: add_problem(g, GROUND_ASK, fill(g, g->lex->reply.which, what, 2)); break;
    case OUT_OF_RANGE: tell_range(g, t); break;
    case ASK_VALUE: add_problem(g, GROUND_ASK, fill(g, g->lex->reply.need_value, value, 2)); break;
    case CANNOT: tell_cannot(g, t); break;
    case FOR_A_TIME: g->later = true; break;
    case NO_TARGET: add_problem(g, GROUND_ASK, fill(g, g->lex->reply.what_is_it, what, 2)); break;
    case NOT_HERE: add_problem(g, GROUND_MISSING, fill(g, g->lex->reply.missing, what, 2)); break;
    case NOT_CLEAR: g->unclear = true; break;
    case DO_IT: break;
    }
    name_all(g, &t->targets);
}

/* ---- tasks --------------------------------------------------------------------------------------- */

static bool same_call(const attempt *a, const attempt *b)
{
    return a->action->service && b->action->service && strcmp(a->action->service, b->action->service) == 0 &&
           memcmp(&a->targets, &b->targets, sizeof a->targets) == 0;
}

static void add_way(task *t, const attempt *way)
{
    /* An action that only explains is no way to do it, and leaves none beside it. */
    if (t->n_ways && (!way->action->service || !t->ways[0].action->service)) return;
    for (size_t i = 0; i < t->n_ways; i++)
        if (same_call(&t->ways[i], way)) return;
    if (way->rest->what.everything && t->n_ways) { /* "everything off": what fits most of it */
        if (device_set_count(&way->targets) > device_set_count(&t->ways[0].targets)) t->ways[0] = *way;
        return;
    }
    if (t->n_ways < sizeof t->ways / sizeof *t->ways) t->ways[t->n_ways++] = *way;
}

static void add_task(grounder *g, const task *t)
{
    if (t->ways[0].action->service == NULL) { /* an action that only explains */
        reply_field f[] = {{"name", target_names(g, &t->ways[0], false)},
                           {"names", target_names(g, &t->ways[0], false)}};
        add_problem(g, GROUND_CANNOT, fill(g, t->ways[0].action->say, f, 2));
        name_all(g, &t->ways[0].targets);
        return;
    }
    if (g->n_tasks < TASKS_MAX)
        g->tasks[g->n_tasks++] = *t;
    else
        g->unclear = true;
    g->last = t->ways[0].targets;
    name_all(g, &g->last);
}

static bool equal_rank(const chunk_cue *a, const chunk_cue *b)
{
    return a->rest.n_strange == b->rest.n_strange && set_len(a->used) == set_len(b->used);
}

static chunk_rest *new_rest(grounder *g)
{
    static chunk_rest none;
    chunk_rest *r = arena_alloc(g->a, sizeof *r);
    if (!r) g->nomem = true;
    return r ? r : &none;
}

static bool has_kind_word(const grounder *g, const mention *m)
{
    for (size_t i = 0; i < m->n; i++)
        if (devices_is_kind_word(g->lex, m->at[i], NULL)) return true;
    return false;
}

/* "the kitchen and bedroom lights": what is missing in the first comes from the second. */
static void inherit_kind(const grounder *g, mention *m, const mention *from)
{
    if (!m->n || has_kind_word(g, m)) return;
    for (size_t i = 0; i < from->n && m->n < sizeof m->at / sizeof *m->at; i++)
        if (devices_is_kind_word(g->lex, from->at[i], NULL)) m->at[m->n++] = from->at[i];
    m->plural = m->plural || from->plural;
    m->all = m->all || from->all;
}

/* What the chunk's best cue that can be carried out means; *failed: why none can be. kind_from: the words for
 * a kind are borrowed from there, or NULL. */
static task ways_of(grounder *g, const chunk *c, const units *u, const chunk_rest *more,
                    const mention *kind_from, attempt *failed)
{
    task t = {.u = u};
    const chunk_cue *first = NULL;
    const chunk_cue *open_verb = NULL; /* "turn on": of many kinds, so it implies no device of one */
    *failed = (attempt){.how = NOT_CLEAR};
    for (size_t i = 0; i < c->n_cues && !(first && !equal_rank(first, &c->cues[i])); i++) {
        const chunk_cue *cue = &c->cues[i];
        const chunk_rest *rest = more ? more : &cue->rest;
        if (kind_from) {
            chunk_rest *borrowed = new_rest(g);
            if (g->nomem) return t;
            *borrowed = *rest;
            inherit_kind(g, &borrowed->what, kind_from);
            rest = borrowed;
        }
        attempt way = try_action(g, cue->action, u, rest);
        if (way.how == NO_TARGET && !first) open_verb = cue;
        if (way.how == DO_IT && open_verb && equal_rank(open_verb, cue)) way.how = NO_TARGET;
        if (way.how == DO_IT) {
            first = first ? first : cue;
            add_way(&t, &way);
        } else if (!failed->action || way.how < failed->how) {
            *failed = way;
        }
    }
    return t;
}

/* Do the ways differ in the device? Then it is the person's to say which. */
static bool ask_device(grounder *g, const task *t)
{
    device_set all = {{0}};
    bool same = true;
    for (size_t i = 0; i < t->n_ways; i++) {
        same = same && memcmp(&t->ways[i].targets, &t->ways[0].targets, sizeof all) == 0;
        for (size_t k = 0; k < DEVICES_MAX / 64; k++) all.bits[k] |= t->ways[i].targets.bits[k];
    }
    if (same) return false;
    reply_field f[] = {{"names", names(g, &all, true)}};
    add_problem(g, GROUND_ASK, fill(g, g->lex->reply.which, f, 1));
    name_all(g, &all);
    return true;
}

/* Carry out the best cue that can be, with `more` said of the device when it is not NULL (the words of a
 * neighbour without a cue). Where it is unclear which device is meant, the kind that was named before tells:
 * "the speakers in the music room and the ballroom". */
static void carry_out(grounder *g, const chunk *c, const units *u, const chunk_rest *more,
                      const mention *before)
{
    attempt failed, failed_again;
    task t = ways_of(g, c, u, more, NULL, &failed);
    const mention *own = more ? &more->what : c->n_cues ? &c->cues[0].rest.what : NULL;
    bool borrow = before && own && own->n && !has_kind_word(g, own) && has_kind_word(g, before);
    if (borrow && (t.n_ways > 1 || (!t.n_ways && failed.how == ASK_WHICH))) {
        task again = ways_of(g, c, u, more, before, &failed_again);
        if (again.n_ways == 1) t = again;
    }
    if (t.n_ways && ask_device(g, &t)) return;
    if (t.n_ways)
        add_task(g, &t);
    else if (failed.action)
        tell(g, &failed);
    else
        g->unclear = true;
}

/* ---- free text: "add milk and eggs to the shopping list" -------------------------------------------- */

static size_t chunk_end(const grounder *g, const units *u, size_t from, size_t to)
{
    for (size_t i = from + 1; i < to; i++) {
        size_t n;
        if (run_at(&g->lex->except, u, i, to, &n)) {
            i += n - 1;
            continue;
        }
        if (run_at(&g->lex->joins, u, i, to, &n) || run_at(&g->lex->contrast, u, i, to, &n)) return i;
    }
    return to;
}

/* The parts of a cue before and after its gap. */
static bool split_cue(const phrase *p, phrase *ret_head, phrase *ret_tail)
{
    for (unsigned i = 0; i < p->n; i++) {
        if (p->parts[i].kind != PART_GAP) continue;
        *ret_head = (phrase){.n = i, .parts = p->parts};
        *ret_tail = (phrase){.n = p->n - i - 1, .parts = p->parts + i + 1};
        return i > 0;
    }
    return false;
}

/* Is there a word that is more than a pronoun or an article? */
static bool has_content(const grounder *g, const units *u, size_t from, size_t to)
{
    const lexicon *l = g->lex;
    for (size_t i = from; i < to; i++) {
        const unit *x = &u->at[i];
        bool empty = x->kind == UNIT_SIGN ||
                     (x->kind == UNIT_WORD &&
                      (phrase_list_has_word(&l->pronouns, x->s) ||
                       phrase_list_has_word(&l->determiners, x->s) || phrase_list_has_word(&l->all, x->s)));
        if (!empty) return true;
    }
    return false;
}

static bool text_task(grounder *g, const units *u, const action_def *x, size_t text_from, size_t text_to,
                      const chunk_rest *r, bool forbidden)
{
    attempt way = try_action(g, x, u, r);
    if (text_from >= text_to || way.how == NOT_CLEAR || way.how == NOT_HERE || way.how == CANNOT)
        return false;
    if (phrase_list_in(&g->lex->prohibit, u->at, text_from, text_to, 0) ||
        phrase_list_in(&g->lex->except, u->at, text_from, text_to, 0))
        g->unclear = true; /* "milk but not eggs": what of it is wanted? */
    if (!has_content(g, u, text_from, text_to)) g->unclear = true; /* "add it to the list" */
    size_t begin = u->at[text_from].begin, end = u->at[text_to - 1].end;
    way.text = slice(g, begin, end);
    if (forbidden) {
        g->forbidden = true;
        name_all(g, &way.targets);
    } else if (way.how == DO_IT) {
        task t = {.u = u, .n_ways = 1, .ways = {way}};
        add_task(g, &t);
    } else {
        tell(g, &way);
    }
    return true;
}

/* With a list named after the text: each place where the tail of the cue stands is tried. */
static size_t try_named_list(grounder *g, const units *u, const action_def *x, const phrase *tail,
                             size_t from, size_t to, bool forbidden)
{
    for (size_t p = from + 1; p < to; p++) {
        unit_set got = phrase_match(tail, u->at, p, to, 0, true);
        if (!got) continue;
        size_t list = p + set_len(got), end = chunk_end(g, u, list, to);
        chunk_rest *r = new_rest(g);
        chunk_rest_read(r, u, list, end, 0, &g->d);
        if (r->n_strange || r->n_values || !says_target(&r->what)) continue;
        if (text_task(g, u, x, from, p, r, forbidden)) return end;
    }
    return 0;
}

static bool means_kind_of(const grounder *g, const action_def *x, const char *word)
{
    for (size_t k = 0; k < g->lex->n_kinds; k++) {
        const kind_def *kind = &g->lex->kinds[k];
        if (!(x->kinds >> k & 1)) continue;
        for (size_t i = 0; i < kind->n_words; i++)
            if (words_same_stem(kind->words[i], word)) return true;
    }
    return false;
}

/* Without a list named: the home's only one, and all that follows is the text. */
static size_t try_only_list(grounder *g, const units *u, const action_def *x, size_t from, size_t to,
                            bool forbidden)
{
    device_set before = g->last;
    for (size_t i = from; i < to; i++) /* a list is named after all, though not so that it is found */
        if (u->at[i].kind == UNIT_DEVICE || (u->at[i].kind == UNIT_WORD && means_kind_of(g, x, u->at[i].s)))
            return 0;
    chunk_rest *r = new_rest(g);
    r->device = r->first_strange = SIZE_MAX;
    g->last = (device_set){{0}};
    if (text_task(g, u, x, from, to, r, forbidden)) return to;
    g->last = before;
    return 0;
}

/* "shopping list: six eggs": the list stands first, set off by a colon. */
static size_t try_list_first(grounder *g, const units *u, const action_def *x, size_t at, size_t to)
{
    size_t colon = at;
    while (colon < to && !(u->at[colon].kind == UNIT_SIGN && strcmp(u->at[colon].s, ":") == 0)) colon++;
    if (colon == at || colon + 1 >= to) return 0;
    chunk_rest *r = new_rest(g);
    chunk_rest_read(r, u, at, colon, 0, &g->d);
    bool group;
    device_set s = devices_find(&g->d, &r->what, UINT64_MAX, &group);
    size_t list = first_of(&s);
    bool only = device_set_count(&s) == 1 && !group && !r->n_strange && !r->n_values && !r->forbidden;
    if (!only || !serves(g, x, list)) return 0;
    return text_task(g, u, x, colon + 1, to, r, false) ? to : 0;
}

/* Free text from unit `at` on; returns where it ended, 0: none. */
static size_t try_text(grounder *g, const units *u, size_t at, size_t to, bool forbidden)
{
    for (size_t i = 0; i < g->lex->n_actions; i++) {
        const action_def *x = &g->lex->actions[i];
        if (!x->n_takes || x->takes[0]->kind != VALUE_TEXT) continue;
        size_t first = forbidden ? 0 : try_list_first(g, u, x, at, to);
        if (first) return first;
        for (size_t k = 0; k < x->cues.n; k++) {
            phrase head, tail;
            if (!split_cue(&x->cues.at[k], &head, &tail)) continue;
            unit_set got = phrase_match(&head, u->at, at, to, 0, true);
            size_t from = at + set_len(got), end = 0;
            if (!got || from >= to) continue;
            if (tail.n) {
                end = try_named_list(g, u, x, &tail, from, to, forbidden);
            } else if (x->implied) {
                end = try_only_list(g, u, x, from, to, forbidden);
            }
            if (end) return end;
        }
    }
    return 0;
}

/* ---- chunks -------------------------------------------------------------------------------------- */

typedef struct piece {
    chunk *c;
    bool has_cue, scope;  /* scope: joined by "and", a prohibition before it covers it too */
    bool forbidden, done; /* done: it was an exception of a group */
    bool corrects;        /* "no, ...": the piece before does not count */
    bool comma;           /* set off by a comma */
    bool alternative;     /* joined by "or" */
    bool contrast;        /* joined by "but" */
} piece;

static bool is_empty(const chunk_rest *r)
{
    return !says_target(&r->what) && !r->n_values && !r->n_strange && !r->n_except && !r->forbidden &&
           !r->later && !r->withdrawn;
}

static chunk_rest *copy_rest(grounder *g, const chunk_rest *from, const chunk_rest *values)
{
    chunk_rest *r = new_rest(g);
    if (g->nomem) return r;
    *r = *from;
    if (!values || r->n_values) return r;
    memcpy(r->values, values->values, sizeof r->values);
    r->n_values = values->n_values;
    return r;
}

static const chunk_rest *rest_of(const piece *p)
{
    return p->has_cue ? &p->c->cues[0].rest : &p->c->bare;
}

/* Something is forbidden. Of what it is said matters: it must not be done in the same breath. */
static void hold_back(grounder *g, const chunk_rest *r)
{
    bool group;
    g->forbidden = true;
    mention known = known_part(g, &r->what);
    device_set s = {{0}};
    if (says_target(&known))
        s = devices_find(&g->d, &known, UINT64_MAX, &group);
    else if (r->what.pronoun)
        s = g->last;
    for (size_t i = 0; i < DEVICES_MAX / 64; i++) g->forbidden_targets.bits[i] |= s.bits[i];
    if (!device_set_count(&s)) g->forbidden_unsure = true;
    name_all(g, &s);
}

static void note_strange(grounder *g, const units *u, const chunk_rest *r)
{
    if (!g->strange && r->first_strange != SIZE_MAX)
        g->strange = slice(g, u->at[r->first_strange].begin, u->at[r->first_strange].end);
    bool group;
    if (!says_target(&r->what)) return;
    mention known = {0};
    for (size_t i = 0; i < r->what.n; i++)
        if (devices_know(&g->d, r->what.at[i])) known.at[known.n++] = r->what.at[i];
    if (!known.n) return;
    device_set s = devices_find(&g->d, &known, UINT64_MAX, &group);
    name_all(g, &s);
}

/* Words beside a request that name no device and hold nothing back: "the cows are coming". */
static bool is_chatter(const grounder *g, const units *u, const piece *p)
{
    const chunk_rest *r = &p->c->bare;
    if (!p->comma || r->reported || r->n_values || r->n_except || r->contrast) return false;
    for (size_t i = p->c->from; i < p->c->to; i++) {
        const unit *x = &u->at[i];
        if (x->kind == UNIT_DEVICE) return false;
        if (x->kind != UNIT_WORD) continue;
        bool names = devices_know(&g->d, x->s) || devices_is_kind_word(g->lex, x->s, NULL) || x->state;
        if (names && !phrase_list_has_word(&g->lex->prepositions, x->s)) return false;
    }
    return r->n_strange > 0;
}

/* A chunk without a cue: more devices for the cue before (or after) it, exceptions, or not understood. */
static void join_bare(grounder *g, const units *u, piece *p, size_t i, size_t n, const piece *cue)
{
    chunk_rest *r = &p[i].c->bare;
    if (is_chatter(g, u, &p[i])) {
        g->chatter = true;
    } else if (r->n_strange || (!says_target(&r->what) && r->n_values)) {
        note_strange(g, u, r);
        g->unclear = true;
    } else if (says_target(&r->what) && cue) {
        if (i + 1 < n && !p[i + 1].has_cue) inherit_kind(g, &r->what, &p[i + 1].c->bare.what);
        carry_out(g, cue->c, u, copy_rest(g, r, rest_of(cue)), i > 0 ? &rest_of(&p[i - 1])->what : NULL);
    } else if (says_target(&r->what)) {
        bool group;
        device_set s = devices_find(&g->d, &r->what, UINT64_MAX, &group);
        name_all(g, &s);
        g->unclear = true;
    }
}

static const piece *cue_for(const piece *p, size_t i, size_t n)
{
    for (size_t k = i; k-- > 0;)
        if (p[k].has_cue) return &p[k];
    for (size_t k = i + 1; k < n; k++)
        if (p[k].has_cue) return &p[k];
    return NULL;
}

static void give_values(chunk_rest *to, const chunk_rest *from, bool instead)
{
    if (instead) to->n_values = 0;
    for (size_t v = 0; v < from->n_values && to->n_values < CHUNK_VALUES_MAX; v++)
        to->values[to->n_values++] = from->values[v];
}

/* "turn the lamp red, 40%": values of later chunks belong to the one before them; after "no," instead of its
 * own. */
static void gather_values(const grounder *g, piece *p, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        chunk_rest *r = &p[i].c->bare;
        size_t to = i - 1;
        while (to > 0 && p[to].done) to--;
        bool only_values = !p[i].has_cue && r->n_values && !says_target(&r->what) && !r->n_strange;
        if (!only_values || !says_target(&rest_of(&p[to])->what)) continue;
        for (size_t k = 0; k < p[to].c->n_cues; k++) give_values(&p[to].c->cues[k].rest, r, p[i].corrects);
        give_values(&p[to].c->bare, r, p[i].corrects);
        chunk_read_bare(p[to].c, g->lex);
        p[to].has_cue = p[to].c->n_cues > 0;
        p[i].done = true;
        p[i].corrects = false;
        r->n_values = 0;
    }
}

/* "everything but the tv": what stands behind "but" is left out, or it is not clear what it is for. */
static void gather_contrasts(grounder *g, piece *p, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        if (!p[i].contrast || !says_target(&p[i].c->bare.what) || p[i].c->bare.forbidden) continue;
        const mention *m = &rest_of(&p[i - 1])->what;
        bool group = m->all || m->everything || m->plural;
        if (p[i].has_cue && !(group && p[i].c->cues[0].rest.only_state && !p[i - 1].has_cue)) continue;
        if (p[i].has_cue || !group || !p[i - 1].has_cue) {
            g->unclear = true;
            continue;
        }
        for (size_t k = 0; k < p[i - 1].c->n_cues; k++) {
            chunk_rest *to = &p[i - 1].c->cues[k].rest;
            if (to->n_except < CHUNK_EXCEPT_MAX) to->except[to->n_except++] = p[i].c->bare.what;
        }
        p[i].done = true;
    }
}

/* "all lights except the lamp and the fan": the second is an exception too. */
static void gather_exceptions(piece *p, size_t n)
{
    for (size_t i = 1; i < n; i++) { /* "all lights except the lamp and the fan off" */
        chunk_rest *group = &p[i - 1].c->bare;
        bool waits = !p[i - 1].has_cue && group->n_except && group->n_except < CHUNK_EXCEPT_MAX;
        if (!waits || !p[i].has_cue || !p[i].c->cues[0].rest.only_state || !says_target(&p[i].c->bare.what))
            continue;
        group->except[group->n_except++] = p[i].c->cues[0].rest.what;
        for (size_t k = 0; k < p[i].c->n_cues; k++) {
            p[i].c->cues[k].rest.what = (mention){0};
            p[i].c->cues[k].rest.n_whole = 0;
        }
    }
    piece *cue = NULL;
    for (size_t i = 0; i < n; i++) {
        const mention *m = &p[i].c->bare.what;
        const chunk_rest *r = &p[i].c->bare;
        if (i > 0 && p[i - 1].has_cue && !p[i].has_cue && r->n_except && !says_target(m) && !r->n_strange) {
            for (size_t k = 0; k < p[i - 1].c->n_cues; k++) {
                chunk_rest *to = &p[i - 1].c->cues[k].rest;
                for (size_t e = 0; e < r->n_except && to->n_except < CHUNK_EXCEPT_MAX; e++)
                    to->except[to->n_except++] = r->except[e];
            }
            p[i].done = true;
            cue = &p[i - 1];
        } else if (p[i].has_cue) {
            cue = p[i].c->cues[0].rest.n_except ? &p[i] : NULL;
        } else if (cue && says_target(m) && !p[i].c->bare.n_strange) {
            for (size_t k = 0; k < cue->c->n_cues; k++) {
                chunk_rest *to = &cue->c->cues[k].rest;
                if (to->n_except && to->n_except < CHUNK_EXCEPT_MAX) to->except[to->n_except++] = *m;
            }
            p[i].done = true;
        } else {
            cue = NULL;
        }
    }
}

/* "every light downstairs, off": the devices stood before the cue and were seen to with it. */
static bool is_served(const piece *p, size_t i)
{
    const chunk_rest *r = &p[i].c->cues[0].rest;
    bool before = false;
    for (size_t k = 0; k < i; k++) {
        if (p[k].has_cue) return false;
        before = before || says_target(&p[k].c->bare.what);
    }
    return before && !says_target(&r->what) && !r->what.pronoun;
}

/* "lock and unlock the door": the device stands behind the second cue. */
static bool lends_target(const grounder *g, const piece *p, size_t i, size_t n)
{
    if (!p[i].has_cue || i + 1 >= n || !p[i + 1].has_cue || device_set_count(&g->last)) return false;
    const chunk_rest *own = &p[i].c->cues[0].rest, *next = &p[i + 1].c->cues[0].rest;
    return !says_target(&own->what) && !own->what.pronoun && !own->n_values && !own->n_strange &&
           says_target(&next->what);
}

/* "unlock it, no, lock it": the piece before does not count. */
static void take_back(grounder *g)
{
    g->n_tasks = g->task_mark;
    g->n_problems = g->problem_mark;
}

static void run_piece(grounder *g, const units *u, piece *p, size_t i, size_t n)
{
    const chunk_rest *r = rest_of(&p[i]);
    if (p[i].corrects) take_back(g);
    g->task_mark = g->n_tasks;
    g->problem_mark = g->n_problems;
    if (r->withdrawn) g->withdrawn = true;
    if (r->reported) g->unclear = true;
    if (r->later) g->later = true;
    bool covered = i > 0 && (p[i].scope || !p[i].has_cue) && p[i - 1].forbidden &&
                   (!p[i].has_cue || !rest_of(&p[i - 1])->keeps);
    p[i].forbidden = r->forbidden || covered;
    if (p[i].forbidden || r->later) {
        if (p[i].forbidden)
            hold_back(g, r);
        else
            note_strange(g, u, r);
    } else if (p[i].alternative) {
        note_strange(g, u, r);
        g->unclear = true;
    } else if (p[i].has_cue && is_served(p, i)) {
        return;
    } else if (lends_target(g, p, i, n)) {
        carry_out(g, p[i].c, u, copy_rest(g, &p[i + 1].c->cues[0].rest, NULL), NULL);
    } else if (!p[i].has_cue) {
        if (!p[i].done) join_bare(g, u, p, i, n, cue_for(p, i, n));
    } else {
        if (i + 1 < n && !p[i + 1].has_cue)
            for (size_t k = 0; k < p[i].c->n_cues; k++)
                inherit_kind(g, &p[i].c->cues[k].rest.what, &p[i + 1].c->bare.what);
        bool before = g->unclear;
        const mention *kind_from = i > 0 ? &rest_of(&p[i - 1])->what : NULL;
        carry_out(g, p[i].c, u, NULL, kind_from);
        if (g->unclear && !before) note_strange(g, u, r);
    }
}

/* "lamps 1 and 4": a number alone stands for the last word of the name before it. */
static void take_number_as_name(const grounder *g, const units *u, const mention *before, chunk_rest *r)
{
    double v;
    if (says_target(&r->what) || r->n_values != 1 || r->values[0].choice || !before->n) return;
    const unit *x = &u->at[r->values[0].at];
    const char *last = before->at[before->n - 1];
    bool number = (last[0] >= '0' && last[0] <= '9') || lexicon_number(g->lex, last, &v);
    if (x->kind != UNIT_NUMBER || x->measure || !number || !devices_know(&g->d, x->s)) return;
    r->what = *before;
    r->what.at[r->what.n - 1] = x->s;
    r->what.plural = false;
    r->n_values = 0;
}

static void name_numbers(const grounder *g, const units *u, piece *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        mention *m = p[i].has_cue ? &p[i].c->cues[0].rest.what : &p[i].c->bare.what;
        bool numbered = m->n && m->at[m->n - 1][0] >= '0' && m->at[m->n - 1][0] <= '9';
        if (numbered && i + 1 < n)
            for (size_t k = 0; k < p[i].c->n_cues; k++) p[i].c->cues[k].rest.what.plural = false;
        if (numbered && i + 1 < n) p[i].c->bare.what.plural = false;
        if (i == 0) continue;
        const mention *before = p[i - 1].has_cue ? &p[i - 1].c->cues[0].rest.what : &p[i - 1].c->bare.what;
        take_number_as_name(g, u, before, &p[i].c->bare);
        for (size_t k = 0; k < p[i].c->n_cues; k++) take_number_as_name(g, u, before, &p[i].c->cues[k].rest);
    }
}

static void run_pieces(grounder *g, const units *u, piece *p, size_t n)
{
    name_numbers(g, u, p, n);
    gather_values(g, p, n);
    gather_contrasts(g, p, n);
    gather_exceptions(p, n);
    for (size_t i = 0; i < n; i++) run_piece(g, u, p, i, n);
}

/* Past the joins at `at`; *ret_scope: all of them let a prohibition go on. */
static size_t skip_joins(const grounder *g, const units *u, size_t at, size_t to, bool *ret_scope)
{
    size_t n, unused;
    *ret_scope = true;
    while (at < to && (run_at(&g->lex->joins, u, at, to, &n) || run_at(&g->lex->contrast, u, at, to, &n))) {
        if (!run_at(&g->lex->scope, u, at, to, &unused)) *ret_scope = false;
        at += n;
    }
    return at;
}

/* Past "I mean", or "no" with a sign after it; "no lights" corrects nothing. */
static size_t skip_correction(const grounder *g, const units *u, size_t at, size_t to)
{
    size_t n;
    while (at < to && run_at(&g->lex->correct, u, at, to, &n)) {
        bool sign = at + n < to && u->at[at + n].kind == UNIT_SIGN;
        if (n == 1 && !sign) break;
        at += n + sign;
    }
    return at;
}

static void read_pieces(grounder *g, const units *u, size_t at, size_t to)
{
    piece p[CHUNKS_MAX];
    size_t n = 0;
    while (at < to) {
        bool scope, lead = false;
        size_t joined = skip_joins(g, u, at, to, &scope);
        bool contrast = joined > at && phrase_list_in(&g->lex->contrast, u->at, at, joined, 0);
        bool alternative = joined > at && phrase_list_in(&g->lex->alternatives, u->at, at, joined, 0);
        bool comma = joined == at || (u->at[at].kind == UNIT_SIGN && strcmp(u->at[at].s, ":") != 0);
        size_t after = skip_correction(g, u, joined, to);
        bool corrects = after > joined && (n > 0 || g->n_tasks > 0);
        joined = after;
        at = chunk_start(u, joined, to, g->lex, &lead);
        if (at >= to) break;
        size_t n_forbid = set_len(phrase_list_at(&g->lex->prohibit, u->at, at, to, 0));
        size_t end = try_text(g, u, joined, to, false); /* "i need milk on the list": no polite beginning */
        if (!end) end = try_text(g, u, at + n_forbid, to, n_forbid > 0);
        if (end) {
            run_pieces(g, u, p, n);
            n = 0;
            at = end;
            continue;
        }
        end = chunk_end(g, u, at, to);
        size_t last = chunk_trim(u, at, end, g->lex);
        chunk *c = n < CHUNKS_MAX ? arena_alloc(g->a, sizeof *c) : NULL;
        if (!c) {
            g->nomem = g->nomem || n < CHUNKS_MAX;
            g->unclear = true;
            return;
        }
        chunk_read(c, u, at, last, &g->d);
        if (c->n_cues || !is_empty(&c->bare))
            p[n++] = (piece){.c = c,
                             .has_cue = c->n_cues > 0,
                             .scope = scope,
                             .corrects = corrects,
                             .comma = comma || lead,
                             .alternative = alternative,
                             .contrast = contrast};
        at = end;
    }
    run_pieces(g, u, p, n);
}

/* ---- questions ----------------------------------------------------------------------------------- */

static const char *state_of(const grounder *g, size_t i)
{
    return g->d.at[i].state ? g->d.at[i].state : "";
}

static const char *say_state(grounder *g, size_t i, const char *reply)
{
    size_t kind = g->d.words[i].kind;
    const char *own = kind != SIZE_MAX ? g->lex->kinds[kind].state_say : NULL;
    const char *state = state_of(g, i);
    reply_field f[] = {{"name", g->d.at[i].name}, {"state", state}};
    return fill(g, !*state ? g->lex->reply.state_unknown : own ? own : reply, f, 2);
}

static const char *asked_state(const units *u, unit_set used)
{
    const char *s = NULL;
    for (size_t i = 0; i < u->n; i++)
        if (used >> i & 1 && u->at[i].kind == UNIT_WORD && u->at[i].state) s = u->at[i].s;
    return s;
}

static bool is_in_state(const grounder *g, size_t i, const char *asked)
{
    words w;
    const char *state = state_of(g, i);
    if (words_split(&w, g->a, state, strlen(state)) || w.n == 0) return false;
    word_list l;
    return !devices_canonical(&l, g->lex, &w, g->a) && l.n == 1 && strcmp(l.at[0], asked) == 0;
}

static void say_more(grounder *g, buf *b, const char *s)
{
    buf_printf(b, "%s%s", b->len ? " " : "", s);
    if (b->failed) g->nomem = true;
}

static const char *keep(grounder *g, buf *b)
{
    const char *s = b->len ? arena_strndup(g->a, b->data, b->len) : NULL;
    buf_done(b);
    return s;
}

/* "is the lamp on", "how is the lamp": each device's state, for one and a state asked with yes or no. */
static void answer_states(grounder *g, const device_set *s, const char *asked)
{
    enum { SHOWN = 8 };
    buf b = {0};
    size_t n = device_set_count(s), shown = 0;
    for (size_t i = 0; i < g->d.n && shown < SHOWN; i++) {
        if (!device_set_has(s, i)) continue;
        const char *reply = !asked || n > 1            ? g->lex->reply.state
                            : is_in_state(g, i, asked) ? g->lex->reply.state_yes
                                                       : g->lex->reply.state_no;
        say_more(g, &b, say_state(g, i, reply));
        shown++;
    }
    g->answer = keep(g, &b);
}

static void answer_which(grounder *g, const device_set *s, const char *asked, bool count)
{
    device_set so = {{0}};
    for (size_t i = 0; i < g->d.n; i++)
        if (device_set_has(s, i) && (!asked || is_in_state(g, i, asked))) device_set_add(&so, i);
    size_t n = device_set_count(&so);
    char digits[24];
    snprintf(digits, sizeof digits, "%zu", n);
    reply_field f[] = {{"names", names(g, &so, false)}, {"state", asked ? asked : ""}, {"count", digits}};
    const char *t = !n ? g->lex->reply.none_so : count ? g->lex->reply.count_so : g->lex->reply.some_so;
    g->answer = fill(g, t, f, 3);
}

typedef enum { ASKS_STATE, ASKS_WHICH, ASKS_COUNT } ask_kind;

static bool try_ask(grounder *g, const units *u, size_t at, const phrase_list *l, ask_kind kind)
{
    for (size_t i = 0; i < l->n; i++) {
        unit_set used = phrase_match(&l->at[i], u->at, at, u->n, 0, true);
        if (!used) continue;
        chunk_rest r;
        chunk_rest_read(&r, u, at, u->n, used, &g->d);
        bool any = kind == ASKS_WHICH && asked_state(u, used); /* "what's playing?" */
        if (r.n_strange || r.n_values || r.later || r.forbidden || (!says_target(&r.what) && !any)) continue;
        bool group;
        if (kind != ASKS_STATE) r.what.all = true;
        device_set s = devices_find(&g->d, &r.what, UINT64_MAX, &group);
        size_t n = device_set_count(&s);
        if (!n) continue;
        name_all(g, &s);
        const char *asked = asked_state(u, used);
        if (kind != ASKS_STATE)
            answer_which(g, &s, asked, kind == ASKS_COUNT);
        else
            answer_states(g, &s, asked);
        return true;
    }
    return false;
}

static bool is_question(grounder *g, const units *u, size_t at)
{
    if (try_ask(g, u, at, &g->lex->ask_count, ASKS_COUNT) ||
        try_ask(g, u, at, &g->lex->ask_which, ASKS_WHICH) ||
        try_ask(g, u, at, &g->lex->ask_state, ASKS_STATE))
        return true;
    if (!phrase_list_at(&g->lex->questions, u->at, at, u->n, 0)) return false;
    chunk_rest r;
    chunk_rest_read(&r, u, at, u->n, 0, &g->d);
    note_strange(g, u, &r);
    g->question = true;
    return true;
}

/* ---- sentences ------------------------------------------------------------------------------------ */

/* The whole sentence is one of the phrases, fillers and signs apart. */
static bool is_whole(const grounder *g, const units *u, size_t at, const phrase_list *l)
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
            return chunk_start(u, at, u->n, g->lex, &ignored) == u->n;
        }
        if (u->at[at].kind != UNIT_SIGN) return false;
        at++;
    }
    return false;
}

static bool is_talk(grounder *g, const units *u, size_t at)
{
    for (size_t i = 0; i < g->lex->n_talk; i++) {
        if (!is_whole(g, u, at, &g->lex->talk[i].cues)) continue;
        g->talk = g->lex->talk[i].say;
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
    chunk_rest r;
    unit_set used = 0;
    if (phrase_list_in(&g->lex->leads, u->at, at, u->n, 0)) return false; /* "..., would you?" */
    for (size_t i = at; i < u->n; i++) {
        if (u->at[i].kind == UNIT_WORD && u->at[i].state) used |= (unit_set)1 << i;
    }
    chunk_rest_read(&r, u, at, u->n, used, &g->d);
    if (begins_with_name(g, u, at) && (r.n_strange || r.n_values || r.forbidden)) {
        note_strange(g, u, &r);
        return g->question = true;
    }
    if (!used || r.n_strange || r.n_values || !says_target(&r.what)) return false;
    bool group;
    device_set s = devices_find(&g->d, &r.what, UINT64_MAX, &group);
    if (!device_set_count(&s)) return false;
    name_all(g, &s);
    answer_states(g, &s, asked_state(u, used));
    return true;
}

static bool says_reported(const grounder *g, const units *u)
{
    return phrase_list_in(&g->lex->report, u->at, 0, u->n, 0) != 0;
}

static void read_sentence(grounder *g, size_t from, size_t to)
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
    size_t at = chunk_start(u, 0, u->n, g->lex, &lead);
    if (at == u->n || is_talk(g, u, at)) return;
    if (is_question(g, u, at) || asks_by_mark(g, u, at, lead)) return;
    size_t named = device_set_count(&g->named);
    bool unclear = g->unclear;
    read_pieces(g, u, 0, u->n);
    /* A sentence of its own that has to do with no device holds nothing else back. */
    bool alone = !unclear && g->unclear && device_set_count(&g->named) == named && !says_reported(g, u);
    if (alone) {
        g->unclear = false;
        g->chatter = true;
    }
}

static bool ends_sentence(const words *w, size_t i)
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

/* Words but no end: "!!!" begins no sentence. */
static void read_sentences(grounder *g)
{
    size_t from = 0;
    for (size_t i = 0; i < g->w.n && !g->nomem; i++) {
        bool end = ends_sentence(&g->w, i);
        if (!end && i + 1 < g->w.n) continue;
        size_t to = end && strcmp(g->w.at[i].s, "?") != 0 ? i : i + 1;
        if (to > from && !(to - from == 1 && g->w.at[from].sign)) read_sentence(g, from, to);
        from = i + 1;
    }
}

/* ---- calls ----------------------------------------------------------------------------------------- */

static const char *number_text(grounder *g, double v)
{
    const char *s = arena_printf(g->a, "%.10g", v);
    if (!s) g->nomem = true;
    return s ? s : "";
}

static const char *clock_text(grounder *g, double seconds)
{
    unsigned long s = (unsigned long)(seconds + 0.5);
    const char *t = arena_printf(g->a, "%02lu:%02lu:%02lu", s / 3600, s / 60 % 60, s % 60);
    if (!t) g->nomem = true;
    return t ? t : "";
}

/* A value as it stands in the call; *ret_number: without quotes. */
static const char *value_text(grounder *g, const attempt *t, const units *u, size_t k, bool *ret_number)
{
    const value_def *def = t->action->takes[k];
    const chunk_value *v = t->given[k];
    *ret_number = def->kind == VALUE_NUMBER;
    if (def->kind == VALUE_TEXT) return t->text ? t->text : "";
    const char *means = NULL;
    if (v->choice && chunk_value_fits(v, u, def, &means)) return means;
    double x = u->at[v->at].value;
    return def->kind == VALUE_DURATION ? clock_text(g, x) : number_text(g, x);
}

/* The same for a person: a duration in the words it was given. */
static const char *value_said(grounder *g, const attempt *t, const units *u, size_t k)
{
    bool number;
    if (t->action->takes[k]->kind != VALUE_DURATION) return value_text(g, t, u, k, &number);
    const unit *x = &u->at[t->given[k]->at];
    return slice(g, x->begin, x->end);
}

static ground_call make_call(grounder *g, const attempt *t, const units *u, size_t device)
{
    buf b = {0};
    const char *id = g->d.at[device].id;
    buf_puts(&b, "{\"target\": ");
    json_put_string(&b, id, strlen(id));
    for (size_t k = 0; k < t->action->n_takes; k++) {
        bool number;
        const char *v = value_text(g, t, u, k, &number);
        buf_printf(&b, ", \"%s\": ", t->action->takes[k]->name);
        if (number)
            buf_puts(&b, v);
        else
            json_put_string(&b, v, strlen(v));
    }
    buf_putc(&b, '}');
    ground_call c = {
        .name = arena_printf(g->a, "%.*s.%s", (int)g->d.words[device].n_domain, id, t->action->service),
        .arguments = b.failed ? NULL : arena_strndup(g->a, b.data, b.len)};
    if (!c.name || !c.arguments) g->nomem = true;
    buf_done(&b);
    return c;
}

static const char *say_attempt(grounder *g, const attempt *t, const units *u)
{
    reply_field f[6];
    size_t n = 0;
    f[n++] = (reply_field){"name", names(g, &t->targets, false)};
    for (size_t k = 0; k < t->action->n_takes; k++)
        f[n++] = (reply_field){t->action->takes[k]->name, value_said(g, t, u, k)};
    return fill(g, t->action->say, f, n);
}

static size_t add_calls(grounder *g, ground_call *out, size_t n, const attempt *t, const units *u)
{
    for (size_t i = 0; i < g->d.n; i++)
        if (device_set_has(&t->targets, i) && n < GROUND_CALLS_MAX) out[n++] = make_call(g, t, u, i);
    return n;
}

/* "Turning on A, closing B and locking C." */
static const char *join_says(grounder *g, const char *const *says, size_t n)
{
    buf b = {0};
    for (size_t i = 0; i < n; i++) {
        if (i) buf_printf(&b, i + 1 == n ? " %s " : ", ", g->lex->reply.and);
        size_t start = b.len;
        buf_puts(&b, says[i]);
        if (i && b.data && b.len > start && b.data[start] >= 'A' && b.data[start] <= 'Z')
            b.data[start] += 'a' - 'A';
    }
    buf_putc(&b, '.');
    const char *s = b.failed ? NULL : arena_strndup(g->a, b.data, b.len);
    buf_done(&b);
    if (!s) g->nomem = true;
    return s ? s : "";
}

static void give_options(grounder *g, grounding *out, size_t n)
{
    out->options = arena_alloc(g->a, n * sizeof *out->options);
    if (out->options)
        out->n_options = n;
    else
        g->nomem = true;
}

/* All tasks as one option. Tasks that mean the same call count once. */
static void give_tasks(grounder *g, grounding *out)
{
    const char *says[TASKS_MAX];
    size_t n_says = 0;
    give_options(g, out, 1);
    if (g->nomem) return;
    ground_option *o = &out->options[0];
    o->calls = arena_alloc(g->a, GROUND_CALLS_MAX * sizeof *o->calls);
    if (!o->calls) {
        g->nomem = true;
        return;
    }
    for (size_t i = 0; i < g->n_tasks; i++) {
        const attempt *t = &g->tasks[i].ways[0];
        bool again = false;
        for (size_t k = 0; k < i && !again; k++)
            again = same_call(&g->tasks[k].ways[0], t) && !t->action->n_takes;
        if (again) continue;
        says[n_says++] = say_attempt(g, t, g->tasks[i].u);
        o->n_calls = add_calls(g, o->calls, o->n_calls, t, g->tasks[i].u);
    }
    o->say = join_says(g, says, n_says);
}

/* The ways of the only task, each an option. */
static void give_ways(grounder *g, grounding *out)
{
    const task *t = &g->tasks[0];
    give_options(g, out, t->n_ways);
    for (size_t i = 0; i < t->n_ways && !g->nomem; i++) {
        ground_option *o = &out->options[i];
        const char *say = say_attempt(g, &t->ways[i], t->u);
        o->calls = arena_alloc(g->a, (device_set_count(&t->ways[i].targets) + 1) * sizeof *o->calls);
        if (!o->calls)
            g->nomem = true;
        else
            o->n_calls = add_calls(g, o->calls, 0, &t->ways[i], t->u);
        o->say = join_says(g, &say, 1);
    }
}

/* What one named device can do without a value: what may have been meant by an unknown verb. */
static void give_guesses(grounder *g, grounding *out)
{
    attempt t = {.targets = g->named};
    size_t device = first_of(&g->named);
    give_options(g, out, GROUND_OPTIONS_MAX);
    out->n_options = 0;
    for (size_t i = 0; i < g->lex->n_actions && out->n_options < GROUND_OPTIONS_MAX && !g->nomem; i++) {
        t.action = &g->lex->actions[i];
        if (!t.action->service || t.action->n_takes || !serves(g, t.action, device)) continue;
        ground_option *o = &out->options[out->n_options++];
        const char *say = say_attempt(g, &t, NULL);
        o->calls = arena_alloc(g->a, sizeof *o->calls);
        if (!o->calls)
            g->nomem = true;
        else
            o->n_calls = add_calls(g, o->calls, 0, &t, NULL);
        o->say = join_says(g, &say, 1);
    }
}

/* ---- the judgement ---------------------------------------------------------------------------------- */

static const char *example(grounder *g)
{
    for (size_t i = 0; i < g->d.n; i++) {
        size_t kind = g->d.words[i].kind;
        if (kind == SIZE_MAX || !g->lex->kinds[kind].example) continue;
        reply_field f[] = {{"name", g->d.at[i].name}};
        return fill(g, g->lex->kinds[kind].example, f, 1);
    }
    return "";
}

static const char *fallback(grounder *g)
{
    device_set all = {{0}};
    for (size_t i = 0; i < g->d.n; i++) device_set_add(&all, i);
    reply_field f[] = {{"example", example(g)}, {"names", names(g, &all, false)}};
    return fill(g, g->d.n ? g->lex->reply.fallback : g->lex->reply.no_devices, f, 2);
}

static const char *about_named(grounder *g, const char *one, const char *none)
{
    size_t n = device_set_count(&g->named), first = first_of(&g->named);
    bool alike = true; /* what they can do is told of one for all */
    for (size_t i = 0; i < g->d.n; i++)
        alike = alike && (!device_set_has(&g->named, i) || g->d.words[i].kind == g->d.words[first].kind);
    if (n == 0 || n > 4 || (strstr(one, "{can}") && (!alike || !*abilities(g, first)))) {
        reply_field f[] = {{"example", example(g)}, {"what", g->strange ? g->strange : ""}};
        return fill(g, none, f, 2);
    }
    reply_field f[] = {{"names", names(g, &g->named, false)},
                       {"can", abilities(g, first)},
                       {"what", g->strange ? g->strange : ""},
                       {"example", example(g)}};
    return fill(g, one, f, 4);
}

static bool may_propose(const grounder *g)
{
    return device_set_count(&g->named) == 1 && !g->n_tasks && !g->n_problems;
}

static void judge_unclear(grounder *g, grounding *out)
{
    bool named = device_set_count(&g->named) > 0;
    out->verdict = named || g->n_tasks || g->n_problems ? GROUND_UNCLEAR : GROUND_NOTHING;
    out->text = out->verdict == GROUND_NOTHING ? fallback(g)
                : named ? about_named(g, g->lex->reply.remark, g->lex->reply.not_understood)
                        : about_named(g, g->lex->reply.not_understood, g->lex->reply.not_understood);
    if (!may_propose(g) || g->question) return;
    give_guesses(g, out);
    if (out->n_options) out->verdict = GROUND_PROPOSE;
}

static const char *with_problems(grounder *g, const char *said)
{
    buf b = {0};
    if (said) buf_puts(&b, said);
    for (size_t i = 0; i < g->n_problems; i++) say_more(g, &b, g->problems[i].text);
    const char *s = keep(g, &b);
    if (!s) g->nomem = true;
    return s ? s : "";
}

static void judge_tasks(grounder *g, grounding *out)
{
    bool open = g->n_tasks == 1 && g->tasks[0].n_ways > 1 && !g->n_problems;
    bool unsure = false;
    for (size_t i = 0; i < g->n_tasks; i++) unsure = unsure || g->tasks[i].n_ways > 1;
    if (unsure && !open) {
        out->verdict = GROUND_UNCLEAR;
        out->text = about_named(g, g->lex->reply.remark, g->lex->reply.not_understood);
        return;
    }
    out->verdict = open ? GROUND_CHOOSE : GROUND_ACT;
    if (open)
        give_ways(g, out);
    else
        give_tasks(g, out);
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
            const attempt *a = &g->tasks[i].ways[0], *b = &g->tasks[k].ways[0];
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
        if (share_device(&g->tasks[i].ways[0].targets, &g->forbidden_targets)) return true;
    return false;
}

/* "all the lights off but keep the hall lit": what is kept leaves the group. */
static void spare_forbidden(grounder *g)
{
    for (size_t i = 0; i < g->n_tasks; i++) {
        attempt *t = &g->tasks[i].ways[0];
        device_set left = t->targets;
        drop_all(&left, &g->forbidden_targets);
        if (device_set_count(&t->targets) > 1 && device_set_count(&left)) t->targets = left;
    }
}

static void judge(grounder *g, grounding *out)
{
    const lexicon *l = g->lex;
    if (g->d.n == 0 && !(g->talk && !strstr(g->talk, "{example}"))) { /* nothing can be done or shown */
        out->verdict = GROUND_NOTHING;
        out->question = g->question;
        out->text = l->reply.no_devices;
        return;
    }
    if (g->forbidden) spare_forbidden(g);
    if (undo_each_other(g)) g->unclear = true;
    for (size_t i = 0; i < g->n_tasks; i++)
        if (g->chatter && g->tasks[i].ways[0].action->careful) g->unclear = true;
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
    } else if (g->answer) {
        out->verdict = GROUND_ANSWER;
        out->text = g->answer;
    } else if (g->talk) {
        out->verdict = GROUND_TALK;
        reply_field f[] = {{"example", example(g)}};
        out->text = fill(g, g->talk, f, 1);
    } else {
        out->verdict = GROUND_NOTHING;
        out->text = fallback(g);
    }
}

int ground(grounding *ret, const lexicon *lex, const device *list, size_t n, const char *text, arena *a,
           shoal_err *err)
{
    grounder *g = arena_alloc(a, sizeof *g);
    if (!g) return err_nomem(err);
    g->lex = lex;
    g->a = a;
    if (devices_init(&g->d, lex, list, n, a) || words_split(&g->w, a, text, strlen(text)))
        return err_nomem(err);
    grounding out = {.verdict = GROUND_UNCLEAR, .text = lex->reply.too_long};
    if (g->w.n <= GROUND_WORDS_MAX) {
        units_mend(&g->w, &g->d);
        read_sentences(g);
        judge(g, &out);
    }
    if (g->nomem || !out.text) return err_nomem(err);
    out.named = g->named;
    out.example = example(g);
    if (!*out.text) out.text = lex->reply.not_understood;
    *ret = out;
    return 0;
}

const char *ground_say(const grounding *g, const char *say, arena *a)
{
    reply_field f[] = {{"example", g->example}};
    return reply_fill(a, say, f, 1);
}
