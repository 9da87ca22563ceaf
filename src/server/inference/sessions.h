/* sessions.h: chat with a session, as OpenAI and Anthropic have it, OpenAI's Responses API, and what is kept of them.
 *
 * "session": NAME in a chat request, or the header x-shoal-session: the messages of that session come before
 * the request's (behind its leading messages of the system, which are not kept), and the request's messages
 * and the answer are appended when the answer is whole. Loop thread. */
#ifndef INFERENCE_SESSIONS_H
#define INFERENCE_SESSIONS_H

#include "inference/conversation.h"

void sessions_chat(gateway_request *rq);           /* POST /v1/chat/completions */
void sessions_messages(gateway_request *rq);       /* POST /v1/messages */
void sessions_get(gateway_request *rq);            /* GET /v1/sessions/NAME */
void sessions_delete(gateway_request *rq);         /* DELETE */
void sessions_respond(gateway_request *rq);        /* POST /v1/responses */
void sessions_response(gateway_request *rq);       /* GET /v1/responses/ID */
void sessions_count(gateway_request *rq);          /* POST /v1/responses/input_tokens */
void sessions_count_chat(gateway_request *rq);     /* POST /v1/chat/completions/input_tokens */
void sessions_count_messages(gateway_request *rq); /* POST /v1/messages/count_tokens */
void sessions_response_input(gateway_request *rq); /* GET /v1/responses/ID/input_items */
void sessions_forget(gateway_request *rq);         /* DELETE */

#endif
