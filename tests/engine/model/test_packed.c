/* Images of packed weights: what is written is found again; whatever else lies there is refused, and never
 * read past its end. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/pages.h"
#include "compute/weights.h"
#include "model/packed/packed_store.h"
#include "store/lru_folder.h"

enum { ROWS = 160, COLS = 768, N = 40 };

typedef struct place {
    char dir[64], path[128];
    weights *w;
    packed_head head;
} place;

/* About 1.8 MB a matrix of F32 and less of others: the payload spans several huge pages. */
static weights *pack_some(uint64_t seed)
{
    weights *w;
    uint8_t *src = malloc((size_t)ROWS * COLS * 4);
    assert_int_equal(weights_new(&w, NULL, 0, NULL), 0);
    for (size_t i = 0; i < (size_t)ROWS * COLS * 4; i++) src[i] = (uint8_t)rng_mix(seed + i);
    for (uint64_t i = 0; i < N; i++) {
        wmat *m;
        const wmat_part part = {src, ROWS - i % 7, NULL};
        assert_int_equal(wmat_join(&m, w, i, (dtype)(i % DT_COUNT), &part, 1, COLS, NULL, ISA_SCALAR, NULL),
                         0);
        wmat_free(m);
    }
    free(src);
    return w;
}

static void open_place(place *p)
{
    shoal_err err;
    snprintf(p->dir, sizeof p->dir, "/tmp/shoal-packed-XXXXXX");
    assert_non_null(mkdtemp(p->dir));
    snprintf(p->path, sizeof p->path, "%s/a.packed", p->dir);
    p->w = pack_some(1);
    p->head = (packed_head){.first_layer = 2,
                            .end_layer = 5,
                            .file = {.device = 1, .inode = 2, .ctime_ns = 9},
                            .name = "a model"};
    sha256_of("model", 5, &p->head.model);
    assert_int_equal(weights_layout(ISA_SCALAR, &p->head.layout, &err), 0);
}

static void close_place(place *p)
{
    char cmd[128];
    weights_free(p->w);
    snprintf(cmd, sizeof cmd, "rm -r %s", p->dir);
    assert_int_equal(system(cmd), 0);
}

static void write_it(place *p)
{
    shoal_err err;
    if (packed_write(p->path, p->head, p->w, NULL, &err) != 0) fail_msg("%s", err.message);
}

static void assert_same_weights(const packed *m, const weights *w)
{
    size_t n;
    const weights_item *items = packed_items(m, &n);
    assert_int_equal(n, weights_count(w));
    for (size_t i = 0; i < n; i++) {
        const weights_item *a = &items[i], *b = weights_at(w, i);
        assert_true(a->name == b->name && a->type == b->type && a->rows == b->rows && a->cols == b->cols);
        assert_true(a->codes_bytes == b->codes_bytes && a->scales_bytes == b->scales_bytes);
        assert_memory_equal(a->codes, b->codes, a->codes_bytes);
        if (a->scales_bytes) assert_memory_equal(a->scales, b->scales, a->scales_bytes);
    }
}

static int try_open(const place *p, const packed_head *want, bool whole, shoal_err *err)
{
    packed *m = NULL;
    int rc = packed_open(&m, p->path, want, whole, err);
    if (rc == 0) assert_same_weights(m, p->w);
    packed_close(m);
    return rc;
}

static void what_was_written_is_mapped(void **state)
{
    place p;
    shoal_err err;
    open_place(&p);
    write_it(&p);
    for (int whole = 0; whole < 2; whole++) assert_int_equal(try_open(&p, &p.head, whole, &err), 0);
    packed_head got;
    assert_int_equal(packed_peek(&got, p.path, &err), 0);
    assert_memory_equal(&got.file, &p.head.file, sizeof got.file);
    assert_string_equal(got.name, "a model");
    assert_string_equal(got.type, "F32"); /* the first of those that are as many */
    close_place(&p);
}

/* The same bytes at the same addresses, whatever pages they are in. */
static void pages_become_huge_under_readers(void **state)
{
    place p;
    shoal_err err;
    open_place(&p);
    write_it(&p);
    for (int own = 0; own < 2; own++) {
        packed *m;
        assert_int_equal(packed_open(&m, p.path, &p.head, false, &err), 0);
        packed_pages got = packed_enlarge(m, own, NULL);
        assert_true(own ? got != PACKED_SMALL : got != PACKED_OWN_HUGE);
        assert_same_weights(m, p.w);
        packed_close(m);
        atomic_bool stop = true;
        assert_int_equal(packed_open(&m, p.path, &p.head, false, &err), 0);
        assert_int_equal(packed_enlarge(m, own, &stop), PACKED_SMALL);
        assert_same_weights(m, p.w);
        packed_close(m);
    }
    close_place(&p);
}

