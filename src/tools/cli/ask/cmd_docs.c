/* shoal docs: collections of documents: add files to them, list them, search in them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "json/json.h"
#include "json/json_put.h"
#include "logging/sanitise.h"
#include "cli/commands.h"
#include "cli/ask/docs_add.h"
#include "command/cli_cluster.h"
#include "fetch/pull_meter.h"
#include "retrieve/plain.h"
#include "retrieve/store.h"

typedef struct given {
    const char *server, *key, *filters, *mode, *rerank;
    docs_add_ask add;
    cli_list meta;
    long long k;
} given;

/* Documents may hold what commands a terminal. */
static void print_tame(const char *text, const char *margin)
{
    char *copy = strdup(text);
    if (!copy) return;
    for (char *line = copy, *next; line; line = next) {
        next = strchr(line, '\n');
        if (next) *next++ = 0;
        sanitise_text(line, "");
        cli_printf("%s%s\n", margin, line);
    }
    free(copy);
}

/* ---- list ------------------------------------------------------------------------------------------- */

static void print_collections(const json_t *answer)
{
    size_t i;
    const json_t *c;
    cli_printf("%-24s %10s %10s %12s  %s\n", "COLLECTION", "DOCUMENTS", "CHUNKS", "BYTES", "MODEL");
    json_array_foreach(json_object_get(answer, "data"), i, c)
        cli_printf("%-24s %10lld %10lld %12lld  %s\n", json_text_of(c, "name"),
                   json_integer_of(c, "documents"), json_integer_of(c, "chunks"), json_integer_of(c, "bytes"),
                   *json_text_of(c, "model") ? json_text_of(c, "model") : "words alone");
}

/* One page; *after names the last collection of it, "" when no page follows. */
static int list_collection_page(docs_place *at, char after[NAME_BYTES_MAX + 1], json_t *all, shoal_err *err)
{
    char path[160];
    buf reply = {0};
    json_t *o = NULL;
    snprintf(path, sizeof path, "/v1/collections%s%s", *after ? "?after=" : "", after);
    int rc = docs_place_call(at, "GET", path, NULL, 0, &reply, err);
    if (rc == 0) rc = json_parse(&o, reply.data, reply.len, "the answer", err);
    if (rc == 0 && json_array_extend(all, json_object_get(o, "data")) != 0) rc = err_nomem(err);
    bool more = rc == 0 && json_is_true(json_object_get(o, "has_more"));
    snprintf(after, NAME_BYTES_MAX + 1, "%s", more ? json_text_of(o, "last_id") : "");
    json_decref(o);
    buf_done(&reply);
    return rc;
}

static int list_collections(docs_place *at, bool json, shoal_err *err)
{
    char after[NAME_BYTES_MAX + 1] = "";
    json_t *o = json_pack("{s:s, s:[]}", "object", "list", "data"), *all = json_object_get(o, "data");
    int rc = o ? 0 : err_nomem(err);
    do
        if (rc == 0) rc = list_collection_page(at, after, all, err);
    while (rc == 0 && *after);
    if (rc == 0 && json) {
        buf out = {0};
        json_put(&out, o);
        cli_printf("%s\n", out.data ? out.data : "");
        buf_done(&out);
    } else if (rc == 0) {
        print_collections(o);
    }
    json_decref(o);
    return rc;
}

/* One page of a collection's documents. */
static int list_page(docs_place *at, const char *collection, long long *after, bool json, bool *first,
                     shoal_err *err)
{
    char path[160];
    buf reply = {0};
    json_t *o = NULL;
    size_t i;
    const json_t *d;
    snprintf(path, sizeof path, "/v1/collections/%.64s/documents?after=%lld", collection, *after);
    int rc = docs_place_call(at, "GET", path, NULL, 0, &reply, err);
    if (rc == 0) rc = json_parse(&o, reply.data, reply.len, "the answer", err);
    if (rc == 0 && *first) cli_printf(json ? "{\"data\":[" : "  CHUNKS        BYTES  TYPE      SOURCE\n");
    json_array_foreach(json_object_get(o, "data"), i, d)
    {
        if (json) {
            buf one = {0};
            json_put(&one, d);
            cli_printf("%s%s", *first ? "" : ",", one.data ? one.data : "");
            buf_done(&one);
        } else {
            cli_printf("%8lld %12lld  %-9s ", json_integer_of(d, "chunks"), json_integer_of(d, "bytes"),
                       json_text_of(d, "type"));
            print_tame(json_text_of(d, "source"), "");
        }
        *first = false;
    }
    *first = false;
    *after = json_is_true(json_object_get(o, "has_more")) ? json_integer_of(o, "last_id") : 0;
    json_decref(o);
    buf_done(&reply);
    return rc;
}

