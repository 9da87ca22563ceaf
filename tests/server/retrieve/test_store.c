/* Collections in a file: what is put is found, what was acknowledged survives, and what is filtered is not
 * shown. */
#include "check.h"

#include <signal.h>
#include <sqlite3.h>
#include <sys/wait.h>

#include "json/json.h"
#include "retrieve/codes.h"
#include "retrieve/search.h"
#include "retrieve/store_impl.h"
#include "retrieve/vector_cache.h"

enum { DIMS = 40 };

typedef struct bench {
    char folder[64], path[96];
    store *s;
    vector_cache *sh;
    store_collection c;
    arena *mem;
} bench;

static void open_bench(bench *b)
{
    shoal_err err = {0};
    *b = (bench){.mem = arena_new(0)};
    make_folder(b->folder);
    snprintf(b->path, sizeof b->path, "%s/deep/er/collections.db", b->folder);
    assert_ok(store_open(&b->s, b->path, &err));
    assert_ok(vector_cache_new(&b->sh, (size_t)64 << 20, 2, &err));
    b->c = (store_collection){
        .name = "manuals", .title = "", .metadata = "{}", .model = "m", .piece_bytes = 200};
    assert_ok(store_create(b->s, &b->c, 0, &err));
}

static void close_bench(bench *b)
{
    vector_cache_free(b->sh);
    store_close(b->s);
    arena_free(b->mem);
    remove_folder(b->folder);
}

/* A vector that points where `direction` says, the more the nearer they are. */
static void vector_of(double direction, int8_t codes[DIMS], float *scale)
{
    float x[DIMS];
    for (int i = 0; i < DIMS; i++) x[i] = (float)(1 / (1 + (direction - i) * (direction - i)));
    assert_true(codes_of(x, DIMS, codes, scale));
}

/* Puts one document whose pieces point to direction, direction + 1, ... */
static int put(store *s, const store_collection *c, const char *source, const char *metadata,
               const char *text, double direction, bool *replaced, shoal_err *err)
{
    plain p = {0};
    pieces ps = {0};
    bool dummy;
    assert_int_equal(plain_read(&p, PLAIN_TEXT, text, strlen(text), "t", NULL, err), 0);
    assert_int_equal(pieces_cut(&ps, &p, 64, 16, NULL, err), 0);
    float *scales = calloc(ps.n + 1, sizeof *scales);
    int8_t *codes = calloc(ps.n + 1, DIMS);
    for (size_t i = 0; i < ps.n; i++) vector_of(direction + (double)i, codes + i * DIMS, &scales[i]);
    store_document d = {.source = source,
                        .type = "text",
                        .digest = "d",
                        .metadata = metadata,
                        .n_bytes = (int64_t)strlen(text)};
    store_content what = {p.text.data, &ps, scales, codes, DIMS, "digest"};
    int rc = store_begin(s, true, err);
    if (rc == 0) rc = store_put(s, c, &d, &what, replaced ? replaced : &dummy, err);
    if (rc == 0)
        rc = store_commit(s, err);
    else
        store_rollback(s);
    free(scales);
    free(codes);
    pieces_done(&ps);
    plain_done(&p);
    return rc;
}

static void search(bench *b, search_answer *a, const char *text, double direction, const char *filters,
                   size_t k)
{
    shoal_err err = {0};
    int8_t codes[DIMS];
    filter f = {0};
    json_t *o = NULL;
    if (filters) assert_ok(json_parse(&o, filters, strlen(filters), "filter", &err));
    assert_ok(filter_parse(&f, o, &err));
    search_ask ask = {
        .collection = "manuals", .text = text, .k = k, .filter = &f, .dims = DIMS, .model_digest = "digest"};
    *a = (search_answer){0};
    if (direction >= 0) {
        vector_of(direction, codes, &ask.scale);
        ask.codes = codes;
    }
    assert_ok(search_run(a, b->s, b->sh, &ask, &err));
    filter_done(&f);
    json_decref(o);
}

static void assert_first(bench *b, const char *text, double direction, const char *filters,
                         const char *source)
{
    search_answer a;
    search(b, &a, text, direction, filters, 3);
    if (source) {
        assert_true(a.n > 0);
        assert_string_equal(a.v[0].piece.source, source);
    } else {
        assert_int_equal(a.n, 0);
    }
    search_done(&a);
}

