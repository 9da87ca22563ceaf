/* Forms with sound files: the multipart parser, the fields of a transcription, and its cache key. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "access/browser.h"
#include "messages/detect_parse.h"
#include "endpoints/table.h"
#include "messages/multipart.h"
#include "messages/transcribe_parse.h"

#define FORM        "multipart/form-data; boundary=B"
#define FIELD(name) "--B\r\nContent-Disposition: form-data; name=\"" name "\"\r\n\r\n"
#define FILE_PART                                                                            \
    "--B\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a \\\"b\\\".wav\"\r\n" \
    "Content-Type: audio/wav\r\n\r\nRI\0\r\nFF\r\n"

static int parse(multipart *m, const char *type, const char *body, size_t n, api_error *e)
{
    char *exact = malloc(n ? n : 1); /* a byte read past the end is seen under the sanitizer */
    memcpy(exact, body, n);
    int rc = multipart_parse(m, type, exact, n, e);
    for (size_t i = 0; rc == 0 && i < m->n; i++)
        if (m->parts[i].len) m->parts[i].data = body + (m->parts[i].data - exact);
    free(exact);
    return rc;
}

static void a_form_has_its_parts(void **state)
{
    static const char body[] = "in front\r\n" FILE_PART FIELD("empty") "\r\n" FIELD(
        "model") "home-ears\r\n"
                 "--B \t\r\ncontent-disposition:form-data;NAME=x\r\n\r\n--C\r\n--B--behind";
    multipart m;
    api_error e = {0};
    if (parse(&m, FORM, body, sizeof body - 1, &e) != 0) fail_msg("%s", e.message);
    assert_int_equal(m.n, 4);
    const multipart_part *p = multipart_find(&m, "file");
    assert_true(p && p->has_filename);
    assert_string_equal(p->filename, "a \"b\".wav");
    assert_int_equal(p->len, 7);
    assert_memory_equal(p->data, "RI\0\r\nFF", 7);
    assert_int_equal(multipart_find(&m, "empty")->len, 0);
    assert_memory_equal(multipart_find(&m, "model")->data, "home-ears", 9);
    assert_memory_equal(multipart_find(&m, "x")->data, "--C", 3);
    assert_null(multipart_find(&m, "y"));
    static const char quoted[] = "--a b\r\nContent-Disposition: form-data; name=n\r\n\r\nv\r\n--a b--";
    assert_int_equal(
        parse(&m, "Multipart/Form-Data; charset=utf-8; boundary=\"a b\"", quoted, sizeof quoted - 1, &e), 0);
    assert_int_equal(m.n, 1);
    assert_int_equal(parse(&m, FORM, "--B--", 5, &e), 0);
    assert_int_equal(m.n, 0);
}

static void malformed_forms_are_refused(void **state)
{
    static const char *const types[] = {
        "multipart/form-data",
        "multipart/form-data; boundary=",
        "multipart/form-data; boundary=\"\"",
        "multipart/form-data; boundary=\"a",
        "multipart/form-data; boundary=\"a \"",
        "multipart/form-data; boundary=a; boundary=b",
        "multipart/form-data; boundary=B junk",
        "multipart/form-data; boundary=\"a{b\"",
        "multipart/form-data; boundary="
        "01234567890123456789012345678901234567890123456789012345678901234567890"};
    static const char *const bodies[] = {
        "",
        "no boundary",
        "--Bx\r\n",
        "--B\r\n",
        "--B\r\n\r\nx\r\n--B--",
        FIELD("a") "no end",
        FIELD("a") "x\r\n--B",
        FIELD("a") "x\n--B--",
        FIELD("") "x\r\n--B--",
        "--B\r\nContent-Disposition: attachment; name=a\r\n\r\nx\r\n--B--",
        "--B\r\nContent-Disposition: form-data\r\n\r\nx\r\n--B--",
        "--B\r\nContent-Disposition: form-data; name=\"a\r\n\r\nx\r\n--B--",
        "--B\r\nContent-Disposition: form-data; name=a; name=b\r\n\r\nx\r\n--B--",
        "--B\r\nContent-Disposition: form-data; name=a\r\nContent-Disposition: form-data; "
        "name=b\r\n\r\nx\r\n--B--",
        "--B\r\nContent-Disposition: form-data; name=a\r\n: x\r\n\r\nx\r\n--B--",
        "--B\r\nContent-Disposition: form-data; name=a\r\nX: \x01\r\n\r\nx\r\n--B--",
        "--B\r\nContent-Disposition: form-data; name=a\r\nContent-Transfer-Encoding: "
        "base64\r\n\r\nx\r\n--B--",
    };
    multipart m;
    api_error e;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        e = (api_error){0};
        if (parse(&m, types[i], "--B--", 5, &e) != 400) fail_msg("%s was taken", types[i]);
    }
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        e = (api_error){0};
        if (parse(&m, FORM, bodies[i], strlen(bodies[i]), &e) != 400) fail_msg("%s was taken", bodies[i]);
    }
    assert_int_equal(parse(&m, "application/json", "{}", 2, &e), 415);
    buf many = {0};
    for (int i = 0; i <= MULTIPART_PARTS_MAX; i++) buf_puts(&many, FIELD("a") "x\r\n");
    buf_puts(&many, "--B--");
    assert_int_equal(parse(&m, FORM, many.data, many.len, &e), 400);
    buf_done(&many);
}

