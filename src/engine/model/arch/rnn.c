/* rnn.c: stacked LSTM (Hochreiter & Schmidhuber 1997) and GRU (Cho et al. 2014) cells under a classifier,
 * with the names that PyTorch gives a module of them. */
#include "model/config/conf.h"

#define CELLS(name)                                                            \
    TENSOR("rnn.#.w_ih.*", name "*_ih_l#", RULE_BIAS, DIM_GATES, DIM_CELL_IN), \
        TENSOR("rnn.#.w_hh.*", name "*_hh_l#", RULE_BIAS, DIM_GATES, DIM_HIDDEN)
#define HEADS                                                                               \
    TENSOR("cls.output.*", "classifier.*", RULE_BIAS | RULE_SMALL, DIM_LABELS, DIM_HIDDEN), \
        TENSOR("cls.output.*", "head.*", RULE_ALIAS | RULE_BIAS, DIM_LABELS, DIM_HIDDEN),   \
        TENSOR("cls.output.*", "fc.*", RULE_ALIAS | RULE_BIAS, DIM_LABELS, DIM_HIDDEN)

static const tensor_rule lstm_rules[] = {CELLS("lstm."), HEADS, {0}};
static const tensor_rule gru_rules[] = {CELLS("gru."), HEADS, {0}};

#define SIZE(field, gguf, json, max)                               \
    {                                                              \
        gguf, json, CONF_AT(field), CONF_SIZE, CONF_NEEDED, 1, max \
    }
static const conf_row rows[] = {SIZE(n_layer, "block_count", "num_layers", 1024),
                                SIZE(series.n_input, "input_length", "input_size", 65536),
                                SIZE(series.n_hidden, "hidden_length", "hidden_size", 65536),
                                {NULL, "bidirectional", 0, CONF_FALSE, 0, 0, 0},
                                CONF_END};

#define COMMON .task = TASK_SCORE, .tasks = CAN(TASK_SCORE), .conf = {rows}

const arch_def arch_lstm = {
    .name = "lstm",
    .hf_types = NAMES("lstm"),
    .base = {.series.cell = CELL_LSTM},
    .tensors = {lstm_rules},
    COMMON,
};

const arch_def arch_gru = {
    .name = "gru",
    .hf_types = NAMES("gru"),
    .base = {.series.cell = CELL_GRU},
    .tensors = {gru_rules},
    COMMON,
};
