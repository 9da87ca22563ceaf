/* grpc_rpc.c: the table of calls, and a message as a request of HTTP. */
#include "ingress/grpc_rpc.h"

#include <stdio.h>
#include <string.h>

#include "messages/json_proto.h"
#include "dialects/kserve_proto.h"
#include "base/clock.h"
#include "base/proto_wire.h"
#include "base/utf8.h"

#define SHOAL(name)     "/shoal.v1.Shoal/" name
#define INFERENCE(name) "/inference.GRPCInferenceService/" name

const grpc_rpc GRPC_RPCS[] = {
    {SHOAL("Chat"), "POST", "/v1/chat/completions", 0},
    {SHOAL("ChatStream"), "POST", "/v1/chat/completions", RPC_STREAMS},
    {SHOAL("Complete"), "POST", "/v1/completions", 0},
    {SHOAL("CompleteStream"), "POST", "/v1/completions", RPC_STREAMS},
    {SHOAL("Embed"), "POST", "/v1/embeddings", 0},
    {SHOAL("Classify"), "POST", "/v1/classify", 0},
    {SHOAL("ClassifyImage"), "POST", "/v1/images/classify", 0},
    {SHOAL("Rerank"), "POST", "/v1/rerank", 0},
    {SHOAL("Tag"), "POST", "/v1/tag", 0},
    {SHOAL("FillMask"), "POST", "/v1/fill-mask", 0},
    {SHOAL("Score"), "POST", "/v1/score", 0},
    {SHOAL("Translate"), "POST", "/v1/translate", 0},
    {SHOAL("TranslateStream"), "POST", "/v1/translate", RPC_STREAMS},
    {SHOAL("Summarize"), "POST", "/v1/summarize", 0},
    {SHOAL("SummarizeStream"), "POST", "/v1/summarize", RPC_STREAMS},
    {SHOAL("Transcribe"), "POST", "/v1/audio/transcriptions", RPC_STREAMS | RPC_PIECES},
    {SHOAL("Vad"), "POST", "/v1/vad", RPC_FORM},
    {SHOAL("Process"), "POST", "/v1/process", 0},
    {SHOAL("ProcessStream"), "POST", "/v1/process", RPC_STREAMS},
    {SHOAL("Search"), "POST", "/v1/collections/{collection}/search", 0},
    {SHOAL("Answer"), "POST", "/v1/collections/{collection}/answer", 0},
    {SHOAL("ListModels"), "GET", "/v1/models", 0},
    {SHOAL("Status"), "GET", "/v1/status", 0},
    {INFERENCE("ServerLive"), "GET", "/v2/health/live", 0},
    {INFERENCE("ServerReady"), "GET", "/v2/health/ready", RPC_READY},
    {INFERENCE("ModelReady"), "GET", "/v2/models/{name}[/versions/{version}]/ready", RPC_READY},
    {INFERENCE("ServerMetadata"), "GET", "/v2", 0},
    {INFERENCE("ModelMetadata"), "GET", "/v2/models/{name}[/versions/{version}]", 0},
    {INFERENCE("ModelInfer"), "POST", "/v2/models/{model_name}[/versions/{model_version}]/infer",
     RPC_TENSORS},
    {INFERENCE("ModelStreamInfer"), "POST", "/v2/models/{model_name}[/versions/{model_version}]/infer",
     RPC_TENSORS | RPC_MANY},
    {INFERENCE("ModelConfig"), "GET", "/v2/models/{name}[/versions/{version}]/config", RPC_CONFIG},
    {INFERENCE("ModelStatistics"), "GET", "/v2/models[/{name}][/versions/{version}]/stats", 0},
    {INFERENCE("TraceSetting"), "POST", "/v2[/models/{model_name}]/trace/setting", RPC_SETTINGS},
    {INFERENCE("LogSettings"), "POST", "/v2/logging", RPC_SETTINGS},
    {INFERENCE("SystemSharedMemoryStatus"), "GET", "/v2/systemsharedmemory[/region/{name}]/status", 0},
    {INFERENCE("SystemSharedMemoryRegister"), "POST", "/v2/systemsharedmemory/region/{name}/register", 0},
    {INFERENCE("SystemSharedMemoryUnregister"), "POST", "/v2/systemsharedmemory[/region/{name}]/unregister",
     0},
    {INFERENCE("CudaSharedMemoryStatus"), "GET", "/v2/cudasharedmemory[/region/{name}]/status", 0},
    {INFERENCE("CudaSharedMemoryRegister"), "POST", "/v2/cudasharedmemory/region/{name}/register", 0},
    {INFERENCE("CudaSharedMemoryUnregister"), "POST", "/v2/cudasharedmemory[/region/{name}]/unregister", 0},
    {INFERENCE("RepositoryIndex"), "POST", "/v2/repository/index", 0},
    {INFERENCE("RepositoryModelLoad"), "POST", "/v2/repository/models/{model_name}/load", RPC_LOADS},
    {INFERENCE("RepositoryModelUnload"), "POST", "/v2/repository/models/{model_name}/unload", RPC_UNLOADS},
};
const size_t N_GRPC_RPCS = sizeof GRPC_RPCS / sizeof *GRPC_RPCS;

