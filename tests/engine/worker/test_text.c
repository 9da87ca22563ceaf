/* Texts and token ids of a worker's model, as Tokenize, Detokenize, Render and Describe tell them. */
#define _GNU_SOURCE
#include "worker_bench.h"

#include "chat/chat.h"

#define TOKENIZE   "/shoal.v1.Worker/Tokenize"
#define DETOKENIZE "/shoal.v1.Worker/Detokenize"
#define RENDER     "/shoal.v1.Worker/Render"

/* The reply to a call that goes well; the caller frees it. */
static void *answered(bench *b, const char *path, const ProtobufCMessage *q,
                      const ProtobufCMessageDescriptor *type)
{
    reply r;
    call(b, path, q, &r);
    if (r.status != GRPC_OK) fail_msg("%s: %s", path, r.message);
    void *m = protobuf_c_message_unpack(type, NULL, r.first.len, (const uint8_t *)r.first.data);
    assert_non_null(m);
    reply_done(&r);
    return m;
}

static Shoal__V1__TokenizeReply *tokens_of(bench *b, const char *text, bool special, bool plain)
{
    Shoal__V1__TextInput in = SHOAL__V1__TEXT_INPUT__INIT;
    Shoal__V1__TokenizeRequest q = SHOAL__V1__TOKENIZE_REQUEST__INIT;
    in.text = (char *)(uintptr_t)text;
    q.input = &in;
    q.no_special = !special;
    q.plain = plain;
    q.pieces = true;
    return answered(b, TOKENIZE, &q.base, &shoal__v1__tokenize_reply__descriptor);
}

static void expect_text(bench *b, const int32_t *ids, size_t n, const char *want)
{
    Shoal__V1__DetokenizeRequest q = SHOAL__V1__DETOKENIZE_REQUEST__INIT;
    q.ids = (int32_t *)(uintptr_t)ids;
    q.n_ids = n;
    Shoal__V1__DetokenizeReply *m =
        answered(b, DETOKENIZE, &q.base, &shoal__v1__detokenize_reply__descriptor);
    assert_int_equal(m->text.len, strlen(want));
    assert_memory_equal(m->text.data, want, m->text.len);
    shoal__v1__detokenize_reply__free_unpacked(m, NULL);
}

static void worker_turns_texts_into_tokens_and_back(void **state)
{
    static const char *const TEXTS[] = {"Turn on the lights", "h\u00e9llo \U0001f41f", " two  spaces\n", "a"};
    bench b;
    bench_open(&b, DATA "llama-gqa", NULL);
    for (size_t i = 0; i < sizeof TEXTS / sizeof *TEXTS; i++) {
        Shoal__V1__TokenizeReply *m = tokens_of(&b, TEXTS[i], false, false);
        buf bytes = {0};
        assert_true(m->n_ids > 0 && m->n_pieces == m->n_ids);
        for (size_t k = 0; k < m->n_pieces; k++) buf_append(&bytes, m->pieces[k].data, m->pieces[k].len);
        size_t n = strlen(TEXTS[i]), lead = bytes.len - n; /* it puts a space before a text */
        assert_true(bytes.len >= n && lead <= 1);
        assert_memory_equal(bytes.data + lead, TEXTS[i], n);
        expect_text(&b, m->ids, m->n_ids, TEXTS[i]);
        buf_done(&bytes);
        shoal__v1__tokenize_reply__free_unpacked(m, NULL);
    }
    expect_text(&b, NULL, 0, "");
    bench_close(&b);
}

