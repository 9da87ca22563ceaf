/* The first byte chooses a message of the public schema, the others are its bytes: what is read can be
 * written, and read again it is the same. With a first byte of 255 the bytes are a descriptor set. */
#include <stdint.h>
#include <stdlib.h>

#include "messages/json_proto.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const MESSAGES[] = {"shoal.v1.ChatRequest",  "shoal.v1.ChatChunk",
                                       "shoal.v1.ChatLogprobs", "shoal.v1.EmbeddingsResponse",
                                       "shoal.v1.VadRequest",   "shoal.v1.PipelineEvent",
                                       "shoal.v1.ScoreRow",     "shoal.v1.TranscriptionRequest"};

static void both_ways(const proto_schema *s, const char *name, const uint8_t *data, size_t size)
{
    const proto_message *m = proto_schema_message(s, name);
    json_t *first = NULL, *again = NULL;
    buf out = {0};
    if (json_proto_read(&first, m, data, size, NULL) != 0) return;
    int rc = json_proto_write(&out, m, first, NULL);
    if (rc != 0 && rc != SHOAL_ENOMEM) abort();
    if (rc == 0) rc = json_proto_read(&again, m, (const uint8_t *)out.data, out.len, NULL);
    /* What is null in a list of numbers, or too large for a float, is written as no number, which no request
     * has. */
    if (rc != 0 && rc != SHOAL_EINVALID && rc != SHOAL_ENOMEM) abort();
    json_decref(first);
    json_decref(again);
    buf_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static proto_schema *s;
    proto_schema *other;
    int made = s ? 0 : proto_schema_new(&s, PUBLIC_PROTOS, PUBLIC_PROTOS_BYTES, NULL);
    if (made != 0 && made != SHOAL_ENOMEM) abort();
    if (made != 0 || size == 0) return 0;
    if (data[0] != 255)
        both_ways(s, MESSAGES[data[0] % (sizeof MESSAGES / sizeof *MESSAGES)], data + 1, size - 1);
    else if (proto_schema_new(&other, data + 1, size - 1, NULL) == 0)
        proto_schema_free(other);
    return 0;
}
