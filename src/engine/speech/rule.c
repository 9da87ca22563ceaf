/* rule.c: the mask of a reply's next token; see rule.h. Sums run in order and in double: the same bits
 * everywhere. */
#include "speech/rule.h"

#include <string.h>

#include "compute/compute.h"
#include "infer/engine.h"

enum { REPEATED = 4 };

void speech_rule_init(speech_rule *r, const whisper_tokens *h, const whisper_language *language,
                      bool translate, bool times)
{
    *r = (speech_rule){.h = h, .times = times && h->time_0 >= 0};
    int32_t task = translate ? h->translate : h->transcribe;
    if (!language && h->n_languages == 1) language = &h->languages[0];
    if (!h->multilingual) language = NULL; /* it has no token */
    r->finds_language = !language && h->n_languages > 1;
    if (language || r->finds_language) r->lead[r->n_lead++] = language ? language->id : -1;
    if (task >= 0) r->lead[r->n_lead++] = task;
    if (!r->times && h->no_timestamps >= 0) r->lead[r->n_lead++] = h->no_timestamps;
}

static void forbid(float *logits, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) logits[i] = GEN_NEVER;
}

static void forbid_id(float *logits, int32_t id)
{
    if (id >= 0) logits[id] = GEN_NEVER;
}

static void only(float *logits, size_t n_vocab, int32_t id)
{
    float x = logits[id];
    forbid(logits, 0, n_vocab);
    logits[id] = x;
}

static void only_languages(const whisper_tokens *h, float *logits, size_t n_vocab)
{
    size_t best = 0;
    for (size_t i = 1; i < h->n_languages; i++)
        if (logits[h->languages[i].id] > logits[h->languages[best].id]) best = i;
    only(logits, n_vocab, h->languages[best].id);
}

static float largest(const float *x, size_t from, size_t to)
{
    float max = GEN_NEVER;
    for (size_t i = from; i < to; i++)
        if (x[i] > max) max = x[i];
    return max;
}

/* The sum of exp(x[i] - max). */
static double mass(const float *x, size_t from, size_t to, float max)
{
    double sum = 0;
    for (size_t i = from; i < to; i++)
        if (x[i] > GEN_NEVER) sum += (double)math_expf(x[i] - max);
    return sum;
}

static float probability(const float *logits, size_t n_vocab, int32_t id)
{
    float max = largest(logits, 0, n_vocab);
    double all = mass(logits, 0, n_vocab, max);
    return all > 0 ? (float)((double)math_expf(logits[id] - max) / all) : 0;
}

/* What steers a reply is no part of a text. */
static void forbid_controls(const whisper_tokens *h, bool times, float *logits, size_t n_vocab)
{
    for (size_t i = 0; i < h->n_never; i++) logits[h->never[i]] = GEN_NEVER;
    for (size_t i = 0; i < h->n_languages; i++) forbid_id(logits, h->languages[i].id);
    if (h->sot != h->eot) forbid_id(logits, h->sot);
    forbid_id(logits, h->transcribe);
    forbid_id(logits, h->translate);
    forbid_id(logits, h->previous);
    forbid_id(logits, h->no_speech);
    forbid_id(logits, h->no_timestamps);
    if (!times && h->time_0 >= 0) forbid(logits, (size_t)h->time_0, n_vocab);
}

/* A text's tokens are all below the controls that begin with its end, in every model of this kind. */
static void forbid_text(const whisper_tokens *h, float *logits)
{
    for (size_t i = 0; i < (size_t)h->time_0; i++)
        if ((int32_t)i != h->eot) logits[i] = GEN_NEVER;
}

/* Times come in pairs, never go back, and no segment is empty. */
static void keep_order(const whisper_tokens *h, const int32_t *ids, size_t n, float *logits, size_t n_vocab)
{
    size_t begin = (size_t)h->time_0, least = begin;
    bool last = ids[n - 1] >= h->time_0, before = n < 2 || ids[n - 2] >= h->time_0;
    for (size_t i = 0; i < n; i++)
        if (ids[i] >= h->time_0) least = (size_t)ids[i] + (last && !before ? 0 : 1);
    if (last && before) forbid(logits, begin, n_vocab);
    if (last && !before) forbid_text(h, logits);
    forbid(logits, begin, least);
}

static void mask_times(const whisper_tokens *h, const int32_t *ids, size_t n, float *logits, size_t n_vocab)
{
    size_t begin = (size_t)h->time_0;
    if (n == 0) {
        forbid(logits, 0, begin);
        if (h->max_first_time >= 0 && begin + (size_t)h->max_first_time + 1 < n_vocab)
            forbid(logits, begin + (size_t)h->max_first_time + 1, n_vocab);
        return;
    }
    keep_order(h, ids, n, logits, n_vocab);
    /* Some time is likelier than any one token of text. */
    float max = largest(logits, 0, n_vocab), text = largest(logits, 0, begin);
    if (mass(logits, begin, n_vocab, max) > (double)math_expf(text - max)) forbid(logits, 0, begin);
}

bool speech_rule_repeats(const int32_t *ids, size_t n)
{
    if (n <= REPEATED) return false;
    const int32_t *last = ids + n - REPEATED;
    if (n % 2 == 0 && memcmp(ids, ids + n / 2, n / 2 * sizeof *ids) == 0) return true;
    for (const int32_t *at = ids; at < last; at++)
        if (memcmp(at, last, REPEATED * sizeof *at) == 0) return true;
    return false;
}

void speech_rule_mask(void *user, const int32_t *ids, size_t n, float *logits, size_t n_vocab)
{
    speech_rule *r = user;
    const whisper_tokens *h = r->h;
    if (n == 0 && h->no_speech >= 0) r->no_speech = probability(logits, n_vocab, h->no_speech);
    if (n < r->n_lead) {
        if (n == 0 && r->finds_language)
            only_languages(h, logits, n_vocab);
        else
            only(logits, n_vocab, r->lead[n]);
        return;
    }
    ids += r->n_lead;
    n -= r->n_lead;
    forbid_controls(h, r->times, logits, n_vocab);
    if (n == 0)
        for (size_t i = 0; i < h->n_never_first; i++) logits[h->never_first[i]] = GEN_NEVER;
    if (r->times) mask_times(h, ids, n, logits, n_vocab);
    if (r->ends_loops && speech_rule_repeats(ids, n)) only(logits, n_vocab, h->eot);
}
