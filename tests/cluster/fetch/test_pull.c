/* References, names from servers, challenges, and what is chosen from a hub's lists; who is asked
 * again, on loopback. */
#include <arpa/inet.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "json/json.h"
#include "fetch/pull_file.h"
#include "fetch/pull_http.h"
#include "fetch/pull_plan.h"
#include "fetch/pull_manifest.h"
#include "fetch/pull_text.h"

static arena *mem;

static int begin(void **state)
{
    (void)state;
    mem = arena_new(0);
    return mem ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    arena_free(mem);
    return 0;
}

/* ---- references ---------------------------------------------------------------------------------------- */

static const char *or_dash(const char *s)
{
    return s ? s : "-";
}

/* "kind host repo name tag digest file url", or the sentence that refuses it. */
static void reads(const char *text, const char *want)
{
    pull_ref r;
    shoal_err err = {0};
    char got[1024];
    int rc = pull_ref_parse(&r, mem, text, &err);
    if (rc == 0)
        snprintf(got, sizeof got, "%d %s %s %s %s %s %s %s", r.kind, or_dash(r.host), or_dash(r.repo),
                 or_dash(r.name), or_dash(r.tag), or_dash(r.digest), or_dash(r.file), or_dash(r.url));
    if (rc == 0 ? strcmp(got, want) != 0 : rc != SHOAL_EINVALID || !strstr(err.message, want))
        fail_msg("%s: %d \"%s\", not \"%s\"", text, rc, rc ? err.message : got, want);
}

static void references_are_read(void **state)
{
    (void)state;
    reads("hf:Qwen/Qwen3-0.6B-GGUF:Q8_0", "0 - Qwen/Qwen3-0.6B-GGUF Qwen3-0.6B-GGUF main - Q8_0 -");
    reads("hf:gpt2", "0 - gpt2 gpt2 main - - -");
    reads("hf:a/b@refs/pr/1:x/y.gguf", "0 - a/b b refs/pr/1 - x/y.gguf -");
    reads("https://huggingface.co/a/b", "0 - a/b b main - - -");
    reads("https://huggingface.co/a/b/", "0 - a/b b main - - -");
    reads("https://huggingface.co/a/b/tree/v1", "0 - a/b b v1 - - -");
    reads("https://hf.co/a/b/blob/main/x.gguf?download=true", "0 - a/b b main - x.gguf -");
    reads("ollama:qwen3", "1 - library/qwen3 qwen3 latest - - -");
    reads("ollama:me/m:1b", "1 - me/m m 1b - - -");
    reads("ollama:localhost:5000/me/m", "1 localhost:5000 me/m m latest - - -");
    reads("oci://ghcr.io/a/b/c:v1.2", "2 ghcr.io a/b/c c v1.2 - - -");
    reads("oci://[::1]:5000/a", "2 [::1]:5000 a a latest - - -");
    reads("oci://h/a@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
          "2 h a a latest sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef - -");
    reads("https://example.com/x/My%20Model.gguf?a=1#b",
          "3 - - My Model.gguf - - - https://example.com/x/My%20Model.gguf?a=1#b");
}

static void references_that_are_none_say_what_to_type(void **state)
{
    (void)state;
    reads("qwen3", "try: hf:ORG/NAME");
    reads("", "try: hf:ORG/NAME");
    reads("hf:", "names no repository");
    reads("hf:a/b/c", "names no repository");
    reads("hf:a/../c", "names no repository");
    reads("hf:a//c", "names no repository");
    reads("hf:a/b@", "is no revision");
    reads("hf:a/b:", "can be no file");
    reads("hf:a/b:../x", "can be no file");
    reads("hf:-a/b", "names no repository");
    reads("ollama:a b", "names no repository");
    reads("oci://host", "try: oci://HOST");
    reads("oci://user@host/x", "names no registry");
    reads("oci://h/a@sha256:12", "is no digest");
    reads("https://example.com/", "does not end in a file");
    reads("https://example.com/a%2Fb", "does not end in a file");
    reads("https://example.com/%00", "does not end in a file");
}

