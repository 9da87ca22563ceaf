/* proto_schema.c: reading descriptors. Field numbers are descriptor.proto's. */
#include "messages/proto_schema.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/proto_wire.h"

enum { NESTING_MAX = 8 };

enum { SET_FILE = 1 };
enum { FILE_NAME = 1, FILE_PACKAGE = 2, FILE_IMPORT = 3, FILE_MESSAGE = 4, FILE_ENUM = 5, FILE_SERVICE = 6 };
enum { ANY_NAME = 1 }; /* of messages, fields, enums, their values, services and methods */
enum { MESSAGE_FIELD = 2, MESSAGE_NESTED = 3, MESSAGE_ENUM = 4 };
enum { FIELD_NUMBER = 3, FIELD_LABEL = 4, FIELD_TYPE = 5, FIELD_TYPE_NAME = 6, LABEL_REPEATED = 3 };
enum {
    SERVICE_METHOD = 2,
    METHOD_INPUT = 2,
    METHOD_OUTPUT = 3,
    METHOD_STREAMS_IN = 5,
    METHOD_STREAMS_OUT = 6
};

/* Everything that has a full name, and where it is said. */
typedef struct symbol {
    const char *name;
    const proto_file *file;
} symbol;

struct proto_schema {
    arena *mem;
    proto_file *files;
    proto_message *messages;
    proto_method *methods;
    symbol *symbols;
    const char **services;
    size_t n_files, n_messages, n_methods, n_symbols, n_services;
};

/* What is counted first, and filled then. */
typedef struct reading {
    proto_schema *s;
    const proto_file *file; /* that is being read */
    bool counts;            /* sizes alone */
    int rc;
} reading;

static void note(reading *r, int rc)
{
    if (r->rc == 0) r->rc = rc;
}

/* ---- pieces of descriptors ----------------------------------------------------------------------- */

/* The text of the field of that number, "" when there is none. */
static const char *proto_schema_text_of(reading *r, const uint8_t *bytes, size_t n, uint32_t number)
{
    cur c = cur_over(bytes, n);
    proto_item it, found = {0};
    int rc;
    while ((rc = proto_next(&c, &it)) == 1)
        if (it.number == number && it.wire == PROTO_BYTES) found = it;
    note(r, rc);
    const char *s = found.bytes ? arena_strndup(r->s->mem, (const char *)found.bytes, found.n) : "";
    if (!s) note(r, SHOAL_ENOMEM);
    return s ? s : "";
}

static const char *full_name(reading *r, const char *scope, const char *name)
{
    const char *s = *scope ? arena_printf(r->s->mem, "%s.%s", scope, name) : name;
    if (!s) note(r, SHOAL_ENOMEM);
    return s ? s : "";
}

static void add_symbol(reading *r, const char *name)
{
    proto_schema *s = r->s;
    if (!r->counts) s->symbols[s->n_symbols] = (symbol){name, r->file};
    s->n_symbols++;
}

/* Type names begin with a dot: they are full. */
static const proto_message *message_named(const proto_schema *s, const char *type)
{
    return *type == '.' ? proto_schema_message(s, type + 1) : NULL;
}

static uint64_t number_of(reading *r, const uint8_t *bytes, size_t n, uint32_t number)
{
    cur c = cur_over(bytes, n);
    proto_item it;
    uint64_t v = 0;
    int rc;
    while ((rc = proto_next(&c, &it)) == 1)
        if (it.number == number && it.wire == PROTO_VARINT) v = it.value;
    note(r, rc);
    return v;
}

/* Call fn for each field of that number. */
typedef void (*piece_fn)(reading *r, void *to, const uint8_t *bytes, size_t n);

static void each(reading *r, const uint8_t *bytes, size_t n, uint32_t number, piece_fn fn, void *to)
{
    cur c = cur_over(bytes, n);
    proto_item it;
    int rc;
    while (r->rc == 0 && (rc = proto_next(&c, &it)) != 0) {
        if (rc < 0) note(r, rc);
        if (rc == 1 && it.number == number && it.wire == PROTO_BYTES) fn(r, to, it.bytes, it.n);
    }
}

static void proto_schema_count(reading *r, void *to, const uint8_t *bytes, size_t n)
{
    ++*(size_t *)to;
}

/* ---- messages ------------------------------------------------------------------------------------ */

static const char *member_of(reading *r, const char *name)
{
    size_t n = strlen(name), tail = strlen("_json");
    if (n <= tail || strcmp(name + n - tail, "_json") != 0) return NULL;
    const char *s = arena_strndup(r->s->mem, name, n - tail);
    if (!s) note(r, SHOAL_ENOMEM);
    return s;
}

