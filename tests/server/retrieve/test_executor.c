/* Documents in and questions out over a loop, with a model of letters: what comes in whole, what degrades,
 * and that whoever leaves at any moment leaves nothing behind. */
#include "letters.h"

#include "json/json.h"
#include "retrieve/find.h"
#include "retrieve/ingest.h"

typedef struct bench {
    uv_loop_t loop;
    letters model;
    executor *executor;
    char folder[64];
    bool over;  /* done came */
    int n_late; /* calls of on_late */
    int status;
    char text[4000]; /* what it said */
} bench;

static void open_bench(bench *b)
{
    shoal_err err = {0};
    char path[96];
    *b = (bench){.over = false};
    make_folder(b->folder);
    snprintf(path, sizeof path, "%s/c.db", b->folder);
    assert_int_equal(uv_loop_init(&b->loop), 0);
    letters_open(&b->model, &b->loop);
    assert_ok(executor_new(&b->executor, &b->loop, path, (size_t)16 << 20, 2, &err));
}

static void close_bench(bench *b)
{
    executor_free(b->executor);
    letters_close(&b->model);
    uv_run(&b->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&b->loop), 0);
    remove_folder(b->folder);
}

static void run_until_over(bench *b)
{
    while (!b->over) assert_true(uv_run(&b->loop, UV_RUN_ONCE) || b->over);
    b->over = false;
}

/* ---- jobs ------------------------------------------------------------------------------------------- */

typedef struct make_job {
    executor_job job;
    bench *b;
    const char *name;
} make_job;

static int work_make(executor_job *j, const executor_tools *t, shoal_err *err)
{
    store_collection c = {.title = "", .metadata = "{}", .model = "letters", .piece_bytes = 120};
    strcpy(c.name, ((make_job *)j)->name);
    return store_create(t->store, &c, 0, err);
}

static void made(executor_job *j)
{
    bench *b = ((make_job *)j)->b;
    b->over = true;
    b->status = j->rc;
}

static void make_collection(bench *b, const char *name)
{
    make_job j = {.job = {.work = work_make, .done = made, .queue = EXECUTOR_WRITES}, .b = b, .name = name};
    executor_submit(b->executor, &j.job);
    run_until_over(b);
}

static void a_job_says_how_it_went(void **state)
{
    bench b;
    open_bench(&b);
    make_collection(&b, "one");
    assert_int_equal(b.status, 0);
    make_collection(&b, "one");
    assert_int_equal(b.status, SHOAL_EINVALID);
    close_bench(&b);
}

static void a_place_that_is_none_fails_every_job(void **state)
{
    bench b;
    shoal_err err = {0};
    open_bench(&b);
    executor_free(b.executor);
    assert_ok(executor_new(&b.executor, &b.loop, NULL, 1 << 20, 1, &err));
    make_collection(&b, "one");
    assert_int_equal(b.status, SHOAL_EUNAVAILABLE);
    executor_free(b.executor);
    assert_ok(executor_new(&b.executor, &b.loop, "/proc/no/where.db", 1 << 20, 1, &err));
    make_collection(&b, "one");
    assert_true(b.status == SHOAL_EIO || b.status == SHOAL_EAUTH);
    close_bench(&b);
}

static void on_late(executor_job *j)
{
    bench *b = ((make_job *)j)->b;
    b->status += j->rc == SHOAL_ECANCELLED;
    b->n_late++;
    free(j);
}

/* Those that it has begun, and those that it has not; where it had done all before it went, again. */
static void a_freed_executor_ends_every_job(void **state)
{
    enum { N = 40, TRIES = 50 };
    bool some_waited = false;
    for (int t = 0; t < TRIES && !some_waited; t++) {
        bench b;
        open_bench(&b);
        for (int i = 0; i < N; i++) {
            make_job *j = calloc(1, sizeof *j);
            *j = (make_job){.job = {.work = work_make,
                                    .done = on_late,
                                    .queue = i % 2 ? EXECUTOR_WRITES : EXECUTOR_READS},
                            .b = &b,
                            .name = "x"};
            executor_submit(b.executor, &j->job);
        }
        close_bench(&b);
        assert_int_equal(b.n_late, N);
        some_waited = b.status > 0;
    }
    assert_true(some_waited);
}

