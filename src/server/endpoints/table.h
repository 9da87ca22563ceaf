/* table.h: all that this server answers; a new endpoint is a row here and a handler in inference/, documents/ or
 * operations/. What a row says is in request/endpoint.h. */
#ifndef ENDPOINTS_TABLE_H
#define ENDPOINTS_TABLE_H

#include "request/endpoint.h"

extern const endpoint_table ENDPOINTS; /* for gateway_new */

#endif
