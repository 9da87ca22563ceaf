/* home.h: what a program registers with the server for homes (rules.h).
 *
 *     rc = config_load(&config, &HOME_STAGES, "shoal.yaml", &err); */
#ifndef RULES_HOME_H
#define RULES_HOME_H

#include "nlu/ground.h"
#include "nlu/line.h"
#include "pipeline/pipeline.h"

/* The server's kinds of stages, those of rules.h, and the check of answers about devices. */
extern const stage_registry HOME_STAGES;

/* What an opened ground or line stage loaded; NULL: the stage is of another kind. */
const lexicon *rules_lexicon(const config_stage *s);
const line_forms *rules_line_forms(const config_stage *s);

#endif
