/* json_refs.h: the references of a JSON schema as pointers into it.
 *
 *     {"$id": "http://x/a", "$ref": "b#here", "$defs": {"q": {"$id": "b", "$anchor": "here"}}}
 *                           "$ref": "#/$defs/q"
 *
 * Readers of schemas follow "#" and "#/..." alone. All else that leads within the document is turned into
 * these here: names ("$anchor", a "$dynamicAnchor" that is there once), addresses relative to the "$id"
 * that they stand under (RFC 3986, section 5, without dot segments), "$dynamicRef" and "$recursiveRef"
 * that can only mean one place. What leads elsewhere stays as it is. */
#ifndef JSON_JSON_REFS_H
#define JSON_JSON_REFS_H

#include <jansson.h>
#include <stdbool.h>

/* The schema itself where nothing is to be done, else a copy; the caller owns a reference either way.
 * NULL: no memory. */
json_t *json_refs_resolve(const json_t *schema);

/* What "#" or "#/..." leads to (RFC 6901, section 6), borrowed from root; NULL: it is neither, or leads
 * nowhere. */
const json_t *json_refs_follow(const json_t *root, const char *ref);

/* "$schema" says draft 3 to 7, where keywords beside a "$ref" say nothing. */
bool json_refs_stand_alone(const json_t *schema);

#endif
