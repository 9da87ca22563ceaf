/* transcription.c: windows, requests and segments; see transcription.h. */
#include "speech/transcription.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "speech/activity.h"
#include "speech/rule.h"

/* OpenAI's thresholds: nobody speaks when the model thinks so and is not sure of its words either. */
#define NO_SPEECH_MIN 0.6
#define LOGPROB_MIN   (-1.0)

enum { TAIL_MS = 100, QUIET_MS = 300, QUIET_STEP_MS = 30 };
/* Over the former, silence before a word is cut to the latter. */
enum { SILENT_LEAD_MS = 1000, LEAD_MS = 300 };

struct transcription {
    const hearing *h;
    transcription_options o;
    const hearing_language *language;
    sound *sound;
    size_t n;        /* samples in all */
    int32_t *prompt; /* [n_prompt], ends with <|startoftranscript|> */
    size_t n_prompt;
    mel *mel;
    float *bands, *frames; /* [n_mels][n_frames] and [n_frames][n_mels] */
    speech_rule rule;
    size_t at, n_window; /* the window: samples */
    const float *x;      /* [n_window], the sound's */
    buf ids;             /* int32_t: the reply */
    double logprob_sum;  /* of its text, the end included */
    size_t n_logprobs;
    buf text;
};

/* ---- life ---------------------------------------------------------------------------------------- */

/* <|startofprev|>, the last words of the prompt, <|startoftranscript|>. */
static int make_prompt(transcription *t, shoal_err *err)
{
    const hearing *h = t->h;
    const char *words = t->o.prompt && *t->o.prompt ? t->o.prompt : NULL;
    encoding e = {0};
    buf spaced = {0};
    if (words && h->previous < 0)
        return err_set(err, SHOAL_EINVALID, "%s takes no prompt", model_name(h->model));
    int rc = words && buf_printf(&spaced, " %s", words) ? err_nomem(err) : 0;
    if (rc == 0 && words)
        rc = tokenizer_encode(model_tokenizer(h->model), spaced.data, spaced.len, NULL, 0, 0, 0, &e, err);
    size_t n_ctx = t->o.n_ctx ? t->o.n_ctx : h->n_ctx, most = n_ctx / 2 ? n_ctx / 2 - 1 : 0;
    size_t n = e.n < most ? e.n : most;
    t->prompt = rc == 0 ? calloc(n + 2, sizeof *t->prompt) : NULL;
    if (rc == 0 && !t->prompt) rc = err_nomem(err);
    if (rc == 0) {
        if (words) t->prompt[t->n_prompt++] = h->previous;
        for (size_t i = e.n - n; i < e.n; i++) t->prompt[t->n_prompt++] = e.ids[i];
        t->prompt[t->n_prompt++] = h->sot;
    }
    encoding_done(&e);
    buf_done(&spaced);
    return rc;
}

static int check_options(transcription *t, shoal_err *err)
{
    const hearing *h = t->h;
    const char *name = t->o.language;
    if (t->o.translate && h->translate < 0)
        return err_set(err, SHOAL_EINVALID, "%s does not translate", model_name(h->model));
    if (!name || !*name) return 0;
    t->language = hearing_find_language(h, name);
    if (!t->language)
        return err_set(err, SHOAL_EINVALID, "%s does not know the language \"%.40s\"%s%s",
                       model_name(h->model), name, h->n_languages == 1 ? "; it knows " : "",
                       h->n_languages == 1 ? h->languages[0].code : "");
    return 0;
}

static int make_room(transcription *t, shoal_err *err)
{
    size_t n;
    if (size_mul(t->h->n_frames, t->h->mel.n_mels, &n)) return err_nomem(err);
    t->bands = mem_calloc64(n, sizeof *t->bands);
    t->frames = mem_calloc64(n, sizeof *t->frames);
    if (!t->bands || !t->frames) return err_nomem(err);
    return mel_new(&t->mel, &t->h->mel, err);
}

int transcription_new(transcription **ret, const hearing *h, sound *s, const transcription_options *o,
                      shoal_err *err)
{
    transcription *t = calloc(1, sizeof *t);
    if (!t) {
        sound_free(s);
        return err_nomem(err);
    }
    *t = (transcription){.h = h, .o = *o, .sound = s};
    int rc = check_options(t, err);
    if (rc == 0) rc = sound_measure(s, err);
    t->n = sound_length(s);
    if (rc == 0) rc = make_prompt(t, err);
    if (rc == 0) rc = make_room(t, err);
    t->o.language = t->o.prompt = NULL; /* the caller's */
    bool times = o->times || t->n > h->n_window;
    speech_rule_init(&t->rule, h, t->language, o->translate, times);
    if (!t->language && h->n_languages == 1) t->language = &h->languages[0];
    if (rc != 0) {
        transcription_free(t);
        return rc;
    }
    *ret = t;
    return 0;
}

