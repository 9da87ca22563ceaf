/* pipeline_check.c: a pipeline of shoal.yaml, checked once before anything runs. A stage may name only stages
 * declared before it, so there can be no cycle; each that it has to wait for becomes a bit of its `needs`. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "json/json.h"
#include "pipeline/pipeline_template.h"
#include "pipeline/pipeline_tools.h"

/* Where a check is: the pipeline, the stage under check, and the field's path for messages. */
typedef struct stage_site {
    config_pipeline *p;
    unsigned stage;
    char path[96];
} site;

/* Kinds are bits: of each its place in the registry. */
#define ANY_KIND (~0u)

static const stage_registry *pipeline_check_kinds_of(const config_pipeline *p)
{
    return p->kinds ? p->kinds : &PLAIN_STAGES;
}

static unsigned bit_of(const config_pipeline *p, const stage_kind *k)
{
    const stage_row *row = stage_registry_row(p->kinds, k);
    return row ? 1u << (row - pipeline_check_kinds_of(p)->stages) : 0;
}

static unsigned kind_with_id(const config_pipeline *p, stage_id id)
{
    return bit_of(p, &STAGE_KINDS[id]);
}

/* Those that give this, or, of 0, those with a model. */
static unsigned kinds_that_give(const config_pipeline *p, unsigned what)
{
    const stage_registry *r = pipeline_check_kinds_of(p);
    unsigned kinds = 0;
    for (size_t i = 0; i < r->n_stages; i++)
        if (what ? (r->stages[i].kind->gives & what) != 0 : r->stages[i].kind->task != NULL) kinds |= 1u << i;
    return kinds;
}

/* Is the word in a list with blanks between them? *ret_needed: a '!' follows it. */
static bool has_word(const char *list, const char *word, bool *ret_needed)
{
    size_t n = strlen(word);
    for (const char *at = list; at && (at = strstr(at, word)); at += n) {
        bool whole = (at == list || at[-1] == ' ') && strchr(" !", at[n]);
        *ret_needed = at[n] == '!';
        if (whole) return true;
    }
    return false;
}

/* Those of a list of names. */
static unsigned kinds_named(const config_pipeline *p, const char *names)
{
    const stage_registry *r = pipeline_check_kinds_of(p);
    unsigned kinds = 0;
    bool unused;
    for (size_t i = 0; i < r->n_stages; i++)
        if (has_word(names, r->stages[i].kind->name, &unused)) kinds |= 1u << i;
    return kinds;
}

/* Those that have a field. */
static unsigned kinds_with(const config_pipeline *p, const char *field)
{
    const stage_registry *r = pipeline_check_kinds_of(p);
    unsigned kinds = 0;
    bool unused;
    for (size_t i = 0; i < r->n_stages; i++)
        if (has_word(r->stages[i].kind->fields, field, &unused)) kinds |= 1u << i;
    return kinds;
}

/* "classify, ground, line or check" */
static void name_kinds(const config_pipeline *p, unsigned kinds, char *out, size_t cap)
{
    const stage_registry *r = pipeline_check_kinds_of(p);
    size_t n = 0;
    unsigned left = kinds;
    for (size_t k = 0; k < r->n_stages && n < cap; k++) {
        if (!(kinds >> k & 1)) continue;
        left &= ~(1u << k);
        n += (size_t)snprintf(out + n, cap - n, "%s%s",
                              n == 0 ? ""
                              : left ? ", "
                                     : " or ",
                              r->stages[k].kind->name);
    }
}

/* The article of one kind, or of a list of them. */
static const char *an(const char *kind)
{
    return strchr("aeiou", *kind) ? "an" : "a";
}

/* Stage `i` must have been declared before the one under check; then it is something to wait for. */
static int refer(site *s, const char *field, const char *name, size_t n_name, unsigned kinds, shoal_err *err)
{
    int i = pipeline_stage_index(s->p, name, n_name);
    if (i < 0 || (unsigned)i >= s->stage)
        return err_set(err, SHOAL_EINVALID, "%s%s: '%.*s' is no stage declared before '%s'", s->path, field,
                       (int)(n_name < 64 ? n_name : 64), name, s->p->stages[s->stage].name);
    if (!(kinds & bit_of(s->p, s->p->stages[i].kind))) {
        char wanted[160] = "";
        const char *kind = s->p->stages[i].kind->name;
        name_kinds(s->p, kinds, wanted, sizeof wanted);
        if (!*wanted)
            return err_set(err, SHOAL_EINVALID, "%s%s: this program has no kind of stage for it", s->path,
                           field);
        return err_set(err, SHOAL_EINVALID, "%s%s: '%s' is %s %s stage, %s %s stage is needed here", s->path,
                       field, s->p->stages[i].name, an(kind), kind, an(wanted), wanted);
    }
    s->p->stages[s->stage].needs |= 1u << i;
    return 0;
}

