/* Which files may be loaded, by what people call them: names, references, paths; and none that lies
 * elsewhere. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/file_user.h"
#include "logging/log.h"
#include "manager/manager_book.h"
#include "manager/manager_find.h"
#include "os/memory_headroom.h"

typedef struct place {
    char top[64], store[80], other[80];
    manager_places p;
} place;

static void put(const char *folder, const char *name, const char *text)
{
    char path[200];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static void tie(const char *to, const char *folder, const char *name)
{
    char path[200];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_int_equal(symlink(to, path), 0);
}

static void place_open(place *x)
{
    memset(x, 0, sizeof *x);
    strcpy(x->top, "/tmp/shoal_keep_XXXXXX");
    assert_non_null(mkdtemp(x->top));
    snprintf(x->store, sizeof x->store, "%s/store", x->top);
    snprintf(x->other, sizeof x->other, "%s/store2", x->top); /* its name begins with the store's */
    assert_int_equal(mkdir(x->store, 0700) | mkdir(x->other, 0700), 0);
    put(x->store, "a b.gguf", "12345");
    put(x->store, "c.gguf", "1");
    put(x->other, "secret.gguf", "1");
    put(x->store, "models.json",
        "{\"models\":[{\"name\":\"tiny-1b\",\"file\":\"c.gguf\",\"sha256\":\"ab\",\"source\":\"ollama:tiny:"
        "1b\",\"sampling\":{\"temperature\":0}},"
        "{\"name\":\"up\",\"file\":\"../store2/secret.gguf\"},{\"name\":\"lost\",\"file\":\"lost.gguf\"},"
        "{\"name\":3},{\"name\":\"hub\",\"file\":\"c.gguf\",\"source\":\"hf:org/name:Q4\"},7]}");
    tie(x->other, x->store, "out");
    tie("c.gguf", x->store, "in.gguf");
    tie("loop.gguf", x->store, "loop.gguf");
    x->p = (manager_places){.folders = {x->store}, .n_folders = 1};
}

static void place_close(place *x)
{
    char command[200];
    snprintf(command, sizeof command, "rm -rf %s", x->top);
    assert_int_equal(system(command), 0);
}

static int find(place *x, const char *what, const char *path, manager_found *f, shoal_err *err)
{
    config_load_request w = {.what = what, .as = {.path = path}};
    return manager_find(f, &x->p, &w, err);
}

static void names_lead_to_files(void **state)
{
    static const struct {
        const char *what, *name, *end, *reference;
    } cases[] = {
        {"tiny-1b", "tiny-1b", "/c.gguf", NULL},
        {"tiny:1b", "tiny-1b", "/c.gguf", NULL},
        {"ollama:tiny:1b", "tiny-1b", "/c.gguf", NULL},
        {"hf:org/name:Q4", "hub", "/c.gguf", NULL},
        {"hf.co/org/name:Q4", "hub", "/c.gguf", NULL},
        {"hf:org/name", "", NULL, "hf:org/name"},
        {"ollama:tiny", "", NULL, "ollama:tiny"},
        {"a b.gguf", "a-b", "/a b.gguf", NULL},
        {"in.gguf", "c", "/c.gguf", NULL},
    };
    place x;
    place_open(&x);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        manager_found f = {0};
        shoal_err err;
        if (find(&x, cases[i].what, NULL, &f, &err) != 0) fail_msg("%s: %s", cases[i].what, err.message);
        assert_string_equal(f.name, cases[i].name);
        if (cases[i].end && !strstr(f.path, cases[i].end)) fail_msg("%s: %s", cases[i].what, f.path);
        if (cases[i].reference) assert_string_equal(f.reference, cases[i].reference);
        if (cases[i].reference) assert_null(f.path);
        manager_found_done(&f);
    }
    place_close(&x);
}

/* By name or by path, also through a link. */
static void models_json_tells_how_it_is_sampled(void **state)
{
    place x;
    shoal_err err;
    place_open(&x);
    char whole[200];
    snprintf(whole, sizeof whole, "%s/c.gguf", x.store);
    const struct {
        const char *what, *path;
    } asked[] = {{"tiny-1b", NULL}, {NULL, "c.gguf"}, {NULL, whole}, {NULL, "in.gguf"}};
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        manager_found f;
        assert_int_equal(find(&x, asked[i].what, asked[i].path, &f, &err), 0);
        assert_int_equal(f.sampling.said, SAMPLING_BIT(temperature));
        manager_found_done(&f);
    }
    manager_found f;
    assert_int_equal(find(&x, NULL, "a b.gguf", &f, &err), 0);
    assert_int_equal(f.sampling.said, 0);
    manager_found_done(&f);
    place_close(&x);
}