static void names_from_servers_stay_inside(void **state)
{
    (void)state;
    static const char *const good[] = {"a",       "model.gguf",    "1_Pooling/config.json",
                                       "a/b/c/d", "\xC3\xA4.gguf", "a b"};
    static const char *const bad[] = {"",       "/a",          "a/",          "a//b",       ".",
                                      "..",     "../a",        "a/../b",      "a/.b",       "a\\b",
                                      "a\nb",   "a\x7F",       "a\xC2\x9B",   "a/b/c/d/e",  "\xFF",
                                      "x.part", "x.PART.json", "models.json", "Models.JSON"};
    char longest[260];
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        if (!pull_path_ok(good[i])) fail_msg("\"%s\" is refused", good[i]);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (pull_path_ok(bad[i])) fail_msg("\"%s\" is taken", bad[i]);
    memset(longest, 'a', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    assert_false(pull_path_ok(longest));
    assert_true(pull_has_word("Qwen3-0.6B-Q4_K_M.gguf", "q4_k_m") && pull_has_word("x.Q8_0.gguf", "Q8_0"));
    assert_false(pull_has_word("Qwen3-Q4_K_M.gguf", "q4_k") || pull_has_word("xQ8_0.gguf", "Q8_0") ||
                 pull_has_word("a", ""));
}

/* ---- addresses ----------------------------------------------------------------------------------------- */

static void addresses_are_https_or_this_machine(void **state)
{
    (void)state;
    static const char *const good[] = {"https://a/b", "http://localhost:1/", "http://127.0.0.1/x",
                                       "http://[::1]:80/"};
    static const char *const bad[] = {
        "http://a/b",          "http://127.evil.example/", "http://localhost.evil.example/",
        "ftp://127.0.0.1/x",   "file:///etc/passwd",       "https://u:p@a/b",
        "http://127.0.0.1@a/", "http://[::1].a/",          "nonsense"};
    shoal_err err;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        if (pull_url_check(good[i], &err) != 0) fail_msg("%s: %s", good[i], err.message);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (pull_url_check(bad[i], &err) == 0) fail_msg("%s is taken", bad[i]);
    assert_true(pull_url_same_origin("https://a/x", "https://A:443/y"));
    assert_false(pull_url_same_origin("https://a/x", "https://a:444/x") ||
                 pull_url_same_origin("https://a/", "http://a/") ||
                 pull_url_same_origin("https://a/", "https://a.b/"));
}

static void word_of(const char *challenge, const char *word, const char *want)
{
    buf got = {0};
    bool ok = pull_challenge_word(challenge, word, &got);
    if (ok != (want != NULL) || (ok && strcmp(got.data, want) != 0))
        fail_msg("%s: %s", challenge, ok ? got.data : "none");
    buf_done(&got);
}

static void challenges_are_read(void **state)
{
    (void)state;
    static const char usual[] =
        "Bearer realm=\"https://a/t?x=1\",service=\"r, s\" , scope=repository:a/b:pull";
    word_of(usual, "realm", "https://a/t?x=1");
    word_of(usual, "service", "r, s");
    word_of(usual, "SCOPE", "repository:a/b:pull");
    word_of(usual, "error", NULL);
    word_of("Basic realm=\"a\"", "realm", NULL);
    word_of("Bearer realm=\"a", "realm", NULL);
    word_of("Bearer realm", "realm", NULL);
    word_of("Bearer ", "realm", NULL);
    word_of("", "realm", NULL);
}

static void waits_grow_and_end(void **state)
{
    (void)state;
    assert_int_equal(pull_wait_ms(0, 0), 500);
    assert_int_equal(pull_wait_ms(3, 0), 4000);
    assert_int_equal(pull_wait_ms(99, 0), 16000);
    assert_int_equal(pull_wait_ms(0, 7), 7000);
    assert_int_equal(pull_wait_ms(0, 86400), 60000);
    assert_true(pull_status_may_pass(429) && pull_status_may_pass(503) && !pull_status_may_pass(404));
}

/* ---- who is asked again -------------------------------------------------------------------------------- */

/* A socket with a port of its own, on which nobody listens; url: http://127.0.0.1:PORT/. */
static int bind_somewhere(char url[64])
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(fd >= 0 && bind(fd, (struct sockaddr *)&a, sizeof a) == 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &n), 0);
    snprintf(url, 64, "http://127.0.0.1:%d/", ntohs(a.sin_port));
    return fd;
}

