/* image_png.c: libpng over bytes in memory, by its progressive reader: the other one goes on unpacking behind
 * the last row, however much there is. It leaves by longjmp: everything that must survive lives in png_job. */
#include <png.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "signal/image_internal.h"

#define TEXT_MAX   ((png_alloc_size_t)4 << 20) /* bytes of one chunk that is not pixels, unpacked */
#define CHUNKS_MAX 256
#define ALLOC_MAX  ((png_alloc_size_t)8 << 20) /* libpng believes a chunk's length before it has read it */

typedef struct png_job {
    image *out;
    const image_limits *limits;
    bool has_rows, ended; /* the last row came, and the last chunk */
    int last_pass;
    int orientation;
    int rc; /* what went wrong, when it was not libpng that said so */
    shoal_err *err;
} png_job;

static void on_error(png_structp png, png_const_charp message)
{
    png_job *job = png_get_error_ptr(png);
    if (job->rc == 0) job->rc = err_set(job->err, SHOAL_EFORMAT, "the PNG image is damaged: %s", message);
    png_longjmp(png, 1);
}

static void on_warning(png_structp png, png_const_charp message) {}

/* Pixels are not allocated here; rows and zlib's window are far smaller than ALLOC_MAX. */
static png_voidp on_alloc(png_structp png, png_alloc_size_t n)
{
    png_job *job = png_get_mem_ptr(png);
    if (n > ALLOC_MAX) return NULL;
    void *p = malloc(n);
    if (!p && job->rc == 0) job->rc = err_nomem(job->err);
    return p;
}

static void on_free(png_structp png, png_voidp p)
{
    free(p);
}

/* Everything becomes 8-bit RGB: palettes looked up, grey tripled, 16 bits cut to the high 8, alpha dropped.
 */
static void ask_for_rgb(png_job *job, png_structp png, png_infop info)
{
    png_set_palette_to_rgb(png);
    if (png_get_color_type(png, info) == PNG_COLOR_TYPE_GRAY && png_get_bit_depth(png, info) < 8)
        png_set_expand_gray_1_2_4_to_8(png);
    png_set_strip_16(png);
    png_set_gray_to_rgb(png);
    png_set_strip_alpha(png);
    job->last_pass = png_set_interlace_handling(png) - 1;
    png_read_update_info(png, info);
}

static void image_png_leave(png_job *job, png_structp png, int rc)
{
    job->rc = rc;
    png_longjmp(png, 1);
}

/* The chunks before the pixels are there. */
static void on_info(png_structp png, png_infop info)
{
    png_job *job = png_get_progressive_ptr(png);
    uint32_t w = png_get_image_width(png, info), h = png_get_image_height(png, info);
    int rc = image_alloc(job->out, w, h, job->limits->max_pixels, job->err);
    if (rc != 0) image_png_leave(job, png, rc);
    ask_for_rgb(job, png, info);
    if (png_get_rowbytes(png, info) != (size_t)w * 3) png_error(png, "its pixels are of no known kind");
}

/* Row y of a pass; `row` is NULL where this pass brings nothing for it. */
static void on_row(png_structp png, png_bytep row, png_uint_32 y, int pass)
{
    png_job *job = png_get_progressive_ptr(png);
    int rc = cancel_ask(&job->limits->cancel, job->err);
    if (rc != 0) image_png_leave(job, png, rc);
    png_progressive_combine_row(png, job->out->rgb + (size_t)y * job->out->width * 3, row);
    job->has_rows |= pass == job->last_pass && y + 1 == job->out->height;
}

/* The progressive reader of libpng 1.6.39 does not know eXIf. */
static int on_chunk(png_structp png, png_unknown_chunkp chunk)
{
    png_job *job = png_get_user_chunk_ptr(png);
    if (memcmp(chunk->name, "eXIf", 4) != 0) return 0;
    job->orientation = image_exif_orientation(chunk->data, chunk->size);
    return 1;
}

static void image_png_on_end(png_structp png, png_infop info)
{
    ((png_job *)png_get_progressive_ptr(png))->ended = true;
}

/* Metadata may stand behind the pixels too. */
static void look_for_exif(png_job *job, png_structp png, png_infop info)
{
    png_uint_32 n = 0;
    png_bytep exif = NULL;
    if (png_get_eXIf_1(png, info, &n, &exif) && exif) job->orientation = image_exif_orientation(exif, n);
}

static int image_png_run(png_job *job, png_structp png, png_infop info, const uint8_t *bytes, size_t n)
{
    if (setjmp(png_jmpbuf(png)))
        return job->rc ? job->rc : err_set(job->err, SHOAL_EFORMAT, "the PNG is damaged");
    png_set_progressive_read_fn(png, job, on_info, on_row, image_png_on_end);
    png_set_read_user_chunk_fn(png, job, on_chunk);
    png_set_user_limits(png, IMAGE_SIDE_MAX, IMAGE_SIDE_MAX);
    png_set_chunk_malloc_max(png, TEXT_MAX);
    png_set_chunk_cache_max(png, CHUNKS_MAX);
    png_process_data(png, info, (png_bytep)bytes, n);
    if (!job->ended) png_error(png, "it ends too early");
    if (!job->has_rows) png_error(png, "rows are missing");
    look_for_exif(job, png, info);
    return job->rc; /* memory was short for a chunk that libpng could do without */
}

int image_png(image *ret, int *ret_orientation, const uint8_t *bytes, size_t n, const image_limits *limits,
              shoal_err *err)
{
    png_job job = {.out = ret, .limits = limits, .orientation = 1, .err = err};
    png_structp png =
        png_create_read_struct_2(PNG_LIBPNG_VER_STRING, &job, on_error, on_warning, &job, on_alloc, on_free);
    png_infop info = png ? png_create_info_struct(png) : NULL;
    int rc = info ? image_png_run(&job, png, info, bytes, n) : err_nomem(err);
    png_destroy_read_struct(&png, &info, NULL);
    *ret_orientation = job.orientation;
    return rc;
}