/* Every body of a form cut short is refused: a file is never taken in part. */
static void a_cut_form_is_refused(void **state)
{
    static const char body[] = FILE_PART FIELD("model") "home-ears\r\n--B--";
    multipart m;
    api_error e;
    for (size_t n = 0; n < sizeof body - 1; n++)
        if (parse(&m, FORM, body, n, &e) == 0) fail_msg("%zu of %zu bytes were taken", n, sizeof body - 1);
}

/* ---- in pieces ------------------------------------------------------------------------------------- */

typedef struct heard {
    upload u;
    char file[256];
    size_t n, n_begun, fields_at_file;
} heard;

static int heard_file(void *user, api_error *e)
{
    heard *h = user;
    h->n_begun++;
    h->fields_at_file = h->u.fields.n;
    return 0;
}

static int heard_data(void *user, const char *bytes, size_t n, api_error *e)
{
    heard *h = user;
    assert_true(n > 0 && h->n + n <= sizeof h->file);
    memcpy(h->file + h->n, bytes, n);
    h->n += n;
    return 0;
}

static int hear(heard *h, const char *type, const char *query, const char *body, size_t n, size_t step,
                api_error *e)
{
    upload_events ev = {.user = h, .file = heard_file, .data = heard_data};
    *h = (heard){0};
    int rc = upload_open(&h->u, type, query, TRANSCRIBE_FIELDS, &ev, e);
    for (size_t at = 0; rc == 0 && at < n; at += step) {
        size_t k = step < n - at ? step : n - at;
        char *piece = malloc(k); /* exact, for AddressSanitizer */
        memcpy(piece, body + at, k);
        rc = upload_push(&h->u, piece, k, e);
        free(piece);
    }
    return rc == 0 ? upload_close(&h->u, e) : rc;
}

static void a_form_in_pieces_is_the_form(void **state)
{
    static const char body[] = FIELD("model") "m\r\n" FIELD("other") " --B\r\n" FILE_PART FIELD(
        "language") "en\r\n" FIELD("prompt") "\r\n--B--epilogue";
    for (size_t step = 1; step < sizeof body; step++) {
        heard h;
        api_error e = {0};
        if (hear(&h, FORM, "model=query", body, sizeof body - 1, step, &e) != 0)
            fail_msg("in pieces of %zu: %s", step, e.message);
        const multipart *m = upload_fields(&h.u);
        assert_int_equal(m->n, 3);
        assert_memory_equal(multipart_find(m, "model")->data, "m", 1);
        assert_memory_equal(multipart_find(m, "language")->data, "en", 2);
        assert_int_equal(multipart_find(m, "prompt")->len, 0);
        assert_true(h.n == 7 && h.n_begun == 1 && h.fields_at_file == 1);
        assert_memory_equal(h.file, "RI\0\r\nFF", 7);
        upload_done(&h.u);
    }
}

static void a_field_that_is_there_twice_is_refused(void **state)
{
    static const char *const BODIES[] = {FIELD("model") "m\r\n" FILE_PART FIELD("file") "second\r\n--B--",
                                         FIELD("model") "m\r\n" FIELD("model") "n\r\n" FILE_PART "--B--"};
    for (size_t i = 0; i < 2; i++) {
        heard h;
        api_error e = {0};
        /* FILE_PART holds a NUL */
        size_t n = i == 0 ? sizeof(FIELD("model") "m\r\n" FILE_PART FIELD("file") "second\r\n--B--") - 1
                          : sizeof(FIELD("model") "m\r\n" FIELD("model") "n\r\n" FILE_PART "--B--") - 1;
        assert_int_equal(hear(&h, FORM, "", BODIES[i], n, n, &e), 400);
        assert_string_equal(e.param, i == 0 ? "file" : "model");
        upload_done(&h.u);
    }
}

