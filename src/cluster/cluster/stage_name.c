/* stage_name.c: see stage_name.h. */
#include "cluster/stage_name.h"

#include <stdio.h>
#include <string.h>

enum { LAYER_DIGITS = 6 };

bool stage_name_put(char *ret, size_t size, const char *model, size_t first, size_t end)
{
    int n = snprintf(ret, size, "%s@%zu:%zu", model, first, end);
    return n > 0 && (size_t)n < size;
}

/* Moves *s behind the number; false: there is none, or a longer one than any network has layers. */
static bool read_layer(const char **s, size_t *ret)
{
    size_t n = strspn(*s, "0123456789");
    *ret = 0;
    for (size_t i = 0; i < n && n <= LAYER_DIGITS; i++) *ret = *ret * 10 + (size_t)((*s)[i] - '0');
    *s += n;
    return n > 0 && n <= LAYER_DIGITS;
}

bool stage_name_parse(const char *name, size_t *ret_n_model, size_t *ret_first, size_t *ret_end)
{
    size_t first, end, n = strcspn(name, "@/");
    const char *s = name + n + 1;
    if (n == 0 || name[n] != '@' || !read_layer(&s, &first) || *s++ != ':' || !read_layer(&s, &end))
        return false;
    if ((*s != '\0' && *s != '/') || first >= end) return false;
    if (ret_n_model) *ret_n_model = n;
    if (ret_first) *ret_first = first;
    if (ret_end) *ret_end = end;
    return true;
}
