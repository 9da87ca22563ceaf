#include "signal/image_prep.h"

#include <string.h>

#include "json/json.h"
#include "base/progress.h"

void image_prep_default(image_prep *ret, uint32_t side)
{
    *ret = (image_prep){.resize = true,
                        .rescale = true,
                        .normalize = true,
                        .width = side,
                        .height = side,
                        .filter = IMAGE_BILINEAR,
                        .factor = 1.0 / 255,
                        .mean = {0.5, 0.5, 0.5},
                        .std = {0.5, 0.5, 0.5}};
}

/* ---- configurations --------------------------------------------------------------------------------- */

/* Steps that would change the pixels and are not done here. */
static const char *const UNKNOWN_STEPS[] = {"do_pad",           "do_flip_channel_order", "do_image_splitting",
                                            "do_thumbnail",     "do_align_long_axis",    "do_crop_margin",
                                            "do_color_quantize"};

static int refuse_unknown(const json_t *config, shoal_err *err)
{
    for (size_t i = 0; i < sizeof UNKNOWN_STEPS / sizeof *UNKNOWN_STEPS; i++)
        if (json_is_true(json_object_get(config, UNKNOWN_STEPS[i])))
            return err_set(err, SHOAL_EUNSUPPORTED, "images cannot be prepared with %s", UNKNOWN_STEPS[i]);
    const json_t *pct = json_object_get(config, "crop_pct");
    if (pct && !json_is_null(pct))
        return err_set(err, SHOAL_EUNSUPPORTED, "images cannot be prepared with crop_pct");
    return 0;
}

static int get_side(const json_t *o, const char *key, uint32_t *ret, shoal_err *err)
{
    int64_t v = *ret;
    int rc = json_get_int(o, key, 1, IMAGE_PREP_SIDE_MAX, &v, err);
    if (rc == 0) *ret = (uint32_t)v;
    return rc;
}

/* {"height", "width"}, {"shortest_edge"}, or a number: then a square, but CLIP's resize means the shorter
 * side. */
static int read_size(image_prep *p, const json_t *config, bool number_is_edge, shoal_err *err)
{
    const json_t *size = json_object_get(config, "size");
    int rc;
    if (!size || json_is_null(size)) return 0;
    p->width = p->height = p->shortest = 0;
    if (!json_is_object(size)) {
        rc = get_side(config, "size", &p->shortest, err);
        if (rc != 0 || number_is_edge) return rc;
        p->width = p->height = p->shortest;
        p->shortest = 0;
        return 0;
    }
    if (json_object_get(size, "longest_edge"))
        return err_set(err, SHOAL_EUNSUPPORTED, "images cannot be prepared with size.longest_edge");
    if ((rc = get_side(size, "height", &p->height, err)) != 0 ||
        (rc = get_side(size, "width", &p->width, err)) != 0 ||
        (rc = get_side(size, "shortest_edge", &p->shortest, err)) != 0)
        return rc;
    if (p->shortest ? p->width || p->height : !p->width || !p->height)
        return err_set(err, SHOAL_EINVALID, "size needs height and width, or shortest_edge");
    return 0;
}

static int read_crop(image_prep *p, const json_t *config, shoal_err *err)
{
    const json_t *size = json_object_get(config, "crop_size");
    int rc;
    if (json_is_object(size)) {
        if ((rc = get_side(size, "height", &p->crop_height, err)) != 0 ||
            (rc = get_side(size, "width", &p->crop_width, err)) != 0)
            return rc;
    } else {
        if ((rc = get_side(config, "crop_size", &p->crop_width, err)) != 0) return rc;
        p->crop_height = p->crop_width;
    }
    if (p->crop && (!p->crop_width || !p->crop_height))
        return err_set(err, SHOAL_EINVALID, "do_center_crop needs crop_size with height and width");
    return 0;
}

/* Three numbers, or one for all. */
static int read_channels(double ret[3], const json_t *config, const char *key, bool needed, double least,
                         shoal_err *err)
{
    const json_t *list = json_object_get(config, key);
    if (!list || json_is_null(list))
        return needed ? err_set(err, SHOAL_EINVALID, "do_normalize needs %s", key) : 0;
    for (size_t i = 0; i < 3; i++) {
        const json_t *v = json_is_array(list) ? json_array_get(list, i) : list;
        if (!json_is_number(v) || (json_is_array(list) && json_array_size(list) != 3))
            return err_set(err, SHOAL_EINVALID, "%s is not a list of three numbers", key);
        ret[i] = json_number_value(v);
        if (!(ret[i] >= least && ret[i] <= 1e6))
            return err_set(err, SHOAL_EINVALID, "%s has %g, which is out of range", key, ret[i]);
    }
    return 0;
}

static int read_filter(image_prep *p, const json_t *config, shoal_err *err)
{
    int64_t filter = p->filter;
    int rc = json_get_int(config, "resample", 0, IMAGE_HAMMING, &filter, err);
    if (rc == 0) p->filter = (image_filter)filter;
    return rc;
}

static int read_switches(image_prep *p, const json_t *config, shoal_err *err)
{
    int rc;
    if ((rc = json_get_bool(config, "do_resize", &p->resize, err)) != 0 ||
        (rc = json_get_bool(config, "do_center_crop", &p->crop, err)) != 0 ||
        (rc = json_get_bool(config, "do_rescale", &p->rescale, err)) != 0 ||
        (rc = json_get_bool(config, "do_normalize", &p->normalize, err)) != 0)
        return rc;
    return json_get_num(config, "rescale_factor", 1e-9, 1e6, &p->factor, err);
}

