/* Requests for homes: the first byte chooses the home, the rest is what is said, behind a zero byte the request before
 * it, understood by the lexicon that is shipped. Whatever is said, the text is never empty, nothing is done that the verdict does not
 * allow, and a call is JSON for a device of the home. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json/json.h"
#include "memory.h"
#include "nlu/check.h"
#include "nlu/follow.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct home {
    size_t n;
    const device *devices;
} home;

static const device SHIPPED[] = {
    {.id = "light.kitchen", .name = "Kitchen Light", .state = "off"},
    {.id = "light.bedroom_lamp", .name = "Bedroom Lamp", .state = "on"},
    {.id = "fan.office", .name = "Office Fan", .state = "off"},
    {.id = "lock.front_door", .name = "Front Door Lock", .state = "locked"},
    {.id = "media_player.lounge_speaker", .name = "Lounge Speaker", .state = "playing"},
    {.id = "vacuum.downstairs_robot", .name = "Downstairs Robot", .state = "docked"},
    {.id = "blinds.dining_room", .name = "Dining Room Blinds", .state = "open"},
    {.id = "switch.garden_pump", .name = "Garden Pump", .state = "off"},
    {.id = "climate.hallway", .name = "Hallway Thermostat", .state = "heat"},
    {.id = "garage_door.garage", .name = "Garage Door", .state = "closed"},
    {.id = "timer.kitchen", .name = "Kitchen Timer", .state = "idle"},
    {.id = "todo.shopping", .name = "Shopping List", .state = "3"},
};
static const char *const OTHER_NAMES[] = {"Leselampe", "the big one", "Lamp"};
static const device TWINS[] = {
    {.id = "light.a", .name = "Lamp 1", .area = "upstairs"},
    {.id = "light.b", .name = "Lamp 2", .area = "upstairs", .aliases = OTHER_NAMES, .n_aliases = 3},
    {.id = "light.c", .name = "Küchenlicht", .state = "on", .area = "Küche"},
    {.id = "switch.c", .name = "Küchenlicht", .state = "off", .area = "Küche"},
    {.id = "todo.milk", .name = "Milk and Eggs", .state = "0"},
    {.id = "todo.work", .name = "To Do", .state = "12"},
    {.id = "timer.one", .name = "One", .state = "idle"},
    {.id = "light.0x00158d0001a2b3c4", .name = "0x00158d0001a2b3c4", .state = "off"},
};
static const device ODD[] = {
    {.id = ".", .name = "?!", .state = "on"},
    {.id = "light.", .name = "On", .state = "off"},
    {.id = "light.\"\\", .name = "Don't \"quote\" \\ me", .state = "\""},
    {.id = "nodot", .name = "All", .state = "everything"},
    {.id = "fan.five", .name = "Five Minutes", .state = "40%"},
    {.id = "lock.x",
     .name = "a b c d e f g h i j k l m n o p q r s t u v w x y z 1 2 3 4 5 6 7 8 9 0",
     .state = "locked"},
    {.id = "media_player.y", .name = "😀", .state = "off"},
    {.id = "vacuum.z", .name = "And", .state = "docked"},
};

enum { CROWD = DEVICES_MAX, CROWD_ALIASES = 2 };

/* As many devices as a home may have; made once. */
static home crowd(void)
{
    static device list[CROWD];
    static char text[CROWD][CROWD_ALIASES + 2][48];
    static const char *aliases[CROWD][CROWD_ALIASES];
    static const char *const kinds[] = {"light", "switch", "fan", "lock", "media_player", "climate"};
    for (int i = 0; i < CROWD && !list[i].id; i++) {
        snprintf(text[i][0], sizeof text[i][0], "%s.room_%d", kinds[i % 6], i);
        snprintf(text[i][1], sizeof text[i][1], "Room %d Upper Left Lamp", i);
        for (int k = 0; k < CROWD_ALIASES; k++) {
            snprintf(text[i][2 + k], sizeof text[i][0], "cabinet %d shelf %d light", i, k);
            aliases[i][k] = text[i][2 + k];
        }
        list[i] = (device){.id = text[i][0],
                           .name = text[i][1],
                           .state = i % 2 ? "on" : "off",
                           .area = "first floor",
                           .aliases = aliases[i],
                           .n_aliases = CROWD_ALIASES};
    }
    return (home){CROWD, list};
}

static home choose(uint8_t first)
{
    switch (first % 5) {
    case 0: return (home){sizeof SHIPPED / sizeof *SHIPPED, SHIPPED};
    case 1: return (home){sizeof TWINS / sizeof *TWINS, TWINS};
    case 2: return (home){sizeof ODD / sizeof *ODD, ODD};
    case 3: return crowd();
    default: return (home){0};
    }
}

static const device *target_of(const home *h, const char *arguments)
{
    json_t *args = NULL;
    if (!holds(json_parse(&args, arguments, strlen(arguments), "arguments", NULL) == 0))
        return &h->devices[0];
    if (!json_is_object(args)) abort();
    const char *target = json_string_value(json_object_get(args, "target"));
    const device *found = NULL;
    for (size_t i = 0; target && i < h->n && !found; i++)
        if (strcmp(h->devices[i].id, target) == 0) found = &h->devices[i];
    json_decref(args);
    return found;
}

