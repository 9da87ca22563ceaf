/* logs.h: GET /v1/logs, the last lines of the server's log, and with follow=true those to come.
 *
 *     GET /v1/logs?lines=100&level=warn
 *         {"lines":[{"time","level","component","event",...}],"last":412}
 *
 *     GET /v1/logs?follow=true
 *         id: 413
 *         data: {"time",...}
 *
 * What is kept is logging/log_ring.h's: of this process, and no prompt text, since the log has none. `last`, or
 * the id of an event (also as Last-Event-ID), is where `after` goes on; lines that are gone by then are
 * counted in a line of their own. Loop thread. */
#ifndef OPERATIONS_LOGS_H
#define OPERATIONS_LOGS_H

#include "request/request.h"

void logs_handle(gateway_request *rq);

#endif
