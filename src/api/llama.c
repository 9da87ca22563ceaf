/* llama.c: what llama-server's clients ask, and what they hear; see llama.h. */
#include "api/llama.h"

#include <string.h>

#include "base/json.h"

static const char *type_of(int status)
{
    static const struct {
        int status;
        const char *type;
    } ROWS[] = {{401, "authentication_error"}, {403, "permission_error"},  {404, "not_found_error"},
                {501, "not_supported_error"},  {503, "unavailable_error"}, {429, "rate_limit_error"}};
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++)
        if (ROWS[i].status == status) return ROWS[i].type;
    return status >= 500 ? "server_error" : "invalid_request_error";
}

void llama_put_error(buf *out, const api_error *e)
{
    buf_printf(out, "{\"error\":{\"code\":%d,\"message\":", e->status);
    json_put_string(out, e->message, strlen(e->message));
    buf_printf(out, ",\"type\":\"%s\"}}", type_of(e->status));
}
