/* chat_impl.h: what the parts of chat templates share. */
#ifndef TEXT_CHAT_IMPL_H
#define TEXT_CHAT_IMPL_H

#include "text/chat.h"

/* *ret is the syntax of calls that t's models were shown. 0 or SHOAL_ENOMEM. */
int chat_calls_find(const chat_template *t, const toolcall_syntax **ret, calls_source *ret_source);

#endif
