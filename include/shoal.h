/* shoal.h: run small language models inside your own process.
 *
 * The mental model: a shoal_model is a loaded file plus an engine with its own threads. Calls on
 * one model may come from any thread and run together in one batch; a call blocks its caller until
 * the answer is whole. Nothing is global: two models share no state.
 *
 *     shoal_err err;
 *     shoal_model *m = NULL;
 *     if (shoal_model_open(&m, "models/home-embed.gguf", NULL, &err) != 0) {
 *         fprintf(stderr, "%s\n", err.message);
 *         return 1;
 *     }
 *     shoal_embedding e = {0};
 *     if (shoal_embed(m, "good morning", &e, &err) == 0) printf("%zu floats\n", e.n);
 *     shoal_embedding_done(&e);
 *     shoal_model_close(m);
 *
 * Errors: every call returns 0 or one of the negative codes below. `err` may be NULL; when it is
 * given and the call fails, err->message is one sentence for a person. Outputs are untouched on
 * failure. Text is UTF-8; offsets are given in bytes and in code points. */
#ifndef SHOAL_H
#define SHOAL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* X(name, code, what it means to a person) */
#define SHOAL_ERROR_TABLE(X)                                            \
    X(SHOAL_EINVALID, -1, "the request or an argument is wrong")        \
    X(SHOAL_ENOMEM, -2, "out of memory")                                \
    X(SHOAL_EIO, -3, "a file or socket could not be read or written")   \
    X(SHOAL_ENOTFOUND, -4, "no such file, model or name")               \
    X(SHOAL_EFORMAT, -5, "the file or message is malformed")            \
    X(SHOAL_EUNSUPPORTED, -6, "well formed, but not supported")         \
    X(SHOAL_ELIMIT, -7, "over a configured or hard limit")              \
    X(SHOAL_EFULL, -8, "no room now, try again later")                  \
    X(SHOAL_ECANCELLED, -9, "cancelled by the caller")                  \
    X(SHOAL_EDEADLINE, -10, "the deadline cannot be met or was missed") \
    X(SHOAL_EDIGEST, -11, "the file is not the one that was pinned")    \
    X(SHOAL_EUNAVAILABLE, -12, "the worker or server is not there")     \
    X(SHOAL_EAUTH, -13, "not allowed")                                  \
    X(SHOAL_EPROTOCOL, -14, "the peer broke the protocol")              \
    X(SHOAL_EINTERNAL, -15, "a defect in Shoal")

enum {
    SHOAL_OK = 0,
#define SHOAL_ERROR_ENUM(name, code, text) name = code,
    SHOAL_ERROR_TABLE(SHOAL_ERROR_ENUM)
#undef SHOAL_ERROR_ENUM
};

typedef struct shoal_err {
    int code;          /* 0 or a negative SHOAL_E... */
    char message[512]; /* one sentence, NUL-terminated, UTF-8 */
} shoal_err;

/* The name ("SHOAL_EIO") and the meaning of a code; never NULL. */
const char *shoal_err_name(int code);
const char *shoal_err_text(int code);

/* ---- models ---------------------------------------------------------------------------------- */

typedef struct shoal_model shoal_model;

/* Zero means the default in brackets. */
typedef struct shoal_options {
    int n_threads;   /* [all cores that this process may use] */
    size_t n_ctx;    /* tokens of prompt and reply together [the model's] */
    size_t kv_bytes; /* ceiling of the key/value cache, shared by all calls [room for one of n_ctx, or 8,192,
                         * tokens; at most half of the free memory] */
    const char *sha256; /* hex; a GGUF file with another digest is refused [not checked] */
    /* A LoRA adapter (a PEFT folder or a GGUF file) that every call runs with, unless it names another
     * [none], and a factor on its effect [1]. */
    const char *adapter;
    float adapter_strength;
    /* Folder in which a server of this user keeps packed weights (its packed.folder): a model that is there
     * starts without packing. Nothing is written [none]. */
    const char *packed;
    /* What keys and values are kept as: "f32", "f16" or "q8_0" (int8: half the memory of "f16", faster behind
     * long texts, a little less exact) [f16 of quantised weights, else f32]. */
    const char *kv_type;
    /* A type with wide groups that the matrices are brought to when it is loaded: "s8_64", "s8_128",
     * "s8_256", "s4_64" or "s4_128" (faster prompts, slightly other answers) [as in the file]. */
    const char *regroup;
} shoal_options;