static void read_field(reading *r, void *to, const uint8_t *bytes, size_t n)
{
    proto_message *m = to;
    proto_field f = {.name = proto_schema_text_of(r, bytes, n, ANY_NAME),
                     .number = (uint32_t)number_of(r, bytes, n, FIELD_NUMBER),
                     .type = (proto_type)number_of(r, bytes, n, FIELD_TYPE),
                     .repeated = number_of(r, bytes, n, FIELD_LABEL) == LABEL_REPEATED};
    if (f.type == PROTO_STRING && !f.repeated) f.member = member_of(r, f.name);
    if (f.type == PROTO_MESSAGE) {
        f.message = message_named(r->s, proto_schema_text_of(r, bytes, n, FIELD_TYPE_NAME));
        if (!f.message) note(r, SHOAL_EFORMAT);
    }
    m->fields[m->n++] = f;
    add_symbol(r, full_name(r, m->name, f.name));
    if (f.member && strcmp(f.name, "more_json") == 0) m->more = &m->fields[m->n - 1];
}

/* The fields of messages point to messages, all of which are there by the time that fields are read. */
static void fill_message(reading *r, proto_message *m, const uint8_t *bytes, size_t n)
{
    size_t n_fields = 0;
    each(r, bytes, n, MESSAGE_FIELD, proto_schema_count, &n_fields);
    m->fields = arena_alloc(r->s->mem, (n_fields + 1) * sizeof *m->fields);
    m->n = 0; /* a name that comes twice is the last one's */
    m->more = NULL;
    if (!m->fields)
        note(r, SHOAL_ENOMEM);
    else
        each(r, bytes, n, MESSAGE_FIELD, read_field, m);
}

typedef struct scope {
    const char *name;
    unsigned depth;
    bool fills; /* the second walk: fields */
} scope;

static void read_enum(reading *r, void *to, const uint8_t *bytes, size_t n)
{
    const scope *in = to;
    if (!in->fills) add_symbol(r, full_name(r, in->name, proto_schema_text_of(r, bytes, n, ANY_NAME)));
}

static void read_message(reading *r, void *to, const uint8_t *bytes, size_t n)
{
    const scope *in = to;
    proto_schema *s = r->s;
    scope own = {.name = full_name(r, in->name, proto_schema_text_of(r, bytes, n, ANY_NAME)),
                 .depth = in->depth + 1,
                 .fills = in->fills};
    if (own.depth > NESTING_MAX) note(r, SHOAL_EFORMAT);
    if (in->fills) {
        proto_message *m = (proto_message *)proto_schema_message(s, own.name);
        if (m) fill_message(r, m, bytes, n);
    } else {
        if (!r->counts) s->messages[s->n_messages].name = own.name;
        s->n_messages++;
        add_symbol(r, own.name);
        if (r->counts) each(r, bytes, n, MESSAGE_FIELD, proto_schema_count, &s->n_symbols);
    }
    each(r, bytes, n, MESSAGE_NESTED, read_message, &own);
    each(r, bytes, n, MESSAGE_ENUM, read_enum, &own);
}

/* ---- services ------------------------------------------------------------------------------------ */

static void read_method(reading *r, void *to, const uint8_t *bytes, size_t n)
{
    proto_schema *s = r->s;
    const char *service = to, *name = proto_schema_text_of(r, bytes, n, ANY_NAME);
    add_symbol(r, full_name(r, service, name));
    if (!r->counts) {
        proto_method *m = &s->methods[s->n_methods];
        *m = (proto_method){.path = arena_printf(s->mem, "/%s/%s", service, name),
                            .input = message_named(s, proto_schema_text_of(r, bytes, n, METHOD_INPUT)),
                            .output = message_named(s, proto_schema_text_of(r, bytes, n, METHOD_OUTPUT)),
                            .streams_in = number_of(r, bytes, n, METHOD_STREAMS_IN),
                            .streams_out = number_of(r, bytes, n, METHOD_STREAMS_OUT)};
        if (!m->path) note(r, SHOAL_ENOMEM);
        if (!m->input || !m->output) note(r, SHOAL_EFORMAT);
    }
    s->n_methods++;
}

static void read_service(reading *r, void *to, const uint8_t *bytes, size_t n)
{
    proto_schema *s = r->s;
    const scope *in = to;
    const char *name = full_name(r, in->name, proto_schema_text_of(r, bytes, n, ANY_NAME));
    add_symbol(r, name);
    if (!r->counts) s->services[s->n_services] = name;
    s->n_services++;
    each(r, bytes, n, SERVICE_METHOD, read_method, (void *)name);
}

/* ---- files --------------------------------------------------------------------------------------- */

static void read_import(reading *r, void *to, const uint8_t *bytes, size_t n)
{
    proto_file *f = to;
    f->imports[f->n_imports] = arena_strndup(r->s->mem, (const char *)bytes, n);
    if (!f->imports[f->n_imports++]) note(r, SHOAL_ENOMEM);
}

