/* pipeline_tools.h: the functions that a generate stage offers, and what they are for one request. Pure.
 *
 *     tools:
 *       - name: light.turn_on
 *         parameters: {type: object, properties: {target: {enum_of: "light.*"}}, required: [target]}
 *
 * becomes, for a request with these devices, OpenAI's array
 *
 *     [{"type": "function",
 *       "function": {"name": "light.turn_on", "strict": true,
 *                    "parameters": {"type": "object",
 *                                   "properties": {"target": {"enum": ["light.kitchen", "light.hall"]}},
 *                                   "required": ["target"]}}}]
 *
 * and a tool whose arguments cannot be written, because no device is of its kind, is not in it. */
#ifndef PIPELINE_PIPELINE_TOOLS_H
#define PIPELINE_PIPELINE_TOOLS_H

#include <jansson.h>

#include "pipeline/pipeline.h"

/* Sentences begin with `path` and the field: "pipelines[0].stages[1].tools[0].parameters: ...". */
int pipeline_check_tools(const config_stage *st, const char *path, shoal_err *err);

/* *ret: the array of the tools that can be called with these devices, the caller's (json_decref). Fails only
 * with SHOAL_ENOMEM. */
int pipeline_offer_tools(json_t **ret, const config_stage *st, const config_device *devices, size_t n_devices,
                         shoal_err *err);

/* The same of all tools, with "?" where a device would be: for whoever looks at the schemas. */
int pipeline_all_tools(json_t **ret, const config_stage *st, shoal_err *err);

/* The tool that has to be called; NULL: none in particular. */
const char *pipeline_named_tool(const config_stage *st);

#endif