/* Load a GGUF file or a Hugging Face folder and start its engine; or gradient-boosted trees: LightGBM's text,
 * XGBoost's JSON, either with gzip, or a folder whose config.json names one. *ret is the caller's, to be
 * given to shoal_model_close. opts may be NULL. */
int shoal_model_open(shoal_model **ret, const char *path, const shoal_options *opts, shoal_err *err);

/* Stops running calls (they return SHOAL_ECANCELLED, or SHOAL_EUNAVAILABLE when they had hardly begun),
 * waits for them to leave, joins the threads, frees everything. No call may begin while it runs, and it
 * may not be made from a callback. NULL is fine. */
void shoal_model_close(shoal_model *m);

/* A LoRA adapter of the model, beside its weights, which stay as they are: calls may name it from now on, and
 * calls with different adapters run together. strength is a factor on its effect, 1: as it was trained. Any
 * thread, at any time. SHOAL_EINVALID when the name is taken or is none (letters, digits and ._-). */
int shoal_adapter_load(shoal_model *m, const char *name, const char *path, float strength, shoal_err *err);
/* No new call gets it; those that run with it end with it. SHOAL_ENOTFOUND. */
int shoal_adapter_unload(shoal_model *m, const char *name, shoal_err *err);

typedef struct shoal_model_info {
    const char *name, *architecture, *quantisation, *version;
    const char *task; /* "generate", "classify", "rerank", "tag", "embed", ... */
    const char *isa;  /* the kernels in use: "scalar", "avx2", "avx512vnni" */
    char digest[65];  /* SHA-256 of the file, hex */
    size_t n_ctx, n_vocab, n_embd, n_labels;
    const char *const *labels; /* n_labels names */
    /* How its replies write calls of tools ("hermes", ...), or NULL: no chat template. */
    const char *tool_syntax;
    const char *notice; /* where its answers are not the original's, a sentence; NULL: nowhere known */
} shoal_model_info;

/* Strings live as long as the model. */
int shoal_model_describe(shoal_model *m, shoal_model_info *ret, shoal_err *err);

/* ---- generate -------------------------------------------------------------------------------- */

/* Each piece of text as it comes, whole characters, on the calling thread; not 0: stop here (the call
 * then returns SHOAL_ECANCELLED with what there is in *ret). */
typedef int (*shoal_text_fn)(void *user, const char *text, size_t n_bytes);

/* Zero means the default in brackets; what is out of range is SHOAL_EINVALID. */
typedef struct shoal_generate_options {
    size_t max_tokens;        /* [to the end of the context, which also ends a longer reply] */
    float temperature;        /* to 2 [0: greedy] */
    int top_k;                /* [off] */
    float top_p, min_p;       /* to 1 [off] */
    float repetition_penalty; /* 0.01 to 10 [off] */
    uint64_t seed;            /* the draw for a position depends on it and the position alone */
    const char *const *stop;  /* n_stop strings that end the reply and are not part of it */
    size_t n_stop;
    int json_object;         /* the reply is one JSON object */
    const char *json_schema; /* the reply is JSON that satisfies this schema (text) */
    /* beam search: greedy, without stop strings or JSON; the reply comes as one piece */
    size_t n_beams;        /* to 10 [1: none] */
    float length_penalty;  /* a reply's score is its log-probability / length^penalty */
    int early_stopping;    /* end as soon as n_beams replies have ended */
    shoal_text_fn thought; /* shoal_chat: what a thinking model thinks, as it comes [gathered alone] */
    const char *adapter;   /* name of one that shoal_adapter_load gave [that of shoal_options, or none] */
} shoal_generate_options;