static void documents_are_found_by_words_and_meaning(void **state)
{
    bench b;
    shoal_err err = {0};
    open_bench(&b);
    assert_ok(put(b.s, &b.c, "a.txt", "{}", "Bleed the radiator in autumn.", 3, NULL, &err));
    assert_ok(put(b.s, &b.c, "b.txt", "{}", "Oil the hinge of the garden gate.", 20, NULL, &err));
    assert_first(&b, "radiator", -1, NULL, "a.txt");
    assert_first(&b, "unknown words", 21, NULL, "b.txt");
    assert_first(&b,
                 "R\xC3\x84"
                 "DIATOR radiator?",
                 3, NULL, "a.txt");
    search_answer a;
    search(&b, &a, "the radiator", 3, NULL, 5);
    assert_int_equal(a.n, 2);
    assert_float_equal(a.v[0].found.score, 1, 1e-6);
    assert_float_equal(a.v[0].found.cosine, 1, 0.01);
    assert_string_equal(a.v[0].piece.text, "Bleed the radiator in autumn.");
    assert_int_equal(a.v[0].piece.line, 1);
    search_done(&a);
    close_bench(&b);
}

static void a_changed_document_replaces_the_old(void **state)
{
    bench b;
    shoal_err err = {0};
    bool replaced;
    open_bench(&b);
    assert_ok(put(b.s, &b.c, "a.txt", "{}", "old words here", 3, &replaced, &err));
    assert_false(replaced);
    assert_first(&b, "old", 3, NULL, "a.txt");
    assert_ok(put(b.s, &b.c, "a.txt", "{}", "entirely new", 9, &replaced, &err));
    assert_true(replaced);
    assert_first(&b, "old", -1, NULL, NULL);
    assert_first(&b, "nothing", 9, NULL, "a.txt");
    assert_ok(store_find(b.s, "manuals", b.mem, &b.c, &err));
    assert_int_equal(b.c.n_documents, 1);
    assert_int_equal(b.c.n_bytes, 12);
    close_bench(&b);
}

static void what_is_deleted_is_not_found(void **state)
{
    bench b;
    shoal_err err = {0};
    store_document d;
    open_bench(&b);
    assert_ok(put(b.s, &b.c, "a.txt", "{}", "words", 3, NULL, &err));
    assert_first(&b, "words", 3, NULL, "a.txt");
    assert_ok(store_document_find(b.s, b.c.id, "a.txt", b.mem, &d, &err));
    assert_ok(store_document_delete(b.s, &b.c, d.id, &err));
    assert_first(&b, "words", 3, NULL, NULL);
    assert_int_equal(store_document_delete(b.s, &b.c, d.id, &err), SHOAL_ENOTFOUND);
    assert_ok(store_delete(b.s, "manuals", &err));
    assert_int_equal(store_find(b.s, "manuals", b.mem, &b.c, &err), SHOAL_ENOTFOUND);
    assert_int_equal(store_delete(b.s, "manuals", &err), SHOAL_ENOTFOUND);
    close_bench(&b);
}

static void names_and_metadata_change(void **state)
{
    bench b;
    shoal_err err = {0};
    store_document d;
    store_collection before, c;
    open_bench(&b);
    assert_ok(put(b.s, &b.c, "a.txt", "{}", "words", 3, NULL, &err));
    assert_ok(store_document_find(b.s, b.c.id, "a.txt", b.mem, &d, &err));
    assert_ok(store_change(b.s, "manuals", "Books", NULL, &err));
    assert_ok(store_change(b.s, "manuals", NULL, "{\"a\":1}", &err));
    assert_ok(store_find(b.s, "manuals", b.mem, &before, &err));
    assert_ok(store_document_change(b.s, &b.c, d.id, "{\"room\":\"attic\"}", &err));
    assert_ok(store_find(b.s, "manuals", b.mem, &c, &err));
    assert_string_equal(c.title, "Books");
    assert_string_equal(c.metadata, "{\"a\":1}");
    assert_int_equal(c.revision, before.revision + 1); /* kept searches are out of date */
    assert_ok(store_document_find(b.s, b.c.id, "a.txt", b.mem, &d, &err));
    assert_string_equal(d.metadata, "{\"room\":\"attic\"}");
    assert_int_equal(store_change(b.s, "nothing", "Books", NULL, &err), SHOAL_ENOTFOUND);
    close_bench(&b);
}

