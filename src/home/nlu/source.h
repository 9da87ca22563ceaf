/* source.h: reading the YAML files of the home: lexicons, words for devices, forms of lines. The first failure
 * sticks, so that readers need not look after every step. */
#ifndef NLU_SOURCE_H
#define NLU_SOURCE_H

#include "nlu/phrase.h"

#define SOURCE_BYTES_MAX (4u << 20)

typedef struct source {
    const yaml_doc *d;
    arena *a; /* what is read lives here */
    shoal_err *err;
    int rc; /* 0 until something failed */
} source;

typedef struct word_list {
    size_t n;
    const char **at; /* mostly folded */
} word_list;

/* Is it one of the list, letter by letter? `n` bytes of s. */
bool word_list_has(const word_list *l, const char *s, size_t n);

/* Keep the first sentence, "file:line: ..."; it has one %s for `word`. */
void source_fail(source *r, const yaml_node *at, const char *sentence, const char *word);
void source_nomem(source *r);
void *source_take(source *r, size_t n, size_t size); /* zeroed; NULL when out of memory or already failed */

/* The value of a key that must be there and of this kind; NULL otherwise. */
const yaml_node *source_need(source *r, const yaml_node *map, const char *key, yaml_kind kind);
const char *source_text(source *r, const yaml_node *n); /* NULL for no node; empty texts fail */
const char *source_text_of(source *r, const yaml_node *map,
                           const char *key); /* of a key that must be there */
double source_double(source *r, const yaml_node *n, const char *field, double otherwise);
bool source_bool(source *r, const yaml_node *n, const char *field);

/* Each does nothing for no node. A list of patterns, or one. */
void source_phrases(source *r, const yaml_node *n, phrase_list *ret);
/* A list of words, or one, folded; "" among them where `empty` may be. */
void source_words(source *r, const yaml_node *n, bool empty, word_list *ret);
/* A list of texts as they are. */
void source_texts(source *r, const yaml_node *n, word_list *ret);
/* A key that is one word, folded; NULL: it is none. */
const char *source_word(source *r, const yaml_node *key);
/* The root is a map, and each of its keys one of these; `sentence` has one %s for one that is not. */
void source_keys(source *r, const yaml_node *map, const char *const *keys, size_t n, const char *sentence);

/* Parse `text`, give its root to `read` with an arena of its own that *ret_memory takes over on success. */
int source_read(const char *text, size_t len, const char *what,
                int (*read)(source *, const yaml_node *, void *), void *user, arena **ret_memory,
                shoal_err *err);

#endif
