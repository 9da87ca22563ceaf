/* gate_models.c: Fetch: a model's file in pieces, as fast as the other end takes them. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "join/gate_impl.h"

enum { CHUNK_BYTES = 128 << 10, HEAD_BYTES = 16 };

typedef struct sending {
    int fd;
    uint64_t at;
} sending;

static void sending_free(sending *s)
{
    close(s->fd);
    free(s);
}

static void on_cancel(void *user, grpc_call *c)
{
    sending_free(grpc_call_data(c));
}

static void end(grpc_call *c, grpc_status status, const char *why)
{
    sending_free(grpc_call_data(c));
    grpc_call_end(c, status, why);
}

static bool send_chunk(grpc_call *c, uint8_t *bytes, size_t n)
{
    Shoal__V1__FetchChunk m = SHOAL__V1__FETCH_CHUNK__INIT;
    uint8_t *packed = malloc(n + HEAD_BYTES);
    if (!packed) return false;
    m.data.data = bytes;
    m.data.len = n;
    grpc_call_send(c, packed, shoal__v1__fetch_chunk__pack(&m, packed));
    free(packed);
    return true;
}

static void send_on(void *user, grpc_call *c)
{
    sending *s = grpc_call_data(c);
    uint8_t *bytes = malloc(CHUNK_BYTES);
    while (bytes && grpc_call_unsent(c) < GRPC_CALM_BYTES) {
        ssize_t n = pread(s->fd, bytes, CHUNK_BYTES, (off_t)s->at);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0 || !send_chunk(c, bytes, (size_t)n)) {
            free(bytes);
            end(c, n == 0 ? GRPC_OK : GRPC_UNAVAILABLE, n == 0 ? NULL : "the file cannot be read");
            return;
        }
        s->at += (uint64_t)n;
    }
    if (!bytes) end(c, GRPC_UNAVAILABLE, "out of memory");
    free(bytes);
}

/* 0 and a file that is open, or the status of the refusal. */
static grpc_status open_file(const gate *g, grpc_call *c, const Shoal__V1__FetchRequest *m, int *ret_fd,
                             const char **ret_why)
{
    *ret_why = "only members fetch models";
    if (!grpc_call_peer(c)) return GRPC_UNAUTHENTICATED;
    const char *path = gate_place_file(g, m->digest);
    *ret_why = "no model here has this digest";
    if (!path) return GRPC_NOT_FOUND;
    *ret_fd = open(path, O_RDONLY | O_CLOEXEC);
    *ret_why = "the file cannot be opened";
    return *ret_fd >= 0 ? GRPC_OK : GRPC_UNAVAILABLE;
}

void gate_on_fetch(void *user, grpc_call *c, const uint8_t *msg, size_t n)
{
    const gate *g = user;
    const char *why = "the request cannot be read";
    int fd = -1;
    Shoal__V1__FetchRequest *m = shoal__v1__fetch_request__unpack(NULL, n, msg);
    grpc_status status = m ? open_file(g, c, m, &fd, &why) : GRPC_INVALID_ARGUMENT;
    sending *s = status == GRPC_OK ? calloc(1, sizeof *s) : NULL;
    if (s) {
        *s = (sending){.fd = fd, .at = m->offset < INT64_MAX ? m->offset : INT64_MAX};
        LOG(LOG_INFO, "gate", "model_fetched", LOG_S("by", grpc_call_peer(c)->common_name),
            LOG_S("digest", m->digest), LOG_I("from", m->offset));
    } else if (fd >= 0) {
        close(fd);
        status = GRPC_UNAVAILABLE;
    }
    if (m) shoal__v1__fetch_request__free_unpacked(m, NULL);
    if (!s) {
        grpc_call_end(c, status, why);
        return;
    }
    grpc_call_set_data(c, s);
    grpc_call_on_cancel(c, on_cancel, NULL);
    grpc_call_on_drained(c, send_on, NULL);
    send_on(NULL, c);
}
