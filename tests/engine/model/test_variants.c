/* Variants of families that have no fixture: configurations as JSON, old names and new, and folders of one
 * layer. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "json/json.h"
#include "model/arch/arch.h"
#include "model/config/hf_config.h"
#include "model/model.h"

/* ---- configurations --------------------------------------------------------------------------------- */

static arena *kept; /* what configurations of a test point to */

static int make_arena(void **state)
{
    (void)state;
    return (kept = arena_new(0)) ? 0 : -1;
}

static int drop_arena(void **state)
{
    (void)state;
    arena_free(kept);
    return 0;
}

static int read_both(const char *config, const char *pooling, model_config *ret, shoal_err *err)
{
    json_error_t where;
    json_t *c = json_loads(config, 0, &where), *p = pooling ? json_loads(pooling, 0, &where) : NULL;
    if (!c) fail_msg("%s: %s", where.text, config);
    hf_files files = {.config = c, .st_pooling = p};
    int rc = hf_config_read(ret, &files, kept, "config.json", err);
    json_decref(c);
    json_decref(p);
    return rc;
}

static model_config reads(const char *config)
{
    model_config c;
    shoal_err err;
    if (read_both(config, NULL, &c, &err) != 0) fail_msg("%s", err.message);
    return c;
}

static void refuses(const char *config, const char *sentence)
{
    model_config c;
    shoal_err err;
    int rc = read_both(config, NULL, &c, &err);
    if (rc == 0 || !strstr(err.message, sentence))
        fail_msg("%d \"%s\", not \"%s\"", rc, err.message, sentence);
}

#define SIZES                                                                                \
    "\"vocab_size\":9,\"hidden_size\":64,\"num_hidden_layers\":4,\"num_attention_heads\":4," \
    "\"intermediate_size\":8,\"max_position_embeddings\":8192"
#define LLAMA(rest) "{\"model_type\":\"llama\"," SIZES "," rest "}"

static void scaling_has_old_names_and_new(void **state)
{
    (void)state;
    static const char *const forms[] = {
        LLAMA("\"rope_theta\":5e5,\"rope_scaling\":{\"type\":\"%s\",\"factor\":4}"),
        LLAMA("\"rope_theta\":5e5,\"rope_scaling\":{\"rope_type\":\"%s\",\"factor\":4}"),
        LLAMA("\"rope_parameters\":{\"rope_type\":\"%s\",\"rope_theta\":5e5,\"factor\":4}"),
    };
    static const struct {
        const char *name;
        rope_scaling scaling;
        size_t original;
    } kinds[] = {{"linear", ROPE_LINEAR, 0}, {"dynamic", ROPE_DYNAMIC, 8192}, {"yarn", ROPE_YARN, 8192}};
    for (size_t i = 0; i < 3; i++)
        for (size_t k = 0; k < 3; k++) {
            char text[512];
            snprintf(text, sizeof text, forms[i], kinds[k].name);
            model_config c = reads(text);
            assert_int_equal(c.pos.rope.scaling, kinds[k].scaling);
            assert_true(c.pos.rope.factor == 4 && c.pos.rope.theta == 5e5);
            assert_int_equal(c.pos.rope.original_ctx, kinds[k].original);
        }
    refuses(LLAMA("\"rope_scaling\":{\"type\":\"spiral\"}"), "\"spiral\" is not supported");
}

static void yarn_has_its_own_numbers(void **state)
{
    (void)state;
    model_config c = reads(LLAMA("\"rope_scaling\":{\"type\":\"yarn\",\"factor\":4,\"beta_fast\":16,"
                                 "\"original_max_position_embeddings\":2048,\"attention_factor\":1.5}"));
    assert_true(c.pos.rope.beta_fast == 16 && c.pos.rope.beta_slow == 1 && c.pos.rope.attn_factor == 1.5);
    assert_int_equal(c.pos.rope.original_ctx, 2048);
    c = reads(
        LLAMA("\"rope_scaling\":{\"type\":\"yarn\",\"factor\":40,\"mscale\":1,\"mscale_all_dim\":0.5}"));
    double expected = (0.1 * log(40) + 1) / (0.05 * log(40) + 1);
    assert_true(fabs(c.pos.rope.attn_factor - expected) < 1e-12);
    refuses(LLAMA("\"rope_scaling\":{\"type\":\"yarn\",\"factor\":4,\"truncate\":false}"), "truncate");
}

