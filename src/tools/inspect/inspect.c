/* inspect.c: a model described in plain words; see inspect.h. */
#include "inspect/inspect.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json/json.h"
#include "json/json_put.h"
#include "base/sys.h"
#include "compute/measure.h"
#include "model/arch/arch.h"
#include "net/net.h"

#define MIB        (1024.0 * 1024.0)
#define BUSY_SHARE 0.5 /* of the cores, from which on other programs slow the measurement down */

static bool inspect_ends_with(const char *s, const char *tail)
{
    size_t n = strlen(s), k = strlen(tail);
    return n >= k && strcmp(s + n - k, tail) == 0;
}

/* ---- counting --------------------------------------------------------------------------------------- */

static size_t elements(const tensor *t)
{
    return t->dims[0] * t->dims[1] * t->dims[2] * t->dims[3];
}

/* How much of a tensor one token multiplies with: nothing of tables that are looked up, the chosen experts.
 */
static double share_used(const model_config *c, const tensor *t)
{
    if (t->dims[1] <= 1) return 0;
    if (inspect_ends_with(t->name, "position_embd.weight") ||
        inspect_ends_with(t->name, "token_types.weight"))
        return 0;
    if (strcmp(t->name, "token_embd.weight") == 0) return c->tied ? 1 : 0;
    if (strstr(t->name, "_exps."))
        return c->ffn.n_expert ? (double)c->ffn.n_used / (double)c->ffn.n_expert : 1;
    return 1;
}

static void inspect_count(inspect_report *r, const model *m)
{
    const model_config *c = model_get_config(m);
    r->n_tensors = model_tensor_count(m);
    for (size_t i = 0; i < r->n_tensors; i++) {
        const tensor *t = model_tensor_at(m, i);
        double used = share_used(c, t);
        r->n_weights += elements(t);
        r->bytes[t->type] += t->bytes;
        r->n_of[t->type]++;
        r->file_bytes += t->bytes;
        r->used_weights += (size_t)(used * (double)elements(t));
        r->used_bytes += (size_t)(used * (double)t->bytes);
    }
}

static dtype commonest(const inspect_report *r)
{
    dtype best = DT_F32;
    for (int t = 0; t < DT_COUNT; t++)
        if (r->bytes[t] > r->bytes[best]) best = (dtype)t;
    return best;
}

static void find_memory(inspect_report *r, const model *m, const net_ops *ops)
{
    size_t kv = 0;
    if (ops && (ops->roles & NET_DECODES)) {
        kv_shape s = ops->kv(m);
        size_t all, page, n_ctx = model_get_config(m)->n_ctx;
        if (kv_page_bytes(&s, &page, NULL) == 0) r->kv_token_bytes = page / KV_PAGE_TOKENS;
        if (kv_default_bytes(&s, kv_default_tokens(0, n_ctx), &kv, NULL) != 0) kv = 0;
        if (!size_mul(r->kv_token_bytes, n_ctx, &all) && all < kv) kv = all;
    }
    r->memory_bytes = r->file_bytes + kv;
}

/* ---- speed ------------------------------------------------------------------------------------------ */

/* A matrix of the model's own width, so that caches and ends of rows count as they will. */
static int find_speed(inspect_report *r, const model *m, shoal_err *err)
{
    const model_config *c = model_get_config(m);
    dtype type = commonest(r);
    size_t grain = dtype_block(type), cols = (c->n_embd + grain - 1) / grain * grain;
    measure_spec spec = {.type = type,
                         .n_threads = sys_core_count(),
                         .rows = c->ffn.n_ff ? c->ffn.n_ff : 1024,
                         .cols = cols ? cols : 1024,
                         .n_tokens = 1,
                         .seconds = 0.2};
    measure_result one, many;
    if (getloadavg(&r->load, 1) != 1) r->load = -1; /* before the kernels add their own */
    int rc = isa_choose(&spec.isa, err);
    if (rc == 0) rc = measure_mul(&one, &spec, err);
    spec.n_tokens = 128;
    if (rc == 0) rc = measure_mul(&many, &spec, err);
    if (rc || r->used_bytes == 0) return rc;
    r->decode_per_s = one.gb_per_s * 1e9 / (double)r->used_bytes;
    r->prefill_per_s = many.gmac_per_s * 1e9 / (double)r->used_weights;
    return 0;
}

/* speech/vad_model.h computes it; it has no layers, vocabulary or context to describe. */
static bool detects_speech(const model *m)
{
    return model_get_config(m)->task == TASK_VAD;
}

