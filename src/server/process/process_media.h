/* process_media.h: what a request brings beside its text: sound, a picture, a table. Inside process_*.c. */
#ifndef PROCESS_PROCESS_MEDIA_H
#define PROCESS_PROCESS_MEDIA_H

#include "process/process.h"

/* Each 0, or the HTTP status in *e; `in` is the caller's to give back in any case. */

/* The fields of a request into `in`, whose memory is there already: all of a JSON body, or the texts of a
 * form (process_parse.c). */
int process_read_fields(const json_t *body, const gateway_config *config, process_input *in, api_error *e);
/* "audio" and "image" in base64, "csv" as it is. */
int process_read_media(const json_t *body, process_input *in, api_error *e);
/* Are these files ones that the pipeline reads, of sizes that it takes, and has it what it cannot do without?
 */
int process_check_media(const process_input *in, api_error *e);

#endif