#define PHI3(rest) "{\"model_type\":\"phi3\"," SIZES ",\"original_max_position_embeddings\":4096," rest "}"
#define EIGHT(a)   "[" a "," a "," a "," a "," a "," a "," a "," a "]"

static void longrope_has_two_lists_of_divisors(void **state)
{
    (void)state;
    static const char *const names[] = {"su", "longrope"};
    for (int i = 0; i < 2; i++) {
        char text[1024];
        snprintf(text, sizeof text,
                 PHI3("\"rope_scaling\":{\"type\":\"%s\",\"short_factor\":" EIGHT(
                     "1.0") ",\"long_factor\":" EIGHT("2.5") "}"),
                 names[i]);
        model_config c = reads(text);
        assert_int_equal(c.pos.rope.scaling, ROPE_LONG);
        assert_int_equal(c.pos.rope.original_ctx, 4096);
        assert_true(c.pos.rope.factor == 2 && c.pos.rope.short_by[7] == 1 && c.pos.rope.long_by[0] == 2.5f);
        assert_true(fabs(c.pos.rope.attn_factor - sqrt(1 + log(2) / log(4096))) < 1e-12);
    }
    refuses(PHI3("\"rope_scaling\":{\"type\":\"su\",\"short_factor\":[1],\"long_factor\":[1]}"),
            "\"short_factor\" has 1 values where 8 are needed");
    refuses(PHI3("\"rope_scaling\":{\"type\":\"su\",\"short_factor\":" EIGHT("0") ",\"long_factor\":[1]}"),
            "value 0 of \"short_factor\" is no divisor");
}

static void windows_fall_where_the_family_says(void **state)
{
    (void)state;
    model_config c = reads("{\"model_type\":\"mistral\"," SIZES "}"); /* the reference's default */
    assert_int_equal(c.attn.window, 4096);
    assert_int_equal(config_layer(&c, 3), LAYER_LOCAL);
    c = reads("{\"model_type\":\"mistral\"," SIZES ",\"sliding_window\":null}");
    assert_true(c.attn.window == 0 && !c.layers);
    c = reads("{\"model_type\":\"qwen2\"," SIZES ",\"sliding_window\":512}");
    assert_true(c.attn.window == 0 && !c.layers);
    c = reads("{\"model_type\":\"qwen2\"," SIZES
              ",\"sliding_window\":512,\"use_sliding_window\":true,\"max_window_layers\":3}");
    assert_true(config_layer(&c, 2) == 0 && config_layer(&c, 3) == LAYER_LOCAL && c.attn.window == 512);
    c = reads("{\"model_type\":\"gemma3_text\"," SIZES
              ",\"sliding_window_pattern\":2,\"sliding_window\":16}");
    assert_true(config_layer(&c, 0) == LAYER_LOCAL && config_layer(&c, 1) == 0);
    assert_true(c.pos.local.theta == 1e4 && c.pos.rope.theta == 1e6 && c.pos.local.dim == 16);
    c = reads("{\"model_type\":\"gemma2\"," SIZES
              ",\"query_pre_attn_scalar\":64,\"attn_logit_softcapping\":null}");
    assert_true(config_layer(&c, 0) == LAYER_LOCAL && config_layer(&c, 1) == 0 && c.attn.window == 4096);
    assert_true(c.attn.scale == 0.125f && c.attn.softcap == 0 && c.scale.softcap == 30);
    refuses("{\"model_type\":\"llama\"," SIZES ",\"layer_types\":[\"a\",\"b\",\"c\",\"d\"]}",
            "layer 0 is of the type");
    refuses("{\"model_type\":\"llama\"," SIZES ",\"layer_types\":[]}", "tells of 0 layers; the model has 4");
}