/* The stage under check reads what stage `name` came to. */
static int refer_text(site *s, const char *field, const char *name, size_t n_name, unsigned kinds,
                      shoal_err *err)
{
    int rc = refer(s, field, name, n_name, kinds, err);
    if (!rc) s->p->stages[s->stage].reads |= 1u << pipeline_stage_index(s->p, name, n_name);
    return rc;
}

/* The same, where one result is looked at, not a list of them. */
static int refer_one(site *s, const char *field, const char *name, size_t n_name, unsigned kinds,
                     shoal_err *err)
{
    int rc = refer(s, field, name, n_name, kinds, err);
    int i = rc ? -1 : pipeline_stage_index(s->p, name, n_name);
    if (i < 0 || !pipeline_each(&s->p->stages[i])) return rc;
    return err_set(err, SHOAL_EINVALID,
                   "%s%s: '%s' goes through a list, so it has no one label, score or verdict; its values are "
                   "{json.%s}",
                   s->path, field, s->p->stages[i].name, s->p->stages[i].name);
}

/* It looks at the input, which the transcribe stages before it may write. */
static void await_input(site *s)
{
    for (unsigned i = 0; i < s->stage; i++)
        if (s->p->stages[i].kind->id == STAGE_TRANSCRIBE) s->p->stages[s->stage].needs |= 1u << i;
}

static void read_input(site *s)
{
    await_input(s);
    s->p->stages[s->stage].reads_input = true;
}

const char *const *pipeline_labels(const config_stage *st, size_t *ret_n)
{
    if (st->kind->id == STAGE_EMBED) return *ret_n = st->n_candidates, st->candidates;
    if (st->kind->id == STAGE_RERANK) return *ret_n = st->n_documents, st->documents;
    return *ret_n = st->kind->n_labels, st->kind->labels;
}

static int check_labels(const site *s, const stage_condition *c, shoal_err *err)
{
    size_t n, k;
    const config_stage *about = &s->p->stages[pipeline_stage_index(s->p, c->stage, strlen(c->stage))];
    const char *const *names = pipeline_labels(about, &n);
    bool verdicts = about->kind->labels != NULL; /* written out: a prefix of one would be a slip */
    for (unsigned i = 0; names && i < c->n_label; i++) {
        for (k = 0; k < n; k++)
            if (verdicts ? strcmp(names[k], c->label[i]) == 0 : pipeline_label_is(names[k], c->label[i]))
                break;
        if (k == n)
            return err_set(err, SHOAL_EINVALID, "%s.label[%u]: %s %s stage never comes to '%s'", s->path, i,
                           an(about->kind->name), about->kind->name, c->label[i]);
    }
    return 0;
}

static int check_condition(site *s, const stage_condition *c, shoal_err *err)
{
    bool about_number = c->number_min || c->number_below;
    bool about_label = c->n_label || c->score_min || c->score_below || about_number;
    bool about_stage = about_label || c->mean_prob_below;
    if (about_stage && !c->stage)
        return err_set(err, SHOAL_EINVALID, "%s: needs 'stage:', the stage whose result it looks at",
                       s->path);
    if (!about_stage && c->stage)
        return err_set(err, SHOAL_EINVALID,
                       "%s: 'stage: %s' needs label, score_min, score_below, number_min, number_below "
                       "or mean_prob_below",
                       s->path, c->stage);
    if (about_label && c->mean_prob_below)
        return err_set(err, SHOAL_EINVALID,
                       "%s: label and score_* are not for generate stages, mean_prob_below is for those, "
                       "seq2seq and transcribe; ask for a language and a probability in two conditions",
                       s->path);
    if (!about_stage && !c->text_prefix && !c->mentions_device && !c->brings)
        return err_set(err, SHOAL_EINVALID, "%s: an empty condition", s->path);
    if (c->text_prefix || c->mentions_device) await_input(s);
    if (!c->stage) return 0;
    unsigned what = c->mean_prob_below               ? GIVES_PROB
                    : c->score_min || c->score_below ? GIVES_SCORE
                                                     : GIVES_LABEL;
    unsigned kinds = about_number ? kind_with_id(s->p, STAGE_SCORE) : kinds_that_give(s->p, what);
    int rc = refer_one(s, ".stage", c->stage, strlen(c->stage), kinds, err);
    return rc ? rc : check_labels(s, c, err);
}

