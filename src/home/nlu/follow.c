/* follow.c: answers to proposals; see follow.h. */
#include "nlu/follow.h"

#include <string.h>

#include "base/trim.h"
#include "nlu/reply.h"
#include "nlu/units.h"
#include "shoal.h"

/* ---- reading --------------------------------------------------------------------------------------- */

/* Nothing but phrases of the list, and signs between them; "yes?" asks. */
static bool follow_is_whole(const phrase_list *l, const unit *u, size_t n)
{
    bool any = false;
    for (size_t i = 0; i < n;) {
        if (u[i].kind == UNIT_SIGN) {
            if (strcmp(u[i].s, "?") == 0) return false;
            i++;
            continue;
        }
        size_t len;
        if (!phrase_list_run(l, u, i, n, 0, &len)) return false;
        i += len;
        any = true;
    }
    return any;
}

int follow_read(follow_reply *ret, const lexicon *lex, const char *text, arena *a)
{
    words w;
    unit u[UNITS_MAX];
    *ret = FOLLOW_OTHER;
    if (words_split(&w, a, text, strlen(text))) return SHOAL_ENOMEM;
    if (w.n > UNITS_MAX || w.cut) return 0;
    for (size_t i = 0; i < w.n; i++) u[i] = unit_of_word(w.at[i].s, w.at[i].sign);
    if (follow_is_whole(&lex->decline, u, w.n))
        *ret = FOLLOW_NO;
    else if (follow_is_whole(&lex->agree, u, w.n))
        *ret = FOLLOW_YES;
    return 0;
}

/* ---- what was asked ---------------------------------------------------------------------------------- */

int follow_asked(const device_option **ret, const grounding *g, const lexicon *lex, const char *said,
                 arena *a)
{
    *ret = NULL;
    if (g->verdict != GROUND_PROPOSE) return 0;
    for (size_t i = 0; i < g->n_options; i++) {
        reply_field f[] = {{"say", g->options[i].say}};
        const char *question = reply_fill(a, lex->reply.propose, f, 1);
        if (!question) return SHOAL_ENOMEM;
        if (!trim_equal(said, question)) continue;
        *ret = &g->options[i];
        return 0;
    }
    return 0;
}

int follow_digest(sha256_digest *ret, const device_option *o)
{
    sha256 *h = sha256_new();
    if (!h) return SHOAL_ENOMEM;
    sha256_add_text(h, o->say);
    for (size_t i = 0; i < o->n_calls; i++) {
        sha256_add_text(h, o->calls[i].name);
        sha256_add_text(h, o->calls[i].arguments);
    }
    sha256_end(h, ret);
    return 0;
}

/* ---- what it comes to -------------------------------------------------------------------------------- */

int follow_apply(grounding *g, const lexicon *lex, bool yes, const sha256_digest *about)
{
    device_option *found = NULL;
    for (size_t i = 0; g->verdict == GROUND_PROPOSE && i < g->n_options && !found; i++) {
        sha256_digest d;
        if (follow_digest(&d, &g->options[i])) return SHOAL_ENOMEM;
        if (memcmp(&d, about, sizeof d) == 0) found = &g->options[i];
    }
    if (found && yes) {
        g->verdict = GROUND_ACT;
        g->text = found->say;
        g->options = found;
        g->n_options = 1;
    } else if (!yes) {
        g->verdict = GROUND_LEAVE;
        g->text = lex->reply.leave_all;
        g->n_options = 0;
    } else if (g->verdict != GROUND_PROPOSE) {
        g->verdict = GROUND_UNCLEAR;
        g->text = lex->reply.leave_all;
        g->n_options = 0;
    }
    return 0;
}

/* ---- what it means behind another request ------------------------------------------------------------ */

typedef struct turn_reader {
    const lexicon *lex;
    const device *list;
    size_t n;
    const follow_turn *t;
    arena *a;
    grounding asked, own;
} turn_reader;

static int read_after(const turn_reader *r, grounding *ret, const char *text, const device_set *before)
{
    return ground_after(ret, r->lex, r->list, r->n, text, before, r->a, NULL);
}

