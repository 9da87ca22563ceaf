/* mcp_stdio.c: messages as lines to a program and from it; see mcp_impl.h. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mcp/mcp_impl.h"

enum { UNSENT_MAX = 4 << 20 };

/* ---- the program -------------------------------------------------------------------------------------- */

static void on_closed(uv_handle_t *h)
{
    mcp_program *p = h->data;
    if (--p->n_handles > 0) return;
    buf_done(&p->line);
    free(p);
}

static void on_exit_(uv_process_t *process, int64_t code, int signal_)
{
    mcp_program *p = process->data;
    mcp_server *s = p->s;
    char message[120];
    p->runs = false;
    uv_close((uv_handle_t *)process, on_closed);
    if (!s) return;
    snprintf(message, sizeof message,
             signal_ ? "its program was ended by signal %d" : "its program ended with status %d",
             signal_ ? signal_ : (int)code);
    mcp_server_broken(s, SHOAL_EUNAVAILABLE, message);
}

static void on_alloc(uv_handle_t *h, size_t wanted, uv_buf_t *ret)
{
    size_t n = 16384;
    *ret = uv_buf_init(malloc(n), n);
    if (!ret->base) ret->len = 0;
}

/* Each whole line is a message. */
static void take_lines(mcp_program *p)
{
    while (p->s) {
        char *end = p->line.len ? memchr(p->line.data, '\n', p->line.len) : NULL;
        if (!end) break;
        size_t n = (size_t)(end - p->line.data);
        buf text = {0};
        if (buf_append(&text, p->line.data, n) == 0 && n) mcp_server_heard(p->s, text.data, n);
        buf_done(&text);
        if (p->s) buf_consume(&p->line, n + 1);
    }
    if (p->s && p->line.failed)
        mcp_server_broken(p->s, SHOAL_ENOMEM, "out of memory");
    else if (p->s && p->line.len > p->s->rule->max_bytes + MCP_LINE_SLACK)
        mcp_server_broken(p->s, SHOAL_ELIMIT, "it sent a line that is longer than max_kb allows");
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *b)
{
    mcp_program *p = stream->data;
    if (n > 0 && p->s) buf_append(&p->line, b->base, (size_t)n);
    free(b->base);
    if (n < 0) uv_read_stop(stream);
    if (n > 0 && p->s) take_lines(p);
    if (n < 0 && p->s)
        mcp_server_broken(p->s, n == UV_ENOBUFS ? SHOAL_ENOMEM : SHOAL_EUNAVAILABLE,
                          n == UV_ENOBUFS ? "out of memory" : "its program has closed its output");
}

static void let_go(mcp_program *p)
{
    p->s = NULL;
    uv_close((uv_handle_t *)&p->in, on_closed);
    uv_close((uv_handle_t *)&p->out, on_closed);
    if (p->runs) uv_process_kill(&p->process, SIGKILL);
}

void mcp_stdio_stop(mcp_server *s)
{
    mcp_program *p = s->program;
    s->program = NULL;
    if (p) let_go(p);
}

int mcp_stdio_start(mcp_server *s, shoal_err *err)
{
    const mcp_rule *rule = s->rule;
    mcp_program *p = calloc(1, sizeof *p);
    char **args = calloc(rule->n_command + 1, sizeof *args);
    if (!p || !args) {
        free(p);
        free(args);
        return err_nomem(err);
    }
    for (size_t i = 0; i < rule->n_command; i++) args[i] = (char *)rule->command[i];
    uv_pipe_init(s->m->loop, &p->in, 0);
    uv_pipe_init(s->m->loop, &p->out, 0);
    p->in.data = p->out.data = p->process.data = p;
    p->n_handles = 3;
    uv_stdio_container_t io[3] = {
        {.flags = UV_CREATE_PIPE | UV_READABLE_PIPE, .data.stream = (uv_stream_t *)&p->in},
        {.flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE, .data.stream = (uv_stream_t *)&p->out},
        {.flags = UV_IGNORE}};
    uv_process_options_t o = {
        .exit_cb = on_exit_, .file = args[0], .args = args, .env = s->env, .stdio_count = 3, .stdio = io};
    int rc = uv_spawn(s->m->loop, &p->process, &o);
    p->process.data = p;
    free(args);
    if (rc == 0) {
        p->s = s;
        p->runs = true;
        s->program = p;
        rc = uv_read_start((uv_stream_t *)&p->out, on_alloc, on_read);
        if (rc == 0) return 0;
        mcp_stdio_stop(s);
    } else {
        let_go(p);
        uv_close((uv_handle_t *)&p->process, on_closed);
    }
    return err_set(err, rc == UV_ENOMEM ? SHOAL_ENOMEM : SHOAL_EUNAVAILABLE,
                   "its program cannot be started: %s", uv_strerror(rc));
}

/* ---- writing ------------------------------------------------------------------------------------------- */

typedef struct write_job {
    uv_write_t req; /* first */
    size_t n;
    char bytes[];
} write_job;

static const char UNREAD[] = "its program reads no more";

static void on_written(uv_write_t *req, int status)
{
    mcp_program *p = req->handle->data;
    free(req);
    if (status < 0 && p->s) mcp_server_broken(p->s, SHOAL_EUNAVAILABLE, UNREAD);
}

int mcp_stdio_send(mcp_server *s, const buf *message)
{
    mcp_program *p = s->program;
    if (uv_stream_get_write_queue_size((uv_stream_t *)&p->in) > UNSENT_MAX) {
        mcp_server_broken(s, SHOAL_EUNAVAILABLE, UNREAD);
        return SHOAL_EUNAVAILABLE;
    }
    write_job *j = malloc(sizeof *j + message->len + 1);
    if (!j) return SHOAL_ENOMEM;
    j->n = message->len + 1;
    memcpy(j->bytes, message->data, message->len);
    for (size_t i = 0; i < message->len; i++) /* between values: a model may write its arguments in lines */
        if (j->bytes[i] == '\n' || j->bytes[i] == '\r') j->bytes[i] = ' ';
    j->bytes[message->len] = '\n';
    uv_buf_t b = uv_buf_init(j->bytes, (unsigned)j->n);
    int rc = uv_write(&j->req, (uv_stream_t *)&p->in, &b, 1, on_written);
    if (rc == 0) return 0;
    free(j);
    return SHOAL_EUNAVAILABLE;
}
