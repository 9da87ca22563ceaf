/* openai_foreign.c: fields of other servers (vLLM, llama-server, text-generation-webui) that would change a reply and are
 * not served. Each has a value at which it changes nothing; any other is refused by the field's name, since a
 * reply that ignores what was asked looks right and is not. Unknown fields beside these are left alone. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "messages/fields.h"
#include "dialects/openai_chat.h"

typedef enum { OFF_NUMBER, OFF_FALSE, OFF_TRUE, OFF_EMPTY } off_kind;

static const struct foreign {
    const char *field;
    off_kind kind;
    double off;     /* of OFF_NUMBER */
    bool chat_only; /* text completions have it, or have no messages for it */
} FOREIGN[] = {
    {"typical_p", OFF_NUMBER, 1, false},
    {"mirostat", OFF_NUMBER, 0, false},
    {"mirostat_mode", OFF_NUMBER, 0, false},
    {"dry_multiplier", OFF_NUMBER, 0, false},
    {"xtc_probability", OFF_NUMBER, 0, false},
    {"dynatemp_range", OFF_NUMBER, 0, false},
    {"top_n_sigma", OFF_NUMBER, -1, false},
    {"top_a", OFF_NUMBER, 0, false},
    {"tfs", OFF_NUMBER, 1, false},
    {"tfs_z", OFF_NUMBER, 1, false},
    {"no_repeat_ngram_size", OFF_NUMBER, 0, false},
    {"prompt_logprobs", OFF_EMPTY, 0, false}, /* echo with logprobs has them */
    {"return_token_ids", OFF_FALSE, 0, false},
    {"logits_processors", OFF_EMPTY, 0, false},
    {"prompt_embeds", OFF_EMPTY, 0, false},
    {"num_beams", OFF_NUMBER, 1, false},
    {"use_beam_search", OFF_FALSE, 0, false},
    {"include_stop_str_in_output", OFF_FALSE, 0, false},
    {"skip_special_tokens", OFF_TRUE, 0, false},
    {"stop_token_ids", OFF_EMPTY, 0, false},
    {"bad_words", OFF_EMPTY, 0, false},
    {"allowed_token_ids", OFF_EMPTY, 0, false},
    {"samplers", OFF_EMPTY, 0, false},
    {"truncate_prompt_tokens", OFF_EMPTY, 0, false},
    {"echo", OFF_FALSE, 0, true},
    {"continue_final_message", OFF_FALSE, 0, true},
    {"add_generation_prompt", OFF_TRUE, 0, true},
    {"documents", OFF_EMPTY, 0, true},
    {"web_search_options", OFF_EMPTY, 0, true},
};

static bool is_empty(const json_t *v)
{
    const char *text = json_string_value(v);
    return text ? !*text : json_is_array(v) && json_array_size(v) == 0;
}

static bool is_off(const struct foreign *f, const json_t *v)
{
    switch (f->kind) {
    case OFF_NUMBER: return json_is_number(v) && json_number_value(v) == f->off;
    case OFF_FALSE: return json_is_false(v);
    case OFF_TRUE: return json_is_true(v);
    case OFF_EMPTY: return is_empty(v);
    }
    return false;
}

static int openai_foreign_refuse(const struct foreign *f, api_error *e)
{
    char otherwise[64] = "";
    if (f->kind == OFF_NUMBER) snprintf(otherwise, sizeof otherwise, ", or set it to %g", f->off);
    if (f->kind == OFF_FALSE || f->kind == OFF_TRUE)
        snprintf(otherwise, sizeof otherwise, ", or set it to %s", f->kind == OFF_TRUE ? "true" : "false");
    return api_error_bad(e, f->field, "\"%s\" is not served here: leave it out%s", f->field, otherwise);
}

int openai_refuse_foreign(const gen_spec *s, api_error *e)
{
    for (size_t i = 0; i < sizeof FOREIGN / sizeof *FOREIGN; i++) {
        const json_t *v = FOREIGN[i].chat_only && !s->chat ? NULL : fields_get(s->root, FOREIGN[i].field);
        if (v && !is_off(&FOREIGN[i], v)) return openai_foreign_refuse(&FOREIGN[i], e);
    }
    return 0;
}
