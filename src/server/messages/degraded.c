/* degraded.c: see degraded.h. */
#include "messages/degraded.h"

#include <stdio.h>
#include <string.h>

#include "json/json_put.h"

void degraded_set(degraded *d, const char *wanted, const char *by, const char *why)
{
    snprintf(d->wanted, sizeof d->wanted, "%s", wanted);
    snprintf(d->by, sizeof d->by, "%s", by);
    snprintf(d->why, sizeof d->why, "%s", why);
}

void degraded_trust(degraded *d, double confidence)
{
    if (!d->is_confident || confidence < d->confidence) d->confidence = confidence;
    d->is_confident = true;
}

void degraded_put(buf *out, const degraded *d)
{
    json_put_open(out, "degraded", '{');
    json_put_text(out, "wanted", d->wanted);
    json_put_text(out, "answered_by", d->by);
    json_put_text(out, "why", d->why);
    if (d->is_confident) buf_printf(out, ",\"confidence\":%.4g", d->confidence);
    buf_putc(out, '}');
}
