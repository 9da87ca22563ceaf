/* response_items.c: see response_items.h. */
#include "dialects/response_items.h"

#include <stdlib.h>
#include <string.h>

#include "messages/fields.h"
#include "messages/query.h"
#include "json/json.h"

enum { LIMIT_DEFAULT = 20, LIMIT_MAX = 100 };

/* ---- kept ---------------------------------------------------------------------------------------- */

/* The other members, as the request brought them. */
static void put_members(buf *out, const json_t *item, bool is_message)
{
    const char *key;
    json_t *v;
    json_object_foreach((json_t *)item, key, v)
    {
        if (strcmp(key, "id") == 0 ||
            (is_message && (strcmp(key, "content") == 0 || strcmp(key, "type") == 0)))
            continue;
        buf_putc(out, ',');
        json_put_string(out, key, strlen(key));
        buf_putc(out, ':');
        json_put(out, v);
    }
}

static void put_content(buf *out, const json_t *item, const json_t *content)
{
    const char *role = fields_text(json_object_get(item, "role"));
    bool is_ours = role && strcmp(role, "assistant") == 0;
    buf_puts(out, ",\"content\":");
    if (!json_is_string(content)) {
        json_put(out, content);
        return;
    }
    buf_printf(out, "[{\"type\":\"%s\",\"text\":", is_ours ? "output_text" : "input_text");
    json_put_string(out, json_string_value(content), json_string_length(content));
    buf_puts(out, is_ours ? ",\"annotations\":[]}]" : "}]");
}

static void put_item(buf *out, const json_t *item, const char *hex, size_t i)
{
    const char *id = fields_text(json_object_get(item, "id")),
               *type = fields_text(json_object_get(item, "type"));
    bool is_message = !type || strcmp(type, "message") == 0;
    buf_puts(out, "{\"id\":");
    if (id)
        json_put_string(out, id, strlen(id));
    else
        buf_printf(out, "\"%s_%s_in%zu\"", is_message ? "msg" : "item", hex, i);
    if (is_message) buf_puts(out, ",\"type\":\"message\",\"status\":\"completed\"");
    put_members(out, item, is_message);
    if (is_message) put_content(out, item, json_object_get(item, "content"));
    buf_putc(out, '}');
}

/* A text is a message of the user. */
static void response_items_put_text(buf *out, const json_t *text, const char *hex, size_t i)
{
    buf_printf(out,
               "{\"id\":\"msg_%s_in%zu\",\"type\":\"message\",\"status\":\"completed\",\"role\":\"user\"",
               hex, i);
    put_content(out, NULL, text);
    buf_putc(out, '}');
}

void response_items_put(buf *out, const response_spec *s, const char *hex)
{
    const json_t *input = fields_get(s->root, "input");
    json_t *item;
    size_t i;
    buf_putc(out, '[');
    if (json_is_string(input)) response_items_put_text(out, input, hex, 0);
    json_array_foreach(input, i, item)
    {
        if (i) buf_putc(out, ',');
        if (json_is_string(item))
            response_items_put_text(out, item, hex, i);
        else
            put_item(out, item, hex, i);
    }
    buf_putc(out, ']');
}

/* ---- listed -------------------------------------------------------------------------------------- */

int response_page_read(response_page *ret, const char *query, api_error *e)
{
    char *order = NULL, *after = NULL, *before = NULL;
    *ret = (response_page){.limit = LIMIT_DEFAULT, .newest_first = true};
    int rc = query_number(query, "limit", 1, LIMIT_MAX, &ret->limit, e);
    if (rc == 0) rc = query_value(query, "order", &order, e);
    if (rc == 0) rc = query_value(query, "after", &after, e);
    if (rc == 0) rc = query_value(query, "before", &before, e);
    if (rc == 0 && order && strcmp(order, "asc") != 0 && strcmp(order, "desc") != 0)
        rc = api_error_bad(e, "order", "\"order\" must be asc or desc");
    if (order) ret->newest_first = strcmp(order, "asc") != 0;
    free(order);
    ret->after = after;
    ret->before = before;
    return rc;
}

void response_page_done(response_page *p)
{
    free((char *)p->after);
    free((char *)p->before);
    *p = (response_page){0};
}

static const json_t *item_at(const json_t *items, const response_page *p, size_t i)
{
    return json_array_get(items, p->newest_first ? json_array_size(items) - 1 - i : i);
}

/* The place of an id in the order of the page; otherwise: where id is NULL. */
static int response_items_place_of(const json_t *items, const response_page *p, const char *id,
                                   size_t otherwise, size_t *ret, api_error *e)
{
    *ret = otherwise;
    for (size_t i = 0; id && i < json_array_size(items); i++) {
        const char *own = fields_text(json_object_get(item_at(items, p, i), "id"));
        *ret = i;
        if (own && strcmp(own, id) == 0) return 0;
    }
    return id ? api_error_set(e, 404, "invalid_request_error", "not_found", NULL, "there is no item %.100s",
                              id)
              : 0;
}

static void put_id(buf *out, const char *key, const json_t *item)
{
    buf_printf(out, ",\"%s\":", key);
    json_put(out, item ? json_object_get(item, "id") : json_null());
}

int response_items_put_page(buf *out, const json_t *items, const response_page *p, api_error *e)
{
    size_t n = json_array_size(items), from, to, last = 0, limit = (size_t)p->limit;
    int rc = response_items_place_of(items, p, p->after, 0, &from, e);
    if (rc == 0) rc = response_items_place_of(items, p, p->before, n, &to, e);
    if (rc != 0) return rc;
    if (p->after) from++;
    bool more = to > from && to - from > limit;
    if (more && p->before && !p->after) from = to - limit; /* those just before it */
    last = more ? from + limit : to;
    buf_puts(out, "{\"object\":\"list\",\"data\":[");
    for (size_t i = from; i < last; i++) {
        if (i > from) buf_putc(out, ',');
        json_put(out, item_at(items, p, i));
    }
    buf_putc(out, ']');
    put_id(out, "first_id", last > from ? item_at(items, p, from) : NULL);
    put_id(out, "last_id", last > from ? item_at(items, p, last - 1) : NULL);
    buf_printf(out, ",\"has_more\":%s}", more ? "true" : "false");
    return 0;
}
