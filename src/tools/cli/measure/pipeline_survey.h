/* pipeline_survey.h: a configuration's pipelines looked over without a server: what its models' files say,
 * what may never run, and everything that is wrong.
 *
 *     pipeline_survey s;
 *     int rc = pipeline_survey_open(&s, "shoal.yaml", NULL, &err);    // fails if it cannot be read at all
 *     ... json_array_size(s.problems), s.reaches[0].stages[2].runs ...
 *     pipeline_survey_done(&s);
 *
 * Starts a process that reads the models, so call it before there are threads. */
#ifndef CLI_MEASURE_PIPELINE_SURVEY_H
#define CLI_MEASURE_PIPELINE_SURVEY_H

#include "json/json.h"
#include "config/config.h"
#include "pipeline/pipeline_reach.h"

typedef struct pipeline_survey {
    gateway_config *config;
    const char *only;     /* the pipeline that is looked at; NULL: all */
    json_t *problems;     /* sentences, with file and line */
    const char ***labels; /* [n_models]: a NULL-ended list of those that the model gives; NULL: not known */
    json_t *models;       /* owns them */
    pipeline_reach *reaches; /* [n_pipelines] */
} pipeline_survey;

/* The pipeline's name must be one of the file's, or NULL. In any case give *ret to pipeline_survey_done. */
int pipeline_survey_open(pipeline_survey *ret, const char *path, const char *only, shoal_err *err);
void pipeline_survey_done(pipeline_survey *s);

/* Is this one of the pipelines that are looked at? */
bool pipeline_survey_takes(const pipeline_survey *s, size_t pipeline);
/* The stage that keeps answers from being cached; NULL: they are deterministic. */
const config_stage *pipeline_survey_fickle(const config_pipeline *p);

/* Appended: the table for people, resp. {"ok", "problems", "pipelines"}. */
void pipeline_report_table(const pipeline_survey *s, buf *out);
void pipeline_report_json(const pipeline_survey *s, buf *out);

#endif