static void proto_schema_read_file(reading *r, void *to, const uint8_t *bytes, size_t n)
{
    proto_schema *s = r->s;
    proto_file *f = &s->files[s->n_files++];
    size_t n_imports = 0;
    each(r, bytes, n, FILE_IMPORT, proto_schema_count, &n_imports);
    *f = (proto_file){.name = proto_schema_text_of(r, bytes, n, FILE_NAME),
                      .package = proto_schema_text_of(r, bytes, n, FILE_PACKAGE),
                      .bytes = bytes,
                      .n = n,
                      .imports = arena_alloc(s->mem, (n_imports + 1) * sizeof *f->imports)};
    if (!f->imports)
        note(r, SHOAL_ENOMEM);
    else
        each(r, bytes, n, FILE_IMPORT, read_import, f);
}

/* One walk over all files: messages and their names first, then fields, then services. */
static void walk(reading *r, uint32_t number, piece_fn fn, bool fills)
{
    for (size_t i = 0; i < r->s->n_files && r->rc == 0; i++) {
        r->file = &r->s->files[i];
        scope in = {.name = r->file->package, .fills = fills};
        each(r, r->file->bytes, r->file->n, number, fn, &in);
    }
}

static void allocate(reading *r)
{
    proto_schema *s = r->s;
    s->messages = arena_alloc(s->mem, (s->n_messages + 1) * sizeof *s->messages);
    s->methods = arena_alloc(s->mem, (s->n_methods + 1) * sizeof *s->methods);
    s->symbols = arena_alloc(s->mem, (s->n_symbols + 1) * sizeof *s->symbols);
    s->services = arena_alloc(s->mem, (s->n_services + 1) * sizeof *s->services);
    if (!s->messages || !s->methods || !s->symbols || !s->services) note(r, SHOAL_ENOMEM);
    s->n_messages = s->n_methods = s->n_symbols = s->n_services = 0;
    r->counts = false;
}

static int read_set(proto_schema *s, const uint8_t *bytes, size_t n)
{
    reading r = {.s = s, .counts = true};
    size_t n_files = 0;
    each(&r, bytes, n, SET_FILE, proto_schema_count, &n_files);
    s->files = arena_alloc(s->mem, (n_files + 1) * sizeof *s->files);
    if (!s->files) return SHOAL_ENOMEM;
    each(&r, bytes, n, SET_FILE, proto_schema_read_file, NULL);
    walk(&r, FILE_MESSAGE, read_message, false);
    walk(&r, FILE_ENUM, read_enum, false);
    walk(&r, FILE_SERVICE, read_service, false);
    if (r.rc == 0) allocate(&r);
    walk(&r, FILE_MESSAGE, read_message, false);
    walk(&r, FILE_ENUM, read_enum, false);
    walk(&r, FILE_MESSAGE, read_message, true);
    walk(&r, FILE_SERVICE, read_service, false);
    return r.rc;
}

int proto_schema_new(proto_schema **ret, const uint8_t *bytes, size_t n, shoal_err *err)
{
    proto_schema *s = calloc(1, sizeof *s);
    if (!s || !(s->mem = arena_new(16 << 10))) {
        free(s);
        return err_nomem(err);
    }
    int rc = read_set(s, bytes, n);
    if (rc == 0) {
        *ret = s;
        return 0;
    }
    proto_schema_free(s);
    return rc == SHOAL_ENOMEM ? err_nomem(err)
                              : err_set(err, SHOAL_EFORMAT, "the descriptor set is malformed");
}

void proto_schema_free(proto_schema *s)
{
    if (!s) return;
    arena_free(s->mem);
    free(s);
}

/* ---- finding ------------------------------------------------------------------------------------- */

const proto_method *proto_schema_method(const proto_schema *s, const char *path)
{
    for (size_t i = 0; i < s->n_methods; i++)
        if (strcmp(s->methods[i].path, path) == 0) return &s->methods[i];
    return NULL;
}

const proto_message *proto_schema_message(const proto_schema *s, const char *name)
{
    for (size_t i = 0; i < s->n_messages; i++)
        if (strcmp(s->messages[i].name, name) == 0) return &s->messages[i];
    return NULL;
}

const proto_field *proto_field_numbered(const proto_message *m, uint32_t number)
{
    for (size_t i = 0; i < m->n; i++)
        if (m->fields[i].number == number) return &m->fields[i];
    return NULL;
}

const proto_field *proto_field_named(const proto_message *m, const char *name)
{
    for (size_t i = 0; i < m->n; i++)
        if (strcmp(m->fields[i].name, name) == 0) return &m->fields[i];
    return NULL;
}

size_t proto_schema_services(const proto_schema *s)
{
    return s->n_services;
}

const char *proto_schema_service(const proto_schema *s, size_t i)
{
    return s->services[i];
}

const proto_file *proto_schema_file(const proto_schema *s, const char *name)
{
    for (size_t i = 0; i < s->n_files; i++)
        if (strcmp(s->files[i].name, name) == 0) return &s->files[i];
    return NULL;
}

const proto_file *proto_schema_file_of(const proto_schema *s, const char *name)
{
    for (size_t i = 0; i < s->n_symbols; i++)
        if (strcmp(s->symbols[i].name, name) == 0) return s->symbols[i].file;
    return NULL;
}
