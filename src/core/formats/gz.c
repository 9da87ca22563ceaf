/* gz.c: see gz.h; zlib tells gzip from plain bytes itself. */
#include "formats/gz.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/file.h"

struct gz {
    gzFile file;
    const char *name; /* borrowed */
};

static int open_fd(const char *path, int *ret, shoal_err *err)
{
    struct stat st;
    size_t bytes;
    if (file_is_confined()) return file_open_regular(ret, &bytes, path, err);
    int fd = strcmp(path, "-") == 0 ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0) {
        int e = errno;
        if (fd >= 0) close(fd);
        return err_set(err, e == ENOENT || e == ENOTDIR ? SHOAL_ENOTFOUND : SHOAL_EIO, "%s: %s", path,
                       strerror(e));
    }
    if (S_ISDIR(st.st_mode)) {
        close(fd);
        return err_set(err, SHOAL_EINVALID, "%s is a folder, a file is wanted", path);
    }
    *ret = fd;
    return 0;
}

int gz_open(gz **ret, const char *path, shoal_err *err)
{
    int fd = -1;
    int rc = open_fd(path, &fd, err);
    if (rc != 0) return rc;
    gz *g = calloc(1, sizeof *g);
    if (g) g->file = gzdopen(fd, "rb");
    if (!g || !g->file) {
        close(fd);
        free(g);
        return err_nomem(err);
    }
    g->name = path;
    *ret = g;
    return 0;
}

int gz_take(gz *g, char *to, size_t n, size_t *ret_n, shoal_err *err)
{
    int got = gzread(g->file, to, n > 1u << 20 ? 1u << 20 : (unsigned)n), code = Z_OK;
    const char *why = got <= 0 ? gzerror(g->file, &code) : "";
    if (code == Z_MEM_ERROR) return err_nomem(err);
    if (code == Z_ERRNO) return err_set(err, SHOAL_EIO, "%s: %s", g->name, strerror(errno));
    if (code == Z_BUF_ERROR) return err_set(err, SHOAL_EFORMAT, "%s: the gzip file is cut short", g->name);
    if (got < 0) return err_set(err, SHOAL_EFORMAT, "%s: not good gzip: %s", g->name, why);
    *ret_n = (size_t)got;
    return 0;
}

void gz_close(gz *g)
{
    if (!g) return;
    gzclose(g->file);
    free(g);
}

int gz_read(buf *out, const char *path, size_t max_bytes, shoal_err *err)
{
    gz *g = NULL;
    size_t start = out->len, got = 1;
    int rc = gz_open(&g, path, err);
    while (rc == 0 && got > 0) {
        char chunk[16384];
        rc = gz_take(g, chunk, sizeof chunk, &got, err);
        if (rc != 0) break;
        if (out->len - start + got > max_bytes)
            rc = err_set(err, SHOAL_ELIMIT, "%s: larger than %zu bytes", path, max_bytes);
        else if (buf_append(out, chunk, got) != 0)
            rc = err_nomem(err);
    }
    gz_close(g);
    return rc;
}