static void want(place *x, const char *what, const char *path, int rc)
{
    manager_found f = {0};
    shoal_err err;
    int got = find(x, what, path, &f, &err);
    if (got != rc) fail_msg("%s: %d, %s", what ? what : path, got, got ? err.message : f.path);
    assert_null(f.path);
}

static void nothing_that_lies_elsewhere_is_found(void **state)
{
    static const char *const away[] = {
        "/etc/passwd",         "/nowhere/at/all", "..",  "../store2/secret.gguf",
        "../store2/none.gguf", "out/secret.gguf", "out", "./../../..",
        "x/../../store2"};
    static const char *const none[] = {"none", "loop.gguf", "..gguf", "a b.gguf/x"};
    place x;
    char path[200];
    place_open(&x);
    for (size_t i = 0; i < sizeof away / sizeof *away; i++) want(&x, NULL, away[i], SHOAL_EAUTH);
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) want(&x, NULL, none[i], SHOAL_ENOTFOUND);
    snprintf(path, sizeof path, "%s/secret.gguf", x.other);
    want(&x, NULL, path, SHOAL_EAUTH);
    snprintf(path, sizeof path, "%s/../store2/secret.gguf", x.store);
    want(&x, NULL, path, SHOAL_EAUTH);
    snprintf(path, sizeof path, "%s/none", x.store);
    want(&x, NULL, path, SHOAL_ENOTFOUND);
    want(&x, NULL, x.store, SHOAL_EAUTH); /* all of it is no model */
    want(&x, "up", NULL, SHOAL_ENOTFOUND);
    want(&x, "lost", NULL, SHOAL_ENOTFOUND);
    place_close(&x);
}

/* A folder is all that is in it: a link out of it is a way out. */
static void folder_counts_with_all_its_files(void **state)
{
    place x;
    manager_found f = {0};
    shoal_err err;
    char folder[120], secret[120];
    place_open(&x);
    snprintf(folder, sizeof folder, "%s/hf", x.store);
    snprintf(secret, sizeof secret, "%s/secret.gguf", x.other);
    assert_int_equal(mkdir(folder, 0700), 0);
    put(folder, "config.json", "{}");
    put(folder, "model.safetensors", "123");
    tie("model.safetensors", folder, "again.safetensors");
    tie("/nowhere", folder, "dangling");
    assert_int_equal(find(&x, NULL, "hf", &f, &err), 0);
    assert_string_equal(f.name, "hf");
    assert_int_equal(f.bytes, 2 + 3 + 3);
    manager_found_done(&f);
    tie(secret, folder, "weights.bin");
    want(&x, NULL, "hf", SHOAL_EAUTH);
    place_close(&x);
}

/* ---- for another user ---------------------------------------------------------------------------------- */

typedef struct for_other {
    const char *path; /* below the place's top */
    bool keep;
    int rc;
    const char *part; /* of the sentence, or of the model's path */
} for_other;

static void find_for(place *x, const file_user *u, const for_other *c)
{
    char path[200];
    manager_found f = {0};
    shoal_err err = {0};
    snprintf(path, sizeof path, "%s/%s", x->top, c->path);
    config_load_request w = {.as = {.path = path}, .reader = u, .keep = c->keep};
    int rc = manager_find(&f, &x->p, &w, &err);
    if (rc != c->rc || !strstr(rc ? err.message : f.path, c->part))
        fail_msg("%s: %d %s", path, rc, rc ? err.message : f.path);
    bool in_store = strncmp(c->path, "store/", 6) == 0;
    if (rc == 0) assert_true(in_store ? !f.reader : f.reader && atol(f.reader) == (long)u->uid);
    manager_found_done(&f);
}

