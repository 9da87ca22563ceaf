/* grammar_budget.c: bringing a reply to its end before its tokens are used up.
 *
 * A small model often writes on in a string until max_tokens cuts the reply, and what was cut is no JSON.
 * From every configuration the automaton knows the shortest text that ends the document (nfa_distance).
 * Its tokens, as the longest ones of the vocabulary that spell it, are a way to the end; while there are
 * tokens enough for a detour, everything is as it was. Then a string without a bound takes only tokens
 * that lead nearer to the end, members that would not fit are not begun, and blanks are left out. Thoughts
 * are left alone: what follows one would be made up. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "grammar/grammar_args.h"
#include "grammar/grammar_impl.h"

#define PLAN_BYTES 1024     /* a longer way to the end is not looked for */
#define PLAN_WORK  1000000u /* of one token, in edges looked at */
#define MEMO       8

/* What is known about one token's mask. */
typedef struct budget {
    grammar *g;
    const uint64_t *bits;
    float *logits;
    size_t n_vocab;
    struct {
        int config;
        size_t n_tokens;
    } memo[MEMO]; /* of tokens_to_end */
    size_t n_memo;
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

/* Tokens that bring the document to its end from here; SIZE_MAX: no way was found. */
static size_t tokens_to_end(budget *b, int config)
{
    uint8_t text[PLAN_BYTES];
    size_t n = nfa_distance(b->g->a, config);
    for (size_t i = 0; i < b->n_memo; i++)
        if (b->memo[i].config == config) return b->memo[i].n_tokens;
    if (n > sizeof text) return SIZE_MAX;
    int at = config;
    for (size_t i = 0; i < n; i++) {
        int byte = has_work(b) ? nfa_byte_to_end(b->g->a, at) : -1;
        if (byte < 0) return SIZE_MAX;
        text[i] = (uint8_t)byte;
        at = nfa_step(b->g->a, at, text[i]);
    }
    size_t n_tokens = spell(b->g->v, text, n);
    b->memo[b->n_memo % MEMO].config = config;
    b->memo[b->n_memo % MEMO].n_tokens = n_tokens;
    if (b->n_memo < MEMO) b->n_memo++;
    return n_tokens;
}

/* Where an allowed token leads. */
static int after(const budget *b, int32_t id)
{
    size_t len = 0;
    bool special = false;
    const char *s = tokenizer_bytes(b->g->v->t, id, &len, &special);
    return s && !special ? grammar_walk(b->g, b->g->config, (const uint8_t *)s, len) : NFA_DEAD;
}

/* Models spell what is certain in more tokens than it takes, with a blank behind each comma. */
static size_t with_slack(size_t n_tokens)
{
    return n_tokens + n_tokens / 3 + 1;
}

/* The reply is nearer to its end behind the token, or can still be brought to it. */
static bool fits(budget *b, int32_t id, unsigned distance)
{
    int to = after(b, id);
    if (to == NFA_DEAD || nfa_distance(b->g->a, to) < distance) return true;
    size_t n = tokens_to_end(b, to);
    return n != SIZE_MAX && with_slack(n) < b->g->n_left;
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
    for (const char *p = "qz0"; *p; p++)
        if (is_text(a, nfa_step(a, config, (uint8_t)*p))) return true;
    return is_text(a, config) || nfa_step(a, config, ']') != NFA_DEAD || nfa_step(a, config, '}') != NFA_DEAD;
}

static void forbid_what_does_not_fit(budget *b, unsigned distance)
{
    const grammar_vocab *v = b->g->v;
    bool all = may_close(b);
    for (size_t i = 0; i < v->n_tokens && has_work(b); i++) {
        int32_t id = v->tokens[i];
        if (is_allowed(b, id) && (all || is_more(v, id)) && !fits(b, id, distance)) forbid(b, id);
    }
}

static bool thinks(const grammar *g)
{
    return nfa_marks(g->a, g->config) & (MARK_THINK | MARK_THOUGHT);
}

void grammar_keep_budget(grammar *g, const uint64_t *bits, float *logits, size_t n_vocab)
{
    unsigned distance = nfa_distance(g->a, g->config);
    bool is_far = g->n_left > (size_t)distance + nfa_detour(g->a) + 2;
    if (is_far || g->n_left == 0 || distance == 0 || distance == NFA_FAR || thinks(g)) return;
    if (g->purse < PLAN_WORK) return;
    nfa_allow(g->a, PLAN_WORK);
    budget b = {.g = g, .bits = bits, .logits = logits, .n_vocab = n_vocab};
    size_t n = tokens_to_end(&b, g->config);
    if (n <= g->n_left) forbid_what_does_not_fit(&b, distance);
    g->purse -= PLAN_WORK - nfa_left(g->a);
}

/* Known from the start, so that a reply that goes on elsewhere goes on alike. */
void grammar_limit(grammar *g, size_t n_tokens)
{
    budget b = {.g = g};
    if (g->purse < PLAN_WORK) return;
    nfa_allow(g->a, PLAN_WORK);
    size_t n = tokens_to_end(&b, g->config);
    if (n == SIZE_MAX) n = nfa_distance(g->a, g->config);
    g->n_left = with_slack(n) <= n_tokens ? n_tokens : SIZE_MAX;
    g->purse -= PLAN_WORK - nfa_left(g->a);
}
