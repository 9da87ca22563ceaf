/* The description of the interface against what it describes: the table of endpoints, the docs, and the
 * fields that the handlers really look for in a request's body.
 *
 * For the last, this program has jansson's json_loadb and json_object_get of its own in front of the
 * library's: they note which keys are asked of the object that a request's body is. */
#define _GNU_SOURCE /* RTLD_NEXT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "asset/asset.h"
#include "json/json.h"
#include "logging/log.h"
#include "config/config_schema.h"
#include "endpoints/openapi.h"
#include "endpoints/table.h"
#include "gateway/gateway.h"
#include "tasks/task.h"

/* ---- what is asked of a body --------------------------------------------------------------------- */

enum { KEYS_MAX = 128 };

static bool watching;
static const json_t *sent, *watched;
static char asked[KEYS_MAX][48];
static size_t n_asked;

/* The first object that says what was sent is the body. */
static void recognise(const json_t *o)
{
    watching = false; /* json_equal looks, too */
    if (!watched && json_equal(o, sent)) watched = o;
    watching = true;
}

/* Its memory may become another object's. */
void json_delete(json_t *v)
{
    void (*real)(json_t *);
    *(void **)&real = dlsym(RTLD_NEXT, "json_delete");
    static const json_t gone;
    if (v && v == watched) watched = &gone;
    real(v);
}

static bool is_asked(const char *key)
{
    for (size_t i = 0; i < n_asked; i++)
        if (strcmp(asked[i], key) == 0) return true;
    return false;
}

json_t *json_object_get(const json_t *o, const char *key)
{
    json_t *(*real)(const json_t *, const char *);
    *(void **)&real = dlsym(RTLD_NEXT, "json_object_get");
    if (watching && o) recognise(o);
    if (watching && o && o == watched && !is_asked(key) && n_asked < KEYS_MAX)
        snprintf(asked[n_asked++], sizeof asked[0], "%s", key);
    return real(o, key);
}

/* ---- a server without workers -------------------------------------------------------------------- */

typedef struct house {
    uv_loop_t loop;
    registry *g;
    gateway_config config;
    gateway *gw;
    source *members;
    char state[64];
} house;

static void open_house(house *h)
{
    shoal_err err = {0};
    memset(h, 0, sizeof *h);
    snprintf(h->state, sizeof h->state, "/tmp/shoal-openapi-XXXXXX");
    assert_non_null(mkdtemp(h->state));
    setenv("SHOAL_STATE", h->state, 1);
    h->config.listen = "127.0.0.1:0";
    assert_int_equal(uv_loop_init(&h->loop), 0);
    assert_int_equal(registry_new(&h->g, &h->loop, &err), 0);
    assert_int_equal(source_open(&h->members, h->g, "test", &err), 0);
    source_synced(h->members);
    if (gateway_new(&h->gw, &h->loop, h->g, &h->config, &ENDPOINTS, &err) != 0) fail_msg("%s", err.message);
}

static void close_house(house *h)
{
    gateway_free(h->gw);
    registry_free(h->g);
    uv_run(&h->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&h->loop), 0);
    rmdir(h->state);
}

/* The whole answer, head and body; the caller frees it. */
static char *ask(house *h, const char *method, const char *path, const char *body)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons((uint16_t)gateway_port(h->gw)),
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    buf text = {0}, answer = {0};
    buf_printf(&text,
               "%s %s HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: "
               "application/json\r\ncontent-length: %zu\r\n\r\n%s",
               method, path, strlen(body), body);
    assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
    assert_int_equal(send(fd, text.data, text.len, 0), text.len);
    buf_done(&text);
    for (char some[4096];;) {
        uv_run(&h->loop, UV_RUN_NOWAIT);
        ssize_t n = recv(fd, some, sizeof some, MSG_DONTWAIT);
        if (n == 0) break;
        if (n > 0) buf_append(&answer, some, (size_t)n);
        if (n < 0) usleep(200);
    }
    close(fd);
    buf_putc(&answer, '\0');
    return answer.data;
}