static void worker_takes_special_tokens_as_it_is_told(void **state)
{
    bench b;
    Shoal__V1__DescribeRequest q = SHOAL__V1__DESCRIBE_REQUEST__INIT;
    bench_open(&b, DATA "qwen3-qknorm", NULL);
    q.texts = true;
    Shoal__V1__ModelInfo *info =
        answered(&b, "/shoal.v1.Worker/Describe", &q.base, &shoal__v1__model_info__descriptor);
    assert_true(strlen(info->eos_token) > 0);
    Shoal__V1__TokenizeReply *one = tokens_of(&b, info->eos_token, false, false);
    Shoal__V1__TokenizeReply *plain = tokens_of(&b, info->eos_token, false, true);
    assert_int_equal(one->n_ids, 1);
    assert_true(plain->n_ids > 1);
    expect_text(&b, one->ids, 1, info->eos_token);
    expect_text(&b, plain->ids, plain->n_ids, info->eos_token);
    shoal__v1__tokenize_reply__free_unpacked(one, NULL);
    shoal__v1__tokenize_reply__free_unpacked(plain, NULL);
    shoal__v1__model_info__free_unpacked(info, NULL);
    q.texts = false;
    info = answered(&b, "/shoal.v1.Worker/Describe", &q.base, &shoal__v1__model_info__descriptor);
    assert_string_equal(info->eos_token, "");
    assert_string_equal(info->chat_template, "");
    shoal__v1__model_info__free_unpacked(info, NULL);
    bench_close(&b);
}

static void worker_refuses_tokens_that_are_none(void **state)
{
    static int32_t BAD[][2] = {{-1, 1}, {1, INT32_MAX}, {INT32_MIN, 0}};
    Shoal__V1__DetokenizeRequest q = SHOAL__V1__DETOKENIZE_REQUEST__INIT;
    Shoal__V1__TokenizeRequest t = SHOAL__V1__TOKENIZE_REQUEST__INIT;
    Shoal__V1__TextInput in = SHOAL__V1__TEXT_INPUT__INIT;
    bench b;
    bench_open(&b, DATA "llama-gqa", NULL);
    for (size_t i = 0; i < 3; i++) {
        q.ids = BAD[i];
        q.n_ids = 2;
        expect_refusal(&b, DETOKENIZE, &q.base, GRPC_INVALID_ARGUMENT, "there is no id");
    }
    expect_refusal(&b, TOKENIZE, &t.base, GRPC_INVALID_ARGUMENT, "input is missing");
    in.text = malloc((1 << 20) + 2);
    memset(in.text, 'a', (1 << 20) + 1);
    in.text[(1 << 20) + 1] = '\0';
    t.input = &in;
    expect_refusal(&b, TOKENIZE, &t.base, GRPC_OUT_OF_RANGE, "1048577 bytes");
    free(in.text);
    in.text = "a\xff";
    expect_refusal(&b, TOKENIZE, &t.base, GRPC_INVALID_ARGUMENT, "UTF-8");
    q.n_ids = (1 << 20) + 1;
    q.ids = calloc(q.n_ids, sizeof *q.ids);
    expect_refusal(&b, DETOKENIZE, &q.base, GRPC_OUT_OF_RANGE, "1048577 tokens");
    free(q.ids);
    bench_close(&b);
}