static int listen_somewhere(char url[64])
{
    int fd = bind_somewhere(url);
    assert_int_equal(listen(fd, 4), 0);
    return fd;
}

static void *answer_once(void *arg)
{
    static const char reply[] = "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n";
    char request[4096];
    int fd = accept(*(int *)arg, NULL, NULL);
    if (fd >= 0 && read(fd, request, sizeof request) > 0 && write(fd, reply, sizeof reply - 1) < 0)
        perror("write");
    close(fd);
    return NULL;
}

static void where_nobody_listens_there_are_few_tries(void **state)
{
    (void)state;
    char url[64], closed[64];
    pull_client *c;
    pull_reply reply;
    shoal_err err;
    pthread_t server;
    int fd = listen_somewhere(url);
    int held = bind_somewhere(closed); /* so that nobody else gets its port */
    assert_int_equal(pull_client_new(&c, &(pull_client_options){.tries = 6}, &err), 0);
    assert_int_equal(pull_client_tries(c), 6);
    assert_int_equal(pull_http_get(c, &(pull_request){.url = closed}, &reply, &err), SHOAL_EUNAVAILABLE);
    assert_non_null(strstr(err.message, "nobody answers there"));
    assert_int_equal(pull_client_tries(c), 2);
    assert_int_equal(pthread_create(&server, NULL, answer_once, &fd), 0);
    assert_int_equal(pull_http_get(c, &(pull_request){.url = url}, &reply, &err), 0);
    assert_int_equal(reply.status, 204);
    pthread_join(server, NULL);
    close(fd);
    close(held);
    assert_int_equal(pull_client_tries(c), 6); /* it was there: it may come back */
    assert_int_equal(pull_http_get(c, &(pull_request){.url = url}, &reply, &err), SHOAL_EUNAVAILABLE);
    assert_int_equal(pull_client_tries(c), 6);
    pull_client_free(c);
}

/* ---- choosing ------------------------------------------------------------------------------------------ */

/* What is chosen from files ("a b c", ten bytes each), as "folder: a b", or the sentence that refuses. */
static void chooses(const char *files, const char *ref_text, const char *want)
{
    pull_ref ref;
    pull_plan p = {0};
    pull_list l = {.mem = mem};
    shoal_err err = {0};
    buf list = {0}, got = {0};
    json_t *page = NULL;
    char *copy = strdup(files);
    buf_putc(&list, '[');
    for (char *f = strtok(copy, " "); f; f = strtok(NULL, " "))
        buf_printf(&list, "%s{\"type\":\"file\",\"size\":10,\"path\":\"%s\"}", list.len > 1 ? "," : "", f);
    buf_putc(&list, ']');
    assert_int_equal(json_parse(&page, list.data, list.len, "page", &err), 0);
    assert_int_equal(pull_list_add_hf(&l, page, &err), 0);
    assert_int_equal(pull_ref_parse(&ref, mem, ref_text, &err), 0);
    int rc = pull_plan_hf(&p, mem, &l, &ref, &err);
    buf_printf(&got, "%s:", rc == 0 ? or_dash(p.folder) : err.message);
    for (size_t i = 0; rc == 0 && i < p.n; i++) buf_printf(&got, " %s", p.items[i].path);
    if (!strstr(got.data, want)) fail_msg("%s of %s: \"%s\", not \"%s\"", ref_text, files, got.data, want);
    json_decref(page);
    buf_done(&list);
    buf_done(&got);
    free(copy);
}

