/* ground_task.c: the cue of a clause becomes a task: one way to carry it out, or several to choose from. */
#include "nlu/grounder.h"

#include <stdio.h>
#include <string.h>

bool task_same_call(const attempt *a, const attempt *b)
{
    return a->action->service && b->action->service && strcmp(a->action->service, b->action->service) == 0 &&
           memcmp(&a->targets, &b->targets, sizeof a->targets) == 0;
}

static void add_way(task *t, const attempt *way)
{
    /* An action that only explains is no way to do it, and leaves none beside it. */
    if (t->n_ways && (!way->action->service || !t->ways[0].action->service)) return;
    for (size_t i = 0; i < t->n_ways; i++)
        if (task_same_call(&t->ways[i], way)) return;
    /* "add 5 minutes to the timer" starts it only where it cannot be added to. */
    bool special = t->n_ways && t->ways[0].action->where, more = way->action->where;
    if (special && !more) return;
    if (t->n_ways && more && !special) t->n_ways = 0;
    if (t->n_ways < sizeof t->ways / sizeof *t->ways) t->ways[t->n_ways++] = *way;
}

static void keep_task(grounder *g, const task *t)
{
    task *kept = arena_alloc(g->a, sizeof *kept);
    g->nomem |= !kept;
    if (!kept) return;
    *kept = *t;
    g->tasks[g->n_tasks++] = kept;
}

void task_add(grounder *g, const task *t)
{
    if (t->ways[0].action->service == NULL) { /* an action that only explains */
        reply_field f[] = {{"name", attempt_target_names(g, &t->ways[0], false)},
                           {"names", attempt_target_names(g, &t->ways[0], false)}};
        grounder_add_problem(g, GROUND_CANNOT, grounder_fill(g, t->ways[0].action->say, f, 2));
        attempt_want_value(g, &t->ways[0]);
        grounder_name_all(g, &t->ways[0].targets);
        return;
    }
    if (g->n_tasks < TASKS_MAX)
        keep_task(g, t);
    else
        g->unclear = true;
    g->last = t->ways[0].targets;
    g->earlier = false;
    grounder_name_all(g, &g->last);
}

static bool equal_rank(const clause_cue *a, const clause_cue *b)
{
    return a->rest.n_strange == b->rest.n_strange && unit_set_len(a->used) == unit_set_len(b->used);
}

clause_rest *task_new_rest(grounder *g)
{
    static clause_rest none;
    clause_rest *r = arena_alloc(g->a, sizeof *r);
    if (!r) g->nomem = true;
    return r ? r : &none;
}

static bool has_kind_word(const grounder *g, const entity_mention *m)
{
    for (size_t i = 0; i < m->n; i++)
        if (devices_is_kind_word(g->lex, m->at[i], NULL)) return true;
    return false;
}

/* "the kitchen and bedroom lights": what is missing in the first comes from the second. Not in "the printer and the
 * coffee machine". */
void task_inherit_kind(const grounder *g, entity_mention *m, const entity_mention *from)
{
    if (!m->n || has_kind_word(g, m) || devices_is_sole_name(&g->d, m)) return;
    for (size_t i = 0; i < from->n && m->n < sizeof m->at / sizeof *m->at; i++)
        if (devices_is_kind_word(g->lex, from->at[i], NULL)) m->at[m->n++] = from->at[i];
    m->plural = m->plural || from->plural;
    m->all = m->all || from->all;
}

/* Is each word of the action's verb one that the cue uses? */
static bool says_verb(const clause_cue *cue, const units *u)
{
    const char *v = cue->action->verb;
    while (v && *v) {
        size_t len = strcspn(v, " ");
        bool said = false;
        for (size_t i = 0; i < u->n && !said; i++)
            said = cue->used >> i & 1 && u->at[i].kind == UNIT_WORD && strlen(u->at[i].s) == len &&
                   memcmp(u->at[i].s, v, len) == 0;
        if (!said) return false;
        v += len;
        v += strspn(v, " ");
    }
    return v != NULL;
}

/* What the clause's best cue that can be carried out means; *failed: why none can be. kind_from: the words for
 * a kind are borrowed from there, or NULL. */
