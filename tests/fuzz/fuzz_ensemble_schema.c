/* A schema and a text, apart at the first byte 1F: a schema is taken or refused with a sentence, and what
 * fits it is JSON. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "ensemble/verify_json.h"
#include "memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void see(const verify_schema *s, const char *text)
{
    verify_why why = VERIFY_FINE, any = VERIFY_FINE;
    if (!holds(verify_json(&why, s, text) == 0 && verify_json(&any, NULL, text) == 0)) return;
    if (any == VERIFY_NO_FIT || (any == VERIFY_NO_JSON) != (why == VERIFY_NO_JSON)) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    verify_schema *s = NULL;
    shoal_err err = {0};
    char *text = malloc(size + 1);
    if (!text) return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    char *at = strchr(text, 0x1F);
    if (at) *at = '\0';
    if (verify_schema_parse(&s, text, strlen(text), "fuzz", &err) == 0)
        see(s, at ? at + 1 : "");
    else if (!*err.message)
        abort();
    verify_schema_free(s);
    free(text);
    return 0;
}
