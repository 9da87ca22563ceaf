/* rule_answer.c: an answer about devices; see ensemble/verify.h.
 *
 * Two questions, in this order. Is everything there that its calls name (a list that the application gave)?
 * And is it what the request means, as the rules of nlu/ground.h read it? Where those are sure, they know the
 * right answer, too. What they do not understand is nobody's to act on.
 *
 * Texts count as much as calls: one that says "Locking Front Door" without doing so is a lie, and so is "the
 * door is open" beside a lamp that is switched. Where the rules know what to say, nothing else is said. Where
 * they do not (talk, and what follows on results of tools), a text may have the first words of an action's
 * sentence only where such a call was made, names those devices that are called and no others, and where
 * something is done no numbers that neither calls nor request hold. And it is a sentence that the rules have
 * themselves (rule_form.h): what else it says, nobody can check. Without a list of devices nothing can be. */
#include <string.h>

#include "json/json.h"
#include "nlu/check.h"
#include "rules/rule_answer.h"
#include "rules/rule_form.h"

typedef struct holding { /* one answer, held */
    const lexicon *lex;
    const verify_case *k;
    const verify_answer *a;
    arena *mem;
    bool nomem;
    grounding g;
} holding;

/* ---- what is called is there --------------------------------------------------------------------- */

static bool is_listed(const verify_case *k, const char *id)
{
    for (size_t i = 0; i < k->n_devices; i++)
        if (strcmp(k->devices[i].id, id) == 0) return true;
    return false;
}

/* It reads like an id of this home: what stands before the first dot is the domain of some device. */
static bool looks_like_id(const verify_case *k, const char *s)
{
    size_t n = strcspn(s, ".");
    if (!n || !s[n] || strpbrk(s, " \t\n")) return false;
    for (size_t i = 0; i < k->n_devices; i++)
        if (strncmp(k->devices[i].id, s, n + 1) == 0) return true;
    return false;
}

/* Are all ids in a value listed? *ret_some: there is one. Nested no deeper than JSON_DEPTH_MAX. */
static bool ids_are_listed(const verify_case *k, const char *key, const json_t *v, bool *ret_some)
{
    const char *s = json_string_value(v), *name;
    const json_t *part;
    size_t i;
    bool well = true;
    bool target = strcmp(key, "target") == 0;
    if (s && (target || looks_like_id(k, s))) {
        *ret_some = true;
        well = is_listed(k, s);
    }
    json_array_foreach(v, i, part) well = well && ids_are_listed(k, key, part, ret_some);
    json_object_foreach((json_t *)(uintptr_t)v, name, part)
    {
        well = well && ids_are_listed(k, name, part, ret_some);
    }
    return well;
}

static bool is_offered(const verify_case *k, const char *name)
{
    for (size_t i = 0; i < k->n_tools; i++)
        if (strcmp(k->tools[i], name) == 0) return true;
    return false;
}

/* With tools, an application may have some that take no device. */
static verify_why look_at_call(const verify_case *k, const device_call *c)
{
    json_t *args = NULL;
    bool some = false;
    if (k->no_calls) return VERIFY_NOT_TO_ACT;
    if (k->offers_tools && !is_offered(k, c->name)) return VERIFY_NO_TOOL;
    json_parse(&args, c->arguments, strlen(c->arguments), "arguments", NULL);
    bool read = json_is_object(args);
    bool listed = read && (!k->n_devices || ids_are_listed(k, "", args, &some));
    json_decref(args);
    if (!read) return VERIFY_BROKEN_CALL;
    return listed && (some || k->offers_tools) ? VERIFY_FINE : VERIFY_NO_DEVICE;
}

static verify_why look_at_calls(const verify_case *k, const verify_answer *a)
{
    verify_why w = VERIFY_FINE;
    if (a->n_calls > VERIFY_CALLS_MAX) return VERIFY_TOO_LONG;
    for (size_t i = 0; i < a->n_calls && w == VERIFY_FINE; i++) w = look_at_call(k, &a->calls[i]);
    /* Nobody carries out what stands in a text, unless he takes it for a call. */
    if (w == VERIFY_FINE && strstr(a->text, "\"arguments\"")) w = VERIFY_CALL_AS_TEXT;
    return w;
}

