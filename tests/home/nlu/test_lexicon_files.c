/* lexicons/NAME.yaml does what lexicons/NAME.tests.yaml says, and docs/understanding.md shows a lexicon that
 * works. */
#include "helper.h"

#include "json/json.h"
#include "yaml/yaml.h"
#include "nlu/line.h"

enum { FILE_MAX = 1 << 20, HOME_MAX = 64 };

typedef struct file {
    buf text;
    yaml_doc *d;
} file;

static file open_file(const char *path)
{
    file f = {0};
    shoal_err err = {0};
    if (file_read(&f.text, path, FILE_MAX, &err)) fail_msg("%s", err.message);
    if (yaml_parse(&f.d, f.text.data, f.text.len, path, &err)) fail_msg("%s", err.message);
    return f;
}

static void close_file(file *f)
{
    yaml_doc_free(f->d);
    buf_done(&f->text);
}

static const char *text_at(const yaml_node *map, const char *key)
{
    const yaml_node *n = yaml_get(map, key);
    return n && n->kind == YAML_SCALAR ? n->text : NULL;
}

static size_t read_home(const yaml_node *list, device out[HOME_MAX], arena *a)
{
    assert_true(list && list->n <= HOME_MAX);
    for (size_t i = 0; i < list->n; i++) {
        const yaml_node *n = list->items[i], *aliases = yaml_get(n, "aliases"),
                        *groups = yaml_get(n, "groups");
        const char **other = arena_alloc(a, 16 * sizeof *other);
        const char **group = arena_alloc(a, 16 * sizeof *group);
        out[i] = (device){.id = text_at(n, "id"),
                          .name = text_at(n, "name"),
                          .state = text_at(n, "state"),
                          .unit = text_at(n, "unit"),
                          .groups = group,
                          .n_groups = groups ? groups->n : 0,
                          .area = text_at(n, "area"),
                          .aliases = other,
                          .n_aliases = aliases ? aliases->n : 0};
        assert_true(out[i].n_groups <= 16);
        assert_true(out[i].id && out[i].name && out[i].n_aliases <= 16);
        for (size_t k = 0; k < out[i].n_aliases; k++) other[k] = aliases->items[k]->text;
        for (size_t k = 0; k < out[i].n_groups; k++) group[k] = groups->items[k]->text;
    }
    return list->n;
}

/* "light.turn_on(light.kitchen, brightness=40)" */
static void put_call(buf *out, const device_call *c)
{
    json_t *args = NULL, *v;
    const char *key;
    assert_int_equal(json_parse(&args, c->arguments, strlen(c->arguments), "arguments", NULL), 0);
    buf_printf(out, "%s(%s", c->name, json_string_value(json_object_get(args, "target")));
    json_object_foreach(args, key, v)
    {
        if (strcmp(key, "target") == 0) continue;
        if (json_is_string(v))
            buf_printf(out, ", %s=%s", key, json_string_value(v));
        else
            buf_printf(out, ", %s=%g", key, json_number_value(v));
    }
    buf_putc(out, ')');
    json_decref(args);
}

/* "act CALL; CALL", "choose CALL or CALL", "later" */
static buf outcome_of(const grounding *g)
{
    buf b = {0};
    buf_puts(&b, ground_verdict_name(g->verdict));
    for (size_t i = 0; i < g->n_options; i++) {
        buf_puts(&b, i ? " or " : " ");
        for (size_t k = 0; k < g->options[i].n_calls; k++) {
            if (k) buf_puts(&b, "; ");
            put_call(&b, &g->options[i].calls[k]);
        }
    }
    return b;
}

static bool is_as_expected(const grounding *g, const char *got, const char *expected)
{
    bool acts = g->verdict == GROUND_ACT || g->verdict == GROUND_CHOOSE;
    if (strcmp(expected, "held") == 0) return !acts;
    if (strcmp(expected, "propose") == 0) return g->verdict == GROUND_PROPOSE;
    return strcmp(got, expected) == 0;
}

typedef struct request {
    const lexicon *lex;
    const char *path;
    const yaml_node *text, *expected;
    const device *home;
    size_t n_home;
} request;

