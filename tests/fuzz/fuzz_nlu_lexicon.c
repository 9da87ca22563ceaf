/* A lexicon and forms of lines from hostile YAML: refused with file and line, or fit to be used. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "nlu/ground.h"
#include "nlu/line.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const device HOME[] = {
    {.id = "light.kitchen", .name = "Kitchen Light", .state = "off"},
    {.id = "timer.kitchen", .name = "Kitchen Timer", .state = "idle"},
    {.id = "todo.shopping", .name = "Shopping List", .state = "3", .area = "hall"},
    {.id = "odd", .name = "Lamp 2", .state = ""},
};

static void ask(const lexicon *l, const char *text)
{
    arena *a = arena_new(0);
    grounding g = {0};
    int rc = a ? ground(&g, l, HOME, sizeof HOME / sizeof *HOME, text, a, NULL) : SHOAL_ENOMEM;
    if (holds(rc == 0) && (!g.text || !*g.text || !g.example)) abort();
    arena_free(a);
}

static void use_lexicon(const lexicon *l)
{
    static const char *const texts[] = {
        "", "turn on the kitchen light",
        "set the kitchen timer for 5 minutes, then add milk to the shopping list",
        "don't turn on lamp 2 at 8 am, is it on?", "licht in der kueche an 40 % rot"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) ask(l, texts[i]);
    lexicon_talk_of(l, "weather_query");
}

static void use_forms(const line_forms *f)
{
    static const char *const texts[] = {
        "", "sensor vibration asset=pump-12 change=+64% threshold=20% window=30s", "sensor", "s a=1"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        arena *a = arena_new(0);
        line_reading r = {0};
        bool kept;
        if (holds(a && line_read(&r, f, texts[i], a, NULL) == 0) && r.verdict == LINE_READ)
            holds(line_check(&r, texts[i], a, &kept) != NULL);
        arena_free(a);
    }
}

/* Errors name the file and the line. */
static void refused(const shoal_err *err)
{
    holds(strncmp(err->message, "fuzz.yaml:", 10) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    lexicon *l = NULL;
    line_forms *f = NULL;
    shoal_err err = {0};
    if (lexicon_parse(&l, (const char *)data, size, "fuzz.yaml", &err))
        refused(&err);
    else
        use_lexicon(l);
    if (line_forms_parse(&f, (const char *)data, size, "fuzz.yaml", &err))
        refused(&err);
    else
        use_forms(f);
    lexicon_free(l);
    line_forms_free(f);
    return 0;
}