static int run_list(docs_place *at, const given *g, char **v, int n, shoal_err *err)
{
    long long after = 0;
    bool first = true;
    int rc;
    if (n == 0) return list_collections(at, g->add.json, err);
    do rc = list_page(at, v[0], &after, g->add.json, &first, err);
    while (rc == 0 && after > 0);
    if (rc == 0 && g->add.json) cli_printf("]}\n");
    return rc;
}

/* ---- remove ----------------------------------------------------------------------------------------- */

/* COLLECTION alone goes with all that is in it; else the documents that are named. */
static int run_remove(docs_place *at, const given *g, char **v, int n, shoal_err *err)
{
    int rc = 0;
    for (int i = n > 1 ? 1 : 0; rc == 0 && i < n; i++) {
        buf path = {0};
        buf_printf(&path, "/v1/collections/%s%s", v[0], i ? "/documents?source=" : "");
        if (i) percent_encode(&path, v[i], strlen(v[i]), "");
        rc = path.failed ? err_nomem(err) : docs_place_call(at, "DELETE", path.data, NULL, 0, NULL, err);
        if (rc != 0 && i) err_prefix(err, rc, "%s", v[i]);
        buf_done(&path);
    }
    if (rc == 0 && g->add.json)
        cli_printf("{\"removed\":%d}\n", n > 1 ? n - 1 : 1);
    else if (rc == 0)
        cli_printf("%s: removed%s\n", v[0], n > 1 ? " what was named" : " with all documents");
    return rc;
}

/* ---- search ----------------------------------------------------------------------------------------- */

/* A search, or a question with the generator that answers it. */
static int put_ask(buf *out, const given *g, bool question, const char *text, shoal_err *err)
{
    json_t *filters = NULL;
    int rc = g->filters ? json_parse(&filters, g->filters, strlen(g->filters), "--filter", err) : 0;
    buf_printf(out, "{\"%s\":", question ? "question" : "query");
    json_put_string(out, text, strlen(text));
    if (g->k) buf_printf(out, ",\"limit\":%lld", g->k);
    json_put_text(out, "mode", g->mode);
    if (g->rerank) json_put_text(out, "rerank", g->rerank);
    if (question && g->add.model) json_put_text(out, "model", g->add.model);
    if (filters) {
        buf_puts(out, ",\"filters\":");
        json_put(out, filters);
    }
    buf_putc(out, '}');
    json_decref(filters);
    return rc == 0 && out->failed ? err_nomem(err) : rc;
}

static void print_answer(const json_t *answer)
{
    size_t i;
    const json_t *c;
    print_tame(json_text_of(answer, "answer"), "");
    json_array_foreach(json_object_get(answer, "citations"), i, c)
    {
        char head[400];
        snprintf(head, sizeof head, "[%zu] %s:%lld  %s", i + 1, json_text_of(c, "source"),
                 json_integer_of(c, "line"), json_text_of(c, "title"));
        print_tame(head, "  ");
    }
}

static void print_results(const json_t *answer)
{
    size_t i;
    const json_t *r, *list = json_object_get(answer, "results");
    if (*json_text_of(answer, "degraded")) cli_say("shoal docs: %s\n", json_text_of(answer, "degraded"));
    if (json_array_size(list) == 0) cli_printf("nothing was found\n");
    json_array_foreach(list, i, r)
    {
        char head[400];
        snprintf(head, sizeof head, "%zu. %s:%lld  %s%s(%.3f)", i + 1, json_text_of(r, "source"),
                 json_integer_of(r, "line"), json_text_of(r, "title"), *json_text_of(r, "title") ? "  " : "",
                 json_number_value(json_object_get(r, "score")));
        print_tame(head, "");
        print_tame(json_text_of(r, "text"), "   ");
    }
}

static int run_search(docs_place *at, const given *g, bool question, char **v, shoal_err *err)
{
    buf body = {0}, reply = {0};
    json_t *o = NULL;
    char path[128];
    snprintf(path, sizeof path, "/v1/collections/%.64s/%s", v[0], question ? "answer" : "search");
    int rc = put_ask(&body, g, question, v[1], err);
    if (rc == 0) rc = docs_place_call(at, "POST", path, body.data, body.len, &reply, err);
    if (rc == 0) rc = json_parse(&o, reply.data, reply.len, "the answer", err);
    if (rc == 0 && g->add.json)
        cli_printf("%s\n", reply.data);
    else if (rc == 0)
        (question ? print_answer : print_results)(o);
    json_decref(o);
    buf_done(&reply);
    buf_done(&body);
    return rc;
}