/* A request, a refusal or small talk of its own; the rest may be the answer to what was asked. */
static bool stands_alone(const grounding *g)
{
    switch (g->verdict) {
    case GROUND_ASK:
    case GROUND_MISSING:
    case GROUND_CANNOT:
    case GROUND_PROPOSE:
    case GROUND_UNCLEAR:
    case GROUND_NOTHING: return g->question;
    default: return true;
    }
}

static bool is_part_of(const device_set *s, const device_set *all)
{
    for (size_t i = 0; i < DEVICES_MAX / 64; i++)
        if (s->bits[i] & ~all->bits[i]) return false;
    return true;
}

/* "Tell me a temperature": the answer is a value, and with it the whole is a request, good or out of its bounds. */
static int give_value(const turn_reader *r, const char **ret)
{
    grounding whole;
    const grounding *asked = &r->asked;
    reply_field f[] = {{"name", asked->about}, {"answer", r->t->answer}};
    if (!asked->request) return 0;
    const char *text = reply_fill(r->a, asked->request, f, 2);
    if (!text || read_after(r, &whole, text, NULL)) return SHOAL_ENOMEM;
    bool told = whole.verdict == GROUND_ACT || whole.odd_value;
    if (told && is_part_of(&whole.named, &asked->named)) *ret = text;
    return 0;
}

/* The answer behind the request: every word of both is explained, and nothing is done to what was not asked about. */
static int join_answer(const turn_reader *r, const char **ret)
{
    grounding whole;
    const char *request = r->t->request;
    size_t len = strlen(request);
    while (len && strchr(" \t\r\n.!?", request[len - 1])) len--;
    const char *text = arena_printf(r->a, "%.*s %s", (int)len, request, r->t->answer);
    if (!text || read_after(r, &whole, text, &r->t->before)) return SHOAL_ENOMEM;
    bool which = r->asked.verdict == GROUND_ASK; /* else it told what it needs: "Tell me a temperature" */
    if (which && whole.verdict == GROUND_ACT && is_part_of(&whole.named, &r->asked.named))
        *ret = text;
    else if (r->own.verdict == GROUND_PROPOSE) /* nothing is offered that was not asked */
        *ret = whole.n_options ? request : text;
    return 0;
}

/* Did the reply tell what the request was about: what was done, or how it is? */
static bool tells_subject(const turn_reader *r, device_set *ret)
{
    const grounding *g = &r->asked;
    bool same = trim_equal(r->t->reply, g->text);
    *ret = g->verdict == GROUND_ACT ? g->done : g->named;
    if (g->verdict == GROUND_ACT || g->verdict == GROUND_ANSWER || g->verdict == GROUND_CANNOT) return same;
    if (g->verdict != GROUND_CHOOSE && g->verdict != GROUND_PROPOSE) return false;
    for (size_t i = 0; i < g->n_options; i++)
        if (trim_equal(r->t->reply, g->options[i].say)) return true;
    return false;
}

/* Only where it changes what the answer means. */
static int give_subject(const turn_reader *r, device_set *ret)
{
    grounding about;
    device_set it;
    if (stands_alone(&r->own) && !r->own.question) return 0;
    if (!tells_subject(r, &it)) return 0;
    if (read_after(r, &about, r->t->answer, &it)) return SHOAL_ENOMEM;
    bool same = about.verdict == r->own.verdict && strcmp(about.text, r->own.text) == 0;
    if (!same) *ret = it;
    return 0;
}

int follow_read_turn(follow_meaning *ret, const lexicon *lex, const device *list, size_t n,
                     const follow_turn *t, arena *a)
{
    turn_reader x = {.lex = lex, .list = list, .n = n, .t = t, .a = a}, *r = &x;
    *ret = (follow_meaning){0};
    if (read_after(r, &r->asked, t->request, &t->before) || read_after(r, &r->own, t->answer, NULL))
        return SHOAL_ENOMEM;
    bool open = r->asked.verdict == GROUND_ASK || r->asked.verdict == GROUND_CANNOT;
    bool asks = (open || r->asked.request) && trim_equal(t->reply, r->asked.text) && !stands_alone(&r->own);
    int rc = asks ? give_value(r, &ret->text) : 0;
    if (!rc && asks && open && !ret->text) {
        rc = join_answer(r, &ret->text);
        if (ret->text) ret->it = t->before;
    }
    return rc || ret->text ? rc : give_subject(r, &ret->it);
}
