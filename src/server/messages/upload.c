/* upload.c: fields and a file, from a form in pieces or from a body and its query; see upload.h. */
#include "messages/upload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "messages/query.h"

static bool is_known(const upload *u, const char *name)
{
    for (const char *const *at = u->names; *at; at++)
        if (strcmp(*at, name) == 0) return true;
    return false;
}

static int begin_file(upload *u, api_error *e)
{
    u->has_file = true;
    return u->ev.file(u->ev.user, e);
}

/* ---- from a form --------------------------------------------------------------------------------- */

static int on_part(void *user, const multipart_part *head, api_error *e)
{
    upload *u = user;
    u->in_file = !u->has_file && strcmp(head->name, "file") == 0;
    u->in_field = !u->in_file && is_known(u, head->name);
    if (u->in_file) return begin_file(u, e);
    if (u->in_field) u->fields.parts[u->fields.n++] = *head;
    return 0;
}

static int upload_on_data(void *user, const char *bytes, size_t n, api_error *e)
{
    upload *u = user;
    if (u->in_file) return u->ev.data(u->ev.user, bytes, n, e);
    if (!u->in_field) return 0;
    multipart_part *p = &u->fields.parts[u->fields.n - 1];
    size_t room = UPLOAD_FIELD_MAX + 1 - p->len;
    if (n > room) n = room;
    p->len += n;
    return n && buf_append(&u->text, bytes, n) != 0 ? api_error_nomem(e) : 0;
}

/* ---- from a query -------------------------------------------------------------------------------- */

static int add_field(upload *u, const char *name, const char *value, api_error *e)
{
    size_t n = strlen(value);
    multipart_part *p = &u->fields.parts[u->fields.n++];
    *p = (multipart_part){.len = n > UPLOAD_FIELD_MAX ? UPLOAD_FIELD_MAX + 1 : n};
    snprintf(p->name, sizeof p->name, "%s", name);
    return p->len && buf_append(&u->text, value, p->len) != 0 ? api_error_nomem(e) : 0;
}

static int read_query(upload *u, const char *query, api_error *e)
{
    int rc = 0;
    for (const char *const *name = u->names; rc == 0 && *name; name++) {
        char *value = NULL;
        rc = query_value(query, *name, &value, e);
        if (rc == 0 && value) rc = add_field(u, *name, value, e);
        free(value);
    }
    return rc;
}

/* ---- both ---------------------------------------------------------------------------------------- */

int upload_open(upload *ret, const char *content_type, const char *query, const char *const *names,
                const upload_events *ev, api_error *e)
{
    multipart_events parts = {.user = ret, .part = on_part, .data = upload_on_data};
    *ret = (upload){.ev = *ev, .names = names, .is_form = multipart_is_form(content_type)};
    if (ret->is_form) return multipart_open(&ret->reader, content_type, &parts, e);
    if (!content_type || strncasecmp(content_type, "audio/", 6) != 0)
        return api_error_set(e, 415, "invalid_request_error", "unsupported_media_type", NULL,
                             "the content type must be multipart/form-data, or audio/... with the file as "
                             "the body");
    int rc = read_query(ret, query, e);
    return rc == 0 ? begin_file(ret, e) : rc;
}

int upload_push(upload *u, const char *bytes, size_t n, api_error *e)
{
    if (u->is_form) return multipart_push(&u->reader, bytes, n, e);
    return n > 0 ? u->ev.data(u->ev.user, bytes, n, e) : 0;
}

int upload_close(const upload *u, api_error *e)
{
    return u->is_form ? multipart_close(&u->reader, e) : 0;
}

const multipart *upload_fields(upload *u)
{
    size_t at = 0;
    for (size_t i = 0; i < u->fields.n; i++) {
        u->fields.parts[i].data = u->text.data ? u->text.data + at : "";
        at += u->fields.parts[i].len;
    }
    return &u->fields;
}

void upload_done(upload *u)
{
    buf_done(&u->text);
}
