/* json_refs.c: see json_refs.h. JSON Schema 2020-12 core, sections 8.2 and 9; draft 7 core, section 8. */
#include "json/json_refs.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/utf8.h"

#define REF_MAX 512 /* bytes of a pointer */

typedef struct refs {
    json_t *places;  /* address, with or without "#name" -> pointer */
    json_t *dynamic; /* name -> pointer, or null where there are several */
    bool old;        /* json_refs_stand_alone: "id" is "$id", and neither counts beside a "$ref" */
    bool failed;
} refs;

/* Where a walk is: what the nearest "$id" is, and the pointer to it. */
typedef struct place {
    const char *id, *id_pointer;
} place;

typedef void (*visit_fn)(refs *r, json_t *schema, const char *pointer, const place *at);

static const char *json_refs_text_of(const json_t *schema, const char *key)
{
    return json_string_value(json_object_get(schema, key));
}

/* ---- addresses ----------------------------------------------------------------------------------- */

static bool has_scheme(const char *s)
{
    size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-.");
    return n > 0 && s[n] == ':';
}

/* The length of scheme and authority. */
static size_t origin_length(const char *s)
{
    const char *slashes = strstr(s, "://");
    return slashes ? (size_t)(slashes + 3 - s) + strcspn(slashes + 3, "/") : 0;
}

/* `address` as seen from `base`, without its fragment. */
static void put_resolved(buf *out, const char *base, const char *address)
{
    size_t n = strcspn(address, "#"), keep = strlen(base);
    if (n > 0 && has_scheme(address)) {
        keep = 0;
    } else if (n > 0 && address[0] == '/') {
        keep = origin_length(base);
    } else if (n > 0) {
        while (keep > origin_length(base) && base[keep - 1] != '/') keep--;
    }
    buf_append(out, base, keep);
    buf_append(out, address, n);
}

/* ---- the walk ------------------------------------------------------------------------------------ */

static bool is_among(const char *key, const char *const *keys)
{
    for (; *keys; keys++)
        if (strcmp(key, *keys) == 0) return true;
    return false;
}

static void put_step(buf *pointer, const char *key)
{
    buf_putc(pointer, '/');
    for (; *key; key++) {
        if (*key == '~' || *key == '/')
            buf_puts(pointer, *key == '~' ? "~0" : "~1");
        else if (*key == '%')
            buf_puts(pointer, "%25");
        else
            buf_putc(pointer, *key);
    }
}

static void walk(refs *r, json_t *at, bool names, buf *pointer, place here, visit_fn visit);

static void walk_members(refs *r, json_t *at, bool names, buf *pointer, place here, visit_fn visit)
{
    static const char *const VALUES[] = {"const", "enum", "default", "example", "examples", NULL};
    static const char *const NAMES[] = {"properties",  "patternProperties", "$defs",
                                        "definitions", "dependentSchemas",  NULL};
    size_t len = pointer->len, i;
    const char *key;
    json_t *one;
    json_object_foreach(at, key, one)
    {
        pointer->len = len;
        put_step(pointer, key);
        if (names || !is_among(key, VALUES))
            walk(r, one, !names && json_is_object(one) && is_among(key, NAMES), pointer, here, visit);
    }
    json_array_foreach(at, i, one)
    {
        pointer->len = len;
        buf_printf(pointer, "/%zu", i);
        walk(r, one, false, pointer, here, visit);
    }
    pointer->len = len;
}

