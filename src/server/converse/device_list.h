/* device_list.h: the devices that a text lists, in the forms in which applications tell them to a model.
 *
 *     light.kitchen 'Kitchen Light' = off        Shoal's own, a line a device
 *
 *     - names: Kitchen Light, Ceiling            Home Assistant's list, and what its GetLiveContext answers
 *       domain: light
 *       state: 'off'
 *       areas: Kitchen
 *       attributes:
 *         current_temperature: '19.5'
 *
 *     light.kitchen:                             the same of its older versions
 *       names: Kitchen Light
 *       state: 'off'
 *
 * An entry without an id gets one of its domain and its first name. A device that is listed twice has the
 * state that was told last. Lines of any other form are skipped. Bytes may be anyone's; pure. */
#ifndef CONVERSE_DEVICE_LIST_H
#define CONVERSE_DEVICE_LIST_H

#include <stdbool.h>

#include "base/arena.h"
#include "pipeline/device.h"

typedef struct device_list {
    size_t n;
    device at[DEVICES_MAX];    /* texts in the arena */
    bool made_id[DEVICES_MAX]; /* its id was made of its name */
} device_list;

/* Add the devices of `text`; of more than DEVICES_MAX the rest is left out. SHOAL_ENOMEM, or 0. */
int device_list_read(device_list *to, const char *text, arena *a);
/* Add one by its domain and name, or by its id ("light.kitchen") where it is one. SHOAL_ENOMEM, or 0. */
int device_list_add(device_list *to, const char *domain, const char *name, arena *a);

#endif
