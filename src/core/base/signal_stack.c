/* signal_stack.c: see signal_stack.h. */
#define _GNU_SOURCE /* MAP_STACK, sigaltstack */
#include "base/signal_stack.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>

static bool wanted; /* of the process, as its handlers are */
static pthread_key_t key;
static _Thread_local bool tried;

static void close_stack(void *at)
{
    const stack_t none = {.ss_flags = SS_DISABLE};
    sigaltstack(&none, NULL);
    munmap(at, SIGNAL_STACK_BYTES);
}

void signal_stacks_on(void)
{
    wanted = wanted || pthread_key_create(&key, close_stack) == 0;
}

void signal_stack_open(void)
{
    if (!wanted || tried) return;
    tried = true;
    void *at = mmap(NULL, SIGNAL_STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK,
                    -1, 0);
    if (at == MAP_FAILED) return;
    const stack_t stack = {.ss_sp = at, .ss_size = SIGNAL_STACK_BYTES};
    if (sigaltstack(&stack, NULL) != 0 || pthread_setspecific(key, at) != 0) close_stack(at);
}
