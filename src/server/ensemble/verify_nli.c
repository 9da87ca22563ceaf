/* verify_nli.c: pairs for a model of inference, and what its replies mean; see verify_nli.h. */
#include "ensemble/verify_nli.h"

#include <ctype.h>
#include <string.h>

/* Bytes of the sign that ends a sentence at s, 0: there is none. "3.5" and "light.kitchen" go on. */
static size_t end_len(const char *s)
{
    static const char *const WIDE[] = {"。", "！", "？"};
    for (size_t i = 0; i < sizeof WIDE / sizeof *WIDE; i++)
        if (strncmp(s, WIDE[i], strlen(WIDE[i])) == 0) return strlen(WIDE[i]);
    if (*s == '\n') return 1;
    return *s && strchr(".!?", *s) && (!s[1] || isspace((unsigned char)s[1])) ? 1 : 0;
}

/* Bytes of the sentence at s, its end included. */
static size_t sentence_len(const char *s)
{
    size_t n = 0;
    while (s[n]) {
        size_t end = end_len(s + n);
        if (end) return n + end;
        n++;
    }
    return n;
}

static bool says_something(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (isalnum((unsigned char)s[i]) || (unsigned char)s[i] >= 0x80) return true;
    return false;
}

typedef struct texts {
    char *at[VERIFY_NLI_SENTENCES_MAX > VERIFY_NLI_PIECES_MAX ? VERIFY_NLI_SENTENCES_MAX
                                                              : VERIFY_NLI_PIECES_MAX];
    size_t n;
    bool cut, nomem;
} texts;

static void verify_nli_add(texts *t, size_t max, const char *s, size_t n, arena *mem)
{
    while (n && isspace((unsigned char)*s)) s++, n--;
    while (n && isspace((unsigned char)s[n - 1])) n--;
    if (!says_something(s, n)) return;
    t->cut |= t->n == max;
    if (t->cut || t->nomem) return;
    t->at[t->n] = arena_strndup(mem, s, n);
    if (t->at[t->n])
        t->n++;
    else
        t->nomem = true;
}

/* Sentences together as long as they fit into `bytes`; 0: each alone. */
static void cut_up(texts *t, size_t max, const char *s, size_t bytes, arena *mem)
{
    while (*s && !t->cut && !t->nomem) {
        size_t n = sentence_len(s), next;
        while (s[n] && (next = sentence_len(s + n)) && n + next <= bytes) n += next;
        verify_nli_add(t, max, s, n, mem);
        s += n;
    }
}

static int make_pairs(verify_nli *n, const texts *said, const texts *pieces, arena *mem)
{
    size_t count = said->n * pieces->n;
    Shoal__V1__TextInput *list = arena_alloc(mem, count * sizeof *list);
    n->request.inputs = arena_alloc(mem, count * sizeof *n->request.inputs);
    if (!list || !n->request.inputs) return SHOAL_ENOMEM;
    for (size_t i = 0; i < count; i++) {
        list[i] = (Shoal__V1__TextInput)SHOAL__V1__TEXT_INPUT__INIT;
        list[i].text = pieces->at[i % pieces->n];
        list[i].pair = said->at[i / pieces->n];
        list[i].has_pair = true;
        n->request.inputs[n->request.n_inputs++] = &list[i];
    }
    return 0;
}

/* Half of the context at four bytes a token: the rest is for the sentence and for texts with more tokens. */
size_t verify_nli_piece_bytes(size_t n_ctx)
{
    size_t bytes = n_ctx * 2;
    return bytes && bytes < VERIFY_NLI_PIECE_BYTES ? bytes : VERIFY_NLI_PIECE_BYTES;
}

int verify_nli_ask(verify_nli *ret, const char *context, const char *text, size_t piece_bytes, arena *mem)
{
    texts said = {0}, pieces = {0};
    verify_nli n = {.request = SHOAL__V1__CLASSIFY_REQUEST__INIT};
    cut_up(&said, VERIFY_NLI_SENTENCES_MAX, text, 0, mem);
    cut_up(&pieces, VERIFY_NLI_PIECES_MAX, context, piece_bytes, mem);
    if (said.nomem || pieces.nomem) return SHOAL_ENOMEM;
    n.n_sentences = said.n;
    n.n_pieces = pieces.n;
    n.why = said.cut || pieces.cut ? VERIFY_TOO_LONG
            : !said.n              ? VERIFY_EMPTY
            : !pieces.n            ? VERIFY_NO_CONTEXT
                                   : VERIFY_FINE;
    int rc = n.why == VERIFY_FINE ? make_pairs(&n, &said, &pieces, mem) : 0;
    if (rc == 0) *ret = n;
    return rc;
}

/* -1: the model has no such label. */
static double verify_nli_score_of(const Shoal__V1__Classification *c, const char *label)
{
    for (size_t i = 0; i < c->n_labels; i++)
        if (strcmp(c->labels[i]->label, label) == 0) return c->labels[i]->score;
    return -1;
}

verify_why verify_nli_judge(const verify_nli *n, const Shoal__V1__ClassifyReply *reply, const char *entails,
                            double min_score)
{
    if (!reply || reply->n_results != n->n_sentences * n->n_pieces) return VERIFY_NOT_CHECKED;
    for (size_t i = 0; i < n->n_sentences; i++) {
        double best = -1;
        for (size_t k = 0; k < n->n_pieces; k++) {
            double s = verify_nli_score_of(reply->results[i * n->n_pieces + k], entails);
            if (s < 0) return VERIFY_NOT_CHECKED;
            if (s > best) best = s;
        }
        if (!(best >= min_score)) return VERIFY_NOT_ENTAILED;
    }
    return VERIFY_FINE;
}
