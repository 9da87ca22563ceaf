/* grammar.c: the vocabulary as a tree, and masks: which tokens lead on from where the automaton is. */
#include "grammar/grammar_impl.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/progress.h"
#include "grammar/grammar_schema.h"
#include "grammar/grammar_tools.h"

/* Work is edges of the automaton looked at, a few ns each; a plain schema needs some thousands a token. One
 * mask may cost about 20 ms; a reply may do that a few times, and then a millisecond a token. */
#define STEP_WORK  4000000u
#define REPLY_WORK 20000000u
#define TOKEN_WORK 200000u
#define EOS_MAX    64
#define MASKS_KEPT 256 /* of one reply; at 150,000 tokens one is 19 KB */

typedef struct sort_item {
    const uint8_t *s;
    size_t n;
    int32_t id;
} sort_item;

static int compare_items(const void *x, const void *y)
{
    const sort_item *a = x, *b = y;
    int c = memcmp(a->s, b->s, a->n < b->n ? a->n : b->n);
    if (c != 0) return c;
    if (a->n != b->n) return a->n < b->n ? -1 : 1;
    return a->id < b->id ? -1 : 1;
}

static size_t common_prefix(const sort_item *a, const sort_item *b)
{
    size_t n = a->n < b->n ? a->n : b->n, i = 0;
    while (i < n && a->s[i] == b->s[i]) i++;
    return i;
}

/* Bytes that may follow within a character of UTF-8 (RFC 3629, section 4). */
typedef struct utf8_rest {
    uint8_t n, lo, hi; /* of the next one, when n > 0 */
} utf8_rest;

/* Behind `byte`; false: it cannot stand there, in a text of a JSON string. */
static bool text_byte(utf8_rest *at, uint8_t byte)
{
    if (at->n > 0) {
        bool fits = byte >= at->lo && byte <= at->hi;
        *at = (utf8_rest){(uint8_t)(at->n - 1), 0x80, 0xBF};
        return fits;
    }
    if (byte < 0x80) return nfa_run_has(NFA_TEXT, byte);
    if (byte < 0xC2 || byte > 0xF4) return false;
    *at = (utf8_rest){byte < 0xE0   ? 1
                      : byte < 0xF0 ? 2
                                    : 3,
                      byte == 0xE0   ? 0xA0
                      : byte == 0xF0 ? 0x90
                                     : 0x80,
                      byte == 0xED   ? 0x9F
                      : byte == 0xF4 ? 0x8F
                                     : 0xBF};
    return true;
}

/* run[NFA_TEXT] is first set for nodes within a character, too. */
static void run_of_children(grammar_vocab *v, size_t i, nfa_run_kind kind)
{
    trie_node *node = &v->nodes[i];
    size_t longest = 0;
    for (uint32_t child = (uint32_t)i + 1; child < node->skip; child = v->nodes[child].skip) {
        if (v->nodes[child].run[kind] == 0) node->run[kind] = 0;
        if (v->nodes[child].run[kind] > longest) longest = v->nodes[child].run[kind];
    }
    if (node->run[kind] > 0) node->run[kind] = longest < NFA_RUN_MAX ? (uint8_t)(longest + 1) : 0;
}

/* From the first node to the last, each is told where in a character it stands; children stand behind their
 * parent, so from the last to the first each tells its own way down. */
static bool find_runs(grammar_vocab *v)
{
    utf8_rest *rest = calloc(v->max_depth + 1, sizeof *rest);
    bool *whole = calloc(v->n_nodes + 1, sizeof *whole); /* it begins a character */
    bool ok = rest && whole;
    for (size_t i = 0; i < v->n_nodes && ok; i++) {
        trie_node *node = &v->nodes[i];
        rest[node->depth] = rest[node->depth - 1];
        whole[i] = rest[node->depth].n == 0;
        node->run[NFA_WORD] = nfa_run_has(NFA_WORD, node->byte);
        node->run[NFA_PLAIN] = nfa_run_has(NFA_PLAIN, node->byte);
        node->run[NFA_TEXT] = text_byte(&rest[node->depth], node->byte);
    }
    for (size_t i = v->n_nodes; i-- > 0 && ok;) {
        for (nfa_run_kind kind = 0; kind < NFA_RUN_KINDS; kind++) run_of_children(v, i, kind);
    }
    for (size_t i = 0; i < v->n_nodes && ok; i++)
        if (!whole[i]) v->nodes[i].run[NFA_TEXT] = 0;
    free(rest);
    free(whole);
    return ok;
}

