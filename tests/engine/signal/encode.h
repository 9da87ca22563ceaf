/* encode.h: sound files in memory, written by libsndfile. */
#ifndef TESTS_SIGNAL_ENCODE_H
#define TESTS_SIGNAL_ENCODE_H

#include <sndfile.h>

#include "helper.h"

typedef struct memory_file {
    buf b;
    size_t at;
} memory_file;

static inline sf_count_t mem_length(void *user)
{
    return (sf_count_t)((memory_file *)user)->b.len;
}
static inline sf_count_t mem_seek(sf_count_t offset, int whence, void *user)
{
    memory_file *f = user;
    f->at = (size_t)(offset + (sf_count_t)(whence == SEEK_SET ? 0 : whence == SEEK_CUR ? f->at : f->b.len));
    return (sf_count_t)f->at;
}
static inline sf_count_t mem_read(void *to, sf_count_t n, void *user)
{
    memory_file *f = user;
    if ((size_t)n > f->b.len - f->at) n = (sf_count_t)(f->b.len - f->at);
    memcpy(to, f->b.data + f->at, (size_t)n);
    f->at += (size_t)n;
    return n;
}
static inline sf_count_t mem_write(const void *from, sf_count_t n, void *user)
{
    memory_file *f = user;
    while (f->b.len < f->at + (size_t)n) buf_putc(&f->b, 0);
    memcpy(f->b.data + f->at, from, (size_t)n);
    f->at += (size_t)n;
    return n;
}
static inline sf_count_t mem_tell(void *user)
{
    return (sf_count_t)((memory_file *)user)->at;
}

/* x[n_frames][channels] in a format of libsndfile's; an empty buf where this build cannot write it. */
static inline buf encode(int format, int rate, int channels, const float *x, size_t n_frames)
{
    SF_VIRTUAL_IO io = {mem_length, mem_seek, mem_read, mem_write, mem_tell};
    memory_file file = {0};
    SF_INFO info = {.samplerate = rate, .channels = channels, .format = format};
    SNDFILE *f = sf_format_check(&info) ? sf_open_virtual(&io, SFM_WRITE, &info, &file) : NULL;
    if (!f) return file.b;
    sf_writef_float(f, x, (sf_count_t)n_frames);
    sf_close(f);
    assert_false(file.b.failed);
    return file.b;
}

#endif
