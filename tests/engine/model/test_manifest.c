#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "model/model.h"

static char folder[200], path[256];

static int make_folder(void **state)
{
    (void)state;
    const char *tmp = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/shoal_manifest_XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(folder)) return -1;
    snprintf(path, sizeof path, "%s/models.json", folder);
    return 0;
}

static int drop_folder(void **state)
{
    (void)state;
    unlink(path);
    rmdir(folder);
    return 0;
}

static void put(const char *json)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    fputs(json, f);
    fclose(f);
}

static void refused(const char *json, int code, const char *sentence)
{
    manifest *m = NULL;
    shoal_err err = {0};
    put(json);
    int rc = manifest_open(&m, path, &err);
    if (rc != code || !strstr(err.message, sentence)) fail_msg("got %d \"%s\"", rc, err.message);
}

#define SHA         "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define ENTRY(rest) "{\"models\":[{\"name\":\"a\",\"file\":\"a.gguf\",\"sha256\":\"" SHA "\"" rest "}]}"

static void manifest_reads_entries(void **state)
{
    (void)state;
    put(ENTRY(
        ",\"task\":\"classify\",\"labels\":[\"x\",\"y\"],\"quantisation\":\"Q8_0\",\"version\":\"1.0.0\","
        "\"quality\":{\"metric\":\"accuracy\",\"value\":0.9,\"test\":\"t\"},\"more\":{}"));
    manifest *m = NULL;
    shoal_err err;
    assert_int_equal(manifest_open(&m, path, &err), 0);
    assert_int_equal(manifest_count(m), 1);
    const manifest_entry *e = manifest_find(m, "a");
    assert_ptr_equal(e, manifest_at(m, 0));
    assert_null(manifest_at(m, 1));
    assert_null(manifest_find(m, "b"));
    char file[300];
    snprintf(file, sizeof file, "%s/a.gguf", folder);
    assert_string_equal(e->file, file);
    assert_string_equal(e->sha256, SHA);
    assert_int_equal(e->n_labels, 2);
    assert_string_equal(e->labels[1], "y");
    assert_string_equal(e->quality_name, "accuracy");
    assert_true(e->quality == 0.9);
    manifest_free(m);
    put(ENTRY(""));
    assert_int_equal(manifest_open(&m, path, &err), 0);
    assert_true(isnan(manifest_at(m, 0)->quality));
    assert_string_equal(manifest_at(m, 0)->version, "");
    manifest_free(m);
}

static void manifest_tells_how_a_file_beside_it_is_sampled(void **state)
{
    (void)state;
    char file[sizeof folder + 16];
    sampling_defaults d;
    put(ENTRY(",\"sampling\":{\"temperature\":0,\"top_k\":3}"));
    snprintf(file, sizeof file, "%s/a.gguf", folder);
    manifest_sampling(file, &d);
    assert_true(d.said == (SAMPLING_BIT(temperature) | SAMPLING_BIT(top_k)) && d.top_k == 3);
    snprintf(file, sizeof file, "%s/b.gguf", folder);
    manifest_sampling(file, &d);
    assert_int_equal(d.said, 0); /* it is not in there */
    manifest_sampling("a.gguf", &d);
    assert_int_equal(d.said, 0); /* nothing lies beside it */
    put("no JSON");
    snprintf(file, sizeof file, "%s/a.gguf", folder);
    manifest_sampling(file, &d);
    assert_int_equal(d.said, 0);
}