/* ---- jobs that are held ----------------------------------------------------------------------------------- */

static const char *const OWNERS[] = {NULL, "1", "2", "3"};

typedef struct held_job { /* runs until it is let go */
    executor_job job;
    atomic_int began;
    atomic_bool let_go;
    int ended; /* done came */
} held_job;

static int work_held(executor_job *j, const executor_tools *t, shoal_err *err)
{
    held_job *h = (held_job *)j;
    atomic_fetch_add(&h->began, 1);
    while (!atomic_load(&h->let_go)) usleep(1000);
    return 0;
}

static void held_ended(executor_job *j)
{
    ((held_job *)j)->ended++;
}

static void submit_held(bench *b, held_job *h, executor_queue queue, const char *owner)
{
    h->job = (executor_job){.work = work_held, .done = held_ended, .queue = queue, .owner = owner};
    executor_submit(b->executor, &h->job);
}

static void wait_began(const held_job *h)
{
    while (atomic_load(&h->began) == 0) usleep(1000);
}

static void let_go(bench *b, held_job *h, size_t n)
{
    for (size_t i = 0; i < n; i++) atomic_store(&h[i].let_go, true);
    for (size_t i = 0; i < n; i++)
        while (!h[i].ended) uv_run(&b->loop, UV_RUN_ONCE);
}

/* ---- documents -------------------------------------------------------------------------------------- */

static void ingested(void *user, const ingest_result *r)
{
    bench *b = user;
    b->over = true;
    b->status = r->status;
    size_t n = (size_t)snprintf(b->text, sizeof b->text, "%s", r->message);
    for (size_t i = 0; i < r->n; i++)
        n += (size_t)snprintf(b->text + n, sizeof b->text - n, "%s %s %zu%s%s;", r->v[i].source,
                              ingest_status_word(r->v[i].status), r->v[i].n_pieces, *r->v[i].error ? " " : "",
                              r->v[i].error);
}

static ingest *start_ingest(bench *b, const char *body)
{
    call_context ctx = {.request_id = "r"};
    ingest_ask ask = {.executor = b->executor,
                      .calls = &b->model.base,
                      .ctx = &ctx,
                      .collection = "one",
                      .body = body,
                      .n_body = strlen(body),
                      .user = b,
                      .done = ingested};
    ingest *in = ingest_start(&ask);
    assert_non_null(in);
    return in;
}

static void add(bench *b, const char *body, int status, const char *says)
{
    start_ingest(b, body);
    run_until_over(b);
    if (b->status != status || !strstr(b->text, says)) fail_msg("%s gave %d: %s", body, b->status, b->text);
}

static void documents_come_in_and_are_known_again(void **state)
{
    bench b;
    open_bench(&b);
    make_collection(&b, "one");
    const char *both = "{\"documents\":[{\"source\":\"a.md\",\"text\":\"# T\\nzebra "
                       "zoo\"},{\"source\":\"b\",\"text\":\"\"}]}";
    add(&b, both, 0, "a.md added 1;b added 0;");
    size_t asked = b.model.n_calls;
    add(&b, both, 0, "a.md unchanged 1;b unchanged 0;");
    assert_int_equal(b.model.n_calls, asked);
    add(&b, "{\"source\":\"a.md\",\"text\":\"quiet\"}", 0, "a.md replaced 1;");
    add(&b, "{\"source\":\"a.md\",\"text\":\"quiet\",\"metadata\":{\"k\":1}}", 0, "a.md replaced 1;");
    add(&b,
        "{\"documents\":[{\"source\":\"c.csv\",\"text\":\"a,b\\n1\"},{\"source\":\"d\",\"text\":\"fine\"}]}",
        0, "c.csv failed 0 the document: line 2: 1 fields, but the header has 2;d added 1;");
    close_bench(&b);
}