static void mixtures_say_who_answers(void **state)
{
    (void)state;
    model_config c = reads("{\"model_type\":\"mixtral\"," SIZES
                           ",\"num_local_experts\":8,\"num_experts_per_tok\":2,\"sliding_window\":null}");
    assert_true(c.ffn.n_expert == 8 && c.ffn.n_used == 2 && c.ffn.n_ff_expert == 8 && c.ffn.sum_to_one);
    c = reads("{\"model_type\":\"qwen3_moe\"," SIZES ",\"num_experts\":8,\"num_experts_per_tok\":2,"
              "\"moe_intermediate_size\":6,\"mlp_only_layers\":[1],\"decoder_sparse_step\":2}");
    assert_true(c.ffn.n_expert == 8 && !c.ffn.sum_to_one);
    assert_true(config_layer(&c, 0) == LAYER_DENSE && config_layer(&c, 1) == LAYER_DENSE);
    assert_true(config_layer(&c, 2) == LAYER_DENSE && config_layer(&c, 3) == 0);
    refuses("{\"model_type\":\"qwen3_moe\"," SIZES ",\"num_experts\":8,\"num_experts_per_tok\":9,"
            "\"moe_intermediate_size\":6}",
            "a number of experts that answer of 9");
    refuses("{\"model_type\":\"qwen3_moe\"," SIZES
            ",\"num_experts\":8,\"moe_intermediate_size\":6,\"mlp_only_layers\":[4]}",
            "names layer 4");
}

static void the_text_part_of_gemma3_is_taken(void **state)
{
    (void)state;
    model_config c =
        reads("{\"model_type\":\"gemma3\",\"architectures\":[\"Gemma3ForConditionalGeneration\"],"
              "\"eos_token_id\":[1,6],\"text_config\":{" SIZES ",\"rope_scaling\":{\"rope_type\":"
              "\"linear\",\"factor\":8.0}},\"vision_config\":{}}");
    assert_true(c.n_embd == 64 && c.n_eos == 2 && c.eos_ids[1] == 6);
    assert_true(c.pos.rope.scaling == ROPE_LINEAR && c.pos.local.scaling == ROPE_PLAIN);
}

static void variants_that_are_not_computed_are_refused(void **state)
{
    (void)state;
    refuses("{\"model_type\":\"phi\"," SIZES ",\"qk_layernorm\":true}",
            "\"qk_layernorm\" set is not supported");
    refuses(
        "{\"model_type\":\"gpt2\",\"vocab_size\":9,\"n_embd\":8,\"n_layer\":1,\"n_head\":2,\"n_positions\":4,"
        "\"scale_attn_by_inverse_layer_idx\":true}",
        "\"scale_attn_by_inverse_layer_idx\" set");
    refuses("{\"model_type\":\"albert\"," SIZES ",\"embedding_size\":8,\"num_hidden_groups\":2}", "2 groups");
    refuses("{\"model_type\":\"deberta-v2\"," SIZES ",\"relative_attention\":true}",
            "without \"share_att_key\"");
    refuses("{\"model_type\":\"bert\"," SIZES ",\"position_embedding_type\":\"relative_key\"}",
            "\"relative_key\"");
    refuses("{\"model_type\":\"bert\"," SIZES ",\"is_decoder\":true}", "\"is_decoder\" set");
    refuses("{\"model_type\":\"roberta\"," SIZES ",\"pad_token_id\":1024,\"max_position_embeddings\":100}",
            "leave none");
    refuses("{\"model_type\":\"vit\",\"hidden_size\":8,\"num_hidden_layers\":1,\"num_attention_heads\":2,"
            "\"intermediate_size\":4,\"image_size\":32,\"patch_size\":5}",
            "cannot be cut into patches of 5");
    refuses("{\"model_type\":\"lstm\",\"num_layers\":1,\"input_size\":2,\"hidden_size\":3,\"bidirectional\":"
            "true}",
            "\"bidirectional\" set");
    refuses("{\"model_type\":\"marian\",\"share_encoder_decoder_embeddings\":false,\"vocab_size\":9,\"d_"
            "model\":8,"
            "\"decoder_layers\":1,\"encoder_layers\":1,\"decoder_ffn_dim\":4,\"encoder_ffn_dim\":4,"
            "\"decoder_attention_heads\":2,\"encoder_attention_heads\":2,\"max_position_embeddings\":16}",
            "two vocabularies");
    refuses(
        "{\"model_type\":\"marian\",\"vocab_size\":9,\"d_model\":8,\"decoder_layers\":1,\"encoder_layers\":1,"
        "\"decoder_ffn_dim\":4,\"encoder_ffn_dim\":4,\"decoder_attention_heads\":2,"
        "\"encoder_attention_heads\":3,\"max_position_embeddings\":16}",
        "the encoder's width of 8 cannot be divided among 3 heads");
}