static void filters_hide_documents(void **state)
{
    bench b;
    shoal_err err = {0};
    open_bench(&b);
    assert_ok(
        put(b.s, &b.c, "a", "{\"room\":\"kitchen\",\"floor\":1,\"hot\":true}", "a lamp", 3, NULL, &err));
    assert_ok(put(b.s, &b.c, "b", "{\"room\":\"bath\",\"floor\":2.5}", "a lamp", 3, NULL, &err));
    assert_ok(put(b.s, &b.c, "c", "{}", "a lamp", 3, NULL, &err));
    static const struct {
        const char *filter, *found;
    } CASES[] = {
        {"{\"room\":\"bath\"}", "b"},
        {"{\"room\":\"bath\",\"floor\":1}", ""},
        {"{\"type\":\"eq\",\"key\":\"hot\",\"value\":true}", "a"},
        {"{\"type\":\"ne\",\"key\":\"room\",\"value\":\"bath\"}", "ac"},
        {"{\"type\":\"gte\",\"key\":\"floor\",\"value\":2}", "b"},
        {"{\"type\":\"lt\",\"key\":\"floor\",\"value\":2}", "a"},
        {"{\"type\":\"in\",\"key\":\"room\",\"value\":[\"bath\",\"hall\"]}", "b"},
        {"{\"type\":\"nin\",\"key\":\"room\",\"value\":[\"bath\",\"hall\"]}", "ac"},
        {"{\"type\":\"eq\",\"key\":\"source\",\"value\":\"c\"}", "c"},
        {"{\"type\":\"or\",\"filters\":[{\"room\":\"bath\"},{\"type\":\"and\",\"filters\":[{\"floor\":1},{"
         "\"hot\":true}]}]}",
         "ab"},
        {"{\"room') OR 1=1 --\":\"x\"}", ""},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        for (int with_vectors = 0; with_vectors < 2; with_vectors++) {
            search_answer a;
            char got[4] = "";
            search(&b, &a, "lamp", with_vectors ? 3 : -1, CASES[i].filter, 5);
            for (size_t k = 0; k < a.n; k++) strcat(got, a.v[k].piece.source);
            if (strcmp(got, CASES[i].found) != 0) fail_msg("%s found %s", CASES[i].filter, got);
            search_done(&a);
        }
    }
    close_bench(&b);
}

static void filters_that_are_none_are_refused(void **state)
{
    static const char *const CASES[] = {
        "[]",
        "{}",
        "7",
        "{\"a\":null}",
        "{\"a\":{}}",
        "{\"a\":1.8446744073709552e19}", /* 2^64, and all that is next to it */
        "{\"type\":\"like\",\"key\":\"a\",\"value\":1}",
        "{\"type\":\"in\",\"key\":\"a\",\"value\":[]}",
        "{\"type\":\"eq\",\"key\":\"a\"}",
        "{\"type\":\"not\",\"filters\":[{\"a\":1}]}",
        "{\"type\":\"or\",\"filters\":[]}",
        "{\"a\\\"b\":1}",
        "{\"\":1}",
        "{\"type\":\"or\",\"filters\":[{\"type\":\"or\",\"filters\":[{\"type\":\"or\",\"filters\":[{\"type\":"
        "\"or\",\"filters\":[{\"type\":\"or\","
        "\"filters\":[{\"type\":\"or\",\"filters\":[{\"type\":\"or\",\"filters\":[{\"type\":\"or\","
        "\"filters\":[{\"type\":\"or\",\"filters\":[{\"a\":1}"
        "]}]}]}]}]}]}]}]}]}",
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        shoal_err err = {0};
        filter f = {0};
        json_t *o = json_loads(CASES[i], JSON_DECODE_ANY, NULL);
        assert_non_null(o);
        int rc = filter_parse(&f, o, &err);
        if (rc != SHOAL_EINVALID && rc != SHOAL_ELIMIT) fail_msg("%s gave %d", CASES[i], rc);
        assert_non_null(strstr(err.message, "filters"));
        filter_done(&f);
        json_decref(o);
    }
}