static void manifest_names_what_is_wrong(void **state)
{
    (void)state;
    refused("{}", SHOAL_EINVALID, "\"models\" must be an array");
    refused("{\"models\":[5]}", SHOAL_EINVALID, "entry 0: not an object");
    refused("{\"models\":[{\"name\":\"a\"}]}", SHOAL_EINVALID, "entry 0: \"file\" is missing");
    refused("{\"models\":[{\"name\":\"a\",\"file\":\"../a\",\"sha256\":\"" SHA "\"}]}", SHOAL_EINVALID,
            "plain name");
    refused("{\"models\":[{\"name\":\"a\",\"file\":\"/a\",\"sha256\":\"" SHA "\"}]}", SHOAL_EINVALID,
            "plain name");
    refused("{\"models\":[{\"name\":\"a\",\"file\":\"a\",\"sha256\":\"12\"}]}", SHOAL_EINVALID,
            "64 hexadecimal");
    refused(ENTRY(",\"task\":\"dance\""), SHOAL_EUNSUPPORTED, "\"dance\"");
    refused(ENTRY(",\"labels\":[1]"), SHOAL_EINVALID, "\"labels\"");
    refused(ENTRY(",\"quality\":1"), SHOAL_EINVALID, "\"quality\"");
    refused(ENTRY(",\"sampling\":1"), SHOAL_EINVALID, "\"sampling\" must be an object");
    refused(ENTRY(",\"sampling\":{\"temp\":1}"), SHOAL_EINVALID, "no \"temp\"");
    refused(ENTRY(",\"sampling\":{\"top_p\":2}"), SHOAL_EINVALID, "top_p is 2");
    refused("{\"models\":[{\"name\":\"a\",\"file\":\"a\",\"sha256\":\"" SHA
            "\"},{\"name\":\"a\",\"file\":\"b\",\"sha256\":\"" SHA "\"}]}",
            SHOAL_EINVALID, "appears twice");
    refused("not json", SHOAL_EFORMAT, "not JSON");
}

static void resolve_prefers_a_path_then_a_name(void **state)
{
    (void)state;
    char *found = NULL, *sha = NULL;
    shoal_err err;
    put(ENTRY(""));
    assert_int_equal(manifest_resolve(path, path, &found, &sha, &err), 0);
    assert_string_equal(found, path);
    assert_null(sha);
    free(found);
    assert_int_equal(manifest_resolve("a", path, &found, &sha, &err), 0);
    assert_non_null(strstr(found, "/a.gguf"));
    assert_string_equal(sha, SHA);
    free(found);
    free(sha);
    assert_int_equal(manifest_resolve("missing", path, &found, &sha, &err), SHOAL_ENOTFOUND);
    assert_non_null(strstr(err.message, "\"missing\""));
    assert_non_null(strstr(err.message, "has only a"));
}

static void resolve_finds_the_manifest_of_the_environment(void **state)
{
    (void)state;
    char *found = NULL, *sha = NULL;
    shoal_err err;
    put(ENTRY(""));
    setenv("SHOAL_MODELS", folder, 1);
    int rc = manifest_resolve("a", NULL, &found, &sha, &err);
    unsetenv("SHOAL_MODELS");
    assert_int_equal(rc, 0);
    assert_string_equal(sha, SHA);
    free(found);
    free(sha);
}

static void bundled_models_match_their_pins(void **state)
{
    (void)state;
    manifest *m = NULL;
    shoal_err err = {0};
    if (manifest_open(&m, SHOAL_SOURCE_DIR "/models/models.json", &err) != 0) fail_msg("%s", err.message);
    assert_int_equal(manifest_count(m), 6);
    size_t home = 0, total = 0;
    for (size_t i = 0; i < manifest_count(m); i++) {
        const manifest_entry *e = manifest_at(m, i);
        model_options pinned = {.expect_sha256 = e->sha256};
        model *bundled = NULL;
        file_map f = {0};
        if (model_open(&bundled, e->file, &pinned, &err) != 0) fail_msg("%s", err.message);
        assert_non_null(model_tokenizer(bundled));
        assert_string_equal(e->task, task_name(model_get_config(bundled)->task));
        assert_string_equal(e->quantisation, model_quantisation(bundled));
        assert_string_equal(e->version, model_version(bundled));
        assert_int_equal(e->n_labels, model_get_config(bundled)->head.n_labels);
        assert_int_equal(file_map_open(&f, e->file, &err), 0);
        total += f.len;
        if (model_get_config(bundled)->task != TASK_TRANSCRIBE) home += f.len;
        file_map_close(&f);
        model_free(bundled);
    }
    assert_true(home <= 40000000 && total <= 48000000);
    manifest_free(m);
}

#define T(f) cmocka_unit_test_setup_teardown(f, make_folder, drop_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(manifest_reads_entries),
        T(manifest_tells_how_a_file_beside_it_is_sampled),
        T(manifest_names_what_is_wrong),
        T(resolve_prefers_a_path_then_a_name),
        T(resolve_finds_the_manifest_of_the_environment),
        cmocka_unit_test(bundled_models_match_their_pins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
