/* book.h: a book of routes from YAML, and models that a test plays. Include once a test file.
 *
 *     book b;
 *     book_open(&b, "  - {name: r, rules: [{model: a}]}\n");    // models a, b, c, d and e; domains `t` of a
 *     b.models[0].expected_ms = 900;                            // of a
 *     assert_int_equal(book_decide(&b, "r"), DECIDE_DONE);
 *     assert_string_equal(b.d.steps[0].model, "a");
 *     book_close(&b); */
#ifndef TESTS_CONFIG_BOOK_H
#define TESTS_CONFIG_BOOK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the four above first. */
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "config/config.h"
#include "routes/decide.h"

enum { BOOK_MODELS = 5 };

#define BOOK_HEAD                                                                                          \
    "models: [{name: a}, {name: b, adapters: [{name: x, path: y}]}, {name: c}, {name: d}, {name: e}]\n"    \
    "domains: [{name: t, model: a, min_score: 0.5, of: [{name: on, labels: ['iot_*']}, {name: jokes}]}]\n" \
    "routes:\n"

typedef struct book {
    gateway_config *config;
    route_facts facts;
    route_estimate models[BOOK_MODELS]; /* a to e */
    const char *text;
    bool header, gives_up;
    size_t n_asked; /* of the view */
    decision d;
} book;

static inline int book_holds(void *user, const config_rule *r, route_question q)
{
    book *b = user;
    b->n_asked++;
    if (q == ROUTE_HEADER_HOLDS) return b->header;
    return b->gives_up ? -1 : regex_find(r->pattern, b->text, strlen(b->text)) == REGEX_FOUND;
}

static inline void book_estimate(void *user, const char *model, route_estimate *ret)
{
    book *b = user;
    b->n_asked++;
    *ret = b->models[model[0] - 'a'];
}

static inline void book_open(book *b, const char *routes)
{
    char yaml[8192];
    shoal_err err;
    snprintf(yaml, sizeof yaml, "%s%s", BOOK_HEAD, routes);
    *b = (book){.text = ""};
    if (config_parse(&b->config, NULL, yaml, strlen(yaml), "t.yaml", &err) != 0) fail_msg("%s", err.message);
    b->facts = (route_facts){.endpoint = "chat_completions",
                             .path = "/v1/chat/completions",
                             .api_key = "",
                             .language = "en",
                             .n_bytes = 40,
                             .n_tokens = 10,
                             .keys = {0, 0, 0, 12345}};
    for (size_t i = 0; i < BOOK_MODELS; i++)
        b->models[i] = (route_estimate){.known = true, .fits = true, .ready = true};
}

static inline route_view book_view(book *b)
{
    return (route_view){.user = b, .holds = book_holds, .estimate = book_estimate};
}

static inline decide_what book_decide(book *b, const char *route)
{
    route_view v = book_view(b);
    return decide_route(&b->config->book, route_find(&b->config->book, route), &b->facts, &v, &b->d);
}

/* Decides, and says who: "a b" for two steps, "" for nobody, "?" for a question. */
static inline const char *book_steps(book *b, const char *route)
{
    static char out[256];
    decide_what what = book_decide(b, route);
    *out = '\0';
    if (what == DECIDE_ASK) return "?";
    for (size_t i = 0; i < b->d.n; i++) {
        size_t n = strlen(out);
        snprintf(out + n, sizeof out - n, "%s%s", i ? " " : "", b->d.steps[i].model);
    }
    return out;
}

static inline void book_domain(book *b, const char *label, double score)
{
    domain_fact *d = &b->facts.domains[0];
    *d = (domain_fact){.state = label ? DOMAIN_KNOWN : DOMAIN_UNKNOWN, .score = score};
    snprintf(label ? d->label : d->why, sizeof d->label, "%s", label ? label : "no answer in 50 ms");
}

static inline void book_close(book *b)
{
    config_free(b->config);
}

#endif
