/* name.c: see name.h. */
#include "base/name.h"

static bool is_letter_or_digit(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool name_is_fine(const char *s, size_t n)
{
    if (n == 0 || n > NAME_BYTES_MAX || *s == '-' || *s == '.') return false;
    for (size_t i = 0; i < n; i++)
        if (!is_letter_or_digit(s[i]) && s[i] != '-' && s[i] != '_' && s[i] != '.') return false;
    return true;
}
