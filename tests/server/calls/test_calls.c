/* Orders, terms, and what follows from the table of tasks. */
#include "script.h"

/* Every task is a method of the protocol, with the types and the direction that it has there. */
static void tasks_are_methods_of_the_protocol(void **state)
{
    for (int i = 0; i < CALL_N_TASKS; i++) {
        const call_task_info *t = &CALL_TASKS[i];
        const char *name = strrchr(t->path, '/') + 1;
        const ProtobufCMethodDescriptor *m =
            protobuf_c_service_descriptor_get_method_by_name(&shoal__v1__worker__descriptor, name);
        if (!m) fail_msg("%s is no method", t->path);
        assert_ptr_equal(m->input, t->request);
        assert_ptr_equal(m->output, t->reply);
        assert_memory_equal(t->path + 1, shoal__v1__worker__descriptor.name, (size_t)(name - t->path - 2));
        bool is_event = strstr(t->reply->short_name, "Event") != NULL;
        assert_int_equal(t->streams, is_event);
    }
}

static void an_order_is_a_copy(void **state)
{
    char model[] = "m", id[] = "r1";
    Shoal__V1__GenerateRequest req = SHOAL__V1__GENERATE_REQUEST__INIT;
    req.text = "hello";
    call_context ctx = {.request_id = id, .traceparent = "00-1", .deadline_ns = 7, .why = "endpoint"};
    call_order *o = call_order_new(CALL_GENERATE, model, &req.base, &ctx);
    model[0] = id[0] = 'x';
    assert_string_equal(o->model, "m");
    assert_string_equal(o->request_id, "r1");
    assert_string_equal(o->traceparent, "00-1");
    assert_string_equal(o->why, "endpoint");
    assert_int_equal(o->deadline_ns, 7);
    Shoal__V1__GenerateRequest *back = (void *)call_order_request(o);
    assert_string_equal(back->text, "hello");
    protobuf_c_message_free_unpacked(&back->base, NULL);
    call_order_unref(call_order_ref(o));
    assert_int_equal(o->refs, 1);
    call_order_unref(o);
    o = call_order_new(CALL_GENERATE, "m", &req.base, NULL);
    assert_string_equal(o->request_id, "");
    call_order_unref(o);
}

static void more_fields_follow_a_request(void **state)
{
    int32_t first[] = {1, 2, 3}, then[] = {4};
    Shoal__V1__GenerateRequest req = SHOAL__V1__GENERATE_REQUEST__INIT, more = req, again = req;
    req.messages_json = "[1]";
    req.max_tokens = 0;
    req.ignore_eos = true;
    more.max_tokens = 90;
    more.resume_ids = first;
    more.n_resume_ids = 3;
    more.resume_prob_sum = 1.5;
    again.resume_ids = then;
    again.n_resume_ids = 1;
    again.resume_prob_sum = 2.5;
    call_context ctx = {.request_id = "r1", .deadline_ns = 7};
    call_order *o = call_order_new(CALL_GENERATE, "m", &req.base, &ctx);
    call_order *two = call_order_more(o, &more.base, 11), *three = call_order_more(two, &again.base, 12);
    Shoal__V1__GenerateRequest *back = (void *)call_order_request(three);
    assert_string_equal(back->messages_json, "[1]");
    assert_int_equal(back->max_tokens, 90);
    assert_true(back->ignore_eos);
    assert_int_equal(back->n_resume_ids, 4);
    assert_int_equal(back->resume_ids[3], 4);
    assert_true(back->resume_prob_sum == 2.5);
    assert_true(!o->resumes && two->resumes && three->resumes);
    assert_int_equal(three->n_resumed, 12);
    assert_string_equal(three->request_id, "r1");
    assert_int_equal(three->deadline_ns, 7);
    protobuf_c_message_free_unpacked(&back->base, NULL);
    call_order_unref(o);
    call_order_unref(two);
    call_order_unref(three);
}

static void terms_avoid_the_latest_lives(void **state)
{
    call_terms t = {0};
    call_terms_avoid(&t, 0);
    assert_int_equal(t.n_avoid, 0);
    for (uint64_t life = 1; life <= 20; life++) {
        call_terms_avoid(&t, life);
        call_terms_avoid(&t, life);
    }
    assert_int_equal(t.n_avoid, CALL_AVOID_MAX);
    assert_true(call_terms_avoids(&t, 20) && call_terms_avoids(&t, 21 - CALL_AVOID_MAX));
    assert_false(call_terms_avoids(&t, 20 - CALL_AVOID_MAX));
}

static void nothing_happens_to_no_call(void **state)
{
    calls_cancel(NULL);
    calls_pause(NULL, true);
    calls_free(NULL);
    call_order_unref(NULL);
    assert_int_equal(calls_where(NULL).life, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tasks_are_methods_of_the_protocol), cmocka_unit_test(an_order_is_a_copy),
        cmocka_unit_test(more_fields_follow_a_request),      cmocka_unit_test(terms_avoid_the_latest_lives),
        cmocka_unit_test(nothing_happens_to_no_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