/* Another process, or another connection, writes; whoever searches sees it. */
static void images_keep_up_with_other_writers(void **state)
{
    bench b;
    shoal_err err = {0};
    store *other = NULL;
    open_bench(&b);
    assert_ok(store_open(&other, b.path, &err));
    for (int i = 0; i < 30; i++) {
        char name[16];
        snprintf(name, sizeof name, "d%d", i % 7);
        assert_ok(put(other, &b.c, name, "{}", "text", i, NULL, &err));
        assert_first(&b, "nothing", i, NULL, name);
    }
    assert_ok(store_delete(other, "manuals", &err));
    store_collection again = {
        .name = "manuals", .title = "", .metadata = "{}", .model = "m", .piece_bytes = 200};
    assert_ok(store_create(other, &again, 0, &err));
    assert_first(&b, "text", 3, NULL, NULL);
    store_close(other);
    close_bench(&b);
}

static void vectors_of_another_model_are_refused(void **state)
{
    bench b;
    shoal_err err = {0};
    open_bench(&b);
    assert_ok(put(b.s, &b.c, "a", "{}", "words", 3, NULL, &err));
    int8_t codes[DIMS] = {1};
    search_answer a = {0};
    search_ask ask = {.collection = "manuals",
                      .text = "x",
                      .k = 3,
                      .codes = codes,
                      .dims = DIMS,
                      .scale = 1,
                      .model_digest = "another"};
    assert_int_equal(search_run(&a, b.s, b.sh, &ask, &err), SHOAL_EDIGEST);
    search_done(&a);
    store_document d = {.source = "b", .type = "text", .digest = "d", .metadata = "{}"};
    pieces ps = {.v = &(piece){.end = 1, .line = 1}, .n = 1};
    float scale = 1;
    bool replaced;
    assert_ok(store_begin(b.s, true, &err));
    store_content what = {"x", &ps, &scale, codes, DIMS, "another"};
    assert_int_equal(store_put(b.s, &b.c, &d, &what, &replaced, &err), SHOAL_EDIGEST);
    assert_non_null(strstr(err.message, "another file of m"));
    store_rollback(b.s);
    close_bench(&b);
}

static void images_give_way_and_say_when_there_is_no_room(void **state)
{
    bench b;
    shoal_err err = {0};
    int8_t codes[DIMS] = {1};
    open_bench(&b);
    assert_ok(put(b.s, &b.c, "a", "{}", "words", 3, NULL, &err));
    assert_first(&b, "words", 3, NULL, "a");
    size_t one = vector_cache_bytes(b.sh);
    assert_true(one > 0);
    store_collection second = {
        .name = "second", .title = "", .metadata = "{}", .model = "m", .piece_bytes = 200};
    assert_ok(store_create(b.s, &second, 0, &err));
    assert_ok(put(b.s, &second, "z", "{}", "words", 3, NULL, &err));
    vector_cache_free(b.sh);
    assert_ok(vector_cache_new(&b.sh, one + one / 2, 1, &err));
    search_ask ask = {.collection = "second",
                      .text = "x",
                      .k = 3,
                      .codes = codes,
                      .dims = DIMS,
                      .scale = 1,
                      .model_digest = "digest"};
    for (int i = 0; i < 3; i++) {
        search_answer a = {0};
        assert_first(&b, "words", 3, NULL, "a");
        assert_ok(search_run(&a, b.s, b.sh, &ask, &err));
        assert_int_equal(a.n, 1);
        search_done(&a);
        assert_int_equal(vector_cache_bytes(b.sh), one);
    }
    vector_cache_free(b.sh);
    assert_ok(vector_cache_new(&b.sh, one / 2, 1, &err));
    search_answer a = {0};
    assert_int_equal(search_run(&a, b.s, b.sh, &ask, &err), SHOAL_ELIMIT);
    assert_non_null(strstr(err.message, "memory_mb"));
    search_done(&a);
    close_bench(&b);
}

/* A child that writes and says so, and is killed somewhere: what it said is there, whole, and the words
 * agree. */
