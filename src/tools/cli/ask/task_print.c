/* task_print.c: a printer for each task, over the JSON of a command or an endpoint. */
#include "cli/ask/task_print.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "command/cli_model.h"

enum { LABELS_SHOWN = 5 };

static const char *task_print_text_of(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));
    return s ? s : "";
}

/* As the model gave it: a float, of which JSON has nine digits. */
static double float_of(const json_t *v)
{
    return (double)(float)json_number_value(v);
}

static double percent_of(const json_t *o, const char *key)
{
    return 100 * float_of(json_object_get(o, key));
}

/* A command's object says of its input what an endpoint says of each. */
static const json_t *list_of(const json_t *answer, const char *key)
{
    const json_t *own = json_object_get(answer, key);
    return own ? own : json_object_get(json_array_get(json_object_get(answer, "data"), 0), key);
}

static void print_labels(const json_t *answer)
{
    size_t i;
    json_t *l;
    size_t most =
        json_object_get(answer, "labels") ? SIZE_MAX : LABELS_SHOWN; /* the command has its own --top */
    json_array_foreach(list_of(answer, "labels"), i, l) if (i < most)
        cli_printf("%6.2f %%  %s\n", percent_of(l, "score"), task_print_text_of(l, "label"));
}

static void print_spans(const json_t *answer)
{
    size_t i;
    json_t *s;
    json_array_foreach(list_of(answer, "spans"), i, s)
        cli_printf("%lld-%lld  %-20s %s  (%.1f %%)\n", json_integer_value(json_object_get(s, "start")),
                   json_integer_value(json_object_get(s, "end")), task_print_text_of(s, "label"),
                   task_print_text_of(s, "text"), percent_of(s, "score"));
}

static void print_vector(const json_t *answer)
{
    size_t i;
    json_t *x;
    json_array_foreach(list_of(answer, "embedding"), i, x) cli_printf("%s%.6g", i ? " " : "", float_of(x));
    putchar('\n');
}

static void print_ranks(const json_t *answer)
{
    size_t i;
    json_t *r;
    json_array_foreach(json_object_get(answer, "results"), i, r)
    {
        const json_t *d = json_object_get(r, "document");
        cli_printf("%6.2f %%  %s\n", percent_of(r, "relevance_score"),
                   json_is_string(d) ? json_string_value(d) : task_print_text_of(d, "text"));
    }
}

static void print_masks(const json_t *answer)
{
    size_t i, k;
    json_t *mask, *word;
    json_array_foreach(list_of(answer, "masks"), i, mask)
    {
        if (i) putchar('\n');
        json_array_foreach(mask, k, word)
            cli_printf("%6.2f %%  %s\n", percent_of(word, "score"), task_print_text_of(word, "sequence"));
    }
}

static void print_choice(const json_t *answer)
{
    cli_printf("%s\n", task_print_text_of(json_array_get(json_object_get(answer, "choices"), 0), "text"));
}

static void print_heard(const json_t *answer)
{
    const char *s = task_print_text_of(answer, "text");
    cli_printf("%s\n", s + strspn(s, " "));
}

static void print_all(const json_t *answer)
{
    cli_print_json(answer, JSON_INDENT(1) | JSON_REAL_PRECISION(6));
}

bool task_print(const char *task, const json_t *answer)
{
    static const struct {
        const char *task;
        void (*print)(const json_t *answer);
    } ROWS[] = {
        {"classify", print_labels}, {"classify-image", print_labels}, {"tag", print_spans},
        {"embed", print_vector},    {"rerank", print_ranks},          {"fill-mask", print_masks},
        {"seq2seq", print_choice},  {"generate", print_choice},       {"transcribe", print_heard},
        {"score", print_all},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        if (strcmp(ROWS[i].task, task) != 0) continue;
        if (answer) ROWS[i].print(answer);
        return true;
    }
    return false;
}