static void heads_are_known_by_their_class(void **state)
{
    (void)state;
    assert_int_equal(
        reads("{\"model_type\":\"electra\",\"architectures\":[\"ElectraForPreTraining\"]," SIZES "}").task,
        TASK_EMBED);
    assert_int_equal(
        reads("{\"model_type\":\"bert\",\"architectures\":[\"BertForPreTraining\"]," SIZES "}").task,
        TASK_FILL_MASK);
    assert_int_equal(reads("{\"model_type\":\"llama\",\"architectures\":[\"LlamaModel\"]," SIZES "}").task,
                     TASK_GENERATE);
    refuses("{\"model_type\":\"llama\",\"architectures\":[\"LlamaForSequenceClassification\"]," SIZES "}",
            "the head \"LlamaForSequenceClassification\" is not supported for llama");
    refuses("{\"model_type\":\"t5\",\"architectures\":[\"T5EncoderModel\"]," SIZES "}", "\"T5EncoderModel\"");
}

static void deberta_says_its_ways_in_two_forms(void **state)
{
    (void)state;
    static const char *const ways[] = {"\"p2c|c2p\"", "[\"c2p\",\"p2c\"]"};
    for (int i = 0; i < 2; i++) {
        char text[512];
        snprintf(text, sizeof text,
                 "{\"model_type\":\"deberta-v2\"," SIZES
                 ",\"relative_attention\":true,\"share_att_key\":true,"
                 "\"position_buckets\":256,\"norm_rel_ebd\":\"layer_norm\",\"type_vocab_size\":0,\"pos_att_"
                 "type\":%s}",
                 ways[i]);
        model_config c = reads(text);
        assert_true(c.pos.relative == 256 && c.pos.relative_max == 8192 && c.n_types == 0);
    }
}

static void pooling_files_make_an_embedder(void **state)
{
    (void)state;
    model_config c;
    shoal_err err;
    const char *config = "{\"model_type\":\"mpnet\",\"architectures\":[\"MPNetForMaskedLM\"]," SIZES "}";
    assert_int_equal(read_both(config, "{\"pooling_mode_cls_token\":true}", &c, &err), 0);
    assert_true(c.task == TASK_EMBED && c.head.pool == POOL_CLS && !c.head.dense);
    assert_int_equal(read_both(config, NULL, &c, &err), 0);
    assert_true(c.task == TASK_FILL_MASK && c.head.dense && c.head.norm && c.head.act == ACT_GELU_ERF &&
                c.tied);
    assert_int_equal(read_both(config, "{\"pooling_mode\":\"lasttoken\"}", &c, &err), 0);
    assert_int_equal(c.head.pool, POOL_LAST);
    assert_int_equal(read_both(config, "{\"pooling_mode_max_tokens\":true}", &c, &err), SHOAL_EUNSUPPORTED);
}

/* ---- folders of one layer --------------------------------------------------------------------------- */

static char folder[256];

static int make_folder(void **state)
{
    (void)state;
    const char *tmp = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/shoal_variant_XXXXXX", tmp ? tmp : "/tmp");
    return mkdtemp(folder) ? 0 : -1;
}

static int drop_folder(void **state)
{
    (void)state;
    static const char *const files[] = {"config.json", "model.safetensors", "m.gguf"};
    for (size_t i = 0; i < 3; i++) {
        char path[512];
        snprintf(path, sizeof path, "%s/%s", folder, files[i]);
        unlink(path);
    }
    return rmdir(folder);
}