static void others_are_refused(void **state)
{
    place p;
    shoal_err err;
    open_place(&p);
    assert_int_equal(try_open(&p, &p.head, false, &err), SHOAL_ENOTFOUND);
    write_it(&p);
    packed_head want = p.head;
    want.model.bytes[3] ^= 1;
    assert_int_equal(try_open(&p, &want, false, &err), SHOAL_EDIGEST);
    assert_string_equal(err.message, "it is of another model");
    want = p.head;
    want.layout.bytes[31] ^= 128;
    assert_int_equal(try_open(&p, &want, false, &err), SHOAL_EDIGEST);
    want = p.head;
    want.end_layer++;
    assert_int_equal(try_open(&p, &want, false, &err), SHOAL_EDIGEST);
    close_place(&p);
}

static void files_that_others_may_write_are_refused(void **state)
{
    place p;
    shoal_err err;
    char link_path[160];
    open_place(&p);
    write_it(&p);
    assert_int_equal(chmod(p.path, 0620), 0);
    assert_int_equal(try_open(&p, &p.head, false, &err), SHOAL_EAUTH);
    assert_int_equal(chmod(p.path, 0602), 0);
    assert_int_equal(try_open(&p, &p.head, false, &err), SHOAL_EAUTH);
    assert_int_equal(chmod(p.path, 0600), 0);
    snprintf(link_path, sizeof link_path, "%s.real", p.path);
    assert_int_equal(rename(p.path, link_path), 0);
    assert_int_equal(symlink(link_path, p.path), 0);
    assert_int_not_equal(try_open(&p, &p.head, false, &err), 0);
    assert_int_equal(unlink(p.path), 0);
    assert_int_equal(mkdir(p.path, 0700), 0);
    assert_int_equal(try_open(&p, &p.head, false, &err), SHOAL_EFORMAT);
    assert_int_equal(rmdir(p.path), 0);
    assert_int_equal(mkfifo(p.path, 0600), 0);
    assert_int_equal(try_open(&p, &p.head, false, &err), SHOAL_EFORMAT);
    close_place(&p);
}

static void flip(const char *path, off_t at, uint8_t bits)
{
    int fd = open(path, O_RDWR);
    uint8_t b;
    assert_true(fd >= 0 && pread(fd, &b, 1, at) == 1);
    b ^= bits;
    assert_true(pwrite(fd, &b, 1, at) == 1);
    close(fd);
}

/* Any bit of head and index; one of the weights is met when they are compared whole. */
static void a_flipped_bit_is_met(void **state)
{
    place p;
    shoal_err err;
    packed_head h;
    open_place(&p);
    write_it(&p);
    assert_int_equal(packed_peek(&h, p.path, &err), 0);
    size_t end = PACKED_HEAD_BYTES + N * PACKED_ITEM_BYTES;
    for (size_t at = 0; at < end; at += at < 380 ? 1 : 7) {
        if (at >= 376 && at < PACKED_HEAD_BYTES) continue; /* nothing stands there */
        flip(p.path, (off_t)at, (uint8_t)(1u << at % 8));
        assert_int_equal(try_open(&p, &p.head, false, &err), SHOAL_EFORMAT);
        flip(p.path, (off_t)at, (uint8_t)(1u << at % 8));
    }
    flip(p.path, (off_t)(h.payload_at + h.payload_bytes / 2), 16);
    assert_int_equal(try_open(&p, &p.head, true, &err), SHOAL_EFORMAT);
    assert_string_equal(err.message, "its weights are damaged");
    close_place(&p);
}

static void a_cut_file_is_met(void **state)
{
    place p;
    shoal_err err;
    packed_head h;
    open_place(&p);
    write_it(&p);
    assert_int_equal(packed_peek(&h, p.path, &err), 0);
    const off_t sizes[] = {(off_t)(h.payload_at + h.payload_bytes + 1),
                           (off_t)(h.payload_at + h.payload_bytes - 1),
                           (off_t)h.payload_at,
                           PACKED_HEAD_BYTES + 5,
                           PACKED_HEAD_BYTES,
                           100,
                           8,
                           0};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        assert_int_equal(truncate(p.path, sizes[i]), 0);
        assert_int_equal(try_open(&p, &p.head, true, &err), SHOAL_EFORMAT);
    }
    close_place(&p);
}

