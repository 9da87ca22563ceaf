/* text_bytes.h: a C string (or NULL: none) as the bytes of a message's field; it borrows the string. */
#ifndef TESTS_TEXT_BYTES_H
#define TESTS_TEXT_BYTES_H

#include <stdint.h>
#include <string.h>

#include <protobuf-c/protobuf-c.h>

static inline ProtobufCBinaryData text_bytes(const char *s)
{
    return (ProtobufCBinaryData){s ? strlen(s) : 0, (uint8_t *)(uintptr_t)s};
}

#endif