/* What looks like a boundary and is none comes through whole, wherever it is cut. */
static void data_may_look_like_a_boundary(void **state)
{
    static const char data[] = "--\r\n--b\r\r\n--\r\n\r\n-\r";
    char body[256];
    int n = snprintf(body, sizeof body, "%s%s\r\n--B--", FIELD("file"), data);
    for (size_t step = 1; step < (size_t)n; step++) {
        heard h;
        api_error e = {0};
        assert_int_equal(hear(&h, FORM, "", body, (size_t)n, step, &e), 0);
        assert_int_equal(h.n, sizeof data - 1);
        assert_memory_equal(h.file, data, h.n);
        upload_done(&h.u);
    }
}

static void a_long_field_is_not_kept(void **state)
{
    buf body = {0};
    heard h;
    transcribe_spec s = {0};
    api_error e = {0};
    buf_puts(&body, FIELD("prompt"));
    for (int i = 0; i < 100000; i++) buf_putc(&body, 'a');
    buf_puts(&body, "\r\n" FIELD("other") "0123456789\r\n--B--");
    assert_int_equal(hear(&h, FORM, "", body.data, body.len, 1000, &e), 0);
    assert_int_equal(h.u.text.len, UPLOAD_FIELD_MAX + 1);
    assert_int_equal(transcribe_spec_read(&s, false, upload_fields(&h.u), &e), 400);
    assert_string_equal(e.param, "prompt");
    upload_done(&h.u);
    buf_done(&body);
}

static void a_raw_body_has_its_fields_in_the_query(void **state)
{
    heard h;
    transcribe_spec s = {0};
    api_error e = {0};
    assert_int_equal(hear(&h, "audio/wav", "language=en&prompt=Ann+%26%20Bob&model=m", "RIFF", 4, 3, &e), 0);
    assert_int_equal(transcribe_spec_read(&s, true, upload_fields(&h.u), &e), 0);
    assert_string_equal(s.model, "m");
    assert_string_equal(s.request.prompt, "Ann & Bob");
    assert_true(s.request.translate && h.n == 4 && h.fields_at_file == 3);
    transcribe_spec_done(&s);
    upload_done(&h.u);
    assert_int_equal(hear(&h, "audio/wav", "prompt=%ff", "", 0, 1, &e), 400);
    assert_string_equal(e.param, "prompt");
    upload_done(&h.u);
    assert_int_equal(hear(&h, "text/plain", "", "", 0, 1, &e), 415);
    assert_int_equal(hear(&h, NULL, "", "", 0, 1, &e), 415);
}

static int spec(transcribe_spec *s, const char *fields, api_error *e)
{
    char body[4096];
    multipart m;
    size_t n = (size_t)snprintf(body, sizeof body, "%s--B--", fields);
    *s = (transcribe_spec){0};
    int rc = multipart_parse(&m, FORM, body, n, e);
    return rc == 0 ? transcribe_spec_read(s, false, &m, e) : rc;
}

static void fields_are_read(void **state)
{
    transcribe_spec s, t;
    api_error e = {0};
    sha256_digest a, b, audio = {{1}}, other = {{2}};
    if (spec(
            &s,
            FIELD("model") "m\r\n" FIELD("language") "en\r\n" FIELD("prompt") "Ann\r\n" FIELD(
                "response_format") "srt\r\n" FIELD("temperature") "0\r\n" FIELD("unknown") "x\r\n" FIELD("tim"
                                                                                                         "est"
                                                                                                         "amp"
                                                                                                         "_gr"
                                                                                                         "anu"
                                                                                                         "lar"
                                                                                                         "iti"
                                                                                                         "es["
                                                                                                         "]") "segment\r\n" FIELD("stream") "false\r\n",
            &e))
        fail_msg("%s", e.message);
    assert_string_equal(s.model, "m");
    assert_string_equal(s.request.language, "en");
    assert_string_equal(s.request.prompt, "Ann");
    assert_true(s.format == CAPTIONS_SRT && s.request.times && !s.stream);
    assert_true(transcribe_spec_key(&s, "d", &audio, &a));
    assert_int_equal(spec(&t, FIELD("temperature") "0.5\r\n", &e), 0);
    assert_false(transcribe_spec_key(&t, "d", &audio, &b)); /* drawn */
    transcribe_spec_done(&t);
    assert_int_equal(spec(&t, "", &e), 0);
    assert_true(!t.model && t.format == CAPTIONS_JSON && !t.request.times);
    assert_true(transcribe_spec_key(&t, "d", &audio, &b));
    assert_memory_not_equal(&a, &b, sizeof a);
    assert_true(transcribe_spec_key(&t, "d", &other, &a));
    assert_memory_not_equal(&a, &b, sizeof a);
    transcribe_spec_done(&t);
    transcribe_spec_done(&s);
}

