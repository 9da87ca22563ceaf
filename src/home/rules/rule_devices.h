/* rule_devices.h: what match and guard stages have in common: a lexicon of devices, languages, and the devices
 * that a text names. Inside rules/. */
#ifndef RULES_RULE_DEVICES_H
#define RULES_RULE_DEVICES_H

#include "match/guard.h"
#include "rules/rules.h"

/* What such a stage has loaded (config_stage.own). */
typedef struct rule_devices {
    device_lexicon *words;
    const language **languages; /* [n_languages of the stage] */
    struct guard_rules *guard;  /* what a guard's keys say */
} rule_devices;

const rule_devices *rule_devices_of(const config_stage *s);

/* stage_kind.open and close: load what stage i names, and hold its languages, rules and kinds against that. */
int rule_devices_open(config_pipeline *p, unsigned i, const char *where, shoal_err *err);
void rule_devices_close(config_stage *s);

/* What a text names, as a match stage of this kind reads it (rule_match.c). SHOAL_ENOMEM, or 0. */
int rule_devices_find(const stage_run *s, const char *text, matching *ret);

#endif