static void requests_that_are_none_put_nothing(void **state)
{
    static const struct {
        const char *body, *says;
        int status;
    } CASES[] = {
        {"", "no JSON", SHOAL_EINVALID},
        {"[]", "\"documents\" must be a list", SHOAL_EINVALID},
        {"{\"documents\":[]}", "1 to 1000", SHOAL_EINVALID},
        {"{\"documents\":[7]}", "documents[0] must be an object", SHOAL_EINVALID},
        {"{\"source\":\"a\"}", "text is missing", SHOAL_EINVALID},
        {"{\"source\":7,\"text\":\"x\"}", "source must be a text", SHOAL_EINVALID},
        {"{\"source\":\"a\",\"text\":\"x\",\"type\":\"pdf\"}", "type must be text, markdown, html or csv",
         SHOAL_EINVALID},
        {"{\"source\":\"a\",\"text\":\"x\",\"metadata\":[]}", "metadata must be an object", SHOAL_EINVALID},
        {"{\"source\":\"a\",\"text\":\"x\",\"metadata\":{\"id\":18446744073709551615}}",
         "'id' is beyond 2^63", SHOAL_EINVALID},
        {"{\"file_id\":\"file-7\"}", "there is no such file", SHOAL_ENOTFOUND},
        {"{\"file_id\":\"x\"}", "there is no file 'x'", SHOAL_ENOTFOUND},
        {"{\"documents\":[{\"source\":\"a\",\"text\":\"x\"},{\"source\":\"a\",\"text\":\"y\"}]}",
         "have one source", SHOAL_EINVALID},
    };
    bench b;
    open_bench(&b);
    add(&b, "{\"source\":\"a\",\"text\":\"x\"}", SHOAL_ENOTFOUND, "no collection 'one'");
    make_collection(&b, "one");
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        add(&b, CASES[i].body, CASES[i].status, CASES[i].says);
    close_bench(&b);
}

static void what_is_too_long_for_the_model_is_cut_again(void **state)
{
    bench b;
    buf body = {0};
    open_bench(&b);
    make_collection(&b, "one");
    b.model.longest = 50; /* pieces have 120 bytes at first */
    buf_puts(&body,
             "{\"documents\":[{\"source\":\"short\",\"text\":\"tiny\"},{\"source\":\"long\",\"text\":\"");
    for (int i = 0; i < 60; i++) buf_puts(&body, "some words here. ");
    buf_puts(&body, "\"}]}");
    add(&b, body.data, 0, "short added 1;long added ");
    b.model.longest = 20;
    buf_clear(&body);
    buf_puts(&body, "{\"source\":\"dense\",\"text\":\"");
    for (int i = 0; i < 60; i++) buf_puts(&body, "abcdefghij");
    buf_puts(&body, "\"}");
    add(&b, body.data, 0, "dense failed 0 the model cannot read");
    buf_done(&body);
    close_bench(&b);
}

static void a_model_that_fails_puts_nothing(void **state)
{
    bench b;
    open_bench(&b);
    make_collection(&b, "one");
    b.model.status = SHOAL_EUNAVAILABLE;
    add(&b, "{\"source\":\"a\",\"text\":\"x\"}", SHOAL_EUNAVAILABLE, "away");
    b.model.status = 0;
    add(&b, "{\"source\":\"a\",\"text\":\"x\"}", 0, "a added 1;");
    b.model.digest = "letters-2";
    add(&b, "{\"source\":\"b\",\"text\":\"x\"}", SHOAL_EDIGEST, "another file of letters");
    close_bench(&b);
}

/* ---- questions -------------------------------------------------------------------------------------- */

static void found_them(void *user, const find_result *r)
{
    bench *b = user;
    b->over = true;
    b->status = r->status;
    size_t n = (size_t)snprintf(b->text, sizeof b->text, "%s", r->degraded ? r->degraded : r->message);
    for (size_t i = 0; i < r->n; i++)
        n += (size_t)snprintf(b->text + n, sizeof b->text - n, "|%s", r->v[i].piece.source);
}