/* By three names, and each of the three answers has its own place in the cache. */
static void speech_may_be_looked_for_or_not(void **state)
{
    static const struct {
        const char *fields;
        Shoal__V1__VoiceActivity vad;
    } CASES[] = {
        {"", SHOAL__V1__VOICE_ACTIVITY__VAD_DEFAULT},
        {FIELD("vad") "false\r\n", SHOAL__V1__VOICE_ACTIVITY__VAD_OFF},
        {FIELD("vad") "off\r\n", SHOAL__V1__VOICE_ACTIVITY__VAD_OFF},
        {FIELD("vad") "true\r\n", SHOAL__V1__VOICE_ACTIVITY__VAD_ON},
        {FIELD("vad") "on\r\n", SHOAL__V1__VOICE_ACTIVITY__VAD_ON},
        {FIELD("vad_filter") "false\r\n", SHOAL__V1__VOICE_ACTIVITY__VAD_OFF},
        {FIELD("vad_filter") "True\r\n", SHOAL__V1__VOICE_ACTIVITY__VAD_ON},
        {FIELD("chunking_strategy") "auto\r\n", SHOAL__V1__VOICE_ACTIVITY__VAD_ON},
        {FIELD("chunking_strategy") "{\"type\": \"server_vad\"}\r\n", SHOAL__V1__VOICE_ACTIVITY__VAD_ON},
        {FIELD("vad") "1\r\n" FIELD("chunking_strategy") "auto\r\n", SHOAL__V1__VOICE_ACTIVITY__VAD_ON},
    };
    sha256_digest keys[3], audio = {{1}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        transcribe_spec s;
        api_error e = {0};
        if (spec(&s, CASES[i].fields, &e) != 0) fail_msg("%s: %s", CASES[i].fields, e.message);
        assert_int_equal(s.request.vad, CASES[i].vad);
        assert_true(transcribe_spec_key(&s, "d", &audio, &keys[s.request.vad]));
        transcribe_spec_done(&s);
    }
    assert_memory_not_equal(&keys[0], &keys[1], sizeof *keys);
    assert_memory_not_equal(&keys[1], &keys[2], sizeof *keys);
}

static void wrong_fields_are_named(void **state)
{
    static const struct {
        const char *fields, *param;
    } CASES[] = {
        {FIELD("response_format") "pdf\r\n", "response_format"},
        {FIELD("temperature") "warm\r\n", "temperature"},
        {FIELD("temperature") "-1\r\n", "temperature"},
        {FIELD("temperature") "nan\r\n", "temperature"},
        {FIELD("stream") "maybe\r\n", "stream"},
        {FIELD("stream") "true\r\n" FIELD("response_format") "srt\r\n", "stream"},
        {FIELD("timestamp_granularities[]") "word\r\n", "timestamp_granularities"},
        {FIELD("language") "\xff\r\n", "language"},
        {FIELD("vad") "maybe\r\n", "vad"},
        {FIELD("vad_filter") "2\r\n", "vad_filter"},
        {FIELD("vad") "true\r\n" FIELD("vad_filter") "false\r\n", "vad"},
        {FIELD("vad") "false\r\n" FIELD("chunking_strategy") "auto\r\n", "vad"},
        {FIELD("vad_filter") "false\r\n" FIELD("chunking_strategy") "auto\r\n", "vad_filter"},
        {FIELD("chunking_strategy") "none\r\n", "chunking_strategy"},
        {FIELD("chunking_strategy") "{\"type\":\"semantic_vad\"}\r\n", "chunking_strategy"},
        {FIELD("chunking_strategy") "[\"server_vad\"]\r\n", "chunking_strategy"},
        {FIELD("chunking_strategy") "{\"type\":\"server_vad\",\"threshold\":0.7}\r\n", "chunking_strategy"},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        transcribe_spec s;
        api_error e = {0};
        assert_int_equal(spec(&s, CASES[i].fields, &e), 400);
        assert_string_equal(e.param, CASES[i].param);
    }
}

static int detect(detect_spec *s, const char *fields, api_error *e)
{
    char body[4096];
    size_t n = sizeof FILE_PART - 1;
    memcpy(body, FILE_PART, n);
    n += (size_t)snprintf(body + n, sizeof body - n, "%s--B--", fields);
    int rc = detect_spec_parse(s, FORM, body, n, e);
    if (rc == 0) s->request.audio.data = (uint8_t *)"RI\0\r\nFF"; /* outlives body */
    return rc;
}

