/* lexicon.c: reading a lexicon; see lexicon.h and the head of lexicons/home.yaml. */
#include "nlu/lexicon.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/file.h"
#include "pipeline/pipeline_template.h"
#include "nlu/source.h"

enum { VOCABULARY_MAX = 1 << 15 };

/* Where reading stands. */
typedef struct reader {
    source *s;
    lexicon *l;
} reader;

static bool lexicon_failed(const reader *r)
{
    return r->s->rc != 0;
}

static void lexicon_read_lists(reader *r, const yaml_node *root)
{
    const yaml_node *lists = source_need(r->s, root, "words", YAML_MAP);
    const yaml_node *n;
#define READ_LIST(name, required, about)       \
    n = lists ? yaml_get(lists, #name) : NULL; \
    if (n)                                     \
        source_phrases(r->s, n, &r->l->name);  \
    else if (required)                         \
        source_fail(r->s, lists ? lists : root, "words: '%s' is missing: " about, #name);
    LEXICON_LISTS(READ_LIST)
#undef READ_LIST
}

static void read_replies(reader *r, const yaml_node *root)
{
    const yaml_node *replies = source_need(r->s, root, "replies", YAML_MAP);
#define READ_REPLY(name)    \
    if (!lexicon_failed(r)) \
        r->l->reply.name = source_text(r->s, source_need(r->s, replies, #name, YAML_SCALAR));
    LEXICON_REPLIES(READ_REPLY)
#undef READ_REPLY
#define READ_REPLY(name, otherwise)                                                         \
    if (!lexicon_failed(r)) r->l->reply.name = source_text(r->s, yaml_get(replies, #name)); \
    if (!r->l->reply.name) r->l->reply.name = r->l->reply.otherwise;
    LEXICON_OTHER_REPLIES(READ_REPLY)
#undef READ_REPLY
#define READ_REPLY(name) \
    if (!lexicon_failed(r)) r->l->reply.name = source_text(r->s, yaml_get(replies, #name));
    LEXICON_VERBS(READ_REPLY)
#undef READ_REPLY
}

static void lexicon_read_numbers(reader *r, const yaml_node *root)
{
    const yaml_node *n = source_need(r->s, root, "numbers", YAML_MAP),
                    *m = source_need(r->s, root, "time", YAML_MAP);
    if (lexicon_failed(r)) return;
    r->l->numbers = source_take(r->s, n->n, sizeof *r->l->numbers);
    for (size_t i = 0; i < n->n && !lexicon_failed(r); i++)
        r->l->numbers[r->l->n_numbers++] = (struct lexicon_number){
            source_word(r->s, n->keys[i]), source_double(r->s, n->items[i], "numbers", 0)};
    r->l->measures = source_take(r->s, m->n, sizeof *r->l->measures);
    for (size_t i = 0; i < m->n && !lexicon_failed(r); i++)
        r->l->measures[r->l->n_measures++] = (struct lexicon_measure){
            source_word(r->s, m->keys[i]), source_double(r->s, m->items[i], "time", 0)};
}

static value_choice *read_choices(reader *r, const yaml_node *n, size_t *ret_n)
{
    if (!n || lexicon_failed(r)) return NULL;
    if (n->kind != YAML_MAP)
        source_fail(r->s, n, "'choices' must be a map of what it means to how it is said%s", "");
    value_choice *out = source_take(r->s, n->n, sizeof *out);
    for (size_t i = 0; i < n->n && !lexicon_failed(r); i++) {
        out[i].means = source_text(r->s, n->keys[i]);
        source_phrases(r->s, n->items[i], &out[i].said);
        *ret_n = i + 1;
    }
    return out;
}

static void read_units(reader *r, const yaml_node *n, value_def *v)
{
    if (!n || lexicon_failed(r)) return;
    if (n->kind != YAML_MAP || !n->n)
        source_fail(r->s, n, "'units' must be a map of units, the value's own first%s", "");
    v->units = source_take(r->s, n->n, sizeof *v->units);
    for (size_t i = 0; i < n->n && !lexicon_failed(r); i++) {
        value_unit *u = &v->units[v->n_units++];
        u->name = source_text(r->s, n->keys[i]);
        u->sign = source_text_of(r->s, n->items[i], "sign");
        u->scale = source_double(r->s, yaml_get(n->items[i], "scale"), "scale", 1);
        u->asks_above = source_double(r->s, yaml_get(n->items[i], "asks_above"), "asks_above", 0);
        u->offset = source_double(r->s, yaml_get(n->items[i], "offset"), "offset", 0);
        source_words(r->s, source_need(r->s, n->items[i], "measures", YAML_LIST), false, &u->measures);
        if (!lexicon_failed(r) && u->scale == 0)
            source_fail(r->s, n->items[i], "'scale' of unit '%s' is 0", u->name);
    }
}

static void read_ranges(reader *r, const yaml_node *n, value_def *v)
{
    if (!n || lexicon_failed(r)) return;
    if (n->kind != YAML_LIST) source_fail(r->s, n, "'ranges' must be a list of {names, min, max}%s", "");
    v->ranges = source_take(r->s, n->n, sizeof *v->ranges);
    for (size_t i = 0; i < n->n && !lexicon_failed(r); i++) {
        value_range *x = &v->ranges[v->n_ranges++];
        source_phrases(r->s, source_need(r->s, n->items[i], "names", YAML_LIST), &x->names);
        x->min = source_double(r->s, source_need(r->s, n->items[i], "min", YAML_SCALAR), "min", v->min);
        x->max = source_double(r->s, source_need(r->s, n->items[i], "max", YAML_SCALAR), "max", v->max);
    }
}

static void read_value(reader *r, const yaml_node *key, const yaml_node *n, value_def *v)
{
    static const char *const kinds[] = {"number", "choice", "duration", "text"};
    v->name = source_text(r->s, key);
    const yaml_node *said = lexicon_failed(r) ? NULL : yaml_get(n, "said");
    v->said = said ? source_text(r->s, said) : v->name;
    const yaml_node *type = source_need(r->s, n, "type", YAML_SCALAR);
    if (lexicon_failed(r)) return;
    size_t k = 0;
    while (k < 4 && strcmp(type->text, kinds[k]) != 0) k++;
    if (k == 4)
        source_fail(r->s, type, "'%s' is no type of value; number, choice, duration and text are",
                    type->text);
    v->kind = (value_kind)k;
    source_words(r->s, yaml_get(n, "measures"), false, &v->measures);
    v->bare = source_bool(r->s, yaml_get(n, "bare"), "bare");
    v->list = source_bool(r->s, yaml_get(n, "list"), "list");
    v->min = source_double(r->s, yaml_get(n, "min"), "min", -1e9);
    v->max = source_double(r->s, yaml_get(n, "max"), "max", 1e9);
    if (lexicon_failed(r)) return;
    read_units(r, yaml_get(n, "units"), v);
    read_ranges(r, lexicon_failed(r) ? NULL : yaml_get(n, "ranges"), v);
    v->choices = read_choices(r, lexicon_failed(r) ? NULL : yaml_get(n, "choices"), &v->n_choices);
}

static void read_values(reader *r, const yaml_node *root)
{
    const yaml_node *n = source_need(r->s, root, "values", YAML_MAP);
    if (lexicon_failed(r)) return;
    r->l->values = source_take(r->s, n->n, sizeof *r->l->values);
    for (size_t i = 0; i < n->n && !lexicon_failed(r); i++)
        read_value(r, n->keys[i], n->items[i], &r->l->values[r->l->n_values++]);
}

/* ---- states ------------------------------------------------------------------------------------ */

static void add_state(reader *r, const char *word, const char *means)
{
    lexicon *l = r->l;
    if (!word || lexicon_failed(r) || lexicon_state(l, word)) return;
    l->state_for[l->states.n] = means;
    l->states.at[l->states.n++] = word;
}

/* "closed|shut": words that mean the same, the first is how devices tell it. */
static void read_same_states(reader *r, const yaml_node *item)
{
    const char *first = NULL;
    if (item->kind != YAML_SCALAR) source_fail(r->s, item, "one word is expected here%s", "");
    for (const char *p = item->text; !lexicon_failed(r);) {
        words w = {0};
        size_t n = strcspn(p, "|");
        if (words_split(&w, r->s->a, p, n)) source_nomem(r->s);
        if (w.n != 1)
            source_fail(r->s, item, "one word is expected here, or several as in 'closed|shut'%s", "");
        if (lexicon_failed(r)) return;
        first = first ? first : w.at[0].s;
        add_state(r, w.at[0].s, first);
        if (!p[n]) return;
        p += n + 1;
    }
}

static size_t count_states(const yaml_node *root)
{
    const yaml_node *list = yaml_get(root, "states"), *kinds = yaml_get(root, "kinds");
    size_t n = 0;
    for (size_t i = 0; list && i < list->n; i++)
        for (const char *p = list->items[i]->text; p; p = strchr(p, '|') ? strchr(p, '|') + 1 : NULL) n++;
    for (size_t i = 0; kinds && i < kinds->n; i++) {
        const yaml_node *own = yaml_get(kinds->items[i], "states");
        n += own ? own->n + 1 : 0;
    }
    return n;
}

static void read_states(reader *r, const yaml_node *root)
{
    const yaml_node *list = source_need(r->s, root, "states", YAML_LIST);
    if (lexicon_failed(r)) return;
    size_t n = count_states(root);
    r->l->states.at = source_take(r->s, n, sizeof *r->l->states.at);
    r->l->state_for = source_take(r->s, n, sizeof *r->l->state_for);
    for (size_t i = 0; i < list->n && !lexicon_failed(r); i++) read_same_states(r, list->items[i]);
    const yaml_node *none = yaml_get(root, "no_states");
    if (none) source_texts(r->s, source_need(r->s, root, "no_states", YAML_LIST), &r->l->no_states);
    const yaml_node *passing = yaml_get(root, "passing_states");
    if (passing)
        source_texts(r->s, source_need(r->s, root, "passing_states", YAML_LIST), &r->l->passing_states);
}

/* [open, closed], or {"on": [heat, cool], "off": []} */
static void read_kind_states(reader *r, const yaml_node *n, kind_def *k)
{
    bool map = n && n->kind == YAML_MAP;
    if (!n || lexicon_failed(r)) return;
    size_t count = n->kind == YAML_SCALAR ? 1 : n->n;
    k->so = source_take(r->s, count, sizeof *k->so);
    if (!map) source_words(r->s, n, false, &k->states);
    if (map) k->states.at = source_take(r->s, count, sizeof *k->states.at);
    for (size_t i = 0; map && i < count && !lexicon_failed(r); i++) {
        k->states.at[k->states.n++] = source_word(r->s, n->keys[i]);
        if (!lexicon_failed(r) && n->items[i]->kind != YAML_LIST)
            source_fail(r->s, n->items[i], "state '%s' must be a list of what devices tell then",
                        n->keys[i]->text);
        source_texts(r->s, n->items[i], &k->so[i]);
    }
    for (size_t i = 0; i < k->states.n && !lexicon_failed(r); i++)
        add_state(r, k->states.at[i], k->states.at[i]);
}

/* ---- kinds and actions ------------------------------------------------------------------------- */

static void lexicon_read_kind(reader *r, const yaml_node *key, const yaml_node *n, kind_def *k)
{
    k->name = source_text(r->s, key);
    if (n->kind != YAML_MAP) source_fail(r->s, n, "kind '%s' must be a map", k->name);
    const yaml_node *also = yaml_get(n, "also");
    if (lexicon_failed(r)) return;
    const yaml_node *domains = source_need(r->s, n, "domains", YAML_LIST);
    source_texts(r->s, domains, &k->domains);
    if (also) {
        k->also_domain = source_text(r->s, source_need(r->s, also, "domain", YAML_SCALAR));
        source_words(r->s, yaml_get(also, "names"), false, &k->also_names);
    }
    source_words(r->s, yaml_get(n, "words"), false, &k->words);
    source_words(r->s, yaml_get(n, "names"), false, &k->names);
    source_words(r->s, yaml_get(n, "only"), false, &k->only);
    source_texts(r->s, yaml_get(n, "careful"), &k->careful);
    read_kind_states(r, yaml_get(n, "states"), k);
    k->example = source_text(r->s, yaml_get(n, "example"));
    k->state_say = source_text(r->s, yaml_get(n, "state"));
}

static void lexicon_read_kinds(reader *r, const yaml_node *root)
{
    const yaml_node *n = source_need(r->s, root, "kinds", YAML_MAP);
    if (lexicon_failed(r)) return;
    if (n->n > LEXICON_KINDS_MAX) source_fail(r->s, n, "too many kinds%s", "");
    r->l->kinds = source_take(r->s, n->n, sizeof *r->l->kinds);
    for (size_t i = 0; i < n->n && !lexicon_failed(r); i++)
        lexicon_read_kind(r, n->keys[i], n->items[i], &r->l->kinds[r->l->n_kinds++]);
}

static uint64_t read_kind_set(reader *r, const yaml_node *n)
{
    uint64_t set = 0;
    for (size_t i = 0; n && i < n->n && !lexicon_failed(r); i++) {
        size_t k = 0;
        while (k < r->l->n_kinds && strcmp(r->l->kinds[k].name, n->items[i]->text) != 0) k++;
        if (k == r->l->n_kinds) source_fail(r->s, n->items[i], "there is no kind '%s'", n->items[i]->text);
        set |= (uint64_t)1 << (k & 63);
    }
    return set;
}

/* NULL: it failed. */
static const value_def *value_named(reader *r, const yaml_node *n)
{
    size_t k = 0;
    while (k < r->l->n_values && strcmp(r->l->values[k].name, n->text) != 0) k++;
    if (k < r->l->n_values) return &r->l->values[k];
    source_fail(r->s, n, "there is no value '%s'", n->text);
    return NULL;
}

static void read_takes(reader *r, const yaml_node *n, action_def *x)
{
    for (size_t i = 0; n && i < n->n && !lexicon_failed(r); i++) {
        const value_def *v = value_named(r, n->items[i]);
        if (v && x->n_takes == sizeof x->takes / sizeof *x->takes)
            source_fail(r->s, n->items[i], "an action takes at most four values%s", "");
        else if (v)
            x->takes[x->n_takes++] = v;
    }
}

static void read_quantities(reader *r, const yaml_node *root)
{
    if (!yaml_get(root, "quantities")) return;
    const yaml_node *map = source_need(r->s, root, "quantities", YAML_MAP);
    if (lexicon_failed(r)) return;
    r->l->quantities = source_take(r->s, map->n, sizeof *r->l->quantities);
    for (size_t i = 0; i < map->n && !lexicon_failed(r); i++) {
        const yaml_node *n = map->items[i];
        quantity_def *q = &r->l->quantities[r->l->n_quantities++];
        q->value = value_named(r, map->keys[i]);
        const yaml_node *cues = source_need(r->s, n, "cues", YAML_LIST);
        if (lexicon_failed(r)) return;
        q->kinds = read_kind_set(r, yaml_get(n, "kinds"));
        q->sensors = read_kind_set(r, yaml_get(n, "sensors"));
        source_phrases(r->s, yaml_get(n, "names"), &q->names);
        source_phrases(r->s, yaml_get(n, "outdoors"), &q->outdoors);
        source_phrases(r->s, cues, &q->cues);
        q->unknown = source_text_of(r->s, n, "unknown");
    }
}

static void read_actions(reader *r, const yaml_node *root)
{
    const yaml_node *list = source_need(r->s, root, "actions", YAML_LIST);
    if (lexicon_failed(r)) return;
    r->l->actions = source_take(r->s, list->n, sizeof *r->l->actions);
    for (size_t i = 0; i < list->n && !lexicon_failed(r); i++) {
        const yaml_node *n = list->items[i];
        action_def *x = &r->l->actions[r->l->n_actions++];
        x->service = source_text(r->s, yaml_get(n, "service"));
        x->say = source_text(r->s, source_need(r->s, n, "say", YAML_SCALAR));
        x->say_unit = source_text(r->s, yaml_get(n, "say_unit"));
        x->verb = source_text(r->s, yaml_get(n, "verb"));
        x->deed = source_text(r->s, yaml_get(n, "deed"));
        x->where = source_text(r->s, yaml_get(n, "where"));
        x->request = source_text(r->s, yaml_get(n, "request"));
        x->undoes = source_text(r->s, yaml_get(n, "undoes"));
        const yaml_node *makes = lexicon_failed(r) ? NULL : yaml_get(n, "makes");
        if (makes) x->makes = source_word(r->s, makes);
        x->kinds = read_kind_set(r, source_need(r->s, n, "kinds", YAML_LIST));
        x->rivals = read_kind_set(r, yaml_get(n, "rivals"));
        read_takes(r, yaml_get(n, "takes"), x);
        x->implied = source_bool(r->s, yaml_get(n, "implied"), "implied");
        x->bare = source_bool(r->s, yaml_get(n, "bare"), "bare");
        x->gradual = source_bool(r->s, yaml_get(n, "gradual"), "gradual");
        x->amount = source_bool(r->s, yaml_get(n, "amount"), "amount");
        x->careful = source_bool(r->s, yaml_get(n, "careful"), "careful");
        const yaml_node *cues = source_need(r->s, n, "cues", YAML_LIST);
        if (cues) source_phrases(r->s, cues, &x->cues);
        if (!lexicon_failed(r) && !x->verb && x->service)
            source_fail(r->s, n, "'verb' is missing in action '%s'", x->service);
    }
}

static void read_talk(reader *r, const yaml_node *root)
{
    const yaml_node *list = source_need(r->s, root, "talk", YAML_LIST);
    if (lexicon_failed(r)) return;
    r->l->talk = source_take(r->s, list->n, sizeof *r->l->talk);
    for (size_t i = 0; i < list->n && !lexicon_failed(r); i++) {
        const yaml_node *n = list->items[i], *labels = yaml_get(n, "labels");
        talk_def *t = &r->l->talk[r->l->n_talk++];
        t->kinds = read_kind_set(r, yaml_get(n, "kinds"));
        source_phrases(r->s, yaml_get(n, "cues"), &t->cues);
        source_texts(r->s, labels, &t->labels);
        t->say = source_text(r->s, source_need(r->s, n, "say", YAML_SCALAR));
    }
}

static void read_synonyms(reader *r, const yaml_node *root)
{
    const yaml_node *n = source_need(r->s, root, "synonyms", YAML_MAP);
    if (lexicon_failed(r)) return;
    r->l->synonyms = source_take(r->s, n->n, sizeof *r->l->synonyms);
    for (size_t i = 0; i < n->n && !lexicon_failed(r); i++) {
        synonym *s = &r->l->synonyms[r->l->n_synonyms++];
        s->means = source_word(r->s, n->keys[i]);
        source_phrases(r->s, n->items[i], &s->said);
        for (size_t k = 0; k < s->said.n && !lexicon_failed(r); k++)
            if (s->said.at[k].parts->kind != PART_WORD || s->said.at[k].parts->optional)
                source_fail(r->s, n->items[i], "synonym '%s' must begin with a word", s->said.at[k].source);
    }
}

/* ---- every word that stands in it ------------------------------------------------------------ */

static void know(reader *r, const char *word)
{
    lexicon *l = r->l;
    if (l->n_vocabulary < VOCABULARY_MAX && word) l->vocabulary[l->n_vocabulary++] = word;
}

static void know_all(reader *r, const word_list *l)
{
    for (size_t i = 0; i < l->n; i++) know(r, l->at[i]);
}

static void know_phrases(reader *r, const phrase_list *l)
{
    for (size_t i = 0; i < l->n; i++)
        for (unsigned k = 0; k < l->at[i].n; k++)
            know_all(r, &(word_list){l->at[i].parts[k].n_alts, l->at[i].parts[k].alts});
}

static void know_choices(reader *r, const value_def *v)
{
    know_all(r, &v->measures);
    for (size_t i = 0; i < v->n_units; i++) know_all(r, &v->units[i].measures);
    for (size_t i = 0; i < v->n_choices; i++) know_phrases(r, &v->choices[i].said);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* ---- words for kinds --------------------------------------------------------------------------- */

static bool has_form(const word_list *l, const char *w, bool *ret_plural)
{
    for (size_t i = 0; i < l->n; i++) {
        *ret_plural = words_is_plural_of(w, l->at[i]);
        if (*ret_plural || words_same(w, l->at[i])) return true;
    }
    return false;
}

static kind_word read_form(const lexicon *l, const char *w)
{
    kind_word k = {0};
    for (size_t i = 0; i < l->n_kinds; i++) {
        bool words = false, names = false, only = false;
        uint64_t bit = (uint64_t)1 << i;
        if (has_form(&l->kinds[i].words, w, &words)) k.words |= bit;
        if (has_form(&l->kinds[i].names, w, &names)) k.names |= bit;
        if (has_form(&l->kinds[i].only, w, &only)) k.only |= bit;
        k.plural |= k.words & bit ? words : k.names & bit ? names : only;
    }
    return k;
}

/* The first n bytes of a word with another ending, where that is a word for kinds. */
static void keep_form(reader *r, const char *word, size_t n, const char *ending)
{
    char *form = source_take(r->s, n + strlen(ending) + 1, 1);
    if (!form) return;
    memcpy(form, word, n);
    memcpy(form + n, ending, strlen(ending));
    if (strmap_get(&r->l->kind_words, form)) return;
    kind_word k = read_form(r->l, form), *kept = source_take(r->s, 1, sizeof *kept);
    if (!kept || !(k.words | k.names | k.only)) return;
    *kept = k;
    if (!strmap_put(&r->l->kind_words, form, kept)) source_nomem(r->s);
}

/* Every form that words_is_plural_of knows. */
static void keep_forms(reader *r, const word_list *l)
{
    static const char *const ENDINGS[] = {"", "s", "'s", "es"};
    for (size_t i = 0; i < l->n && !lexicon_failed(r); i++) {
        size_t n = strlen(l->at[i]);
        for (size_t k = 0; k < sizeof ENDINGS / sizeof *ENDINGS; k++) keep_form(r, l->at[i], n, ENDINGS[k]);
        if (n > 0) keep_form(r, l->at[i], n - 1, "ies");
    }
}

static void keep_kind_words(reader *r)
{
    for (size_t i = 0; i < r->l->n_kinds; i++) {
        keep_forms(r, &r->l->kinds[i].words);
        keep_forms(r, &r->l->kinds[i].names);
        keep_forms(r, &r->l->kinds[i].only);
    }
}

/* Most words begin neither a number nor a synonym: that is seen at once. */
static void mark_beginnings(reader *r)
{
    lexicon *l = r->l;
    for (size_t i = 0; i < l->n_numbers; i++) l->begins_number[(unsigned char)l->numbers[i].word[0]] = true;
    size_t n = 0;
    for (size_t i = 0; i < l->n_synonyms; i++)
        for (size_t k = 0; k < l->synonyms[i].said.n; k++) n += l->synonyms[i].said.at[k].parts->n_alts;
    l->synonym_words = source_take(r->s, n, sizeof *l->synonym_words);
    if (lexicon_failed(r)) return;
    for (size_t i = 0; i < l->n_synonyms; i++)
        for (size_t k = 0; k < l->synonyms[i].said.n; k++) {
            const phrase_part *first = l->synonyms[i].said.at[k].parts;
            for (unsigned j = 0; j < first->n_alts; j++)
                l->synonym_words[l->n_synonym_words++] = first->alts[j];
        }
    qsort(l->synonym_words, l->n_synonym_words, sizeof *l->synonym_words, by_text);
}

static void collect_vocabulary(reader *r)
{
    lexicon *l = r->l;
    l->vocabulary = source_take(r->s, VOCABULARY_MAX, sizeof *l->vocabulary);
    if (lexicon_failed(r)) return;
#define KNOW_LIST(name, required, about) know_phrases(r, &l->name);
    LEXICON_LISTS(KNOW_LIST)
#undef KNOW_LIST
    know_all(r, &l->states);
    for (size_t i = 0; i < l->n_numbers; i++) know(r, l->numbers[i].word);
    for (size_t i = 0; i < l->n_measures; i++) know(r, l->measures[i].word);
    for (size_t i = 0; i < l->n_kinds; i++) {
        know_all(r, &l->kinds[i].words);
        know_all(r, &l->kinds[i].names);
        know_all(r, &l->kinds[i].only);
    }
    for (size_t i = 0; i < l->n_values; i++) know_choices(r, &l->values[i]);
    for (size_t i = 0; i < l->n_actions; i++) know_phrases(r, &l->actions[i].cues);
    for (size_t i = 0; i < l->n_quantities; i++) know_phrases(r, &l->quantities[i].cues);
    for (size_t i = 0; i < l->n_talk; i++) know_phrases(r, &l->talk[i].cues);
    for (size_t i = 0; i < l->n_synonyms; i++) {
        know(r, l->synonyms[i].means);
        know_phrases(r, &l->synonyms[i].said);
    }
    qsort(l->vocabulary, l->n_vocabulary, sizeof *l->vocabulary, by_text);
    size_t n = 0;
    for (size_t i = 0; i < l->n_vocabulary; i++)
        if (!n || strcmp(l->vocabulary[n - 1], l->vocabulary[i]) != 0) l->vocabulary[n++] = l->vocabulary[i];
    l->n_vocabulary = n;
    for (size_t i = 0; i < n; i++) l->vocabulary_at[(unsigned char)l->vocabulary[i][0] + 1] = i + 1;
    for (size_t i = 1; i <= 256; i++)
        if (l->vocabulary_at[i] < l->vocabulary_at[i - 1]) l->vocabulary_at[i] = l->vocabulary_at[i - 1];
}

/* ---- opening ----------------------------------------------------------------------------------- */

static const char *const SECTIONS[] = {"words",     "replies",        "numbers",   "time", "states",
                                       "values",    "kinds",          "actions",   "talk", "synonyms",
                                       "no_states", "passing_states", "quantities"};

static void check_sections(reader *r, const yaml_node *root)
{
    if (root->kind != YAML_MAP) source_fail(r->s, root, "a lexicon is a map of sections%s", "");
    if (!lexicon_failed(r))
        source_keys(r->s, root, SECTIONS, sizeof SECTIONS / sizeof *SECTIONS,
                    "there is no section '%s' in a lexicon");
}

static int lexicon_read_all(source *src, const yaml_node *root, void *user)
{
    reader at = {.s = src, .l = user}, *r = &at;
    check_sections(r, root);
    if (!lexicon_failed(r)) lexicon_read_lists(r, root);
    if (!lexicon_failed(r)) read_replies(r, root);
    if (!lexicon_failed(r)) lexicon_read_numbers(r, root);
    if (!lexicon_failed(r)) read_states(r, root);
    if (!lexicon_failed(r)) read_values(r, root);
    if (!lexicon_failed(r)) lexicon_read_kinds(r, root);
    if (!lexicon_failed(r)) read_actions(r, root);
    if (!lexicon_failed(r)) read_quantities(r, root);
    if (!lexicon_failed(r)) read_talk(r, root);
    if (!lexicon_failed(r)) read_synonyms(r, root);
    if (!lexicon_failed(r)) collect_vocabulary(r);
    if (!lexicon_failed(r)) mark_beginnings(r);
    if (!lexicon_failed(r)) keep_kind_words(r);
    return src->rc;
}

int lexicon_parse(lexicon **ret, const char *text, size_t len, const char *what, shoal_err *err)
{
    lexicon *l = calloc(1, sizeof *l);
    if (!l) return err_nomem(err);
    int rc = source_read(text, len, what, lexicon_read_all, l, &l->memory, err);
    if (rc) {
        strmap_done(&l->kind_words);
        free(l);
        return rc;
    }
    *ret = l;
    return 0;
}

int lexicon_load(lexicon **ret, const char *path, shoal_err *err)
{
    buf text = {0};
    int rc = file_read(&text, path, SOURCE_BYTES_MAX, err);
    if (!rc) rc = lexicon_parse(ret, text.data ? text.data : "", text.len, path, err);
    buf_done(&text);
    return rc;
}

void lexicon_free(lexicon *l)
{
    if (!l) return;
    strmap_done(&l->kind_words);
    arena_free(l->memory);
    free(l);
}

/* ---- asking ------------------------------------------------------------------------------------ */

static bool has_also_name(const kind_def *k, const words *name)
{
    for (size_t i = 0; i < name->n; i++)
        for (size_t j = 0; j < k->also_names.n; j++)
            if (words_same_stem(name->at[i].s, k->also_names.at[j])) return true;
    return false;
}

size_t lexicon_kind_of(const lexicon *l, const char *domain, size_t n, const words *name)
{
    for (size_t i = 0; i < l->n_kinds; i++) {
        const kind_def *k = &l->kinds[i];
        bool also = k->also_domain && strlen(k->also_domain) == n && memcmp(k->also_domain, domain, n) == 0;
        if (also && has_also_name(k, name)) return i;
    }
    for (size_t i = 0; i < l->n_kinds; i++)
        if (word_list_has(&l->kinds[i].domains, domain, n)) return i;
    return SIZE_MAX;
}

const kind_word *lexicon_kind_word(const lexicon *l, const char *folded)
{
    return strmap_get(&l->kind_words, folded);
}

bool lexicon_knows(const lexicon *l, const char *folded)
{
    size_t from = l->vocabulary_at[(unsigned char)*folded], to = l->vocabulary_at[(unsigned char)*folded + 1];
    return bsearch(&folded, l->vocabulary + from, to - from, sizeof *l->vocabulary, by_text) != NULL;
}

static bool begins_synonym(const lexicon *l, const char *folded)
{
    return bsearch(&folded, l->synonym_words, l->n_synonym_words, sizeof *l->synonym_words, by_text) != NULL;
}

size_t lexicon_synonym_at(const lexicon *l, const unit *u, size_t from, size_t n, const char **ret_means)
{
    size_t best = 0;
    for (size_t k = 0; k < l->n_synonyms && begins_synonym(l, u[from].s); k++) {
        size_t len = unit_set_len(phrase_list_at(&l->synonyms[k].said, u, from, n, 0));
        if (len > best) best = len, *ret_means = l->synonyms[k].means;
    }
    return best;
}

bool lexicon_number(const lexicon *l, const char *folded, double *ret)
{
    if (!l->begins_number[(unsigned char)folded[0]]) return false;
    for (size_t i = 0; i < l->n_numbers; i++) {
        if (!words_same(l->numbers[i].word, folded)) continue;
        *ret = l->numbers[i].value;
        return true;
    }
    return false;
}

bool lexicon_measure(const lexicon *l, const char *folded, double *ret_seconds)
{
    for (size_t i = 0; i < l->n_measures; i++) {
        if (!words_same(l->measures[i].word, folded)) continue;
        *ret_seconds = l->measures[i].seconds;
        return true;
    }
    return false;
}

const value_unit *lexicon_unit(const lexicon *l, const char *folded)
{
    for (size_t i = 0; i < l->n_values; i++)
        for (size_t k = 0; k < l->values[i].n_units; k++)
            if (word_list_has(&l->values[i].units[k].measures, folded, strlen(folded)))
                return &l->values[i].units[k];
    return NULL;
}

const char *lexicon_state(const lexicon *l, const char *folded)
{
    for (size_t i = 0; i < l->states.n; i++)
        if (strcmp(l->states.at[i], folded) == 0) return l->state_for[i];
    return NULL;
}

const char *lexicon_talk_of(const lexicon *l, const char *label)
{
    for (size_t i = 0; i < l->n_talk; i++)
        for (size_t k = 0; k < l->talk[i].labels.n; k++)
            if (pipeline_label_is(label, l->talk[i].labels.at[k])) return l->talk[i].say;
    return NULL;
}