static void put(const char *file, const void *data, size_t n)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, n, f), n);
    fclose(f);
}

/* "name 4 3" lines: tensors of those shapes, whose values count up through the file from 0. */
static void put_weights(const char *const *lines, size_t n)
{
    json_t *head = json_object();
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        char name[128];
        int used;
        size_t side, count = 1;
        json_t *shape = json_array();
        assert_int_equal(sscanf(lines[i], "%127s%n", name, &used), 1);
        for (const char *p = lines[i] + used; sscanf(p, "%zu%n", &side, &used) == 1; p += used) {
            json_array_append_new(shape, json_integer((json_int_t)side));
            count *= side;
        }
        json_object_set_new(head, name,
                            json_pack("{s:s,s:o,s:[I,I]}", "dtype", "F32", "shape", shape, "data_offsets",
                                      (json_int_t)(4 * at), (json_int_t)(4 * (at + count))));
        at += count;
    }
    char *text = json_dumps(head, JSON_COMPACT);
    buf b = {0};
    uint64_t len = strlen(text);
    buf_append(&b, &len, sizeof len);
    buf_append(&b, text, len);
    for (size_t i = 0; i < at; i++) buf_append(&b, &(float){(float)i}, sizeof(float));
    put("model.safetensors", b.data, b.len);
    buf_done(&b);
    free(text);
    json_decref(head);
}

static model *open_variant(const char *config, const char *const *lines, size_t n, shoal_err *err)
{
    model *m = NULL;
    put("config.json", config, strlen(config));
    put_weights(lines, n);
    model_open(&m, folder, &(model_options){.no_tokenizer = true}, err);
    return m;
}

static float value(const model *m, const char *name, size_t i)
{
    const tensor *t = model_tensor(m, name);
    if (!t) fail_msg("%s is not there", name);
    return ((const float *)t->data)[i];
}

/* What is written opens again, with this value at the same place. */
static void survives(const model *m, const char *name, size_t i)
{
    char path[512];
    quantize_report report;
    shoal_err err;
    model *again = NULL;
    snprintf(path, sizeof path, "%s/m.gguf", folder);
    if (quantize_model(folder, path, &(quantize_options){.type = DT_F32}, &report, &err) != 0 ||
        model_open(&again, path, NULL, &err) != 0)
        fail_msg("%s", err.message);
    assert_true(value(m, name, i) == value(again, name, i));
    assert_int_equal(model_tensor_count(m), model_tensor_count(again));
    model_free(again);
}

#define COUNT(a) (sizeof(a) / sizeof *(a))
#define TINY                                                                                \
    "\"vocab_size\":3,\"hidden_size\":4,\"num_hidden_layers\":1,\"num_attention_heads\":2," \
    "\"max_position_embeddings\":8"

static void single_experts_are_stacked(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "model.layers.0.block_sparse_moe.experts.1.w1.weight 6 4", /* 0.. : gate of the second */
        "model.layers.0.block_sparse_moe.experts.0.w1.weight 6 4",
        "model.layers.0.block_sparse_moe.experts.0.w2.weight 4 6",
        "model.layers.0.block_sparse_moe.experts.1.w2.weight 4 6",
        "model.layers.0.block_sparse_moe.experts.0.w3.weight 6 4",
        "model.layers.0.block_sparse_moe.experts.1.w3.weight 6 4",
        "model.layers.0.block_sparse_moe.gate.weight 2 4",
        "model.embed_tokens.weight 3 4",
        "model.norm.weight 4",
        "lm_head.weight 3 4",
        "model.layers.0.input_layernorm.weight 4",
        "model.layers.0.post_attention_layernorm.weight 4",
        "model.layers.0.self_attn.q_proj.weight 4 4",
        "model.layers.0.self_attn.k_proj.weight 4 4",
        "model.layers.0.self_attn.v_proj.weight 4 4",
        "model.layers.0.self_attn.o_proj.weight 4 4",
    };
    const char *config = "{\"model_type\":\"mixtral\",\"num_local_experts\":2,\"num_experts_per_tok\":1,"
                         "\"intermediate_size\":6,\"sliding_window\":null," TINY "}";
    shoal_err err;
    model *m = open_variant(config, lines, COUNT(lines), &err);
    if (!m) fail_msg("%s", err.message);
    const tensor *t = model_tensor(m, "blk.0.ffn_gate_exps.weight");
    assert_true(t->dims[0] == 4 && t->dims[1] == 6 && t->dims[2] == 2 && t->n_dims == 3);
    assert_true(value(m, "blk.0.ffn_gate_exps.weight", 0) == 24 &&
                value(m, "blk.0.ffn_gate_exps.weight", 24) == 0);
    survives(m, "blk.0.ffn_gate_exps.weight", 25);
    model_free(m);
    assert_null(open_variant(config, lines + 1, COUNT(lines) - 1, &err));
    assert_non_null(strstr(err.message, "blk.0.ffn_gate_exps.weight is missing in part: 1 of 2"));
}

