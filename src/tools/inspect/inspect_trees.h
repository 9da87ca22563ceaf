/* inspect_trees.h: what a file or folder of gradient-boosted trees is, for a person who found it. */
#ifndef INSPECT_INSPECT_TREES_H
#define INSPECT_INSPECT_TREES_H

#include "base/buf.h"
#include "forest/scorer.h"

void inspect_trees_put(buf *out, const scorer *s, const char *path);
void inspect_trees_put_json(buf *out, const scorer *s, const char *path);

#endif
