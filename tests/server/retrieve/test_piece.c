/* Cutting into pieces, fusing rankings, words of a query, codes of a vector. */
#include "check.h"

#include <math.h>

#include "base/utf8.h"
#include "retrieve/cite.h"
#include "retrieve/codes.h"
#include "retrieve/fuse.h"
#include "retrieve/piece.h"
#include "retrieve/query.h"

static void cut(pieces *ps, plain *p, plain_type type, const char *bytes, size_t most, size_t overlap)
{
    shoal_err err = {0};
    *ps = (pieces){0};
    *p = (plain){0};
    assert_ok(plain_read(p, type, bytes, strlen(bytes), "test", NULL, &err));
    assert_ok(pieces_cut(ps, p, most, overlap, NULL, &err));
}

static void assert_piece(const plain *p, const piece *one, const char *title, size_t line, const char *text)
{
    char *got = strndup(p->text.data + one->start, one->end - one->start);
    assert_string_equal(got, text);
    assert_string_equal(one->title, title);
    assert_int_equal(one->line, line);
    free(got);
}

static void sentences_are_packed_and_overlap(void **state)
{
    pieces ps;
    plain p;
    cut(&ps, &p, PLAIN_MARKDOWN, "# Boiler\nOpen the valve. Wait a minute.\nClose it again. Write it down.\n",
        48, 20);
    assert_int_equal(ps.n, 2);
    assert_piece(&p, &ps.v[0], "Boiler", 2, "Open the valve. Wait a minute.\nClose it again.");
    assert_piece(&p, &ps.v[1], "Boiler", 3, "Close it again. Write it down.");
    pieces_done(&ps);
    plain_done(&p);
}

static void headings_end_pieces_and_name_them(void **state)
{
    pieces ps;
    plain p;
    cut(&ps, &p, PLAIN_MARKDOWN, "intro\n# A\n## B\none\n## C\ntwo\n# D\nthree\n# E\n", 200, 40);
    assert_int_equal(ps.n, 5);
    assert_piece(&p, &ps.v[0], "", 1, "intro");
    assert_piece(&p, &ps.v[1], "A > B", 4, "one");
    assert_piece(&p, &ps.v[2], "A > C", 6, "two");
    assert_piece(&p, &ps.v[3], "D", 8, "three");
    assert_piece(&p, &ps.v[4], "E", 9, "E");
    pieces_done(&ps);
    plain_done(&p);
}

static void a_row_is_a_piece(void **state)
{
    pieces ps;
    plain p;
    cut(&ps, &p, PLAIN_CSV, "k,v\na,1\nb,2\n", 200, 40);
    assert_int_equal(ps.n, 2);
    assert_piece(&p, &ps.v[1], "", 3, "k: b; v: 2");
    pieces_done(&ps);
    plain_done(&p);
}

/* Whatever the text: no piece is too long or cuts a character, they go forward, and nothing but blanks is
 * lost. */
static void any_text_is_covered(void **state)
{
    static const char *const WORDS[] = {
        "a",
        "valve.",
        "Stra\xC3\x9F"
        "e",
        "\xE2\x82\xAC\xE2\x82\xAC\xE2\x82\xAC\xE2\x82\xAC\xE2\x82\xAC\xE2\x82\xAC\xE2\x82\xAC\xE2\x82\xAC\xE2"
        "\x82\xAC\xE2\x82\xAC\xE2\x82\xAC\xE2\x82\xAC\xE2\x82\xAC",
        "\n\n",
        "\n# H\xC3\xA4usliche Dinge, die lang genug sind, dass sie kein Titel in einer Zeile fassen kann: "
        "nie und nimmer\n",
        "x;",
        "\n- item",
        "!"};
    for (unsigned seed = 1; seed < 300; seed++) {
        buf text = {0};
        uint32_t x = seed * 2654435761u;
        for (size_t i = 0; i < 120; i++) {
            x = x * 1664525u + 1013904223u;
            buf_printf(&text, "%s%s", WORDS[(x >> 16) % 9], x >> 30 ? " " : "");
        }
        pieces ps;
        plain p;
        size_t most = PIECE_BYTES_MIN + seed % 90;
        cut(&ps, &p, seed % 2 ? PLAIN_MARKDOWN : PLAIN_TEXT, text.data, most, most / 3);
        size_t covered = 0;
        char *seen = calloc(p.text.len + 1, 1);
        for (size_t i = 0; i < ps.n; i++) {
            const piece *one = &ps.v[i];
            assert_true(one->end > one->start && one->end - one->start <= most && one->end > covered);
            assert_true(utf8_valid(p.text.data + one->start, one->end - one->start, NULL));
            assert_true(utf8_valid(one->title, strlen(one->title), NULL));
            size_t line = 1;
            for (size_t k = 0; k < one->start; k++) line += p.text.data[k] == '\n';
            assert_int_equal(one->line, line);
            memset(seen + one->start, 1, one->end - one->start);
            covered = one->end;
        }
        for (size_t i = 0; i < p.n; i++)
            for (size_t k = p.blocks[i].start; p.blocks[i].kind == BLOCK_PARAGRAPH && k < p.blocks[i].end;
                 k++)
                if (!seen[k] && !strchr(" \t\r\n", p.text.data[k]))
                    fail_msg("seed %u: byte %zu is in no piece", seed, k);
        free(seen);
        pieces_done(&ps);
        plain_done(&p);
        buf_done(&text);
    }
}

