/* shoal show MODEL: what a model is: one of a running Shoal, or a file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "json/json.h"
#include "logging/sanitise.h"
#include "cli/commands.h"
#include "command/cli_model.h"
#include "command/cli_process.h"
#include "command/served.h"
#include "inspect/inspect_command.h"

enum { COLUMNS = 79, LEFT = 14 };

static void cmd_show_put_name(const char *name)
{
    printf("%-*s", LEFT, name);
}

static void put_tame(const char *word)
{
    char *copy = strdup(word);
    if (copy) sanitise_text(copy, "");
    fputs(copy ? copy : "?", stdout);
    free(copy);
}

/* Words in as many rows as they need; line ends are not for them to make. */
static void put_words(const json_t *list)
{
    size_t i, at = LEFT;
    json_t *word;
    json_array_foreach((json_t *)(uintptr_t)list, i, word)
    {
        const char *s = json_string_value(word);
        size_t n = s ? strlen(s) : 0;
        if (i > 0 && at + 1 + n > COLUMNS) at = (size_t)printf("\n%*s", LEFT, "") - 1;
        if (at > LEFT) at += (size_t)printf(" ");
        put_tame(s ? s : "");
        at += n;
    }
    putchar('\n');
}

static void cmd_show_put_value(const char *name, const json_t *v)
{
    if (!v || json_is_null(v) || (json_is_string(v) && !*json_string_value(v)) ||
        (json_is_array(v) && json_array_size(v) == 0))
        return;
    cmd_show_put_name(name);
    json_t *one = json_is_string(v) ? json_pack("[O]", v) : NULL;
    if (json_is_array(v) || one)
        put_words(one ? one : v);
    else if (json_is_integer(v))
        printf("%lld\n", (long long)json_integer_value(v));
    else if (json_is_number(v))
        printf("%g\n", json_number_value(v));
    else
        printf("%s\n", json_is_true(v) ? "yes" : "no");
    json_decref(one);
}

/* What holds of a request that does not say it: "temperature 0.7, top_p 0.9". */
static void put_sampling(const json_t *o)
{
    const char *key, *comma = "";
    json_t *v;
    if (json_object_size(o) == 0) return;
    cmd_show_put_name("sampling");
    json_object_foreach((json_t *)(uintptr_t)o, key, v)
    {
        fputs(comma, stdout);
        put_tame(key);
        printf(" %g", json_number_value(v));
        comma = ", ";
    }
    putchar('\n');
}

/* Each field that there is, in the words of shoal models inspect. */
static void put_fields(const json_t *m)
{
    static const char *const fields[][2] = {{"model", "id"},
                                            {"of", "parent"},
                                            {"kind", "kind"},
                                            {"members", "members"},
                                            {"task", "task"},
                                            {"architecture", "architecture"},
                                            {"quantisation", "quantisation"},
                                            {"version", "version"},
                                            {"parameters", "parameters"},
                                            {"context", "context_length"},
                                            {"embedding", "embedding_length"},
                                            {"vocabulary", "vocabulary"},
                                            {"can", "capabilities"},
                                            {"adapters", "adapters"},
                                            {"labels", "labels"},
                                            {"kernels", "isa"},
                                            {"digest", "digest"},
                                            {"state", "state"},
                                            {"replicas", "replicas"},
                                            {"ready", "ready"},
                                            {"loaded by", "loaded_by"}};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        cmd_show_put_value(fields[i][0], json_object_get(m, fields[i][1]));
    double bytes = json_number_value(json_object_get(m, "memory_bytes"));
    if (bytes > 0) printf("%-*s%.0f MB\n", LEFT, "memory", bytes / 1e6);
    put_sampling(json_object_get(m, "sampling"));
}