static void what_was_acknowledged_survives_a_kill(void **state)
{
    for (int round = 0; round < 8; round++) {
        bench b;
        shoal_err err = {0};
        int ends[2], acknowledged = -1, said;
        open_bench(&b);
        store_close(b.s); /* no connection goes through a fork */
        assert_int_equal(pipe(ends), 0);
        pid_t pid = fork();
        if (pid == 0) {
            store *s = NULL;
            if (store_open(&s, b.path, &err) != 0) _exit(1);
            for (int i = 0;; i++) {
                char name[24], text[400] = "";
                snprintf(name, sizeof name, "d%d", i);
                for (int k = 0; k < 12; k++) strcat(text, "Some words of a document. ");
                if (put(s, &b.c, name, "{}", text, i % 30, NULL, &err) != 0) _exit(2);
                if (write(ends[1], &i, sizeof i) != sizeof i) _exit(3);
            }
        }
        close(ends[1]);
        for (int i = 0; i <= round * 3 + 1 && read(ends[0], &said, sizeof said) == sizeof said; i++)
            acknowledged = said;
        usleep((useconds_t)(round * 700));
        kill(pid, SIGKILL);
        while (read(ends[0], &said, sizeof said) == sizeof said) acknowledged = said;
        close(ends[0]);
        assert_int_equal(waitpid(pid, &said, 0), pid);
        assert_true(WIFSIGNALED(said) && acknowledged >= round * 3 + 1);
        assert_ok(store_open(&b.s, b.path, &err));
        assert_ok(store_find(b.s, "manuals", b.mem, &b.c, &err));
        assert_true(b.c.n_documents == acknowledged + 1 || b.c.n_documents == acknowledged + 2);
        for (int i = 0; i <= acknowledged; i++) {
            char name[24];
            store_document d;
            store_piece p;
            snprintf(name, sizeof name, "d%d", i);
            assert_ok(store_document_find(b.s, b.c.id, name, b.mem, &d, &err));
            assert_true(d.n_pieces > 1);
            for (uint32_t k = 0; k < d.n_pieces; k++)
                assert_ok(store_piece_get(b.s, d.id, k, b.mem, &p, &err));
        }
        sqlite3 *db;
        assert_int_equal(sqlite3_open(b.path, &db), SQLITE_OK);
        assert_int_equal(sqlite3_exec(db, "INSERT INTO words_1(words_1, rank) VALUES('integrity-check', 1)",
                                      NULL, NULL, NULL),
                         SQLITE_OK);
        sqlite3_close(db);
        search_answer a;
        search(&b, &a, "words", 3, NULL, 50);
        assert_true(a.n > 1);
        search_done(&a);
        close_bench(&b);
    }
}

static int count_one(void *user, const store_collection *c)
{
    ++*(int *)user;
    return 0;
}

static void names_and_files_that_are_none_are_refused(void **state)
{
    bench b;
    shoal_err err = {0};
    int n = 0;
    open_bench(&b);
    static const char *const BAD[] = {"", ".hidden", "a/b", "a b", "\xC3\xBC", "ok'--"};
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        store_collection c = {.title = "", .metadata = "{}", .model = ""};
        strcpy(c.name, BAD[i]);
        assert_int_equal(store_create(b.s, &c, 0, &err), SHOAL_EINVALID);
    }
    store_collection twice = {.name = "manuals", .title = "", .metadata = "{}", .model = ""};
    assert_int_equal(store_create(b.s, &twice, 0, &err), SHOAL_EINVALID);
    assert_non_null(strstr(err.message, "already"));
    assert_ok(store_each(b.s, "", 100, count_one, &n, &err));
    assert_int_equal(n, 1);
    char junk[128];
    snprintf(junk, sizeof junk, "%s/junk.db", b.folder);
    FILE *f = fopen(junk, "w");
    for (int i = 0; i < 3000; i++) fputs("this is no database ", f);
    fclose(f);
    store *s = NULL;
    assert_int_equal(store_open(&s, junk, &err), SHOAL_EFORMAT);
    assert_non_null(strstr(err.message, "junk.db is damaged"));
    assert_int_equal(store_open(&s, "/proc/no/such.db", &err) < 0, 1);
    close_bench(&b);
}

