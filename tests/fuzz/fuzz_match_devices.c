/* Texts and names of devices that are hostile, and lexicons that are: the first byte says which.
 *
 * Whatever is said, what is found is of the list and named once; what is held back has a text and a reason;
 * and two looks at the same text find the same. A lexicon is refused with file and line, or fit to be used.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "match/guard.h"
#include "memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const GROUPS[] = {"Erdgeschoss", "evening lights"};
static const device HOME[] = {
    {.id = "light.kitchen", .name = "Kitchen Light", .area = "kitchen", .groups = GROUPS, .n_groups = 2},
    {.id = "light.kueche", .name = "Küchenlicht", .area = "Küche"},
    {.id = "light.salon", .name = "Lampe de l'entrée", .area = "salon"},
    {.id = "lock.front", .name = "Haustür", .area = "Flur"},
    {.id = "switch.x", .name = "?!", .kind = "oven"},
    {.id = ".", .name = "a", .area = "a"},
    {.id = "light.a", .name = "the of and", .kind = "nothing known"},
    {.id = "nodot", .name = "\xF0\x9F\x98\x80 \xCC\x81\xCC\x81", .area = ""},
};
enum { HOME_N = sizeof HOME / sizeof *HOME };

static void see_parts(const matching *m, const match_part *p, size_t n, size_t n_devices)
{
    if (n > MATCH_PARTS_MAX) abort();
    for (size_t i = 0; i < n; i++) {
        if (!p[i].text || !strstr(m->utterance->text, p[i].text) || p[i].n > MATCH_SHOWN) abort();
        for (size_t k = 0; k < p[i].n; k++)
            if (p[i].devices[k] >= n_devices) abort();
    }
}

static void see_match(const matching *m, size_t n)
{
    for (size_t i = 0; i < m->n; i++)
        if (m->devices[i].device >= n || (i && m->devices[i].device <= m->devices[i - 1].device)) abort();
    see_parts(m, m->unknown, m->n_unknown, n);
    see_parts(m, m->ambiguous, m->n_ambiguous, n);
    if ((m->label == MATCH_NONE && m->n) || (m->label == MATCH_ONE && m->n != 1)) abort();
    if (m->n_unknown && m->label != MATCH_UNKNOWN) abort();
}

static void see_guard(const device_lexicon *l, const matching *m, const device *list, size_t n, arena *a)
{
    guard_rules rules = {.lex = l, .held = GUARD_ALL_RULES, .max_targets = 2};
    guard_case c = {.found = m, .devices = list, .n_devices = n, .by_match = true};
    guarding g;
    follow_reply answer;
    if (!holds(guard(&g, &rules, &c, a) == 0)) return;
    if (!g.why || !*g.why || (g.verdict != GUARD_PASS && (!*g.text || !*g.rule))) abort();
    if (g.verdict == GUARD_PASS && (m->n_unknown || m->n_ambiguous || m->n > 2)) abort();
    holds(guard_read_answer(&answer, l, m->utterance->text, a) == 0);
}

static void read_text(const device_lexicon *l, const device *list, size_t n, const char *text)
{
    arena *a = arena_new(1 << 16);
    matching m, again;
    if (holds(a && match(&m, l, list, n, text, NULL, a) == 0)) {
        see_match(&m, n);
        see_guard(l, &m, list, n, a);
        if (holds(match(&again, l, list, n, text, NULL, a) == 0) &&
            (again.label != m.label || again.n != m.n))
            abort();
    }
    arena_free(a);
}

/* The bytes are the devices' names, a line each; the last is what is said. */
static void read_names(const device_lexicon *l, char *text)
{
    device list[16] = {{0}};
    size_t n = 0;
    char *save = NULL, *last = "";
    for (char *line = strtok_r(text, "\n", &save); line && n < 16; line = strtok_r(NULL, "\n", &save)) {
        list[n] = (device){.id = n % 2 ? "light.x" : line, .name = line, .area = n % 3 ? NULL : line};
        last = line;
        n++;
    }
    read_text(l, list, n, last);
}

static void read_lexicon(const char *text, size_t n)
{
    device_lexicon *l = NULL;
    shoal_err err = {0};
    if (device_lexicon_parse(&l, text, n, "fuzz.yaml", &err))
        holds(strncmp(err.message, "fuzz.yaml:", 10) == 0);
    else
        read_text(l, HOME, HOME_N, "turn the Küchenlicht on, but not l'entrée in 5 min!");
    device_lexicon_free(l);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static device_lexicon *lex; /* read once; reachable to the end, so no leak */
    if (!lex && !holds(device_lexicon_load(&lex, SHOAL_SOURCE_DIR "/lexicons/devices.yaml", NULL) == 0))
        return 0;
    if (size == 0) return 0;
    char *text = malloc(size);
    if (!holds(text != NULL)) return 0;
    memcpy(text, data + 1, size - 1);
    text[size - 1] = 0;
    if (data[0] % 3 == 0)
        read_text(lex, HOME, HOME_N, text);
    else if (data[0] % 3 == 1)
        read_names(lex, text);
    else
        read_lexicon(text, size - 1);
    free(text);
    return 0;
}