/* What its tasks are in words of other programs: "completion", "tools". Older servers do not say. */
static void add_capabilities(json_t *m, const served *at, const char *key)
{
    json_t *ask = json_pack("{s:s}", "model", at->model), *answer = NULL;
    char *body = ask ? json_dumps(ask, JSON_COMPACT) : NULL;
    buf text = {0};
    shoal_err why;
    if (body && cli_process_post_json(&at->where, "/api/show", body, key, &text, &why) == 0 &&
        json_parse(&answer, text.data, text.len, "the answer", &why) == 0)
        json_object_set(m, "capabilities", json_object_get(answer, "capabilities"));
    json_decref(answer);
    json_decref(ask);
    buf_done(&text);
    free(body);
}

/* "MODEL:ADAPTER" are models of their own in the list. */
static void add_adapters(json_t *m, const served *at, const char *key)
{
    buf text = {0};
    json_t *answer = NULL, *one, *names = json_array();
    size_t i;
    shoal_err why;
    if (cli_process_get(&at->where, "/v1/models", key, &text, &why) == 0 &&
        json_parse(&answer, text.data, text.len, "the answer", &why) == 0)
        json_array_foreach(json_object_get(answer, "data"), i, one)
        {
            const char *parent = json_string_value(json_object_get(one, "parent"));
            if (parent && strcmp(parent, at->model) == 0)
                json_array_append(names, json_object_get(one, "id"));
        }
    if (names) json_object_set_new(m, "adapters", names);
    json_decref(answer);
    buf_done(&text);
}

static int show_served(const served *at, const char *key, bool json, shoal_err *err)
{
    buf path = {0}, text = {0};
    json_t *m = NULL;
    buf_puts(&path, "/v1/models/");
    percent_encode(&path, at->model, strlen(at->model), "");
    int rc = path.failed ? err_nomem(err) : cli_process_get(&at->where, path.data, key, &text, err);
    if (rc == 0) rc = json_parse(&m, text.data, text.len, "the answer", err);
    if (rc == 0) add_adapters(m, at, key);
    if (rc == 0 && *at->task) add_capabilities(m, at, key);
    if (rc == 0 && json) {
        cli_print_json(m, JSON_COMPACT | JSON_REAL_PRECISION(6));
    } else if (rc == 0) {
        put_fields(m);
        printf("%-*s%s\n", LEFT, "served by", at->url);
    }
    json_decref(m);
    buf_done(&path);
    buf_done(&text);
    return rc;
}

static int cmd_show_run(int argc, char **argv)
{
    const char *server = NULL, *key = getenv("SHOAL_API_KEY"), *manifest = NULL;
    bool json = false, here = false;
    const cli_option options[] = {
        CLI_SERVER(&server),
        CLI_KEY(&key),
        CLI_STRING(0, "manifest", "FILE", "models.json to look names up in", &manifest),
        CLI_FLAG(0, "here", "of models.json or a file, whatever runs", &here),
        CLI_JSON(&json),
        CLI_END,
    };
    cli_args a;
    int rc = cli_parse(&a, &cmd_show, options, 1, 1, argc, argv);
    if (rc != CLI_GO) return rc;
    shoal_err err = {0};
    served at = {0};
    bool file = !server && (here || manifest || served_is_path(a.v[0]));
    rc = file ? 0 : served_find(&at, server, a.v[0], NULL, key, &err);
    if (rc == 0 && *at.model) {
        rc = show_served(&at, key, json, &err);
        return cli_flush(rc == 0 ? CLI_OK : cli_fail(&cmd_show, &err));
    }
    if (rc == 0 && server) rc = served_missing(&at, a.v[0], &err);
    char *path = NULL,
         *sha256 = NULL; /* whether it is there is looked at first: inspect_command says it by itself */
    if (rc == 0)
        rc = served_instead(manifest_resolve(a.v[0], manifest, &path, &sha256, &err), a.v[0],
                            here ? "--here" : NULL, key, &err);
    free(path);
    free(sha256);
    return rc == 0 ? inspect_command(&cmd_show, a.v[0], manifest,
                                     (inspect_wish){.quick = true, .json = json, .digest = true})
                   : cli_fail(&cmd_show, &err);
}

const cli_command cmd_show = {"show", "say what a model is: one that is served, or a file", "MODEL",
                              cmd_show_run, false};
