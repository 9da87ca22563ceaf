/* backend_facts.c: a sum over tensors, and one over files. */
#include "backend/backend_facts.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static void facts_add_file(backend_facts *f, const struct stat *st)
{
    if (!S_ISREG(st->st_mode)) return;
    f->file_bytes += (uint64_t)st->st_size;
    if (st->st_mtime > f->file_time_s) f->file_time_s = st->st_mtime;
}

static void facts_add_folder(backend_facts *f, const char *path)
{
    struct stat st;
    DIR *d = opendir(path);
    for (const struct dirent *e; d && (e = readdir(d));)
        if (fstatat(dirfd(d), e->d_name, &st, 0) == 0) facts_add_file(f, &st);
    if (d) closedir(d);
}

static uint64_t count_parameters(const model *m)
{
    uint64_t sum = 0;
    for (size_t i = 0; m && i < model_tensor_count(m); i++) {
        const tensor *t = model_tensor_at(m, i);
        uint64_t n = 1;
        for (size_t k = 0; k < t->n_dims; k++) n *= t->dims[k];
        sum += n;
    }
    return sum;
}

backend_facts backend_facts_of(const model *m, const char *path)
{
    backend_facts f = {.n_parameters = count_parameters(m)};
    struct stat st;
    if (stat(path, &st) != 0) return f;
    if (S_ISDIR(st.st_mode))
        facts_add_folder(&f, path);
    else
        facts_add_file(&f, &st);
    return f;
}
