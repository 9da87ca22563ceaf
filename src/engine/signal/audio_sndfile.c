/* audio_sndfile.c: whole files in memory through libsndfile's virtual files. */
#include <sndfile.h>
#include <stdlib.h>
#include <string.h>

#include "signal/audio_internal.h"

#define BLOCK_SAMPLES 4096

typedef struct memory_file {
    const char *bytes;
    sf_count_t n, at;
} memory_file;

static sf_count_t file_length(void *user)
{
    return ((memory_file *)user)->n;
}

static sf_count_t file_tell(void *user)
{
    return ((memory_file *)user)->at;
}

static sf_count_t file_seek(sf_count_t offset, int whence, void *user)
{
    memory_file *f = user;
    sf_count_t base = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? f->at : f->n, to;
    if (__builtin_add_overflow(base, offset, &to) || to < 0) return -1;
    f->at = to < f->n ? to : f->n;
    return f->at;
}

static sf_count_t file_take(void *to, sf_count_t count, void *user)
{
    memory_file *f = user;
    if (count < 0) return 0;
    if (count > f->n - f->at) count = f->n - f->at;
    memcpy(to, f->bytes + f->at, (size_t)count);
    f->at += count;
    return count;
}

static sf_count_t no_write(const void *from, sf_count_t count, void *user)
{
    return 0;
}

/* "Ogg" is a family: say which codec is inside. */
static const char *format_name(const char *family, int format)
{
    return (format & SF_FORMAT_SUBMASK) == SF_FORMAT_OPUS ? "Ogg Opus" : family;
}

typedef struct sndfile_state {
    memory_file file;
    SF_VIRTUAL_IO io;
    SF_INFO info;
    SNDFILE *f;
    sf_count_t n_read; /* frames */
} sndfile_state;

static int at_end(sndfile_state *s, audio_sink *sink, shoal_err *err)
{
    bool failed = sf_error(s->f) != SF_ERR_NO_ERROR;
    if (failed && s->n_read == 0)
        return err_set(err, SHOAL_EFORMAT, "the %s file cannot be decoded: %s", sink->info.format,
                       sf_strerror(s->f));
    sink->info.cut = failed || (s->info.frames != SF_COUNT_MAX && s->n_read < s->info.frames);
    return 0;
}

static int more(void *state, audio_sink *sink, shoal_err *err)
{
    sndfile_state *s = state;
    float x[BLOCK_SAMPLES];
    sf_count_t n = sf_readf_float(s->f, x, BLOCK_SAMPLES / s->info.channels);
    if (n <= 0) return at_end(s, sink, err);
    s->n_read += n;
    int rc = audio_sink_frames(sink, x, (size_t)n, err);
    return rc == 0 ? 1 : rc;
}

static void close_state(void *state)
{
    sndfile_state *s = state;
    if (s->f) sf_close(s->f);
    free(s);
}

static int open_file(sndfile_state *s, audio_sink *sink, const char *format, shoal_err *err)
{
    s->f = sf_open_virtual(&s->io, SFM_READ, &s->info, &s->file);
    if (!s->f)
        return err_set(err, SHOAL_EFORMAT, "the %s file cannot be opened: %s", format, sf_strerror(NULL));
    const SF_INFO *info = &s->info;
    int rc = audio_sink_open(sink, format_name(format, info->format),
                             info->samplerate > 0 ? (uint32_t)info->samplerate : 0,
                             info->channels > 0 ? (uint32_t)info->channels : 0, err);
    bool announced = info->frames > 0 && info->frames != SF_COUNT_MAX;
    return rc == 0 && announced ? audio_sink_announce(sink, (uint64_t)info->frames, err) : rc;
}

int sndfile_open(codec *ret, audio_sink *sink, const char *format, const void *bytes, size_t n,
                 shoal_err *err)
{
    sndfile_state *s = calloc(1, sizeof *s);
    if (!s) return err_nomem(err);
    s->file = (memory_file){bytes, (sf_count_t)n, 0};
    s->io = (SF_VIRTUAL_IO){file_length, file_seek, file_take, no_write, file_tell};
    int rc = open_file(s, sink, format, err);
    if (rc == 0)
        *ret = (codec){more, close_state, s};
    else
        close_state(s);
    return rc;
}