static void norms_of_single_heads_are_stacked(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "model.layers.0.self_attn.q_layernorm.norms.1.weight 2",
        "model.layers.0.self_attn.q_layernorm.norms.0.weight 2",
        "model.layers.0.self_attn.k_layernorm.norms.0.weight 2",
        "model.layers.0.self_attn.k_layernorm.norms.1.weight 2",
        "model.embed_tokens.weight 3 4",
        "model.norm.weight 4",
        "model.norm.bias 4",
        "lm_head.weight 3 4",
        "model.layers.0.input_layernorm.weight 4",
        "model.layers.0.input_layernorm.bias 4",
        "model.layers.0.self_attn.q_proj.weight 4 4",
        "model.layers.0.self_attn.k_proj.weight 4 4",
        "model.layers.0.self_attn.v_proj.weight 4 4",
        "model.layers.0.self_attn.o_proj.weight 4 4",
        "model.layers.0.mlp.gate_proj.weight 6 4",
        "model.layers.0.mlp.up_proj.weight 6 4",
        "model.layers.0.mlp.down_proj.weight 4 6",
    };
    shoal_err err;
    model *m = open_variant("{\"model_type\":\"stablelm\",\"intermediate_size\":6,\"qk_layernorm\":true,"
                            "\"use_parallel_residual\":true,\"partial_rotary_factor\":1," TINY "}",
                            lines, COUNT(lines), &err);
    if (!m) fail_msg("%s", err.message);
    assert_true(model_get_config(m)->attn.qk_norm == QK_NORM_EACH);
    assert_true(model_get_config(m)->branch == BRANCH_ONE_NORM);
    assert_true(value(m, "blk.0.attn_q_norm.weight", 0) == 2 && value(m, "blk.0.attn_q_norm.weight", 2) == 0);
    survives(m, "blk.0.attn_q_norm.weight", 3);
    model_free(m);
}

/* The 350 M model: narrow embeddings, norms behind the sums, two rows in front of the positions. */
static void the_narrow_opt_is_read(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "model.decoder.embed_positions.weight 10 4",
        "model.decoder.embed_tokens.weight 3 2",
        "model.decoder.project_in.weight 4 2",
        "model.decoder.project_out.weight 2 4",
        "model.decoder.layers.0.self_attn.q_proj.weight 4 4",
        "model.decoder.layers.0.self_attn.k_proj.weight 4 4",
        "model.decoder.layers.0.self_attn.v_proj.weight 4 4",
        "model.decoder.layers.0.self_attn.out_proj.weight 4 4",
        "model.decoder.layers.0.self_attn_layer_norm.weight 4",
        "model.decoder.layers.0.self_attn_layer_norm.bias 4",
        "model.decoder.layers.0.final_layer_norm.weight 4",
        "model.decoder.layers.0.final_layer_norm.bias 4",
        "model.decoder.layers.0.fc1.weight 6 4",
        "model.decoder.layers.0.fc2.weight 4 6",
    };
    shoal_err err;
    model *m = open_variant("{\"model_type\":\"opt\",\"ffn_dim\":6,\"word_embed_proj_dim\":2,"
                            "\"do_layer_norm_before\":false," TINY "}",
                            lines, COUNT(lines), &err);
    if (!m) fail_msg("%s", err.message);
    const model_config *c = model_get_config(m);
    assert_true(c->n_embd_in == 2 && c->norm.place == PLACE_POST && !c->norm.final && c->pos.offset == 0);
    assert_true(value(m, "position_embd.weight", 0) == 8 &&
                model_tensor(m, "position_embd.weight")->dims[1] == 8);
    assert_non_null(model_tensor(m, "blk.0.layer_output_norm.bias"));
    survives(m, "position_embd.weight", 0);
    model_free(m);
}