static find *start_find(bench *b, const char *text, find_mode mode, const char *rerank)
{
    shoal_err err = {0};
    call_context ctx = {.request_id = "r"};
    find *f = NULL;
    find_ask ask = {.executor = b->executor,
                    .calls = &b->model.base,
                    .ctx = &ctx,
                    .collection = "one",
                    .text = text,
                    .mode = mode,
                    .rerank = rerank,
                    .k = 2,
                    .user = b,
                    .done = found_them};
    assert_ok(find_start(&f, &ask, &err));
    return f;
}

static void ask_for(bench *b, const char *text, find_mode mode, const char *rerank, const char *says)
{
    start_find(b, text, mode, rerank);
    run_until_over(b);
    if (strncmp(b->text, says, strlen(says)) != 0)
        fail_msg("%s: %d %s, wanted %s", text, b->status, b->text, says);
}

static void fill(bench *b)
{
    make_collection(b, "one");
    add(b,
        "{\"documents\":[{\"source\":\"zoo\",\"text\":\"zzz zebras "
        "puzzle\"},{\"source\":\"sea\",\"text\":\"salt seas, and a much longer "
        "text\"},{\"source\":\"oak\",\"text\":\"oak wood look\"}]}",
        0, "added");
}

/* What is confirmed after the file was removed, or moved away by a person, is in the file that is there then,
 * and no vectors of the old one are found. */
static void a_file_that_is_gone_is_made_anew(void **state)
{
    static const char *const ends[] = {"", "-wal", "-shm"};
    bench b;
    char path[160];
    shoal_err err = {0};
    open_bench(&b);
    fill(&b);
    ask_for(&b, "zz", FIND_MEANING, NULL, "|zoo");
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        snprintf(path, sizeof path, "%s/c.db%s", b.folder, ends[i]);
        assert_int_equal(unlink(path), 0);
    }
    for (int i = 0; i < 8; i++) /* whichever thread is asked */
        ask_for(&b, "zz", FIND_MEANING, NULL, "there is no collection 'one'");
    make_collection(&b, "one");
    assert_int_equal(b.status, 0);
    add(&b, "{\"documents\":[{\"source\":\"new\",\"text\":\"zzz puzzles\"}]}", 0, "added");
    for (int i = 0; i < 8; i++) ask_for(&b, "zz", FIND_MEANING, NULL, "|new");
    executor_free(b.executor);
    snprintf(path, sizeof path, "%s/c.db", b.folder);
    assert_ok(executor_new(&b.executor, &b.loop, path, (size_t)16 << 20, 2, &err));
    ask_for(&b, "zz", FIND_MEANING, NULL, "|new");
    close_bench(&b);
}

static void questions_find_by_letters_words_and_both(void **state)
{
    bench b;
    open_bench(&b);
    ask_for(&b, "x", FIND_HYBRID, NULL, "there is no collection 'one'");
    make_collection(&b, "one");
    ask_for(&b, "x", FIND_HYBRID, NULL, "");
    add(&b,
        "{\"documents\":[{\"source\":\"zoo\",\"text\":\"zzz zebras "
        "puzzle\"},{\"source\":\"sea\",\"text\":\"salt seas, and a much longer "
        "text\"},{\"source\":\"oak\",\"text\":\"oak wood look\"}]}",
        0, "added");
    ask_for(&b, "zz", FIND_MEANING, NULL, "|zoo");
    ask_for(&b, "wood", FIND_WORDS, NULL, "|oak");
    ask_for(&b, "seas", FIND_HYBRID, NULL, "|sea");
    ask_for(&b, "seas", FIND_HYBRID, "ranker", "|oak"); /* the shortest */
    close_bench(&b);
}

