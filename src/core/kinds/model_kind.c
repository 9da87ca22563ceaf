/* model_kind.c: the table of kinds, and what is looked at to find a row; see model_kind.h. */
#include "kinds/model_kind.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

enum { HEAD_BYTES = 64 };

/* Asked from the first to the last: rows that know a magic number or a name stand before those that guess. */
static const model_kind *const KINDS[] = {&model_kind_gguf,    &model_kind_bare, &model_kind_trees,
                                          &model_kind_llama2c, &model_kind_ct2,  &model_kind_hf};

/* ---- views ------------------------------------------------------------------------------------------- */

bool model_name_ends(const char *name, const char *end)
{
    size_t n = strlen(name), k = strlen(end);
    return n > k && strcasecmp(name + n - k, end) == 0;
}

bool model_view_begins(const model_view *v, const char *bytes, size_t n)
{
    return v->n_head >= n && memcmp(v->head, bytes, n) == 0;
}

static bool stat_in(const char *folder, const char *file, struct stat *ret)
{
    char at[PATH_MAX]; /* no allocation that could fail, and make it another kind */
    int n = snprintf(at, sizeof at, "%s/%s", folder, file);
    return n > 0 && (size_t)n < sizeof at && file_stat(at, ret);
}

bool model_view_has(const model_view *v, const char *file)
{
    struct stat st;
    if (v->is_folder && v->path) return stat_in(v->path, file, &st);
    for (size_t i = 0; i < v->n_names; i++)
        if (strcmp(v->names[i], file) == 0) return true;
    return false;
}

static size_t model_kind_read_head(const char *path, uint8_t head[HEAD_BYTES])
{
    int fd = -1;
    size_t len;
    if (file_open_regular(&fd, &len, path, NULL) != 0) return 0;
    ssize_t n = read(fd, head, HEAD_BYTES);
    close(fd);
    return n > 0 ? (size_t)n : 0;
}

/* head is the view's. */
static model_view view_of(const char *path, uint8_t head[HEAD_BYTES])
{
    const char *slash = strrchr(path, '/');
    model_view v = {
        .path = path, .name = slash ? slash + 1 : path, .is_folder = file_is_dir(path), .head = head};
    if (!v.is_folder) v.n_head = model_kind_read_head(path, head);
    return v;
}

bool model_is_reference(const char *s)
{
    static const char *const starts[] = {"hf:", "ollama:", "oci://", "https://", "http://"};
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        if (strncmp(s, starts[i], strlen(starts[i])) == 0) return true;
    return false;
}

/* ---- rows --------------------------------------------------------------------------------------------- */

static const model_kind *find_row(const model_view *v)
{
    for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++)
        if (KINDS[i]->recognise(v)) return KINDS[i];
    return NULL;
}

static const model_kind *row_of(const model_view *v)
{
    const model_kind *k = find_row(v);
    return k ? k : v->is_folder ? &model_kind_hf : &model_kind_gguf;
}

const model_kind *model_kind_of(const char *path)
{
    uint8_t head[HEAD_BYTES];
    model_view v = view_of(path, head);
    return row_of(&v);
}

const model_kind *model_kind_listed(const char *const *names, size_t n)
{
    return find_row(&(model_view){.name = "", .is_folder = true, .names = names, .n_names = n});
}

const model_kind *model_kind_named(const char *name)
{
    return find_row(&(model_view){.name = name});
}

bool model_kind_begins(const uint8_t *head, size_t n)
{
    return find_row(&(model_view){.name = "", .head = head, .n_head = n}) != NULL;
}

const char *model_kind_task(const char *path)
{
    uint8_t head[HEAD_BYTES];
    model_view v = view_of(path, head);
    const model_kind *k = row_of(&v);
    return k->describe ? k->describe(&v) : NULL;
}

model_file_role model_kind_file(const model_kind *k, const char *name)
{
    return k->file ? k->file(name) : MODEL_FILE_OTHER;
}

static void add_size(model_kind_size *to, const struct stat *st)
{
    if (!S_ISREG(st->st_mode)) return;
    to->bytes += (uint64_t)st->st_size;
    if (st->st_mtime > to->time_s) to->time_s = st->st_mtime;
}

model_kind_size model_kind_measure(const char *path)
{
    model_kind_size size = {0};
    struct stat st;
    DIR *d = file_is_dir(path) ? opendir(path) : NULL;
    const model_kind *k = d ? model_kind_of(path) : NULL;
    for (const struct dirent *e; d && (e = readdir(d));)
        if (model_kind_file(k, e->d_name) != MODEL_FILE_FOREIGN && stat_in(path, e->d_name, &st))
            add_size(&size, &st);
    if (d) closedir(d);
    if (!d && file_stat(path, &st)) add_size(&size, &st);
    return size;
}