static void a_fill_mask_head_is_read(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "cls.predictions.bias 3",
        "cls.predictions.decoder.weight 3 4",
        "cls.predictions.decoder.bias 3",
        "cls.predictions.transform.dense.weight 4 4",
        "cls.predictions.transform.dense.bias 4",
        "cls.predictions.transform.LayerNorm.gamma 4",
        "cls.predictions.transform.LayerNorm.beta 4",
        "cls.seq_relationship.weight 2 4",
        "bert.pooler.dense.weight 4 4",
        "bert.pooler.dense.bias 4",
        "bert.embeddings.word_embeddings.weight 3 4",
        "bert.embeddings.position_embeddings.weight 8 4",
        "bert.embeddings.token_type_embeddings.weight 2 4",
        "bert.embeddings.LayerNorm.gamma 4",
        "bert.embeddings.LayerNorm.beta 4",
        "bert.encoder.layer.0.attention.self.query.weight 4 4",
        "bert.encoder.layer.0.attention.self.query.bias 4",
        "bert.encoder.layer.0.attention.self.key.weight 4 4",
        "bert.encoder.layer.0.attention.self.key.bias 4",
        "bert.encoder.layer.0.attention.self.value.weight 4 4",
        "bert.encoder.layer.0.attention.self.value.bias 4",
        "bert.encoder.layer.0.attention.output.dense.weight 4 4",
        "bert.encoder.layer.0.attention.output.dense.bias 4",
        "bert.encoder.layer.0.attention.output.LayerNorm.gamma 4",
        "bert.encoder.layer.0.attention.output.LayerNorm.beta 4",
        "bert.encoder.layer.0.intermediate.dense.weight 6 4",
        "bert.encoder.layer.0.intermediate.dense.bias 6",
        "bert.encoder.layer.0.output.dense.weight 4 6",
        "bert.encoder.layer.0.output.dense.bias 4",
        "bert.encoder.layer.0.output.LayerNorm.gamma 4",
        "bert.encoder.layer.0.output.LayerNorm.beta 4",
    };
    shoal_err err;
    model *m = open_variant("{\"model_type\":\"bert\",\"architectures\":[\"BertForMaskedLM\"],"
                            "\"intermediate_size\":6," TINY "}",
                            lines, COUNT(lines), &err);
    if (!m) fail_msg("%s", err.message);
    assert_int_equal(model_get_config(m)->task, TASK_FILL_MASK);
    assert_true(value(m, "output.bias", 0) == 0);  /* not the decoder's copy */
    assert_null(model_tensor(m, "output.weight")); /* tied */
    assert_null(model_tensor(m, "cls.weight"));
    assert_non_null(model_tensor(m, "mlm.norm.bias"));
    survives(m, "mlm.weight", 3);
    model_free(m);
}

#define A(f) cmocka_unit_test_setup_teardown(f, make_arena, drop_arena)
#define F(f) cmocka_unit_test_setup_teardown(f, make_folder, drop_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        A(scaling_has_old_names_and_new),
        A(yarn_has_its_own_numbers),
        A(longrope_has_two_lists_of_divisors),
        A(windows_fall_where_the_family_says),
        A(mixtures_say_who_answers),
        A(the_text_part_of_gemma3_is_taken),
        A(variants_that_are_not_computed_are_refused),
        A(heads_are_known_by_their_class),
        A(deberta_says_its_ways_in_two_forms),
        A(pooling_files_make_an_embedder),
        F(single_experts_are_stacked),
        F(norms_of_single_heads_are_stacked),
        F(the_narrow_opt_is_read),
        F(a_fill_mask_head_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