void transcription_free(transcription *t)
{
    if (!t) return;
    sound_free(t->sound);
    free(t->prompt);
    mel_free(t->mel);
    free(t->bands);
    free(t->frames);
    buf_done(&t->ids);
    buf_done(&t->text);
    free(t);
}

/* ---- windows ------------------------------------------------------------------------------------- */

static size_t samples_of(const transcription *t, size_t ms)
{
    return (size_t)t->h->mel.rate * ms / 1000;
}

static double energy(const float *x, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += (double)x[i] * (double)x[i];
    return sum;
}

/* The middle of the quietest moment in the last third of a window; the latest among equals. */
static size_t quietest(const transcription *t)
{
    size_t n = t->h->n_window, len = samples_of(t, QUIET_MS), step = samples_of(t, QUIET_STEP_MS), best = n;
    double least = 0;
    for (size_t i = n - n / 3; step > 0 && i + len <= n; i += step) {
        double e = energy(t->x + i, len);
        if (best != n && e > least) continue;
        least = e;
        best = i + len / 2;
    }
    return best;
}

/* The part of the sound that the next window hears; all that a window holds is in view. */
static int cut_window(transcription *t, shoal_err *err)
{
    size_t n, left = t->n - t->at, most = t->h->n_window;
    int rc = sound_view(t->sound, t->at, most, &t->x, &n, err);
    if (rc != 0) return rc;
    t->n_window = left <= most ? left : t->rule.times ? most : quietest(t);
    if (t->n_window <= n) return 0;
    return err_set(err, SHOAL_EINTERNAL, "the sound has %zu samples less than it had", t->n_window - n);
}

/* How far the next window begins behind this one, of which nothing is heard; 0: it is heard. Windows overlap
 * where none of them says where a word begins. */
static size_t passed_over(const transcription *t)
{
    size_t before = samples_of(t, LEAD_MS), n = t->n_window;
    bool last = t->at + n == t->n;
    if (t->at > 0 && t->n - t->at < samples_of(t, TAIL_MS)) return n;
    activity a = activity_of(t->x, n, t->h->mel.rate);
    if (!a.speech) return last || n < 2 * before ? n : n - before;
    return a.begin > samples_of(t, SILENT_LEAD_MS) ? a.begin - before : 0;
}

static int hear_window(transcription *t, shoal_err *err)
{
    const hearing *h = t->h;
    size_t n_mels = h->mel.n_mels;
    int rc = mel_whisper(t->mel, t->x, t->n_window, h->n_window, t->bands, err);
    for (size_t i = 0; rc == 0 && i < h->n_frames; i++)
        for (size_t k = 0; k < n_mels; k++) t->frames[i * n_mels + k] = t->bands[k * h->n_frames + i];
    return rc;
}

int transcription_next(transcription *t, shoal_err *err)
{
    buf_clear(&t->ids);
    t->logprob_sum = 0;
    t->n_logprobs = 0;
    t->rule.no_speech = 0;
    for (size_t skip = 0; t->at < t->n; t->at += skip) {
        int rc = cut_window(t, err);
        if (rc == 0 && (skip = passed_over(t)) > 0) continue;
        if (rc == 0) rc = hear_window(t, err);
        return rc ? rc : 1;
    }
    return 0;
}

void transcription_request(transcription *t, gen_request *ret, enc_request *ret_source)
{
    const hearing *h = t->h;
    *ret_source = (enc_request){.features = t->frames, .n_features = h->n_frames, .width = h->mel.n_mels};
    *ret = (gen_request){.ids = t->prompt,
                         .n_ids = t->n_prompt,
                         .source = ret_source,
                         .sampling = {.temperature = t->o.temperature, .seed = t->o.seed},
                         .logprobs = true,
                         .rule = {speech_rule_mask, &t->rule},
                         .deadline_ns = t->o.deadline_ns};
}

int transcription_add(transcription *t, int32_t id, float logprob)
{
    if (t->ids.len / sizeof id >= t->rule.n_lead) {
        t->logprob_sum += (double)logprob;
        t->n_logprobs++;
    }
    return buf_append(&t->ids, &id, sizeof id);
}

/* ---- segments ------------------------------------------------------------------------------------ */

typedef struct taker { /* a window's reply on its way to segments */
    transcription *t;
    heard_fn fn;
    void *user;
    heard_segment s; /* what all of them share */
} taker;