/* ---- what the text says -------------------------------------------------------------------------- */

static bool words_at(const words *w, size_t at, const words *what)
{
    if (what->n == 0 || at + what->n > w->n) return false;
    for (size_t i = 0; i < what->n; i++)
        if (!words_same(w->at[at + i].s, what->at[i].s)) return false;
    return true;
}

static void rule_answer_split(holding *h, words *ret, const char *text, size_t n)
{
    if (words_split(ret, h->mem, text, n) == 0) return;
    h->nomem = true;
    *ret = (words){0};
}

/* "light.turn_on", and as tools may have to be called: "light_turn_on", "turn_on". */
static bool is_of_service(const device_call *c, const char *service)
{
    size_t n = strlen(c->name), m = strlen(service);
    bool ends = n >= m && strcmp(c->name + n - m, service) == 0;
    return ends && (n == m || strchr("._", c->name[n - m - 1]));
}

static const device_call *call_at(const holding *h, const verify_answer *a, size_t i)
{
    return i < a->n_calls ? &a->calls[i] : &h->k->made[i - a->n_calls];
}

/* How an action's sentence begins: "Turning on {name}" as "Turning on". */
static size_t lead_len(const action_def *x)
{
    return x->service ? strcspn(x->say, "{") : 0;
}

/* Some call of the answer, or one made before it, is of an action with this beginning. */
static bool answer_is_done(const holding *h, const verify_answer *a, const action_def *said)
{
    size_t n = lead_len(said);
    for (size_t i = 0; i < a->n_calls + h->k->n_made; i++)
        for (size_t j = 0; j < h->lex->n_actions; j++) {
            const action_def *x = &h->lex->actions[j];
            if (x->service && is_of_service(call_at(h, a, i), x->service) && lead_len(x) == n &&
                strncmp(x->say, said->say, n) == 0)
                return true;
        }
    return false;
}

/* Nothing is said to be done which is not. */
static bool claims_hold(holding *h, const verify_answer *a, const words *text)
{
    for (size_t j = 0; j < h->lex->n_actions; j++) {
        const action_def *x = &h->lex->actions[j];
        words lead;
        rule_answer_split(h, &lead, x->say, lead_len(x));
        for (size_t i = 0; i < text->n && lead.n; i++)
            if (words_at(text, i, &lead) && !answer_is_done(h, a, x)) return false;
    }
    return true;
}

static bool is_called(holding *h, const verify_answer *a, const device *d)
{
    buf quoted = {0};
    bool found = false;
    json_put_string(&quoted, d->id, strlen(d->id));
    h->nomem |= quoted.failed;
    for (size_t i = 0; i < a->n_calls + h->k->n_made && !found && !quoted.failed; i++)
        found = strstr(call_at(h, a, i)->arguments, quoted.data) != NULL;
    buf_done(&quoted);
    return found;
}

/* False: it is not there. */
static bool cover(bool *covered, const words *text, const words *name)
{
    bool found = false;
    for (size_t i = 0; i < text->n; i++) {
        if (!words_at(text, i, name)) continue;
        found = true;
        for (size_t j = 0; j < name->n; j++) covered[i + j] = true;
    }
    return found;
}

static bool stands_uncovered(const bool *covered, const words *text, const words *name)
{
    for (size_t i = 0; i < text->n; i++) {
        bool free_of = words_at(text, i, name);
        for (size_t j = 0; free_of && j < name->n; j++) free_of = !covered[i + j];
        if (free_of) return true;
    }
    return false;
}

/* Each device that the answer calls is named, and no other is; a name within the name of one that is called
 * does not count. */