/* Every object that may be a schema, and not one whose members are (`names`). */
static void walk(refs *r, json_t *at, bool names, buf *pointer, place here, visit_fn visit)
{
    buf id = {0}, id_pointer = {0};
    if (!json_is_object(at) && !json_is_array(at)) return;
    if (json_is_object(at) && !names) {
        const char *own = json_refs_text_of(at, "$id") ? json_refs_text_of(at, "$id")
                          : r->old                     ? json_refs_text_of(at, "id")
                                                       : NULL;
        bool counts = own && own[0] != '#' && !(r->old && json_object_get(at, "$ref"));
        if (counts) {
            put_resolved(&id, here.id, own);
            buf_append(&id, "", 1);
            buf_append(&id_pointer, pointer->data, pointer->len);
            buf_append(&id_pointer, "", 1);
            here = (place){id.data, id_pointer.data};
        }
        buf_append(pointer, "", 1);
        r->failed |= id.failed || id_pointer.failed || pointer->failed;
        if (!r->failed) visit(r, at, pointer->data, &here);
        if (!pointer->failed) pointer->len--;
    }
    if (!r->failed) walk_members(r, at, names, pointer, here, visit);
    buf_done(&id);
    buf_done(&id_pointer);
}

static void walk_all(refs *r, json_t *root, visit_fn visit)
{
    buf pointer = {0};
    buf_puts(&pointer, "#");
    walk(r, root, false, &pointer, (place){"", "#"}, visit);
    r->failed |= pointer.failed;
    buf_done(&pointer);
}

/* ---- what names there are ------------------------------------------------------------------------ */

static void json_refs_keep(refs *r, const char *base, const char *name, const char *pointer)
{
    buf key = {0};
    buf_puts(&key, base);
    if (name) buf_putc(&key, '#');
    if (name) buf_puts(&key, name);
    buf_append(&key, "", 1);
    r->failed |= key.failed || json_object_set_new(r->places, key.data, json_string(pointer)) != 0;
    buf_done(&key);
}

static void collect(refs *r, json_t *schema, const char *pointer, const place *at)
{
    const char *id = json_refs_text_of(schema, "$id") ? json_refs_text_of(schema, "$id")
                     : r->old                         ? json_refs_text_of(schema, "id")
                                                      : NULL;
    const char *anchor = json_refs_text_of(schema, "$anchor"),
               *dynamic = json_refs_text_of(schema, "$dynamicAnchor");
    if (strcmp(at->id_pointer, pointer) == 0) json_refs_keep(r, at->id, NULL, pointer);
    if (id && id[0] == '#' && id[1] != '/') json_refs_keep(r, at->id, id + 1, pointer);
    if (anchor) json_refs_keep(r, at->id, anchor, pointer);
    if (!dynamic) return;
    json_refs_keep(r, at->id, dynamic, pointer);
    json_t *one = json_object_get(r->dynamic, dynamic) ? json_null() : json_string(pointer);
    r->failed |= json_object_set_new(r->dynamic, dynamic, one) != 0;
}

/* ---- what they lead to --------------------------------------------------------------------------- */

/* The pointer that `ref` means; NULL: it leads elsewhere. `room` holds it where it is made. */
static const char *target(refs *r, const char *ref, const place *at, buf *room)
{
    const char *fragment = strchr(ref, '#');
    bool is_pointer = !fragment || fragment[1] == '/' || fragment[1] == '\0';
    put_resolved(room, at->id, ref);
    if (!is_pointer) buf_puts(room, fragment);
    buf_append(room, "", 1);
    if (room->failed) return NULL;
    const char *found = ref[0] == '#' && is_pointer
                            ? at->id_pointer
                            : json_string_value(json_object_get(r->places, room->data));
    if (!found || !is_pointer || !fragment || !fragment[1]) return found;
    buf_clear(room);
    buf_puts(room, found);
    buf_puts(room, fragment + 1);
    buf_append(room, "", 1);
    return room->failed ? NULL : room->data;
}

/* "$dynamicRef" to the only place of its name, or to none of a dynamic name, and "$recursiveRef" in a document of one
 * resource, are what "$ref" is. */
static const char *dynamic_ref(refs *r, const json_t *schema)
{
    const char *ref = json_refs_text_of(schema, "$dynamicRef"),
               *again = json_refs_text_of(schema, "$recursiveRef");
    const char *name = ref ? strchr(ref, '#') : NULL;
    if (again && json_object_size(r->places) <= 1) return again;
    return ref && !(name && json_is_null(json_object_get(r->dynamic, name + 1))) ? ref : NULL;
}