/* 1: what came is not what was expected. */
static int try_request(const request *r, bool says)
{
    arena *a = arena_new(0);
    grounding g = {0};
    assert_int_equal(ground(&g, r->lex, r->home, r->n_home, r->text->text, a, NULL), 0);
    buf got = outcome_of(&g);
    bool right =
        says ? strstr(g.text, r->expected->text) != NULL : is_as_expected(&g, got.data, r->expected->text);
    if (!right)
        print_error("%s:%zu: %s\n    expected: %s\n    got:      %s\n    said:     %s\n", r->path,
                    r->text->line, r->text->text, r->expected->text, got.data, g.text);
    buf_done(&got);
    arena_free(a);
    return right ? 0 : 1;
}

static int try_section(const lexicon *l, const char *path, const yaml_node *root, const char *name,
                       size_t *ret_n)
{
    const yaml_node *section = yaml_get(root, name);
    int wrong = 0;
    for (size_t h = 0; section && h < section->n; h++) {
        arena *a = arena_new(0);
        device home[HOME_MAX];
        size_t n = read_home(yaml_get(yaml_get(root, "homes"), section->keys[h]->text), home, a);
        const yaml_node *rows = section->items[h];
        for (size_t i = 0; i < rows->n; i++) {
            request r = {l, path, rows->keys[i], rows->items[i], home, n};
            wrong += try_request(&r, strcmp(name, "says") == 0);
            ++*ret_n;
        }
        arena_free(a);
    }
    return wrong;
}

static void the_home_lexicon_does_what_its_tests_say(void **state)
{
    const char *path = SHOAL_SOURCE_DIR "/lexicons/home.tests.yaml";
    lexicon *l = load_lexicon(HOME_LEX);
    file f = open_file(path);
    size_t n = 0;
    int wrong = try_section(l, path, yaml_root(f.d), "tests", &n);
    wrong += try_section(l, path, yaml_root(f.d), "says", &n);
    assert_true(n > 100);
    if (wrong) fail_msg("%d of %zu requests came out otherwise", wrong, n);
    close_file(&f);
    lexicon_free(l);
}

/* ---- lines ---------------------------------------------------------------------------------------- */

static int try_line(const line_forms *forms, const char *path, const yaml_node *n)
{
    arena *a = arena_new(0);
    line_reading r = {0};
    const char *line = text_at(n, "line"), *said = text_at(n, "said"), *verdict = text_at(n, "verdict");
    const char *text = text_at(n, "text");
    bool kept;
    assert_true(line && (text || verdict));
    assert_int_equal(line_read(&r, forms, line, a, NULL), 0);
    const char *got = r.text;
    if (said && r.verdict == LINE_READ) got = line_check(&r, said, a, &kept);
    if (!verdict) verdict = "read";
    bool right = strcmp(line_verdict_name(r.verdict), verdict) == 0 && (!text || strstr(got, text));
    if (!right)
        print_error("%s:%zu: %s\n    expected: %s: %s\n    got:      %s: %s\n", path, n->line, line, verdict,
                    text ? text : "", line_verdict_name(r.verdict), got);
    arena_free(a);
    return right ? 0 : 1;
}

static void the_sensor_forms_do_what_their_tests_say(void **state)
{
    const char *path = SHOAL_SOURCE_DIR "/lexicons/sensors.tests.yaml";
    line_forms *forms = NULL;
    shoal_err err = {0};
    if (line_forms_load(&forms, SHOAL_SOURCE_DIR "/lexicons/sensors.yaml", &err)) fail_msg("%s", err.message);
    file f = open_file(path);
    const yaml_node *tests = yaml_get(yaml_root(f.d), "tests");
    int wrong = 0;
    assert_true(tests && tests->n > 20);
    for (size_t i = 0; i < tests->n; i++) wrong += try_line(forms, path, tests->items[i]);
    if (wrong) fail_msg("%d of %zu lines came out otherwise", wrong, tests->n);
    close_file(&f);
    line_forms_free(forms);
}

/* What it does is in test_ground.c. */
static void the_lexicon_in_the_documentation_is_the_one_that_is_tested(void **state)
{
    buf lex = {0}, page = {0};
    shoal_err err = {0};
    if (file_read(&lex, DATA("licht.yaml"), FILE_MAX, &err)) fail_msg("%s", err.message);
    if (file_read(&page, SHOAL_SOURCE_DIR "/docs/understanding.md", FILE_MAX, &err))
        fail_msg("%s", err.message);
    assert_non_null(strstr(page.data, lex.data));
    buf_done(&lex);
    buf_done(&page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_home_lexicon_does_what_its_tests_say),
        cmocka_unit_test(the_sensor_forms_do_what_their_tests_say),
        cmocka_unit_test(the_lexicon_in_the_documentation_is_the_one_that_is_tested),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