static const char TRANSLATIONS[] = "/v1/audio/translations";

/* ---- parts of a request -------------------------------------------------------------------------- */

/* The member whose name is at s, behind a brace. */
static const json_t *member_at(const json_t *o, const char *s, char name[32])
{
    snprintf(name, 32, "%.*s", (int)strcspn(s, "}"), s);
    const json_t *v = json_object_get(o, name);
    return json_string_length(v) ? v : NULL;
}

/* Members in braces go out of the object into the path. Without an object each is a dash. */
static int put_path(buf *out, const char *target, json_t *o, api_error *e)
{
    char name[32];
    for (const char *s = target; *s; s++) {
        if (*s == '[' && !member_at(o, strchr(s, '{') + 1, name)) {
            s = strchr(s, ']');
        } else if (*s == '{') {
            const json_t *v = member_at(o, s + 1, name);
            if (o && !v) return api_error_bad(e, name, "%s: is required", name);
            percent_encode(out, o ? json_string_value(v) : "-", o ? json_string_length(v) : 1, "");
            if (o) json_object_del(o, name);
            s = strchr(s, '}');
        } else if (*s != '[' && *s != ']') {
            buf_putc(out, *s);
        }
    }
    return 0;
}

/* A scalar as people write it in a form or a query. */
static void put_plain(buf *out, const json_t *v)
{
    if (json_is_string(v))
        buf_append(out, json_string_value(v), json_string_length(v));
    else
        json_put_digits(out, v, 15);
}

static void put_query(buf *out, const json_t *o)
{
    const char *key;
    json_t *v;
    json_object_foreach((json_t *)o, key, v)
    {
        buf plain = {0};
        put_plain(&plain, v);
        buf_puts(out, out->len ? "&" : "");
        percent_encode(out, key, strlen(key), "");
        buf_putc(out, '=');
        percent_encode(out, buf_text(&plain), plain.len, "");
        if (plain.failed) out->failed = true;
        buf_done(&plain);
    }
}

/* ---- forms --------------------------------------------------------------------------------------- */

static void draw_boundary(grpc_ask *a, char boundary[33])
{
    uint64_t draw[2];
    rng_draw(draw, sizeof draw);
    snprintf(boundary, 33, "%016llx%016llx", (unsigned long long)draw[0], (unsigned long long)draw[1]);
    snprintf(a->form, sizeof a->form, "multipart/form-data; boundary=%s", boundary);
    a->type = a->form;
}

/* Names are the schema's, and need no escape. */
static void put_part(buf *out, const char *boundary, const char *name, bool is_file)
{
    buf_printf(out, "--%s\r\nContent-Disposition: form-data; name=\"%s\"%s\r\n\r\n", boundary, name,
               is_file ? "; filename=\"file\"" : "");
}

/* Nobody who does not know the boundary can write it. */
static int put_form(grpc_ask *a, const proto_message *m, const json_t *o)
{
    const char *key;
    json_t *v;
    char boundary[33];
    int rc = 0;
    draw_boundary(a, boundary);
    json_object_foreach((json_t *)o, key, v)
    {
        const proto_field *f = proto_field_named(m, key);
        bool is_file = f && f->type == PROTO_DATA;
        if (!f || rc != 0) continue;
        put_part(&a->body, boundary, key, is_file);
        if (is_file)
            rc = base64_decode(&a->body, json_string_value(v), json_string_length(v));
        else
            put_plain(&a->body, v);
        buf_puts(&a->body, "\r\n");
    }
    buf_printf(&a->body, "--%s--\r\n", boundary);
    return rc;
}

/* ---- messages with pieces of a file -------------------------------------------------------------- */

static const proto_field *file_of(const proto_message *m)
{
    for (size_t i = 0; i < m->n; i++)
        if (m->fields[i].type == PROTO_DATA) return &m->fields[i];
    return NULL;
}

