/* ensemble_words.c: a sentence for each member. */
#include "config/ensemble_words.h"

#include <string.h>

#include "json/json.h"
#include "json/json_put.h"

static void put_cascade(buf *why, const config_ensemble *e, size_t i)
{
    const config_member *m = &e->members[i];
    if (i > 0) buf_printf(why, "asked when %s is not sure", e->members[i - 1].model);
    if (i == 0) buf_puts(why, "asked first");
    if (i + 1 == e->n_members) return;
    if (m->min_confidence > 0)
        buf_printf(why, "; answers when its confidence is at least %g", m->min_confidence);
    else
        buf_puts(why, m->calibration ? "; answers when its calibration makes it sure enough"
                                     : "; answers when it is sure");
}

static void put_vote(buf *why, const config_ensemble *e, size_t i)
{
    const config_member *m = &e->members[i];
    buf_printf(why, "votes on every token with weight %g (%s mean)", m->weight > 0 ? m->weight : 1.0,
               e->mean == ENSEMBLE_GEOMETRIC ? "geometric" : "arithmetic");
}

static void put_refine(buf *why, const config_ensemble *e, size_t i)
{
    if (i == 0)
        buf_puts(why, "answers at once");
    else
        buf_printf(why, "answers better: in its place within %u ms, or as an event \"refine\"",
                   e->wait_ms ? e->wait_ms : ENSEMBLE_WAIT_MS);
}

static void put_checks(buf *why, const config_ensemble *e)
{
    static const char *const KINDS[] = {
#define CHECK_WORD(e, name) name,
        CHECK_KIND_TABLE(CHECK_WORD)
#undef CHECK_WORD
    };
    for (size_t i = 0; i < e->n_checks; i++) buf_printf(why, "%s%s", i ? ", " : "", KINDS[e->checks[i].kind]);
}

static void put_verify(buf *why, const config_ensemble *e, size_t i)
{
    if (i == 0)
        buf_puts(why, "writes; its answer must pass: ");
    else
        buf_printf(
            why, "asked when no answer of %s passes or can be repaired; held to: ", e->members[i - 1].model);
    put_checks(why, e);
}

static void put_rerank(buf *why, const config_ensemble *e, size_t i)
{
    const config_score *s = &e->score;
    unsigned n = e->members[i].candidates ? e->members[i].candidates : 1;
    buf_printf(why, "%swrites %u of the answers of which the best goes out, by %s%s",
               e->in_turn && i > 0 ? "where none before is as good as can be, " : "", n,
               s->model      ? "the cross-encoder "
               : s->log_prob ? "how likely it is to "
                             : "the rule ",
               s->model      ? s->model
               : s->log_prob ? s->log_prob
                             : s->rule);
}

static void put_why(buf *why, const config_ensemble *e, size_t i)
{
    switch (e->kind) {
    case ENSEMBLE_CASCADE: put_cascade(why, e, i); break;
    case ENSEMBLE_VOTE: put_vote(why, e, i); break;
    case ENSEMBLE_REFINE: put_refine(why, e, i); break;
    case ENSEMBLE_VERIFY: put_verify(why, e, i); break;
    case ENSEMBLE_RERANK: put_rerank(why, e, i); break;
    }
}

static void put_step(buf *out, const config_ensemble *e, size_t i)
{
    buf why = {0};
    put_why(&why, e, i);
    json_put_open(out, NULL, '{');
    json_put_text(out, "route", e->name);
    json_put_text(out, "model", e->members[i].model);
    buf_puts(out, ",\"reason\":\"member\"");
    json_put_buf(out, "why", &why);
    buf_putc(out, '}');
    buf_done(&why);
}

void ensemble_words_put(buf *out, const config_ensemble *e)
{
    static const char *const KINDS[] = {
#define KIND_WORD(e, name) name,
        ENSEMBLE_KIND_TABLE(KIND_WORD)
#undef KIND_WORD
    };
    buf_putc(out, '{');
    json_put_text(out, "route", e->name);
    buf_printf(out, ",\"kind\":\"%s\",\"steps\":[", KINDS[e->kind]);
    for (size_t i = 0; i < e->n_members; i++) put_step(out, e, i);
    buf_puts(out, "],\"skipped\":[],\"object\":\"shoal.route\"");
}
