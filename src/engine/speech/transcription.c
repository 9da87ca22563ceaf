/* transcription.c: windows, requests and segments; see transcription.h. */
#include "speech/transcription.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/clock.h"
#include "speech/phrases.h"
#include "speech/rule.h"
#include "speech/trimmed.h"

/* The thresholds of the reference. Nobody speaks when the model thinks so and is not sure of its words
 * either; a text that compresses well repeats itself. */
#define NO_SPEECH_MIN   0.6
#define LOGPROB_MIN     (-1.0)
#define COMPRESSION_MAX 2.4
/* Of a window that was computed in part. */
#define DOUBTFUL_LOGPROB (-0.3)

enum { PAUSE_MS = 1000, SENTENCE_PAUSE_MS = 200 }; /* longer ones are taken out */
enum { TAIL_MS = 100, QUIET_MS = 300, QUIET_STEP_MS = 30, OVERLAP_MS = 1500 };
/* Of the positions that the encoder computes, 20 ms each: behind the sound, at least, and a multiple of. */
enum { MARGIN = 128, LEAST = 512, STEP = 64 };
/* 0, 0.2 ... 1.0, as long as a reply looks wrong. */
enum { N_ATTEMPTS = 6, ATTEMPT_STEP = 2 };
#define QUIET_SHARE 0.003 /* of the window's mean energy (25 dB below it): no word lies in such a moment */

/* A reply, and how it looks. */
typedef struct reply {
    buf ids;            /* int32_t, language and task in front */
    double logprob_sum; /* of its text, the end included */
    size_t n_logprobs;
    double words_sum; /* and without time tokens, which are less likely than words */
    size_t n_words;
    double average, compression;
    float temperature, no_speech;
} reply;

struct transcription {
    const whisper_tokens *h;
    transcription_options o;
    const whisper_language *language;
    sound *sound;
    trimmed *trimmed;
    size_t n;        /* samples in all */
    int32_t *prompt; /* [n_prompt], ends with <|startoftranscript|> */
    size_t n_prompt;
    mel *mel;
    float *bands, *frames; /* [n_mels][n_frames] and [n_frames][n_mels] */
    speech_rule rule;
    size_t at, n_window; /* the window, in the trimmed sound */
    size_t next;         /* where the one behind it begins, unless time tokens say */
    size_t n_repeated;   /* of its samples, those that the one before it heard, too */
    const float *x;      /* [n_window], the trimmed sound's */
    size_t n_windows;
    size_t
        n_frames; /* of the window's, that the encoder computes; fewer than all at first, where it is short */
    size_t attempt; /* at this window's reply, from 0 */
    bool again;     /* the window is to be heard at another temperature */
    reply now, best;
    buf text, heard; /* of a segment; of the window before */
    bool owes_blank; /* the last segment ended with one */
};

/* ---- life ---------------------------------------------------------------------------------------- */

