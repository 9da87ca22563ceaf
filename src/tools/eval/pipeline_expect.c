/* pipeline_expect.c: see pipeline_expect.h. */
#include "eval/pipeline_expect.h"

#include <stdio.h>
#include <string.h>

#include "command/cli.h"
#include "eval/eval_text.h"
#include "json/json.h"

/* ---- what may be expected ---------------------------------------------------------------------------- */

/* Of every expectation; and of those without a kind. */
static const char *const ALWAYS[] = {"stages", "intent", "status"};
static const char *const PLAIN[] = {"text", "calls", "has", "lacks"};

static bool is_one_of(const char *key, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(key, list[i]) == 0) return true;
    return false;
}

static bool is_always(const char *key)
{
    return is_one_of(key, ALWAYS, sizeof ALWAYS / sizeof *ALWAYS);
}

static bool is_texts(const json_t *v)
{
    bool ok = json_is_array(v);
    for (size_t i = 0; ok && i < json_array_size(v); i++) ok = json_is_string(json_array_get(v, i));
    return ok;
}

static bool is_pattern(const json_t *v)
{
    return json_is_string(v) || json_is_null(v) || (is_texts(v) && json_array_size(v));
}

static int check_stages(const json_t *stages, shoal_err *err)
{
    const char *name;
    json_t *v;
    if (stages && !json_is_object(stages))
        return err_set(err, SHOAL_EINVALID,
                       "'expect.stages' must be an object: {\"intent\": {\"label\": ...}}");
    json_object_foreach((json_t *)(uintptr_t)stages, name, v)
    {
        if (!json_is_object(v) || json_object_size(v) == 0)
            return err_set(err, SHOAL_EINVALID,
                           "'expect.stages.%.64s' must be an object such as {\"ran\": false}", name);
    }
    return 0;
}

/* The expectation without what every one may have: a new reference, NULL without memory. */
static json_t *without_always(const json_t *expect)
{
    json_t *rest = json_copy((json_t *)(uintptr_t)expect);
    for (size_t i = 0; rest && i < sizeof ALWAYS / sizeof *ALWAYS; i++) json_object_del(rest, ALWAYS[i]);
    return rest;
}

static bool is_evals(const json_t *expect)
{
    return json_object_get(expect, "kind") || json_object_get(expect, "any");
}

static int check_plain(const json_t *expect, shoal_err *err)
{
    const char *key;
    json_t *v;
    json_object_foreach((json_t *)(uintptr_t)expect, key, v)
    {
        if (is_always(key)) continue;
        if (!is_one_of(key, PLAIN, sizeof PLAIN / sizeof *PLAIN))
            return err_set(
                err, SHOAL_EINVALID,
                "'expect' has no '%.64s': it may have text, calls, has, lacks, intent, status and stages, "
                "or a kind",
                key);
        if (strcmp(key, "text") == 0 && !is_pattern(v))
            return err_set(err, SHOAL_EINVALID, "'expect.text' must be a text, a list of texts or null");
        if ((strcmp(key, "has") == 0 || strcmp(key, "lacks") == 0) && !is_texts(v))
            return err_set(err, SHOAL_EINVALID, "'expect.%s' must be a list of texts", key);
    }
    json_t *calls = json_object_get(expect, "calls");
    json_t *as_kind = calls ? json_pack("{s:s, s:O}", "kind", "calls", "calls", calls) : NULL;
    int rc = calls ? (as_kind ? eval_expect_check(as_kind, err) : err_nomem(err)) : 0;
    json_decref(as_kind);
    return rc;
}

int pipeline_expect_check(const json_t *expect, shoal_err *err)
{
    const json_t *intent = json_object_get(expect, "intent"), *status = json_object_get(expect, "status");
    if (!json_is_object(expect) || json_object_size(expect) == 0)
        return err_set(err, SHOAL_EINVALID,
                       "'expect' is missing: {\"text\": ..., \"calls\": [...], \"stages\": {...}}");
    int rc = check_stages(json_object_get(expect, "stages"), err);
    if (rc) return rc;
    if (intent && !is_pattern(intent))
        return err_set(err, SHOAL_EINVALID, "'expect.intent' must be a text, a list of texts or null");
    if (status && !json_is_integer(status))
        return err_set(err, SHOAL_EINVALID, "'expect.status' must be a number such as 400");
    if (!is_evals(expect)) return check_plain(expect, err);
    json_t *rest = without_always(expect);
    rc = rest ? eval_expect_check(rest, err) : err_nomem(err);
    json_decref(rest);
    return rc;
}

