/* openai_sampling.c: how a request wants its tokens drawn, and what holds where it does not say; the ranges and the
 * defaults are json/sampling.h's. */
#include <float.h>
#include <string.h>

#include "base/clock.h"
#include "base/number.h"
#include "json/sampling.h"
#include "messages/fields.h"
#include "dialects/openai_chat.h"

#define BIAS_MAX 1024

static int read_bias(gen_spec *s, api_error *e)
{
    const json_t *map = fields_get(s->root, "logit_bias");
    if (!map) return 0;
    size_t n = json_object_size(map);
    if (!json_is_object(map) || n > BIAS_MAX)
        return api_error_bad(e, "logit_bias", "\"logit_bias\" must be an object of at most %d token ids",
                             BIAS_MAX);
    Shoal__V1__LogitBias *items = arena_alloc(s->mem, (n + 1) * sizeof *items);
    s->sampling.bias = arena_alloc(s->mem, (n + 1) * sizeof *s->sampling.bias);
    if (!items || !s->sampling.bias) return api_error_nomem(e);
    const char *key;
    json_t *v;
    json_object_foreach((json_t *)map, key, v)
    {
        uint64_t id;
        double bias = json_number_value(v);
        if (!number_u64(key, &id) || id > INT32_MAX || !json_is_number(v) || !(bias >= -100 && bias <= 100))
            return api_error_bad(e, "logit_bias",
                                 "\"logit_bias\" maps token ids to numbers between -100 and 100");
        Shoal__V1__LogitBias *b = &items[s->sampling.n_bias];
        *b = (Shoal__V1__LogitBias)SHOAL__V1__LOGIT_BIAS__INIT;
        b->id = (int32_t)id;
        b->bias = (float)bias;
        s->sampling.bias[s->sampling.n_bias++] = b;
    }
    return 0;
}

static int read_seed(gen_spec *s, api_error *e)
{
    int64_t seed = 0;
    int rc = fields_seed(s->root, &seed, e);
    s->has_seed =
        fields_get(s->root, "seed") != NULL && seed != -1; /* -1: any, as llama.cpp's clients say it */
    s->sampling.seed = (uint64_t)seed;
    if (rc == 0 && !s->has_seed) rng_draw(&s->sampling.seed, sizeof s->sampling.seed);
    return rc;
}

/* A number of json/sampling.h's table; -1 is top_k's other word for "off". */
static int read_ranged(const json_t *o, const char *field, float *ret, api_error *e)
{
    shoal_err err;
    float v = *ret;
    int rc = fields_num(o, field, -FLT_MAX, FLT_MAX, &v, e);
    if (rc != 0) return rc;
    bool off = v == -1 && strcmp(field, "top_k") == 0;
    if (!off && sampling_check(field, (double)v, &err) != 0)
        return api_error_bad(e, field, "\"%s\": %s", field, err.message);
    *ret = off ? 0 : v;
    return 0;
}

/* Whose defaults hold, for the endpoints that speak for other servers. */
static int read_defaults(gen_spec *s, api_error *e)
{
    static const struct {
        const char *name;
        const sampling_defaults *are;
    } KNOWN[] = {{"ollama", &SAMPLING_OLLAMA}, {"llama-server", &SAMPLING_LLAMA}};
    const char *name = NULL;
    s->defaults = s->texts ? &SAMPLING_GREEDY : &SAMPLING_LAST;
    int rc = s->texts ? 0 : fields_str(s->root, "sampling_defaults", &name, e);
    if (rc != 0 || !name) return rc;
    for (size_t i = 0; i < sizeof KNOWN / sizeof *KNOWN; i++)
        if (strcmp(name, KNOWN[i].name) == 0) {
            s->defaults = KNOWN[i].are;
            return 0;
        }
    return api_error_bad(e, "sampling_defaults",
                         "\"sampling_defaults\" must be \"ollama\" or \"llama-server\"");
}

/* Beam search takes the likeliest reply, whatever the model's author prefers for others. */
static void search(gen_spec *s)
{
    s->defaults = &SAMPLING_GREEDY;
    openai_spec_settle(s, NULL);
}

/* llama-server's name of the repetition penalty, where ours is not there. */
static int take_llama_penalty(gen_spec *s, api_error *e)
{
    const json_t *v = fields_get(s->root, "repeat_penalty");
    if (!v || fields_get(s->root, "repetition_penalty")) return 0;
    if (!json_is_number(v)) return api_error_bad(e, "repeat_penalty", "\"repeat_penalty\" must be a number");
    return json_object_set(s->root, "repetition_penalty", (json_t *)v) == 0 ? 0 : api_error_nomem(e);
}

int openai_read_sampling(gen_spec *s, api_error *e)
{
    Shoal__V1__Sampling *p = &s->sampling;
    int rc = read_defaults(s, e);
    if (rc != 0) return rc;
    if (!s->texts && (rc = take_llama_penalty(s, e)) != 0) return rc;
#define READ(field, min, max)                                           \
    float field = s->defaults->field;                                   \
    if (!fields_get(s->root, #field)) p->unsaid |= SAMPLING_BIT(field); \
    if (rc == 0) rc = read_ranged(s->root, #field, &field, e);          \
    p->field = field;
    SAMPLING_TABLE(READ)
#undef READ
    sampling_top_p(&p->top_p);
    if (rc == 0) rc = read_seed(s, e);
    if (rc == 0) rc = read_bias(s, e);
    if (s->n_beams > 1) search(s);
    return rc;
}

void openai_spec_settle(gen_spec *s, const Shoal__V1__ModelInfo *model)
{
    static const Shoal__V1__Sampling nothing = {.unsaid = SAMPLING_ALL};
    Shoal__V1__Sampling *p = &s->sampling;
    const Shoal__V1__Sampling *its = model && model->sampling ? model->sampling : &nothing;
    /* Who turns a text into another is not to make one up. */
    if (model && s->defaults == &SAMPLING_LAST && strcmp(model->task, "seq2seq") == 0)
        s->defaults = &SAMPLING_GREEDY;
#define SETTLE(field, min, max)          \
    if (p->unsaid & SAMPLING_BIT(field)) \
        p->field = its->unsaid & SAMPLING_BIT(field) ? s->defaults->field : its->field;
    SAMPLING_TABLE(SETTLE)
#undef SETTLE
    p->unsaid = 0;
    sampling_top_p(&p->top_p);
}
