/* rule_answer.h: answers about devices, held against what is there and what was asked (ensemble/verify.h). */
#ifndef RULES_RULE_ANSWER_H
#define RULES_RULE_ANSWER_H

#include "ensemble/verify.h"

/* Its lexicon is one of nlu/lexicon.h. */
extern const device_checker rule_answer_devices;

#endif