bool grpc_rpc_piece(const proto_message *m, const uint8_t *msg, size_t n, const uint8_t **ret, size_t *ret_n)
{
    const proto_field *file = file_of(m);
    cur c = cur_over(msg, n);
    proto_item it;
    int rc;
    *ret_n = 0;
    while ((rc = proto_next(&c, &it)) == 1)
        if (it.number == file->number && it.wire == PROTO_BYTES) {
            *ret = it.bytes;
            *ret_n = it.n;
        }
    return rc == 0;
}

/* The message without its file. */
static void without_file(buf *out, const proto_message *m, const uint8_t *msg, size_t n)
{
    const proto_field *file = file_of(m);
    cur c = cur_over(msg, n);
    proto_item it;
    for (const uint8_t *from = c.at; proto_next(&c, &it) == 1; from = c.at)
        if (it.number != file->number) buf_append(out, from, (size_t)(c.at - from));
}

/* ---- a message as a request ---------------------------------------------------------------------- */

static int read_error(api_error *e, int rc, const shoal_err *err)
{
    if (rc == SHOAL_ENOMEM) return api_error_nomem(e);
    return api_error_bad(e, NULL, "%s", err->message);
}

static int read(json_t **ret, const grpc_rpc *rpc, const proto_message *m, const uint8_t *msg, size_t n,
                api_error *e)
{
    shoal_err err = {0};
    buf rest = {0};
    if (rpc->how & RPC_PIECES) without_file(&rest, m, msg, n);
    int rc = rest.failed             ? SHOAL_ENOMEM
             : rpc->how & RPC_PIECES ? json_proto_read(ret, m, (const uint8_t *)rest.data, rest.len, &err)
                                     : json_proto_read(ret, m, msg, n, &err);
    buf_done(&rest);
    return rc == 0 ? 0 : read_error(e, rc, &err);
}

/* A map of settings comes as a list of keys and values; as an object it asks for none, or for changes. False:
 * out of memory. */
static bool take_settings(json_t *o)
{
    json_t *list = json_incref(json_object_get(o, "settings")), *entry;
    size_t i;
    bool ok = true;
    json_object_clear(o);
    json_array_foreach(list, i, entry)
    {
        const char *key = json_string_value(json_object_get(entry, "key"));
        const json_t *value = json_object_get(entry, "value");
        if (key && json_object_size(value) && ok)
            ok = json_object_set_new(o, key, json_deep_copy(value)) == 0;
    }
    json_decref(list);
    return ok;
}

/* KServe's client says the model where Triton's says the repository. False: out of memory. */
static bool name_model(json_t *o)
{
    json_t *first = json_object_get(o, "repository_name");
    if (!first || json_string_length(json_object_get(o, "model_name"))) return true;
    return json_object_set(o, "model_name", first) == 0;
}

static int grpc_rpc_put(grpc_ask *a, const grpc_rpc *rpc, const proto_message *m, json_t *o, api_error *e)
{
    const char *target = rpc->target;
    if (rpc->how & (RPC_LOADS | RPC_UNLOADS) && !name_model(o)) return api_error_nomem(e);
    if (rpc->how & RPC_PIECES && json_is_true(json_object_get(o, "translate"))) target = TRANSLATIONS;
    int rc = put_path(&a->path, target, o, e);
    if (rc != 0) return rc;
    if (rpc->how & RPC_SETTINGS && !take_settings(o)) return api_error_nomem(e);
    if (rpc->how & RPC_PIECES) json_object_del(o, "translate");
    if (rpc->how & RPC_STREAMS && json_object_set_new(o, "stream", json_true()) != 0)
        return api_error_nomem(e);
    a->type = "application/json";
    if (rpc->how & RPC_PIECES) {
        put_query(&a->query, o);
        a->type = "audio/x-stream";
    } else if (rpc->how & RPC_FORM) {
        if (put_form(a, m, o) != 0) return api_error_nomem(e);
    } else if (rpc->how & RPC_TENSORS) {
        size_t n = 0;
        if ((rc = kserve_proto_ask(&a->body, &n, o, e)) != 0) return rc;
        snprintf(a->n_json, sizeof a->n_json, "%zu", n);
        a->type = "application/octet-stream";
    } else if (strcmp(rpc->method, "POST") == 0) {
        json_put(&a->body, o);
    }
    return a->path.failed || a->query.failed || a->body.failed ? api_error_nomem(e) : 0;
}

int grpc_rpc_ask(grpc_ask *ret, const grpc_rpc *rpc, const proto_message *m, const uint8_t *msg, size_t n,
                 api_error *e)
{
    json_t *o = NULL;
    *ret = (grpc_ask){0};
    int rc = read(&o, rpc, m, msg, n, e);
    if (rc == 0) rc = grpc_rpc_put(ret, rpc, m, o, e);
    json_decref(o);
    return rc;
}