static void rewrite(refs *r, json_t *schema, const char *pointer, const place *at)
{
    const char *ref = json_refs_text_of(schema, "$ref"), *dynamic = ref ? NULL : dynamic_ref(r, schema);
    buf room = {0};
    const char *to = ref || dynamic ? target(r, ref ? ref : dynamic, at, &room) : NULL;
    json_t *found = to ? json_string(to) : NULL;
    (void)pointer;
    r->failed |= room.failed || (to && !found);
    buf_done(&room);
    if (!found) return;
    if (dynamic) {
        json_object_del(schema, "$dynamicRef");
        json_object_del(schema, "$recursiveRef");
    }
    r->failed |= json_object_set_new(schema, "$ref", found) != 0;
}

/* ---- the whole ----------------------------------------------------------------------------------- */

bool json_refs_stand_alone(const json_t *schema)
{
    const char *draft = json_refs_text_of(schema, "$schema"),
               *number = draft ? strstr(draft, "draft-0") : NULL;
    return number && number[7] >= '3' && number[7] <= '7';
}

static bool is_pointer(const char *ref)
{
    return ref[0] == '#' && (ref[1] == '/' || ref[1] == '\0');
}

/* There is a reference that is no pointer from the root. */
static bool needs_work(const json_t *at, bool is_root)
{
    const char *key, *ref = json_refs_text_of(at, "$ref"),
                     *id = is_root ? NULL : json_refs_text_of(at, "$id");
    json_t *one;
    size_t i;
    if ((ref && !is_pointer(ref)) || (id && id[0] != '#')) return true;
    if (json_refs_text_of(at, "$dynamicRef") || json_refs_text_of(at, "$recursiveRef")) return true;
    json_object_foreach((json_t *)at, key, one)
    {
        if (needs_work(one, false)) return true;
    }
    json_array_foreach(at, i, one)
    {
        if (needs_work(one, false)) return true;
    }
    return false;
}

json_t *json_refs_resolve(const json_t *schema)
{
    refs r = {.old = json_refs_stand_alone(schema)};
    if (!needs_work(schema, true)) return json_incref((json_t *)schema);
    json_t *own = json_deep_copy(schema);
    r.places = json_object();
    r.dynamic = json_object();
    r.failed = !own || !r.places || !r.dynamic;
    if (!r.failed) walk_all(&r, own, collect);
    if (!r.failed) walk_all(&r, own, rewrite);
    json_decref(r.places);
    json_decref(r.dynamic);
    if (!r.failed) return own;
    json_decref(own);
    return NULL;
}

/* ---- pointers ------------------------------------------------------------------------------------ */

/* One step of a JSON pointer in a fragment into `key`, of at most REF_MAX bytes. */
static const char *pointer_step(const char *p, char *key)
{
    for (; *p && *p != '/'; p++, key++) {
        *key = *p;
        if (*p == '%' && hex_digit(p[1]) >= 0 && hex_digit(p[2]) >= 0) {
            *key = (char)(hex_digit(p[1]) * 16 + hex_digit(p[2]));
            p += 2;
        } else if (*p == '~' && (p[1] == '0' || p[1] == '1')) {
            *key = p[1] == '0' ? '~' : '/';
            p++;
        }
    }
    *key = '\0';
    return p;
}

const json_t *json_refs_follow(const json_t *root, const char *ref)
{
    char key[REF_MAX];
    const json_t *at = root;
    if (*ref++ != '#' || strlen(ref) >= sizeof key) return NULL;
    while (at && *ref == '/') {
        ref = pointer_step(ref + 1, key);
        at =
            json_is_array(at) ? json_array_get(at, (size_t)strtoul(key, NULL, 10)) : json_object_get(at, key);
    }
    return *ref ? NULL : at;
}