static int check_conditions(site *s, const char *field, const stage_condition *c, unsigned n, shoal_err *err)
{
    size_t base = strlen(s->path);
    int rc = 0;
    for (unsigned i = 0; i < n && !rc; i++) {
        snprintf(s->path + base, sizeof s->path - base, "%s[%u]", field, i);
        rc = check_condition(s, &c[i], err);
    }
    s->path[base] = 0;
    return rc;
}

/* The kinds whose result a field can show. */
static unsigned kinds_shown(const config_pipeline *p, template_field f)
{
    return f == FIELD_LABEL   ? kinds_that_give(p, GIVES_LABEL)
           : f == FIELD_TEXT  ? kinds_that_give(p, GIVES_TEXT)
           : f == FIELD_SPANS ? kind_with_id(p, STAGE_TAG)
                              : ANY_KIND;
}

/* The functions of a field: each is known, and has the arguments that it takes. */
static int check_functions(const site *s, const char *field, const template_use *u, shoal_err *err)
{
    pipeline_function f;
    shoal_err why;
    const char *at = u->functions, *end = at + u->n_functions;
    int rc = 1;
    while (rc > 0) rc = pipeline_function_next(&at, end, &f, &why);
    if (rc == SHOAL_ENOMEM) return err_nomem(err);
    return rc ? err_set(err, SHOAL_EINVALID, "%s%s: %s", s->path, field, why.message) : 0;
}

static int check_field_use(site *s, const char *field, const template_piece *piece, shoal_err *err)
{
    int n = (int)(piece->len < 64 ? piece->len : 64);
    if (piece->at[piece->len] != '}')
        return err_set(err, SHOAL_EINVALID, "%s%s: '{%.*s' has no '}' (write '{{' for a brace)", s->path,
                       field, n, piece->at);
    const config_each *each = pipeline_each(&s->p->stages[s->stage]);
    template_use u = template_read(s->p, each ? each->as : NULL, piece);
    if (u.field == FIELD_UNKNOWN)
        return err_set(err, SHOAL_EINVALID,
                       "%s%s: '{%.*s}' is none of {input}, {Input}, {devices}, {context}, {label.STAGE}, "
                       "{text.STAGE}, {spans.STAGE}, {json.STAGE.PATH}%s%s%s (write '{{' for a brace)",
                       s->path, field, n, piece->at, each ? ", {" : "", each ? each->as : "",
                       each ? "}, {number}" : "");
    if (u.field == FIELD_INPUT || u.field == FIELD_SENTENCE) read_input(s);
    int rc =
        u.field == FIELD_LABEL ? refer_one(s, field, u.stage, u.n_stage, kinds_shown(s->p, u.field), err) : 0;
    if (!rc && u.stage) rc = refer_text(s, field, u.stage, u.n_stage, kinds_shown(s->p, u.field), err);
    if (!rc && u.field == FIELD_SPANS) rc = refer_one(s, field, u.stage, u.n_stage, ANY_KIND, err);
    if (!rc && (u.field == FIELD_JSON || u.field == FIELD_SPANS)) s->p->stages[u.i_stage].is_typed = true;
    return rc ? rc : check_functions(s, field, &u, err);
}

static int check_template(site *s, const char *field, const char *template, shoal_err *err)
{
    template_piece piece;
    int rc = 0;
    while (!rc && template && template_next(&template, &piece))
        if (piece.is_field) rc = check_field_use(s, field, &piece, err);
    return rc;
}

