/* table.h: all that this server answers; a new endpoint is a row here and a handler beside it. */
#ifndef ENDPOINTS_TABLE_H
#define ENDPOINTS_TABLE_H

#include "request/endpoint.h"

extern const endpoint_table ENDPOINTS; /* for gateway_new */

#endif