static void files_of_a_model_are_chosen(void **state)
{
    (void)state;
    chooses("config.json model.safetensors model.fp16.safetensors tf_model.h5 vocab.txt", "hf:o/n",
            "n: config.json model.safetensors vocab.txt");
    chooses(
        "model-00001-of-00002.safetensors model-00002-of-00002.safetensors model.safetensors.index.json "
        "model-00001-of-00003.safetensors",
        "hf:o/n",
        "n: model-00001-of-00002.safetensors model-00002-of-00002.safetensors model.safetensors.index.json");
    chooses("adapter_config.json adapter_model.safetensors", "hf:o/n",
            "n: adapter_config.json adapter_model.safetensors");
    chooses("odd.safetensors config.json", "hf:o/n", "n: odd.safetensors config.json");
    chooses("odd.safetensors even.safetensors", "hf:o/n", "2 safetensors of unusual names");
    chooses("x-Q8_0.gguf imatrix.gguf mmproj-x.gguf", "hf:o/n", "-: x-Q8_0.gguf");
    chooses("model.safetensors x-Q8_0.gguf", "hf:o/n", "n: model.safetensors");
    chooses("model.safetensors x-Q8_0.gguf", "hf:o/n:q8_0", "-: x-Q8_0.gguf");
    chooses("d/x-Q4_0-00001-of-00002.gguf d/x-Q4_0-00002-of-00002.gguf x-Q8_0.gguf", "hf:o/n:Q4_0",
            "n: d/x-Q4_0-00001-of-00002.gguf d/x-Q4_0-00002-of-00002.gguf");
    chooses("a-Q8_0.gguf b-Q8_0.gguf", "hf:o/n:Q8_0", "has 2 GGUF models");
    chooses("sub/x.gguf", "hf:o/n:sub/x.gguf", "-: x.gguf");
    chooses("sub/models.json", "hf:o/n:sub/models.json", "is no name for a file here");
    chooses("model.bin", "hf:o/n", "PyTorch files alone");
    chooses("README.md config.json model.bin tokenizer.json vocabulary.txt", "hf:o/n",
            "n: config.json model.bin tokenizer.json");
    chooses("config.json model.bin", "hf:o/n", "PyTorch files alone");
    chooses("", "hf:o/n", "neither safetensors nor GGUF");
}