int inspect_model(inspect_report *ret, const model *m, bool measure, shoal_err *err)
{
    shoal_err why = {0};
    *ret = (inspect_report){0};
    const net_ops *ops = net_ops_for(model_get_config(m), &why);
    inspect_count(ret, m);
    find_memory(ret, m, ops);
    bool runs = (ops || detects_speech(m)) && model_check_text(m, &why) == 0;
    if (!runs) snprintf(ret->unsupported, sizeof ret->unsupported, "%s", why.message);
    return measure && ops ? find_speed(ret, m, err) : 0;
}

/* ---- words ------------------------------------------------------------------------------------------ */

static void put_count(buf *out, size_t n)
{
    if (n >= 1000000000)
        buf_printf(out, "%.2f G", (double)n / 1e9);
    else if (n >= 1000000)
        buf_printf(out, "%.1f M", (double)n / 1e6);
    else
        buf_printf(out, "%zu", n);
}

static void inspect_put_field(buf *out, const char *name)
{
    buf_printf(out, "%s%-14s", out->len ? "\n" : "", name);
}

static void put_shape(buf *out, const model_config *c)
{
    inspect_put_field(out, "shape");
    if (c->series.n_input > 0) {
        buf_printf(out, "%zu recurrent layers of %zu, %zu channels", c->n_layer, c->series.n_hidden,
                   c->series.n_input);
        return;
    }
    buf_printf(out, "%zu layers of %zu, %zu heads of %zu", c->n_layer, c->n_embd, c->attn.n_head,
               c->attn.head_dim);
    if (c->attn.n_head_kv != c->attn.n_head) buf_printf(out, " (%zu for keys and values)", c->attn.n_head_kv);
    buf_printf(out, ", feed-forward %zu", c->ffn.n_ff);
    if (c->ffn.n_expert)
        buf_printf(out, ", %zu experts of %zu, %zu used", c->ffn.n_expert, c->ffn.n_ff_expert, c->ffn.n_used);
    if (c->source.n_layer)
        buf_printf(out, "; encoder: %zu layers, %zu heads, feed-forward %zu", c->source.n_layer,
                   c->source.n_head, c->source.n_ff);
    inspect_put_field(out, "context");
    buf_printf(out, "%zu", c->n_ctx);
    if (c->n_text) buf_printf(out, ", texts to %zu", c->n_text);
    if (c->attn.window) buf_printf(out, ", local attention over %zu", c->attn.window);
    if (c->source.n_ctx) buf_printf(out, "; source %zu", c->source.n_ctx);
    inspect_put_field(out, "vocabulary");
    bool writes = c->task == TASK_GENERATE || c->task == TASK_SEQ2SEQ || c->task == TASK_TRANSCRIBE;
    buf_printf(out, "%zu%s", c->n_vocab, c->tied && writes ? ", shared with the output" : "");
}

static void put_labels(buf *out, const model_config *c)
{
    if (c->head.n_labels == 0 || !c->head.labels) return;
    inspect_put_field(out, "labels");
    buf_printf(out, "%zu:", c->head.n_labels);
    for (size_t i = 0; i < c->head.n_labels && i < 8; i++) buf_printf(out, " %s", c->head.labels[i]);
    if (c->head.n_labels > 8) buf_puts(out, " ...");
}

static void put_types(buf *out, const inspect_report *r, const model *m)
{
    inspect_put_field(out, "types");
    if (strcmp(model_file_type(m), dtype_name(commonest(r))) != 0)
        buf_printf(out, "%s: ", model_file_type(m));
    const char *comma = "";
    for (int t = 0; t < DT_COUNT; t++) {
        if (r->n_of[t] == 0) continue;
        buf_printf(out, "%s%s %.1f MiB (%zu)", comma, dtype_name((dtype)t), (double)r->bytes[t] / MIB,
                   r->n_of[t]);
        comma = ", ";
    }
}

static void put_text_side(buf *out, const model *m)
{
    const tokenizer *t = model_tokenizer(m);
    const chat_template *chat = model_chat_template(m);
    inspect_put_field(out, "tokenizer");
    if (t)
        buf_printf(out, "%zu tokens", tokenizer_vocab_size(t));
    else
        buf_puts(out, model_tokenizer_error(m) ? model_tokenizer_error(m) : "none");
    inspect_put_field(out, "chat template");
    if (!chat) {
        buf_puts(out, model_chat_template_error(m) ? model_chat_template_error(m) : "none");
        return;
    }
    if (model_chat_template_is_default(m)) {
        buf_puts(out, "none; messages go through the default one");
        return;
    }
    buf_printf(out, "yes%s%s", model_chat_template_is_beside(m) ? ", from the file beside it" : "",
               chat_template_reads_tools(chat) ? ", takes tools" : "");
    if (chat_template_calls_source(chat) == CALLS_UNKNOWN)
        buf_puts(out, ", whose syntax of calls is unknown (Hermes' is tried)");
    else
        buf_printf(out, ", tool calls as %s", chat_template_calls_label(chat, NULL));
    if (chat_template_thinking(chat)) buf_puts(out, ", thinks");
}