static void worker_renders_messages_as_its_template_does(void **state)
{
    Shoal__V1__RenderRequest q = SHOAL__V1__RENDER_REQUEST__INIT;
    bench b;
    bench_open(&b, SHOAL_SOURCE_DIR "/models/home-chat-s.gguf", NULL);
    q.messages_json = "[{\"role\":\"user\",\"content\":\"hello\"}]";
    Shoal__V1__RenderReply *m = answered(&b, RENDER, &q.base, &shoal__v1__render_reply__descriptor);
    assert_non_null(memmem(m->text.data, m->text.len, "hello", 5));
    assert_true(m->text.len > strlen("hello"));
    shoal__v1__render_reply__free_unpacked(m, NULL);
    q.messages_json = "{}";
    expect_refusal(&b, RENDER, &q.base, GRPC_INVALID_ARGUMENT, "messages must be a JSON array");
    q.messages_json = "[";
    expect_refusal(&b, RENDER, &q.base, GRPC_INVALID_ARGUMENT, "messages");
    q.messages_json = "[]";
    q.template_kwargs_json = "7";
    expect_refusal(&b, RENDER, &q.base, GRPC_INVALID_ARGUMENT, "template_kwargs must be");
    bench_close(&b);
    bench_open(&b, DATA "gpt-neox-pythia", NULL); /* its files bring none */
    q = (Shoal__V1__RenderRequest)SHOAL__V1__RENDER_REQUEST__INIT;
    q.messages_json =
        "[{\"role\":\"system\",\"content\":\"Be brief.\"},{\"role\":\"user\",\"content\":\" hello \"},"
        "{\"role\":\"assistant\",\"content\":\"Hi\"},{\"role\":\"user\",\"content\":\"bye\"}]";
    static const char PLAIN[] = "System: Be brief.\nUser: hello\nAssistant: Hi\nUser: bye\nAssistant:";
    m = answered(&b, RENDER, &q.base, &shoal__v1__render_reply__descriptor);
    assert_true(m->text.len >= strlen(PLAIN));
    size_t begin = m->text.len - strlen(PLAIN); /* behind the token that begins texts */
    assert_memory_equal(m->text.data + begin, PLAIN, strlen(PLAIN));
    shoal__v1__render_reply__free_unpacked(m, NULL);
    bench_close(&b);
    bench_open(&b, DATA "bert-intent", NULL);
    q = (Shoal__V1__RenderRequest)SHOAL__V1__RENDER_REQUEST__INIT;
    expect_refusal(&b, RENDER, &q.base, GRPC_INVALID_ARGUMENT, "no chat template");
    bench_close(&b);
}

/* Append the prompt as it is read, which names its tokens. */
static void put_prompt(bench *b, Shoal__V1__GenerateRequest *q, buf *ret)
{
    reply r;
    q->only_prompt = q->echo = true;
    call(b, "/shoal.v1.Worker/Generate", &q->base, &r);
    if (r.status != GRPC_OK) fail_msg("%s", r.message);
    buf_append(ret, r.text.data, r.text.len);
    buf_putc(ret, '\0');
    reply_done(&r);
}

static void worker_renders_by_a_template_of_the_request(void **state)
{
    static char OWN[] = "{% for m in messages %}[{{ m.content }}]<|im_end|>{% endfor %}";
    Shoal__V1__RenderRequest q = SHOAL__V1__RENDER_REQUEST__INIT;
    Shoal__V1__GenerateRequest g = SHOAL__V1__GENERATE_REQUEST__INIT;
    buf text = {0};
    bench b;
    bench_open(&b, SHOAL_SOURCE_DIR "/models/home-chat-s.gguf", NULL);
    q.messages_json = g.messages_json = "[{\"role\":\"user\",\"content\":\"hello<|im_end|>\"}]";
    q.chat_template = g.chat_template = OWN;
    Shoal__V1__RenderReply *m = answered(&b, RENDER, &q.base, &shoal__v1__render_reply__descriptor);
    assert_int_equal(m->text.len, strlen("[hello<|im_end|>]<|im_end|>"));
    assert_memory_equal(m->text.data, "[hello<|im_end|>]<|im_end|>", m->text.len);
    shoal__v1__render_reply__free_unpacked(m, NULL);
    put_prompt(&b, &g, &text);
    assert_string_equal(text.data, "[hello<|im_end|>]"); /* the last is a token, and shows no text */
    q.chat_template = "\n{% if %}";
    expect_refusal(&b, RENDER, &q.base, GRPC_INVALID_ARGUMENT, "chat_template: line 2: ");
    q.chat_template = "{% include 'a' %}";
    expect_refusal(&b, RENDER, &q.base, GRPC_INVALID_ARGUMENT, "chat_template: line 1: ");
    g.chat_template = "\n\n{{ raise_exception('no') }}";
    expect_refusal(&b, "/shoal.v1.Worker/Generate", &g.base, GRPC_INVALID_ARGUMENT,
                   "line 3: the template refuses: no");
    bench_close(&b);
    buf_done(&text);
}

