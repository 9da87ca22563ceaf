/* proto_schema.h: what the .proto files that applications use say, as tables.
 *
 * protoc writes them as a google.protobuf.FileDescriptorSet (protobuf's descriptor.proto); the bytes are in
 * the program. From the same bytes reflection answers (ingress/grpc_reflection.c), so what a client is told
 * is what is spoken.
 *
 *     proto_schema_new(&s, bytes, n, &err);
 *     const proto_method *m = proto_schema_method(s, "/shoal.v1.Shoal/Classify");
 *     json_proto_read(&body, m->input, msg, n_msg, &err);                             // json_proto.h
 *
 * Immutable once made. Strings are the schema's; bytes must outlive it. */
#ifndef MESSAGES_PROTO_SCHEMA_H
#define MESSAGES_PROTO_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* FieldDescriptorProto.Type, those that our files use. */
typedef enum proto_type {
    PROTO_DOUBLE = 1,
    PROTO_FLOAT = 2,
    PROTO_INT64 = 3,
    PROTO_UINT64 = 4,
    PROTO_INT32 = 5,
    PROTO_BOOL = 8,
    PROTO_STRING = 9,
    PROTO_MESSAGE = 11,
    PROTO_DATA = 12, /* bytes */
    PROTO_UINT32 = 13,
    PROTO_ENUM = 14
} proto_type;

typedef struct proto_message proto_message;
typedef struct proto_field {
    const char *name;
    uint32_t number;
    proto_type type;
    bool repeated;
    const proto_message *message; /* of PROTO_MESSAGE */
    const char *member;           /* of "NAME_json": NAME, and the text is that member; else NULL */
} proto_field;

struct proto_message {
    const char *name; /* "shoal.v1.ChatRequest" */
    proto_field *fields;
    size_t n;
    const proto_field *more; /* "more_json", which is not looked up by a member's name; NULL: none */
};

typedef struct proto_method {
    const char *path; /* "/shoal.v1.Shoal/Chat" */
    const proto_message *input, *output;
    bool streams_in, streams_out;
} proto_method;

typedef struct proto_file {
    const char *name, *package;
    const uint8_t *bytes; /* its FileDescriptorProto */
    size_t n;
    const char **imports;
    size_t n_imports;
} proto_file;

typedef struct proto_schema proto_schema;

/* The set of the files that cmake/modules.cmake names. */
extern const uint8_t PUBLIC_PROTOS[];
extern const size_t PUBLIC_PROTOS_BYTES;

int proto_schema_new(proto_schema **ret, const uint8_t *bytes, size_t n, shoal_err *err);
void proto_schema_free(proto_schema *s);

/* NULL where there is none of that name, as below. */
const proto_method *proto_schema_method(const proto_schema *s, const char *path);
const proto_message *proto_schema_message(const proto_schema *s, const char *name);
const proto_field *proto_field_numbered(const proto_message *m, uint32_t number);
const proto_field *proto_field_named(const proto_message *m, const char *name);

size_t proto_schema_services(const proto_schema *s);
const char *proto_schema_service(const proto_schema *s, size_t i);
const proto_file *proto_schema_file(const proto_schema *s, const char *name);
/* The file that says what this is: a message, enum, service, method or field by its full name. */
const proto_file *proto_schema_file_of(const proto_schema *s, const char *symbol);

#endif
