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
    call_context ctx = {
        .request_id = id, .request = 5, .traceparent = "00-1", .deadline_ns = 7, .why = "endpoint"};
    call_order *o = call_order_new(CALL_GENERATE, model, &req.base, &ctx);
    assert_int_equal(o->request, 5);
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

/* Whoever makes further calls for a request loses nothing that names it or says how urgent it is. */
static void a_request_s_context_goes_wherever_calls_are_made_for_it(void **state)
{
    Shoal__V1__GenerateRequest req = SHOAL__V1__GENERATE_REQUEST__INIT;
    const char *stand_ins[] = {"s"};
    char id[] = "r1", trace[] = "00-1";
    call_context ctx = {.request_id = id,
                        .request = 5,
                        .traceparent = trace,
                        .deadline_ns = 7,
                        .why = "endpoint",
                        .order = ROUTER_BY_HASH,
                        .key = 3,
                        .pages = 4,
                        .latency = SHOAL__V1__LATENCY__BATCH,
                        .stand_ins = stand_ins,
                        .n_stand_ins = 1};
    arena *mem = arena_new(0);
    call_context kept;
    assert_true(call_context_keep(&kept, &ctx, "stage", mem));
    call_order *o = call_order_new(CALL_GENERATE, "m", &req.base, &ctx);
    call_order *other = call_order_for(o, "n");
    call_context all[] = {call_context_named(&ctx, "w"), kept, call_context_beside(o, NULL),
                          call_context_beside(other, "w")};
    id[0] = trace[0] = 'x';
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        assert_int_equal(all[i].request, 5);
        assert_string_equal(all[i].request_id, i ? "r1" : "x1");
        assert_string_equal(all[i].traceparent, i ? "00-1" : "x0-1");
        assert_int_equal(all[i].deadline_ns, 7);
        assert_int_equal(all[i].latency, SHOAL__V1__LATENCY__BATCH);
        assert_int_equal(all[i].key, i ? 3 : 0);
        assert_int_equal(all[i].n_stand_ins, 0);
        assert_int_equal(all[i].pages, 0);
    }
    assert_string_equal(kept.why, "stage");
    assert_string_equal(all[2].why, "endpoint");
    call_order_unref(o);
    call_order_unref(other);
    arena_free(mem);
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
        cmocka_unit_test(tasks_are_methods_of_the_protocol),
        cmocka_unit_test(an_order_is_a_copy),
        cmocka_unit_test(a_request_s_context_goes_wherever_calls_are_made_for_it),
        cmocka_unit_test(more_fields_follow_a_request),
        cmocka_unit_test(terms_avoid_the_latest_lives),
        cmocka_unit_test(nothing_happens_to_no_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
