/* What a manifest may say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
/* cmocka.h wants the first four. */
#include <cmocka.h>

#include "backup/manifest.h"

#define HEX    "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
#define FILE_  "{\"name\":\"sessions.db\",\"bytes\":4096,\"sha256\":\"" HEX "\"}"
#define FILES  "\"files\":[" FILE_ "]"
#define MADE   "\"created\":1795994949,"
#define FORMAT "\"shoal_backup\":1,"

static int parse(manifest *ret, const char *text, shoal_err *err)
{
    return manifest_parse(ret, text, strlen(text), "m.json", err);
}

static void what_is_written_is_read(void **state)
{
    manifest m = {.version = "1.2.3",
                  .created = 1795994949,
                  .aside = "before-restore-2026-12-01T090130Z-2",
                  .places = HEX},
             back;
    shoal_err err;
    buf text = {0}, again = {0};
    m.files[BACKUP_COLLECTIONS] = (manifest_file){.is_in = true, .bytes = 77, .digest = {{1, 0xab}}};
    m.files[BACKUP_CA_LEDGER] = (manifest_file){.is_in = true};
    m.files[BACKUP_CA_KEY].left_out = true;
    manifest_put(&m, &text);
    assert_int_equal(manifest_parse(&back, text.data, text.len, "m.json", &err), 0);
    manifest_put(&back, &again);
    assert_string_equal(again.data, text.data);
    assert_true(manifest_same(&m, &back));
    assert_string_equal(back.aside, m.aside);
    assert_string_equal(back.places, HEX);
    assert_string_equal(back.version, "1.2.3");
    assert_true(back.files[BACKUP_CA_KEY].left_out && !back.files[BACKUP_CA_KEY].is_in);
    back.files[BACKUP_COLLECTIONS].digest.bytes[31] = 1;
    assert_false(manifest_same(&m, &back));
    buf_done(&text);
    buf_done(&again);
}

static void what_a_later_version_adds_is_passed_over(void **state)
{
    manifest m;
    shoal_err err;
    assert_int_equal(parse(&m, "{" FORMAT MADE FILES ",\"new\":{\"x\":1}}", &err), 0);
    assert_int_equal(m.files[BACKUP_SESSIONS].bytes, 4096);
    assert_string_equal(m.version, "");
}

static void a_newer_format_is_refused(void **state)
{
    manifest m;
    shoal_err err;
    assert_int_equal(parse(&m, "{\"shoal_backup\":2,\"anything\":[]}", &err), SHOAL_EUNSUPPORTED);
    assert_non_null(strstr(err.message, "a newer Shoal made this backup (format 2, this one knows 1)"));
}

static void what_is_wrong_is_named(void **state)
{
    static const struct {
        const char *text, *why;
    } rows[] = {
        {"", "it is no manifest"},
        {"[]", "it is no manifest"},
        {"{}", "it is no manifest"},
        {"{\"shoal_backup\":0}", "it is no manifest"},
        {"{\"shoal_backup\":\"1\"}", "it is no manifest"},
        {"{" FORMAT MADE FILES, "it is no manifest"},
        {"{" FORMAT MADE "\"files\":{}}", "'files' is no list"},
        {"{" FORMAT FILES "}", "'created' is no time"},
        {"{" FORMAT MADE FILES ",\"left_out\":1}", "'left_out' is no list"},
        {"{" FORMAT MADE FILES ",\"left_out\":[\"../x\"]}", "no backup has a file '../x'"},
        {"{" FORMAT MADE FILES ",\"left_out\":[1]}", "a file has no name"},
        {"{" FORMAT MADE FILES ",\"version\":7}", "version"},
        {"{" FORMAT MADE FILES ",\"version\":\"1234567890123456789012345678901234567890\"}",
         "'version' is too long"},
        {"{" FORMAT MADE FILES ",\"aside\":\"../../etc\"}", "'aside' is no such folder"},
        {"{" FORMAT MADE FILES ",\"aside\":\"before-restore-../x\"}", "'aside' is no such folder"},
        {"{" FORMAT MADE FILES ",\"aside\":\"/etc\"}", "'aside' is no such folder"},
        {"{" FORMAT MADE FILES ",\"places\":\"" HEX "0\"}", "'places' is too long"},
        {"{" FORMAT MADE "\"files\":[1]}", "a file has no name"},
        {"{" FORMAT MADE "\"files\":[" FILE_ "," FILE_ "]}", "it names sessions.db twice"},
        {"{" FORMAT MADE FILES ",\"left_out\":[\"sessions.db\"]}", "it names sessions.db twice"},
        {"{" FORMAT MADE "\"files\":[{\"name\":\"../sessions.db\",\"bytes\":1,\"sha256\":\"" HEX "\"}]}",
         "no backup has a file '../sessions.db'"},
        {"{" FORMAT MADE "\"files\":[{\"name\":\"/etc/passwd\",\"bytes\":1,\"sha256\":\"" HEX "\"}]}",
         "no backup has a file '/etc/passwd'"},
        {"{" FORMAT MADE "\"files\":[{\"name\":\"ca/../sessions.db\",\"bytes\":1,\"sha256\":\"" HEX "\"}]}",
         "no backup has a file 'ca/../sessions.db'"},
        {"{" FORMAT MADE "\"files\":[{\"name\":\"sessions.db\",\"bytes\":-1,\"sha256\":\"" HEX "\"}]}",
         "is no size"},
        {"{" FORMAT MADE "\"files\":[{\"name\":\"sessions.db\",\"bytes\":1e3,\"sha256\":\"" HEX "\"}]}",
         "is no size"},
        {"{" FORMAT MADE "\"files\":[{\"name\":\"sessions.db\",\"bytes\":1,\"sha256\":\"9f86\"}]}",
         "is no digest"},
        {"{" FORMAT MADE "\"files\":[{\"name\":\"sessions.db\",\"bytes\":1}]}", "is no digest"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        manifest m = {.created = 5};
        shoal_err err = {0};
        int rc = parse(&m, rows[i].text, &err);
        if (rc != SHOAL_EFORMAT || !strstr(err.message, rows[i].why))
            print_error("%s: %d: %s\n", rows[i].text, rc, err.message);
        assert_int_equal(rc, SHOAL_EFORMAT);
        assert_non_null(strstr(err.message, rows[i].why));
        assert_ptr_equal(strstr(err.message, "m.json: "), err.message);
        assert_int_equal(m.created, 5);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(what_a_later_version_adds_is_passed_over),
        cmocka_unit_test(a_newer_format_is_refused),
        cmocka_unit_test(what_is_wrong_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
