/* process_media.c: sound, pictures and tables of a request to /v1/process: as fields of its JSON, or as parts
 * of a form whose other parts are the fields. */
#include "process/process_media.h"

#include <stdlib.h>
#include <string.h>

#include "json/json.h"
#include "base/utf8.h"
#include "messages/encode_bytes.h"
#include "messages/fields.h"
#include "messages/multipart.h"

#define FORM_TEXT_MAX (1 << 20) /* of a part that is no file */

/* ---- JSON ---------------------------------------------------------------------------------------------- */

static int decode(const json_t *body, process_input *in, medium m, const char *what, api_error *e)
{
    const char *key = medium_name(m);
    if (!fields_get(body, key)) return 0;
    int status = fields_file(body, key, what, &in->decoded[m], e);
    const char *bytes = in->decoded[m].data ? in->decoded[m].data : "";
    if (!status) in->files[m] = (process_file){(const uint8_t *)bytes, in->decoded[m].len};
    return status;
}

int process_read_media(const json_t *body, process_input *in, api_error *e)
{
    const json_t *csv = fields_get(body, "csv");
    int status = decode(body, in, MEDIUM_AUDIO, "sound file", e);
    if (!status) status = decode(body, in, MEDIUM_IMAGE, "PNG or JPEG file", e);
    if (status || !csv) return status;
    const char *text = fields_text(csv);
    buf *copy = &in->decoded[MEDIUM_CSV];
    if (!text || !*text)
        return api_error_bad(e, "csv", "'csv' must be a text with a header and rows, without NUL characters");
    if (buf_puts(copy, text)) return api_error_nomem(e);
    in->files[MEDIUM_CSV] = (process_file){(const uint8_t *)copy->data, copy->len};
    return 0;
}

/* ---- whether it fits the pipeline ---------------------------------------------------------------------- */

/* "transcribe or vad" */
static const char *kinds_for(medium m)
{
    return m == MEDIUM_AUDIO ? "transcribe or vad" : m == MEDIUM_IMAGE ? "image" : "score";
}

static int check_file(const process_input *in, medium m, api_error *e)
{
    const char *name = medium_name(m);
    if (!in->files[m].data) return 0;
    if (!pipeline_takes(in->pipeline, m))
        return api_error_bad(e, name, "pipeline '%.64s' does nothing with '%s': it has no %s stage",
                             in->pipeline->name, name, kinds_for(m));
    if (in->files[m].len == 0) return api_error_bad(e, name, "'%s' is empty", name);
    if (m == MEDIUM_AUDIO || in->files[m].len <= ENCODE_BYTES_MAX)
        return 0; /* sound is held by max_audio_mb */
    return api_error_set(e, 413, "invalid_request_error", "request_too_large", name,
                         "'%s' is longer than %zu bytes", name, ENCODE_BYTES_MAX);
}

static bool listens(const config_pipeline *p)
{
    for (unsigned i = 0; i < p->n_stages; i++)
        if (p->stages[i].kind->id == STAGE_TRANSCRIBE) return true;
    return false;
}

int process_check_media(const process_input *in, api_error *e)
{
    int status = 0;
    size_t stage = 0;
    const char *text =
        !*in->text && in->confirm ? in->confirm : in->text; /* what was asked about is the text */
    pipeline_facts facts = {.input = text, .brings = *text ? 1u << MEDIUM_TEXT : 0};
    stage_fact none[PIPELINE_STAGES_MAX] = {{.state = STAGE_PENDING}};
    facts.stages = none;
    for (int m = 0; m < N_MEDIA && !status; m++) {
        if (in->files[m].data) facts.brings |= 1u << m;
        status = check_file(in, (medium)m, e);
    }
    if (status) return status;
    if (*in->text && in->files[MEDIUM_AUDIO].data && listens(in->pipeline))
        return api_error_bad(e, "input",
                             "give 'input' or 'audio', not both: what is heard is the input of "
                             "pipeline '%.64s'",
                             in->pipeline->name);
    medium m = pipeline_lacks_surely(in->pipeline, &facts, &stage);
    if (!facts.brings && (m == MEDIUM_TEXT || m == N_MEDIA))
        return api_error_bad(e, "input", "'input' is required and must not be empty%s",
                             listens(in->pipeline) ? "; or give 'audio', which is listened to" : "");
    if (m == N_MEDIA) return 0;
    const config_stage *s = &in->pipeline->stages[stage];
    return api_error_bad(e, m == MEDIUM_TEXT ? "input" : medium_name(m),
                         "stage '%.64s' (%s) needs a %s, and the request brings none: %s", s->name,
                         s->kind->name, medium_noun(m), medium_how(m));
}

/* ---- forms --------------------------------------------------------------------------------------------- */

