/* eval_judge.c: the verdict on one answer; see eval_judge.h and docs/evaluation.md. Calls are judged before
 * words, so that no good sentence excuses a call too many; of the alternatives in "any" the best verdict
 * counts. */
#include "eval/eval_judge.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "eval/eval_text.h"

const char *eval_verdict_word(eval_verdict v)
{
    static const char *const words[] = {
#define EVAL_WORD(name, word) word,
        EVAL_VERDICTS(EVAL_WORD)
#undef EVAL_WORD
    };
    return words[v];
}

/* ---- reading an answer ----------------------------------------------------------------------- */

json_t *eval_answer_calls(const eval_answer *a)
{
    json_t *all = json_object_get(a->body, "tool_calls"), *one = json_object_get(a->body, "tool_call");
    if (json_array_size(all)) return json_copy(all);
    json_t *calls = json_array();
    if (json_is_object(one)) json_array_append(calls, one);
    return calls;
}

const char *eval_answer_text(const eval_answer *a)
{
    const json_t *t = json_object_get(a->body, "text");
    if (a->status != 200) t = json_object_get(json_object_get(a->body, "error"), "message");
    return json_is_string(t) ? json_string_value(t) : "";
}

static bool eval_judge_is_blank(const char *s)
{
    while (isspace((unsigned char)*s)) s++;
    return *s == '\0';
}

/* ---- calls ----------------------------------------------------------------------------------- */

static bool same_value(const json_t *a, const json_t *b)
{
    if (json_is_number(a) && json_is_number(b)) return json_number_value(a) == json_number_value(b);
    if (!a || json_is_null(a)) return !b || json_is_null(b); /* an absent argument is null */
    return json_equal(a, b);
}

/* A list in an expectation is a choice. */
static bool accepts(const json_t *expected, const json_t *got)
{
    if (!json_is_array(expected)) return same_value(expected, got);
    for (size_t i = 0; i < json_array_size(expected); i++)
        if (same_value(json_array_get(expected, i), got)) return true;
    return false;
}

static bool call_fits(const json_t *expected, const json_t *got)
{
    json_t *want = json_object_get(expected, "arguments"), *have = json_object_get(got, "arguments"), *v;
    const char *key;
    if (!accepts(json_object_get(expected, "name"), json_object_get(got, "name"))) return false;
    json_object_foreach(want, key, v) if (!accepts(v, json_object_get(have, key))) return false;
    json_object_foreach(have, key, v) if (!json_object_get(want, key)) return false;
    return json_is_object(have) || json_object_size(want) == 0;
}

static void name_call(buf *why, const char *what, const json_t *call)
{
    if (why->len) buf_puts(why, "; ");
    buf_printf(why, "%s ", what);
    const json_t *name = json_object_get(call, "name");
    if (json_is_array(name)) name = json_array_get(name, 0);
    buf_puts(why, json_is_string(name) ? json_string_value(name) : "a call without name");
    json_put(why, json_object_get(call, "arguments"));
}

/* The first expected call that `got` fits and no earlier one has taken; it is taken then. */
static bool take_expected(const json_t *expected, const json_t *got, bool *taken)
{
    for (size_t i = 0; i < json_array_size(expected); i++) {
        if (taken[i] || !call_fits(json_array_get(expected, i), got)) continue;
        taken[i] = true;
        return true;
    }
    return false;
}

static bool name_missing(const json_t *expected, const bool *taken, buf *why)
{
    bool missing = false;
    for (size_t i = 0; i < json_array_size(expected); i++) {
        const json_t *e = json_array_get(expected, i);
        if (taken[i] || json_is_true(json_object_get(e, "optional"))) continue;
        name_call(why, "missing", e);
        missing = true;
    }
    return missing;
}

