/* name.c: see name.h. */
#include "base/name.h"

#include <stdio.h>
#include <string.h>

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

bool name_make_fine(char ret[NAME_BYTES_MAX + 1], const char *s, size_t n)
{
    size_t k = 0;
    for (; k < n && k < NAME_BYTES_MAX; k++)
        ret[k] = is_letter_or_digit(s[k]) || s[k] == '_' || s[k] == '.' ? s[k] : '-';
    ret[k] = '\0';
    return name_is_fine(ret, k);
}

const char *name_such(char ret[NAME_SUCH_SIZE], const char *s)
{
    char fine[NAME_BYTES_MAX + 1];
    bool is = name_make_fine(fine, s, strlen(s));
    snprintf(ret, NAME_SUCH_SIZE, "%s%s", is ? ", such as " : "", is ? fine : "");
    return ret;
}

const char *name_without_latest(char ret[NAME_BYTES_MAX + 1], const char *s)
{
    size_t n = strcspn(s, ":");
    if (strcmp(s + n, ":latest") != 0 || !name_is_fine(s, n)) return s;
    memcpy(ret, s, n);
    ret[n] = '\0';
    return ret;
}
