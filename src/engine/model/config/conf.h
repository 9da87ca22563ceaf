/* conf.h: one way to read a configuration, whether it stands in config.json or in GGUF's metadata.
 *
 *     double theta = 1e4;
 *     rc = conf_num(s, "rope.freq_base", "rope_theta rotary_emb_base", 1, 1e12, &theta);
 *
 * A GGUF key is meant behind "ARCH." unless it begins with "general.", "shoal." or "tokenizer."; names in JSON are
 * alternatives, newest first. NULL: that kind of file has no such value. Absent values leave *ret alone. */
#ifndef MODEL_CONFIG_CONF_H
#define MODEL_CONFIG_CONF_H

#include "base/buf.h"
#include "model/arch/arch.h"
#include "model/files/gguf.h"
#include "model/files/gguf_writer.h"
#include "model/config/hf_config.h"

typedef struct conf {
    const arch_def *def;
    gguf *g;               /* of a GGUF file, else NULL */
    const hf_files *files; /* of a folder, else NULL */
    const json_t *json;    /* its config.json, or the "text_config" inside */
    arena *mem;            /* for what the configuration keeps */
    const char *what;      /* path, for errors */
    shoal_err *err;
} conf;

int conf_int(conf *s, const char *key, const char *json, int64_t min, int64_t max, int64_t *ret);
int conf_size(conf *s, const char *key, const char *json, size_t min, size_t max, size_t *ret);
int conf_num(conf *s, const char *key, const char *json, double min, double max, double *ret);
int conf_bool(conf *s, const char *key, const char *json, bool *ret);
int conf_str(conf *s, const char *key, const char *json, const char **ret);
int conf_activation(conf *s, const char *key, const char *json, activation *ret);
bool conf_has(conf *s, const char *key, const char *json);
/* The value in config.json under the first of these names that is there and not null; NULL: none. */
const json_t *conf_json(const conf *s, const char *names);
/* A tensor of the GGUF file; NULL when absent or when it is a folder. */
const tensor *conf_tensor(const conf *s, const char *name);
/* A key in full, in out[96]; returns out. */
const char *conf_key(const arch_def *def, const char *key, char out[96]);
int conf_fail(const conf *s, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Fill *ret from s by its family's description: rows, rotary embedding, task and head, end of text, finish;
 * then check it. On failure *ret is untouched. */
int conf_read(conf *s, model_config *ret);

/* Parts of conf_read, each in a file of its name. */
int conf_rows_read(conf *s, model_config *c);
int conf_rows_again(conf *s, model_config *c); /* CONF_SAME, once defaults are settled */
int conf_rope_read(conf *s, model_config *c);
int conf_task_read(conf *s, model_config *c);
int conf_head_read(conf *s, model_config *c); /* labels or pooling, as the task wants */
int conf_layers_read(conf *s, model_config *c);
void conf_sampling_read(conf *s, model_config *c); /* of those that write text */

/* And what writes the same to GGUF, in the same order. */
void conf_write(gguf_out *o, const model_config *c);
void conf_rows_write(gguf_out *o, const model_config *c);
void conf_rope_write(gguf_out *o, const model_config *c);
void conf_head_write(gguf_out *o, const model_config *c);
void conf_layers_write(gguf_out *o, const model_config *c);
void conf_sampling_write(gguf_out *o, const model_config *c);

/* Room for c->n_layer LAYER_ flags in the arena, all 0, as *ret and c->layers; made once. */
int conf_layers_make(conf *s, model_config *c, uint8_t **ret);

/* Rows that families share. */
extern const conf_row conf_sizes[];             /* layers, context, width, feed-forward, heads */
extern const conf_row conf_rms[], conf_layer[]; /* key/value heads and epsilon of either kind of norm */
extern const conf_row conf_rope[];              /* theta, rotated dimensions, vocabulary */

#endif