/* ---- the store ------------------------------------------------------------------------------------ */

static size_t n_images(const char *folder)
{
    glob_t g;
    char pattern[200];
    snprintf(pattern, sizeof pattern, "%s/*.packed*", folder);
    size_t n = glob(pattern, 0, NULL, &g) == 0 ? g.gl_pathc : 0;
    globfree(&g);
    return n;
}

static packed_store store_of(const place *p)
{
    return (packed_store){.folder = p->dir, .min_bytes = 1};
}

static void keep_one(const packed_store *s, packed_head *h, uint8_t model, const weights *w)
{
    shoal_err err;
    memset(&h->model, model, sizeof h->model);
    if (packed_store_keep(s, h, w, 0, NULL, &err) != 0) fail_msg("%s", err.message);
}

static void age(const packed_store *s, const packed_head *h, int seconds)
{
    char *path = packed_store_path(s, h);
    const struct timespec t[2] = {{.tv_sec = time(NULL) - seconds}, {.tv_sec = time(NULL) - seconds}};
    assert_int_equal(utimensat(AT_FDCWD, path, t, 0), 0);
    free(path);
}

static bool has(const packed_store *s, const packed_head *h)
{
    char *path = packed_store_path(s, h);
    bool is = file_exists(path);
    free(path);
    return is;
}

static void the_oldest_make_room(void **state)
{
    place p;
    shoal_err err;
    open_place(&p);
    packed_store s = store_of(&p);
    s.max_bytes = 2 * weights_bytes(p.w) + 3 * PAGES_HUGE;
    packed_head h[3] = {p.head, p.head, p.head};
    keep_one(&s, &h[0], 'a', p.w);
    age(&s, &h[0], 100);
    keep_one(&s, &h[1], 'b', p.w);
    age(&s, &h[1], 50);
    assert_int_equal(n_images(s.folder), 2);
    char *first = packed_store_path(&s, &h[0]);
    lru_folder_touch(first);
    free(first);
    keep_one(&s, &h[2], 'c', p.w);
    assert_true(has(&s, &h[0]) && !has(&s, &h[1]) && has(&s, &h[2]));
    s.max_bytes = weights_bytes(p.w) / 2;
    assert_int_equal(packed_store_keep(&s, &h[1], p.w, 0, NULL, &err), SHOAL_ELIMIT);
    assert_int_equal(n_images(s.folder), 2); /* nobody went for what does not fit anyway */
    close_place(&p);
}

static void small_ones_and_readers_keep_nothing(void **state)
{
    place p;
    shoal_err err;
    open_place(&p);
    packed_store s = store_of(&p);
    s.min_bytes = weights_bytes(p.w) + 1;
    assert_int_equal(packed_store_keep(&s, &p.head, p.w, 0, NULL, &err), 0);
    s.min_bytes = 1;
    s.read_only = true;
    assert_int_equal(packed_store_keep(&s, &p.head, p.w, 0, NULL, &err), 0);
    assert_int_equal(n_images(s.folder), 0);
    close_place(&p);
}

/* Those used last come first; what cannot be read is listed, too, and goes like the others. */
static void people_see_and_remove_them(void **state)
{
    place p;
    shoal_err err;
    uint64_t bytes;
    packed_listed *l;
    size_t n;
    open_place(&p);
    packed_store s = store_of(&p), nowhere = {.folder = "/nowhere/at/all"};
    packed_head h[3] = {p.head, p.head, p.head};
    for (uint8_t i = 0; i < 3; i++) {
        keep_one(&s, &h[i], i, p.w);
        age(&s, &h[i], 300 - 100 * i);
    }
    char *path = packed_store_path(&s, &h[1]);
    flip(path, 20, 1);
    age(&s, &h[1], 200);
    assert_int_equal(packed_store_list(&s, &l, &n, &err), 0);
    assert_int_equal(n, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(l[i].status, i == 1 ? SHOAL_EFORMAT : 0);
        assert_int_equal(l[i].bytes, l[0].bytes);
        if (i != 1) assert_memory_equal(&l[i].head.model, &h[2 - i].model, sizeof h->model);
        if (i) assert_true(l[i].used_s < l[i - 1].used_s);
    }
    assert_int_equal(packed_store_remove(&s, &l[1], 2, &bytes, &err), 0);
    assert_true(bytes == 2 * l[0].bytes);
    assert_int_equal(n_images(p.dir), 1);
    assert_int_equal(packed_store_remove(&s, l, 3, &bytes, &err), 0); /* two are gone already */
    assert_true(bytes == l[0].bytes);
    free(l);
    free(path);
    assert_int_equal(packed_store_list(&s, &l, &n, &err), 0);
    assert_int_equal(n, 0);
    free(l);
    assert_int_equal(packed_store_list(&nowhere, &l, &n, &err), 0);
    assert_int_equal(n, 0);
    assert_null(l);
    close_place(&p);
}

