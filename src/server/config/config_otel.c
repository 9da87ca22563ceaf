/* config_otel.c: checks of where telemetry goes; see config_otel.h. */
#include "config/config_otel.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "config/config.h"

int config_check_otel(const gateway_config *c, shoal_err *err)
{
    const config_otel *o = &c->otel;
    shoal_err why;
    if (o->endpoint && host_url_check(o->endpoint, &why))
        return err_set(err, SHOAL_EINVALID, "otel.endpoint: %s", why.message);
    int rc = 0;
    for (size_t i = 0; !rc && i < o->n_headers; i++) {
        rc = host_header_check(&o->headers[i], "otel.", i, err);
        if (!rc && strcasecmp(o->headers[i].name, "content-encoding") == 0)
            rc = err_set(err, SHOAL_EINVALID, "otel.headers[%zu].name: 'compression' says that", i);
    }
    for (size_t i = 0; !rc && i < o->n_resource; i++)
        if (strcmp(o->resource[i].key, "service.name") == 0)
            rc = err_set(err, SHOAL_EINVALID, "otel.resource: 'service_name' says what service.name is");
    return rc;
}
