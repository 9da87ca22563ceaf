/* verify_home.h: a lexicon, requests and answers for tests of verify rules. Include once a test file.
 *
 *     lexicon *l = home_lexicon();
 *     verify_case k = home_case(mem, "turn on the kitchen light");
 *     verify_answer a = home_call(mem, "Turning on Kitchen Light.", "light.turn_on", "light.kitchen"); */
#ifndef TESTS_RULES_VERIFY_HOME_H
#define TESTS_RULES_VERIFY_HOME_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants the four above first. */
#include <cmocka.h>
#include <string.h>

#include "json/json.h"
#include "nlu/check.h"
#include "rules/rule_answer.h"

#define HOME_SYSTEM                                                         \
    "You are Shoal, a helper that runs this home. Devices:\\n"              \
    "light.kitchen 'Kitchen Light' = off\\nlight.hall 'Hall Light' = on\\n" \
    "lock.front_door 'Front Door Lock' = locked\\n"                         \
    "fan.office 'Office Fan' = on\\nclimate.hall 'Hall Thermostat' = heat"

/* What the rules of that home say to what is no request. */
#define HOME_NOTHING \
    "I run the devices of this home, and nothing else. Ask me for one, such as: turn on Kitchen Light."

static inline lexicon *home_lexicon(void)
{
    lexicon *l = NULL;
    shoal_err err;
    if (lexicon_load(&l, SHOAL_SOURCE_DIR "/lexicons/home.yaml", &err)) fail_msg("%s", err.message);
    return l;
}

/* As JSON, with a system message that lists the home. */
static inline const char *home_messages(arena *mem, const char *user)
{
    return arena_printf(mem,
                        "[{\"role\":\"system\",\"content\":\"%s\"},{\"role\":\"user\",\"content\":\"%s\"}]",
                        HOME_SYSTEM, user);
}

static inline verify_case home_read(arena *mem, const char *messages, const char *tools)
{
    Shoal__V1__GenerateRequest r = SHOAL__V1__GENERATE_REQUEST__INIT;
    verify_case k;
    r.messages_json = (char *)(uintptr_t)messages;
    r.tools_json = (char *)(uintptr_t)tools;
    assert_int_equal(verify_case_read(&k, &r, mem), 0);
    return k;
}

static inline verify_case home_case(arena *mem, const char *user)
{
    return home_read(mem, home_messages(mem, user), "");
}

static inline verify_answer home_calls(arena *mem, const char *text, const device_call *calls, size_t n)
{
    device_call *kept = arena_alloc(mem, (n + 1) * sizeof *kept);
    memcpy(kept, calls, n * sizeof *kept);
    return (verify_answer){text, kept, n};
}

static inline verify_answer home_call(arena *mem, const char *text, const char *service, const char *target)
{
    device_call c = {service, arena_printf(mem, "{\"target\": \"%s\"}", target)};
    return home_calls(mem, text, &c, 1);
}

static inline verify_answer home_text(const char *text)
{
    return (verify_answer){.text = text};
}

#endif