static bool is_service(const lexicon *l, const char *name)
{
    for (size_t i = 0; i < l->n_actions; i++)
        if (l->actions[i].service && strcmp(l->actions[i].service, name) == 0) return true;
    return false;
}

/* "light.turn_on" for a device whose id begins with "light.". */
static void see_call(const home *h, const lexicon *l, const device_call *c)
{
    const device *d = target_of(h, c->arguments);
    if (!d) abort();
    if (memory_was_refused()) return;
    size_t n = strcspn(d->id, ".");
    if (strncmp(c->name, d->id, n) != 0 || c->name[n] != '.' || !is_service(l, c->name + n + 1)) abort();
}

static void see(const home *h, const lexicon *l, const grounding *g)
{
    bool has_options =
        g->verdict == GROUND_ACT || g->verdict == GROUND_CHOOSE || g->verdict == GROUND_PROPOSE;
    if (!g->text || !*g->text || !g->example) abort();
    if (has_options != (g->n_options > 0) || (g->verdict == GROUND_ACT && g->n_options != 1)) abort();
    for (size_t i = 0; i < g->n_options; i++) {
        const device_option *o = &g->options[i];
        if (!o->say || !*o->say || !o->n_calls || o->n_calls > GROUND_CALLS_MAX) abort();
        for (size_t k = 0; k < o->n_calls; k++) see_call(h, l, &o->calls[k]);
    }
}

/* A model that calls what was not offered: of a proposal or a held request nothing comes of it. */
static void hold(const grounding *g, const lexicon *lex, arena *a)
{
    static const device_call made = {"lock.unlock", "{\"target\": \"lock.front_door\"}"};
    checked c;
    if (!holds(check_calls(&c, g, lex, &made, 1, a, NULL) == 0)) return;
    if (!c.text || !*c.text) abort();
    bool may = g->verdict == GROUND_ACT || g->verdict == GROUND_CHOOSE;
    if (!may && c.n_calls) abort();
    for (size_t i = 0; i < c.n_calls; i++) {
        bool offered = false;
        for (size_t o = 0; o < g->n_options; o++)
            offered = offered || (c.calls >= g->options[o].calls &&
                                  c.calls < g->options[o].calls + g->options[o].n_calls);
        if (!offered) abort();
    }
}

/* A yes does what was offered and nothing else; any text may be one. */
static void answer(grounding g, const home *h, const lexicon *lex, const char *text, arena *a)
{
    static const sha256_digest other = {{1}};
    follow_reply said;
    sha256_digest about;
    if (!holds(follow_read(&said, lex, text, a) == 0)) return;
    if (said == FOLLOW_YES && g.verdict == GROUND_ACT) abort();
    const device_option *o = g.n_options ? &g.options[0] : NULL;
    grounding declined = g, odd = g;
    if (!holds(follow_apply(&odd, lex, true, &other) == 0 &&
               follow_apply(&declined, lex, false, &other) == 0))
        return;
    if (odd.verdict == GROUND_ACT || declined.verdict != GROUND_LEAVE || declined.n_options) abort();
    if (!o || !holds(follow_digest(&about, o) == 0 && follow_apply(&g, lex, true, &about) == 0)) return;
    if (g.verdict == GROUND_ACT && (g.n_options != 1 || g.options != o)) abort();
    see(h, lex, &g);
}

/* Behind another request, with the reply that it got or one of somebody else. */
static void follow(const home *h, const lexicon *lex, const char *text, const char *request, arena *a)
{
    grounding first = {0}, g = {0};
    follow_meaning m;
    if (!holds(ground(&first, lex, h->devices, h->n, request, a, NULL) == 0)) return;
    follow_turn t = {
        .request = request, .reply = first.n_options ? first.options[0].say : first.text, .answer = text};
    if (!holds(follow_read_turn(&m, lex, h->devices, h->n, &t, a) == 0)) return;
    const char *whole = m.text ? m.text : text;
    if (holds(ground_after(&g, lex, h->devices, h->n, whole, &m.it, a, NULL) == 0)) see(h, lex, &g);
    t.reply = "Surely.";
    if (!holds(follow_read_turn(&m, lex, h->devices, h->n, &t, a) == 0)) return;
    if (m.text || device_set_count(&m.it)) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static lexicon *lex; /* read once; reachable to the end, so no leak */
    if (!lex && !holds(lexicon_load(&lex, SHOAL_SOURCE_DIR "/lexicons/home.yaml", NULL) == 0)) return 0;
    if (size == 0) return 0;
    home h = choose(data[0]);
    arena *a = arena_new(1 << 16);
    char *text = a ? arena_strndup(a, (const char *)data + 1, size - 1) : NULL;
    grounding g = {0};
    if (holds(text && ground(&g, lex, h.devices, h.n, text, a, NULL) == 0)) {
        see(&h, lex, &g);
        hold(&g, lex, a);
        answer(g, &h, lex, text, a);
        size_t n = strlen(text);
        if (n + 2 < size) follow(&h, lex, text, text + n + 1, a);
    }
    arena_free(a);
    return 0;
}
