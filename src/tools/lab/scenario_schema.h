/* scenario_schema.h: a scenario as a table, read by the same reader as shoal.yaml. Inside scenario*.c. */
#ifndef LAB_SCENARIO_SCHEMA_H
#define LAB_SCENARIO_SCHEMA_H

#include "config/config_schema.h"
#include "lab/scenario.h"

extern const config_record scenario_schema; /* the whole file; fills a lab_scenario */

#endif