static void without_its_model_a_question_has_words(void **state)
{
    bench b;
    open_bench(&b);
    fill(&b);
    b.model.status = SHOAL_EUNAVAILABLE;
    ask_for(&b, "seas", FIND_HYBRID, NULL, "found by words alone: the model is away|sea");
    ask_for(&b, "seas", FIND_HYBRID, "ranker", "not reranked: the model is away|sea");
    ask_for(&b, "seas", FIND_MEANING, NULL, "the model is away");
    assert_int_equal(b.status, SHOAL_EUNAVAILABLE);
    b.model.status = SHOAL_EDEADLINE;
    ask_for(&b, "seas", FIND_HYBRID, NULL, "the model is away");
    b.model.status = 0;
    b.model.digest = "letters-2";
    ask_for(&b, "seas", FIND_HYBRID, NULL, "'one' holds vectors of another file");
    ask_for(&b, "seas", FIND_WORDS, NULL, "|sea");
    close_bench(&b);
}

static void vectors_without_room_leave_the_words(void **state)
{
    bench b;
    shoal_err err = {0};
    char path[96];
    open_bench(&b);
    fill(&b);
    executor_free(b.executor);
    snprintf(path, sizeof path, "%s/c.db", b.folder);
    assert_ok(executor_new(&b.executor, &b.loop, path, 16, 1, &err));
    ask_for(&b, "seas", FIND_MEANING, NULL, "the vectors of 'one' need about 1 MiB");
    assert_int_equal(b.status, SHOAL_ELIMIT);
    ask_for(&b, "seas", FIND_HYBRID, NULL, "found by words alone: the vectors of 'one' need");
    assert_non_null(strstr(b.text, "|sea"));
    close_bench(&b);
}

/* Leave after n turns of the loop, for every n up to the end: nothing is called, and nothing is left. */
static void whoever_leaves_leaves_nothing(void **state)
{
    bench b;
    open_bench(&b);
    fill(&b);
    for (int turns = 0; turns < 12; turns++) {
        char body[64];
        snprintf(body, sizeof body, "{\"source\":\"t\",\"text\":\"turn %d\"}", turns);
        ingest *in = start_ingest(&b, body);
        for (int i = 0; i < turns && !b.over; i++) uv_run(&b.loop, UV_RUN_NOWAIT), usleep(200);
        if (!b.over) ingest_cancel(in);
        b.over = false;
        find *f = start_find(&b, "seas", FIND_HYBRID, "ranker");
        for (int i = 0; i < turns && !b.over; i++) uv_run(&b.loop, UV_RUN_NOWAIT), usleep(200);
        if (!b.over) find_cancel(f);
        b.over = false;
    }
    ask_for(&b, "seas", FIND_HYBRID, NULL, "|sea");
    start_ingest(&b, "{\"source\":\"u\",\"text\":\"left in the middle\"}");
    ingest *in = start_ingest(&b, "{\"source\":\"v\",\"text\":\"left in the middle\"}");
    ingest_cancel(in);
    run_until_over(&b);
    close_bench(&b);
}

/* Searches go on while documents come in, and each sees a whole state. */
static void searches_and_writes_go_side_by_side(void **state)
{
    bench b;
    char body[4096];
    open_bench(&b);
    fill(&b);
    for (int round = 0; round < 25; round++) {
        bench other = b; /* its own notes, the same executor */
        size_t n = (size_t)snprintf(body, sizeof body, "{\"documents\":[");
        for (int i = 0; i < 10; i++)
            n += (size_t)snprintf(body + n, sizeof body - n,
                                  "%s{\"source\":\"d%d\",\"text\":\"qqq%d round %d\"}", i ? "," : "", i, i,
                                  round);
        snprintf(body + n, sizeof body - n, "]}");
        b.over = other.over = false;
        start_ingest(&b, body);
        call_context ctx = {.request_id = "r"};
        shoal_err err = {0};
        find *f = NULL;
        find_ask ask = {.executor = b.executor,
                        .calls = &b.model.base,
                        .ctx = &ctx,
                        .collection = "one",
                        .text = "qqq3",
                        .k = 2,
                        .user = &other,
                        .done = found_them};
        assert_ok(find_start(&f, &ask, &err));
        while (!b.over || !other.over) uv_run(&b.loop, UV_RUN_ONCE);
        assert_int_equal(b.status, 0);
        assert_int_equal(other.status, 0);
        if (round > 0) assert_int_equal(strncmp(other.text, "|d3", 3), 0);
    }
    close_bench(&b);
}

