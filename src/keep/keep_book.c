/* keep_book.c: see keep_book.h. */
#include "keep/keep_book.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"

enum { BOOK_MAX_BYTES = 1 << 20 };

static void read_entry(const char *path, size_t i, const json_t *o,
                       void (*take)(void *user, const config_wish *w),
                       void (*why)(void *user, const char *sentence), void *user)
{
    arena *mem = arena_new(0);
    config_wish w;
    shoal_err err;
    char sentence[sizeof err.message + 128];
    int rc = mem ? config_wish_parse(&w, mem, o, &err) : err_nomem(&err);
    if (rc == 0) {
        take(user, &w);
    } else {
        snprintf(sentence, sizeof sentence, "%s: models[%zu].%s", path, i, err.message);
        why(user, sentence);
    }
    arena_free(mem);
}

void keep_book_read(const char *path, void (*take)(void *user, const config_wish *w),
                    void (*why)(void *user, const char *sentence), void *user)
{
    json_t *root = NULL;
    shoal_err err;
    size_t i;
    const json_t *o;
    int rc = json_parse_file(&root, path, BOOK_MAX_BYTES, &err);
    if (rc == SHOAL_ENOTFOUND) return;
    if (rc == 0 && !json_is_array(json_object_get(root, "models")))
        rc = err_set(&err, SHOAL_EFORMAT, "%s: \"models\" is no list", path);
    if (rc != 0) why(user, err.message);
    json_array_foreach(rc == 0 ? json_object_get(root, "models") : NULL, i, o)
        read_entry(path, i, o, take, why, user);
    json_decref(root);
}

void keep_book_put(buf *out, const json_t *wishes)
{
    buf_puts(out, "{\"models\": ");
    if (json_put(out, wishes) != 0) out->failed = true;
    buf_puts(out, "}\n");
}

/* The folder of a new machine is not there yet. */
static void make_folder(const char *path)
{
    char at[4096];
    snprintf(at, sizeof at, "%s", path);
    for (char *slash = strchr(at + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(at, 0700); /* what is wrong with it is said when the file is opened */
        *slash = '/';
    }
}

int keep_book_write(const char *path, const buf *text, shoal_err *err)
{
    file_writer *w = NULL;
    make_folder(path);
    int rc = file_writer_open(&w, path, err);
    if (rc == 0) rc = file_writer_write(w, text->data, text->len, err);
    if (rc == 0) rc = file_writer_commit(w, err);
    file_writer_close(w);
    return rc;
}
