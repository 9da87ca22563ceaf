/* rule_match.c: match stages: the devices that a text names. */
#include <string.h>

#include "base/utf8.h"
#include "pipeline/pipeline_template.h"
#include "rules/rule_devices.h"

/* ---- spans ------------------------------------------------------------------------------------- */

static bool label_counts(const config_stage *st, const char *label)
{
    for (unsigned i = 0; i < st->n_slot_labels; i++)
        if (pipeline_label_is(label, st->slot_labels[i])) return true;
    return st->n_slot_labels == 0;
}

/* The byte at which a character begins; the end of the text when it has fewer. */
static size_t byte_of(const char *text, json_int_t character)
{
    size_t at = 0, len = strlen(text);
    for (uint32_t cp; character > 0 && at < len; character--) {
        size_t n = utf8_decode(text + at, len - at, &cp);
        at += n ? n : 1;
    }
    return at;
}

/* The spans of the tag stage that count. Where it found none, or did not run, the text itself is read. */
static int read_spans(const stage_run *s, const char *text, match_options *o)
{
    const stage_run *tag = s->stage->slots ? process_stage(s, s->stage->slots) : NULL;
    size_t n = tag ? json_array_size(tag->slots) : 0;
    match_span *spans = arena_alloc(s->run->memory, (n + 1) * sizeof *spans);
    if (!spans) return SHOAL_ENOMEM;
    for (size_t i = 0; i < n; i++) {
        const json_t *one = json_array_get(tag->slots, i);
        const char *label = json_string_value(json_object_get(one, "label"));
        if (!label || !label_counts(s->stage, label)) continue;
        spans[o->n_spans++] = (match_span){byte_of(text, json_integer_value(json_object_get(one, "start"))),
                                           byte_of(text, json_integer_value(json_object_get(one, "end")))};
    }
    o->spans = spans;
    return 0;
}

/* ---- what was found ---------------------------------------------------------------------------- */

static json_t *device_json(process_run *r, const match_device *d)
{
    const config_device *dev = &r->in->devices[d->device];
    json_t *o = json_object();
    process_put(r, o, "id", json_string(dev->id));
    process_put(r, o, "name", json_string(dev->name));
    process_put(r, o, "by", json_string(match_by_name(d->by)));
    process_put(r, o, "score", process_rounded(match_by_score(d->by)));
    return o;
}

static json_t *ambiguous_json(process_run *r, const match_part *p)
{
    json_t *o = json_object(), *ids = json_array();
    for (size_t i = 0; i < p->n; i++) process_add(r, ids, json_string(r->in->devices[p->devices[i]].id));
    process_put(r, o, "text", json_string(p->text));
    process_put(r, o, "devices", ids);
    return o;
}

static json_t *details_json(process_run *r, const matching *m)
{
    json_t *o = json_object(), *devices = json_array(), *unknown = json_array(), *ambiguous = json_array();
    for (size_t i = 0; i < m->n; i++) process_add(r, devices, device_json(r, &m->devices[i]));
    for (size_t i = 0; i < m->n_unknown; i++) process_add(r, unknown, json_string(m->unknown[i].text));
    for (size_t i = 0; i < m->n_ambiguous; i++)
        process_add(r, ambiguous, ambiguous_json(r, &m->ambiguous[i]));
    process_put(r, o, "label", json_string(match_label_name(m->label)));
    process_put(r, o, "devices", devices);
    process_put(r, o, "unknown", unknown);
    process_put(r, o, "ambiguous", ambiguous);
    process_put(r, o, "language", json_string(m->utterance->t->name));
    return o;
}

static void match_note(stage_run *s, const matching *m)
{
    double least = m->n ? 1 : 0;
    for (size_t i = 0; i < m->n; i++) {
        double score = match_by_score(m->devices[i].by);
        if (score < least) least = score;
        buf_printf(&s->text, "%s%s", i ? "\n" : "", s->run->in->devices[m->devices[i].device].id);
    }
    stage_fact *f = process_fact(s);
    f->label = match_label_name(m->label);
    f->score = least;
    f->text = s->text.len ? s->text.data : "";
    s->own = m;
    s->details = details_json(s->run, m);
}

int rule_devices_find(const stage_run *s, const char *text, matching *ret)
{
    const process_input *in = s->run->in;
    const rule_devices *d = rule_devices_of(s->stage);
    match_options o = {.only = d->languages, .n_only = s->stage->n_languages};
    if (read_spans(s, text, &o)) return SHOAL_ENOMEM;
    return match(ret, d->words, in->devices, in->n_devices, text, &o, s->run->memory);
}

static int start_match(stage_run *s, const call_context *ctx)
{
    (void)ctx; /* no call is made */
    matching *m = arena_alloc(s->run->memory, sizeof *m);
    const char *text = process_read_kept(s);
    if (!m || !text || rule_devices_find(s, text, m)) return SHOAL_ENOMEM;
    match_note(s, m);
    return s->text.failed ? SHOAL_ENOMEM : 0;
}

const stage_runner rule_match_runner = {.start = start_match};

/* ---- its keys ----------------------------------------------------------------------------------- */

/* Spans are counted in the text that the tag stage read. */
static int check_slots(const stage_site *s, const config_stage *st, shoal_err *err)
{
    if (st->n_slot_labels && !st->slots)
        return err_set(err, SHOAL_EINVALID,
                       "%sslot_labels: needs 'slots', the tag stage whose spans they are",
                       stage_site_path(s));
    if (!st->slots) return 0;
    const config_stage *tag = stage_site_stage(s, st->slots);
    const char *mine = st->input ? st->input : "{input}", *its = tag->input ? tag->input : "{input}";
    if (strcmp(mine, its) == 0) return 0;
    return err_set(err, SHOAL_EINVALID,
                   "%sslots: '%s' reads another text than this stage: give both the same 'input'",
                   stage_site_path(s), st->slots);
}

static int check_match(stage_site *s, const config_stage *st, shoal_err *err)
{
    int rc = stage_site_reads(s, "slots", st->slots, "tag", err);
    return rc ? rc : check_slots(s, st, err);
}

#define NAME_OF(e, n, about) n,
static const char *const LABELS[] = {MATCH_LABELS(NAME_OF)};
#undef NAME_OF

const stage_kind rule_match_kind = {
    .name = "match",
    .gives = GIVES_LABEL | GIVES_SCORE | GIVES_TEXT | READS_TEXT | GIVES_DETAILS | REPEATS,
    .fields = "input slots slot_labels languages lexicon!",
    .labels = LABELS,
    .n_labels = sizeof LABELS / sizeof *LABELS,
    .answer = "targets",
    .check = check_match,
    .open = rule_devices_open,
    .close = rule_devices_close,
};
