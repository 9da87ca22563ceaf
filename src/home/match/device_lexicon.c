/* device_lexicon.c: reading the words for devices; see device_lexicon.h and the head of
 * lexicons/devices.yaml. */
#include "match/device_lexicon.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/file.h"
#include "nlu/source.h"

/* Where reading stands. */
typedef struct reader {
    source *s;
    device_lexicon *l;
} reader;

static bool device_lexicon_failed(const reader *r)
{
    return r->s->rc != 0;
}

/* ---- senses ------------------------------------------------------------------------------------ */

static bool is_vowel(char c)
{
    return c && strchr("aeiou", c) != NULL;
}

bool device_lexicon_respell(const char *folded, char out[RESPELLED_BYTES])
{
    size_t n = 0, len = strlen(folded);
    if (len >= RESPELLED_BYTES) return false;
    for (const char *p = folded; *p; p++) {
        if (*p == '\'') continue;
        out[n++] = *p;
        bool base = *p == 'a' || *p == 'o' || *p == 'u';
        bool after = p > folded && (is_vowel(p[-1]) || p[-1] == 'q');
        if (base && !after && p[1] == 'e') p++;
    }
    out[n] = 0;
    return n > 0 && n != len;
}

const word_sense *device_lexicon_sense(const strmap *senses, const char *folded)
{
    char other[RESPELLED_BYTES];
    const word_sense *s = strmap_get(senses, folded);
    return s || !device_lexicon_respell(folded, other) ? s : strmap_get(senses, other);
}

static void join_sense(word_sense *to, const word_sense *more)
{
    to->classes |= more->classes;
    to->one |= more->one;
    to->many |= more->many;
    to->named |= more->named;
    to->rooms |= more->rooms;
    if (!more->number) return;
    to->number = true;
    to->value = more->value;
}

static void add_to(reader *r, strmap *m, const char *word, const word_sense *more)
{
    word_sense *s = device_lexicon_failed(r) ? NULL : strmap_get(m, word);
    if (!s && !device_lexicon_failed(r)) {
        s = source_take(r->s, 1, sizeof *s);
        if (s && !strmap_put(m, word, s)) source_nomem(r->s);
    }
    if (s && !device_lexicon_failed(r)) join_sense(s, more);
}

static void device_lexicon_add_word(reader *r, language *t, const char *word, const word_sense *more)
{
    add_to(r, &t->senses, word, more);
    add_to(r, &r->l->any, word, more);
}

/* ---- lists ------------------------------------------------------------------------------------- */

static bool is_word(const phrase *p)
{
    return p->n == 1 && p->parts[0].kind == PART_WORD && !p->parts[0].optional;
}

/* The patterns of one word go into `senses`. */
static void add_single_words(reader *r, language *t, const phrase_list *l, const word_sense *sense)
{
    for (size_t i = 0; i < l->n; i++)
        for (unsigned k = 0; is_word(&l->at[i]) && k < l->at[i].parts->n_alts; k++)
            device_lexicon_add_word(r, t, l->at[i].parts->alts[k], sense);
}

static void read_list(reader *r, language *t, const yaml_node *map, int at, const char *key, bool required,
                      const char *sentence)
{
    const yaml_node *n = device_lexicon_failed(r) ? NULL : yaml_get(map, key);
    word_sense sense = {.classes = 1u << at};
    if (n)
        source_phrases(r->s, n, &t->lists[at]);
    else if (required)
        source_fail(r->s, map, sentence, key);
    add_single_words(r, t, &t->lists[at], &sense);
}