static void put_ends(buf *out, const model *m)
{
    const model_config *c = model_get_config(m);
    if (c->task != TASK_GENERATE) return;
    inspect_put_field(out, "ends at");
    if (c->n_eos == 0)
        buf_puts(out, "nothing: the file names no end-of-text token, so replies end at their token limit");
    for (size_t i = 0; i < c->n_eos; i++) {
        size_t n = 0;
        const char *s = model_tokenizer(m) ? tokenizer_piece(model_tokenizer(m), c->eos_ids[i], &n) : NULL;
        buf_printf(out, "%s%.*s (%d", i ? ", " : "", (int)n, s ? s : "", c->eos_ids[i]);
        buf_puts(out, c->eos_ids[i] == model_template_end(m) ? ", by the chat template)" : ")");
    }
}

static void put_verdict(buf *out, const inspect_report *r, const model *m)
{
    inspect_put_field(out, "memory");
    buf_printf(out, "%.0f MiB", (double)r->memory_bytes / MIB);
    if (r->kv_token_bytes)
        buf_printf(out, ", of it %.1f KiB a token of context", (double)r->kv_token_bytes / 1024);
    if (r->decode_per_s > 0) {
        bool decodes = r->kv_token_bytes > 0;
        inspect_put_field(out, "speed here");
        buf_printf(out, "about %.0f tokens/s read", r->prefill_per_s);
        if (decodes) buf_printf(out, ", %.0f written by one stream", r->decode_per_s);
        buf_puts(out, " (kernels alone; attention and long contexts cost more)");
        if (r->load > BUSY_SHARE * sys_core_count())
            buf_printf(
                out, "; other programs were running (load %.1f on %d cores): measure again when they are not",
                r->load, (int)sys_core_count());
    }
    if (model_notice(m)) {
        inspect_put_field(out, "notice");
        buf_puts(out, model_notice(m));
    }
    bool ids = model_get_config(m)->task == TASK_GENERATE && !model_tokenizer(m);
    inspect_put_field(out, "verdict");
    buf_puts(out, *r->unsupported     ? r->unsupported
                  : detects_speech(m) ? "it runs here: shoal vad, POST /v1/vad, vad stages of pipelines"
                  : ids               ? "it runs here for requests of token ids; text needs its tokenizer"
                                      : "it runs here");
}

/* Of models that write text: what a request gets that does not say it. */
static void put_sampling(buf *out, const model_config *c)
{
    char text[SAMPLING_TEXT_BYTES];
    if (c->task != TASK_GENERATE) return;
    sampling_format(&c->sampling, text);
    inspect_put_field(out, "sampling");
    buf_puts(out, *text ? text : "nothing said; the API's own defaults hold");
}

void inspect_put(buf *out, const inspect_report *r, const model *m, const char *path)
{
    const model_config *c = model_get_config(m);
    buf_printf(out, "%-14s%s (%s)", "model", model_name(m), path);
    inspect_put_field(out, "architecture");
    buf_printf(out, "%s, for \"%s\"", arch_name(c->arch), task_name(c->task));
    inspect_put_field(out, "parameters");
    put_count(out, r->n_weights);
    buf_printf(out, " in %zu tensors", r->n_tensors);
    if (!detects_speech(m)) {
        buf_puts(out, ", ");
        put_count(out, r->used_weights);
        buf_puts(out, " active per token");
    }
    put_types(out, r, m);
    if (detects_speech(m)) {
        inspect_put_field(out, "input");
        buf_puts(out, "sound at 16 kHz, in windows of 512 samples (32 ms)");
    } else {
        put_shape(out, c);
    }
    put_labels(out, c);
    put_sampling(out, c);
    if (c->series.n_input == 0 && c->image.size == 0 && !detects_speech(m)) put_text_side(out, m);
    put_ends(out, m);
    if (*r->digest) {
        inspect_put_field(out, "digest");
        buf_puts(out, r->digest);
    }
    put_verdict(out, r, m);
}