int image_prep_read(image_prep *ret, const json_t *config, shoal_err *err)
{
    image_prep p;
    const char *kind = "", *old_kind = "";
    int rc;
    if (!json_is_object(config))
        return err_set(err, SHOAL_EINVALID, "the image configuration is no JSON object");
    if ((rc = json_get_str(config, "image_processor_type", &kind, err)) != 0 ||
        (rc = json_get_str(config, "feature_extractor_type", &old_kind, err)) != 0 ||
        (rc = refuse_unknown(config, err)) != 0)
        return rc;
    if (!*kind) kind = old_kind;
    bool clip = strstr(kind, "CLIP") != NULL, vit = !*kind || strncmp(kind, "ViT", 3) == 0;
    image_prep_default(&p, 224);
    p.crop = clip;
    if ((rc = read_switches(&p, config, err)) != 0 || (rc = read_size(&p, config, clip, err)) != 0 ||
        (rc = read_crop(&p, config, err)) != 0 || (rc = read_filter(&p, config, err)) != 0 ||
        (rc = read_channels(p.mean, config, "image_mean", p.normalize && !vit, -1e6, err)) != 0 ||
        (rc = read_channels(p.std, config, "image_std", p.normalize && !vit, 1e-9, err)) != 0)
        return rc;
    *ret = p;
    return 0;
}

/* ---- shapes ----------------------------------------------------------------------------------------- */

/* What resizing gives; the longer side is rounded down. Images have at most IMAGE_SIDE_MAX a side. */
static void resized_shape(const image_prep *p, uint32_t width, uint32_t height, uint64_t *w, uint64_t *h)
{
    *w = p->resize ? p->width : width;
    *h = p->resize ? p->height : height;
    if (!p->resize || !p->shortest) return;
    *w = width <= height ? p->shortest : (uint64_t)p->shortest * width / height;
    *h = width <= height ? (uint64_t)p->shortest * height / width : p->shortest;
}

int image_prep_shape(const image_prep *p, uint32_t width, uint32_t height, uint32_t *ret_width,
                     uint32_t *ret_height, shoal_err *err)
{
    uint64_t w, h;
    if (width < 1 || height < 1) return err_set(err, SHOAL_EINVALID, "the image has no pixels");
    resized_shape(p, width, height, &w, &h);
    if (w > IMAGE_SIDE_MAX || h > IMAGE_SIDE_MAX || w * h > IMAGE_PIXELS_MAX)
        return err_set(err, SHOAL_ELIMIT, "an image of %u x %u pixels is too long a strip to be resized",
                       width, height);
    if (p->crop) {
        w = p->crop_width;
        h = p->crop_height;
    }
    if (w > IMAGE_PREP_SIDE_MAX || h > IMAGE_PREP_SIDE_MAX)
        return err_set(err, SHOAL_ELIMIT,
                       "an image of %u x %u pixels is %llu x %llu when prepared: at most %d a side", width,
                       height, (unsigned long long)w, (unsigned long long)h, IMAGE_PREP_SIDE_MAX);
    *ret_width = (uint32_t)w;
    *ret_height = (uint32_t)h;
    return 0;
}

/* ---- pixels ----------------------------------------------------------------------------------------- */

/* A channel has only 256 values: table[v] is what v becomes. Float arithmetic as the reference's. */
static void make_table(const image_prep *p, size_t channel, float table[256])
{
    for (int v = 0; v < 256; v++) {
        float x = p->rescale ? (float)(v * p->factor) : (float)v;
        table[v] = p->normalize ? (x - (float)p->mean[channel]) / (float)p->std[channel] : x;
    }
}

/* The centre of width x height, rounded to the top left; beyond the image is black. */
static void put_planes(const image_prep *p, const image *im, uint32_t width, uint32_t height, float *out)
{
    int64_t dx = (int64_t)im->width - width, dy = (int64_t)im->height - height;
    int64_t left = (dx - (dx < 0)) / 2, top = (dy - (dy < 0)) / 2;
    for (size_t c = 0; c < 3; c++) {
        float table[256];
        make_table(p, c, table);
        for (int64_t y = 0; y < height; y++, progress_add(8 * (size_t)width))
            for (int64_t x = 0; x < width; x++) {
                int64_t sx = x + left, sy = y + top;
                bool inside = sx >= 0 && sy >= 0 && sx < im->width && sy < im->height;
                *out++ = table[inside ? im->rgb[((size_t)sy * im->width + (size_t)sx) * 3 + c] : 0];
            }
    }
}

int image_prep_run(const image_prep *p, const image *im, float *out, shoal_err *err)
{
    uint32_t width, height;
    int rc = image_prep_shape(p, im->width, im->height, &width, &height, err);
    if (rc != 0) return rc;
    image resized = {0};
    uint64_t w, h;
    resized_shape(p, im->width, im->height, &w, &h);
    if (w != im->width || h != im->height) {
        rc = image_resize(&resized, im, (uint32_t)w, (uint32_t)h, p->filter, err);
        if (rc != 0) return rc;
        im = &resized;
    }
    put_planes(p, im, width, height, out);
    image_done(&resized);
    return 0;
}