/* Nodes of sorted items; open[d] is the node at depth d on the current path. */
static int build_trie(grammar_vocab *v, const sort_item *items, size_t n, shoal_err *err)
{
    size_t total = 0;
    for (size_t i = 0; i < n; i++) {
        total += items[i].n - (i ? common_prefix(&items[i - 1], &items[i]) : 0);
        if (items[i].n > v->max_depth) v->max_depth = items[i].n;
    }
    v->nodes = calloc(total ? total : 1, sizeof *v->nodes);
    v->tokens = calloc(n ? n : 1, sizeof *v->tokens);
    uint32_t *open = calloc(v->max_depth + 1, sizeof *open);
    if (!v->nodes || !v->tokens || !open) {
        free(open);
        return err_nomem(err);
    }
    size_t depth = 0;
    for (size_t i = 0; i < n; i++) {
        size_t keep = i ? common_prefix(&items[i - 1], &items[i]) : 0;
        for (; depth > keep; depth--) v->nodes[open[depth]].skip = (uint32_t)v->n_nodes;
        for (; depth < items[i].n; v->n_nodes++) {
            open[depth + 1] = (uint32_t)v->n_nodes;
            v->nodes[v->n_nodes] = (trie_node){.byte = items[i].s[depth],
                                               .depth = (uint16_t)(depth + 1),
                                               .first_token = (uint32_t)v->n_tokens};
            depth++;
        }
        trie_node *end = &v->nodes[open[depth]];
        end->n_tokens++;
        v->tokens[v->n_tokens++] = items[i].id;
    }
    for (; depth > 0; depth--) v->nodes[open[depth]].skip = (uint32_t)v->n_nodes;
    free(open);
    return find_runs(v) ? 0 : err_nomem(err);
}

int grammar_vocab_new(grammar_vocab **ret, const tokenizer *t, shoal_err *err)
{
    grammar_vocab *v = calloc(1, sizeof *v);
    size_t n_vocab = tokenizer_vocab_size(t), n = 0;
    sort_item *items = calloc(n_vocab ? n_vocab : 1, sizeof *items);
    if (v) v->specials = calloc(n_vocab ? n_vocab : 1, sizeof *v->specials);
    int rc = v && v->specials && items ? 0 : err_nomem(err);
    if (rc != 0) goto out;
    v->t = t;
    v->n_vocab = n_vocab;
    for (size_t id = 0; id < n_vocab; id++) {
        size_t len = 0;
        bool special = false;
        const char *s = tokenizer_bytes(t, (int32_t)id, &len, &special);
        if (!s || len == 0 || len >= UINT16_MAX) continue;
        if (special)
            v->specials[v->n_specials++] = (int32_t)id;
        else
            items[n++] = (sort_item){.s = (const uint8_t *)s, .n = len, .id = (int32_t)id};
    }
    qsort(items, n, sizeof *items, compare_items);
    rc = build_trie(v, items, n, err);
out:
    free(items);
    if (rc == 0)
        *ret = v;
    else
        grammar_vocab_free(v);
    return rc;
}

void grammar_vocab_free(grammar_vocab *v)
{
    if (!v) return;
    free(v->nodes);
    free(v->specials);
    free(v->tokens);
    free(v);
}

/* A document, and perhaps a line end: models are taught that one follows, and some have it in one token with
 * the last bracket. */
static int compile_document(nfa *a, const char *schema, bool open, int *ret_start, shoal_err *err)
{
    int rule, rc = schema_compile(a, schema, open ? SCHEMA_OPEN : 0, &rule, err);
    if (rc) return rc;
    int start = nfa_state(a), end = nfa_call(a, start, rule);
    nfa_return(a, end);
    nfa_mark(a, end, NFA_IDLE);
    nfa_return(a, nfa_range(a, end, '\n', '\n'));
    *ret_start = start;
    return 0;
}

static int compile_reply(nfa *a, const grammar_spec *spec, int *ret_start, shoal_err *err)
{
    switch (spec->kind) {
    case GRAMMAR_JSON_OBJECT: return compile_document(a, NULL, false, ret_start, err);
    case GRAMMAR_JSON_SCHEMA:
        if (!spec->schema) return err_set(err, SHOAL_EINVALID, "a JSON schema is wanted and none was given");
        return compile_document(a, spec->schema, spec->open, ret_start, err);
    case GRAMMAR_TOOLS: return tools_compile(a, spec, ret_start, err);
    case GRAMMAR_CHOICES: return choices_compile(a, spec, ret_start, err);
    }
    return err_set(err, SHOAL_EINVALID, "there is no form of reply %d", (int)spec->kind);
}

