/* model_send.c: read, pack, wait; see model_send.h. */
#include "transfer/model_send.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "logging/log.h"

enum { CHUNK_BYTES = 128 << 10, HEAD_BYTES = 16, AHEAD_BYTES = 4 << 20 };

typedef struct sending {
    model_sends *of;
    int fd;
    uint64_t at;
} sending;

static void sending_free(sending *s)
{
    s->of->n_running--;
    close(s->fd);
    free(s);
}

static void on_cancel(void *user, grpc_call *c)
{
    sending_free(grpc_call_data(c));
}

static void model_send_end(grpc_call *c, grpc_status status, const char *why)
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

/* The disk reads ahead, so that the loop does not wait for it. */
static void send_on(void *user, grpc_call *c)
{
    sending *s = grpc_call_data(c);
    uint8_t *bytes = malloc(CHUNK_BYTES);
    posix_fadvise(s->fd, (off_t)s->at, AHEAD_BYTES, POSIX_FADV_WILLNEED);
    while (bytes && grpc_call_unsent(c) < GRPC_CALM_BYTES) {
        ssize_t n = pread(s->fd, bytes, CHUNK_BYTES, (off_t)s->at);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0 || !send_chunk(c, bytes, (size_t)n)) {
            free(bytes);
            model_send_end(c, n == 0 ? GRPC_OK : GRPC_UNAVAILABLE, n == 0 ? NULL : "the file cannot be read");
            return;
        }
        s->at += (uint64_t)n;
    }
    if (!bytes) model_send_end(c, GRPC_UNAVAILABLE, "out of memory");
    free(bytes);
}

/* 0 and a file that is open, or the status of the refusal. */
static grpc_status model_send_open_file(const model_sends *s, const char *digest, model_send_find *find,
                                        const void *user, int *ret_fd, const char **ret_why)
{
    char path[MODEL_SEND_PATH];
    *ret_why = "too many fetch from this machine: ask another";
    if (s->n_running >= MODEL_SEND_MAX) return GRPC_RESOURCE_EXHAUSTED;
    *ret_why = "no model here has this digest";
    if (!find(user, digest, path)) return GRPC_NOT_FOUND;
    *ret_fd = open(path, O_RDONLY | O_CLOEXEC);
    *ret_why = "the file cannot be opened";
    return *ret_fd >= 0 ? GRPC_OK : GRPC_UNAVAILABLE;
}

void model_send(model_sends *s, grpc_call *c, const uint8_t *msg, size_t n, const char *by,
                model_send_find *find, const void *user)
{
    const char *why = "the request cannot be read";
    int fd = -1;
    Shoal__V1__FetchRequest *m = shoal__v1__fetch_request__unpack(NULL, n, msg);
    grpc_status status =
        m ? model_send_open_file(s, m->digest, find, user, &fd, &why) : GRPC_INVALID_ARGUMENT;
    sending *to = status == GRPC_OK ? calloc(1, sizeof *to) : NULL;
    if (to) {
        *to = (sending){.of = s, .fd = fd, .at = m->offset < INT64_MAX ? m->offset : INT64_MAX};
        LOG(LOG_INFO, "models", "sending", LOG_S("by", by), LOG_S("digest", m->digest),
            LOG_I("from", m->offset));
    } else if (fd >= 0) {
        close(fd);
        status = GRPC_UNAVAILABLE;
        why = "out of memory";
    }
    if (m) shoal__v1__fetch_request__free_unpacked(m, NULL);
    if (!to) {
        grpc_call_end(c, status, why);
        return;
    }
    s->n_running++;
    grpc_call_set_data(c, to);
    grpc_call_on_cancel(c, on_cancel, NULL);
    grpc_call_on_drained(c, send_on, NULL);
    send_on(NULL, c);
}

const char MODEL_PIECE_TOO_LONG[] = "more comes than the file is long";

const char *model_piece_take(const uint8_t *msg, size_t n, uint64_t left, Shoal__V1__FetchChunk **ret)
{
    *ret = shoal__v1__fetch_chunk__unpack(NULL, n, msg);
    if (!*ret) return "a piece cannot be read";
    if ((*ret)->data.len <= left) return NULL;
    shoal__v1__fetch_chunk__free_unpacked(*ret, NULL);
    *ret = NULL;
    return MODEL_PIECE_TOO_LONG;
}
