/* llama_impl.h: what the files of llama-server's endpoints share: whom a request means. */
#ifndef COMPAT_LLAMA_IMPL_H
#define COMPAT_LLAMA_IMPL_H

#include "request/request.h"

enum { LLAMA_NAME_MAX = 128 };

/* The model that is asked for, which is there and is no route; of `given` NULL the only one with this task.
 */
int llama_choose(gateway_request *rq, const char *given, const char *task, char ret[LLAMA_NAME_MAX],
                 api_error *e);
/* Its name without an adapter. */
void llama_base(const char *model, char ret[LLAMA_NAME_MAX]);

#endif