static void manifests_are_read(void **state)
{
    (void)state;
#define D "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
    static const struct {
        const char *json, *want;
    } cases[] = {
        {"{\"layers\":[{\"mediaType\":\"application/vnd.ollama.image.model\",\"digest\":\"" D
         "\",\"size\":5}]}",
         "n-t.gguf"},
        {"{\"layers\":[{\"mediaType\":\"a\",\"digest\":\"" D
         "\",\"size\":5,\"annotations\":{\"org.opencontainers.image."
         "title\":\"x.bin\"}}]}",
         "x.bin"},
        {"{\"manifests\":[{\"digest\":\"" D "\"}]}", D},
        {"{\"manifests\":[{\"digest\":\"md5:1\"}]}", "lists no manifest"},
        {"{\"layers\":[{\"mediaType\":\"gguf\",\"digest\":\"sha512:00\",\"size\":5}]}", "no sha256 digest"},
        {"{\"layers\":[{\"mediaType\":\"gguf\",\"digest\":\"" D "\"}]}", "no size"},
        {"{\"layers\":[{\"mediaType\":\"gguf\",\"digest\":\"" D "\",\"size\":-1}]}", "\"size\" is -1"},
        {"{\"layers\":[{\"mediaType\":\"gguf\",\"digest\":\"" D
         "\",\"size\":1},{\"mediaType\":\"gguf\",\"digest\":\"" D "\",\"size\":1}]}",
         "two layers want"},
        {"[]", "no list of layers"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pull_ref ref = {.kind = PULL_OCI, .repo = "o/n", .name = "n", .tag = "t"};
        pull_plan p = {0};
        json_t *v = NULL;
        shoal_err err = {0};
        const char *index = NULL;
        assert_int_equal(json_parse(&v, cases[i].json, strlen(cases[i].json), "m", &err), 0);
        int rc = pull_plan_oci(&p, mem, v, &ref, &index, &err);
        const char *got = rc != 0 ? err.message : index ? index : p.items[0].path;
        if (!strstr(got, cases[i].want)) fail_msg("%s: \"%s\"", cases[i].json, got);
        json_decref(v);
    }
}

/* A template of Ollama's goes beside the model's one file; others are left out. */
static void a_template_goes_beside_its_model(void **state)
{
#define MODEL_LAYER "{\"mediaType\":\"application/vnd.ollama.image.model\",\"digest\":\"" D "\",\"size\":5}"
#define TEMPLATE_LAYER(n) \
    "{\"mediaType\":\"application/vnd.ollama.image.template\",\"digest\":\"" D "\",\"size\":" n "}"
    static const struct {
        const char *json;
        bool beside;
    } cases[] = {{"{\"layers\":[" MODEL_LAYER "," TEMPLATE_LAYER("65536") "]}", true},
                 {"{\"layers\":[" TEMPLATE_LAYER("3") "," MODEL_LAYER "]}", true},
                 {"{\"layers\":[" MODEL_LAYER "," TEMPLATE_LAYER("65537") "]}", false},
                 {"{\"layers\":[" MODEL_LAYER "]}", false},
                 {"{\"layers\":[" MODEL_LAYER "," TEMPLATE_LAYER(
                      "3") ",{\"mediaType\":\"a\",\"digest\":\"" D
                           "\",\"size\":5,\"annotations\":{\"org.opencontainers.image.title\":\"x.bin\"}}]}",
                  false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pull_ref ref = {.kind = PULL_OLLAMA, .repo = "o/n", .name = "n", .tag = "t"};
        pull_plan p = {0};
        json_t *v = NULL;
        const char *index = NULL;
        assert_int_equal(json_parse(&v, cases[i].json, strlen(cases[i].json), "m", NULL), 0);
        assert_int_equal(pull_plan_oci(&p, mem, v, &ref, &index, NULL), 0);
        assert_int_equal(p.beside != NULL, cases[i].beside);
        assert_string_equal(p.items[0].path, "n-t.gguf");
        if (p.beside) assert_string_equal(p.beside->path, "n-t.gguf.template");
        json_decref(v);
    }
}

/* ---- models.json --------------------------------------------------------------------------------------- */

static void put_entry(const char *folder, const char *name, const char *file, const char *sha256,
                      const char *want)
{
    pull_manifest_entry e = {.name = name, .file = file, .sha256 = sha256, .source = "hf:a/b", .bytes = 7};
    char *got = NULL;
    shoal_err err = {0};
    if (pull_manifest_put(folder, &e, &got, &err) != 0) fail_msg("%s", err.message);
    assert_string_equal(got, want);
    free(got);
}

static void a_manifest_keeps_what_it_has(void **state)
{
    (void)state;
    char folder[] = "/tmp/shoal_shelf_XXXXXX", path[64];
    buf text = {0};
    shoal_err err;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/models.json", folder);
    put_entry(folder, "a", "a.gguf", "11", "a");
    put_entry(folder, "a", "b.gguf", "22", "a-2");
    put_entry(folder, "z\"", "a.gguf", "33", "a");
    assert_int_equal(file_read(&text, path, 4096, &err), 0);
    assert_string_equal(
        text.data,
        "{\n \"models\": [\n  {\n   \"name\": \"a\",\n   \"file\": \"a.gguf\",\n   \"sha256\": \"33\",\n"
        "   \"source\": \"hf:a/b\",\n   \"bytes\": 7\n  },\n  {\n   \"name\": \"a-2\",\n   \"file\": "
        "\"b.gguf\",\n   \"sha256\": \"22\",\n   \"source\": \"hf:a/b\",\n   \"bytes\": 7\n  }\n ]\n}\n");
    buf_done(&text);
    unlink(path);
    rmdir(folder);
}

static void pin(const char *folder, const char *file, const char *sha256)
{
    shoal_err err = {0};
    if (pull_manifest_pin(folder, file, sha256, &err) != 0) fail_msg("%s", err.message);
}

static void a_manifest_pins_what_lies_beside_it(void **state)
{
    char folder[] = "/tmp/shoal_shelf_XXXXXX", path[64];
    buf text = {0};
    shoal_err err;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/models.json", folder);
    assert_int_equal(pull_manifest_pin(folder, "c.json", "44", &err), SHOAL_ENOTFOUND);
    assert_int_not_equal(access(path, F_OK), 0); /* none is made */
    put_entry(folder, "a", "a.gguf", "11", "a");
    pin(folder, "c.json", "44");
    pin(folder, "d.json", "55");
    pin(folder, "c.json", "66");
    put_entry(folder, "b", "b.gguf", "22", "b"); /* and models are added as before */
    assert_int_equal(file_read(&text, path, 4096, &err), 0);
    static const char BEGINS[] = "{\n \"calibrations\": {\"c.json\":\"66\",\"d.json\":\"55\"},\n \"models\": "
                                 "[\n  {\n   \"name\": \"a\",\n";
    if (strncmp(text.data, BEGINS, sizeof BEGINS - 1) != 0) fail_msg("%s", text.data);
    assert_non_null(strstr(text.data, "\"name\": \"b\""));
    buf_done(&text);
    /* What cannot be changed without harm is left alone: a brace in a name ends the object for a simple eye.
     */
    FILE *f = fopen(path, "w");
    fputs("{\"calibrations\": {\"a}b\": \"1\"}, \"models\": []}", f);
    fclose(f);
    assert_int_equal(pull_manifest_pin(folder, "c.json", "77", &err), SHOAL_EFORMAT);
    assert_int_equal(file_read(&text, path, 4096, &err), 0);
    assert_string_equal(text.data, "{\"calibrations\": {\"a}b\": \"1\"}, \"models\": []}");
    buf_done(&text);
    unlink(path);
    rmdir(folder);
}

static void write_text(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fputs(text, f) < 0, 0);
    assert_int_equal(fclose(f), 0);
}

/* What follows an entry, precedes it or stands in its texts changes nothing. */
static void a_manifest_gives_back_what_it_has(void **state)
{
    (void)state;
    static const char whole[] =
        "{\n \"note\": \"{[\", \"models\": [\n  {\"name\": \"a\", \"source\": \"s\", \"file\": "
        "\"a.gguf\", \"use\": \"} \\\" ]\"},\n"
        "  {\"name\": \"b\", \"source\": \"s\", \"file\": \"b.gguf\", \"quality\": {\"value\": 0.50}},\n"
        "  {\"name\": \"c\", \"source\": \"s\", \"file\": \"a.gguf\"}\n ]\n}\n";
    static const struct {
        const char *name;
        bool left_a, left_b;
        const char *text;
    } cases[] = {
        {"b", true, false, "\"file\": \"a.gguf\", \"use\": \"} \\\" ]\"},\n  {\"name\": \"c\", \"source\""},
        {"c", true, false, "\" ]\"}\n ]\n}\n"},
        {"a", false, false, "\"models\": [\n ]\n}\n"},
    };
    char folder[] = "/tmp/shoal_shelf_XXXXXX", path[64], a[64], b[64];
    shoal_err err;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/models.json", folder);
    snprintf(a, sizeof a, "%s/a.gguf", folder);
    snprintf(b, sizeof b, "%s/b.gguf", folder);
    write_text(path, whole);
    write_text(a, "a");
    write_text(b, "b");
    assert_int_equal(pull_manifest_drop(folder, "none", false, NULL, &err), SHOAL_ENOTFOUND);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        buf text = {0};
        if (pull_manifest_drop(folder, cases[i].name, false, NULL, &err) != 0)
            fail_msg("%s: %s", cases[i].name, err.message);
        assert_int_equal(file_read(&text, path, 4096, &err), 0);
        if (!strstr(text.data, cases[i].text)) fail_msg("%s: %s", cases[i].name, text.data);
        assert_int_equal(file_exists(a), cases[i].left_a);
        assert_int_equal(file_exists(b), cases[i].left_b);
        buf_done(&text);
    }
    unlink(path);
    rmdir(folder);
}