typedef struct shoal_generation {
    char *text; /* n_bytes of UTF-8 and a NUL */
    size_t n_bytes;
    char *thought; /* shoal_chat: what the model thought before it answered, as text is; "" for most */
    size_t n_thought_bytes;
    int32_t *ids;
    size_t n_ids, n_prompt;
    int stopped;      /* 1: by end token or stop string; 0: by max_tokens or the context */
    double mean_prob; /* mean probability of the chosen tokens: how sure the model was */
    double prefill_ms, decode_ms;
} shoal_generation;

/* Fill the sampling fields of *ret as the model's author prefers them (generation_config.json,
 * general.sampling.* of a GGUF file, "sampling" in the models.json beside it). Fields that the author leaves out get
 * temperature 0.8, top_p 0.95 and min_p 0.05. The rest of *ret stays. */
int shoal_generate_defaults(shoal_model *m, shoal_generate_options *ret, shoal_err *err);

/* Continue a raw prompt, in which control tokens may be spelt out ("<|im_end|>"); with an encoder-decoder
 * (task "seq2seq") the prompt is the source that it turns into another text. opts, fn and ret may be
 * NULL. *ret is filled on success (and on a stop by fn); shoal_generation_done frees what it holds. */
int shoal_generate(shoal_model *m, const char *prompt, const shoal_generate_options *opts, shoal_text_fn fn,
                   void *user, shoal_generation *ret, shoal_err *err);

typedef struct shoal_message {
    const char *role, *content; /* "system", "user", "assistant" */
} shoal_message;

/* Answer a conversation, written down by the model's own chat template. A message is text and nothing more:
 * what looks like a control token in it is read as characters. */
int shoal_chat(shoal_model *m, const shoal_message *messages, size_t n_messages,
               const shoal_generate_options *opts, shoal_text_fn fn, void *user, shoal_generation *ret,
               shoal_err *err);
void shoal_generation_done(shoal_generation *g);

/* ---- classify, tag, embed, fill: results are freed by their _done; a zeroed one may be given too - */

typedef struct shoal_label {
    const char *name; /* the model's */
    float score;      /* probability */
} shoal_label;

typedef struct shoal_classification {
    shoal_label *labels; /* n_labels, best first */
    float *logits;       /* n_labels, in the model's order */
    size_t n_labels, n_tokens;
} shoal_classification;

/* pair may be NULL. A text longer than the context is SHOAL_ELIMIT, with the numbers. */
int shoal_classify(shoal_model *m, const char *text, const char *pair, shoal_classification *ret,
                   shoal_err *err);
void shoal_classification_done(shoal_classification *c);

/* How well each of n documents answers the query: ret_scores[n], 0 to 1 unless the model says otherwise, in
 * their order. They run as one batch. For models with one label (cross-encoders). */
int shoal_rerank(shoal_model *m, const char *query, const char *const *documents, size_t n, float *ret_scores,
                 shoal_err *err);

typedef struct shoal_span {
    size_t start, end;           /* code points of the text */
    size_t start_byte, end_byte; /* bytes of the text */
    const char *label;           /* the model's */
    float score;
} shoal_span;

typedef struct shoal_tagging {
    shoal_span *spans;
    size_t n_spans;
    float *logits; /* [n_tokens][n_labels], special tokens included */
    size_t n_tokens, n_labels;
} shoal_tagging;

int shoal_tag(shoal_model *m, const char *text, shoal_tagging *ret, shoal_err *err);
void shoal_tagging_done(shoal_tagging *t);

typedef struct shoal_embedding {
    float *values; /* n floats, L2-normalised unless the model says otherwise */
    size_t n, n_tokens;
} shoal_embedding;