/* ---- JSON ------------------------------------------------------------------------------------------- */

static void json_text(buf *out, const char *key, const char *value)
{
    buf_printf(out, ",\"%s\":", key);
    if (value)
        json_put_string(out, value, strlen(value));
    else
        buf_puts(out, "null");
}

static void json_size(buf *out, const char *key, size_t value)
{
    buf_printf(out, ",\"%s\":%zu", key, value);
}

static void put_json_ends(buf *out, const model *m)
{
    const model_config *c = model_get_config(m);
    buf_puts(out, ",\"end_token_ids\":[");
    for (size_t i = 0; i < c->n_eos; i++) buf_printf(out, "%s%d", i ? "," : "", c->eos_ids[i]);
    buf_puts(out, "],\"template_end_token_id\":");
    if (model_template_end(m) >= 0)
        buf_printf(out, "%d", model_template_end(m));
    else
        buf_puts(out, "null");
}

static void put_sampling_json(buf *out, const sampling_defaults *d)
{
    const char *comma = "";
    buf_puts(out, ",\"sampling\":{");
#define PUT(field, min, max)                                             \
    if (d->said & SAMPLING_BIT(field)) {                                 \
        buf_printf(out, "%s\"" #field "\":%g", comma, (double)d->field); \
        comma = ",";                                                     \
    }
    SAMPLING_TABLE(PUT)
#undef PUT
    buf_putc(out, '}');
}

void inspect_put_json(buf *out, const inspect_report *r, const model *m, const char *path)
{
    const model_config *c = model_get_config(m);
    const char *comma = "";
    buf_putc(out, '{');
    json_put_text(out, "path", path);
    json_text(out, "name", model_name(m));
    json_text(out, "architecture", arch_name(c->arch));
    json_text(out, "task", task_name(c->task));
    json_size(out, "parameters", r->n_weights);
    json_size(out, "tensors", r->n_tensors);
    json_size(out, "used_parameters", r->used_weights);
    json_size(out, "layers", c->n_layer);
    json_size(out, "width", c->n_embd);
    json_size(out, "heads", c->attn.n_head);
    json_size(out, "kv_heads", c->attn.n_head_kv);
    json_size(out, "head_dim", c->attn.head_dim);
    json_size(out, "feed_forward", c->ffn.n_ff);
    json_size(out, "experts", c->ffn.n_expert);
    json_size(out, "context", c->n_ctx);
    json_size(out, "max_seq_length", c->n_text ? c->n_text : c->n_ctx);
    json_size(out, "window", c->attn.window);
    json_size(out, "vocabulary", c->n_vocab);
    json_size(out, "encoder_layers", c->source.n_layer);
    json_size(out, "labels", c->head.n_labels);
    if (*r->digest) json_text(out, "digest", r->digest);
    json_text(out, "file_type", model_file_type(m));
    buf_puts(out, ",\"types\":{");
    for (int t = 0; t < DT_COUNT; t++) {
        if (r->n_of[t] == 0) continue;
        buf_printf(out, "%s\"%s\":%zu", comma, dtype_name((dtype)t), r->bytes[t]);
        comma = ",";
    }
    buf_putc(out, '}');
    json_text(out, "tokenizer_error", model_tokenizer(m) ? NULL : model_tokenizer_error(m));
    json_size(out, "tokens", model_tokenizer(m) ? tokenizer_vocab_size(model_tokenizer(m)) : 0);
    const chat_template *chat = model_chat_template(m);
    if (model_chat_template_is_default(m)) chat = NULL; /* what is its own is told */
    buf_printf(out, ",\"chat_template\":%s", chat ? "true" : "false");
    json_text(out, "tool_syntax", chat ? chat_template_calls_label(chat, NULL) : NULL);
    json_text(out, "thinking",
              chat && chat_template_thinking(chat) ? chat_template_thinking(chat)->name : NULL);
    put_json_ends(out, m);
    put_sampling_json(out, &c->sampling);
    json_size(out, "memory_bytes", r->memory_bytes);
    json_size(out, "kv_token_bytes", r->kv_token_bytes);
    if (r->decode_per_s > 0)
        buf_printf(out, ",\"decode_tokens_per_s\":%.1f,\"prefill_tokens_per_s\":%.1f,\"load\":%.1f",
                   r->decode_per_s, r->prefill_per_s, r->load);
    json_text(out, "notice", model_notice(m));
    json_text(out, "unsupported", *r->unsupported ? r->unsupported : NULL);
    buf_putc(out, '}');
}
