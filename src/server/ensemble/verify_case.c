/* verify_case.c: messages and tools of a request, by who wrote them; see verify_case.h. */
#include "ensemble/verify_case.h"

#include <string.h>

#include "json/json.h"

typedef struct reader {
    arena *a;
    bool nomem;
    buf context, known;
    device list[DEVICES_MAX];
    size_t n_devices;
    made_call made[MADE_CALLS_MAX];
    size_t n_made;
    const char *question;
} reader;

static const char *verify_case_keep(reader *r, const char *s, size_t n)
{
    const char *kept = arena_strndup(r->a, s, n);
    if (!kept) r->nomem = true;
    return kept ? kept : "";
}

/* ---- lines of devices ---------------------------------------------------------------------------- */

/* Bytes of an id at the start of s: all up to a space; a dot stands inside it. */
static size_t id_len(const char *s, size_t n)
{
    size_t len = 0, dot = 0;
    while (len < n && (unsigned char)s[len] > ' ' && s[len] != '\'' && s[len] != '"') {
        if (s[len] == '.') dot = len;
        len++;
    }
    return dot > 0 && dot + 1 < len ? len : 0;
}

/* Where the name ends: at the last "' = ". 0: nowhere. */
static size_t name_len(const char *s, size_t n)
{
    static const char END[] = "' =";
    size_t len = 0;
    for (size_t i = 1; i + sizeof END - 1 <= n; i++)
        if (memcmp(s + i, END, sizeof END - 1) == 0) len = i;
    return len;
}

bool verify_case_device(device *ret, const char *line, size_t n, arena *a, bool *ret_nomem)
{
    while (n && (*line == ' ' || *line == '\t' || *line == '-')) line++, n--;
    while (n && (line[n - 1] == ' ' || line[n - 1] == '\r')) n--;
    size_t id = id_len(line, n);
    if (!id || n < id + 2 || memcmp(line + id, " '", 2) != 0) return false;
    const char *name = line + id + 2;
    size_t left = n - id - 2, len = name_len(name, left);
    if (!len) return false;
    const char *state = name + len + strlen("' =");
    size_t n_state = left - len - strlen("' =");
    if (n_state && *state == ' ') state++, n_state--;
    device d = {.id = arena_strndup(a, line, id),
                .name = arena_strndup(a, name, len),
                .state = arena_strndup(a, state, n_state)};
    *ret_nomem |= !d.id || !d.name || !d.state;
    *ret = d;
    return !*ret_nomem;
}

static void verify_case_add_device(reader *r, const device *d)
{
    for (size_t i = 0; i < r->n_devices; i++) {
        if (strcmp(r->list[i].id, d->id) != 0) continue;
        r->list[i] = *d;
        return;
    }
    if (r->n_devices < DEVICES_MAX) r->list[r->n_devices++] = *d;
}

static void verify_case_read_devices(reader *r, const char *text)
{
    while (*text) {
        device d;
        size_t n = strcspn(text, "\n");
        if (verify_case_device(&d, text, n, r->a, &r->nomem)) verify_case_add_device(r, &d);
        text += n + (text[n] == '\n');
    }
}

/* ---- messages ------------------------------------------------------------------------------------ */

static const char *content_of(reader *r, const json_t *m)
{
    const char *text = "";
    r->nomem |= made_calls_text(&text, m, r->a) != 0;
    return text ? text : "";
}

static void add_line(buf *to, const char *text)
{
    if (!*text) return;
    if (to->len) buf_putc(to, '\n');
    buf_puts(to, text);
}

static void read_message(reader *r, const json_t *m)
{
    const char *role = json_string_value(json_object_get(m, "role"));
    const char *text = content_of(r, m);
    if (!role) return;
    if (strcmp(role, "assistant") == 0) {
        r->nomem |= made_calls_add(r->made, &r->n_made, m, r->a) != 0;
        return;
    }
    if (strcmp(role, "user") == 0) {
        r->question = text;
        r->n_made = 0;
    } else {
        add_line(&r->context, text);
        if (strcmp(role, "system") == 0)
            verify_case_read_devices(r, text);
        else
            r->nomem |= made_calls_answer(r->made, r->n_made, m, r->a) != 0;
    }
    add_line(&r->known, text);
}