static int compile(nfa *a, const grammar_spec *spec, int *ret_start, shoal_err *err)
{
    int start = NFA_DEAD, rc = compile_reply(a, spec, &start, err);
    if (rc == 0) *ret_start = spec->kind == GRAMMAR_TOOLS ? start : thought_compile(a, spec, start);
    return rc;
}

/* The model's control tokens that are markers of this form. */
static void find_markers(grammar *g, const grammar_spec *spec)
{
    for (size_t i = 0; i < g->v->n_specials && g->n_markers < MARKERS_MAX; i++) {
        size_t len = 0;
        bool special = false;
        const char *s = tokenizer_bytes(g->v->t, g->v->specials[i], &len, &special);
        uint8_t marks = s && len > 0 ? tools_marks(spec, s, len) : 0;
        if (marks) g->markers[g->n_markers++] = (marker){g->v->specials[i], marks};
    }
}

/* Step with every byte; false when that is too much at once. *ret_n grows over the configurations seen. */
static bool try_bytes(nfa *a, int config, int *ret_n)
{
    for (int b = 0; b < 256; b++) {
        int to = nfa_step(a, config, (uint8_t)b);
        if (nfa_stopped(a) || nfa_cut(a, to)) return false;
        if (to >= *ret_n) *ret_n = to + 1;
    }
    return true;
}

/* All beginnings of two bytes, so that what is too wide from the start is refused before it runs. */
static bool look_ahead(nfa *a, int begin)
{
    int n = begin + 1;
    bool ok = try_bytes(a, begin, &n);
    int n_first = n;
    for (int i = begin + 1; ok && i < n_first; i++) ok = try_bytes(a, i, &n);
    return ok;
}

/* Compile, drop dead ends, and see that there is something to say. */
static int grammar_prepare(grammar *g, const grammar_spec *spec, shoal_err *err)
{
    int start = NFA_DEAD, rc = compile(g->a, spec, &start, err);
    if (rc) return rc;
    if (nfa_failed(g->a))
        return err_set(err, SHOAL_ELIMIT, "the form of the reply is too large: more than %d automaton states",
                       NFA_STATES_MAX);
    if (!nfa_seal(g->a)) return err_nomem(err);
    find_markers(g, spec);
    nfa_allow(g->a, STEP_WORK);
    g->config = nfa_begin(g->a, start);
    if (g->config != NFA_DEAD && !look_ahead(g->a, g->config))
        return err_set(err, SHOAL_ELIMIT,
                       "the form of the reply has too many alternatives that look alike (over %d)",
                       NFA_THREADS_MAX);
    if (g->config == NFA_DEAD)
        return err_set(err, SHOAL_EINVALID, "%s: no document can satisfy it",
                       spec->kind == GRAMMAR_TOOLS ? "tools" : "json_schema");
    return 0;
}

int grammar_new(grammar **ret, const grammar_vocab *v, const grammar_spec *spec, shoal_err *err)
{
    grammar *g = calloc(1, sizeof *g);
    if (!g) return err_nomem(err);
    g->v = v;
    g->purse = REPLY_WORK;
    g->n_left = g->text_max = SIZE_MAX;
    g->a = nfa_new();
    g->path = calloc(v->max_depth + 1, sizeof *g->path);
    int rc = g->a && g->path ? grammar_prepare(g, spec, err) : err_nomem(err);
    if (rc != 0 && g->a && nfa_lacks_memory(g->a)) rc = err_nomem(err); /* not what else it looks like */
    if (rc == 0)
        *ret = g;
    else
        grammar_free(g);
    return rc;
}

void grammar_free(grammar *g)
{
    if (!g) return;
    nfa_free(g->a);
    free(g->path);
    free(g);
}

/* ---- masks ------------------------------------------------------------------------------------ */

static void allow(uint64_t *bits, int32_t id)
{
    bits[id / 64] |= (uint64_t)1 << (id % 64);
}

int grammar_walk(const grammar *g, int config, const uint8_t *s, size_t n)
{
    for (size_t i = 0; i < n && config != NFA_DEAD; i++) config = nfa_step(g->a, config, s[i]);
    return config;
}