static void a_folder_of_others_is_not_used(void **state)
{
    place p;
    shoal_err err;
    char deep[160];
    open_place(&p);
    packed_store s = store_of(&p);
    assert_int_equal(chmod(p.dir, 0770), 0);
    assert_int_equal(packed_store_keep(&s, &p.head, p.w, 0, NULL, &err), SHOAL_EAUTH);
    assert_int_equal(chmod(p.dir, 0700), 0);
    snprintf(deep, sizeof deep, "%s/one/two/three", p.dir);
    s.folder = deep;
    assert_int_equal(packed_store_keep(&s, &p.head, p.w, 0, NULL, &err), 0);
    assert_int_equal(n_images(s.folder), 1);
    snprintf(deep, sizeof deep, "/proc/nobody/packed");
    assert_int_equal(packed_store_keep(&s, &p.head, p.w, 0, NULL, &err), SHOAL_EIO);
    if (geteuid() != 0) {
        assert_int_equal(chmod(p.dir, 0500), 0);
        s.folder = p.dir;
        assert_int_not_equal(packed_store_keep(&s, &p.head, p.w, 0, NULL, &err), 0);
        assert_int_equal(chmod(p.dir, 0700), 0);
    }
    close_place(&p);
}

/* What was refused is replaced; what another wrote since is not. */
static void a_damaged_one_is_replaced(void **state)
{
    place p;
    shoal_err err;
    open_place(&p);
    packed_store s = store_of(&p);
    char *path = packed_store_path(&s, &p.head);
    snprintf(p.path, sizeof p.path, "%s", path);
    write_it(&p);
    flip(p.path, 20, 1);
    uint64_t seen = packed_store_seen(path);
    assert_int_equal(packed_store_keep(&s, &p.head, p.w, seen, NULL, &err), 0);
    assert_int_equal(try_open(&p, &p.head, true, &err), 0);
    uint64_t new = packed_store_seen(path);
    assert_int_equal(packed_store_keep(&s, &p.head, p.w, 0, NULL, &err), 0);
    assert_int_equal(packed_store_seen(path), new);
    free(path);
    close_place(&p);
}

/* Several processes at once: one image, whole, and no leavings. */
static void writers_take_turns(void **state)
{
    place p;
    shoal_err err;
    pid_t pids[4];
    open_place(&p);
    packed_store s = store_of(&p);
    for (size_t i = 0; i < 4; i++) {
        pids[i] = fork();
        if (pids[i] == 0) _exit(packed_store_keep(&s, &p.head, p.w, 0, NULL, &err) == 0 ? 0 : 1);
    }
    for (size_t i = 0; i < 4; i++) {
        int status;
        assert_true(waitpid(pids[i], &status, 0) == pids[i] && status == 0);
    }
    char *path = packed_store_path(&s, &p.head), cmd[160];
    snprintf(p.path, sizeof p.path, "%s", path);
    assert_int_equal(try_open(&p, &p.head, true, &err), 0);
    snprintf(cmd, sizeof cmd, "test $(ls %s | wc -l) = 1", p.dir);
    assert_int_equal(system(cmd), 0);
    free(path);
    close_place(&p);
}

static void a_stopped_writer_leaves_nothing(void **state)
{
    place p;
    shoal_err err;
    char cmd[128];
    open_place(&p);
    packed_store s = store_of(&p);
    atomic_bool stop = true;
    assert_int_equal(packed_store_keep(&s, &p.head, p.w, 0, &stop, &err), SHOAL_ECANCELLED);
    snprintf(cmd, sizeof cmd, "test -z \"$(ls %s)\"", p.dir);
    assert_int_equal(system(cmd), 0);
    close_place(&p);
}