/* <|startofprev|>, the last words of the prompt, <|startoftranscript|>. */
static int make_prompt(transcription *t, shoal_err *err)
{
    const whisper_tokens *h = t->h;
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

static int refuse_language(const whisper_tokens *h, const char *name, shoal_err *err)
{
    buf known = {0};
    for (size_t i = 0; i < h->n_languages; i++)
        buf_printf(&known, "%s%s", i ? ", " : "; it knows ", h->languages[i].code);
    int rc = err_set(err, SHOAL_EINVALID, "the model does not know the language \"%.40s\"%s", name,
                     known.data && !known.failed ? known.data : "");
    buf_done(&known);
    return rc;
}

static int check_options(transcription *t, shoal_err *err)
{
    const whisper_tokens *h = t->h;
    const char *name = t->o.language;
    if (t->o.translate && (h->translate < 0 || !h->multilingual))
        return err_set(err, SHOAL_EINVALID, "%s does not translate%s", model_name(h->model),
                       h->multilingual ? "" : ": it knows English alone");
    if (!name || !*name || strcasecmp(name, "auto") == 0) return 0;
    t->language = whisper_tokens_find_language(h, name);
    return t->language ? 0 : refuse_language(h, name, err);
}

static int transcription_make_room(transcription *t, shoal_err *err)
{
    size_t n;
    if (size_mul(t->h->n_frames, t->h->mel.n_mels, &n)) return err_nomem(err);
    t->bands = mem_calloc64(n, sizeof *t->bands);
    t->frames = mem_calloc64(n, sizeof *t->frames);
    if (!t->bands || !t->frames) return err_nomem(err);
    return mel_new(&t->mel, &t->h->mel, err);
}

/* A model that hears one piece of speech at a time hears sentences better alone than two at once. */
static size_t pause_of(const transcription *t)
{
    size_t ms = t->h->time_0 < 0 ? SENTENCE_PAUSE_MS : PAUSE_MS;
    return (size_t)t->h->mel.rate * ms / 1000;
}

int transcription_new(transcription **ret, const whisper_tokens *h, sound *s, const transcription_options *o,
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
    if (rc == 0) rc = trimmed_new(&t->trimmed, s, h->mel.rate, pause_of(t), !o->no_vad, err);
    if (rc == 0) rc = make_prompt(t, err);
    if (rc == 0) rc = transcription_make_room(t, err);
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
    trimmed_free(t->trimmed);
    sound_free(t->sound);
    free(t->prompt);
    mel_free(t->mel);
    free(t->bands);
    free(t->frames);
    buf_done(&t->now.ids);
    buf_done(&t->best.ids);
    buf_done(&t->text);
    buf_done(&t->heard);
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

/* The middle of the quietest moment in the last third of a window, the latest among equals; *ret_quiet: so
 * quiet that no word is cut there. */
static size_t quietest(const transcription *t, bool *ret_quiet)
{
    size_t n = t->h->n_window, len = samples_of(t, QUIET_MS), step = samples_of(t, QUIET_STEP_MS), best = n;
    double least = 0;
    for (size_t i = n - n / 3; step > 0 && i + len <= n; i += step) {
        double e = energy(t->x + i, len);
        if (best != n && e > least) continue;
        least = e;
        best = i + len / 2;
    }
    *ret_quiet = best != n && least / (double)len <= QUIET_SHARE * energy(t->x, n) / (double)n;
    return best;
}

/* A model with time tokens says itself where its words end, so one of them may hear many pieces of speech at
 * once and, where there is more, as many whole ones as fill half of a window. Another one hears a piece at a
 * time, and a long one with some of it twice where no pause can be cut. */
static void transcription_cut(transcription *t, size_t n)
{
    size_t most = t->h->n_window, seam = 0;
    bool times = t->rule.times, quiet = true;
    t->n_window = n < most ? n : most;
    if (times && n > most) {
        for (size_t k = t->at + most / 2; (k = trimmed_seam(t->trimmed, k, t->at + most)) > 0;) seam = k;
    } else if (t->h->time_0 < 0) {
        seam = trimmed_seam(t->trimmed, t->at, t->at + t->n_window);
    }
    if (seam > 0)
        t->n_window = seam - t->at;
    else if (n > most && !times)
        t->n_window = quietest(t, &quiet);
    t->next = t->at + t->n_window;
    if (!quiet && t->n_window > 2 * samples_of(t, OVERLAP_MS)) t->next -= samples_of(t, OVERLAP_MS);
}

/* The next window; n_window 0: nobody says anything any more. */
static int cut_window(transcription *t, shoal_err *err)
{
    size_t n, least = samples_of(t, TAIL_MS);
    int rc = trimmed_view(t->trimmed, t->at, t->h->n_window + 1, &t->x, &n, err);
    if (rc != 0) return rc;
    t->n_window = 0;
    if (n > (t->at > 0 ? least : 0)) transcription_cut(t, n);
    return 0;
}

/* Frames behind the sound are zeros for models with time tokens, OpenAI's checkpoints and what was made of
 * these, as faster-whisper has them: with the features of silence there, tiny.en gets 46 % of the words of
 * the tests' recordings wrong instead of 35 % (docs/speech.md). Others were trained on silence. */
static int hear_window(transcription *t, shoal_err *err)
{
    const whisper_tokens *h = t->h;
    size_t n_mels = h->mel.n_mels, sounding = (t->n_window + h->mel.hop - 1) / h->mel.hop;
    int rc = mel_whisper(t->mel, t->x, t->n_window, h->n_window, t->bands, err);
    if (h->time_0 < 0) sounding = h->n_frames;
    for (size_t i = 0; rc == 0 && i < h->n_frames; i++)
        for (size_t k = 0; k < n_mels; k++)
            t->frames[i * n_mels + k] = i < sounding ? t->bands[k * h->n_frames + i] : 0;
    return rc;
}

bool transcription_shortens(const whisper_tokens *h)
{
    return h->time_0 >= 0;
}

/* How much of the window the encoder computes at first: the sound and a margin, or all where that is most of it.
 * OpenAI's checkpoints were trained on whole windows. In parts of a few seconds they say a sentence again and
 * again; from ten seconds on this is rare enough to hear such a window again. In parts of 17 to 20 s they left
 * out sentences, and nothing of the reply told so (bench/runs/2026-11-30-whisper.md). */
static size_t frames_of_speech(const transcription *t)
{
    const whisper_tokens *h = t->h;
    size_t n = (t->n_window + h->tick - 1) / h->tick + MARGIN;
    if (n < LEAST) n = LEAST;
    n = (n + STEP - 1) / STEP * STEP * (h->tick / h->mel.hop);
    return 2 * n > h->n_frames ? h->n_frames : n;
}

static void set_frames(transcription *t, size_t n)
{
    t->n_frames = n;
    t->rule.ends_loops = n < t->h->n_frames;
}

static void clear(reply *r)
{
    buf ids = r->ids;
    buf_clear(&ids);
    *r = (reply){.ids = ids};
}

int transcription_next(transcription *t, shoal_err *err)
{
    clear(&t->now);
    t->rule.no_speech = 0;
    if (t->again) {
        t->again = false;
        return 1;
    }
    t->attempt = 0;
    int rc = cut_window(t, err);
    if (rc == 0 && t->n_window == 0) {
        t->at = SIZE_MAX;
        return 0;
    }
    if (rc == 0) rc = hear_window(t, err);
    bool full = t->o.full_window || !transcription_shortens(t->h);
    set_frames(t, full ? t->h->n_frames : frames_of_speech(t));
    t->n_windows++;
    return rc ? rc : 1;
}

static float temperature_of(const transcription *t)
{
    return t->attempt ? (float)(t->attempt * ATTEMPT_STEP) / 10 : t->o.temperature;
}

/* Another one for each window and attempt, and the same for the same sound. */
static uint64_t seed_of(const transcription *t)
{
    return t->attempt ? t->o.seed ^ rng_mix((uint64_t)t->at * N_ATTEMPTS + t->attempt) : t->o.seed;
}

void transcription_request(transcription *t, gen_request *ret, enc_request *ret_source)
{
    const whisper_tokens *h = t->h;
    *ret_source = (enc_request){.features = t->frames, .n_features = t->n_frames, .width = h->mel.n_mels};
    *ret = (gen_request){.ids = t->prompt,
                         .n_ids = t->n_prompt,
                         .source = ret_source,
                         .sampling = {.temperature = temperature_of(t), .seed = seed_of(t)},
                         .logprobs = true,
                         .rule = {speech_rule_mask, &t->rule},
                         .deadline_ns = t->o.deadline_ns};
}

static bool is_time(const transcription *t, int32_t id)
{
    return t->h->time_0 >= 0 && id >= t->h->time_0;
}

int transcription_add(transcription *t, int32_t id, float logprob)
{
    reply *r = &t->now;
    if (r->ids.len / sizeof id >= t->rule.n_lead) {
        r->logprob_sum += (double)logprob;
        r->n_logprobs++;
        if (!is_time(t, id)) {
            r->words_sum += (double)logprob;
            r->n_words++;
        }
    }
    return buf_append(&r->ids, &id, sizeof id);
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

/* The sample of a time token, inside the window. */
static size_t sample_of(const transcription *t, int32_t id)
{
    size_t at = (size_t)(id - t->h->time_0) * t->h->tick;
    return at < t->n_window ? at : t->n_window;
}

/* The text of ids, time tokens left out, behind what is in *ret. */
static int decode(const transcription *t, const int32_t *ids, size_t n, buf *ret)
{
    for (size_t i = 0; i < n;) { /* runs of text between times */
        size_t end = i;
        while (end < n && !is_time(t, ids[end])) end++;
        if (end > i && tokenizer_decode(model_tokenizer(t->h->model), ids + i, end - i, false, ret))
            return SHOAL_ENOMEM;
        i = end + 1;
    }
    return ret->failed ? SHOAL_ENOMEM : 0;
}

static bool transcription_is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* A text's blanks at its end go in front of the next one, if that has none. */
static int move_blanks(transcription *t)
{
    buf *b = &t->text;
    if (t->owes_blank && b->len > 0 && !transcription_is_blank(*b->data)) {
        if (buf_putc(b, ' ')) return SHOAL_ENOMEM;
        memmove(b->data + 1, b->data, b->len - 1);
        *b->data = ' ';
    }
    size_t n = b->len;
    while (n > 0 && transcription_is_blank(b->data[n - 1])) n--;
    if (n > 0) t->owes_blank = n < b->len;
    b->len = n;
    return 0;
}

/* Words between two samples of the window. */
static int transcription_give(taker *k, const int32_t *ids, size_t n, size_t from, size_t to)
{
    transcription *t = k->t;
    heard_segment s = k->s;
    buf_clear(&t->text);
    if (decode(t, ids, n, &t->text) != 0 || move_blanks(t) != 0) return SHOAL_ENOMEM;
    if (t->text.len == 0) return 0;
    if (buf_putc(&t->text, '\0')) return SHOAL_ENOMEM;
    s.start_ms = ms_of(t, trimmed_origin(t->trimmed, t->at + from));
    s.end_ms = ms_of(t, trimmed_origin_of_end(t->trimmed, t->at + to));
    s.text = t->text.data;
    s.len = t->text.len - 1;
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
        rc = transcription_give(k, ids + from, i - from, begin, end > begin ? end : begin);
        from = i;
        if (pair) last = end;
    }
    if (from == 0 && rc == 0) { /* no whole segment: all of the window is one */
        size_t end = t->n_window, begin = n > 0 && is_time(t, ids[0]) ? sample_of(t, ids[0]) : 0;
        for (size_t i = 1; i < n; i++)
            if (is_time(t, ids[i]) && sample_of(t, ids[i]) > begin) end = sample_of(t, ids[i]);
        return transcription_give(k, ids, n, begin, end);
    }
    if (!ends_single && last > 0) *ret = last;
    return rc;
}

/* The ids behind those whose text is the first n bytes. */
static int skip_text(transcription *t, const int32_t *ids, size_t n_ids, size_t n, size_t *ret)
{
    *ret = 0;
    for (size_t i = 1; i <= n_ids; i++) {
        buf_clear(&t->text);
        if (decode(t, ids, i, &t->text) != 0) return SHOAL_ENOMEM;
        if (t->text.len > n) break;
        *ret = i;
    }
    return 0;
}

/* All of the window, as the model does not say when it heard what. Of a window that begins within the one
 * before, the words that came are left out; when these cannot be told, it is heard again from that one's end
 * on. *ret is where the next one begins. */
static int give_whole(taker *k, const int32_t *ids, size_t n, size_t *ret)
{
    transcription *t = k->t;
    size_t skip = 0;
    buf_clear(&t->text);
    int rc = decode(t, ids, n, &t->text);
    size_t same = rc == 0 && t->n_repeated > 0
                      ? phrases_repeated(t->heard.data, t->heard.len, t->text.data, t->text.len)
                      : 0;
    buf_clear(&t->heard);
    if (rc == 0 && t->n_repeated > 0 && t->text.len > 0 && same == 0) {
        *ret = t->n_repeated;
        return 0;
    }
    if (rc == 0) rc = buf_append(&t->heard, t->text.data, t->text.len);
    if (rc == 0 && same > 0) rc = skip_text(t, ids, n, same, &skip);
    return rc ? rc : transcription_give(k, ids + skip, n - skip, t->n_repeated, t->n_window);
}

/* ---- replies ------------------------------------------------------------------------------------- */

static void note_language(transcription *t, const int32_t *ids, size_t n)
{
    if (t->language || !t->rule.finds_language || n == 0) return;
    t->language = whisper_tokens_language_of(t->h, ids[0]);
    if (!t->language) return;
    t->rule.finds_language = false;
    t->rule.lead[0] = t->language->id;
}

static const int32_t *ids_of(const reply *r, size_t *ret_n)
{
    *ret_n = r->ids.len / sizeof(int32_t);
    return (const int32_t *)(const void *)r->ids.data;
}

/* What is left without the language and the task in front and the end behind. */
static const int32_t *text_ids(const transcription *t, const reply *r, size_t *ret_n)
{
    size_t n, lead = t->rule.n_lead;
    const int32_t *ids = ids_of(r, &n);
    if (n > 0 && ids[n - 1] == t->h->eot) n--;
    *ret_n = n > lead ? n - lead : 0;
    return n > lead ? ids + lead : NULL;
}

static int transcription_judge(transcription *t)
{
    reply *r = &t->now;
    size_t n;
    const int32_t *ids = text_ids(t, r, &n);
    r->average = r->n_logprobs ? r->logprob_sum / (double)r->n_logprobs : 0;
    r->no_speech = t->rule.no_speech;
    r->temperature = temperature_of(t);
    buf_clear(&t->text);
    if (decode(t, ids, n, &t->text) != 0) return SHOAL_ENOMEM;
    return phrases_compression(t->text.data, t->text.len, &r->compression);
}

static bool says_nothing(const reply *r)
{
    return (double)r->no_speech > NO_SPEECH_MIN && r->average < LOGPROB_MIN;
}

static bool looks_wrong(const reply *r)
{
    return !says_nothing(r) && (r->compression > COMPRESSION_MAX || r->average < LOGPROB_MIN);
}

/* A reply that does not repeat itself before one that does, then the likelier one. */
static bool is_better(const reply *a, const reply *b)
{
    bool a_loops = a->compression > COMPRESSION_MAX, b_loops = b->compression > COMPRESSION_MAX;
    return a_loops != b_loops ? b_loops : a->average > b->average;
}

static void keep_best(transcription *t)
{
    if (t->attempt > 0 && looks_wrong(&t->now) && !is_better(&t->now, &t->best)) return;
    reply worse = t->best;
    t->best = t->now;
    t->now = worse;
}

static int give_reply(transcription *t, taker *k, size_t *ret)
{
    reply *r = &t->best;
    size_t n;
    int32_t *ids = (int32_t *)(uintptr_t)text_ids(t, r, &n);
    if (says_nothing(r) || n == 0) {
        buf_clear(&t->heard);
        return 0;
    }
    if (r->compression > COMPRESSION_MAX && phrases_drop_loops(ids, &n, t->h->time_0) != 0)
        return SHOAL_ENOMEM;
    return t->rule.times ? give_timed(k, ids, n, ret) : give_whole(k, ids, n, ret);
}

/* Was less than the whole window too little to hear? Of a reply that says nothing, too, only the whole window
 * is believed. */
static bool is_doubtful(const transcription *t)
{
    const reply *r = &t->now;
    size_t n_all, n;
    const int32_t *all = ids_of(r, &n_all), *ids = text_ids(t, r, &n);
    bool ended = n_all > 0 && all[n_all - 1] == t->h->eot;
    return !ended || t->text.len == 0 || r->compression > COMPRESSION_MAX ||
           r->words_sum < DOUBTFUL_LOGPROB * (double)r->n_words || speech_rule_repeats(ids, n);
}

int transcription_take(transcription *t, heard_fn fn, void *user, shoal_err *err)
{
    size_t n, step = t->next - t->at;
    const int32_t *ids = ids_of(&t->now, &n);
    if (transcription_judge(t) != 0) return err_nomem(err);
    if (t->n_frames < t->h->n_frames && is_doubtful(t)) {
        set_frames(t, t->h->n_frames);
        t->again = true;
        return 0;
    }
    note_language(t, ids, n);
    bool wrong = looks_wrong(&t->now);
    keep_best(t);
    if (wrong && !(t->o.temperature > 0) && t->attempt + 1 < N_ATTEMPTS) {
        t->attempt++;
        t->again = true;
        return 0;
    }
    taker k = {.t = t,
               .fn = fn,
               .user = user,
               .s = {.window_ms = ms_of(t, trimmed_origin(t->trimmed, t->at)),
                     .avg_logprob = t->best.average,
                     .compression_ratio = t->best.compression,
                     .temperature = (double)t->best.temperature,
                     .no_speech_prob = (double)t->best.no_speech}};
    int rc = give_reply(t, &k, &step);
    size_t end = t->at + t->n_window;
    t->at += step;
    t->n_repeated = t->heard.len > 0 && end > t->at ? end - t->at : 0;
    return rc ? err_nomem(err) : 0;
}

/* ---- what is known ------------------------------------------------------------------------------- */

const whisper_language *transcription_language(const transcription *t)
{
    return t->language;
}

int64_t transcription_duration_ms(const transcription *t)
{
    return ms_of(t, t->n);
}

int64_t transcription_done_ms(const transcription *t)
{
    size_t passed = t->at == SIZE_MAX ? t->n : trimmed_passed(t->trimmed, t->at);
    return ms_of(t, passed < t->n ? passed : t->n);
}

size_t transcription_windows(const transcription *t)
{
    return t->n_windows;
}

size_t transcription_bytes(const whisper_tokens *h)
{
    /* The trimmed window in a buffer that doubles, and what is not decided about. */
    return (2 * h->n_window + 10 * (size_t)h->mel.rate) * sizeof(float);
}