int grpc_rpc_ask_nothing(grpc_ask *ret, const grpc_rpc *rpc, api_error *e)
{
    *ret = (grpc_ask){.type = "application/json"};
    put_path(&ret->path, rpc->target, NULL, e);
    return ret->path.failed ? api_error_nomem(e) : 0;
}

void grpc_ask_done(grpc_ask *a)
{
    buf_done(&a->path);
    buf_done(&a->query);
    buf_done(&a->body);
}

/* ---- an answer as a message ---------------------------------------------------------------------- */

bool grpc_rpc_is_answer(const grpc_rpc *rpc, const grpc_answer *a)
{
    json_t *v = NULL;
    if (a->status < 300) return true;
    if (!(rpc->how & RPC_READY) || json_parse(&v, a->bytes, a->n, "the answer", NULL) != 0) return false;
    bool says_no = json_is_boolean(json_object_get(v, "ready"));
    json_decref(v);
    return says_no;
}

/* A list is what the message's only field holds. */
static json_t *in_its_field(const proto_message *m, json_t *list)
{
    json_t *o = json_object();
    if (json_object_set_new(o, m->fields[0].name, list) == 0) return o;
    json_decref(o);
    return NULL;
}

static int read_answer(json_t **ret, const grpc_rpc *rpc, const proto_message *m, const grpc_answer *a,
                       shoal_err *err)
{
    const char *done = rpc->how & RPC_LOADS ? "isLoaded" : rpc->how & RPC_UNLOADS ? "isUnloaded" : NULL;
    json_t *v = NULL;
    int rc = rpc->how & RPC_TENSORS ? kserve_proto_answer(&v, a->bytes, a->n, a->n_json)
                                    : json_parse(&v, a->bytes, a->n, "the answer", err);
    if (rc == SHOAL_EPROTOCOL) return err_set(err, SHOAL_EFORMAT, "its tensors are none");
    if (rc == 0 && json_is_array(v) && !(v = in_its_field(m, v))) rc = SHOAL_ENOMEM;
    if (rc == 0 && done && json_object_set_new(v, done, json_true()) != 0) rc = SHOAL_ENOMEM;
    if (rc == 0)
        *ret = v;
    else
        json_decref(v);
    return rc;
}

/* Settings as the message has them: {"a": ["x"]} is {"a": {"value": ["x"]}}, true {"bool_param": true}. NULL:
 * no memory. */
static json_t *as_settings(const json_t *v)
{
    json_t *typed = json_object(), *member;
    const char *key;
    json_object_foreach((json_t *)v, key, member)
    {
        json_t *value = json_is_array(member)     ? json_pack("{s:O}", "value", member)
                        : json_is_boolean(member) ? json_pack("{s:O}", "bool_param", member)
                        : json_is_integer(member) ? json_pack("{s:O}", "uint32_param", member)
                                                  : json_pack("{s:O}", "string_param", member);
        if (json_object_set_new(typed, key, value) == 0) continue;
        json_decref(typed);
        return NULL;
    }
    return json_pack("{s:o}", "settings", typed);
}

/* Trace settings are lists of texts, each of which. */
static json_t *as_texts(const json_t *v)
{
    json_t *lists = json_object(), *member;
    const char *key;
    json_object_foreach((json_t *)v, key, member)
    {
        json_t *list = json_is_array(member) ? json_incref(member) : json_pack("[O]", member);
        if (json_object_set_new(lists, key, list) == 0) continue;
        json_decref(lists);
        return NULL;
    }
    return lists;
}

/* The answer in the form of its message, by what the call is; *v is replaced. 0 or SHOAL_ENOMEM. */
static int shape(json_t **v, const grpc_rpc *rpc)
{
    json_t *made = NULL;
    if (rpc->how & RPC_CONFIG) {
        if (kserve_proto_config(*v) != 0) return SHOAL_ENOMEM;
        made = json_pack("{s:O}", "config", *v);
    } else if (rpc->how & RPC_SETTINGS) {
        json_t *lists = strstr(rpc->path, "Trace") ? as_texts(*v) : json_incref(*v);
        made = lists ? as_settings(lists) : NULL;
        json_decref(lists);
    } else {
        return 0;
    }
    json_decref(*v);
    *v = made;
    return made ? 0 : SHOAL_ENOMEM;
}

int grpc_rpc_answer(buf *out, const grpc_rpc *rpc, const proto_message *m, const grpc_answer *a,
                    shoal_err *err)
{
    json_t *v = NULL;
    int rc = read_answer(&v, rpc, m, a, err);
    if (rc == 0) rc = shape(&v, rpc);
    if (rc == 0) rc = json_proto_write(out, m, v, err);
    json_decref(v);
    return rc;
}