/* ---- owners ----------------------------------------------------------------------------------------- */

static int note_name(void *user, const store_collection *c)
{
    strcat(strcat(user, c->name), c->own ? " " : "* ");
    return 0;
}

static void assert_list(store *s, const char *owner, const char *after, size_t most, const char *names)
{
    shoal_err err = {0};
    char got[256] = "";
    store_act_for(s, owner);
    assert_ok(store_each(s, after, most, note_name, got, &err));
    assert_string_equal(got, names);
}

static int make(store *s, const char *owner, const char *name, bool shared, int64_t most, shoal_err *err)
{
    store_collection c = {.title = "", .metadata = "{}", .model = "", .piece_bytes = 200, .shared = shared};
    strcpy(c.name, name);
    store_act_for(s, owner);
    return store_create(s, &c, most, err);
}

static void what_is_an_owners_is_not_there_for_others(void **state)
{
    bench b;
    shoal_err err = {0};
    store_collection c;
    open_bench(&b); /* "manuals" is nobody's */
    assert_ok(make(b.s, "alice", "diary", false, 0, &err));
    assert_ok(make(b.s, "alice", "recipes", true, 0, &err));
    assert_ok(make(b.s, "bob", "diary", false, 0, &err));
    assert_list(b.s, "alice", "", 10, "diary manuals recipes ");
    assert_list(b.s, "bob", "", 10, "diary manuals recipes* ");
    assert_list(b.s, "carol", "", 10, "manuals recipes* ");
    assert_list(b.s, "", "", 10, "manuals recipes* ");
    store_act_for(b.s, "carol");
    assert_int_equal(store_find(b.s, "diary", b.mem, &c, &err), SHOAL_ENOTFOUND);
    assert_int_equal(store_delete(b.s, "diary", &err), SHOAL_ENOTFOUND);
    assert_ok(store_find(b.s, "recipes", b.mem, &c, &err));
    assert_int_equal(store_find_own(b.s, "recipes", b.mem, &c, &err), SHOAL_EAUTH);
    assert_int_equal(store_delete(b.s, "recipes", &err), SHOAL_EAUTH);
    assert_int_equal(store_change(b.s, "recipes", "mine", NULL, &err), SHOAL_EAUTH);
    assert_int_equal(make(b.s, "carol", "recipes", true, 0, &err),
                     SHOAL_EINVALID);                         /* shared names are one set */
    assert_ok(make(b.s, "carol", "recipes", false, 0, &err)); /* her own hides it */
    assert_list(b.s, "carol", "", 10, "manuals recipes ");
    store_act_for(b.s, "bob");
    assert_ok(store_delete(b.s, "diary", &err));
    assert_list(b.s, "alice", "", 10, "diary manuals recipes ");
    close_bench(&b);
}

static void collections_are_counted_and_listed_in_pages(void **state)
{
    bench b;
    shoal_err err = {0};
    open_bench(&b);
    assert_ok(make(b.s, "alice", "a", false, 3, &err));
    assert_ok(make(b.s, "alice", "b", false, 3, &err));
    assert_ok(make(b.s, "alice", "c", true, 3, &err));
    assert_int_equal(make(b.s, "alice", "d", false, 3, &err), SHOAL_ELIMIT);
    assert_non_null(strstr(err.message, "max_collections"));
    assert_ok(make(b.s, "bob", "d", false, 3, &err));
    assert_list(b.s, "alice", "", 2, "a b ");
    assert_list(b.s, "alice", "b", 2, "c manuals ");
    assert_list(b.s, "alice", "manuals", 2, "");
    close_bench(&b);
}

static int note_file(void *user, const store_file *f)
{
    strcat(strcat(user, f->name), " ");
    return 0;
}

static int64_t put_file(store *s, const char *owner, const char *name, int64_t created)
{
    shoal_err err = {0};
    store_file f = {.name = name, .purpose = "p", .created = created};
    partial spool = PARTIAL_NONE;
    store_act_for(s, owner);
    assert_ok(store_spool_open(s, &spool, &err));
    assert_ok(store_file_put_spool(s, &f, spool.fd, &err));
    partial_close(&spool);
    return f.id;
}