static int64_t ms_of(const transcription *t, size_t samples)
{
    return (int64_t)((uint64_t)samples * 1000 / t->h->mel.rate);
}

static bool is_time(const transcription *t, int32_t id)
{
    return t->h->time_0 >= 0 && id >= t->h->time_0;
}

/* The sample of a time token, inside the window. */
static size_t sample_of(const transcription *t, int32_t id)
{
    size_t at = (size_t)(id - t->h->time_0) * t->h->tick;
    return at < t->n_window ? at : t->n_window;
}

/* Words between two samples of the window. */
static int give(taker *k, const int32_t *ids, size_t n, size_t from, size_t to)
{
    transcription *t = k->t;
    heard_segment s = k->s;
    buf_clear(&t->text);
    for (size_t i = 0; i < n;) { /* runs of text between times */
        size_t end = i;
        while (end < n && !is_time(t, ids[end])) end++;
        if (end > i && tokenizer_decode(model_tokenizer(t->h->model), ids + i, end - i, false, &t->text))
            return SHOAL_ENOMEM;
        i = end + 1;
    }
    if (t->text.failed) return SHOAL_ENOMEM;
    if (t->text.len == 0) return 0;
    s.start_ms = ms_of(t, t->at + from);
    s.end_ms = ms_of(t, t->at + to);
    s.text = t->text.data;
    s.len = t->text.len;
    s.ids = ids;
    s.n_ids = n;
    if (k->fn) k->fn(k->user, &s);
    return 0;
}

/* Segments between pairs of times; *ret is where the next window begins. */
static int give_timed(taker *k, const int32_t *ids, size_t n, size_t *ret)
{
    transcription *t = k->t;
    bool ends_single = n >= 2 && is_time(t, ids[n - 1]) && !is_time(t, ids[n - 2]);
    size_t from = 0, last = 0;
    int rc = 0;
    *ret = t->n_window;
    for (size_t i = 1; i <= n && rc == 0; i++) {
        bool pair = i < n && is_time(t, ids[i - 1]) && is_time(t, ids[i]);
        if (!pair && !(i == n && ends_single)) continue;
        size_t begin = is_time(t, ids[from]) ? sample_of(t, ids[from]) : 0, end = sample_of(t, ids[i - 1]);
        rc = give(k, ids + from, i - from, begin, end > begin ? end : begin);
        from = i;
        if (pair) last = end;
    }
    if (from == 0 && rc == 0) { /* no whole segment: all of the window is one */
        size_t end = t->n_window, begin = n > 0 && is_time(t, ids[0]) ? sample_of(t, ids[0]) : 0;
        for (size_t i = 1; i < n; i++)
            if (is_time(t, ids[i]) && sample_of(t, ids[i]) > begin) end = sample_of(t, ids[i]);
        return give(k, ids, n, begin, end);
    }
    if (!ends_single && last > 0) *ret = last;
    return rc;
}

static void note_language(transcription *t, const int32_t *ids, size_t n)
{
    if (t->language || !t->rule.finds_language || n == 0) return;
    t->language = hearing_language_of(t->h, ids[0]);
    if (!t->language) return;
    t->rule.finds_language = false;
    t->rule.lead[0] = t->language->id;
}

int transcription_take(transcription *t, heard_fn fn, void *user, shoal_err *err)
{
    const int32_t *ids = (const int32_t *)(const void *)t->ids.data;
    size_t n = t->ids.len / sizeof *ids, step = t->n_window, lead = t->rule.n_lead;
    int rc = 0;
    note_language(t, ids, n);
    if (n > 0 && ids[n - 1] == t->h->eot) n--;
    double average = t->n_logprobs ? t->logprob_sum / (double)t->n_logprobs : 0;
    bool nobody = (double)t->rule.no_speech > NO_SPEECH_MIN && average < LOGPROB_MIN;
    taker k = {.t = t,
               .fn = fn,
               .user = user,
               .s = {.window_ms = ms_of(t, t->at),
                     .avg_logprob = average,
                     .no_speech_prob = (double)t->rule.no_speech}};
    if (!nobody && n > lead) {
        rc = t->rule.times ? give_timed(&k, ids + lead, n - lead, &step)
                           : give(&k, ids + lead, n - lead, 0, t->n_window);
    }
    t->at += step;
    return rc ? err_nomem(err) : 0;
}

/* ---- what is known ------------------------------------------------------------------------------- */

const hearing_language *transcription_language(const transcription *t)
{
    return t->language;
}

int64_t transcription_duration_ms(const transcription *t)
{
    return ms_of(t, t->n);
}

int64_t transcription_done_ms(const transcription *t)
{
    return ms_of(t, t->at < t->n ? t->at : t->n);
}