/* Every thread that indexes is held, and more wait: what others look for is found meanwhile. */
static void searches_do_not_wait_for_indexing(void **state)
{
    enum { N = 8 };
    bench b;
    held_job held[N] = {0};
    open_bench(&b);
    fill(&b);
    for (size_t i = 0; i < N; i++) submit_held(&b, &held[i], EXECUTOR_INDEXING, OWNERS[i % 4]);
    wait_began(&held[0]);
    for (int i = 0; i < 5; i++) ask_for(&b, "seas", FIND_HYBRID, NULL, "|sea");
    make_collection(&b, "two");
    assert_int_equal(b.status, 0);
    for (size_t i = 0; i < N; i++) assert_int_equal(held[i].ended, 0);
    let_go(&b, held, N);
    close_bench(&b);
}

/* One key's jobs wait for each other; another key's do not wait for them. */
static void one_owner_does_not_take_all_threads(void **state)
{
    static const struct {
        executor_queue queue;
        size_t most_each;
    } QUEUES[] = {{EXECUTOR_INDEXING, 1}, {EXECUTOR_READS, 2}};
    enum { N = 6 };
    for (size_t q = 0; q < 2; q++) {
        bench b;
        held_job mine[N] = {0}, other = {0};
        open_bench(&b);
        fill(&b);
        for (size_t i = 0; i < N; i++) submit_held(&b, &mine[i], QUEUES[q].queue, OWNERS[1]);
        for (size_t i = 0; i < QUEUES[q].most_each; i++) wait_began(&mine[i]);
        submit_held(&b, &other, QUEUES[q].queue, OWNERS[2]);
        wait_began(&other);
        let_go(&b, &other, 1);
        size_t n_began = 0;
        for (size_t i = 0; i < N; i++) n_began += (size_t)atomic_load(&mine[i].began);
        assert_int_equal(n_began, QUEUES[q].most_each);
        let_go(&b, mine, N);
        close_bench(&b);
    }
}

/* Of two owners who wait for the one writer, neither is served twice before the other. */
static void owners_take_turns(void **state)
{
    enum { N = 4 };
    bench b;
    held_job first = {0}, many[N] = {0}, one = {0};
    open_bench(&b);
    fill(&b);
    submit_held(&b, &first, EXECUTOR_WRITES, OWNERS[1]);
    wait_began(&first);
    for (size_t i = 0; i < N; i++) submit_held(&b, &many[i], EXECUTOR_WRITES, OWNERS[1]);
    submit_held(&b, &one, EXECUTOR_WRITES, OWNERS[2]);
    let_go(&b, &first, 1);
    wait_began(&one);
    for (size_t i = 0; i < N; i++) assert_int_equal(atomic_load(&many[i].began), 0);
    let_go(&b, &one, 1);
    let_go(&b, many, N);
    close_bench(&b);
}

/* ---- work that nobody wants any more ---------------------------------------------------------------------- */

typedef struct endless_job { /* counts until it is told to stop */
    executor_job job;
    atomic_ulong n_steps;
    bool ended;
} endless_job;

static int work_endless(executor_job *j, const executor_tools *t, shoal_err *err)
{
    endless_job *e = (endless_job *)j;
    int rc = 0;
    while ((rc = steps_add(&j->steps, 512, err)) == 0) atomic_store(&e->n_steps, j->steps.n);
    return rc;
}

static void endless_ended(executor_job *j)
{
    ((endless_job *)j)->ended = true;
}