/* Without expected calls every call is one too many. */
static eval_verdict judge_calls(const json_t *expected, const json_t *got, buf *why)
{
    bool *taken = calloc(json_array_size(expected) + 1, sizeof *taken), harmful = false;
    for (size_t i = 0; taken && i < json_array_size(got); i++) {
        const json_t *g = json_array_get(got, i);
        if (take_expected(expected, g, taken)) continue;
        name_call(why, "not asked for:", g);
        harmful = true;
    }
    bool missing = !taken || name_missing(expected, taken, why);
    free(taken);
    if (harmful) return EVAL_HARMFUL;
    return missing ? EVAL_WRONG : EVAL_RIGHT;
}

/* ---- words ----------------------------------------------------------------------------------- */

static bool has_one_of(const char *text, const json_t *phrases)
{
    if (json_is_string(phrases)) return eval_text_has(text, json_string_value(phrases));
    for (size_t i = 0; i < json_array_size(phrases); i++)
        if (eval_text_has(text, json_string_value(json_array_get(phrases, i)))) return true;
    return false;
}

static eval_verdict wrong(buf *why, const char *what, const json_t *phrase)
{
    buf_puts(why, what);
    if (phrase) json_put(why, phrase);
    return EVAL_WRONG;
}

/* Every entry of "has" (an entry that is a list: one of it), none of "lacks". */
static eval_verdict judge_words(const json_t *expect, const char *text, buf *why)
{
    const json_t *has = json_object_get(expect, "has"), *lacks = json_object_get(expect, "lacks");
    for (size_t i = 0; i < json_array_size(has); i++)
        if (!has_one_of(text, json_array_get(has, i)))
            return wrong(why, "the text lacks ", json_array_get(has, i));
    for (size_t i = 0; i < json_array_size(lacks); i++)
        if (has_one_of(text, json_array_get(lacks, i)))
            return wrong(why, "the text says ", json_array_get(lacks, i));
    return EVAL_RIGHT;
}

static eval_verdict judge_ask(const json_t *expect, const char *text, buf *why)
{
    const json_t *of = json_object_get(expect, "of"), *least = json_object_get(expect, "least");
    size_t n = json_array_size(of), need = n < 2 ? n : 2, found = 0;
    if (least) need = (size_t)json_integer_value(least);
    for (size_t i = 0; i < n; i++) found += has_one_of(text, json_array_get(of, i));
    if (found >= need) return EVAL_RIGHT;
    buf_printf(why, "the text names %zu of the candidates, not %zu", found, need);
    return EVAL_WRONG;
}

/* As words, so that letter case and punctuation do not matter. */
static bool is_same_text(const char *a, const char *b)
{
    eval_words x = {0}, y = {0};
    bool same = eval_words_init(&x, a, NULL) == 0 && eval_words_init(&y, b, NULL) == 0 && x.n == y.n &&
                (x.n == 0 || eval_words_find(&x, 0, &y) == 0);
    eval_words_done(&x);
    eval_words_done(&y);
    return same;
}

static bool is_same_label(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

static eval_verdict judge_same(const json_t *list, const char *text, bool (*same)(const char *, const char *),
                               buf *why)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (same(text, json_string_value(json_array_get(list, i)))) return EVAL_RIGHT;
    return wrong(why, "expected: ", list);
}

/* ---- faithful texts -------------------------------------------------------------------------- */

/* Numbers are claims wherever they stand. A capital letter makes a name unless it only begins a sentence;
 * before a number it is a name even there ("Fan 3"). */
static bool is_claim(const eval_words *w, size_t i)
{
    const eval_word *x = &w->v[i];
    if (x->number) return true;
    return x->capital && (!x->first || (i + 1 < w->n && w->v[i + 1].number));
}

/* Words that the phrases of "may" cover need no support. */
static int mark_allowed(const json_t *may, const eval_words *w, bool *allowed, shoal_err *err)
{
    for (size_t i = 0; i < json_array_size(may); i++) {
        eval_words part;
        int rc = eval_words_init(&part, json_string_value(json_array_get(may, i)), err);
        if (rc) return rc;
        for (size_t at = 0; (at = eval_words_find(w, at, &part)) != (size_t)-1; at++)
            for (size_t k = 0; k < part.n; k++) allowed[at + k] = true;
        eval_words_done(&part);
    }
    return 0;
}

