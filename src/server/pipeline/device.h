/* device.h: the devices of a home as configurations and requests list them, and what is called of them. Plain
 * data: whoever makes one owns its texts. */
#ifndef PIPELINE_DEVICE_H
#define PIPELINE_DEVICE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/sha256.h"

#define DEVICES_MAX 256

typedef struct device {
    const char *id, *name; /* "light.kitchen", "Kitchen Light" */
    const char *state;     /* "" or NULL: not known */
    const char *unit;      /* of numbers that it tells and takes: "°F"; NULL: none is given */
    bool unit_open;        /* no unit, and it need not be the usual one either: nobody has said it */
    const char *measured;  /* what it measures beside that, "21.5"; NULL: nothing is told */
    const char *area;      /* NULL: none is given */
    const char *const *aliases;
    size_t n_aliases;
    const char *const *groups; /* what it belongs to beside its area ("upstairs") */
    size_t n_groups;
    const char *const *services; /* that it has and others of its kind may lack: "set_cover_position" */
    size_t n_services;
    const char *kind; /* what it is, where its id does not say so; NULL: the id's domain says it */
} device;

typedef struct device_call {
    const char *name;      /* "light.turn_on" */
    const char *arguments; /* JSON object: {"target": "light.kitchen", "brightness": 40} */
} device_call;

/* One way to carry out a request. */
typedef struct device_option {
    const char *say; /* "Turning on Kitchen Light." */
    size_t n_calls;
    device_call *calls;
} device_option;

/* Of all that a run reads of them. False: out of memory. */
bool devices_digest(const device *list, size_t n, sha256_digest *ret);

/* What a bundled model would reply to take it: the worker takes the calls out again. NULL: no memory. */
char *device_option_text(const device_option *o, arena *mem);

#endif