static bool is_near(const char *text)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
    if (inet_pton(AF_INET, text, &v4.sin_addr) == 1)
        return pull_address_is_near((const struct sockaddr *)&v4);
    assert_int_equal(inet_pton(AF_INET6, text, &v6.sin6_addr), 1);
    return pull_address_is_near((const struct sockaddr *)&v6);
}

static void addresses_of_private_networks_are_near(void **state)
{
    static const char *const NEAR[] = {"0.0.0.0",
                                       "10.1.2.3",
                                       "100.64.0.1",
                                       "127.0.0.1",
                                       "127.255.255.255",
                                       "169.254.169.254",
                                       "172.16.0.1",
                                       "172.31.255.255",
                                       "192.168.1.1",
                                       "198.18.0.1",
                                       "224.0.0.1",
                                       "255.255.255.255",
                                       "::",
                                       "::1",
                                       "::ffff:127.0.0.1",
                                       "::ffff:10.0.0.1",
                                       "64:ff9b::192.168.0.1",
                                       "fc00::1",
                                       "fdff::1",
                                       "fe80::1",
                                       "ff02::1"};
    static const char *const FAR[] = {"1.1.1.1",      "9.255.255.255",  "11.0.0.0",        "100.63.0.1",
                                      "100.128.0.1",  "126.0.0.1",      "128.0.0.1",       "172.15.0.1",
                                      "172.32.0.1",   "192.167.0.1",    "198.20.0.1",      "223.255.0.1",
                                      "2606:4700::1", "::ffff:1.1.1.1", "64:ff9b::1.1.1.1"};
    for (size_t i = 0; i < sizeof NEAR / sizeof *NEAR; i++)
        if (!is_near(NEAR[i])) fail_msg("%s is far", NEAR[i]);
    for (size_t i = 0; i < sizeof FAR / sizeof *FAR; i++)
        if (is_near(FAR[i])) fail_msg("%s is near", FAR[i]);
}

