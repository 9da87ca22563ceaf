/* test_near_rule.c: what may stand in for what, and which verdict refuses it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "cache/near_rule.h"

typedef struct row {
    const char *a, *b, *language;
    near_how how;
    near_verdict want;
} row;

static const row ROWS[] = {
    {"turn on the light", "Turn on the light!", "en", NEAR_WORDS, NEAR_SAME},
    {"turn on the light", "please turn the light on", "en", NEAR_WORDS, NEAR_SAME},
    {"what is the capital of France", "What is the capital of France?", "en", NEAR_WORDS, NEAR_SAME},
    {"close the blind", "close the blinds", "en", NEAR_WORDS, NEAR_SAME},
    {"mach bitte das Licht an", "Mach das Licht an.", "de", NEAR_WORDS, NEAR_SAME},
    {"ferme la porte", "Ferme porte", "fr", NEAR_WORDS, NEAR_SAME},
    {"", "", "en", NEAR_WORDS, NEAR_SAME},
    {"turn off the light", "TURN OFF THE LIGHT!", "en", NEAR_WORDS, NEAR_SAME},
    {"enciende la luz",
     "\xC2\xA1"
     "Enciende la luz!",
     "es", NEAR_WORDS, NEAR_SAME},
    {"turn on the light", "turn off the light", "en", NEAR_WORDS, NEAR_OTHER_WORDS},
    {"turn on the fan and off the light", "turn off the fan and on the light", "en", NEAR_WORDS,
     NEAR_OTHER_ORDER},
    {"set it to 20", "set it to 21", "en", NEAR_WORDS, NEAR_OTHER_NUMBERS},
    {"add 1 and 2", "add 2 and 1", "en", NEAR_WORDS, NEAR_OTHER_NUMBERS},
    {"version 3.1", "version 3.10", "en", NEAR_WORDS, NEAR_OTHER_NUMBERS},
    {"set it to 20 degrees", "set it to 20 percent", "en", NEAR_WORDS, NEAR_OTHER_WORDS},
    {"what is 5 + 3", "what is 5 - 3", "en", NEAR_WORDS, NEAR_OTHER_SIGNS},
    {"50%", "50", "en", NEAR_WORDS, NEAR_OTHER_SIGNS},
    {"lock the door", "do not lock the door", "en", NEAR_WORDS, NEAR_OTHER_QUESTION},
    {"you lock the door", "you never lock the door", "en", NEAR_WORDS, NEAR_OTHER_NEGATION},
    {"schliess die Tür", "schliess die Tür nicht", "de", NEAR_WORDS, NEAR_OTHER_NEGATION},
    {"lights in the kitchen", "lights in the hall", "en", NEAR_WORDS, NEAR_OTHER_WORDS},
    {"fly from Paris to London", "fly from London to Paris", "en", NEAR_WORDS, NEAR_OTHER_ORDER},
    {"you turned off the light", "you turned off the light?", "en", NEAR_WORDS, NEAR_OTHER_QUESTION},
    {"say \"hello\"", "say \"Hello\"", "en", NEAR_WORDS, NEAR_OTHER_QUOTES},
    {"say \"hello\"", "say hello", "en", NEAR_WORDS, NEAR_OTHER_QUOTES},
    {"run `ls`", "run `LS`", "en", NEAR_WORDS, NEAR_OTHER_QUOTES},
    {"das ist schon hell", "das ist schön hell", "de", NEAR_WORDS, NEAR_OTHER_WORDS},
    {"what is vitamin A", "what is vitamin", "en", NEAR_WORDS, NEAR_OTHER_WORDS},
    {"open a_b", "open a b", "en", NEAR_WORDS, NEAR_OTHER_SIGNS},
    {"turn on the light", "please turn on the light", "", NEAR_WORDS, NEAR_OTHER_WORDS},
    {"turn the lamp off", "turn the lamps off", "en", NEAR_EXACT, NEAR_OTHER_WORDS},
    {"turn off the lamp", "turn the lamp off", "en", NEAR_EXACT, NEAR_OTHER_ORDER},
    {"turn off the lamp", "Please, turn off the lamp!", "en", NEAR_EXACT, NEAR_SAME},
    {"how tall is the tower", "what height has the tower", "en", NEAR_HARD, NEAR_SAME},
    {"how tall is Big Ben", "how tall is the Louvre", "en", NEAR_HARD, NEAR_OTHER_NAMES},
    {"how far is 5 km", "what is 6 km", "en", NEAR_HARD, NEAR_OTHER_NUMBERS},
    {"what can I eat", "what can I not eat", "en", NEAR_HARD, NEAR_OTHER_NEGATION},
    {"\xFF\xFE broken", "\xFF\xFE broken", "en", NEAR_WORDS, NEAR_SAME},
};

static void rows_hold_both_ways(void **state)
{
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        const row *r = &ROWS[i];
        near_verdict there = near_rule_compare(r->a, r->b, r->language, r->how);
        near_verdict back = near_rule_compare(r->b, r->a, r->language, r->how);
        if (there != r->want || back != r->want)
            fail_msg("'%s' and '%s': %s and %s, not %s", r->a, r->b, near_verdict_name(there),
                     near_verdict_name(back), near_verdict_name(r->want));
    }
}

static void long_texts_are_refused(void **state)
{
    char *a = malloc(NEAR_TEXT_MAX + 2);
    memset(a, 'a', NEAR_TEXT_MAX + 1);
    a[NEAR_TEXT_MAX + 1] = '\0';
    assert_int_equal(near_rule_compare(a, a, "en", NEAR_WORDS), NEAR_TOO_LONG);
    assert_int_equal(near_rule_compare(a + 1, a + 1, "en", NEAR_WORDS), NEAR_SAME);
    free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows_hold_both_ways),
                                       cmocka_unit_test(long_texts_are_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