/* ---- values ------------------------------------------------------------------------------------------ */

/* '*' is any run of bytes; without backtracking over more than the last one. */
static bool is_like(const char *text, const char *pattern)
{
    const char *star = NULL, *from = NULL;
    while (*text) {
        if (*pattern == '*') {
            star = ++pattern;
            from = text;
        } else if (*pattern == *text) {
            pattern++;
            text++;
        } else if (star) {
            pattern = star;
            text = ++from;
        } else {
            return false;
        }
    }
    while (*pattern == '*') pattern++;
    return !*pattern;
}

/* Texts are patterns, a list is a choice, the rest is equal or not. */
static bool pipeline_expect_fits(const json_t *expected, const json_t *got)
{
    if (json_is_null(expected)) return !got || json_is_null(got);
    if (json_is_string(expected) && json_is_string(got))
        return is_like(json_string_value(got), json_string_value(expected));
    if (json_is_number(expected) && json_is_number(got))
        return json_number_value(expected) == json_number_value(got);
    for (size_t i = 0; json_is_array(expected) && i < json_array_size(expected); i++)
        if (pipeline_expect_fits(json_array_get(expected, i), got)) return true;
    return json_equal(expected, got);
}

typedef struct judging {
    json_t *diffs;
    bool failed; /* out of memory */
} judging;

/* got NULL: it is not there. why NULL: nothing to add. */
static void differ(judging *j, const char *what, const json_t *expected, const json_t *got, const char *why)
{
    json_t *d = json_pack("{s:s, s:O, s:o}", "what", what, "expected", expected, "got",
                          got ? json_incref((json_t *)(uintptr_t)got) : json_null());
    if (d && why && *why && json_object_set_new(d, "why", json_string(why)) != 0) j->failed = true;
    if (json_array_append_new(j->diffs, d) != 0) j->failed = true;
}

/* ---- stages ------------------------------------------------------------------------------------------ */

static const char *stage_at(const void *trace, size_t i)
{
    return json_text_of(json_array_get(trace, i), "stage");
}

/* KEY_min or KEY_below: the number that is bounded. NULL: the key is none of these. */
static const json_t *bounded(const json_t *entry, const char *key, bool *ret_min)
{
    static const char *const ENDS[] = {"_below", "_min"};
    char name[80];
    for (size_t i = 0; i < 2; i++) {
        size_t n = strlen(key), end = strlen(ENDS[i]);
        if (n <= end || n - end >= sizeof name || strcmp(key + n - end, ENDS[i]) != 0) continue;
        snprintf(name, sizeof name, "%.*s", (int)(n - end), key);
        *ret_min = i == 1;
        return json_object_get(entry, name);
    }
    return NULL;
}

/* A rule's label is its verdict. */
static const json_t *member_of(const json_t *entry, const char *key)
{
    const json_t *v = json_object_get(entry, key);
    return !v && strcmp(key, "label") == 0 ? json_object_get(entry, "verdict") : v;
}

static void judge_member(judging *j, const char *stage, const json_t *entry, const char *key,
                         const json_t *expected)
{
    char what[200];
    bool min = false;
    const json_t *number = bounded(entry, key, &min), *got = number ? number : member_of(entry, key);
    double bound = json_number_value(expected), v = json_number_value(number);
    bool ok = number && json_is_number(expected) ? (min ? v >= bound : v < bound)
                                                 : pipeline_expect_fits(expected, got);
    snprintf(what, sizeof what, "stages.%.64s.%.64s", stage, key);
    if (!ok) differ(j, what, expected, got, strcmp(key, "ran") == 0 ? json_text_of(entry, "why") : NULL);
}

static void judge_stage(judging *j, const json_t *trace, const char *stage, const json_t *expected)
{
    char what[80], why[160] = "";
    const json_t *entry = NULL;
    const char *key;
    json_t *v;
    for (size_t i = 0; i < json_array_size(trace); i++)
        if (strcmp(stage_at(trace, i), stage) == 0) entry = json_array_get(trace, i);
    if (!entry) {
        const char *near = cli_nearest(stage, json_array_size(trace), stage_at, trace);
        snprintf(what, sizeof what, "stages.%.64s", stage);
        snprintf(why, sizeof why, "there is no such stage%s%.64s%s", near ? ", did you mean \"" : "",
                 near ? near : "", near ? "\"?" : "");
        differ(j, what, expected, NULL, why);
        return;
    }
    json_object_foreach((json_t *)(uintptr_t)expected, key, v) judge_member(j, stage, entry, key, v);
}