static void cancelled_jobs_end_within_a_check(void **state)
{
    bench b;
    endless_job e = {0}, waits = {0};
    open_bench(&b);
    fill(&b);
    e.job =
        (executor_job){.work = work_endless, .done = endless_ended, .queue = EXECUTOR_INDEXING, .owner = "1"};
    waits.job =
        (executor_job){.work = work_endless, .done = endless_ended, .queue = EXECUTOR_INDEXING, .owner = "1"};
    executor_submit(b.executor, &e.job);
    executor_submit(b.executor, &waits.job);
    while (atomic_load(&e.n_steps) == 0) usleep(1000);
    executor_cancel(b.executor, &waits.job);
    while (!waits.ended) uv_run(&b.loop, UV_RUN_ONCE);
    assert_int_equal(waits.job.rc, SHOAL_ECANCELLED);
    assert_int_equal(waits.job.steps.n, 0); /* it never ran */
    assert_false(e.ended);
    executor_cancel(b.executor, &e.job);
    while (!e.ended) uv_run(&b.loop, UV_RUN_ONCE);
    assert_int_equal(e.job.rc, SHOAL_ECANCELLED);
    close_bench(&b);
}

/* Several checks were passed; from the one that sees the flag not one step more is counted. */
static void the_flag_is_seen_at_each_check(void **state)
{
    atomic_bool cancelled = false;
    shoal_err err = {0};
    steps s = {.cancel = cancel_by_flag(&cancelled)};
    for (int i = 0; i < 1000; i++) assert_int_equal(steps_add(&s, 1000, &err), 0);
    uint64_t before = s.n;
    atomic_store(&cancelled, true);
    while (steps_add(&s, 1000, &err) == 0) continue;
    assert_true(s.n - before <= STEPS_PER_CHECK + 1000);
}

static void a_freed_executor_cancels_what_runs(void **state)
{
    bench b;
    endless_job e = {0};
    open_bench(&b);
    fill(&b);
    e.job = (executor_job){.work = work_endless, .done = endless_ended, .queue = EXECUTOR_INDEXING};
    executor_submit(b.executor, &e.job);
    while (atomic_load(&e.n_steps) == 0) usleep(1000);
    close_bench(&b);
    assert_true(e.ended);
    assert_int_equal(e.job.rc, SHOAL_ECANCELLED);
}

/* A client that leaves: of its long document no further batch is embedded, and nothing is put. */
static void a_client_that_leaves_ends_the_embedding(void **state)
{
    bench b;
    buf body = {0};
    open_bench(&b);
    make_collection(&b, "one");
    buf_puts(&body, "{\"source\":\"long\",\"text\":\"");
    for (int i = 0; i < 20000; i++) buf_puts(&body, "some words here. ");
    buf_puts(&body, "\"}");
    ingest *in = start_ingest(&b, body.data);
    while (b.model.n_calls < 3) uv_run(&b.loop, UV_RUN_ONCE);
    ingest_cancel(in);
    size_t n_calls = b.model.n_calls;
    ask_for(&b, "words", FIND_WORDS, NULL, "");
    assert_string_equal(b.text, "");
    assert_int_equal(b.model.n_calls, n_calls);
    buf_done(&body);
    close_bench(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(searches_do_not_wait_for_indexing),
        cmocka_unit_test(one_owner_does_not_take_all_threads),
        cmocka_unit_test(owners_take_turns),
        cmocka_unit_test(cancelled_jobs_end_within_a_check),
        cmocka_unit_test(the_flag_is_seen_at_each_check),
        cmocka_unit_test(a_freed_executor_cancels_what_runs),
        cmocka_unit_test(a_client_that_leaves_ends_the_embedding),
        cmocka_unit_test(a_file_that_is_gone_is_made_anew),
        cmocka_unit_test(a_job_says_how_it_went),
        cmocka_unit_test(a_place_that_is_none_fails_every_job),
        cmocka_unit_test(a_freed_executor_ends_every_job),
        cmocka_unit_test(documents_come_in_and_are_known_again),
        cmocka_unit_test(requests_that_are_none_put_nothing),
        cmocka_unit_test(what_is_too_long_for_the_model_is_cut_again),
        cmocka_unit_test(a_model_that_fails_puts_nothing),
        cmocka_unit_test(questions_find_by_letters_words_and_both),
        cmocka_unit_test(without_its_model_a_question_has_words),
        cmocka_unit_test(vectors_without_room_leave_the_words),
        cmocka_unit_test(whoever_leaves_leaves_nothing),
        cmocka_unit_test(searches_and_writes_go_side_by_side),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