static void verify_case_read_messages(reader *r, const char *messages)
{
    json_t *list = NULL;
    if (json_parse(&list, messages, strlen(messages), "messages", NULL) == SHOAL_ENOMEM) r->nomem = true;
    size_t i;
    const json_t *m;
    json_array_foreach(list, i, m) read_message(r, m);
    json_decref(list);
}

static bool is_wanted(const Shoal__V1__GenerateRequest *q, const char *name)
{
    bool named = q->tool_choice == SHOAL__V1__GENERATE_REQUEST__TOOL_CHOICE__TOOL_NAMED;
    return !named || strcmp(q->tool_name, name) == 0;
}

static void read_tools(reader *r, verify_case *ret, const Shoal__V1__GenerateRequest *q)
{
    const char *text = q->tools_json;
    json_t *list = NULL;
    if (json_parse(&list, text, strlen(text), "tools", NULL) == SHOAL_ENOMEM) r->nomem = true;
    size_t n = json_array_size(list), i;
    const json_t *tool;
    ret->tools = arena_alloc(r->a, (n + 1) * sizeof *ret->tools);
    r->nomem |= !ret->tools;
    json_array_foreach(list, i, tool)
    {
        const char *name = json_string_value(json_object_get(json_object_get(tool, "function"), "name"));
        if (name && is_wanted(q, name) && ret->tools)
            ret->tools[ret->n_tools++] = verify_case_keep(r, name, strlen(name));
    }
    ret->offers_tools = n > 0;
    ret->one_call = n > 0 && !q->parallel_tool_calls;
    json_decref(list);
}

/* ---- all of it ----------------------------------------------------------------------------------- */

static void *verify_case_copy(reader *r, const void *list, size_t n, size_t size)
{
    void *to = arena_alloc(r->a, n * size + 1);
    r->nomem |= !to;
    if (to && n) memcpy(to, list, n * size);
    return to;
}

int verify_case_read(verify_case *ret, const Shoal__V1__GenerateRequest *q, arena *a)
{
    reader *r = arena_alloc(a, sizeof *r);
    if (!r) return SHOAL_ENOMEM;
    *ret = (verify_case){.given = "", .report = ""};
    *r = (reader){.a = a, .question = ""};
    bool chat = q->messages_json && *q->messages_json;
    if (chat) verify_case_read_messages(r, q->messages_json);
    if (!chat && q->text) add_line(&r->known, r->question = verify_case_keep(r, q->text, strlen(q->text)));
    if (!chat && q->echo) ret->given = r->question;
    if (q->tools_json && *q->tools_json) read_tools(r, ret, q);
    ret->question = r->question;
    ret->context = verify_case_keep(r, r->context.len ? r->context.data : "", r->context.len);
    ret->known = verify_case_keep(r, r->known.len ? r->known.data : "", r->known.len);
    ret->n_devices = r->n_devices;
    ret->devices = verify_case_copy(r, r->list, r->n_devices, sizeof *r->list);
    ret->n_made = r->n_made;
    ret->results = verify_case_copy(r, r->made, r->n_made, sizeof *r->made);
    device_call *made = arena_alloc(a, (r->n_made + 1) * sizeof *made);
    r->nomem |= !made;
    for (size_t i = 0; made && i < r->n_made; i++)
        made[i] = (device_call){r->made[i].name, r->made[i].arguments};
    ret->made = made;
    ret->formed = q->constraint == SHOAL__V1__GENERATE_REQUEST__CONSTRAINT__JSON_OBJECT ||
                  q->constraint == SHOAL__V1__GENERATE_REQUEST__CONSTRAINT__JSON_SCHEMA ||
                  q->constraint == SHOAL__V1__GENERATE_REQUEST__CONSTRAINT__CHOICES;
    ret->no_calls = q->tool_choice == SHOAL__V1__GENERATE_REQUEST__TOOL_CHOICE__TOOL_NONE;
    ret->searches = q->n_beams > 1;
    bool failed = r->nomem || r->context.failed || r->known.failed;
    buf_done(&r->context);
    buf_done(&r->known);
    return failed ? SHOAL_ENOMEM : 0;
}