/* The name under which templates know an item. */
static int check_as(const site *s, const char *field, const char *as, shoal_err *err)
{
    for (const char *c = as; *c; c++)
        if (!isalnum((unsigned char)*c) && *c != '_' && *c != '-')
            return err_set(err, SHOAL_EINVALID, "%s%s.as: '%s' may hold letters, digits, '-' and '_' only",
                           s->path, field, as);
    if (!template_is_field(as)) return 0;
    return err_set(err, SHOAL_EINVALID, "%s%s.as: {%s} means something else in templates; take another name",
                   s->path, field, as);
}

static int check_source(site *s, const char *field, const config_each *each, shoal_err *err)
{
    template_use u = template_source(s->p, each->of);
    char at[32];
    snprintf(at, sizeof at, "%s.of", field);
    if (u.field == FIELD_UNKNOWN)
        return err_set(
            err, SHOAL_EINVALID,
            "%s%s: '%.64s' is none of input, context, devices, text.STAGE, json.STAGE.PATH, and no stage",
            s->path, at, each->of);
    if (u.field == FIELD_INPUT) read_input(s);
    if (u.field == FIELD_DEVICES && each->by != EACH_WHOLE)
        return err_set(err, SHOAL_EINVALID, "%s%s.by: devices are a list already", s->path, field);
    if (!u.stage) return 0;
    int rc = refer_text(s, at, u.stage, u.n_stage, kinds_shown(s->p, u.field), err);
    if (!rc && u.field == FIELD_JSON) s->p->stages[u.i_stage].is_typed = true;
    return rc;
}

/* A stage that goes through a list: of what, and whether its kind can. */
static int check_each(site *s, const config_stage *st, shoal_err *err)
{
    const config_each *each = pipeline_each(st);
    const char *field = st->each.of ? "foreach" : "reduce", *kind = st->kind->name;
    bool may = st->each.of ? st->kind->gives & REPEATS
                           : st->kind->id == STAGE_GENERATE || st->kind->id == STAGE_SEQ2SEQ;
    if (!each) return 0;
    if (st->each.of && st->reduce.of)
        return err_set(
            err, SHOAL_EINVALID,
            "%sreduce: a stage has 'foreach' or 'reduce'; what a foreach stage came to is for another one "
            "to reduce",
            s->path);
    if (!may)
        return err_set(err, SHOAL_EINVALID, "%s%s: %s %s stage cannot go through a list", s->path, field,
                       an(kind), kind);
    if (each->overlap >= each->most / 2)
        return err_set(err, SHOAL_EINVALID, "%s%s.overlap: must be under half of 'most', which is %u",
                       s->path, field, each->most);
    int rc = check_as(s, field, each->as, err);
    return rc ? rc : check_source(s, field, each, err);
}

/* A key of some kinds of stages. */
typedef struct kind_field {
    const char *field;
    bool given;
} kind_field;

static int check_field(const site *s, const kind_field *f, shoal_err *err)
{
    const config_stage *st = &s->p->stages[s->stage];
    char kinds[160] = "";
    const char *kind = st->kind->name;
    bool needed = false, has = has_word(st->kind->fields, f->field, &needed);
    if (f->given && !has) {
        name_kinds(s->p, kinds_with(s->p, f->field), kinds, sizeof kinds);
        if (!*kinds)
            return err_set(err, SHOAL_EINVALID, "%s%s: no kind of stage of this program has it", s->path,
                           f->field);
        return err_set(err, SHOAL_EINVALID, "%s%s: only %s %s stage has it, '%s' is %s %s stage", s->path,
                       f->field, an(kinds), kinds, st->name, an(kind), kind);
    }
    if (!f->given && has && needed)
        return err_set(err, SHOAL_EINVALID, "%s%s: %s %s stage needs it", s->path, f->field, an(kind), kind);
    return 0;
}

/* That it is JSON; what a worker cannot follow of it, the worker says. */
static int pipeline_check_check_schema(const site *s, const config_stage *st, shoal_err *err)
{
    json_t *v = NULL;
    shoal_err why;
    int rc = st->schema ? json_parse(&v, st->schema, strlen(st->schema), "schema", &why) : 0;
    bool is_schema = !st->schema || json_is_object(v);
    json_decref(v);
    if (rc == SHOAL_ENOMEM) return err_nomem(err);
    if (rc || !is_schema)
        return err_set(err, SHOAL_EINVALID, "%sschema: %s", s->path,
                       rc ? why.message : "must be a JSON object");
    if (st->schema && st->choices)
        return err_set(err, SHOAL_EINVALID, "%sschema: a reply that is one of 'choices' follows no schema",
                       s->path);
    return 0;
}