/* A marker that is a piece of a longer one fits where that goes on with it. */
static bool marker_fits(const grammar *g, const marker *m)
{
    size_t len = 0;
    bool special = false;
    if (!(nfa_marks(g->a, g->config) & m->marks)) return false;
    const char *s = tokenizer_bytes(g->v->t, m->id, &len, &special);
    return grammar_walk(g, g->config, (const uint8_t *)s, len) != NFA_DEAD;
}

static void allow_subtree(const grammar_vocab *v, uint32_t i, uint64_t *bits)
{
    uint32_t end = v->nodes[i].skip;
    size_t last = end < v->n_nodes ? v->nodes[end].first_token : v->n_tokens;
    for (size_t k = v->nodes[i].first_token; k < last; k++) allow(bits, v->tokens[k]);
}

/* Subtrees of characters that a string has room for need no walk, which spares most of the vocabulary there. */
static bool grammar_has_room(nfa *a, int config, const trie_node *node)
{
    for (nfa_run_kind kind = 0; kind < NFA_RUN_KINDS; kind++)
        if (node->run[kind] && nfa_run(a, config, kind) >= node->run[kind]) return true;
    return false;
}

static void walk_trie(const grammar *g, uint64_t *bits)
{
    const grammar_vocab *v = g->v;
    g->path[0] = g->config;
    for (uint32_t i = 0; i < v->n_nodes;) {
        const trie_node *node = &v->nodes[i];
        int from = g->path[node->depth - 1];
        progress_add(16);
        if (grammar_has_room(g->a, from, node)) {
            allow_subtree(v, i, bits);
            i = node->skip;
            continue;
        }
        int config = nfa_step(g->a, from, node->byte);
        if (config == NFA_DEAD) {
            i = node->skip;
            continue;
        }
        g->path[node->depth] = config;
        for (uint32_t k = 0; k < node->n_tokens; k++) allow(bits, v->tokens[node->first_token + k]);
        i++;
    }
}

/* One bit a token: may it come next in this configuration? Kept with the configuration, since a reply
 * spends most of its steps in few of them (inside a string, inside a number). */
static const uint64_t *allowed_tokens(grammar *g)
{
    if (*nfa_slot(g->a, g->config)) return *nfa_slot(g->a, g->config);
    int twin = nfa_twin(g->a, g->config, (int)g->v->max_depth);
    if (*nfa_slot(g->a, twin)) return *nfa_slot(g->a, twin);
    if (nfa_is_full(g->a) || g->n_masks >= MASKS_KEPT) {
        g->config = nfa_forget(g->a, g->config);
        g->n_masks = 0;
        if (g->config == NFA_DEAD) return NULL;
    }
    uint64_t *bits = calloc(g->v->n_vocab / 64 + 1, sizeof *bits);
    if (!bits) return NULL;
    walk_trie(g, bits);
    for (size_t i = 0; i < g->n_markers; i++)
        if (marker_fits(g, &g->markers[i])) allow(bits, g->markers[i].id);
    *nfa_slot(g->a, g->config) = bits; /* stepping may have moved the configurations */
    g->n_masks++;
    return bits;
}

/* ---- trouble ---------------------------------------------------------------------------------- */

static bool grammar_refuse(grammar *g, nfa_trouble why)
{
    if (g->err.code) return false;
    switch (why) {
    case NFA_DEEP:
        err_set(&g->err, SHOAL_ELIMIT, "the reply nests too deeply for its schema (%d open rules)",
                NFA_DEPTH_MAX);
        break;
    case NFA_WIDE:
        err_set(&g->err, SHOAL_ELIMIT, "the schema leaves more than %d alternatives open at this point",
                NFA_THREADS_MAX);
        break;
    case NFA_WORK:
        err_set(
            &g->err, SHOAL_ELIMIT,
            "the schema takes too much work for each token: it has too many alternatives that look alike");
        break;
    case NFA_NOMEM: err_nomem(&g->err); break;
    case NFA_FINE:
        err_set(&g->err, SHOAL_EUNSUPPORTED,
                "the model's vocabulary has no token with which the form can go on");
        break;
    }
    return false;
}

