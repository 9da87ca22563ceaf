/* json_memory.h: JSON that survives a failed allocation.
 *
 * jansson 2.14 ignores that its text buffer could not grow: a string loses a byte ("model.ggf"), or an
 * assertion of its scanner fails. A program that calls json_memory_guard gives jansson an allocator over
 * malloc and free that leaves the parse instead, and frees what the parse had taken. A library must not do
 * that to its host, which may have chosen an allocator itself; there json_memory_load is json_loadb. */
#ifndef JSON_JSON_MEMORY_H
#define JSON_JSON_MEMORY_H

#include <jansson.h>
#include <stdbool.h>

/* Once, before the process's second thread. */
void json_memory_guard(void);

/* json_loadb. NULL with *ret_nomem: out of memory; *e is then not set. Any thread. */
json_t *json_memory_load(const char *text, size_t len, size_t flags, json_error_t *e, bool *ret_nomem);

/* Blocks that this thread's parses have looked at to free others: it grows linearly with what is parsed. For
 * tests. */
size_t json_memory_steps(void);

#endif