static int check_kind_fields(const site *s, const config_stage *st, shoal_err *err)
{
    const kind_field rows[] = {
        {"slots", st->slots != NULL},
        {"slot_labels", st->n_slot_labels != 0},
        {"languages", st->n_languages != 0},
        {"rules", st->n_rules != 0},
        {"ask_kinds", st->n_ask_kinds != 0},
        {"ask_ids", st->n_ask_ids != 0},
        {"ask_actions", st->n_ask_actions != 0},
        {"max_targets", st->max_targets != 0},
        {"confirm_s", st->confirm_s != 0},
        {"say", st->n_say != 0},
        {"model", st->model != NULL},
        {"system", st->system != NULL},
        {"prompt", st->prompt != NULL},
        {"input", st->input != NULL},
        {"candidates", st->n_candidates != 0},
        {"documents", st->n_documents != 0},
        {"collection", st->collection != NULL},
        {"limit", st->limit != 0},
        {"host", st->host != NULL},
        {"method", st->method != HOST_GET},
        {"path", st->path != NULL},
        {"body", st->body != NULL},
        {"adapter", st->adapter != NULL},
        {"language", st->language != NULL},
        {"translate", st->translate},
        {"threshold", st->threshold != 0},
        {"min_speech_ms", st->min_speech_ms != 0},
        {"min_silence_ms", st->min_silence_ms != 0},
        {"pad_ms", st->pad_ms != 0},
        {"alert", st->n_alert != 0},
        {"row", st->row != NULL},
        {"beams", st->n_beams != 0},
        {"max_tokens", st->max_tokens != 0},
        {"temperature", st->temperature != 0},
        {"top_p", st->top_p != 0},
        {"seed", st->seed != 0},
        {"schema", st->schema != NULL},
        {"choices", st->choices != NULL},
        {"tools", st->n_tools != 0},
        {"tool_choice", st->tool_choice != NULL},
        {"parallel_tool_calls", st->several_calls},
        {"mcp", st->n_mcp != 0},
        {"mcp_rounds", st->mcp_rounds != 0},
        {"near", st->near_stage != NULL},
        {"timeout_ms", st->timeout_ms != 0},
        {"lexicon", st->lexicon_path != NULL},
        {"intent", st->intent != NULL},
        {"forms", st->forms_path != NULL},
        {"of", st->of != NULL},
        {"against", st->against != NULL},
    };
    int rc = 0;
    for (size_t i = 0; !rc && i < sizeof rows / sizeof *rows; i++) rc = check_field(s, &rows[i], err);
    if (!rc && st->n_beams > 1 && st->temperature > 0)
        return err_set(err, SHOAL_EINVALID, "%sbeams: beam search is greedy, so there can be no temperature",
                       s->path);
    return rc ? rc : pipeline_check_check_schema(s, st, err);
}

/* What the stage reads where no template says it. */
static int check_read(site *s, const config_stage *st, shoal_err *err)
{
    if (pipeline_each(st)) return 0; /* the item */
    bool chats = st->kind->id == STAGE_GENERATE && !st->prompt;
    bool reads = st->kind->gives & READS_TEXT && !st->input;
    if (chats || reads || st->kind->gives & READS_INPUT) read_input(s);
    if (st->kind->id == STAGE_TRANSCRIBE && st->reads_input)
        return err_set(
            err, SHOAL_EINVALID,
            "%sprompt: there is no {input} before somebody is heard: it is what a transcribe stage "
            "writes",
            s->path);
    return 0;
}

/* The template with the same in place of each of its fields. */
static int with_fields(const char *template, const char *field, buf *out)
{
    template_piece piece;
    while (template_next(&template, &piece))
        if (piece.is_field)
            buf_puts(out, field);
        else
            buf_append(out, piece.at, piece.len);
    return out->failed ? SHOAL_ENOMEM : 0;
}

/* The body is JSON with a text in each field and with nothing: so fields are values, and stand in no quotes.
 */
