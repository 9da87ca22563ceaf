/* image_jpeg.c: libjpeg-turbo over bytes in memory. It leaves by longjmp: everything that must survive lives
 * in jpeg_job. */
#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>
#include <jerror.h>

#include "signal/image_internal.h"

#define SCANS_MAX  500 /* a progressive file may ask for any number of passes over all pixels */
#define EXIF_START "Exif\0"

typedef struct jpeg_job {
    struct jpeg_decompress_struct d;
    struct jpeg_error_mgr errors;
    struct jpeg_progress_mgr progress;
    jmp_buf leave;
    image *out;
    uint8_t *cmyk; /* one row of four inks */
    const image_limits *limits;
    double samples_max, samples; /* of all components: what may be decoded of scans, and what was */
    bool has_scans;              /* all are read: what follows are rows of pixels */
    int rc;
    shoal_err *err;
} jpeg_job;

static jpeg_job *job_of(j_common_ptr d)
{
    return d->client_data;
}

static void on_error(j_common_ptr d)
{
    jpeg_job *job = job_of(d);
    char message[JMSG_LENGTH_MAX];
    (*d->err->format_message)(d, message);
    if (d->err->msg_code == JERR_OUT_OF_MEMORY)
        job->rc = err_nomem(job->err);
    else
        job->rc = err_set(job->err, SHOAL_EFORMAT, "the JPEG image is damaged: %s", message);
    longjmp(job->leave, 1);
}

/* libjpeg paints what is missing grey and goes on; a model would be shown what nobody sent. Oddities around
 * the pixels are let through. */
static void image_jpeg_on_message(j_common_ptr d, int level)
{
    int code = d->err->msg_code;
    if (level < 0 && (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER || code == JWRN_HUFF_BAD_CODE ||
                      code == JWRN_MUST_RESYNC || code == JWRN_ARITH_BAD_CODE))
        on_error(d);
}

static void on_output(j_common_ptr d) {}

static void image_jpeg_leave(jpeg_job *job, int rc)
{
    job->rc = rc;
    longjmp(job->leave, 1);
}

/* The samples of a row of blocks of the scan that is being read. */
static double row_samples(const struct jpeg_decompress_struct *d)
{
    double n = 0;
    for (int i = 0; i < d->comps_in_scan; i++) {
        const jpeg_component_info *c = d->cur_comp_info[i];
        n += (double)c->width_in_blocks * DCTSIZE2 * (d->comps_in_scan > 1 ? c->v_samp_factor : 1);
    }
    return n;
}

static double all_samples(const struct jpeg_decompress_struct *d)
{
    double n = 0;
    for (int i = 0; i < d->num_components; i++)
        n += (double)d->comp_info[i].width_in_blocks * d->comp_info[i].height_in_blocks * DCTSIZE2;
    return n;
}

/* A file of several scans is read into memory row of blocks by row of blocks, scan by scan, before the first
 * pixel comes; this is called before each of them. */
static void image_jpeg_on_progress(j_common_ptr common)
{
    jpeg_job *job = job_of(common);
    struct jpeg_decompress_struct *d = &job->d;
    int rc = cancel_ask(&job->limits->cancel, job->err);
    if (rc != 0) image_jpeg_leave(job, rc);
    if (job->has_scans) return;
    job->samples += row_samples(d);
    if (job->samples <= job->samples_max && d->input_scan_number <= SCANS_MAX) return;
    image_jpeg_leave(
        job, err_set(job->err, SHOAL_ELIMIT,
                     "the JPEG image of %u x %u pixels takes more than %zu pixels of work in its %d scans so "
                     "far: send it smaller, or not progressive",
                     (unsigned)d->image_width, (unsigned)d->image_height, job->limits->max_work,
                     d->input_scan_number));
}

static int orientation_of(const struct jpeg_decompress_struct *d)
{
    size_t skip = sizeof EXIF_START;
    for (jpeg_saved_marker_ptr m = d->marker_list; m; m = m->next)
        if (m->marker == JPEG_APP0 + 1 && m->data_length > skip && memcmp(m->data, EXIF_START, skip) == 0)
            return image_exif_orientation(m->data + skip, m->data_length - skip);
    return 1;
}

/* (255 - ink)(255 - black) / 255, rounded; Adobe's files hold 255 - ink. */
static void row_from_cmyk(uint8_t *rgb, const uint8_t *cmyk, size_t n, bool inverted)
{
    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; c < 3; c++) {
            unsigned ink = cmyk[4 * i + c], black = cmyk[4 * i + 3];
            if (inverted) {
                ink = 255 - ink;
                black = 255 - black;
            }
            unsigned paper = 255 - black, product = ink * paper + 128;
            rgb[3 * i + c] = (uint8_t)(paper - ((product >> 8) + product) / 256);
        }
}

static void read_rows(jpeg_job *job)
{
    image *out = job->out;
    while (job->d.output_scanline < job->d.output_height) {
        uint8_t *rgb = out->rgb + (size_t)job->d.output_scanline * out->width * 3;
        JSAMPROW row = job->cmyk ? job->cmyk : rgb;
        jpeg_read_scanlines(&job->d, &row, 1);
        if (job->cmyk) row_from_cmyk(rgb, job->cmyk, out->width, job->d.saw_Adobe_marker);
    }
}

static int image_jpeg_run(jpeg_job *job, int *ret_orientation, const uint8_t *bytes, size_t n)
{
    struct jpeg_decompress_struct *d = &job->d;
    if (setjmp(job->leave)) return job->rc;
    jpeg_create_decompress(d);
    d->client_data = job;
    d->progress = &job->progress;
    jpeg_mem_src(d, bytes, (unsigned long)n);
    jpeg_save_markers(d, JPEG_APP0 + 1, 0xFFFF);
    jpeg_read_header(d, TRUE);
    job->rc = image_alloc(job->out, d->image_width, d->image_height, job->limits->max_pixels, job->err);
    if (job->rc != 0) return job->rc;
    double pixels = (double)d->image_width * d->image_height;
    job->samples_max = all_samples(d) * ((double)job->limits->max_work / pixels);
    bool cmyk = d->jpeg_color_space == JCS_CMYK || d->jpeg_color_space == JCS_YCCK;
    d->out_color_space = cmyk ? JCS_CMYK : JCS_RGB;
    if (cmyk) {
        job->cmyk = malloc((size_t)d->image_width * 4);
        if (!job->cmyk) return job->rc = err_nomem(job->err);
    }
    *ret_orientation = orientation_of(d);
    jpeg_start_decompress(d);
    job->has_scans = true;
    read_rows(job);
    jpeg_finish_decompress(d);
    return 0;
}

int image_jpeg(image *ret, int *ret_orientation, const uint8_t *bytes, size_t n, const image_limits *limits,
               shoal_err *err)
{
    jpeg_job *job = calloc(1, sizeof *job);
    if (!job) return err_nomem(err);
    job->d.err = jpeg_std_error(&job->errors);
    job->d.client_data = job; /* kept by jpeg_create_decompress */
    job->errors.error_exit = on_error;
    job->errors.emit_message = image_jpeg_on_message;
    job->errors.output_message = on_output;
    job->progress.progress_monitor = image_jpeg_on_progress;
    job->out = ret;
    job->limits = limits;
    job->err = err;
    int rc = image_jpeg_run(job, ret_orientation, bytes, n);
    jpeg_destroy_decompress(&job->d);
    free(job->cmyk);
    free(job);
    return rc;
}
