/* language.c: scripts and short words; see language.h. */
#include "routes/language.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/utf8.h"

/* Words that are frequent in one of these languages and rare in the others, between spaces. What two of them
 * share ("die" is English, too; "me", "a") stands in none, or in both. */
static const struct latin {
    const char *code, *words, *letters;
} LATIN[] = {
    {"en",
     " the and is are was what who how where when which that this with for from you your please can could "
     "would turn "
     "have has does do did my it of to at off show tell ",
     ""},
    {"de",
     " der das und ist nicht ich du wir ihr ein eine einen einem einer mit von zu auf bitte kann kannst wie "
     "wo wann "
     "mach schalte im den dem des ist sind war hat auch noch ",
     "äöüß"},
    {"fr",
     " le les des est et une dans pour avec sur vous je tu il elle nous que qui quel quelle comment pas du "
     "au aux "
     "ce cette mon ma mes la sont peux pouvez eteins allume lumière ",
     "àâçèêëîïôùûœ"},
    {"es",
     " el los las es y una en por para con del que como cuando donde qué cómo no mi tu su puedes favor "
     "enciende "
     "apaga luz la está están hay pero muy ",
     "ñ¿¡"},
    {"it",
     " il gli è e una di per con che come quando dove non mi la lo della del nel sono accendi spegni luce "
     "favore "
     "puoi anche questo questa ",
     "ìò"},
    {"nl",
     " de het een en is niet ik je jij wij van op met voor naar wat wie hoe waar zet doe uit aan licht "
     "alsjeblieft "
     "zijn heeft kan ook ",
     ""},
    {"pt",
     " o os as é e um uma em por para com do da dos das que como quando onde não meu minha você está são "
     "ligue "
     "desligue luz favor ",
     "ãõ"},
};
enum { N_LATIN = sizeof LATIN / sizeof *LATIN };

/* In the order in which they are looked for: kana before Han, since Japanese has both. */
static const struct script {
    const char *code;
    uint32_t first, last;
} SCRIPTS[] = {
    {"ja", 0x3040, 0x30FF}, {"ko", 0xAC00, 0xD7AF}, {"zh", 0x4E00, 0x9FFF},
    {"ru", 0x0400, 0x04FF}, {"el", 0x0370, 0x03FF}, {"ar", 0x0600, 0x06FF},
    {"he", 0x0590, 0x05FF}, {"hi", 0x0900, 0x097F}, {"th", 0x0E00, 0x0E7F},
};
enum { N_SCRIPTS = sizeof SCRIPTS / sizeof *SCRIPTS };

const char *const LANGUAGE_CODES[] = {"en", "de", "fr", "es", "it", "nl", "pt", "ja", "ko",
                                      "zh", "ru", "el", "ar", "he", "hi", "th", NULL};

int language_is_known(const char *code)
{
    for (size_t i = 0; LANGUAGE_CODES[i]; i++)
        if (strcmp(LANGUAGE_CODES[i], code) == 0) return 1;
    return 0;
}

typedef struct counts {
    unsigned latin[N_LATIN], script[N_SCRIPTS], n_letters;
} counts;

static void count_word(counts *c, const char *word, size_t n)
{
    char spaced[24];
    if (n == 0 || n + 3 > sizeof spaced) return;
    spaced[0] = spaced[n + 1] = ' ';
    memcpy(spaced + 1, word, n);
    spaced[n + 2] = '\0';
    for (size_t i = 0; i < N_LATIN; i++) c->latin[i] += strstr(LATIN[i].words, spaced) != NULL ? 2 : 0;
}

static void count_letter(counts *c, const char *s, size_t n, uint32_t cp)
{
    char letter[5] = {0};
    memcpy(letter, s, n);
    for (size_t i = 0; i < N_LATIN; i++) c->latin[i] += strstr(LATIN[i].letters, letter) != NULL;
    for (size_t i = 0; i < N_SCRIPTS; i++) c->script[i] += cp >= SCRIPTS[i].first && cp <= SCRIPTS[i].last;
    c->n_letters++;
}

static void count_all(counts *c, const char *text, size_t len)
{
    char word[24];
    size_t n_word = 0;
    for (size_t i = 0; i < len;) {
        uint32_t cp = 0;
        size_t n = utf8_decode(text + i, len - i, &cp);
        if (n == 0) break;
        bool letter = n > 1 || isalpha((unsigned char)text[i]);
        if (n > 1) count_letter(c, text + i, n, cp);
        if (n == 1 && letter) c->n_letters++;
        if (letter && n_word + n <= sizeof word) {
            for (size_t k = 0; k < n; k++)
                word[n_word + k] = n == 1 ? (char)tolower((unsigned char)text[i]) : text[i + k];
            n_word += n;
        } else if (!letter) {
            count_word(c, word, n_word);
            n_word = 0;
        }
        i += n;
    }
    count_word(c, word, n_word);
}

const char *language_guess(const char *text, size_t len)
{
    counts c = {0};
    size_t best = 0;
    count_all(&c, text, len < LANGUAGE_BYTES ? len : LANGUAGE_BYTES);
    for (size_t i = 0; i < N_SCRIPTS; i++)
        if (c.script[i] * 4 >= c.n_letters && c.script[i] > 0) return SCRIPTS[i].code;
    for (size_t i = 1; i < N_LATIN; i++)
        if (c.latin[i] > c.latin[best]) best = i;
    return c.latin[best] > 0 ? LATIN[best].code : "";
}