static bool names_hold(holding *h, const verify_answer *a, const words *text)
{
    const verify_case *k = h->k;
    words *names = arena_alloc(h->mem, (k->n_devices + 1) * sizeof *names);
    bool *covered = arena_alloc(h->mem, text->n + 1), *called = arena_alloc(h->mem, k->n_devices + 1);
    if (!names || !covered || !called) {
        h->nomem = true;
        return false;
    }
    for (size_t i = 0; i < k->n_devices; i++) {
        rule_answer_split(h, &names[i], k->devices[i].name, strlen(k->devices[i].name));
        called[i] = is_called(h, a, &k->devices[i]);
        if (called[i] && !cover(covered, text, &names[i]) && a->n_calls) return false;
    }
    for (size_t i = 0; i < k->n_devices; i++)
        if (!called[i] && stands_uncovered(covered, text, &names[i])) return false;
    return true;
}

static bool numbers_hold(holding *h, const verify_answer *a)
{
    const char *known[VERIFY_CALLS_MAX + 2] = {h->k->question, h->k->context};
    bool strange = true;
    size_t n = a->n_calls < VERIFY_CALLS_MAX ? a->n_calls : VERIFY_CALLS_MAX;
    for (size_t i = 0; i < n; i++) known[2 + i] = a->calls[i].arguments;
    if (verify_numbers(a->text, known, 2 + n, &strange, h->mem)) h->nomem = true;
    return !strange;
}

/* Is it made of sentences that the rules have? */
static bool form_holds(holding *h, const verify_answer *a)
{
    const verify_case *k = h->k;
    const char *known[VERIFY_CALLS_MAX + MADE_CALLS_MAX + 2] = {k->question, k->context};
    size_t n = 2;
    for (size_t i = 0; i < a->n_calls + k->n_made && n < sizeof known / sizeof *known; i++)
        known[n++] = call_at(h, a, i)->arguments;
    rule_form_given given = {h->lex, k->devices, k->n_devices, known, n};
    bool fits = false;
    if (rule_form_fits(&fits, &given, a->text, h->mem)) h->nomem = true;
    return fits;
}

/* The text says of devices nothing but what the calls do. */
static bool text_holds(holding *h, const verify_answer *a)
{
    words text;
    rule_answer_split(h, &text, a->text, strlen(a->text));
    bool acts = a->n_calls + h->k->n_made > 0;
    if (text.n == 0) return true;
    return !text.cut && form_holds(h, a) && claims_hold(h, a, &text) && names_hold(h, a, &text) &&
           (!acts || numbers_hold(h, a));
}

static bool same_words(holding *h, const char *x, const char *y)
{
    words a, b;
    size_t i = 0, j = 0;
    rule_answer_split(h, &a, x, strlen(x));
    rule_answer_split(h, &b, y, strlen(y));
    if (a.cut || b.cut) return false;
    for (;;) { /* signs do not count */
        while (i < a.n && a.at[i].sign) i++;
        while (j < b.n && b.at[j].sign) j++;
        if (i == a.n || j == b.n) return i == a.n && j == b.n;
        if (!words_same(a.at[i++].s, b.at[j++].s)) return false;
    }
}

/* ---- what the request means ---------------------------------------------------------------------- */

/* The tool that was offered for "light.turn_on": of that name, with '_' for the dot, or of the service's name
 * alone, since the dot may not stand in names of tools. The same name: there is none. */
static const char *offered_name(holding *h, const char *name)
{
    char *flat = arena_strdup(h->mem, name), *dot = flat ? strchr(flat, '.') : NULL;
    h->nomem |= !flat;
    if (!dot || is_offered(h->k, name)) return name;
    if (is_offered(h->k, dot + 1)) return dot + 1;
    *dot = '_';
    return is_offered(h->k, flat) ? flat : name;
}

static void name_as_offered(holding *h)
{
    for (size_t i = 0; i < h->g.n_options && h->k->offers_tools; i++)
        for (size_t j = 0; j < h->g.options[i].n_calls; j++)
            h->g.options[i].calls[j].name = offered_name(h, h->g.options[i].calls[j].name);
}

