/* process_each.h: a stage that runs for each item of a list, or until a list is one text. Inside process*.c.
 *
 * An item is a stage_run of its own, with facts, memory and results of its own, so that every kind of stage
 * does for an item what it does for a request; it lives from its start until it has settled, and at most
 * `parallel` of them do at once. What they came to is kept as JSON, in the order of the list,
 * EACH_VALUES_MAX_BYTES at most.
 *
 * foreach: one round over the items; the stage's value is the list of theirs, its text their texts, a line
 * each. An item that fails fails the stage, or, of an optional one, is null. reduce: the items' texts, as
 * many at once as `most` allows, become one text each, and those again, until one is left, which is the
 * stage's value and text. Each round has fewer texts than the one before, or the stage fails; so does it with
 * any of its parts, since what a part said would be missing.
 *
 * Rules are done at once, in a millisecond or two each: after EACH_BURST of them the loop has its turn. */
#ifndef PROCESS_PROCESS_EACH_H
#define PROCESS_PROCESS_EACH_H

#include "process/stage_run.h"

enum { EACH_VALUES_MAX_BYTES = 4 << 20, EACH_BURST = 4 };

typedef struct stage_each stage_each;

/* Start the stage, which names a list. 0: items are under way, and the stage settles with the last of them,
 * or, with s->each->over, there was nothing to wait for. Else a code and the sentence. */
int process_each_start(stage_run *s, const call_context *ctx, shoal_err *err);
/* An item's call has ended. The run may be dead afterwards. */
void process_each_settle(stage_run *item, const call_result *r);
void process_each_pause(stage_run *s, bool paused);
bool process_each_is_over(const stage_run *s);
/* No item goes on. Accepts NULL, as does free, which does the same first. */
void process_each_cancel(stage_each *e);
void process_each_free(stage_each *e);
/* Items, rounds and failures into the stage's entry of the trace. */
void process_each_trace(const stage_run *s, buf *out);

/* The items that `each` names, as the stage sees them: a JSON array, the caller's. SHOAL_ELIMIT: more than
 * `max`; SHOAL_EINVALID: it is no list; SHOAL_ENOMEM. (process_items.c) */
int process_items(const stage_run *s, const config_each *each, json_t **ret, shoal_err *err);
/* The texts of items, joined to texts of at most `most` bytes; one that is longer is cut into pieces first.
 */
int process_groups(const config_each *each, const json_t *items, json_t **ret, shoal_err *err);

#endif