/* ---- the answer -------------------------------------------------------------------------------------- */

static void judge_by_eval(judging *j, const char *what, const json_t *expect, const json_t *shown,
                          const char *input, const eval_answer *a)
{
    buf why = {0};
    json_t *calls = eval_answer_calls(a);
    json_t *got = strcmp(what, "calls") == 0
                      ? json_incref(calls)
                      : json_pack("{s:s, s:O}", "text", eval_answer_text(a), "calls", calls);
    buf_puts(&why, "");
    if (eval_judge(expect, input, a, &why) != EVAL_RIGHT) differ(j, what, shown, got, why.data);
    j->failed |= why.failed || !calls || !got;
    json_decref(got);
    json_decref(calls);
    buf_done(&why);
}

static void judge_words(judging *j, const json_t *expect, const eval_answer *a)
{
    const json_t *has = json_object_get(expect, "has"), *lacks = json_object_get(expect, "lacks");
    const char *text = eval_answer_text(a);
    json_t *got = json_string(text);
    for (size_t i = 0; i < json_array_size(has); i++)
        if (!eval_text_has(text, json_string_value(json_array_get(has, i))))
            differ(j, "has", json_array_get(has, i), got, NULL);
    for (size_t i = 0; i < json_array_size(lacks); i++)
        if (eval_text_has(text, json_string_value(json_array_get(lacks, i))))
            differ(j, "lacks", json_array_get(lacks, i), got, NULL);
    json_decref(got);
}

static void judge_plain(judging *j, const json_t *expect, const char *input, const eval_answer *a)
{
    json_t *text = json_object_get(expect, "text"), *calls = json_object_get(expect, "calls");
    const json_t *said = a->status == 200 ? json_object_get(a->body, "text")
                                          : json_object_get(json_object_get(a->body, "error"), "message");
    if (text && !pipeline_expect_fits(text, said)) differ(j, "text", text, said, NULL);
    judge_words(j, expect, a);
    if (!calls) return;
    json_t *as_kind = json_pack("{s:s, s:O}", "kind", "calls", "calls", calls);
    /* Of a pipeline that does nothing no text is no fault here. */
    json_t *got = eval_answer_calls(a);
    bool nothing = json_array_size(calls) == 0 && json_array_size(got) == 0;
    if (as_kind && !nothing) judge_by_eval(j, "calls", as_kind, calls, input, a);
    j->failed |= !as_kind || !got;
    json_decref(got);
    json_decref(as_kind);
}

int pipeline_expect_judge(const json_t *expect, const char *input, const eval_answer *a, json_t *diffs,
                          shoal_err *err)
{
    judging j = {.diffs = diffs};
    json_t *status = json_integer(a->status), *wanted = json_object_get(expect, "status");
    json_t *ok = json_integer(200), *intent = json_object_get(expect, "intent");
    const json_t *label = json_object_get(json_object_get(a->body, "intent"), "label");
    const json_t *error = json_object_get(a->body, "error");
    const char *name, *kind = json_text_of(expect, "kind");
    json_t *v;
    if (!wanted && (is_evals(expect) || strcmp(kind, "reject") == 0))
        wanted = status; /* it judges that itself */
    if (!wanted) wanted = ok;
    if (!status || !ok) return json_decref(status), json_decref(ok), err_nomem(err);
    if (!json_equal(wanted, status)) differ(&j, "status", wanted, status, json_text_of(error, "message"));
    if (intent && !pipeline_expect_fits(intent, label)) differ(&j, "intent", intent, label, NULL);
    json_object_foreach(json_object_get(expect, "stages"), name, v)
        judge_stage(&j, json_object_get(a->body, "trace"), name, v);
    json_t *rest = is_evals(expect) ? without_always(expect) : NULL;
    j.failed |= is_evals(expect) && !rest;
    if (rest)
        judge_by_eval(&j, "answer", rest, rest, input, a);
    else
        judge_plain(&j, expect, input, a);
    json_decref(rest);
    json_decref(status);
    json_decref(ok);
    return j.failed ? err_nomem(err) : 0;
}
