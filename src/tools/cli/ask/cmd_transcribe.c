/* shoal transcribe MODEL FILE: what is said in a sound file, as it is heard. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "logging/sanitise.h"
#include "base/utf8.h"
#include "cli/commands.h"
#include "command/cli_model.h"
#include "formats/captions.h"
#include "speech/transcriber.h"

#define FILE_MAX ((size_t)1 << 30)

/* Segments as they come; their texts and ids lie one after the other. */
typedef struct transcript_out {
    captions_format format;
    bool live; /* plain text goes out at once */
    bool times;
    bool progress; /* on the terminal */
    size_t n_heard;
    buf segments, texts, ids;
} transcript_out;

static void show_progress(void *user, const transcription *t)
{
    const transcript_out *o = user;
    int64_t done = transcription_done_ms(t), all = transcription_duration_ms(t);
    if (o->progress && done < all)
        fprintf(stderr, "\r%lld:%02lld of %lld:%02lld ", (long long)(done / 60000),
                (long long)(done / 1000 % 60), (long long)(all / 60000), (long long)(all / 1000 % 60));
}

/* In one line: what ends lines, or commands a terminal, is a space between words. */
static void put_words(const char *s)
{
    uint32_t cp;
    for (size_t left = strlen(s), n; left > 0; s += n, left -= n) {
        size_t bad = sanitise_control(s, left);
        n = bad ? bad : utf8_decode(s, left, &cp);
        cli_write(bad ? " " : s, bad ? 1 : n);
    }
}

static void print_line(const transcript_out *o, const heard_segment *s)
{
    const char *text = s->text;
    while (*text == ' ') text++;
    if (o->progress) fputs("\r\033[K", stderr);
    if (o->times) printf("[%8.2f %8.2f]  ", (double)s->start_ms / 1000, (double)s->end_ms / 1000);
    put_words(text);
    putchar('\n');
    fflush(stdout);
}

static void on_segment(void *user, const heard_segment *s)
{
    transcript_out *o = user;
    o->n_heard++;
    if (o->live) {
        print_line(o, s);
        return;
    }
    caption c = {.start_ms = s->start_ms,
                 .end_ms = s->end_ms,
                 .seek = s->window_ms / 10,
                 .len = s->len,
                 .n_ids = s->n_ids,
                 .temperature = s->temperature,
                 .avg_logprob = s->avg_logprob,
                 .compression_ratio = s->compression_ratio,
                 .no_speech_prob = s->no_speech_prob};
    buf_append(&o->segments, &c, sizeof c);
    buf_append(&o->texts, s->text, s->len);
    buf_append(&o->ids, s->ids, s->n_ids * sizeof *s->ids);
}

static int print_captions(transcript_out *o, const transcription *t, bool translated, shoal_err *err)
{
    const whisper_language *l = transcription_language(t);
    caption *c = (caption *)(void *)o->segments.data;
    size_t n = o->segments.len / sizeof *c, at = 0, at_id = 0;
    for (size_t i = 0; i < n; i++) {
        c[i].text = o->texts.data + at;
        c[i].ids = (const uint32_t *)(const void *)o->ids.data + at_id;
        at += c[i].len;
        at_id += c[i].n_ids;
    }
    transcript all = {.translated = translated,
                      .language = l && *l->name ? l->name : NULL,
                      .duration_ms = transcription_duration_ms(t),
                      .segments = c,
                      .n_segments = n};
    buf out = {0};
    int rc = o->segments.failed || o->texts.failed || o->ids.failed ? SHOAL_ENOMEM
                                                                    : captions_write(&out, o->format, &all);
    bool ends_line = out.len && out.data[out.len - 1] == '\n';
    if (rc == 0) cli_write(out.data, out.len);
    if (rc == 0 && !ends_line) putchar('\n');
    buf_done(&out);
    return rc ? err_nomem(err) : 0;
}