/* The mask of this configuration, its work taken out of the purse; NULL when it cannot be had. */
static const uint64_t *paid_tokens(grammar *g)
{
    g->purse += TOKEN_WORK;
    uint64_t most = g->purse < STEP_WORK ? g->purse : STEP_WORK;
    nfa_allow(g->a, most);
    const uint64_t *bits = allowed_tokens(g);
    g->purse -= most - nfa_left(g->a);
    nfa_trouble why = nfa_stopped(g->a) ? nfa_stopped(g->a) : nfa_cut(g->a, g->config);
    if (why || !bits) {
        grammar_refuse(g, why ? why : NFA_NOMEM);
        return NULL;
    }
    return bits;
}

/* Sixty-four tokens at a time: in most states nearly all or nearly none of the vocabulary may come. */
static void apply(const uint64_t *bits, size_t n_bits, float *logits, size_t n_vocab)
{
    for (size_t at = 0; at < n_vocab; at += 64) {
        uint64_t keep = at < n_bits ? bits[at / 64] : 0;
        size_t n = n_vocab - at < 64 ? n_vocab - at : 64;
        for (size_t k = 0; k < n && keep != UINT64_MAX; k++)
            if (!(keep >> k & 1)) logits[at + k] = -INFINITY;
    }
}

static bool any_allowed(const uint64_t *bits, size_t n_bits, size_t n_vocab)
{
    for (size_t at = 0; at < n_bits && at < n_vocab; at += 64)
        if (bits[at / 64]) return true;
    return false;
}

bool grammar_mask(grammar *g, float *logits, size_t n_vocab, const int32_t *eos_ids, size_t n_eos)
{
    if (g->err.code) return false;
    const uint64_t *bits = paid_tokens(g);
    if (!bits) return false;
    bool may_end = grammar_complete(g);
    if (!(may_end && n_eos > 0) && !any_allowed(bits, g->v->n_vocab, n_vocab))
        return grammar_refuse(g, NFA_FINE);
    float ends[EOS_MAX];
    if (n_eos > EOS_MAX) n_eos = EOS_MAX;
    for (size_t i = 0; i < n_eos; i++)
        ends[i] = may_end && (size_t)eos_ids[i] < n_vocab ? logits[eos_ids[i]] : -INFINITY;
    apply(bits, g->v->n_vocab, logits, n_vocab);
    grammar_keep_budget(g, bits, logits, n_vocab);
    for (size_t i = 0; i < n_eos; i++)
        if ((size_t)eos_ids[i] < n_vocab) logits[eos_ids[i]] = ends[i];
    return true;
}

static bool may_mark(const grammar *g, int32_t id)
{
    for (size_t i = 0; i < g->n_markers; i++)
        if (g->markers[i].id == id && nfa_marks(g->a, g->config) & g->markers[i].marks) return true;
    return false;
}

bool grammar_accept(grammar *g, int32_t id)
{
    size_t len = 0;
    bool special = false;
    const char *s = tokenizer_bytes(g->v->t, id, &len, &special);
    if (!s || len == 0 || g->err.code) return false;
    if (special && !may_mark(g, id)) return false;
    int config = grammar_walk(g, g->config, (const uint8_t *)s, len);
    if (config == NFA_DEAD) return false;
    g->n_text = nfa_marks(g->a, config) & NFA_OPTIONAL ? g->n_text + 1 : 0;
    g->config = config;
    if (g->n_left != SIZE_MAX && g->n_left > 0) g->n_left--;
    return true;
}

/* Its work is less than that of the mask which its token was chosen by, so the purse is never emptier than
 * where the reply began: what goes on there goes on here. */
bool grammar_replay(grammar *g, int32_t id)
{
    g->purse += TOKEN_WORK;
    uint64_t most = g->purse < STEP_WORK ? g->purse : STEP_WORK;
    nfa_allow(g->a, most);
    if (nfa_is_full(g->a)) g->config = nfa_forget(g->a, g->config);
    bool fits = g->config != NFA_DEAD && grammar_accept(g, id);
    g->purse -= most - nfa_left(g->a);
    return nfa_stopped(g->a) ? grammar_refuse(g, nfa_stopped(g->a)) : fits;
}

bool grammar_complete(const grammar *g)
{
    return nfa_accepts(g->a, g->config);
}

bool grammar_ended(grammar *g)
{
    return nfa_accepts(g->a, g->config) && !nfa_reads(g->a, g->config);
}

const shoal_err *grammar_error(const grammar *g)
{
    return g->err.code ? &g->err : NULL;
}
