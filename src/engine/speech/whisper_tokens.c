/* whisper_tokens.c: a model's tokens from generation_config.json and the tokenizer; see whisper_tokens.h. */
#include "speech/whisper_tokens.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "json/json.h"
#include "speech/languages.h"

enum { TICK_HOPS = 2, SUPPRESS_MAX = 4096 };

/* ---- tokens -------------------------------------------------------------------------------------- */

/* The id of a token by its spelling; -1: the tokenizer has none of it. */
static int id_of(const whisper_tokens *h, const char *spelling, int32_t *ret, shoal_err *err)
{
    encoding e = {0};
    *ret = -1;
    if (!h->model) return 0;
    int rc = tokenizer_encode(model_tokenizer(h->model), spelling, strlen(spelling), NULL, 0,
                              TOK_PARSE_SPECIAL, 0, &e, err);
    if (rc == 0) *ret = e.n == 1 && (size_t)e.ids[0] < h->n_vocab ? e.ids[0] : -1;
    encoding_done(&e);
    return rc;
}

/* From the configuration's key, or by one of two spellings. */
static int read_id(whisper_tokens *h, const json_t *config, const char *key, const char *spelling,
                   const char *other, int32_t *ret, shoal_err *err)
{
    int64_t id = -1;
    int rc = key ? json_get_int(config, key, 0, (int64_t)h->n_vocab - 1, &id, err) : 0;
    *ret = (int32_t)id;
    if (rc == 0 && id < 0) rc = id_of(h, spelling, ret, err);
    if (rc == 0 && *ret < 0 && other) rc = id_of(h, other, ret, err);
    return rc;
}

static int read_tokens(whisper_tokens *h, const json_t *config, shoal_err *err)
{
    const json_t *tasks = json_object_get(config, "task_to_id");
    h->transcribe = h->translate = -1;
    int rc = 0;
    if (h->multilingual) rc = read_id(h, tasks, "transcribe", "<|transcribe|>", NULL, &h->transcribe, err);
    if (rc == 0 && h->multilingual)
        rc = read_id(h, tasks, "translate", "<|translate|>", NULL, &h->translate, err);
    if (rc == 0)
        rc = read_id(h, config, "no_timestamps_token_id", "<|notimestamps|>", NULL, &h->no_timestamps, err);
    if (rc == 0) rc = read_id(h, config, "prev_sot_token_id", "<|startofprev|>", NULL, &h->previous, err);
    if (rc == 0) rc = read_id(h, config, NULL, "<|nospeech|>", "<|nocaptions|>", &h->no_speech, err);
    h->time_0 =
        h->no_timestamps >= 0 && (size_t)h->no_timestamps + 1 < h->n_vocab ? h->no_timestamps + 1 : -1;
    int64_t first = h->time_0 >= 0 ? 50 : -1;
    if (rc == 0) rc = json_get_int(config, "max_initial_timestamp_index", 0, 1 << 20, &first, err);
    h->max_first_time = (int32_t)first;
    return rc;
}

/* Ids that the vocabulary does not have cannot come anyway. */
static int read_list(const whisper_tokens *h, const json_t *config, const char *key, int32_t **ret,
                     size_t *ret_n, shoal_err *err)
{
    const json_t *list = json_object_get(config, key);
    if (!list || json_is_null(list)) return 0;
    size_t n = json_array_size(list);
    if (!json_is_array(list) || n > SUPPRESS_MAX)
        return err_set(err, SHOAL_EINVALID, "\"%s\" must be a list of at most %d ids", key, SUPPRESS_MAX);
    *ret = calloc(n + 1, sizeof **ret);
    if (!*ret) return err_nomem(err);
    for (size_t i = 0; i < n; i++) {
        const json_t *v = json_array_get(list, i);
        json_int_t id = json_integer_value(v);
        if (json_is_integer(v) && id >= 0 && (uint64_t)id < h->n_vocab) (*ret)[(*ret_n)++] = (int32_t)id;
    }
    return 0;
}

/* ---- languages ----------------------------------------------------------------------------------- */

static void add_language(whisper_tokens *h, const char *code, int32_t id)
{
    const language *known = language_find(code);
    if (h->n_languages == WHISPER_LANGUAGES_MAX || strlen(code) >= sizeof h->languages->code) return;
    whisper_language *l = &h->languages[h->n_languages++];
    l->id = id;
    snprintf(l->code, sizeof l->code, "%s", code);
    l->name = known ? known->name : "";
}

/* {"<|en|>": 50259, ...} */
static int read_map(whisper_tokens *h, json_t *map, shoal_err *err)
{
    const char *key;
    json_t *v;
    json_object_foreach(map, key, v)
    {
        size_t n = strlen(key);
        char code[8] = "";
        json_int_t id = json_integer_value(v);
        if (n < 5 || n - 4 >= sizeof code || strncmp(key, "<|", 2) != 0 || strcmp(key + n - 2, "|>") != 0 ||
            !json_is_integer(v) || id < 0 || (uint64_t)id >= h->n_vocab)
            return err_set(err, SHOAL_EINVALID, "\"lang_to_id\": \"%.40s\" is no language token", key);
        memcpy(code, key + 2, n - 4);
        add_language(h, code, (int32_t)id);
    }
    return 0;
}

static int find_languages(whisper_tokens *h, shoal_err *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < N_LANGUAGES; i++) {
        char spelling[16];
        int32_t id = -1;
        snprintf(spelling, sizeof spelling, "<|%s|>", LANGUAGES[i].code);
        rc = id_of(h, spelling, &id, err);
        if (rc == 0 && id >= 0) add_language(h, LANGUAGES[i].code, id);
    }
    return rc;
}

