/* trimmed.c: see trimmed.h. */
#include "speech/trimmed.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/progress.h"
#include "speech/activity.h"

typedef struct piece {
    size_t at, from, n; /* trimmed[at ..] is original[from ..] */
} piece;

struct trimmed {
    sound *sound;
    activity *activity; /* NULL: nothing is taken out */
    size_t pause;       /* samples; longer ones are taken out */
    size_t n_read;      /* samples of the original that were looked at, */
    size_t n_decided;   /* that are known to be speech or not, */
    size_t n_done;      /* and that were kept or taken out; between these two is a pause that may be short */
    bool ended;
    bool any;    /* there was a piece */
    buf samples; /* float: the trimmed sound from first_at on */
    size_t first_at;
    buf pieces; /* those that the samples are from, and one more before */
};

int trimmed_new(trimmed **ret, sound *s, uint32_t rate, size_t pause, bool trims, shoal_err *err)
{
    trimmed *t = calloc(1, sizeof *t);
    if (!t) return err_nomem(err);
    *t = (trimmed){.sound = s, .pause = pause};
    int rc = trims ? activity_new(&t->activity, rate, err) : 0;
    if (rc == 0)
        *ret = t;
    else
        trimmed_free(t);
    return rc;
}

void trimmed_free(trimmed *t)
{
    if (!t) return;
    activity_free(t->activity);
    buf_done(&t->samples);
    buf_done(&t->pieces);
    free(t);
}

static size_t n_samples(const trimmed *t)
{
    return t->samples.len / sizeof(float);
}

static piece *pieces_of(const trimmed *t, size_t *ret_n)
{
    *ret_n = t->pieces.len / sizeof(piece);
    return (piece *)(void *)t->pieces.data;
}

/* ---- what is kept -------------------------------------------------------------------------------- */

/* original[from, to) goes behind what there is. */
static int trimmed_keep(trimmed *t, size_t from, size_t to, shoal_err *err)
{
    const float *x;
    size_t n, k;
    int rc = sound_view(t->sound, from, to - from, &x, &n, err);
    if (rc != 0 || n == 0) return rc;
    piece *p = pieces_of(t, &k), *last = k ? &p[k - 1] : NULL;
    if (last && last->from + last->n == from) {
        last->n += n;
    } else {
        piece next = {.at = t->first_at + n_samples(t), .from = from, .n = n};
        if (buf_append(&t->pieces, &next, sizeof next)) return err_nomem(err);
    }
    t->any = true;
    return buf_append(&t->samples, x, n * sizeof *x) ? err_nomem(err) : 0;
}

/* The next hop's samples, of which the end of the sound may leave some out. A pause is kept with the speech
 * behind it, if it is short and there is speech before it. */
static int decided(trimmed *t, size_t n, bool speech, shoal_err *err)
{
    size_t end = t->n_decided + n;
    int rc = 0;
    if (speech) {
        bool is_short = t->any && t->n_decided - t->n_done <= t->pause;
        rc = trimmed_keep(t, is_short ? t->n_done : t->n_decided, end, err);
        t->n_done = end;
    }
    t->n_decided = end;
    if (t->n_decided - t->n_done > t->pause) t->n_done = t->n_decided - t->pause - 1;
    return rc;
}

static int take_decisions(trimmed *t, shoal_err *err)
{
    bool speech = false, last = false, any = false;
    int rc = 0;
    while (rc == 0 && activity_next(t->activity, &speech)) {
        size_t left = t->n_read - t->n_decided, hop = activity_hop(t->activity);
        rc = decided(t, hop < left ? hop : left, speech, err);
        last = speech;
        any = true;
    }
    if (rc == 0 && t->ended && any && t->n_decided < t->n_read)
        rc = decided(t, t->n_read - t->n_decided, last, err);
    return rc;
}

/* Look at more of the sound. */
static int read_more(trimmed *t, shoal_err *err)
{
    const float *x;
    size_t most = activity_push_max(t->activity), held = t->n_read - t->n_done, n;
    int rc = sound_view(t->sound, t->n_done, held + most, &x, &n, err);
    if (rc != 0) return rc;
    t->ended = n < held + most;
    if (n > held && activity_push(t->activity, x + held, n - held)) return err_nomem(err);
    if (n > held) t->n_read += n - held;
    if (t->ended) activity_end(t->activity);
    progress_tick();
    return take_decisions(t, err);
}

/* ---- views --------------------------------------------------------------------------------------- */

static void forget_before(trimmed *t, size_t at)
{
    size_t n = at - t->first_at, k;
    if (n > n_samples(t)) n = n_samples(t);
    buf_consume(&t->samples, n * sizeof(float));
    t->first_at += n;
    piece *p = pieces_of(t, &k);
    size_t gone = 0;
    while (gone + 1 < k && p[gone + 1].at + p[gone + 1].n <= t->first_at) gone++;
    buf_consume(&t->pieces, gone * sizeof *p);
}

static int view_all(trimmed *t, size_t at, size_t n, const float **ret, size_t *ret_n, shoal_err *err)
{
    int rc = sound_view(t->sound, at, n, ret, ret_n, err);
    t->first_at = at;
    return rc;
}

int trimmed_view(trimmed *t, size_t at, size_t n, const float **ret, size_t *ret_n, shoal_err *err)
{
    int rc = 0;
    if (!t->activity) return view_all(t, at, n, ret, ret_n, err);
    forget_before(t, at);
    while (rc == 0 && !t->ended && n_samples(t) < n) rc = read_more(t, err);
    if (rc != 0) return rc;
    *ret = (const float *)(const void *)t->samples.data;
    *ret_n = n_samples(t) < n ? n_samples(t) : n;
    return 0;
}

/* ---- places -------------------------------------------------------------------------------------- */

/* In the last piece that begins before `at`, or at it where that begins something. */
static size_t origin(const trimmed *t, size_t at, bool ends)
{
    size_t n, i = 0;
    if (!t->activity) return at;
    const piece *p = pieces_of(t, &n);
    if (n == 0) return 0;
    while (i + 1 < n && (ends ? p[i + 1].at < at : p[i + 1].at <= at)) i++;
    return at > p[i].at ? p[i].from + (at - p[i].at) : p[i].from;
}

size_t trimmed_origin(const trimmed *t, size_t at)
{
    return origin(t, at, false);
}

size_t trimmed_origin_of_end(const trimmed *t, size_t at)
{
    return origin(t, at, true);
}

size_t trimmed_seam(const trimmed *t, size_t from, size_t to)
{
    size_t n;
    const piece *p = pieces_of(t, &n);
    for (size_t i = 0; i < n; i++)
        if (p[i].at > from && p[i].at <= to) return p[i].at;
    return 0;
}

size_t trimmed_passed(const trimmed *t, size_t at)
{
    if (!t->activity) return at;
    return at < t->first_at + n_samples(t) ? trimmed_origin(t, at) : t->n_decided;
}