/* Whose user the process is not, so that the bits of others count. The library's folders are open to all as ever. */
static void other_users_name_what_they_may_read(void **state)
{
    static const for_other cases[] = {
        {"open/a.gguf", false, 0, "/open/a.gguf"},
        {"open/link.gguf", false, 0, "/open/a.gguf"},
        {"open/a.gguf", true, SHOAL_EAUTH, "without keep"},
        {"open/mine.gguf", false, SHOAL_EAUTH, "may not read the file"},
        {"open/out.gguf", false, SHOAL_EAUTH, "may not enter the folder"},
        {"open/none.gguf", false, SHOAL_ENOTFOUND, "none.gguf"},
        {"store2/secret.gguf", false, SHOAL_EAUTH, "may not enter the folder"},
        {"store2/none.gguf", false, SHOAL_EAUTH, "may not enter the folder"},
        {"hf", false, 0, "/hf"},
        {"part", false, SHOAL_EAUTH, "/part/model.safetensors"},
        {"store/c.gguf", true, 0, "/store/c.gguf"},
    };
    const file_user other = {.uid = geteuid() + 5, .gid = getegid() + 5};
    const char *const folders[] = {"open", "hf", "part"};
    place x;
    file_opened f;
    shoal_err err;
    char at[3][100], path[200];
    place_open(&x);
    for (size_t i = 0; i < 3; i++) {
        snprintf(at[i], sizeof at[i], "%s/%s", x.top, folders[i]);
        assert_int_equal(mkdir(at[i], 0755) | chmod(at[i], 0755) | chmod(x.top, 0755), 0);
        put(at[i], i ? "model.safetensors" : "a.gguf", "123");
        snprintf(path, sizeof path, "%s/%s", at[i], i ? "model.safetensors" : "a.gguf");
        assert_int_equal(chmod(path, i == 2 ? 0600 : 0644), 0);
    }
    put(at[0], "mine.gguf", "1");
    snprintf(path, sizeof path, "%s/mine.gguf", at[0]);
    assert_int_equal(chmod(path, 0600), 0);
    tie("a.gguf", at[0], "link.gguf");
    tie("../store2/secret.gguf", at[0], "out.gguf");
    tie("/nowhere", at[1], "dangling");
    bool opened = file_user_open(&f, &other, at[1], &err) == 0;
    if (opened) close(f.fd), free(f.path);
    bool decided = opened || !strstr(err.message, "file system");
    for (size_t i = 0; decided && i < sizeof cases / sizeof *cases; i++) find_for(&x, &other, &cases[i]);
    place_close(&x);
    if (!decided) skip();
}

/* ---- the book ------------------------------------------------------------------------------------------ */

typedef struct heard {
    unsigned n_taken, n_why;
    char last[200];
} heard;

static void take(void *user, const config_load_request *w)
{
    heard *h = user;
    h->n_taken++;
    snprintf(h->last, sizeof h->last, "%s", w->what);
}

static void why(void *user, const char *sentence)
{
    ((heard *)user)->n_why++;
}

static void book_tells_what_it_cannot_read(void **state)
{
    static const struct {
        const char *text;
        unsigned n_taken, n_why;
    } cases[] = {{"{\"models\": [{\"model\": \"a\"}, {\"model\": \"b\", \"keep\": true}]}", 2, 0},
                 {"{\"models\": [{\"model\": \"a\"}, {\"modl\": \"b\"}, 3, {\"model\": \"c\"}]}", 2, 2},
                 {"{\"models\": []}", 0, 0},
                 {"{\"models\": {}}", 0, 1},
                 {"{}", 0, 1},
                 {"[", 0, 1},
                 {"", 0, 1},
                 {"{\"models\": [{\"model\": \"a\"}", 0, 1}};
    place x;
    char path[120];
    heard none = {0};
    place_open(&x);
    snprintf(path, sizeof path, "%s/loaded.json", x.top);
    json_decref(manager_book_read(path, take, why, &none));
    assert_int_equal(none.n_taken + none.n_why, 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        heard h = {0};
        put(x.top, "loaded.json", cases[i].text);
        json_decref(manager_book_read(path, take, why, &h));
        if (h.n_taken != cases[i].n_taken || h.n_why != cases[i].n_why)
            fail_msg("%s: %u taken, %u sentences", cases[i].text, h.n_taken, h.n_why);
    }
    place_close(&x);
}

static void book_written_is_read_again(void **state)
{
    place x;
    char path[160];
    heard h = {0};
    shoal_err err;
    json_t *list = json_pack("[{s:s,s:b}]", "model", "hf:a/b", "keep", 1);
    place_open(&x);
    snprintf(path, sizeof path, "%s/new/folder/loaded.json", x.top);
    assert_int_equal(manager_book_write(path, list, NULL, &err), 0);
    json_decref(manager_book_read(path, take, why, &h));
    assert_int_equal(h.n_taken, 1);
    assert_string_equal(h.last, "hf:a/b");
    json_decref(list);
    place_close(&x);
}

static void nothing_taken(void *user, const config_load_request *w) {}

static json_t *entries(const char *path)
{
    heard h = {0};
    return manager_book_read(path, nothing_taken, why, &h);
}

static json_t *entry(const char *name)
{
    return json_pack("{s:s,s:s,s:b}", "model", "m", "name", name, "keep", 1);
}

/* Writes the entry of this name beside those that the server has in the file, or removes it. */
static void server_changes(const char *path, json_t **book, const char *name, bool keeps)
{
    shoal_err err;
    json_t *next = json_array(), *own = entry(name), *o;
    size_t i;
    json_array_foreach(*book, i, o) if (!json_equal(o, own)) json_array_append(next, o);
    if (keeps) json_array_append(next, own);
    assert_int_equal(manager_book_write(path, next, *book, &err), 0);
    json_decref(own);
    json_decref(*book);
    *book = next;
}

static void expect_names(const char *path, const char *wanted)
{
    char names[64] = "";
    json_t *all = entries(path), *o;
    size_t i;
    json_array_foreach(all, i, o) strcat(names, json_string_value(json_object_get(o, "name")));
    assert_string_equal(names, wanted);
    json_decref(all);
}