int shoal_embed(shoal_model *m, const char *text, shoal_embedding *ret, shoal_err *err);
void shoal_embedding_done(shoal_embedding *e);

/* ---- pictures ---------------------------------------------------------------------------------- */

/* What a picture shows, best first: `bytes` are a PNG or JPEG file of at most 32 Mi pixels, which is resized
 * and scaled as the model's preprocessor_config.json says. For models of the task "classify-image"; n_tokens
 * is 0. SHOAL_EFORMAT for a damaged file, SHOAL_EUNSUPPORTED for another format, SHOAL_ELIMIT for one that is
 * too large. Free *ret with shoal_classification_done. */
int shoal_classify_image(shoal_model *m, const void *bytes, size_t n, shoal_classification *ret,
                         shoal_err *err);
/* The same of pixels[3][size][size] (red, green, blue; size is the model's) that are scaled already. */
int shoal_classify_pixels(shoal_model *m, const float *pixels, shoal_classification *ret, shoal_err *err);

/* ---- tables and series ------------------------------------------------------------------------- */

/* One scored row of a table, or window of a sensor. Valid during the callback. */
typedef struct shoal_score {
    const char *sensor, *time; /* as the input has them, "" without such a column */
    size_t line;               /* of the input, from 1: a header is line 1 */
    size_t row;                /* of this sensor, or of the table, from 0: the window's last */
    const char *label;         /* the likeliest; NULL when scores are numbers and not classes */
    double probability;        /* the label's */
    const double *scores;      /* [n_scores]: probabilities in the order of the model's labels; numbers */
    const double *raw;         /* [n_raw]: before the model's link function: logits, log-odds */
    size_t n_scores, n_raw;
} shoal_score;

/* Each row that is due, in order, on the calling thread; not 0: stop here (SHOAL_ECANCELLED). */
typedef int (*shoal_score_fn)(void *user, const shoal_score *row);

typedef struct shoal_score_totals {
    size_t n_rows, n_scores, n_sensors; /* rows read, scores given, sensors met (0 in a table) */
} shoal_score_totals;

/* Score a CSV file (gzip is fine, "-" is standard input) of any length, row by row. With a column for each of
 * the model's features each row is scored. With one for each channel the rows are a series in order of time:
 * each sensor ("sensor", "sensor_id", "machine" or "id") is compared with its own running median, and windows
 * are scored as they are due. An empty field is a missing value. For models of the task "score".
 * SHOAL_EINVALID names a column that is missing, SHOAL_EFORMAT the line and column of what is no number. ret
 * may be NULL. */
int shoal_score_csv(shoal_model *m, const char *path, shoal_score_fn fn, void *user, shoal_score_totals *ret,
                    shoal_err *err);

/* The same of numbers in memory: rows[n_rows][n_columns] with the names of their columns; NAN where a value
 * is missing. All of them are one sensor's. */
int shoal_score_rows(shoal_model *m, const char *const *columns, size_t n_columns, const double *rows,
                     size_t n_rows, shoal_score_fn fn, void *user, shoal_score_totals *ret, shoal_err *err);
typedef struct shoal_guess {
    char *token; /* the word by itself */
    int32_t id;
    float score;    /* its probability in this gap */
    char *sequence; /* the text with it in this gap; other gaps stay */
} shoal_guess;

typedef struct shoal_filling {
    shoal_guess *guesses; /* [n_gaps][n_top], gaps in the text's order, best first */
    size_t n_gaps, n_top, n_tokens;
} shoal_filling;

/* What stands in the gaps of a text, for models of the task "fill-mask": a gap is written [MASK] or <mask>,
 * whichever the model knows. top: words for each gap [5]. SHOAL_EINVALID: there is no gap. */
int shoal_fill_mask(shoal_model *m, const char *text, size_t top, shoal_filling *ret, shoal_err *err);
void shoal_filling_done(shoal_filling *f);

#ifdef __cplusplus
}
#endif
#endif