/* Of the table that triggers fill. */
static int64_t sizes(const store *s, const char *what)
{
    char sql[64];
    sqlite3_stmt *st;
    snprintf(sql, sizeof sql, "SELECT %s FROM file_sizes", what);
    assert_int_equal(sqlite3_prepare_v2(s->file.db, sql, -1, &st, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(st), SQLITE_ROW);
    int64_t n = sqlite3_column_int64(st, 0);
    sqlite3_finalize(st);
    return n;
}

static void files_are_their_owners(void **state)
{
    bench b;
    shoal_err err = {0};
    store_file f;
    char got[64] = "";
    open_bench(&b);
    int64_t one = put_file(b.s, "alice", "one", 1), two = put_file(b.s, "alice", "two", 2);
    int64_t his = put_file(b.s, "bob", "his", 1), all = put_file(b.s, "", "all", 3);
    assert_true(one > 0 && two > 0 && one != two && one > 1 << 20); /* drawn, not counted */
    store_act_for(b.s, "bob");
    assert_int_equal(store_file_get(b.s, one, b.mem, &f, NULL, &err), SHOAL_ENOTFOUND);
    assert_int_equal(store_file_delete(b.s, one, &err), SHOAL_ENOTFOUND);
    assert_ok(store_files(b.s, 0, NULL, 10, note_file, got, &err));
    assert_string_equal(got, "his all ");
    assert_int_equal(store_files(b.s, one, NULL, 10, note_file, got, &err), SHOAL_ENOTFOUND);
    store_act_for(b.s, "alice");
    *got = 0;
    assert_ok(store_files(b.s, one, NULL, 1, note_file, got, &err));
    assert_string_equal(got, "two ");
    *got = 0;
    assert_ok(store_files(b.s, two, NULL, 5, note_file, got, &err));
    assert_string_equal(got, "all ");
    assert_ok(store_file_get(b.s, all, b.mem, &f, NULL, &err));
    assert_int_equal(sizes(b.s, "count(*)"), 4);
    assert_ok(store_file_delete(b.s, one, &err));
    assert_int_equal(sizes(b.s, "count(*)"), 3);
    assert_int_equal(store_file_get(b.s, his, b.mem, &f, NULL, &err), SHOAL_ENOTFOUND);
    close_bench(&b);
}

/* A file of the first version, as it was made: all that it holds is shared, and found as before. */
static void a_file_of_version_1_is_taken_over(void **state)
{
    static const char V1[] =
        "CREATE TABLE collections(id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, title "
        "TEXT NOT"
        " NULL, metadata TEXT NOT NULL, model TEXT NOT NULL, digest TEXT NOT NULL, dims INTEGER NOT NULL,"
        " piece_bytes INTEGER NOT NULL, created INTEGER NOT NULL, revision INTEGER NOT NULL, n_removed "
        "INTEGER NOT"
        " NULL, n_documents INTEGER NOT NULL, n_pieces INTEGER NOT NULL, n_bytes INTEGER NOT NULL);"
        "CREATE TABLE files(id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, purpose TEXT NOT NULL,"
        " created INTEGER NOT NULL, content BLOB NOT NULL);"
        "CREATE TABLE documents(id INTEGER PRIMARY KEY AUTOINCREMENT, collection INTEGER NOT NULL, source "
        "TEXT NOT"
        " NULL, type TEXT NOT NULL, digest TEXT NOT NULL, metadata TEXT NOT NULL, n_bytes INTEGER NOT NULL,"
        " n_pieces INTEGER NOT NULL, created INTEGER NOT NULL, file INTEGER NOT NULL, UNIQUE(collection, "
        "source));"
        "CREATE TABLE pieces(id INTEGER PRIMARY KEY, document INTEGER NOT NULL, ordinal INTEGER NOT NULL, "
        "start"
        " INTEGER NOT NULL, end INTEGER NOT NULL, line INTEGER NOT NULL, title TEXT NOT NULL, text TEXT NOT "
        "NULL,"
        " UNIQUE(document, ordinal));"
        "CREATE TABLE vectors(document INTEGER PRIMARY KEY, n INTEGER NOT NULL, codes BLOB NOT NULL);"
        "INSERT INTO collections VALUES(7, 'old', 'T', '{\"k\":1}', '', '', 0, 200, 5, 3, 0, 1, 1, 9);"
        "INSERT INTO documents VALUES(4, 7, 'a.txt', 'text', 'd', '{}', 9, 1, 5, 0);"
        "INSERT INTO pieces VALUES(1, 4, 0, 0, 9, 1, '', 'old words');"
        "CREATE VIRTUAL TABLE words_7 USING fts5(title, text, content='pieces', content_rowid='id',"
        " tokenize='unicode61 remove_diacritics 2');"
        "CREATE VIRTUAL TABLE vocabulary_7 USING fts5vocab('words_7', 'row');"
        "INSERT INTO words_7(rowid, title, text) SELECT id, title, text FROM pieces;"
        "INSERT INTO files VALUES(12, 'f', 'p', 5, x'616263');"
        "PRAGMA user_version = 1;";
    bench b;
    shoal_err err = {0};
    store_collection c;
    store_document d;
    store_file f;
    const char *content;
    sqlite3 *db;
    found hit[4];
    open_bench(&b);
    store_close(b.s);
    snprintf(b.path, sizeof b.path, "%s/v1.db", b.folder);
    assert_int_equal(sqlite3_open(b.path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, V1, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    for (int again = 0; again < 2; again++) {
        b.s = NULL;
        assert_ok(store_open(&b.s, b.path, &err));
        store_act_for(b.s, "alice");
        assert_ok(store_find(b.s, "old", b.mem, &c, &err));
        assert_true(c.id == 7 && c.shared && c.own && !c.owned && c.n_documents == 1 && c.revision == 3);
        assert_string_equal(c.metadata, "{\"k\":1}");
        assert_ok(store_document_find(b.s, 7, "a.txt", b.mem, &d, &err));
        assert_int_equal(store_words(b.s, &c, "words", NULL, hit, 4, &err), 1);
        assert_ok(store_file_get(b.s, 12, b.mem, &f, &content, &err));
        assert_string_equal(content, "abc");
        assert_int_equal(sizes(b.s, "sum(n_bytes)"), 3);
        if (again == 0) assert_ok(make(b.s, "alice", "new", false, 0, &err));
        if (again == 0) store_close(b.s);
    }
    assert_list(b.s, "bob", "", 10, "old ");
    close_bench(&b);
}

/* SQLite holds less than 1e9 bytes of a row. */
static void a_file_that_no_row_holds_is_refused(void **state)
{
    bench b;
    shoal_err err = {0};
    store_file f = {.name = "long", .purpose = "p", .n_bytes = INT64_C(1000000001)};
    partial spool = PARTIAL_NONE;
    open_bench(&b);
    assert_ok(store_spool_open(b.s, &spool, &err));
    assert_int_equal(store_file_put_spool(b.s, &f, spool.fd, &err), SHOAL_ELIMIT);
    assert_non_null(strstr(err.message, "1000000001 bytes"));
    f.n_bytes = 0;
    assert_ok(store_file_put_spool(b.s, &f, spool.fd, &err));
    partial_close(&spool);
    close_bench(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(documents_are_found_by_words_and_meaning),
        cmocka_unit_test(a_changed_document_replaces_the_old),
        cmocka_unit_test(what_is_deleted_is_not_found),
        cmocka_unit_test(names_and_metadata_change),
        cmocka_unit_test(filters_hide_documents),
        cmocka_unit_test(filters_that_are_none_are_refused),
        cmocka_unit_test(images_keep_up_with_other_writers),
        cmocka_unit_test(vectors_of_another_model_are_refused),
        cmocka_unit_test(images_give_way_and_say_when_there_is_no_room),
        cmocka_unit_test(what_was_acknowledged_survives_a_kill),
        cmocka_unit_test(names_and_files_that_are_none_are_refused),
        cmocka_unit_test(a_file_that_no_row_holds_is_refused),
        cmocka_unit_test(what_is_an_owners_is_not_there_for_others),
        cmocka_unit_test(collections_are_counted_and_listed_in_pages),
        cmocka_unit_test(files_are_their_owners),
        cmocka_unit_test(a_file_of_version_1_is_taken_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