static void device_lexicon_read_lists(reader *r, language *t, const yaml_node *map)
{
#define READ_LIST(class, member, required, about) \
    read_list(r, t, map, class##_AT, #member, required, "'%s' is missing: " about);
    LANGUAGE_LISTS(READ_LIST)
#undef READ_LIST
}

/* Folded words; "" stands for none where `empty` may be. */
static void read_endings(reader *r, const yaml_node *n, bool empty, word_list *ret)
{
    if (n && n->kind != YAML_LIST) source_fail(r->s, n, "a list of words is expected here%s", "");
    source_words(r->s, n, empty, ret);
}

static void device_lexicon_read_texts(reader *r, const yaml_node *n, word_list *ret)
{
    if (n && n->kind != YAML_LIST) source_fail(r->s, n, "a list of texts is expected here%s", "");
    source_texts(r->s, n, ret);
}

/* ---- languages --------------------------------------------------------------------------------- */

static void device_lexicon_read_numbers(reader *r, language *t, const yaml_node *map)
{
    const yaml_node *n = yaml_get(map, "numbers");
    if (n && n->kind != YAML_MAP) source_fail(r->s, n, "'numbers' must be a map of words to numbers%s", "");
    for (size_t i = 0; n && i < n->n && !device_lexicon_failed(r); i++) {
        word_sense sense = {.number = true, .value = source_double(r->s, n->items[i], "numbers", 0)};
        const char *word = source_word(r->s, n->keys[i]);
        if (word) device_lexicon_add_word(r, t, word, &sense);
    }
}

static void read_saying(reader *r, const yaml_node *map, const char *key, language_saying *ret)
{
    const yaml_node *n = source_need(r->s, map, key, YAML_MAP);
    if (!n) return;
    ret->say = source_text_of(r->s, n, "say");
    ret->why = source_text_of(r->s, n, "why");
}

static void device_lexicon_read_sayings(reader *r, language *t, const yaml_node *map)
{
    static const char *const keys[] = {
#define SAYING_KEY(name) #name,
        LANGUAGE_SAYINGS(SAYING_KEY)
#undef SAYING_KEY
            "passed",
        "confirmed", "and", "or", "more"};
    const yaml_node *n = source_need(r->s, map, "replies", YAML_MAP);
    if (!n) return;
    source_keys(r->s, n, keys, sizeof keys / sizeof *keys, "there is no reply '%s'");
#define READ_SAYING(name) read_saying(r, n, #name, &t->sayings.name);
    LANGUAGE_SAYINGS(READ_SAYING)
#undef READ_SAYING
    t->passed = source_text_of(r->s, n, "passed");
    t->confirmed = source_text_of(r->s, n, "confirmed");
    t->and = source_text_of(r->s, n, "and");
    t->or = source_text_of(r->s, n, "or");
    t->more = source_text_of(r->s, n, "more");
}

static void read_language(reader *r, const yaml_node *key, const yaml_node *map, language *t)
{
    static const char *const keys[] = {
#define LIST_KEY(class, member, required, about) #member,
        LANGUAGE_LISTS(LIST_KEY)
#undef LIST_KEY
            "elisions",
        "links",
        "added",
        "changed",
        "numbers",
        "replies"};
    t->name = source_text(r->s, key);
    if (map->kind != YAML_MAP) source_fail(r->s, map, "language '%s' must be a map", key->text);
    if (device_lexicon_failed(r)) return;
    source_keys(r->s, map, keys, sizeof keys / sizeof *keys, "a language has no '%s'");
    device_lexicon_read_lists(r, t, map);
    read_endings(r, yaml_get(map, "elisions"), false, &t->elisions);
    read_endings(r, yaml_get(map, "links"), true, &t->links);
    read_endings(r, yaml_get(map, "added"), false, &t->endings.added);
    read_endings(r, yaml_get(map, "changed"), true, &t->endings.changed);
    t->endings.stem_min = 3;
    device_lexicon_read_numbers(r, t, map);
    device_lexicon_read_sayings(r, t, map);
}

static void gather_elisions(reader *r)
{
    size_t n = 0;
    for (size_t i = 0; i < r->l->n_languages; i++) n += r->l->languages[i].elisions.n;
    r->l->elisions.at = source_take(r->s, n, sizeof *r->l->elisions.at);
    for (size_t i = 0; i < r->l->n_languages && !device_lexicon_failed(r); i++)
        for (size_t k = 0; k < r->l->languages[i].elisions.n; k++)
            r->l->elisions.at[r->l->elisions.n++] = r->l->languages[i].elisions.at[k];
}

static void read_languages(reader *r, const yaml_node *root)
{
    const yaml_node *n = source_need(r->s, root, "languages", YAML_MAP);
    if (device_lexicon_failed(r)) return;
    if (n->n == 0 || n->n > LANGUAGES_MAX) source_fail(r->s, n, "one to eight languages are expected%s", "");
    for (size_t i = 0; i < n->n && !device_lexicon_failed(r); i++)
        read_language(r, n->keys[i], n->items[i], &r->l->languages[r->l->n_languages++]);
    gather_elisions(r);
}

/* ---- kinds and rooms --------------------------------------------------------------------------- */

static void add_phrases(reader *r, language *t, const phrase_list *l, const word_sense *sense)
{
    add_single_words(r, t, l, sense);
    size_t more = 0;
    for (size_t i = 0; i < l->n; i++) more += !is_word(&l->at[i]);
    if (!more || device_lexicon_failed(r)) return;
    sense_phrase *all = source_take(r->s, t->n_phrases + more, sizeof *all);
    if (!all) return;
    if (t->n_phrases) memcpy(all, t->phrases, t->n_phrases * sizeof *all);
    const word_sense starts = {.classes = WORD_STARTS};
    for (size_t i = 0; i < l->n; i++) {
        if (is_word(&l->at[i])) continue;
        all[t->n_phrases++] = (sense_phrase){l->at[i], *sense};
        const phrase_part *first = l->at[i].parts;
        for (unsigned k = 0; k < first->n_alts; k++) device_lexicon_add_word(r, t, first->alts[k], &starts);
    }
    t->phrases = all;
}

/* A kind or a room is words, nothing between them and nothing left open. */
static void check_phrases(reader *r, const yaml_node *at, const phrase_list *l)
{
    for (size_t i = 0; i < l->n && !device_lexicon_failed(r); i++) {
        bool plain = l->at[i].n > 0;
        for (unsigned k = 0; k < l->at[i].n; k++) plain &= l->at[i].parts[k].kind == PART_WORD;
        if (plain && l->at[i].parts[0].optional) plain = false;
        if (!plain) source_fail(r->s, at, "words alone are expected here, the first not optional%s", "");
    }
}

static void read_named(reader *r, language *t, const yaml_node *n, word_sense sense)
{
    phrase_list l = {0};
    source_phrases(r->s, n, &l);
    if (n) check_phrases(r, n, &l);
    if (!device_lexicon_failed(r)) add_phrases(r, t, &l, &sense);
}

static language *language_of(reader *r, const yaml_node *key)
{
    for (size_t i = 0; i < r->l->n_languages; i++)
        if (strcmp(r->l->languages[i].name, key->text) == 0) return &r->l->languages[i];
    return NULL;
}

static void read_kind_words(reader *r, const yaml_node *key, const yaml_node *n, uint64_t bit)
{
    static const char *const keys[] = {"one", "many", "named", "named_many"};
    language *t = language_of(r, key);
    if (!t) source_fail(r->s, key, "'%s' is neither a language nor a key of a kind", key->text);
    if (t && n->kind != YAML_MAP) source_fail(r->s, n, "words of a kind are a map: one, many%s", "");
    if (device_lexicon_failed(r)) return;
    source_keys(r->s, n, keys, sizeof keys / sizeof *keys,
                "words of a kind are one, many, named, named_many; not '%s'");
    read_named(r, t, yaml_get(n, "one"), (word_sense){.one = bit});
    read_named(r, t, yaml_get(n, "many"), (word_sense){.many = bit});
    read_named(r, t, yaml_get(n, "named"), (word_sense){.one = bit, .named = bit});
    read_named(r, t, yaml_get(n, "named_many"), (word_sense){.many = bit, .named = bit});
}

static void device_lexicon_read_kind(reader *r, const yaml_node *key, const yaml_node *n, uint64_t bit,
                                     device_kind *k)
{
    k->name = source_text(r->s, key);
    if (n->kind != YAML_MAP) source_fail(r->s, n, "kind '%s' must be a map", key->text);
    if (device_lexicon_failed(r)) return;
    for (size_t i = 0; i < n->n && !device_lexicon_failed(r); i++) {
        const char *name = n->keys[i]->text;
        if (strcmp(name, "domains") == 0)
            device_lexicon_read_texts(r, n->items[i], &k->domains);
        else if (strcmp(name, "also") == 0)
            device_lexicon_read_texts(r, n->items[i], &k->also);
        else if (strcmp(name, "careful") == 0)
            k->careful = source_bool(r->s, n->items[i], "careful");
        else
            read_kind_words(r, n->keys[i], n->items[i], bit);
    }
}

static void device_lexicon_read_kinds(reader *r, const yaml_node *root)
{
    const yaml_node *n = source_need(r->s, root, "kinds", YAML_MAP);
    if (device_lexicon_failed(r)) return;
    if (n->n > DEVICE_KINDS_MAX) source_fail(r->s, n, "there are at most 64 kinds%s", "");
    r->l->kinds = source_take(r->s, n->n, sizeof *r->l->kinds);
    for (size_t i = 0; i < n->n && !device_lexicon_failed(r); i++) {
        size_t at = r->l->n_kinds++;
        device_lexicon_read_kind(r, n->keys[i], n->items[i], (uint64_t)1 << at, &r->l->kinds[at]);
    }
}

static void read_rooms(reader *r, const yaml_node *root)
{
    const yaml_node *n = source_need(r->s, root, "rooms", YAML_MAP);
    if (device_lexicon_failed(r)) return;
    if (n->n > ROOMS_MAX) source_fail(r->s, n, "there are at most 64 rooms%s", "");
    r->l->rooms = source_take(r->s, n->n, sizeof *r->l->rooms);
    for (size_t i = 0; i < n->n && !device_lexicon_failed(r); i++) {
        const yaml_node *room = n->items[i];
        r->l->rooms[r->l->n_rooms++] = source_text(r->s, n->keys[i]);
        if (room->kind != YAML_MAP) source_fail(r->s, room, "a room is a map of languages%s", "");
        for (size_t k = 0; k < room->n && !device_lexicon_failed(r); k++) {
            language *t = language_of(r, room->keys[k]);
            if (!t) source_fail(r->s, room->keys[k], "there is no language '%s'", room->keys[k]->text);
            if (t) read_named(r, t, room->items[k], (word_sense){.rooms = (uint64_t)1 << i});
        }
    }
}

/* ---- opening ----------------------------------------------------------------------------------- */

static int device_lexicon_read_all(source *src, const yaml_node *root, void *user)
{
    static const char *const sections[] = {"languages", "kinds", "rooms"};
    reader at = {.s = src, .l = user}, *r = &at;
    if (root->kind != YAML_MAP) source_fail(src, root, "a lexicon is a map of sections%s", "");
    if (!device_lexicon_failed(r))
        source_keys(r->s, root, sections, 3, "there is no section '%s' in a lexicon of devices");
    if (!device_lexicon_failed(r)) read_languages(r, root);
    if (!device_lexicon_failed(r)) device_lexicon_read_kinds(r, root);
    if (!device_lexicon_failed(r)) read_rooms(r, root);
    return src->rc;
}

static void free_maps(device_lexicon *l)
{
    for (size_t i = 0; i < l->n_languages; i++) strmap_done(&l->languages[i].senses);
    strmap_done(&l->any);
}

int device_lexicon_parse(device_lexicon **ret, const char *text, size_t len, const char *what, shoal_err *err)
{
    device_lexicon *l = calloc(1, sizeof *l);
    if (!l) return err_nomem(err);
    int rc = source_read(text, len, what, device_lexicon_read_all, l, &l->memory, err);
    if (rc) {
        free_maps(l);
        free(l);
    } else {
        *ret = l;
    }
    return rc;
}

int device_lexicon_load(device_lexicon **ret, const char *path, shoal_err *err)
{
    buf text = {0};
    int rc = file_read(&text, path, SOURCE_BYTES_MAX, err);
    if (!rc) rc = device_lexicon_parse(ret, text.data ? text.data : "", text.len, path, err);
    buf_done(&text);
    return rc;
}

void device_lexicon_free(device_lexicon *l)
{
    if (!l) return;
    free_maps(l);
    arena_free(l->memory);
    free(l);
}

/* ---- asking ------------------------------------------------------------------------------------ */

size_t device_lexicon_kind(const device_lexicon *l, const char *name)
{
    for (size_t i = 0; i < l->n_kinds; i++)
        if (strcmp(l->kinds[i].name, name) == 0) return i;
    return SIZE_MAX;
}

size_t device_lexicon_kind_of_domain(const device_lexicon *l, const char *domain, size_t n)
{
    for (size_t i = 0; i < l->n_kinds; i++)
        if (word_list_has(&l->kinds[i].domains, domain, n)) return i;
    return SIZE_MAX;
}

const language *device_lexicon_language(const device_lexicon *l, const char *name)
{
    for (size_t i = 0; i < l->n_languages; i++)
        if (strcmp(l->languages[i].name, name) == 0) return &l->languages[i];
    return NULL;
}

size_t device_lexicon_elided(const device_lexicon *l, const char *folded)
{
    const char *mark = strchr(folded, '\'');
    if (!mark || !mark[1]) return 0;
    size_t n = (size_t)(mark - folded);
    return word_list_has(&l->elisions, folded, n) ? n + 1 : 0;
}