static void mend(verify_verdict *v, const char *text, const device_call *calls, size_t n)
{
    v->mends = true;
    v->mended = (verify_answer){text, calls, n};
}

/* The request is to be acted on. */
static int hold_act(holding *h, verify_verdict *v)
{
    checked c;
    const verify_answer *a = h->a;
    if (check_calls(&c, &h->g, h->lex, a->calls, a->n_calls, h->mem, NULL)) return SHOAL_ENOMEM;
    if (c.verdict == CHECK_REFUSED) { /* one of several options, and none was chosen */
        v->why = a->n_calls ? VERIFY_OTHER_CALLS : VERIFY_NO_CALL;
        v->options = h->g.options;
        v->n_options = h->g.n_options;
        return 0;
    }
    if (c.verdict == CHECK_REPAIRED)
        v->why = a->n_calls ? VERIFY_OTHER_CALLS : VERIFY_NO_CALL;
    else if (*a->text && !same_words(h, a->text, c.text))
        v->why = VERIFY_OTHER_TEXT;
    if (v->why != VERIFY_FINE) mend(v, c.text, c.calls, c.n_calls);
    return 0;
}

/* The rules know what to say, and nothing may be done. */
static int hold_reply(holding *h, verify_verdict *v)
{
    checked c;
    const verify_answer *a = h->a;
    if (check_calls(&c, &h->g, h->lex, a->calls, a->n_calls, h->mem, NULL)) return SHOAL_ENOMEM;
    if (a->n_calls)
        v->why = VERIFY_NOT_TO_ACT;
    else if (!same_words(h, a->text, c.text))
        v->why = VERIFY_OTHER_REPLY;
    if (v->why != VERIFY_FINE) mend(v, c.text, NULL, 0);
    return 0;
}

/* It has to do with no device, or nothing may be called: the rules' own reply alone says nothing wrong, and it may
 * be none to what was said. */
static int hold_talk(holding *h, verify_verdict *v)
{
    if (h->a->n_calls)
        v->why = VERIFY_NOT_TO_ACT;
    else if (*h->a->text && (h->g.verdict != GROUND_NOTHING || !same_words(h, h->a->text, h->g.text)))
        v->why = VERIFY_OTHER_TEXT;
    return 0;
}

/* There is nothing to hold sentences against. Calls of tools may be of the list of tools. */
static void hold_unlisted(holding *h, verify_verdict *v)
{
    const verify_answer *a = h->a;
    if (h->k->offers_tools && a->n_calls && !*a->text) return;
    v->why = VERIFY_NO_LIST;
    if (h->k->offers_tools && a->n_calls) mend(v, "", a->calls, a->n_calls);
}

static bool same_call(const device_call *x, const device_call *y)
{
    json_t *a = NULL, *b = NULL;
    bool same = strcmp(x->name, y->name) == 0 &&
                !json_parse(&a, x->arguments, strlen(x->arguments), "a", NULL) &&
                !json_parse(&b, y->arguments, strlen(y->arguments), "b", NULL) && json_equal(a, b);
    json_decref(a);
    json_decref(b);
    return same;
}

static bool answer_has_call(const device_call *list, size_t n, const device_call *c)
{
    for (size_t i = 0; i < n; i++)
        if (same_call(&list[i], c)) return true;
    return false;
}

/* Another call that an option has beside all that were made. */
static bool is_left(const holding *h, const device_call *c)
{
    const verify_case *k = h->k;
    for (size_t i = 0; i < h->g.n_options; i++) {
        const device_option *o = &h->g.options[i];
        bool all = answer_has_call(o->calls, o->n_calls, c) && !answer_has_call(k->made, k->n_made, c);
        for (size_t j = 0; j < k->n_made && all; j++)
            all = answer_has_call(o->calls, o->n_calls, &k->made[j]);
        if (all) return true;
    }
    return false;
}

