/* err.c: names and texts of the codes, all from SHOAL_ERROR_TABLE in shoal.h, and sentences about failures.
 * Nothing here allocates, so that running out of memory can be reported too. */
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *shoal_err_name(int code)
{
    switch (code) {
#define NAME_CASE(name, value, text) \
    case value: return #name;
        SHOAL_ERROR_TABLE(NAME_CASE)
#undef NAME_CASE
    default: return code == 0 ? "SHOAL_OK" : "SHOAL_EUNKNOWN";
    }
}

const char *shoal_err_text(int code)
{
    switch (code) {
#define TEXT_CASE(name, value, text) \
    case value: return text;
        SHOAL_ERROR_TABLE(TEXT_CASE)
#undef TEXT_CASE
    default: return code == 0 ? "no error" : "unknown error";
    }
}

/* A cut sentence must not end in half a character. */
static void trim_utf8(char *s)
{
    size_t n = strlen(s), i = n;
    while (i > 0 && n - i < 4 && ((unsigned char)s[i - 1] & 0xC0) == 0x80) i--;
    if (i == 0) return;
    unsigned char lead = (unsigned char)s[i - 1];
    size_t want = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC0 ? 2 : 1;
    if (want > 1 && n - (i - 1) < want) s[i - 1] = '\0';
}

int err_set(shoal_err *err, int code, const char *fmt, ...)
{
    if (!err) return code;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(err->message, sizeof err->message, fmt, ap);
    va_end(ap);
    trim_utf8(err->message);
    err->code = code;
    return code;
}

int err_prefix(shoal_err *err, int code, const char *fmt, ...)
{
    if (!err) return code;
    char old[sizeof err->message];
    memcpy(old, err->message, sizeof old);
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(err->message, sizeof err->message, fmt, ap);
    va_end(ap);
    if (n >= 0 && (size_t)n + 3 < sizeof err->message) {
        size_t room = sizeof err->message - (size_t)n - 3, len = strlen(old);
        if (len > room) len = room;
        memcpy(err->message + n, ": ", 2);
        memcpy(err->message + n + 2, old, len);
        err->message[(size_t)n + 2 + len] = '\0';
    }
    trim_utf8(err->message);
    return err->code ? err->code : code;
}

int err_nomem(shoal_err *err)
{
    return err_set(err, SHOAL_ENOMEM, "out of memory");
}
