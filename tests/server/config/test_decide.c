/* Which model a route comes to, and why: rule by rule, then over whatever rules and clusters come. */
#include "book.h"

#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "json/json.h"
#include "routes/replay.h"

static const char *why_of(book *b, const decide_note *n)
{
    static char out[512];
    buf text = {0};
    decide_put_why(&text, &b->config->book, n, &b->facts);
    snprintf(out, sizeof out, "%s", text.data ? text.data : "");
    buf_done(&text);
    return out;
}

/* ---- rules --------------------------------------------------------------------------------------- */

static void the_first_rule_that_holds_answers_and_the_chain_stands_behind(void **state)
{
    book b;
    book_open(
        &b,
        "  - {name: r, rules: [{language: [de], model: a}, {model: b}, {model: c}], fallback: [d, b, e]}\n");
    assert_string_equal(book_steps(&b, "r"), "b d e");
    assert_string_equal(why_of(&b, &b.d.steps[0]), "rule 2: always");
    assert_string_equal(why_of(&b, &b.d.steps[1]), "fallback 1");
    assert_string_equal(why_of(&b, &b.d.skipped[0]), "rule 1: no match: language en");
    b.facts.language = "de";
    assert_string_equal(book_steps(&b, "r"), "a d b e");
    assert_string_equal(why_of(&b, &b.d.steps[0]), "rule 1: language de");
    book_close(&b);
}

