/* grammar_budget.c: bringing a reply to its end before its tokens are used up.
 *
 * A small model often writes on in a string until max_tokens cuts the reply, and what was cut is no JSON.
 * From every configuration the automaton knows the shortest text that ends the document (nfa_distance).
 * Its tokens, as the longest ones of the vocabulary that spell it, are a way to the end; while there are
 * tokens enough for a detour, everything is as it was. Then a string that may be long takes only tokens
 * that lead nearer to the end, members that would not fit are not begun, and blanks are left out. What is
 * certain is spelled in few tokens. Thoughts are left alone: what follows one would be made up. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "grammar/grammar_args.h"
#include "grammar/grammar_impl.h"

#define PLAN_BYTES 1024     /* a longer way to the end is not looked for */
#define PLAN_WORK  1000000u /* of one token, in edges looked at */
#define MEMO       128
/* Of a string with a "format": an address of 2,000 characters has about as many. */
#define FORMAT_TOKENS 256

typedef struct way {
    int config;      /* that it begins at, of a memo + 1 */
    size_t n_tokens; /* SIZE_MAX: no way was found */
    size_t n_members;
} way;

/* What is known about one token's mask. */
typedef struct budget {
    grammar *g;
    const uint64_t *bits;
    float *logits;
    size_t n_vocab;
    way memo[MEMO]; /* of way_to_end, by configuration */
    bool is_long;   /* the string has all the tokens that one may have */
} budget;

static bool is_allowed(const budget *b, int32_t id)
{
    return b->bits[id / 64] >> (id % 64) & 1;
}

static void forbid(budget *b, int32_t id)
{
    if ((size_t)id < b->n_vocab) b->logits[id] = -INFINITY;
}

/* A step without work left would end the reply: that of one token costs less than half. */
static bool has_work(const budget *b)
{
    return nfa_left(b->g->a) > PLAN_WORK / 2 && !nfa_is_full(b->g->a);
}

/* The length of the longest token that the text begins with; 0: none does. */
static size_t longest_token(const grammar_vocab *v, const uint8_t *s, size_t n)
{
    uint32_t i = 0, end = (uint32_t)v->n_nodes;
    size_t longest = 0;
    for (size_t depth = 0; depth < n && i < end;) {
        const trie_node *node = &v->nodes[i];
        if (node->byte != s[depth]) {
            i = node->skip;
            continue;
        }
        depth++;
        if (node->n_tokens > 0) longest = depth;
        end = node->skip;
        i++;
    }
    return longest;
}

static size_t spell(const grammar_vocab *v, const uint8_t *s, size_t n)
{
    size_t n_tokens = 0;
    for (size_t at = 0; at < n; n_tokens++) {
        size_t len = longest_token(v, s + at, n - at);
        if (len == 0) return SIZE_MAX;
        at += len;
    }
    return n_tokens;
}

/* Names of members in a way's text: in the shortest one, a string has nothing that looks like one. */
static size_t count_members(const uint8_t *s, size_t n)
{
    size_t members = 0;
    for (size_t i = 1; i < n; i++) members += s[i] == ':' && s[i - 1] == '"';
    return members;
}

static void find_way(budget *b, way *w)
{
    uint8_t text[PLAN_BYTES];
    int at = w->config - 1;
    size_t n = nfa_distance(b->g->a, at);
    if (n > sizeof text) return;
    for (size_t i = 0; i < n; i++) {
        int byte = has_work(b) ? nfa_byte_to_end(b->g->a, at) : -1;
        if (byte < 0) return;
        text[i] = (uint8_t)byte;
        at = nfa_step(b->g->a, at, text[i]);
    }
    w->n_tokens = spell(b->g->v, text, n);
    w->n_members = count_members(text, n);
}

/* What brings the document to its end from here. */
static way way_to_end(budget *b, int config)
{
    way *w = &b->memo[(size_t)config % MEMO];
    if (w->config == config + 1) return *w;
    *w = (way){.config = config + 1, .n_tokens = SIZE_MAX};
    find_way(b, w);
    return *w;
}

/* Models spell what is certain in more tokens than it takes, with a blank behind each comma. */
static size_t with_slack(size_t n_tokens)
{
    return n_tokens + n_tokens / 3 + 1;
}

/* And the shortest value of a member is not the one that they mean: 0 for an integer. */
static bool has_slack(const budget *b, const way *w)
{
    return w->n_tokens != SIZE_MAX && with_slack(w->n_tokens) + 5 * w->n_members < b->g->n_left;
}