/* "file" is what the pipeline reads, if that is one thing; N_MEDIA: the part is no file. */
static int medium_of(const process_input *in, const multipart_part *part, medium *ret, api_error *e)
{
    unsigned n = 0;
    *ret = N_MEDIA;
    bool any = strcmp(part->name, "file") == 0;
    for (int m = MEDIUM_TEXT + 1; m < N_MEDIA; m++) {
        bool is_it =
            any ? pipeline_takes(in->pipeline, (medium)m) : strcmp(part->name, medium_name((medium)m)) == 0;
        if (is_it) *ret = (medium)m, n++;
    }
    if (!any || n == 1) return 0;
    return api_error_bad(
        e, "file",
        n ? "pipeline '%.64s' reads several kinds of files: name the parts 'audio', 'image' and "
            "'csv'"
          : "pipeline '%.64s' reads no files",
        in->pipeline->name);
}

static int take_file(process_input *in, const multipart_part *part, medium m, api_error *e)
{
    if (in->files[m].data)
        return api_error_bad(e, medium_name(m), "the form has two parts for '%s'", medium_name(m));
    in->files[m] = (process_file){(const uint8_t *)part->data, part->len};
    return 0;
}

/* A part's text as the JSON that it stands for: devices and contexts may be JSON themselves. */
static int process_media_text_value(const multipart_part *part, json_t **ret, api_error *e)
{
    shoal_err err;
    if (part->len > FORM_TEXT_MAX || memchr(part->data, '\0', part->len) ||
        !utf8_valid(part->data, part->len, NULL))
        return api_error_bad(e, part->name, "'%s' must be text of at most %d bytes without NUL characters",
                             part->name, FORM_TEXT_MAX);
    bool structured = strcmp(part->name, "devices") == 0 || strcmp(part->name, "context") == 0;
    size_t at = 0;
    while (at < part->len && memchr(" \t\r\n", part->data[at], 4)) at++;
    if (structured && at < part->len && (part->data[at] == '[' || part->data[at] == '{')) {
        int rc = json_parse_request(ret, part->data, part->len, part->name, &err);
        if (rc == SHOAL_ENOMEM) return api_error_nomem(e);
        return rc ? api_error_bad(e, part->name, "%s", err.message) : 0;
    }
    if (strcmp(part->name, "stream") == 0)
        *ret = json_boolean(part->len == 4 && memcmp(part->data, "true", 4) == 0);
    else
        *ret = json_stringn(part->data, part->len);
    return *ret ? 0 : api_error_nomem(e);
}

static bool names_file(const char *name)
{
    bool is_it = strcmp(name, "file") == 0;
    for (int m = MEDIUM_TEXT + 1; m < N_MEDIA; m++) is_it |= strcmp(name, medium_name((medium)m)) == 0;
    return is_it;
}

/* The parts that are no files, as the JSON object that they stand for. */
static int process_media_read_texts(const multipart *m, json_t *fields, api_error *e)
{
    int status = 0;
    for (size_t i = 0; i < m->n && !status; i++) {
        const multipart_part *part = &m->parts[i];
        json_t *v = NULL;
        if (names_file(part->name)) continue;
        if (!utf8_valid(part->name, strlen(part->name), NULL))
            return api_error_bad(e, NULL, "the form has a part whose name is not UTF-8");
        if (json_object_get(fields, part->name))
            return api_error_bad(e, part->name, "the form has two parts '%s'", part->name);
        status = process_media_text_value(part, &v, e);
        if (!status && json_object_set_new(fields, part->name, v)) status = api_error_nomem(e);
    }
    return status;
}

static int read_files(const multipart *m, process_input *in, api_error *e)
{
    int status = 0;
    for (size_t i = 0; i < m->n && !status; i++) {
        medium which = N_MEDIA;
        status = medium_of(in, &m->parts[i], &which, e);
        if (!status && which != N_MEDIA) status = take_file(in, &m->parts[i], which, e);
    }
    return status;
}

int process_parse_form(process_input *ret, const gateway_config *config, const char *content_type,
                       const char *body, size_t len, api_error *ret_error)
{
    process_input in = {.memory = arena_new(0)};
    json_t *fields = json_object();
    multipart *m = malloc(sizeof *m);
    int status = in.memory && fields && m ? multipart_parse(m, content_type, body, len, ret_error)
                                          : api_error_nomem(ret_error);
    if (!status) status = process_media_read_texts(m, fields, ret_error);
    if (!status) status = process_read_fields(fields, config, &in, ret_error);
    if (!status) status = read_files(m, &in, ret_error);
    if (!status) status = process_check_media(&in, ret_error);
    free(m);
    json_drop(fields);
    if (status)
        process_input_done(&in);
    else
        *ret = in;
    return status;
}