/* *file holds what the sound is decoded from. */
static int open_sound(const char *path, uint32_t rate, buf *file, sound **ret, shoal_err *err)
{
    audio_options o = {.rate = rate, .max_bytes = FILE_MAX, .max_seconds = 24 * 3600};
    sound *s = NULL;
    int rc = file_read(file, strcmp(path, "-") == 0 ? "/dev/stdin" : path, FILE_MAX, err);
    if (rc == 0) rc = sound_open(&s, file->data ? file->data : "", file->len, &o, err);
    if (rc == 0) rc = sound_measure(s, err);
    if (rc == 0)
        *ret = s;
    else
        sound_free(s);
    return rc ? err_prefix(err, rc, "%s", path) : 0;
}

static int hear(const cli_engine *ce, const char *path, const transcription_options *to, transcript_out *o,
                shoal_err *err)
{
    whisper_tokens h = {0};
    transcription *t = NULL;
    sound *s = NULL;
    buf file = {0};
    int rc = whisper_tokens_init(&h, ce->m, err);
    if (rc == 0) rc = open_sound(path, h.mel.rate, &file, &s, err);
    if (rc == 0) rc = transcription_new(&t, &h, s, to, err);
    if (rc == 0) rc = transcriber_run(ce->e, t, on_segment, show_progress, o, err);
    if (o->progress) fputs("\r\033[K", stderr);
    if (rc == 0 && o->n_heard == 0)
        fprintf(stderr, "%s: no speech was found%s\n", path,
                to->no_vad ? "" : "; --no-vad lets the model hear everything");
    if (rc == 0 && !o->live) rc = print_captions(o, t, to->translate, err);
    transcription_free(t);
    buf_done(&file);
    whisper_tokens_done(&h);
    buf_done(&o->segments);
    buf_done(&o->texts);
    buf_done(&o->ids);
    return rc;
}

static int cmd_transcribe_run(int argc, char **argv)
{
    cli_model_options mo = {0};
    const char *format = NULL, *language = NULL, *prompt = NULL;
    bool translate = false, times = false, json = false, no_vad = false, full_window = false;
    const cli_option options[] = {
        CLI_STRING('f', "format", "F", "text, json, srt, vtt or verbose_json [text, as it is heard]",
                   &format),
        CLI_STRING('l', "language", "L", "code or English name [the likeliest]", &language),
        CLI_FLAG(0, "translate", "into English", &translate),
        CLI_FLAG(0, "timestamps", "begin and end of each line, in seconds", &times),
        CLI_STRING('p', "prompt", "TEXT", "words and spellings that the sound may hold", &prompt),
        CLI_FLAG(0, "no-vad", "let the model hear silence, noise and music, too", &no_vad),
        CLI_FLAG(0, "full-window", "compute the whole window of short sound, too", &full_window),
        CLI_MODEL_OPTIONS(&mo),
        CLI_FLAG(0, "json", "the same as --format verbose_json", &json),
        CLI_END,
    };
    cli_args a;
    int rc = cli_parse(&a, &cmd_transcribe, options, 2, 2, argc, argv);
    if (rc != CLI_GO) return rc;
    shoal_err err = {0};
    if (json && !format) format = captions_name(CAPTIONS_VERBOSE_JSON);
    transcript_out o = {.live = !format, .times = times, .progress = isatty(STDERR_FILENO)};
    cli_engine ce = {0};
    rc = 0;
    if (format && !captions_parse(format, &o.format))
        rc = err_set(&err, SHOAL_EINVALID, "--format wants text, json, srt, vtt or verbose_json, not \"%s\"",
                     format);
    if (rc == 0) rc = cli_engine_open(&ce, a.v[0], &mo, true, &err);
    transcription_options to = {.language = language,
                                .translate = translate,
                                .prompt = prompt,
                                .full_window = full_window,
                                .no_vad = no_vad};
    to.times = times || (format && o.format != CAPTIONS_JSON && o.format != CAPTIONS_TEXT);
    if (rc == 0) to.n_ctx = engine_ctx(ce.e);
    if (rc == 0) rc = hear(&ce, a.v[1], &to, &o, &err);
    if (rc != 0) rc = cli_fail(&cmd_transcribe, &err);
    cli_engine_close(&ce);
    return rc;
}

const cli_command cmd_transcribe = {"transcribe", "write down what is said in a sound file", "MODEL FILE|-",
                                    cmd_transcribe_run, false};
