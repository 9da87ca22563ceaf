/* signal_stack.h: a stack of its own for a thread's signal handlers, so that one whose stack is full can still be reported
 * (os/crash.h).
 *
 *     static void *thread_main(void *arg)
 *     {
 *         signal_stack_open();     // first: in a thread's function, and in what the threads of a pool run
 *
 * A further call in the same thread does nothing. The thread's end frees it. In a program without such handlers, as those that
 * only use the library, there are none. */
#ifndef BASE_SIGNAL_STACK_H
#define BASE_SIGNAL_STACK_H

enum { SIGNAL_STACK_BYTES = 64 << 10 };

/* There is a handler that wants them (SA_ONSTACK). Before there are threads. */
void signal_stacks_on(void);
/* Without memory the thread has none. */
void signal_stack_open(void);

#endif