static eval_verdict judge_claims(const eval_words *text, const bool *allowed, const eval_words *input,
                                 buf *why)
{
    for (size_t i = 0; i < text->n; i++) {
        eval_words one = {.v = &text->v[i], .n = 1};
        if (allowed[i] || !is_claim(text, i) || eval_words_find(input, 0, &one) != (size_t)-1) continue;
        buf_printf(why, "\"%.*s\" is not in the request", (int)one.v->len, one.v->at);
        return EVAL_WRONG;
    }
    return EVAL_RIGHT;
}

static eval_verdict judge_faithful(const json_t *expect, const char *input, const char *text, buf *why)
{
    eval_words in = {0}, out = {0};
    shoal_err err = {0};
    bool *allowed = NULL;
    eval_verdict v = EVAL_WRONG;
    int rc = eval_words_init(&in, input, &err);
    if (!rc) rc = eval_words_init(&out, text, &err);
    if (!rc) rc = (allowed = calloc(out.n + 1, sizeof *allowed)) ? 0 : err_nomem(&err);
    if (!rc) rc = mark_allowed(json_object_get(expect, "may"), &out, allowed, &err);
    if (rc)
        buf_puts(why, err.message);
    else
        v = judge_claims(&out, allowed, &in, why);
    free(allowed);
    eval_words_done(&in);
    eval_words_done(&out);
    return v;
}

/* ---- the verdict ----------------------------------------------------------------------------- */

static bool kind_is(const json_t *expect, const char *kind)
{
    return strcmp(json_string_value(json_object_get(expect, "kind")), kind) == 0;
}

static eval_verdict judge_error(const json_t *expect, const eval_answer *a, const char *text, buf *why)
{
    bool refused = a->status / 100 == 4 && !eval_judge_is_blank(text);
    if (refused && kind_is(expect, "reject")) return judge_words(expect, text, why);
    buf_printf(why, "HTTP status %d: %s", a->status, text);
    return EVAL_WRONG;
}

static eval_verdict judge_text(const json_t *expect, const char *input, const char *text, buf *why)
{
    eval_verdict v = EVAL_RIGHT;
    if (kind_is(expect, "ask")) v = judge_ask(expect, text, why);
    if (kind_is(expect, "label")) v = judge_same(json_object_get(expect, "label"), text, is_same_label, why);
    if (kind_is(expect, "text")) v = judge_same(json_object_get(expect, "text"), text, is_same_text, why);
    if (kind_is(expect, "faithful")) v = judge_faithful(expect, input, text, why);
    return v == EVAL_RIGHT ? judge_words(expect, text, why) : v;
}

static eval_verdict judge_one(const json_t *expect, const char *input, const eval_answer *a, buf *why)
{
    const char *text = eval_answer_text(a);
    if (a->status != 200) return judge_error(expect, a, text, why);
    json_t *calls = eval_answer_calls(a);
    bool silent = json_array_size(calls) == 0 && eval_judge_is_blank(text);
    eval_verdict v = silent ? EVAL_SILENT : judge_calls(json_object_get(expect, "calls"), calls, why);
    json_decref(calls);
    if (silent) buf_puts(why, "no text and no call");
    return v == EVAL_RIGHT ? judge_text(expect, input, text, why) : v;
}

eval_verdict eval_judge(const json_t *expect, const char *input, const eval_answer *answer, buf *why)
{
    const json_t *any = json_object_get(expect, "any");
    if (!any) return judge_one(expect, input, answer, why);
    eval_verdict best = EVAL_N_VERDICTS;
    buf reason = {0};
    for (size_t i = 0; i < json_array_size(any); i++) {
        buf own = {0};
        eval_verdict v = judge_one(json_array_get(any, i), input, answer, &own);
        if (v < best) {
            buf swap = reason;
            reason = own;
            own = swap;
            best = v;
        }
        buf_done(&own);
    }
    buf_append(why, reason.data, reason.len);
    buf_done(&reason);
    return best;
}