static int check_body(const char *body, shoal_err *why)
{
    static const char *const values[] = {"\"x\"", "null"};
    int rc = 0;
    for (size_t i = 0; i < sizeof values / sizeof *values && !rc; i++) {
        buf filled = {0};
        json_t *json = NULL;
        rc = with_fields(body, values[i], &filled);
        if (!rc) rc = json_parse(&json, filled.data, filled.len, "body", why);
        json_decref(json);
        buf_done(&filled);
    }
    return rc;
}

static int check_path(const site *s, const char *template, shoal_err *err)
{
    buf path = {0};
    int rc = with_fields(template, "x", &path) ? err_nomem(err) : 0;
    if (!rc && !host_path_ok(path.data))
        rc = err_set(
            err, SHOAL_EINVALID,
            "%spath: must begin with '/' and hold neither blanks nor segments that are '..', fields aside",
            s->path);
    buf_done(&path);
    return rc;
}

static int check_http(const site *s, const config_stage *st, shoal_err *err)
{
    shoal_err why = {0};
    int rc = st->path ? check_path(s, st->path, err) : 0;
    if (rc || !st->body) return rc;
    if (st->method == HOST_GET)
        return err_set(err, SHOAL_EINVALID, "%sbody: a GET sends none; give 'method: POST'", s->path);
    rc = check_body(st->body, &why);
    if (rc == SHOAL_ENOMEM) return err_nomem(err);
    if (!rc) return 0;
    return err_set(
        err, SHOAL_EINVALID,
        "%sbody: is no JSON (%.200s); fields stand where a value does, without quotes, and '{{' is a brace: "
        "'{{\"text\": {input}}'",
        s->path, why.message);
}

int stage_site_looks(stage_site *s, const char *field, const char *name, const char *kinds, shoal_err *err)
{
    return name ? refer_one(s, field, name, strlen(name), kinds_named(s->p, kinds), err) : 0;
}

int stage_site_knows(stage_site *s, const char *field, const char *name, const char *kinds, shoal_err *err)
{
    uint32_t needs = s->p->stages[s->stage].needs;
    int rc = stage_site_looks(s, field, name, kinds, err);
    s->p->stages[s->stage].needs = needs;
    return rc;
}

static int refer_if(site *s, const char *field, const char *name, unsigned kinds, shoal_err *err)
{
    int rc = name ? refer_one(s, field, name, strlen(name), kinds, err) : 0;
    return name && !rc ? refer_text(s, field, name, strlen(name), kinds, err) : rc;
}

int stage_site_reads(stage_site *s, const char *field, const char *name, const char *kinds, shoal_err *err)
{
    return refer_if(s, field, name, kinds_named(s->p, kinds), err);
}

const config_stage *stage_site_stage(const stage_site *s, const char *name)
{
    return &s->p->stages[pipeline_stage_index(s->p, name, strlen(name))];
}

const char *stage_site_path(const stage_site *s)
{
    return s->path;
}

/* The stages that the fields of one kind name. */
static int check_stages_named(site *s, const config_stage *st, shoal_err *err)
{
    unsigned options = kinds_that_give(s->p, GIVES_OPTIONS);
    int rc = refer_if(s, "choices", st->choices, options, err);
    if (!rc) rc = refer_if(s, "near", st->near_stage, options, err);
    return rc || !st->kind->check ? rc : st->kind->check(s, st, err);
}

/* Stage names stand in templates, traces and metrics: letters, digits, '-' and '_'. */
static int check_name(const site *s, const char *name, shoal_err *err)
{
    for (const char *c = name; *c; c++)
        if (!isalnum((unsigned char)*c) && *c != '-' && *c != '_')
            return err_set(err, SHOAL_EINVALID, "%sname: '%s' may hold letters, digits, '-' and '_' only",
                           s->path, name);
    int first = pipeline_stage_index(s->p, name, strlen(name));
    if ((unsigned)first < s->stage)
        return err_set(err, SHOAL_EINVALID, "%sname: '%s' is already the name of stages[%d]", s->path, name,
                       first);
    return 0;
}

/* Whoever asks other hosts acts, so the guards before it come first (pipeline_judge). */
static void await_guards(site *s)
{
    for (unsigned i = 0; i < s->stage; i++)
        if (s->p->stages[i].kind->passes) s->p->stages[s->stage].needs |= 1u << i;
}

