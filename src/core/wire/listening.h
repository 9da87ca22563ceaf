/* listening.h: a clock that runs only while this thread's event loop could hear its peers.
 *
 * A peer's silence is no evidence while the loop did not read: because the machine gave it no core, because
 * it was stopped, or because one of its callbacks took long. listening_ns() advances with the monotonic clock
 * but for that time. Measure a peer's silence, or what it owes, by this clock alone:
 *
 *     l->heard_ns = listening_ns();                              // something came
 *     if (listening_ns() - l->heard_ns > SILENCE_NS) give_up(l); // it could have been heard for so long
 *
 * Never use it for what must end by real time whether or not anybody listens: the validity of a certificate,
 * of a lease that this process holds, or a client's deadline.
 *
 * Counted are the time between going to wait and being woken, at most LISTENING_SLACK_MS beyond the time to
 * be woken, and as much of each round of callbacks. One loop a thread. */
#ifndef WIRE_LISTENING_H
#define WIRE_LISTENING_H

#include <stdint.h>
#include <uv.h>

enum { LISTENING_SLACK_MS = 20 };

/* From now on the clock of this thread follows the loop. Without it listening_ns() is the monotonic clock.
 * Its handles keep the loop alive no longer than others do. */
void listening_open(uv_loop_t *loop);
/* Before uv_loop_close, which succeeds after one more turn of the loop; does nothing when it is not open. */
void listening_close(void);

uint64_t listening_ns(void);

#endif