/* One condition a row: a fact that makes it hold, and one that does not. */
static void each_condition_holds_and_fails(void **state)
{
    static const struct row {
        const char *condition;
        route_facts yes, no;
    } rows[] = {
        {"endpoint: [embeddings, tag]", {.endpoint = "tag"}, {.endpoint = "chat_completions"}},
        {"path: ['/v1/chat*']", {.path = "/v1/chat/completions"}, {.path = "/v1/completions"}},
        {"api_key: [phone, 'lab-*']", {.api_key = "lab-7"}, {.api_key = ""}},
        {"language: [de, fr]", {.language = "fr"}, {.language = ""}},
        {"wants: [tools, json_schema]", {.wants = WANTS_TOOLS}, {.wants = WANTS_STREAM}},
        {"latency: [realtime]", {.latency = LATENCY_REALTIME}, {.latency = LATENCY_BATCH}},
        {"min_bytes: 10", {.n_bytes = 10}, {.n_bytes = 9}},
        {"max_bytes: 10", {.n_bytes = 10}, {.n_bytes = 11}},
        {"min_tokens: 5, max_tokens: 6", {.n_tokens = 6}, {.n_tokens = 7}},
        {"max_deadline_ms: 300",
         {.has_deadline = true, .left_ms = 299},
         {.has_deadline = true, .left_ms = 301}},
        {"max_deadline_ms: 300", {.has_deadline = true, .left_ms = 1}, {.has_deadline = false}},
        {"min_deadline_ms: 300", {.has_deadline = false}, {.has_deadline = true, .left_ms = 299}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char yaml[256];
        book b;
        snprintf(yaml, sizeof yaml, "  - {name: r, rules: [{%s, model: a}, {model: b}]}\n",
                 rows[i].condition);
        book_open(&b, yaml);
        const route_facts blank = {.endpoint = "", .path = "", .api_key = "", .language = ""};
        for (int yes = 0; yes < 2; yes++) {
            const route_facts *f = yes ? &rows[i].yes : &rows[i].no;
            b.facts = *f;
            if (!f->endpoint) b.facts.endpoint = blank.endpoint;
            if (!f->path) b.facts.path = blank.path;
            if (!f->api_key) b.facts.api_key = blank.api_key;
            if (!f->language) b.facts.language = blank.language;
            const char *steps = book_steps(&b, "r");
            if (strcmp(steps, yes ? "a" : "b") != 0) fail_msg("%s: %s", rows[i].condition, steps);
        }
        book_close(&b);
    }
}

static void what_costs_something_is_asked_for_last_and_alone(void **state)
{
    book b;
    book_open(
        &b, "  - name: r\n    rules:\n"
            "      - {language: [de], matches: 'x+', header: [{name: x-a}], model: c}\n"
            "      - {matches: '\\d{3}', model: a}\n      - {header: [{name: x-a, value: 'on*'}], model: b}\n"
            "    fallback: [e]\n");
    b.text = "call 123";
    assert_string_equal(book_steps(&b, "r"), "a e");
    assert_int_equal(b.n_asked, 3); /* one pattern, and two models: the German rule asked nothing */
    b.text = "call";
    b.header = true;
    assert_string_equal(book_steps(&b, "r"), "b e");
    b.header = false;
    assert_string_equal(book_steps(&b, "r"), "e");
    b.gives_up = true;
    assert_string_equal(book_steps(&b, "r"), "e");
    assert_string_equal(why_of(&b, &b.d.skipped[1]), "rule 2: the search for its pattern took too long");
    book_close(&b);
}

static void a_domain_is_asked_for_only_when_a_rule_wants_it(void **state)
{
    book b;
    book_open(&b, "  - name: r\n    domains: t\n    rules:\n"
                  "      - {language: [de], model: b}\n      - {domain: [on], model: c}\n"
                  "      - {domain: [jokes], min_score: 0.9, model: d}\n    fallback: [e]\n");
    b.facts.language = "de";
    assert_string_equal(book_steps(&b, "r"), "b e");
    b.facts.language = "en";
    assert_string_equal(book_steps(&b, "r"), "?");
    assert_int_equal(b.d.ask, 0);
    book_domain(&b, "iot_hue_lighton", 0.7);
    assert_string_equal(book_steps(&b, "r"), "c e");
    assert_string_equal(why_of(&b, &b.d.steps[0]), "rule 2: domain iot_hue_lighton 0.70");
    book_domain(&b, "iot_hue_lighton", 0.4); /* less sure than the set demands */
    assert_string_equal(book_steps(&b, "r"), "e");
    book_domain(&b, "jokes", 0.8); /* less than the rule demands */
    assert_string_equal(book_steps(&b, "r"), "e");
    book_domain(&b, "jokes", 0.95);
    assert_string_equal(book_steps(&b, "r"), "d e");
    book_domain(&b, NULL, 0);
    assert_string_equal(book_steps(&b, "r"), "e");
    assert_string_equal(why_of(&b, &b.d.skipped[1]), "rule 2: domain unknown: no answer in 50 ms");
    book_close(&b);
}

/* ---- targets ------------------------------------------------------------------------------------- */

static void who_cannot_is_passed_over_with_a_reason(void **state)
{
    static const struct row {
        route_estimate a;
        const char *steps, *why;
    } rows[] = {
        {{0}, "b", "rule 1: no model a here"},
        {{.known = true, .ready = true}, "b", "rule 1: a does another task"},
        {{.known = true, .fits = true}, "b", "rule 1: no replica serves a now"},
        {{.known = true, .fits = true, .ready = true, .expected_ms = 900},
         "b",
         "rule 1: a would be late: about 900 ms, 200 are left"},
        {{.known = true, .fits = true, .ready = true, .load = 3},
         "b",
         "rule 1: a is busy: load 3.00, about 0 ms"},
        {{.known = true, .fits = true, .ready = true, .expected_ms = 70},
         "b",
         "rule 1: a is busy: load 0.00, about 70 ms"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        book b;
        book_open(&b, "  - {name: r, rules: [{model: a, max_load: 2, max_wait_ms: 50}], fallback: [b]}\n");
        b.facts.has_deadline = true;
        b.facts.left_ms = 200;
        b.models[0] = rows[i].a;
        assert_string_equal(book_steps(&b, "r"), rows[i].steps);
        assert_string_equal(why_of(&b, &b.d.skipped[0]), rows[i].why);
        book_close(&b);
    }
}

static void when_nobody_can_well_the_best_of_them_is_asked(void **state)
{
    book b;
    book_open(&b, "  - {name: r, rules: [{model: a}], fallback: [b, c]}\n");
    b.facts.has_deadline = true;
    b.facts.left_ms = 100;
    b.models[0].ready = false;
    b.models[1].expected_ms = 500;
    b.models[2].expected_ms = 400;
    assert_string_equal(book_steps(&b, "r"), "c");
    assert_int_equal(b.d.steps[0].why, DECIDE_LAST);
    assert_string_equal(why_of(&b, &b.d.steps[0]), "fallback 2: nothing else: about 400 ms, load 0.00");
    for (int i = 0; i < 3; i++) b.models[i] = (route_estimate){.known = true, .fits = true};
    assert_string_equal(book_steps(&b, "r"), "a"); /* the call waits for a worker that comes back */
    for (int i = 0; i < 3; i++) b.models[i].fits = false;
    assert_int_equal(book_decide(&b, "r"), DECIDE_NOBODY);
    assert_int_equal(b.d.n_skipped, 3);
    book_close(&b);
}

static void who_is_over_the_budget_is_never_asked(void **state)
{
    book b;
    book_open(
        &b,
        "  - {name: r, rules: [{max_cost: 0.5, model: a}, {max_energy_j: 3, model: b}], fallback: [c, d]}\n");
    b.models[0].has_cost = true;
    b.models[0].cost = 0.6;
    b.models[1] = (route_estimate){.known = true, .fits = true, .ready = true};
    assert_string_equal(book_steps(&b, "r"), "c d");
    assert_string_equal(why_of(&b, &b.d.skipped[0]),
                        "rule 1: a is over the budget: it would take about 0.6 of cost, and 0.5 are allowed");
    assert_string_equal(why_of(&b, &b.d.skipped[1]),
                        "rule 2: b is over the budget: its energy is not known, and at most 3 J are allowed");
    b.models[0].cost = 0.5;
    assert_string_equal(book_steps(&b, "r"), "a c d");
    b.facts.max_energy_j = 10; /* the request's own, for all of them */
    b.models[3].energy_by = ENERGY_RAPL;
    b.models[3].energy_j = 10;
    assert_string_equal(book_steps(&b, "r"), "d");
    b.models[3].energy_j = 10.5;
    b.models[3].ready = false;
    assert_string_equal(book_steps(&b, "r"), ""); /* nor as the last resort */
    book_close(&b);
}

/* a, b and c would do alike. */
static const char *steps_by(const char *order, double cost_b, double j_c)
{
    static char out[256];
    char yaml[160];
    book b;
    snprintf(yaml, sizeof yaml, "  - {name: r, order: %s, rules: [{any: [a, b, c]}], fallback: [d]}\n",
             order);
    book_open(&b, yaml);
    for (int i = 0; i < 3; i++) {
        b.models[i].has_cost = true;
        b.models[i].cost = 1;
        b.models[i].energy_by = i < 2 ? ENERGY_CPU_TIME : ENERGY_CONFIGURED;
        b.models[i].energy_j = 5;
        b.models[i].expected_ms = 10 + i;
    }
    b.models[1].cost = cost_b;
    b.models[2].energy_j = j_c;
    snprintf(out, sizeof out, "%s", book_steps(&b, "r"));
    book_close(&b);
    return out;
}

static void models_that_are_as_good_come_in_the_route_s_order(void **state)
{
    assert_string_equal(steps_by("least_time", 1, 5), "a b c d");
    assert_string_equal(steps_by("least_cost", 0.5, 5), "b a c d");
    assert_string_equal(steps_by("least_cost", 2, 5), "a c b d");
    assert_string_equal(steps_by("least_energy", 0.5, 4), "c a b d");
    book b;
    book_open(&b, "  - {name: r, order: round_robin, rules: [{any: [a, b, c]}]}\n"
                  "  - {name: h, order: hash, key: session, rules: [{any: [a, b, c]}]}\n"
                  "  - {name: j, order: least_energy, rules: [{any: [a, b]}]}\n");
    unsigned first[2][3] = {{0}};
    for (uint64_t k = 1; k <= 300; k++) {
        b.facts.keys[KEY_REQUEST] = rng_mix(k);
        b.facts.keys[KEY_SESSION] = rng_mix(k * 7);
        first[0][book_steps(&b, "r")[0] - 'a']++;
        char own = book_steps(&b, "h")[0];
        first[1][own - 'a']++;
        b.facts.keys[KEY_REQUEST] = 1;
        assert_int_equal(book_steps(&b, "h")[0], own);
    }
    for (int i = 0; i < 6; i++) assert_in_range(first[i / 3][i % 3], 60, 140);
    b.models[1].energy_by = ENERGY_RAPL; /* who tells none comes behind who does */
    b.models[1].energy_j = 900;
    assert_string_equal(book_steps(&b, "j"), "b a");
    b.models[1].fits = false;
    assert_string_equal(book_steps(&b, "j"), "a");
    book_close(&b);
}

static void a_route_may_lead_to_routes(void **state)
{
    book b;
    book_open(&b, "  - {name: r, rules: [{language: [de], model: german}, {model: rest}], fallback: [e]}\n"
                  "  - {name: german, rules: [{min_bytes: 1000, model: a}]}\n"
                  "  - {name: rest, rules: [{model: b}], fallback: [c]}\n");
    assert_string_equal(book_steps(&b, "r"), "b c e");
    assert_string_equal(b.d.steps[0].route->name, "rest");
    b.facts.language = "de"; /* leads to a route with nobody for short texts: the next rule's turn */
    assert_string_equal(book_steps(&b, "r"), "b c e");
    b.facts.n_bytes = 2000;
    assert_string_equal(book_steps(&b, "r"), "a e");
    book_close(&b);
}

static void a_split_keeps_its_shares_and_whoever_is_in_one(void **state)
{
    book b;
    unsigned n[2] = {0}, moved = 0;
    book_open(&b, "  - name: r\n    rules:\n      - split_by: session\n"
                  "        split: [{model: a, share: 9}, {model: b, share: 1}]\n");
    for (uint64_t s = 1; s <= 10000; s++) {
        b.facts.keys[KEY_SESSION] = rng_mix(s);
        b.facts.keys[KEY_REQUEST] = rng_mix(s * 31);
        const char first = *book_steps(&b, "r");
        n[first == 'b']++;
        b.facts.keys[KEY_REQUEST] = 77; /* another request of the session */
        moved += *book_steps(&b, "r") != first;
    }
    assert_int_equal(moved, 0);
    assert_in_range(n[1], 900, 1100);
    b.facts.keys[KEY_SESSION] = 0; /* without a session each request is drawn alone */
    n[1] = 0;
    for (uint64_t s = 1; s <= 10000; s++) {
        b.facts.keys[KEY_REQUEST] = rng_mix(s);
        n[1] += *book_steps(&b, "r") == 'b';
    }
    assert_in_range(n[1], 900, 1100);
    book_close(&b);
}

static void an_answer_is_gone_on_with_by_whoever_began_it(void **state)
{
    book b;
    book_open(&b, "  - {name: r, rules: [{model: a}, {language: [fr], model: in}], fallback: [c]}\n"
                  "  - {name: in, rules: [{split: [{model: d, share: 1}, {model: b, share: 1}]}]}\n");
    b.facts.resumes = true;
    b.models[1].began = true;
    assert_string_equal(book_steps(&b, "r"), "b");
    assert_string_equal(why_of(&b, &b.d.steps[0]), "began this answer");
    b.models[1].began = false;
    assert_string_equal(book_steps(&b, "r"), "a c");
    book_close(&b);
}

static void headers_hold_nothing_but_visible_letters(void **state)
{
    book b;
    buf out = {0};
    book_open(&b, "  - {name: r, domains: t, rules: [{domain: [on], model: b}], fallback: [c]}\n");
    book_domain(&b, "iot_\r\nx: y\303\244", 0.9);
    assert_string_equal(book_steps(&b, "r"), "b c");
    decide_put_header(&out, &b.config->book, &b.d, &b.facts);
    assert_string_equal(out.data, "r; b (rule 1: domain iot_??x: y?? 0.90); c (fallback 1)");
    buf_done(&out);
    book_close(&b);
}

/* ---- whatever comes ------------------------------------------------------------------------------ */

static uint64_t draw(uint64_t *seed, uint64_t n)
{
    *seed = rng_mix(*seed + 1);
    return *seed % n;
}

static void put_condition(buf *out, uint64_t *seed)
{
    static const char *const CONDITIONS[] = {
        "language: [de], ",  "endpoint: [tag], ",  "wants: [tools], ",        "latency: [batch], ",
        "min_bytes: 50, ",   "max_tokens: 20, ",   "max_deadline_ms: 100, ",  "min_deadline_ms: 50, ",
        "matches: 'a.c', ",  "domain: [on], ",     "domain: [jokes], ",       "max_load: 1, ",
        "max_wait_ms: 40, ", "api_key: [me], ",    "header: [{name: x-b}], ", "path: ['/v1/c*'], ",
        "max_cost: 0.5, ",   "max_energy_j: 20, ",
    };
    enum { N = sizeof CONDITIONS / sizeof *CONDITIONS };
    uint64_t bits = draw(seed, 1 << N) & draw(seed, 1 << N) & draw(seed, 1 << N);
    bool domain = false;
    for (unsigned i = 0; i < N; i++) {
        bool of = strncmp(CONDITIONS[i], "domain", 6) == 0;
        if (!(bits >> i & 1) || (of && domain)) continue;
        domain |= of;
        buf_puts(out, CONDITIONS[i]);
    }
}

/* A model, or a route that stands later in the file: so there is no loop. */
static void put_target(buf *out, uint64_t *seed, unsigned route, unsigned n_routes)
{
    unsigned later = n_routes - route - 1, k = (unsigned)draw(seed, BOOK_MODELS + later);
    if (k < BOOK_MODELS)
        buf_printf(out, "%c", 'a' + (int)k);
    else
        buf_printf(out, "r%u", route + 1 + k - BOOK_MODELS);
}

static void put_route(buf *out, uint64_t *seed, unsigned route, unsigned n_routes)
{
    unsigned n_rules = (unsigned)draw(seed, 5), n_fallback = (unsigned)draw(seed, 3) + (n_rules == 0);
    buf_printf(out, "  - name: r%u\n    domains: t\n    order: %s\n", route,
               router_order_name((router_order)draw(seed, ROUTER_N_ORDERS)));
    for (unsigned i = 0; i < n_rules; i++) {
        buf_puts(out, i ? "      - {" : "    rules:\n      - {");
        put_condition(out, seed);
        if (draw(seed, 5) == 0) {
            buf_puts(out, draw(seed, 2) ? "any: [c, a, b]" : "any: [e, d]");
        } else if (draw(seed, 4)) {
            buf_puts(out, "model: ");
            put_target(out, seed, route, n_routes);
        } else {
            buf_puts(out, "split: [{share: 1, model: ");
            put_target(out, seed, route, n_routes);
            buf_puts(out, "}, {share: 2, model: ");
            put_target(out, seed, route, n_routes);
            buf_puts(out, "}]");
        }
        buf_puts(out, "}\n");
    }
    for (unsigned i = 0; i < n_fallback; i++) {
        buf_puts(out, i ? ", " : "    fallback: [");
        put_target(out, seed, route, n_routes);
    }
    if (n_fallback) buf_puts(out, "]\n");
}

static void draw_request(book *b, uint64_t *seed)
{
    route_facts *f = &b->facts;
    f->language = draw(seed, 2) ? "de" : "en";
    f->endpoint = draw(seed, 3) ? "chat_completions" : "tag";
    f->api_key = draw(seed, 2) ? "me" : "";
    f->n_bytes = draw(seed, 100);
    f->n_tokens = f->n_bytes / 4;
    f->wants = (unsigned)draw(seed, 32);
    f->latency = (route_latency)draw(seed, N_LATENCIES);
    f->has_deadline = draw(seed, 3) != 0;
    f->left_ms = f->has_deadline ? (double)draw(seed, 150) : 0;
    f->keys[KEY_REQUEST] = draw(seed, 1000) + 1;
    b->text = draw(seed, 2) ? "abc" : "xyz";
    b->header = draw(seed, 2);
    b->gives_up = draw(seed, 9) == 0;
    for (int i = 0; i < BOOK_MODELS; i++)
        b->models[i] = (route_estimate){.known = draw(seed, 9) != 0,
                                        .fits = draw(seed, 5) != 0,
                                        .ready = draw(seed, 4) != 0,
                                        .expected_ms = (double)draw(seed, 200),
                                        .load = (double)draw(seed, 30) / 10,
                                        .has_cost = draw(seed, 4) != 0,
                                        .cost = (double)draw(seed, 100) / 100,
                                        .energy_j = (double)draw(seed, 50),
                                        .energy_by = (energy_by)draw(seed, N_ENERGIES)};
    f->max_cost = draw(seed, 9) ? 0 : (double)draw(seed, 100) / 100 + 0.01;
    f->max_energy_j = draw(seed, 9) ? 0 : (double)draw(seed, 50) + 1;
}

static bool is_within(const route_facts *f, bool has_cost, double cost, energy_by by, double j)
{
    if (f->max_cost > 0 && (!has_cost || cost > f->max_cost)) return false;
    return f->max_energy_j <= 0 || (by != ENERGY_UNKNOWN && j <= f->max_energy_j);
}

static bool is_feasible(const book *b, const char *model)
{
    const route_estimate *o = &b->models[model[0] - 'a'];
    if (!is_within(&b->facts, o->has_cost, o->cost, o->energy_by, o->energy_j)) return false;
    return o->known && o->fits && o->ready && (!b->facts.has_deadline || o->expected_ms <= b->facts.left_ms);
}

/* What the last word of the chain is, be it a route: some model behind it that could. */
static bool chain_is_feasible(const book *b, const config_route *r)
{
    for (size_t i = 0; i < r->n_fallback; i++) {
        const config_route *next = route_find(&b->config->book, r->fallback[i]);
        if (next ? chain_is_feasible(b, next) : is_feasible(b, r->fallback[i])) return true;
    }
    return false;
}

static void check_decision(book *b, decide_what what, const config_route *r)
{
    const decision *d = &b->d;
    assert_true(what == (d->n ? DECIDE_DONE : DECIDE_NOBODY));
    assert_true(d->n > 0 || d->n_skipped > 0); /* there is always a reason */
    for (size_t i = 0; i < d->n; i++) {
        assert_true(*why_of(b, &d->steps[i]));
        assert_true(d->steps[i].why <= DECIDE_LAST);
        assert_null(route_find(&b->config->book, d->steps[i].model)); /* a model, never a route */
        bool last = d->steps[i].why == DECIDE_LAST;
        assert_true(last ? d->n == 1 : is_feasible(b, d->steps[i].model));
        assert_true(is_within(&b->facts, d->steps[i].has_cost, d->steps[i].cost, d->steps[i].energy_by,
                              d->steps[i].energy_j)); /* nobody over the budget is asked, not even last */
        for (size_t k = 0; k < i; k++) assert_string_not_equal(d->steps[i].model, d->steps[k].model);
    }
    for (size_t i = 0; i < d->n_skipped; i++) assert_true(*why_of(b, &d->skipped[i]));
    /* Never late, nor nobody, while somebody in the chain could be in time. */
    if (chain_is_feasible(b, r)) assert_true(d->n > 0 && d->steps[0].why != DECIDE_LAST);
}

/* The line of a decision makes the same decision. */
static void check_replay(book *b, evidence *e)
{
    buf line = {0};
    json_t *root = NULL;
    replay *again = calloc(1, sizeof *again);
    decision d;
    bool same = false;
    shoal_err err;
    replay_put(&line, &b->config->book, &b->facts, e, &b->d);
    assert_int_equal(json_parse(&root, line.data, line.len, "line", &err), 0);
    assert_int_equal(replay_read(again, &b->config->book, root, &err), 0);
    replay_decide(again, &b->config->book, &d, &same);
    if (!same) fail_msg("%s", line.data);
    for (size_t i = 0; i < d.n; i++) assert_int_equal(d.steps[i].why, b->d.steps[i].why);
    json_decref(root);
    buf_done(&line);
    free(again);
}

static void every_decision_has_reasons_ends_and_can_be_made_again(void **state)
{
    unsigned n_steps = 0, n_asked = 0, n_last = 0;
    for (uint64_t run = 0; run < 3000; run++) {
        uint64_t seed = run;
        buf yaml = {0};
        unsigned n_routes = 1 + (unsigned)draw(&seed, 5);
        for (unsigned i = 0; i < n_routes; i++) put_route(&yaml, &seed, i, n_routes);
        book b;
        book_open(&b, yaml.data);
        for (int request = 0; request < 4; request++) {
            draw_request(&b, &seed);
            b.facts.domains[0] = (domain_fact){0};
            route_view inner = book_view(&b);
            evidence *e = calloc(1, sizeof *e);
            e->inner = &inner;
            e->book = &b.config->book;
            route_view v = evidence_view(e);
            const config_route *r = &b.config->book.routes[0];
            decide_what what = decide_route(&b.config->book, r, &b.facts, &v, &b.d);
            if (what == DECIDE_ASK) {
                static const char *const labels[] = {"iot_x", "jokes", "", NULL};
                n_asked++;
                book_domain(&b, labels[draw(&seed, 4)], (double)draw(&seed, 100) / 100);
                what = decide_route(&b.config->book, r, &b.facts, &v, &b.d);
            }
            check_decision(&b, what, r);
            check_replay(&b, e);
            n_steps += b.d.n > 1;
            n_last += b.d.n && b.d.steps[0].why == DECIDE_LAST;
            free(e);
        }
        book_close(&b);
        buf_done(&yaml);
    }
    assert_true(n_steps > 1000 && n_asked > 500 && n_last > 500); /* the draws reach all of it */
}

/* Printed, not asserted: the machine has other things to do. */
static void a_decision_over_a_dozen_rules_costs(void **state)
{
    enum { N = 100000 };
    buf yaml = {0};
    book b;
    buf_puts(&yaml, "  - name: r\n    domains: t\n    rules:\n");
    for (int i = 0; i < 12; i++)
        buf_printf(&yaml, "      - {language: [fr], wants: [tools], min_bytes: %d, model: a}\n", i);
    buf_puts(&yaml, "      - {matches: 'light|lamp', domain: [on], model: b}\n    fallback: [c, d]\n");
    book_open(&b, yaml.data);
    b.text = "please turn off the light in the kitchen";
    book_domain(&b, "iot_x", 0.9);
    clock_t begun = clock();
    for (int i = 0; i < N; i++) assert_int_equal(book_decide(&b, "r"), DECIDE_DONE);
    double s = (double)(clock() - begun) / CLOCKS_PER_SEC;
    print_message("a route of 13 rules: %.0f decisions/s a core\n", N / s);
    book_close(&b);
    buf_done(&yaml);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_rule_that_holds_answers_and_the_chain_stands_behind),
        cmocka_unit_test(each_condition_holds_and_fails),
        cmocka_unit_test(what_costs_something_is_asked_for_last_and_alone),
        cmocka_unit_test(a_domain_is_asked_for_only_when_a_rule_wants_it),
        cmocka_unit_test(who_cannot_is_passed_over_with_a_reason),
        cmocka_unit_test(when_nobody_can_well_the_best_of_them_is_asked),
        cmocka_unit_test(who_is_over_the_budget_is_never_asked),
        cmocka_unit_test(models_that_are_as_good_come_in_the_route_s_order),
        cmocka_unit_test(a_route_may_lead_to_routes),
        cmocka_unit_test(a_split_keeps_its_shares_and_whoever_is_in_one),
        cmocka_unit_test(an_answer_is_gone_on_with_by_whoever_began_it),
        cmocka_unit_test(headers_hold_nothing_but_visible_letters),
        cmocka_unit_test(every_decision_has_reasons_ends_and_can_be_made_again),
        cmocka_unit_test(a_decision_over_a_dozen_rules_costs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