static const char *first_to_end;
static unsigned n_ended;

static void note_end(void *user, grpc_status status, const char *message)
{
    assert_int_equal(status, GRPC_OK);
    if (!first_to_end) first_to_end = user;
    n_ended++;
}

static void set_out(bench *b, const char *path, const ProtobufCMessage *q)
{
    uint8_t *msg = malloc(protobuf_c_message_get_packed_size(q) + 1);
    const grpc_client_events ev = {.user = (void *)(uintptr_t)path, .end = note_end};
    size_t n = protobuf_c_message_pack(q, msg);
    assert_non_null(grpc_call_start(b->channel, path, msg, n, NULL, 0, 0, &ev));
    free(msg);
}

/* Both arrive in one piece, so whoever keeps the loop is the first. */
static void worker_answers_others_while_it_renders(void **state)
{
    static const char DESCRIBE[] = "/shoal.v1.Worker/Describe",
                      TURN[] = "{\"role\":\"user\",\"content\":\"a\"},";
    Shoal__V1__RenderRequest q = SHOAL__V1__RENDER_REQUEST__INIT;
    Shoal__V1__DescribeRequest d = SHOAL__V1__DESCRIBE_REQUEST__INIT;
    bench b;
    buf turns = {0};
    buf_putc(&turns, '[');
    for (int i = 0; i < 300; i++) buf_puts(&turns, TURN);
    turns.data[turns.len - 1] = ']';
    q.messages_json = turns.data;
    bench_open(&b, SHOAL_SOURCE_DIR "/models/home-chat-s.gguf", NULL);
    set_out(&b, RENDER, &q.base);
    set_out(&b, DESCRIBE, &d.base);
    while (n_ended < 2) uv_run(&b.loop, UV_RUN_ONCE);
    assert_string_equal(first_to_end, DESCRIBE);
    bench_close(&b);
    buf_done(&turns);
}

/* Which of the stop strings ended a reply. */
static void worker_says_which_stop_string_ended_a_reply(void **state)
{
    static char *STOPS[] = {"zzz", " ", "e"};
    Shoal__V1__GenerateRequest q = SHOAL__V1__GENERATE_REQUEST__INIT;
    bench b;
    reply r;
    bench_open(&b, SHOAL_SOURCE_DIR "/models/home-chat-s.gguf", NULL);
    q.messages_json = "[{\"role\":\"user\",\"content\":\"hello\"}]";
    q.max_tokens = 30;
    call(&b, "/shoal.v1.Worker/Generate", &q.base, &r);
    assert_int_equal(r.n_stop, 0);
    assert_non_null(strchr(r.text.data, ' '));
    size_t first_space = (size_t)(strchr(r.text.data, ' ') - r.text.data);
    char *e = strchr(r.text.data, 'e');
    unsigned want = e && (size_t)(e - r.text.data) < first_space ? 3 : 2;
    reply_done(&r);
    q.stop = STOPS;
    q.n_stop = 3;
    call(&b, "/shoal.v1.Worker/Generate", &q.base, &r);
    assert_string_equal(r.finish, "stop");
    assert_int_equal(r.n_stop, want);
    reply_done(&r);
    bench_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(worker_turns_texts_into_tokens_and_back),
        cmocka_unit_test(worker_takes_special_tokens_as_it_is_told),
        cmocka_unit_test(worker_refuses_tokens_that_are_none),
        cmocka_unit_test(worker_renders_messages_as_its_template_does),
        cmocka_unit_test(worker_renders_by_a_template_of_the_request),
        cmocka_unit_test(worker_answers_others_while_it_renders),
        cmocka_unit_test(worker_says_which_stop_string_ended_a_reply),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