/* An entry whose file stays could not be removed a second time. */
static void a_manifest_keeps_the_entry_of_a_file_that_stays(void **state)
{
    static const char whole[] =
        "{\"models\": [{\"name\": \"a\", \"file\": \"a.gguf\", \"source\": \"x\"}, {\"name\": \"b\", "
        "\"file\": \"in/b.gguf\", \"source\": \"x\"}]}\n";
    char folder[] = "/tmp/shoal_shelf_XXXXXX", path[64], a[64];
    shoal_err err;
    buf text = {0};
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/models.json", folder);
    snprintf(a, sizeof a, "%s/a.gguf", folder);
    write_text(path, whole);
    assert_int_equal(mkdir(a, 0700), 0);
    assert_int_equal(pull_manifest_drop(folder, "a", false, NULL, &err), SHOAL_EIO);
    assert_non_null(strstr(err.message, "a.gguf: Is a directory; its entry stays"));
    assert_int_equal(pull_manifest_drop(folder, "b", false, NULL, &err), SHOAL_EFORMAT);
    assert_non_null(strstr(err.message, "by hand"));
    assert_int_equal(file_read(&text, path, 4096, &err), 0);
    assert_string_equal(text.data, whole);
    buf_done(&text);
    rmdir(a);
    assert_int_equal(pull_manifest_drop(folder, "a", false, NULL, &err), 0); /* nobody misses the file */
    unlink(path);
    rmdir(folder);
}

/* What the program came with, and what people put there, is not removed. */
static void a_manifest_keeps_what_was_not_pulled(void **state)
{
    static const char whole[] = "{\"models\": [{\"name\": \"a\", \"file\": \"a.gguf\"}, {\"name\": \"b\", "
                                "\"file\": \"b.gguf\", \"source\": null}]}\n";
    char folder[] = "/tmp/shoal_shelf_XXXXXX", path[64], a[64];
    shoal_err err;
    buf text = {0};
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/models.json", folder);
    snprintf(a, sizeof a, "%s/a.gguf", folder);
    write_text(path, whole);
    write_text(a, "a");
    assert_int_equal(pull_manifest_drop(folder, "a", false, NULL, &err), SHOAL_EAUTH);
    assert_non_null(strstr(err.message, "was not pulled"));
    assert_int_equal(pull_manifest_drop(folder, "b", false, NULL, &err), SHOAL_EAUTH);
    assert_int_equal(file_read(&text, path, 4096, &err), 0);
    assert_string_equal(text.data, whole);
    assert_true(file_exists(a));
    assert_int_equal(pull_manifest_drop_folder(folder, NULL, &err), SHOAL_EAUTH);
    assert_true(file_exists(a));
    buf_done(&text);
    pull_removal r;
    assert_int_equal(pull_manifest_look(folder, "a", &r, &err), 0);
    assert_true(r.origin == PULL_LISTED && r.entry && r.n_files == 1 && r.bytes == 1);
    assert_string_equal(r.path, a);
    assert_int_equal(pull_manifest_look(folder, "a.gguf", &r, &err), SHOAL_ENOTFOUND);
    assert_int_equal(pull_manifest_look(folder, "c", &r, &err), 0);
    assert_int_equal(r.origin, PULL_NOWHERE);
    assert_int_equal(pull_manifest_drop(folder, "a", true, &r, &err), 0); /* the owner insists */
    assert_true(r.entry && r.n_files == 1 && r.bytes == 1 && !file_exists(a));
    write_text(a, "copy");
    assert_int_equal(pull_manifest_look(folder, "a", &r, &err), 0); /* now without an entry */
    assert_true(r.origin == PULL_COPIED && !r.entry && r.bytes == 4);
    assert_int_equal(pull_manifest_look(folder, "../a", &r, &err), 0);
    assert_int_equal(r.origin, PULL_NOWHERE);
    unlink(path);
    unlink(a);
    rmdir(folder);
}