static int read_languages(whisper_tokens *h, const json_t *config, shoal_err *err)
{
    json_t *map = json_object_get(config, "lang_to_id");
    h->languages = calloc(WHISPER_LANGUAGES_MAX, sizeof *h->languages);
    if (!h->languages) return err_nomem(err);
    if (!h->multilingual) {
        add_language(h, "en", -1);
        return 0;
    }
    return json_is_object(map) ? read_map(h, map, err) : find_languages(h, err);
}

/* "en-US" and "pt_BR" are "en" and "pt". */
static bool is_code(const char *name, const char *code)
{
    size_t n = strlen(code);
    return strncasecmp(name, code, n) == 0 && (name[n] == '\0' || name[n] == '-' || name[n] == '_');
}

const whisper_language *whisper_tokens_find_language(const whisper_tokens *h, const char *name)
{
    for (size_t i = 0; i < h->n_languages; i++) {
        const whisper_language *l = &h->languages[i];
        if (is_code(name, l->code) || (*l->name && strcasecmp(l->name, name) == 0)) return l;
    }
    return NULL;
}

const whisper_language *whisper_tokens_language_of(const whisper_tokens *h, int32_t id)
{
    for (size_t i = 0; i < h->n_languages; i++)
        if (h->languages[i].id == id) return &h->languages[i];
    return NULL;
}

/* ---- features ------------------------------------------------------------------------------------ */

static int read_features(whisper_tokens *h, const json_t *config, size_t n_mels, size_t n_frames,
                         shoal_err *err)
{
    size_t chunk = 0;
    mel *probe = NULL;
    h->mel = (mel_options){.n_mels = (uint32_t)n_mels};
    int rc = config ? mel_read_config(&h->mel, &chunk, config, err) : 0;
    if (rc == 0 && h->mel.n_mels != n_mels)
        rc = err_set(err, SHOAL_EINVALID, "features of %u bands for a model of %zu", h->mel.n_mels, n_mels);
    if (rc == 0) rc = mel_new(&probe, &h->mel, err);
    if (rc != 0) return rc;
    h->mel = *mel_settings(probe);
    mel_free(probe);
    h->n_frames = n_frames;
    h->tick = (size_t)h->mel.hop * TICK_HOPS;
    if (size_mul(h->n_frames, h->mel.hop, &h->n_window) || (chunk && chunk != h->n_window))
        return err_set(err, SHOAL_EINVALID, "a window of %zu samples for a model of %zu frames", chunk,
                       h->n_frames);
    return 0;
}

static int whisper_tokens_parse(json_t **ret, const char *text, const char *what, shoal_err *err)
{
    int rc = text ? json_parse(ret, text, strlen(text), what, err) : 0;
    if (rc == 0 && *ret && !json_is_object(*ret))
        rc = err_set(err, SHOAL_EFORMAT, "%s: not a JSON object", what);
    return rc;
}

static int whisper_tokens_read_all(whisper_tokens *h, const json_t *generation, shoal_err *err)
{
    h->multilingual = true;
    int rc = json_get_bool(generation, "is_multilingual", &h->multilingual, err);
    if (rc == 0) rc = read_tokens(h, generation, err);
    if (rc == 0) rc = read_languages(h, generation, err);
    if (rc == 0) rc = read_list(h, generation, "suppress_tokens", &h->never, &h->n_never, err);
    if (rc == 0)
        rc = read_list(h, generation, "begin_suppress_tokens", &h->never_first, &h->n_never_first, err);
    return rc;
}

int whisper_tokens_read(whisper_tokens *h, const char *generation_json, const char *preprocessor_json,
                        size_t n_mels, size_t n_frames, shoal_err *err)
{
    json_t *generation = NULL, *features = NULL;
    int rc = whisper_tokens_parse(&generation, generation_json, "generation_config.json", err);
    if (rc == 0) rc = whisper_tokens_parse(&features, preprocessor_json, "preprocessor_config.json", err);
    if (rc == 0) rc = read_features(h, features, n_mels, n_frames, err);
    if (rc == 0) rc = whisper_tokens_read_all(h, generation, err);
    json_decref(generation);
    json_decref(features);
    return rc;
}

int whisper_tokens_init(whisper_tokens *ret, const model *m, shoal_err *err)
{
    const model_config *c = model_get_config(m);
    *ret = (whisper_tokens){.model = m, .n_vocab = c->n_vocab, .n_ctx = c->n_ctx, .sot = c->start_id};
    if (c->task != TASK_TRANSCRIBE || c->source.n_mel == 0 || c->n_eos == 0)
        return err_set(err, SHOAL_EUNSUPPORTED, "%s does not turn speech into text", model_name(m));
    if (!model_tokenizer(m))
        return err_set(err, SHOAL_EUNSUPPORTED, "%s: %s", model_name(m), model_tokenizer_error(m));
    ret->eot = c->eos_ids[0];
    int rc = whisper_tokens_read(ret, model_generation_json(m), model_preprocessor_json(m), c->source.n_mel,
                                 2 * c->source.n_ctx, err);
    return rc ? err_prefix(err, rc, "%s", model_name(m)) : 0;
}

void whisper_tokens_done(whisper_tokens *h)
{
    free(h->languages);
    free(h->never);
    free(h->never_first);
    *h = (whisper_tokens){0};
}