static void servers_that_share_a_book_lose_nothing(void **state)
{
    place x;
    char path[160];
    place_open(&x);
    snprintf(path, sizeof path, "%s/loaded.json", x.top);
    json_t *one = entries(path), *two = entries(path);
    server_changes(path, &one, "a", true);
    server_changes(path, &two, "b", true);
    server_changes(path, &one, "c", true);
    expect_names(path, "acb");
    server_changes(path, &one, "a", false);
    expect_names(path, "cb");
    server_changes(path, &two, "c", true); /* by the name of another's: it is one */
    expect_names(path, "bc");
    server_changes(path, &two, "b", false);
    expect_names(path, "c");
    json_decref(one);
    json_decref(two);
    place_close(&x);
}

/* What a newer version wrote, or a person: a change of other entries does not drop it. */
static void entries_that_nobody_understands_stay(void **state)
{
    place x;
    char path[160];
    place_open(&x);
    snprintf(path, sizeof path, "%s/loaded.json", x.top);
    put(x.top, "loaded.json", "{\"models\": [{\"model\": \"a\", \"newer\": 1}, {\"model\": \"b\"}]}");
    json_t *one = entries(path);
    assert_int_equal(json_array_size(one), 1);
    server_changes(path, &one, "c", true);
    json_t *root = NULL;
    shoal_err err;
    assert_int_equal(json_parse_file(&root, path, 4096, &err), 0);
    assert_int_equal(json_array_size(json_object_get(root, "models")), 3);
    json_decref(root);
    json_decref(one);
    place_close(&x);
}

static void broken_book_is_set_aside(void **state)
{
    static const char BROKEN[] = "{\"models\": [{\"model\": \"a\", \"na";
    place x;
    char path[160], aside[200];
    buf text = {0};
    shoal_err err;
    place_open(&x);
    snprintf(path, sizeof path, "%s/loaded.json", x.top);
    snprintf(aside, sizeof aside, "%s.broken", path);
    put(x.top, "loaded.json", BROKEN);
    json_t *one = entries(path);
    server_changes(path, &one, "c", true);
    expect_names(path, "c");
    assert_int_equal(file_read(&text, aside, 4096, &err), 0);
    assert_int_equal(text.len, sizeof BROKEN - 1);
    assert_memory_equal(text.data, BROKEN, text.len);
    buf_done(&text);
    json_decref(one);
    place_close(&x);
}

/* ---- room ---------------------------------------------------------------------------------------------- */

static void room_is_the_least_of_machine_and_groups(void **state)
{
    place x;
    char at[300];
    place_open(&x);
    snprintf(at, sizeof at, "mkdir -p %s/proc/self %s/sys/fs/cgroup/a.slice/b.scope", x.top, x.top);
    assert_int_equal(system(at), 0);
    put(x.top, "proc/meminfo", "MemTotal: 1000 kB\nMemAvailable: 500 kB\n");
    assert_int_equal(memory_headroom_read(x.top).free_bytes, 500 * 1024);
    put(x.top, "proc/self/cgroup", "1:name=x:/\n0::/a.slice/b.scope\n");
    put(x.top, "sys/fs/cgroup/a.slice/b.scope/memory.max", "max\n");
    assert_int_equal(memory_headroom_read(x.top).free_bytes, 500 * 1024);
    put(x.top, "sys/fs/cgroup/a.slice/memory.max", "400000\n");
    put(x.top, "sys/fs/cgroup/a.slice/memory.current", "300000\n");
    put(x.top, "sys/fs/cgroup/a.slice/memory.stat", "anon 1\ninactive_file 50000\n");
    memory_headroom r = memory_headroom_read(x.top);
    assert_int_equal(r.free_bytes, 150000);
    assert_string_equal(r.by, "its cgroup");
    put(x.top, "sys/fs/cgroup/a.slice/memory.current", "900000\n");
    assert_int_equal(memory_headroom_read(x.top).free_bytes, 0);
    place_close(&x);
}

int main(void)
{
    log_setup(LOG_OFF, false);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_lead_to_files),
        cmocka_unit_test(models_json_tells_how_it_is_sampled),
        cmocka_unit_test(nothing_that_lies_elsewhere_is_found),
        cmocka_unit_test(folder_counts_with_all_its_files),
        cmocka_unit_test(other_users_name_what_they_may_read),
        cmocka_unit_test(book_tells_what_it_cannot_read),
        cmocka_unit_test(book_written_is_read_again),
        cmocka_unit_test(servers_that_share_a_book_lose_nothing),
        cmocka_unit_test(entries_that_nobody_understands_stay),
        cmocka_unit_test(broken_book_is_set_aside),
        cmocka_unit_test(room_is_the_least_of_machine_and_groups),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