/* ---- the document -------------------------------------------------------------------------------- */

static json_t *document(void)
{
    buf out = {0};
    shoal_err err;
    json_t *doc = NULL;
    const char *missing;
    if (openapi_put(&out, &ENDPOINTS, true, &missing, &err) != 0) fail_msg("%s", err.message);
    if (missing)
        fail_msg("the table of endpoints names '%s', which assets/docs/components.json lacks", missing);
    if (json_parse(&doc, out.data, out.len, "the document", &err) != 0) fail_msg("%s", err.message);
    buf_done(&out);
    return doc;
}

static void endpoints_say_what_they_are(void **state)
{
    json_t *doc = document(), *tags = json_object_get(doc, "tags"), *tag;
    for (size_t i = 0; i < ENDPOINTS.n; i++) {
        const endpoint *at = &ENDPOINTS.rows[i];
        bool known = false;
        size_t k;
        if (!at->summary || !at->tag)
            fail_msg("%s %s says no tag or summary in its row", at->method, at->path);
        json_array_foreach(tags, k, tag) known |=
            strcmp(json_string_value(json_object_get(tag, "name")), at->tag) == 0;
        if (!known) fail_msg("%s %s: components.json has no tag '%s'", at->method, at->path, at->tag);
    }
    json_decref(doc);
}

static bool is_used(const json_t *v, const char *ref)
{
    const char *key;
    json_t *part;
    size_t i;
    if (json_is_string(v)) return strcmp(json_string_value(v), ref) == 0;
    json_array_foreach((json_t *)v, i, part) if (is_used(part, ref)) return true;
    json_object_foreach((json_t *)v, key, part) if (is_used(part, ref)) return true;
    return false;
}

/* tasks/task.h names endpoints that are lower than this table can be. */
static void endpoints_over_models_are_endpoints(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_ASKS; i++) {
        const char *allow;
        const endpoint *e = endpoint_find(&ENDPOINTS, "POST", TASK_ENDPOINTS[i].path, &allow);
        assert_non_null(e);
        assert_string_equal(e->name, TASK_ENDPOINTS[i].name);
        assert_ptr_equal(task_endpoint_named(e->name), &TASK_ENDPOINTS[i]);
    }
}

static void document_has_no_schema_that_nobody_names(void **state)
{
    json_t *doc = document(), *v;
    const char *name;
    json_object_foreach(json_object_get(json_object_get(doc, "components"), "schemas"), name, v)
    {
        char ref[96];
        snprintf(ref, sizeof ref, "#/components/schemas/%s", name);
        bool of_row = strcmp(name, "WebSocketMessage") == 0; /* of /v1/ws, whose bodies are messages */
        for (size_t i = 0; i < ENDPOINTS.n; i++)
            of_row |= ENDPOINTS.rows[i].request && strcmp(ENDPOINTS.rows[i].request, name) == 0;
        if (!of_row && !is_used(doc, ref)) fail_msg("components.json: nothing uses the schema '%s'", name);
    }
    json_decref(doc);
}