/* ---- the command ------------------------------------------------------------------------------------ */

static const cli_verb VERBS[] = {
    {"add", "COLLECTION PATH...", "add files and folders to a collection", 2, -1},
    {"list", "[COLLECTION]", "list collections, or the documents of one", 0, 1},
    {"remove", "COLLECTION [SOURCE...]", "remove documents, or the collection", 1, -1},
    {"search", "COLLECTION TEXT", "find passages by meaning and words", 2, 2},
    {"ask", "COLLECTION QUESTION", "answer with a sentence of a document", 2, 2},
    CLI_VERB_END};

static int cmd_docs_check(const given *g, const cli_args *a, shoal_err *err)
{
    plain_type t;
    if (a->n > 0 && !name_is_fine(a->v[0], strlen(a->v[0])))
        return err_set(err, SHOAL_EINVALID, "'%.80s' is no collection: a name has 1 to %d bytes, " NAME_RULE,
                       a->v[0], NAME_BYTES_MAX);
    if (g->add.type && !plain_type_parse(g->add.type, &t))
        return err_set(err, SHOAL_EINVALID, "--type is text, markdown, html or csv, not '%.40s'",
                       g->add.type);
    return 0;
}

static int run_verb(given *g, const cli_verb *verb, const cli_args *a)
{
    shoal_err err = {0};
    docs_place at;
    int rc = cmd_docs_check(g, a, &err);
    if (rc == 0) rc = docs_place_open(&at, g->server, g->key, &err);
    if (rc != 0) return cli_fail(&cmd_docs, &err);
    char **v = a->v;
    int n = a->n;
    if (strcmp(verb->name, "add") == 0) {
        g->add.collection = v[0];
        g->add.meta = &g->meta;
        rc = docs_add(&cmd_docs, &at, &g->add, v + 1, n - 1);
        docs_place_close(&at);
        return rc;
    }
    rc = strcmp(verb->name, "list") == 0     ? run_list(&at, g, v, n, &err)
         : strcmp(verb->name, "remove") == 0 ? run_remove(&at, g, v, n, &err)
                                             : run_search(&at, g, strcmp(verb->name, "ask") == 0, v, &err);
    docs_place_close(&at);
    return rc == 0 ? CLI_OK : cli_fail(&cmd_docs, &err);
}

static int cmd_docs_run(int argc, char **argv)
{
    given g = {.key = getenv("SHOAL_API_KEY"), .mode = "hybrid"};
    const cli_option options[] = {
        CLI_STRING('s', "server", "URL",
                   "ADDRESS:PORT, http[s]://ADDRESS:PORT or unix:PATH [SHOAL_HOST, else shoal.yaml's, else "
                   "one of its own]",
                   &g.server),
        CLI_CA,
        CLI_KEY(&g.key),
        CLI_INT('k', "limit", "N", 1, 1000, "search: results [5]; ask: passages [4]", &g.k),
        CLI_STRING(0, "filter", "JSON",
                   "search, ask: documents whose metadata are so: {\"room\":\"kitchen\"}", &g.filters),
        CLI_STRING(0, "mode", "MODE", "search, ask: hybrid, vector or text [hybrid]", &g.mode),
        CLI_STRING(0, "rerank", "MODEL", "search, ask: a cross-encoder that orders the best", &g.rerank),
        CLI_STRING('m', "model", "MODEL",
                   "add: embeds a new collection, or none; ask: answers [the only one that can]",
                   &g.add.model),
        CLI_INT(0, "chunk", "BYTES", 64, 16384, "add: longest chunk of a new collection [as the model wants]",
                &g.add.chunk_bytes),
        CLI_STRING(0, "type", "TYPE", "add: text, markdown, html or csv [by each file's ending]",
                   &g.add.type),
        CLI_FLAG(0, "shared", "add: every API key may search a new collection", &g.add.shared),
        CLI_LIST(0, "meta", "KEY=VALUE", "add: metadata of all documents", &g.meta),
        CLI_FLAG('q', "quiet", "add: do not say how far it is", &g.add.quiet),
        CLI_JSON(&g.add.json),
        CLI_END,
    };
    cli_args a;
    const cli_verb *verb;
    int rc = cli_parse_verb(&a, &verb, &cmd_docs, options, VERBS, argc, argv);
    return rc == CLI_GO ? cli_flush(run_verb(&g, verb, &a)) : rc;
}

const cli_command cmd_docs = {"docs", "add documents to a collection, and search in it",
                              "add COLLECTION PATH... | list [COLLECTION] | remove COLLECTION [SOURCE...] | "
                              "search COLLECTION TEXT | ask COLLECTION QUESTION",
                              cmd_docs_run, false};