static void rankings_are_fused_by_place(void **state)
{
    const found near[] = {{.document = 1, .by_meaning = 1, .cosine = 0.9f}, {.document = 2, .by_meaning = 2}};
    const found worded[] = {{.document = 2, .by_words = 1, .bm25 = 7},
                            {.document = 3, .ordinal = 4, .by_words = 2}};
    found out[4];
    assert_int_equal(fuse(near, 2, worded, 2, out), 3);
    assert_int_equal(out[0].document, 2);
    assert_float_equal(out[0].score, (1 / 62.0 + 1 / 61.0) / (2 / 61.0), 1e-6);
    assert_float_equal(out[0].bm25, 7, 0);
    assert_int_equal(out[1].document, 1);
    assert_int_equal(out[2].ordinal, 4);
    assert_int_equal(fuse(near, 2, NULL, 0, out), 2);
    assert_float_equal(out[0].score, 1, 1e-6);
    assert_int_equal(fuse(NULL, 0, NULL, 0, out), 0);
}

static void a_query_is_words_and_nothing_else(void **state)
{
    static query q;
    buf out = {0};
    const char *text = "What's \"AND\" NEAR(x) * the M\xC3\xBCller what";
    query_parse(&q, text, strlen(text));
    q.common[0] = true;
    query_put(&out, &q);
    assert_string_equal(out.data, "\"s\" OR \"near\" OR \"x\" OR \"m\xC3\xBCller\"");
    buf_clear(&out);
    query_parse(&q, "the", 3);
    q.common[0] = true;
    query_put(&out, &q);
    assert_string_equal(out.data, "\"the\"");
    query_parse(&q, "?! -", 4);
    assert_int_equal(q.n, 0);
    buf_done(&out);
}

static void function_words_count_alone(void **state)
{
    static query q;
    buf out = {0};
    static const char *const CASES[][2] = {
        {"How do I bleed the radiators?", "\"bleed\" OR \"radiators\""},
        {"Wie werden die Heizk\xC3\xB6rper entl\xC3\xBC\x66tet?",
         "\"die\" OR \"heizk\xC3\xB6rper\" OR \"entl\xC3\xBC\x66tet\""},
        {"what is it", "\"what\" OR \"is\" OR \"it\""},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        buf_clear(&out);
        query_parse(&q, CASES[i][0], strlen(CASES[i][0]));
        query_put(&out, &q);
        assert_string_equal(out.data, CASES[i][1]);
    }
    buf_done(&out);
}

static void codes_keep_the_angle(void **state)
{
    enum { D = 100 };
    float a[D], b[D], scale_a, scale_b;
    int8_t ca[D], cb[D];
    double dot = 0, aa = 0, bb = 0;
    int32_t whole = 0;
    for (int i = 0; i < D; i++) {
        a[i] = sinf((float)i) * 1e-3f;
        b[i] = sinf((float)i * 1.1f) * 50;
        dot += (double)a[i] * (double)b[i], aa += (double)a[i] * (double)a[i],
            bb += (double)b[i] * (double)b[i];
    }
    assert_true(codes_of(a, D, ca, &scale_a) && codes_of(b, D, cb, &scale_b));
    for (int i = 0; i < D; i++) whole += ca[i] * cb[i];
    assert_float_equal((float)whole * scale_a * scale_b, dot / sqrt(aa * bb), 5e-3);
    a[3] = NAN;
    assert_false(codes_of(a, D, ca, &scale_a));
    assert_float_equal(scale_a, 0, 0);
    memset(a, 0, sizeof a);
    assert_false(codes_of(a, D, ca, &scale_a));
    a[0] = INFINITY;
    assert_false(codes_of(a, D, ca, &scale_a));
}

static void sentences_of_passages_are_quoted_once(void **state)
{
    const char *texts[] = {"Hold a cloth under it. Yes. The valve opens to the left",
                           "Hold a cloth under it.\nThen close the valve!"};
    cite_sentence v[8];
    assert_int_equal(cite_sentences(texts, 2, v, 8), 3);
    assert_int_equal(v[1].passage, 0);
    assert_memory_equal(texts[0] + v[1].start, "The valve opens to the left", v[1].end - v[1].start);
    assert_int_equal(v[2].passage, 1);
    assert_memory_equal(texts[1] + v[2].start, "Then close the valve!", v[2].end - v[2].start);
    assert_int_equal(cite_sentences(texts, 2, v, 1), 1);
}

static void a_sentence_stands_on_its_words(void **state)
{
    cite_words text = {0};
    assert_int_equal(cite_words_of(&text, "The pressure must stay between 1 and 2 bar."), 0);
    assert_float_equal(cite_support("Pressure stays at 2.", 20, &text), 2 / 3.0, 1e-6);
    assert_float_equal(cite_support("The pressure must stay", 22, &text), 1, 0);
    assert_float_equal(cite_support("It is so.", 9, &text), 0, 0);
    assert_float_equal(cite_support("Bananas everywhere", 18, &text), 0, 0);
    cite_words_done(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sentences_are_packed_and_overlap),
        cmocka_unit_test(headings_end_pieces_and_name_them),
        cmocka_unit_test(a_row_is_a_piece),
        cmocka_unit_test(any_text_is_covered),
        cmocka_unit_test(rankings_are_fused_by_place),
        cmocka_unit_test(a_query_is_words_and_nothing_else),
        cmocka_unit_test(function_words_count_alone),
        cmocka_unit_test(codes_keep_the_angle),
        cmocka_unit_test(sentences_of_passages_are_quoted_once),
        cmocka_unit_test(a_sentence_stands_on_its_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
