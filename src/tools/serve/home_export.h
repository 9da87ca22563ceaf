/* home_export.h: the devices of a home as Home Assistant exports them.
 *
 * Three documented forms, of which any number may be given, in any order:
 *   GET /api/states             [{"entity_id": "light.kitchen", "state": "off", "attributes": {"friendly_name": ...}}]
 *   .storage/core.NAME_registry {"key": "core.entity_registry", "data": {"entities": [{"entity_id": ..., "name": ...,
 *                               "original_name": ..., "aliases": [...], "area_id": ..., "device_id": ...}]}}, and those of
 *                               devices and areas, which tell in which area a thing is
 *   GET /api/config             {"unit_system": {"temperature": "°F", ...}}, the unit of what has a temperature and says none
 *
 *     home_export x = {0};
 *     home_export_add(&x, json, &known, &err);
 *     home_export_devices(&x, domains, n, &list, &err);     [{"id", "name", "state", "unit"?, "area"?, "aliases"?}]
 *     home_export_done(&x); */
#ifndef SERVE_HOME_EXPORT_H
#define SERVE_HOME_EXPORT_H

#include <stdbool.h>

#include "base/err.h"
#include "json/json.h"

typedef struct home_export { /* references into what was added; NULL: none was */
    json_t *states, *entities, *devices, *areas, *units;
} home_export;

/* *ret_known: it is one of these forms; of two of one form the later counts. */
void home_export_add(home_export *x, const json_t *document, bool *ret_known);
/* Those of these domains ("light"), which also say the order; without those that are hidden, disabled or have no name
 * that a configuration may give. *ret is the caller's. SHOAL_ENOMEM. */
int home_export_devices(const home_export *x, const char *const *domains, size_t n_domains, json_t **ret,
                        shoal_err *err);
/* How many devices are of other domains: {"automation": 12}, in the order of the export. *ret is the caller's.
 * SHOAL_ENOMEM. */
int home_export_left_out(const home_export *x, const char *const *domains, size_t n_domains, json_t **ret,
                         shoal_err *err);
void home_export_done(home_export *x);

#endif
