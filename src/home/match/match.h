/* match.h: which devices a text names, in the words of any of a lexicon's languages.
 *
 *     "Mach alle Lichter außer in der Küche aus"      light.hall, light.lounge      by kind
 *     "allume l'éclairage du salon"                   light.lounge                  by area
 *     "turn off Anna's bedside lamp"                  light.bed_anna                by name
 *     "Licht in der Sauna an"                         unknown: "Licht in der Sauna"
 *
 * Every word of what names a device has to be a word of its name, an alias, its area, a group or its id, or
 * mean its kind or its room, in whatever language either is written. A word that is none of these makes the
 * whole of it unknown: nothing is left out so that something fits. Of one device the best fit is taken, and
 * where several fit as well it is ambiguous; "all", plurals and groups mean each that fits.
 *
 * Pure; memory is the caller's arena. Time grows with the devices' words and the text's: at most DEVICES_MAX devices,
 * the rest is left out, and a request's 256 words. */
#ifndef MATCH_MATCH_H
#define MATCH_MATCH_H

#include "match/match_devices.h"
#include "match/utterance.h"

/* X(enum, label, what it means) */
#define MATCH_LABELS(X)                                                      \
    X(MATCH_ONE, "one", "one device is named")                               \
    X(MATCH_MANY, "many", "several devices are named")                       \
    X(MATCH_NONE, "none", "no device is named")                              \
    X(MATCH_AMBIGUOUS, "ambiguous", "several devices fit, and one is meant") \
    X(MATCH_UNKNOWN, "unknown", "something is named that is not there, or cannot be read")
typedef enum match_label {
#define MATCH_ENUM(e, name, about) e,
    MATCH_LABELS(MATCH_ENUM)
#undef MATCH_ENUM
} match_label;
const char *match_label_name(match_label v);

/* How a device was found. X(enum, name, the score that it gives) */
#define MATCH_BY_TABLE(X)           \
    X(MATCH_BY_NAME, "name", 1.0)   \
    X(MATCH_BY_ALIAS, "alias", 1.0) \
    X(MATCH_BY_PART, "part", 0.8)   \
    X(MATCH_BY_GROUP, "group", 0.9) \
    X(MATCH_BY_AREA, "area", 0.9)   \
    X(MATCH_BY_KIND, "kind", 0.7)
typedef enum match_by {
#define MATCH_ENUM(e, name, score) e,
    MATCH_BY_TABLE(MATCH_ENUM)
#undef MATCH_ENUM
} match_by;
const char *match_by_name(match_by b);
double match_by_score(match_by b);

typedef struct match_device {
    size_t device; /* in the list */
    match_by by;
} match_device;

/* Where a text speaks of something that is not there, or that could be any of several. */
typedef struct match_part {
    const char *text; /* as it was written */
    size_t n;
    size_t *devices; /* AMBIGUOUS: those that fit, up to MATCH_SHOWN; n of them */
} match_part;

#define MATCH_PARTS_MAX 16
#define MATCH_SHOWN     16

typedef struct matching {
    match_label label;
    const utterance *utterance; /* the text as it was read; its language is utterance->t */
    size_t n;
    match_device *devices; /* in the list's order, each once */
    size_t n_unknown, n_ambiguous;
    match_part unknown[MATCH_PARTS_MAX], ambiguous[MATCH_PARTS_MAX];
    size_t n_strange;      /* words that neither the language nor any device knows */
    const unit_set *named; /* by sentence: units that are a device's whole name, of two words or more */
} matching;

/* A part of the text that a model found to name a device or a place. Bytes. */
typedef struct match_span {
    size_t begin, end;
} match_span;

typedef struct match_options {
    const language *const
        *only; /* languages that may be spoken, the likeliest first; 0: all of the lexicon */
    size_t n_only;
    const match_span *spans; /* what stands in one names a device or a place, be it known or not; where there
                              * are some, words that nobody knows name none elsewhere */
    size_t n_spans;
} match_options;

/* `options` may be NULL. SHOAL_ENOMEM, or 0. Text that is too long is MATCH_UNKNOWN, whole. */
int match(matching *ret, const device_lexicon *l, const device *list, size_t n, const char *text,
          const match_options *options, arena *a);

#endif