/* Files that were pulled go, and nothing else of the folder does; a note that points elsewhere is refused. */
static void a_folder_gives_back_what_was_pulled(void **state)
{
    static const char *const FILES[] = {"config.json", "deep/er/model.safetensors"}, *const OUT[] = {"../a"};
    char folder[] = "/tmp/shoal_shelf_XXXXXX", in[64], deep[80], deeper[96], file[128], own[80], out[80];
    shoal_err err;
    assert_non_null(mkdtemp(folder));
    snprintf(in, sizeof in, "%s/m", folder);
    snprintf(deep, sizeof deep, "%s/deep", in);
    snprintf(deeper, sizeof deeper, "%s/er", deep);
    snprintf(file, sizeof file, "%s/model.safetensors", deeper);
    snprintf(own, sizeof own, "%s/notes.txt", in);
    snprintf(out, sizeof out, "%s/a", folder);
    assert_int_equal(mkdir(in, 0755) | mkdir(deep, 0755) | mkdir(deeper, 0755), 0);
    write_text(file, "x");
    write_text(own, "mine");
    write_text(out, "a");
    assert_false(pull_manifest_is_folder(in));
    assert_int_equal(pull_manifest_note_folder(in, "hf:a/b", OUT, 1, &err), 0);
    assert_int_equal(pull_manifest_drop_folder(in, NULL, &err), SHOAL_EFORMAT);
    assert_true(file_exists(out));
    assert_int_equal(pull_manifest_note_folder(in, "hf:a/b", FILES, 2, &err), 0);
    assert_true(pull_manifest_is_folder(in));
    pull_removal r;
    assert_int_equal(pull_manifest_look(folder, "m", &r, &err), 0);
    assert_true(r.origin == PULL_PULLED && r.is_folder && r.n_files == 1 && r.bytes == 1);
    assert_int_equal(pull_manifest_drop_folder(in, &r, &err), 0);
    assert_true(r.is_folder && r.n_files == 1 && r.bytes == 1);
    assert_false(file_exists(file) || file_exists(deep) || pull_manifest_is_folder(in));
    assert_true(file_exists(own));
    unlink(own);
    unlink(out);
    assert_int_equal(rmdir(in) | rmdir(folder), 0);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, begin, end)
    const struct CMUnitTest tests[] = {
        CASE(references_are_read),
        CASE(references_that_are_none_say_what_to_type),
        CASE(names_from_servers_stay_inside),
        CASE(addresses_are_https_or_this_machine),
        CASE(challenges_are_read),
        CASE(waits_grow_and_end),
        CASE(where_nobody_listens_there_are_few_tries),
        CASE(files_of_a_model_are_chosen),
        CASE(manifests_are_read),
        CASE(a_template_goes_beside_its_model),
        CASE(a_manifest_keeps_what_it_has),
        CASE(a_manifest_gives_back_what_it_has),
        CASE(addresses_of_private_networks_are_near),
        CASE(a_manifest_keeps_the_entry_of_a_file_that_stays),
        CASE(a_manifest_keeps_what_was_not_pulled),
        CASE(a_folder_gives_back_what_was_pulled),
        CASE(a_manifest_pins_what_lies_beside_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