/* The reply can be brought to its end from `to`, behind a token: with room to spare, or it is nearer to it by then. */
static bool grammar_budget_fits(budget *b, int to, unsigned distance)
{
    way w = way_to_end(b, to);
    if (!b->is_long && has_slack(b, &w)) return true;
    return nfa_distance(b->g->a, to) < distance && w.n_tokens < b->g->n_left;
}

/* White space, or with a comma: what need not come. */
static bool is_more(const grammar_vocab *v, int32_t id)
{
    size_t len = 0, n = 0;
    bool special = false;
    const char *s = tokenizer_bytes(v->t, id, &len, &special);
    while (n < len && memchr(" \n\t\r", s[n], 4)) n++;
    return n == len || memchr(s, ',', len);
}

static bool is_text(nfa *a, int config)
{
    return config != NFA_DEAD && nfa_run(a, config, NFA_WORD) >= NFA_RUN_MAX;
}

/* A text, or what may be the begin of the marker behind it and be text all the same; or a place where a
 * list or an object may end: all that does not end it is more of it. */
static bool may_close(const budget *b)
{
    nfa *a = b->g->a;
    int config = b->g->config;
    if (nfa_marks(a, config) & NFA_OPTIONAL) return true;
    for (const char *p = "qz0"; *p; p++)
        if (is_text(a, nfa_step(a, config, (uint8_t)*p))) return true;
    return is_text(a, config) || nfa_step(a, config, ']') != NFA_DEAD || nfa_step(a, config, '}') != NFA_DEAD;
}

/* All that may come begins with the same byte, but for blanks. */
static bool is_certain(const budget *b)
{
    size_t n = 0;
    for (int byte = 0x21; byte < 256 && n < 2; byte++)
        n += has_work(b) && nfa_step(b->g->a, b->g->config, (uint8_t)byte) != NFA_DEAD;
    return n == 1;
}

static void forbid_what_does_not_fit(budget *b, unsigned distance)
{
    grammar *g = b->g;
    const grammar_vocab *v = g->v;
    bool all = may_close(b) || is_certain(b);
    g->path[0] = g->config;
    for (uint32_t i = 0; i < v->n_nodes && has_work(b);) {
        const trie_node *node = &v->nodes[i];
        int to = nfa_step(g->a, g->path[node->depth - 1], node->byte);
        g->path[node->depth] = to;
        for (uint32_t k = 0; k < node->n_tokens && to != NFA_DEAD; k++) {
            int32_t id = v->tokens[node->first_token + k];
            if (is_allowed(b, id) && (all || is_more(v, id)) && !grammar_budget_fits(b, to, distance))
                forbid(b, id);
        }
        i = to == NFA_DEAD ? node->skip : i + 1;
    }
}

/* No token leads so far from the end that it would not fit: it opens two things more at most. */
static bool has_room_for_all(const budget *b, const way *w)
{
    size_t n = w->n_tokens + 2 * (size_t)nfa_detour(b->g->a);
    return !b->is_long && w->n_tokens != SIZE_MAX && with_slack(n) + 5 * (w->n_members + 2) < b->g->n_left;
}

static bool thinks(const grammar *g)
{
    return nfa_marks(g->a, g->config) & (MARK_THINK | MARK_THOUGHT);
}

/* The string that is being written has the tokens that one may have. */
static bool is_long(const grammar *g)
{
    uint8_t marks = nfa_marks(g->a, g->config);
    bool has_format = (marks & NFA_FORMAT) && g->text_max > FORMAT_TOKENS;
    return (marks & NFA_OPTIONAL) && g->n_text >= (has_format ? FORMAT_TOKENS : g->text_max);
}

void grammar_keep_budget(grammar *g, const uint64_t *bits, float *logits, size_t n_vocab)
{
    unsigned distance = nfa_distance(g->a, g->config);
    budget b = {.g = g, .bits = bits, .logits = logits, .n_vocab = n_vocab, .is_long = is_long(g)};
    bool is_far = !b.is_long && g->n_left > 3 * ((size_t)distance + 2 * nfa_detour(g->a)) + 2;
    if (is_far || g->n_left == 0 || distance == 0 || distance == NFA_FAR || thinks(g)) return;
    if (g->purse < PLAN_WORK) return;
    nfa_allow(g->a, PLAN_WORK);
    way w = way_to_end(&b, g->config);
    if (w.n_tokens <= g->n_left && !has_room_for_all(&b, &w)) forbid_what_does_not_fit(&b, distance);
    g->purse -= PLAN_WORK - nfa_left(g->a);
}

/* Whether the shortest end fits is seen at each token: models may spell a string in fewer than the shortest takes. */
void grammar_limit(grammar *g, size_t n_tokens)
{
    g->n_left = n_tokens;
}

void grammar_limit_text(grammar *g, size_t n_tokens)
{
    g->text_max = n_tokens;
}
