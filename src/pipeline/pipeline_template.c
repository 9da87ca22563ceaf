/* pipeline_template.c: templates of prompts cut into pieces and filled in; see pipeline_template.h. What
 * cannot be filled in was refused by pipeline_check: here only memory can fail. */
#include "pipeline/pipeline_template.h"

#include <ctype.h>
#include <string.h>

bool template_next(const char **at, template_piece *ret)
{
    const char *s = *at;
    if (!*s) return false;
    if (s[0] == '{' && s[1] != '{') {
        size_t n = strcspn(s + 1, "}");
        *ret = (template_piece){.at = s + 1, .len = n, .is_field = true};
        *at = s + 1 + n + (s[1 + n] == '}');
        return true;
    }
    /* "{{" stands for its second brace: the literal starts there. */
    size_t skip = s[0] == '{';
    size_t n = skip + strcspn(s + 2 * skip, "{");
    *ret = (template_piece){.at = s + skip, .len = n};
    *at = s + skip + n;
    return true;
}

template_field template_field_of(const config_pipeline *p, const template_piece *piece, int *ret_stage)
{
    static const struct {
        const char *name;
        bool takes_stage;
    } fields[] = {
#define FIELD_ROW(e, n, s) {n, s},
        TEMPLATE_FIELD_TABLE(FIELD_ROW)
#undef FIELD_ROW
    };
    *ret_stage = -1;
    const char *dot = memchr(piece->at, '.', piece->len);
    size_t n_name = dot ? (size_t)(dot - piece->at) : piece->len;
    for (int f = 0; f < FIELD_UNKNOWN; f++) {
        if (strlen(fields[f].name) != n_name || memcmp(fields[f].name, piece->at, n_name) != 0) continue;
        if (fields[f].takes_stage != (dot != NULL)) return FIELD_UNKNOWN;
        if (dot) *ret_stage = pipeline_stage_index(p, dot + 1, piece->len - n_name - 1);
        return (template_field)f;
    }
    return FIELD_UNKNOWN;
}

/* The input with its first letter in upper case (ASCII). */
static void put_sentence(const pipeline_facts *facts, buf *out)
{
    if (!*facts->input) return;
    buf_putc(out, (char)toupper((unsigned char)*facts->input));
    buf_puts(out, facts->input + 1);
}

static void put_devices(const pipeline_facts *facts, buf *out)
{
    for (size_t i = 0; i < facts->n_devices; i++) {
        const config_device *d = &facts->devices[i];
        buf_printf(out, "%s%s '%s' = %s", i ? "\n" : "", d->id, d->name, d->state);
    }
}

int pipeline_expand(const config_pipeline *p, const char *template, const pipeline_facts *facts, buf *out)
{
    template_piece piece;
    while (template_next(&template, &piece)) {
        if (!piece.is_field) {
            buf_append(out, piece.at, piece.len);
            continue;
        }
        int stage;
        switch (template_field_of(p, &piece, &stage)) {
        case FIELD_INPUT: buf_puts(out, facts->input); break;
        case FIELD_SENTENCE: put_sentence(facts, out); break;
        case FIELD_DEVICES: put_devices(facts, out); break;
        case FIELD_CONTEXT: buf_puts(out, facts->context); break;
        case FIELD_LABEL: buf_puts(out, facts->stages[stage].label); break;
        case FIELD_TEXT: buf_puts(out, facts->stages[stage].text); break;
        case FIELD_UNKNOWN: break;
        }
    }
    return out->failed ? SHOAL_ENOMEM : 0;
}

static bool template_has(const char *template, const char *name)
{
    template_piece piece;
    while (template && template_next(&template, &piece))
        if (piece.is_field && piece.len == strlen(name) && memcmp(piece.at, name, piece.len) == 0)
            return true;
    return false;
}

bool pipeline_uses(const config_pipeline *p, const char *name)
{
    for (unsigned i = 0; i < p->n_stages; i++)
        if (template_has(p->stages[i].system, name) || template_has(p->stages[i].prompt, name) ||
            template_has(p->stages[i].input, name))
            return true;
    return false;
}