/* As on a full disk: the write fails in the midst, and the head's, too. */
static void a_failing_write_leaves_nothing(void **state)
{
    static const rlim_t most[] = {0, 200, 3 << 20};
    place p;
    shoal_err err;
    open_place(&p);
    packed_store s = store_of(&p);
    for (size_t i = 0; i < 3; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            const struct rlimit limit = {most[i], most[i]};
            signal(SIGXFSZ, SIG_IGN);
            setrlimit(RLIMIT_FSIZE, &limit);
            _exit(packed_store_keep(&s, &p.head, p.w, 0, NULL, &err) == SHOAL_EIO ? 0 : 1);
        }
        int status;
        assert_true(waitpid(pid, &status, 0) == pid && status == 0);
        assert_int_equal(n_images(p.dir), 0);
    }
    close_place(&p);
}

/* What a process left that died while it wrote goes when the next one writes, unless it may still be at work.
 */
static void leavings_are_removed(void **state)
{
    place p;
    char old[160], new[160];
    open_place(&p);
    packed_store s = store_of(&p);
    snprintf(old, sizeof old, "%s/x.packed.tmp.1", p.dir);
    snprintf(new, sizeof new, "%s/x.packed.tmp.2", p.dir);
    for (int i = 0; i < 2; i++) fclose(fopen(i ? old : new, "w"));
    const struct timespec t[2] = {{.tv_sec = time(NULL) - 4000}, {.tv_sec = time(NULL) - 4000}};
    assert_int_equal(utimensat(AT_FDCWD, old, t, 0), 0);
    keep_one(&s, &p.head, 'x', p.w);
    assert_true(!file_exists(old) && file_exists(new) && n_images(p.dir) == 2);
    close_place(&p);
}

/* A digest is recalled for the file that it was computed of, and no other. */
static void digests_are_recalled_by_identity(void **state)
{
    place p;
    open_place(&p);
    packed_store s = store_of(&p);
    keep_one(&s, &p.head, 'm', p.w);
    sha256_digest d;
    assert_true(packed_store_recall(&s, &p.head.file, &d));
    assert_memory_equal(&d, &p.head.model, sizeof d);
    uint64_t *fields[] = {&p.head.file.device, &p.head.file.inode, &p.head.file.size, &p.head.file.mtime_ns,
                          &p.head.file.ctime_ns};
    for (size_t i = 0; i < 5; i++) {
        ++*fields[i];
        assert_false(packed_store_recall(&s, &p.head.file, &d));
        --*fields[i];
    }
    p.head.file = (packed_identity){0};
    keep_one(&s, &p.head, 'n', p.w);
    assert_false(packed_store_recall(&s, &p.head.file, &d));
    close_place(&p);
}

/* A file that has just changed could change again within the same tick. */
static void fresh_files_have_no_identity(void **state)
{
    place p;
    shoal_err err;
    packed_identity id;
    open_place(&p);
    write_it(&p);
    assert_int_equal(packed_identify(&id, p.path, &err), 0);
    assert_false(packed_identity_known(&id));
    assert_int_equal(packed_identify(&id, "/proc/version", &err), 0);
    assert_int_equal(packed_identify(&id, "/nowhere", &err), SHOAL_ENOTFOUND);
    struct stat st;
    assert_int_equal(stat(SHOAL_SOURCE_DIR "/LICENSE", &st), 0);
    if (st.st_ctim.tv_sec + 5 < time(NULL)) {
        assert_int_equal(packed_identify(&id, SHOAL_SOURCE_DIR "/LICENSE", &err), 0);
        assert_true(packed_identity_known(&id) && id.inode == st.st_ino && id.size == (uint64_t)st.st_size);
    }
    close_place(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_written_is_mapped),
        cmocka_unit_test(pages_become_huge_under_readers),
        cmocka_unit_test(others_are_refused),
        cmocka_unit_test(files_that_others_may_write_are_refused),
        cmocka_unit_test(a_flipped_bit_is_met),
        cmocka_unit_test(a_cut_file_is_met),
        cmocka_unit_test(the_oldest_make_room),
        cmocka_unit_test(small_ones_and_readers_keep_nothing),
        cmocka_unit_test(people_see_and_remove_them),
        cmocka_unit_test(a_folder_of_others_is_not_used),
        cmocka_unit_test(a_damaged_one_is_replaced),
        cmocka_unit_test(writers_take_turns),
        cmocka_unit_test(a_stopped_writer_leaves_nothing),
        cmocka_unit_test(a_failing_write_leaves_nothing),
        cmocka_unit_test(leavings_are_removed),
        cmocka_unit_test(digests_are_recalled_by_identity),
        cmocka_unit_test(fresh_files_have_no_identity),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