static void a_sound_is_asked_for_speech(void **state)
{
    static const char *const wrong[] = {"threshold", "min_speech_ms", "pad_ms", "probabilities"};
    detect_spec s, t;
    api_error e = {0};
    sha256_digest a, b;
    assert_int_equal(detect(&s, FIELD("threshold") "0.7\r\n" FIELD("model") "v\r\n", &e), 0);
    assert_true(s.request.threshold == 0.7 && s.request.audio.len == 7 && !s.request.probabilities);
    assert_string_equal(s.model, "v");
    assert_int_equal(detect(&t, FIELD("probabilities") "true\r\n", &e), 0);
    assert_true(t.request.probabilities && !t.model[0]);
    assert_true(detect_spec_key(&s, "d", &a) && detect_spec_key(&t, "d", &b));
    assert_memory_not_equal(&a, &b, sizeof a);
    assert_int_equal(detect_spec_parse(&s, "audio/wav", "RIFF", 4, &e), 0);
    assert_int_equal(s.request.audio.len, 4);
    assert_int_equal(detect_spec_parse(&s, "audio/wav", "", 0, &e), 400);
    assert_int_equal(detect_spec_parse(&s, NULL, "RIFF", 4, &e), 415);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char field[256];
        snprintf(field, sizeof field, FIELD("%s") "-1\r\n", wrong[i]);
        assert_int_equal(detect(&s, field, &e), 400);
        assert_string_equal(e.param, wrong[i]);
    }
}

/* A page of another site cannot send a form; programs can, and pages of this server. */
static void forms_come_from_programs_and_own_pages(void **state)
{
    gateway_config c = {.listen = "127.0.0.1:8080"};
    api_error e;
    browser_facts f = {.method = "POST", .host = "127.0.0.1:8080", .content_type = FORM, .takes_forms = true};
    assert_int_equal(browser_check(&c, &f, &e), 0);
    f.fetch_site = "cross-site";
    assert_int_equal(browser_check(&c, &f, &e), 415);
    f.fetch_site = "same-origin";
    assert_int_equal(browser_check(&c, &f, &e), 0);
    f.origin = "http://evil.example";
    assert_int_equal(browser_check(&c, &f, &e), 403);
    f.origin = "http://127.0.0.1:8080";
    assert_int_equal(browser_check(&c, &f, &e), 0);
    f.takes_forms = false; /* nor does its own page harm: what is no JSON is refused as such */
    assert_int_equal(browser_check(&c, &f, &e), 0);
    f.origin = NULL;
    f.fetch_site = "cross-site";
    assert_int_equal(browser_check(&c, &f, &e), 415);
}

static void only_sound_may_be_long(void **state)
{
    const char *allow;
    assert_true(endpoint_find(&ENDPOINTS, "POST", "/v1/audio/transcriptions", &allow)->takes &
                ENDPOINT_SOUND);
    assert_true(endpoint_find(&ENDPOINTS, "POST", "/v1/audio/translations", &allow)->takes & ENDPOINT_SOUND);
    size_t n = 0;
    for (size_t i = 0; i < ENDPOINTS.n; i++) n += (ENDPOINTS.rows[i].takes & ENDPOINT_SOUND) != 0;
    assert_true(endpoint_find(&ENDPOINTS, "POST", "/v1/vad", &allow)->takes & ENDPOINT_SOUND);
    assert_true(endpoint_find(&ENDPOINTS, "POST", "/v1/process", &allow)->takes & ENDPOINT_SOUND);
    assert_int_equal(n, 4);
    assert_true(endpoint_find(&ENDPOINTS, "POST", "/v1/images/classify", &allow)->takes == ENDPOINT_FORMS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_form_has_its_parts),
        cmocka_unit_test(malformed_forms_are_refused),
        cmocka_unit_test(a_cut_form_is_refused),
        cmocka_unit_test(a_form_in_pieces_is_the_form),
        cmocka_unit_test(a_field_that_is_there_twice_is_refused),
        cmocka_unit_test(data_may_look_like_a_boundary),
        cmocka_unit_test(a_long_field_is_not_kept),
        cmocka_unit_test(a_raw_body_has_its_fields_in_the_query),
        cmocka_unit_test(fields_are_read),
        cmocka_unit_test(speech_may_be_looked_for_or_not),
        cmocka_unit_test(wrong_fields_are_named),
        cmocka_unit_test(a_sound_is_asked_for_speech),
        cmocka_unit_test(forms_come_from_programs_and_own_pages),
        cmocka_unit_test(only_sound_may_be_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
