/* asset.c: one file among those that the program carries. */
#include "asset/asset.h"

#include <string.h>

const asset *asset_find(const char *name)
{
    for (size_t i = 0; i < N_ASSETS; i++)
        if (strcmp(ASSETS[i].name, name) == 0) return &ASSETS[i];
    return NULL;
}