static task ways_of(grounder *g, const clause *c, const units *u, const clause_rest *more,
                    const entity_mention *kind_from, attempt *failed)
{
    task t = {.u = u};
    const clause_cue *first = NULL;
    const clause_cue *open_verb = NULL; /* "turn on": of many kinds, so it implies no device of one */
    *failed = (attempt){.how = NOT_CLEAR};
    for (size_t i = 0; i < c->n_cues && !(first && !equal_rank(first, c->cues[i])); i++) {
        const clause_cue *cue = c->cues[i];
        const clause_rest *rest = more ? more : &cue->rest;
        if (kind_from) {
            clause_rest *borrowed = task_new_rest(g);
            if (g->nomem) return t;
            *borrowed = *rest;
            task_inherit_kind(g, &borrowed->what, kind_from);
            rest = borrowed;
        }
        attempt way = attempt_action(g, cue->action, u, rest);
        if (way.how == NO_TARGET && !first) open_verb = cue;
        bool takes_verb = open_verb && open_verb->used & ~cue->used; /* "turn on": no device called "turn" */
        if (way.how == DO_IT && open_verb && (equal_rank(open_verb, cue) || takes_verb)) way.how = NO_TARGET;
        bool told = failed->action && failed->action->service &&
                    (failed->how == OUT_OF_RANGE || failed->how == WRONG_UNIT); /* that explains more */
        if (way.how == DO_IT && !cue->action->service && told) continue;
        if (way.how == DO_IT) {
            way.verb_said = says_verb(cue, u);
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
    reply_field f[] = {{"names", grounder_names(g, &all, true)}};
    grounder_add_problem(g, GROUND_ASK, grounder_fill(g, g->lex->reply.which, f, 1));
    grounder_name_all(g, &all);
    return true;
}

static void add_one(grounder *g, const units *u, const attempt *way, const device_set *taken)
{
    task one = {.u = u, .n_ways = 1, .ways = {*way}};
    device_set_drop_all(&one.ways[0].targets, taken);
    if (device_set_count(&one.ways[0].targets)) task_add(g, &one);
}

static void join_sets(device_set *to, const device_set *from)
{
    for (size_t k = 0; k < DEVICES_MAX / 64; k++) to->bits[k] |= from->bits[k];
}

/* "stop everything" stops what can be stopped and does to the rest what fits most of it; what neither reaches is
 * told. */
static void carry_out_everything(grounder *g, const task *t)
{
    device_set taken = {{0}}, all = {{0}};
    const attempt *most = &t->ways[0];
    for (size_t i = 0; i < t->n_ways; i++) {
        join_sets(&all, &t->ways[i].targets);
        if (device_set_count(&t->ways[i].targets) > device_set_count(&most->targets)) most = &t->ways[i];
    }
    for (size_t i = 0; i < t->n_ways; i++) {
        if (!t->ways[i].verb_said) continue;
        add_one(g, t->u, &t->ways[i], &taken);
        join_sets(&taken, &t->ways[i].targets);
    }
    add_one(g, t->u, most, &taken);
    join_sets(&taken, &most->targets);
    device_set_drop_all(&all, &taken);
    join_sets(&g->left_out, &all);
    g->last = taken;
    g->earlier = false;
}

/* Carry out the best cue that can be, with `more` said of the device when it is not NULL (the words of a
 * neighbour without a cue). Where it is unclear which device is meant, the kind that was named before tells:
 * "the speakers in the music room and the ballroom". */
void task_carry_out(grounder *g, const clause *c, const units *u, const clause_rest *more,
                    const entity_mention *before)
{
    attempt failed, failed_again;
    task t = ways_of(g, c, u, more, NULL, &failed);
    const entity_mention *own = more ? &more->what : c->n_cues ? &c->cues[0]->rest.what : NULL;
    bool borrow = before && own && own->n && !has_kind_word(g, own) && has_kind_word(g, before);
    if (borrow && (t.n_ways > 1 || (!t.n_ways && failed.how == ASK_WHICH))) {
        task again = ways_of(g, c, u, more, before, &failed_again);
        if (again.n_ways == 1) t = again;
    }
    bool everything = t.n_ways > 1 && own && own->everything;
    if (t.n_ways && !everything && ask_device(g, &t)) return;
    if (everything)
        carry_out_everything(g, &t);
    else if (t.n_ways)
        task_add(g, &t);
    else if (failed.how == NOT_HERE && c->bare.later && !has_kind_word(g, own))
        g->later = true; /* "water the garden for 10 minutes": no timer of that name is looked for */
    else if (failed.action)
        attempt_tell(g, &failed);
    else
        g->unclear = true;
}
