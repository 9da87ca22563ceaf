/* audio_sndfile.c: whole files in memory through libsndfile's virtual files. */
#include <sndfile.h>
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

static int read_all(SNDFILE *f, const SF_INFO *info, audio_sink *sink, shoal_err *err)
{
    float x[BLOCK_SAMPLES];
    sf_count_t block = BLOCK_SAMPLES / info->channels, n, all = 0;
    int rc = 0;
    while (rc == 0 && (n = sf_readf_float(f, x, block)) > 0) {
        rc = audio_sink_frames(sink, x, (size_t)n, err);
        all += n;
    }
    if (rc == 0 && all == 0 && sf_error(f) != SF_ERR_NO_ERROR)
        return err_set(err, SHOAL_EFORMAT, "the %s file cannot be decoded: %s", sink->info.format,
                       sf_strerror(f));
    sink->info.cut = sf_error(f) != SF_ERR_NO_ERROR || (info->frames != SF_COUNT_MAX && all < info->frames);
    return rc;
}

int sndfile_decode(audio_sink *sink, const char *format, const void *bytes, size_t n, shoal_err *err)
{
    SF_VIRTUAL_IO io = {file_length, file_seek, file_take, no_write, file_tell};
    memory_file file = {bytes, (sf_count_t)n, 0};
    SF_INFO info = {0};
    SNDFILE *f = sf_open_virtual(&io, SFM_READ, &info, &file);
    if (!f) return err_set(err, SHOAL_EFORMAT, "the %s file cannot be opened: %s", format, sf_strerror(NULL));
    int rc = audio_sink_open(sink, format_name(format, info.format),
                             info.samplerate > 0 ? (uint32_t)info.samplerate : 0,
                             info.channels > 0 ? (uint32_t)info.channels : 0, err);
    if (rc == 0) rc = read_all(f, &info, sink, err);
    sf_close(f);
    return rc;
}