/* Of what was asked nothing is left. */
static bool is_done_already(const holding *h)
{
    const device_option *o = &h->g.options[0];
    bool all = h->g.verdict == GROUND_ACT;
    for (size_t i = 0; i < o->n_calls && all; i++)
        all = answer_has_call(h->k->made, h->k->n_made, &o->calls[i]);
    return all;
}

/* What the results say may always be told. */
static bool is_report(holding *h)
{
    return *h->k->report && !h->a->n_calls && same_words(h, h->a->text, h->k->report);
}

/* What failed is told, and nothing follows on it. */
static int hold_failed(holding *h, verify_verdict *v)
{
    v->why = VERIFY_OTHER_TEXT;
    mend(v, h->k->report, NULL, 0);
    return 0;
}

/* Results of calls have come: what is left of them may follow, and a text about what was done. */
static int hold_rest(holding *h, verify_verdict *v)
{
    if (h->k->failed) return hold_failed(h, v);
    bool act = h->g.verdict == GROUND_ACT || h->g.verdict == GROUND_CHOOSE;
    for (size_t i = 0; i < h->a->n_calls; i++)
        if (!act || !is_left(h, &h->a->calls[i])) v->why = act ? VERIFY_OTHER_CALLS : VERIFY_NOT_TO_ACT;
    if (v->why == VERIFY_FINE && !text_holds(h, h->a)) v->why = VERIFY_OTHER_TEXT;
    if (v->why != VERIFY_FINE && act && is_done_already(h)) mend(v, h->g.text, NULL, 0);
    return 0;
}

/* Several calls are meant, and may be made one at a time: which comes first is the model's choice. */
static int hold_first(holding *h, verify_verdict *v)
{
    hold_rest(h, v);
    if (h->a->n_calls != 1) v->why = h->a->n_calls ? VERIFY_OTHER_CALLS : VERIFY_NO_CALL;
    return 0;
}

static int hold(holding *h, verify_verdict *v)
{
    const verify_case *k = h->k;
    bool act = h->g.verdict == GROUND_ACT || h->g.verdict == GROUND_CHOOSE;
    if (k->n_made) return hold_rest(h, v);
    if (h->g.verdict == GROUND_NOTHING || (act && k->no_calls)) return hold_talk(h, v);
    if (!act) return hold_reply(h, v);
    return k->one_call && h->g.options[0].n_calls > 1 ? hold_first(h, v) : hold_act(h, v);
}

static int answer_apply(verify_verdict *ret, const void *lex, const verify_case *k, const verify_answer *a,
                        arena *mem)
{
    holding h = {.lex = lex, .k = k, .a = a, .mem = mem};
    verify_verdict v = {.why = VERIFY_FINE};
    verify_why seen = look_at_calls(k, a);
    if (lex && is_report(&h)) {
        *ret = v;
        return 0;
    }
    bool means = lex && k->n_devices;
    int rc = means ? ground(&h.g, lex, k->devices, k->n_devices, k->question, mem, NULL) : 0;
    if (means && !rc) name_as_offered(&h);
    if (means && !rc) rc = hold(&h, &v);
    if (lex && !means) hold_unlisted(&h, &v);
    if (rc || h.nomem) return SHOAL_ENOMEM;
    if (seen != VERIFY_FINE) v.why = seen; /* what mends the one mends the other */
    if (seen != VERIFY_FINE && !means) v.mends = false;
    if (v.mends && v.mended.n_calls > VERIFY_CALLS_MAX) v.mends = false;
    *ret = v;
    return 0;
}

static int open_lexicon(void **ret, const char *path, shoal_err *err)
{
    lexicon *l = NULL;
    int rc = lexicon_load(&l, path, err);
    if (!rc) *ret = l;
    return rc;
}

static void close_lexicon(void *l)
{
    lexicon_free(l);
}

const device_checker rule_answer_devices = {open_lexicon, close_lexicon, answer_apply};
