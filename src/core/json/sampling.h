/* sampling.h: what a client may ask of the sampler, in one table.
 *
 * The ranges are OpenAI's where OpenAI has the field. HTTP, the worker protocol, the library and the
 * command line all check against these rows, so that none of them takes what another refuses. 0 is always
 * allowed: it turns a field off (temperature 0 is greedy).
 *
 *     #define CHECK(field, min, max) if (rc == 0) rc = sampling_check(#field, (double)s->field, err);
 *     SAMPLING_TABLE(CHECK) */
#ifndef JSON_SAMPLING_H
#define JSON_SAMPLING_H

#include <stdbool.h>

#include "base/clock.h"
#include "base/err.h"
#include "json/json.h"

#define SAMPLING_TEMPERATURE_MAX 2
#define SAMPLING_TOP_P_MAX       1

/* X(field, least besides 0, most) */
#define SAMPLING_TABLE(X)                       \
    X(temperature, 0, SAMPLING_TEMPERATURE_MAX) \
    X(top_k, 0, 1000000)                        \
    X(top_p, 0, SAMPLING_TOP_P_MAX)             \
    X(min_p, 0, 1)                              \
    X(repetition_penalty, 0.01, 10)             \
    X(presence_penalty, -2, 2)                  \
    X(frequency_penalty, -2, 2)

/* 0, or SHOAL_EINVALID with the field's name and range. `field` is one of the table's. */
int sampling_check(const char *field, double v, shoal_err *err);

/* ---- defaults --------------------------------------------------------------------------------------- */

/* A request that does not say a field gets it from the first of these that says it:
 *
 *     models[].sampling in shoal.yaml > "sampling" in models.json > the model's own files
 *     > the API's own (SAMPLING_OLLAMA, SAMPLING_LLAMA) > SAMPLING_LAST */

#define SAMPLING_INDEX(field, min, max) SAMPLING_AT_##field,
enum { SAMPLING_TABLE(SAMPLING_INDEX) SAMPLING_N_FIELDS };
#undef SAMPLING_INDEX
#define SAMPLING_BIT(field) (1u << SAMPLING_AT_##field)
#define SAMPLING_ALL        ((1u << SAMPLING_N_FIELDS) - 1)

typedef struct sampling_defaults { /* zeroed: nothing is said */
#define SAMPLING_MEMBER(field, min, max) float field;
    SAMPLING_TABLE(SAMPLING_MEMBER)
#undef SAMPLING_MEMBER
    unsigned said; /* SAMPLING_BIT of each field that has a value */
} sampling_defaults;

extern const sampling_defaults SAMPLING_OLLAMA; /* of Ollama's /api/: all fields are said */
extern const sampling_defaults SAMPLING_LLAMA;  /* of llama-server's /completion: all fields are said */
extern const sampling_defaults SAMPLING_LAST;   /* used where no other source has a value; has all fields */
extern const sampling_defaults SAMPLING_GREEDY; /* the likeliest token, no penalties: all fields are said */

bool sampling_is_field(const char *name);
/* SHOAL_EINVALID as sampling_check. A value of top_k that is no whole number is refused. */
int sampling_set(sampling_defaults *d, const char *field, double v, shoal_err *err);
/* False: there is no such field, or nothing is said of it. */
bool sampling_get(const sampling_defaults *d, const char *field, double *ret);
/* What `over` says is put over what *d says. */
void sampling_override(sampling_defaults *d, const sampling_defaults *over);

/* {"temperature": 0.7, "top_p": 0.9}; NULL and null say nothing. SHOAL_EINVALID: a field that there is not, or a value
 * that cannot be. */
int sampling_from_json(sampling_defaults *ret, const json_t *o, shoal_err *err);

/* "temperature=0.7,top_p=0.9": every field that is said, in the table's order; "" when none is. */
enum { SAMPLING_TEXT_BYTES = 256 };
void sampling_format(const sampling_defaults *d, char ret[SAMPLING_TEXT_BYTES]);
/* The same back. SHOAL_EINVALID names what is wrong; *ret is then untouched. */
int sampling_parse(sampling_defaults *ret, const char *text, shoal_err *err);

/* In requests and files top_p 0 means the likeliest token alone; in the engine 0 means off. Converts the first form. */
static inline void sampling_top_p(float *top_p)
{
    if (*top_p == 0) *top_p = 1e-6f;
}

/* The seed of one choice of one prompt of a request; the first choice of the first prompt has the request's
 * own. A sum would make choice k+1 of one seed choice k of the next. Applied to its result it gives the
 * request's seed back. */
static inline uint64_t sampling_seed(uint64_t seed, uint32_t prompt, uint32_t choice)
{
    uint64_t mask = choice ? rng_mix(choice) : 0;
    return seed ^ mask ^ (prompt ? rng_mix((uint64_t)prompt << 32) : 0);
}

#endif