/* Its tools are those of its servers. */
static int check_mcp(const site *s, const config_stage *st, shoal_err *err)
{
    const char *with = st->n_tools                                               ? "tools"
                       : st->schema                                              ? "schema"
                       : st->choices                                             ? "choices"
                       : st->several_calls                                       ? "parallel_tool_calls"
                       : pipeline_each(st)                                       ? "foreach or reduce"
                       : st->tool_choice && strcmp(st->tool_choice, "none") == 0 ? "tool_choice: none"
                       : pipeline_named_tool(st)                                 ? "tool_choice: a tool"
                                                                                 : NULL;
    if (!st->n_mcp && st->mcp_rounds)
        return err_set(err, SHOAL_EINVALID, "%smcp_rounds: the stage has no 'mcp'", s->path);
    if (!st->n_mcp || !with) return 0;
    return err_set(err, SHOAL_EINVALID, "%smcp: cannot stand beside %s", s->path, with);
}

static int check_stage(site *s, shoal_err *err)
{
    config_stage *st = &s->p->stages[s->stage];
    st->needs = st->reads = 0;
    st->reads_input = st->is_typed = false;
    int rc = check_name(s, st->name, err);
    if (!rc) rc = check_kind_fields(s, st, err);
    if (!rc) rc = pipeline_check_tools(st, s->path, err);
    if (!rc) rc = check_conditions(s, "when", st->when, st->n_when, err);
    if (!rc) rc = check_conditions(s, "unless", st->unless, st->n_unless, err);
    for (unsigned i = 0; !rc && i < st->n_after; i++)
        rc = refer(s, "after", st->after[i], strlen(st->after[i]), ANY_KIND, err);
    if (!rc) rc = check_stages_named(s, st, err);
    if (!rc) rc = check_each(s, st, err);
    if (!rc) rc = check_template(s, "system", st->system, err);
    if (!rc) rc = check_template(s, "prompt", st->prompt, err);
    if (!rc) rc = check_template(s, "input", st->input, err);
    if (!rc) rc = check_template(s, "path", st->path, err);
    if (!rc) rc = check_template(s, "body", st->body, err);
    if (!rc) rc = check_http(s, st, err);
    if (!rc) rc = check_mcp(s, st, err);
    if (pipeline_stage_acts(st)) await_guards(s);
    return rc ? rc : check_read(s, st, err);
}

static int check_devices(const config_pipeline *p, const char *where, shoal_err *err)
{
    for (unsigned i = 0; i < p->n_devices; i++) {
        const config_device *d = &p->devices[i];
        const char *odd = !pipeline_device_text_ok(d->id)                   ? "id"
                          : !pipeline_device_text_ok(d->name)               ? "name"
                          : *d->state && !pipeline_device_text_ok(d->state) ? "state"
                          : d->unit && !pipeline_device_text_ok(d->unit)    ? "unit"
                          : d->area && !pipeline_device_text_ok(d->area)    ? "area"
                                                                            : NULL;
        if (!odd && d->kind && !pipeline_device_text_ok(d->kind)) odd = "kind";
        for (size_t k = 0; k < d->n_aliases && !odd; k++)
            if (!pipeline_device_text_ok(d->aliases[k])) odd = "aliases";
        for (size_t k = 0; k < d->n_groups && !odd; k++)
            if (!pipeline_device_text_ok(d->groups[k])) odd = "groups";
        if (odd)
            return err_set(err, SHOAL_EINVALID,
                           "%sdevices[%u].%s: must be one line without control characters", where, i, odd);
        for (unsigned k = 0; k < i; k++)
            if (strcmp(p->devices[k].id, d->id) == 0)
                return err_set(err, SHOAL_EINVALID, "%sdevices[%u].id: '%s' is already the id of devices[%u]",
                               where, i, d->id, k);
    }
    return 0;
}

int pipeline_check(config_pipeline *p, const char *where, shoal_err *err)
{
    int rc = check_devices(p, where, err);
    for (unsigned i = 0; !rc && i < p->n_stages; i++) {
        site s = {.p = p, .stage = i};
        snprintf(s.path, sizeof s.path, "%sstages[%u].", where, i);
        rc = check_stage(&s, err);
    }
    return rc;
}