static void paths_name_their_parameters(void **state)
{
    static const char *const CASES[][2] = {
        {"/", "/"},
        {"/v1/models", "/v1/models"},
        {"/v1/models/", "/v1/models/{model}"},
        {"/v1/vector_stores/*/files/*", "/v1/vector_stores/{vector_store}/files/{file}"},
        {"/v1/files/*/content", "/v1/files/{file}/content"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        buf out = {0};
        openapi_put_path(&out, CASES[i][0]);
        buf_putc(&out, '\0');
        assert_string_equal(out.data, CASES[i][1]);
        buf_done(&out);
    }
}

static void document_is_served_and_kept(void **state)
{
    house h;
    open_house(&h);
    char *first = ask(&h, "GET", "/openapi.json", ""), *again = ask(&h, "GET", "/openapi.json", "");
    const char *body = strstr(first, "\r\n\r\n");
    assert_non_null(body);
    assert_string_equal(body, strstr(again, "\r\n\r\n"));
    assert_non_null(strstr(first, "{\"openapi\":\"3.1.0\","));
    assert_non_null(strstr(first, "etag: W/\""));
    free(first);
    free(again);
    close_house(&h);
}

/* ---- docs/http.md -------------------------------------------------------------------------------- */

static char *read_docs(void)
{
    char path[512];
    snprintf(path, sizeof path, "%s/docs/http.md", SHOAL_SOURCE_DIR);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    char *text = calloc(1, 1 << 20);
    assert_non_null(text);
    size_t n = fread(text, 1, (1 << 20) - 1, f);
    assert_true(n > 0);
    fclose(f);
    return text;
}

/* "| `GET /healthz` | server | Report that the gateway is running |" */
static void put_listing(buf *out, const endpoint *at)
{
    buf_printf(out, "| `%s ", at->method);
    openapi_put_path(out, at->path);
    buf_printf(out, "` | %s | %s |\n", at->tag, at->summary);
}

static void docs_list_every_endpoint_and_no_other(void **state)
{
    char *docs = read_docs(), *list = strstr(docs, "\n## Every endpoint\n");
    buf whole = {0};
    bool fine = true;
    assert_non_null(list);
    list = strstr(list, "\n|---|---|---|\n");
    assert_non_null(list);
    list += strlen("\n|---|---|---|\n");
    char *end = strstr(list, "\n\n");
    assert_non_null(end);
    end[1] = '\0';
    for (size_t i = 0; i < ENDPOINTS.n; i++) {
        buf line = {0};
        put_listing(&line, &ENDPOINTS.rows[i]);
        buf_putc(&line, '\0');
        bool listed = strstr(list, line.data) != NULL;
        if (!listed) print_error("docs/http.md, \"Every endpoint\", lacks this line:\n%s", line.data);
        fine &= listed;
        buf_puts(&whole, line.data);
        buf_done(&line);
    }
    buf_putc(&whole, '\0');
    for (char *line = strtok(list, "\n"); line; line = strtok(NULL, "\n")) {
        bool known = strstr(whole.data, line) != NULL;
        if (!known) print_error("docs/http.md, \"Every endpoint\", lists what is none:\n%s\n", line);
        fine &= known;
    }
    buf_done(&whole);
    free(docs);
    assert_true(fine);
}

/* ---- fields -------------------------------------------------------------------------------------- */

/* The path with something in the places of its parameters. */
static void fill_path(char *out, size_t cap, const char *pattern)
{
    size_t n = 0;
    for (; *pattern && n + 2 < cap; pattern++) out[n++] = *pattern == '*' ? 'x' : *pattern;
    out[n] = '\0';
}

static bool has_text(const json_t *list, const char *text)
{
    size_t i;
    json_t *v;
    json_array_foreach((json_t *)list, i, v) if (strcmp(json_string_value(v), text) == 0) return true;
    return false;
}

/* Send each example of the schema, and note what is asked of it. */
static void ask_examples(house *h, const endpoint *at, const json_t *schema)
{
    char path[256];
    size_t i;
    json_t *example;
    fill_path(path, sizeof path, at->path);
    n_asked = 0;
    json_array_foreach(json_object_get(schema, "examples"), i, example)
    {
        buf body = {0};
        json_put(&body, example);
        buf_putc(&body, '\0');
        sent = example;
        watched = NULL;
        watching = true;
        char *answer = ask(h, at->method, path, body.data);
        watching = false;
        free(answer);
        buf_done(&body);
    }
}

/* What is read only where a model, a collection or a pipeline is there, or of a copy of the body, or not at
 * all and yet no unknown field. */
static const struct {
    const char *schema, *fields;
} LATER[] = {
    {"ProcessRequest", " input text context confirm session user metadata audio image csv "},
    {"DocumentsRequest", " source filename name text content type metadata attributes file_id "},
    {"VectorStoreFileRequest", " source filename name text content type metadata attributes "},
    {"VectorStoreSearchRequest", " ranking_options "},
    {"AnswerRequest", " form model max_tokens "},
    {"KserveInferRequest", " id parameters inputs outputs "},
    {"KserveLoadRequest", " parameters "},
    {"LlamaTemplateRequest", " messages tools chat_template chat_template_kwargs "},
    {"UnloadRequest", " model drain force stream "}, /* where there is somebody to unload it */
    {"LlamaTokenizeRequest",
     " content add_special parse_special with_pieces tools chat_template chat_template_kwargs "},
    {"LlamaDetokenizeRequest", " tokens "},
    {"LlamaTemplateRequest", " messages tools chat_template chat_template_kwargs "},
    {"ChatCountRequest", " messages tools tool_choice reasoning_effort chat_template chat_template_kwargs "},
    {"ResponseRequest", " model parallel_tool_calls temperature top_p seed "},
};

static bool is_read_later(const char *schema, const char *field)
{
    char word[64];
    snprintf(word, sizeof word, " %s ", field);
    for (size_t i = 0; i < sizeof LATER / sizeof *LATER; i++)
        if (strcmp(LATER[i].schema, schema) == 0) return strstr(LATER[i].fields, word);
    return false;
}

/* Every field that a handler looks for is described or refused by name, and what is described is looked for.
 */
static bool fields_agree(house *h, const endpoint *at, const json_t *schema)
{
    const json_t *fields = json_object_get(schema, "properties"),
                 *refused = json_object_get(schema, "x-refused");
    const char *name;
    json_t *v;
    bool fine = true;
    ask_examples(h, at, schema);
    for (size_t i = 0; i < n_asked; i++) {
        if (json_object_get(fields, asked[i]) || has_text(refused, asked[i])) continue;
        print_error("%s %s reads \"%s\", which %s does not describe\n", at->method, at->path, asked[i],
                    at->request);
        fine = false;
    }
    json_object_foreach((json_t *)fields, name, v)
    {
        if (is_asked(name) || is_read_later(at->request, name)) continue;
        print_error("%s describes \"%s\", which %s %s does not read\n", at->request, name, at->method,
                    at->path);
        fine = false;
    }
    return fine;
}

/* What may be loaded is read by a table of rows, as shoal.yaml is. */
static void load_takes_the_rows_of_its_record(void **state)
{
    json_t *doc = document(), *schemas = json_object_get(json_object_get(doc, "components"), "schemas");
    json_t *fields = json_object_get(json_object_get(schemas, "LoadRequest"), "properties");
    for (size_t i = 0; i < config_load_request_schema.n; i++)
        if (!json_object_get(fields, config_load_request_schema.fields[i].key))
            fail_msg("LoadRequest does not describe \"%s\"", config_load_request_schema.fields[i].key);
    assert_int_equal(json_object_size(fields), config_load_request_schema.n);
    json_decref(doc);
}

static void schemas_describe_the_fields_that_are_read(void **state)
{
    house h;
    json_t *doc = document(), *schemas = json_object_get(json_object_get(doc, "components"), "schemas");
    bool fine = true;
    size_t n = 0;
    open_house(&h);
    for (size_t i = 0; i < ENDPOINTS.n; i++) {
        const endpoint *at = &ENDPOINTS.rows[i];
        if (strcmp(at->method, "POST") != 0 || !at->request) continue;
        const json_t *schema = json_object_get(schemas, at->request);
        if (!json_object_get(schema, "properties") || strcmp(at->request, "LoadRequest") == 0) continue;
        fine &= fields_agree(&h, at, schema);
        n++;
    }
    close_house(&h);
    json_decref(doc);
    assert_true(n > 20);
    assert_true(fine);
}

int main(void)
{
    log_setup(LOG_OFF, false);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(endpoints_say_what_they_are),
        cmocka_unit_test(endpoints_over_models_are_endpoints),
        cmocka_unit_test(document_has_no_schema_that_nobody_names),
        cmocka_unit_test(paths_name_their_parameters),
        cmocka_unit_test(document_is_served_and_kept),
        cmocka_unit_test(docs_list_every_endpoint_and_no_other),
        cmocka_unit_test(load_takes_the_rows_of_its_record),
        cmocka_unit_test(schemas_describe_the_fields_that_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
