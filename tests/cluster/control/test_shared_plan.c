/* A gateway that follows, then leads, with a shared plan that is an array: what was planned stays, whoever
 * leads.
 */
#include "control_world.h"

typedef struct played {
    bool leads;
    const char *leader;
    int n_posts, n_here;
    char node[64];
    uint8_t plan[512];
    size_t n_plan, n_specs;
    worker_spec specs[4];
    char next[4][32]; /* specs[].stages[0], which are borrowed; "": none */
} played;

static bool played_leads(void *user)
{
    return ((played *)user)->leads;
}

static const char *played_leader(void *user)
{
    return ((played *)user)->leader;
}

static void played_post(void *user, const char *node, const uint8_t *plan, size_t n)
{
    played *s = user;
    s->n_posts++;
    snprintf(s->node, sizeof s->node, "%s", node);
    assert_true(n <= sizeof s->plan);
    memcpy(s->plan, plan, n);
    s->n_plan = n;
}

static void played_here(void *user, const worker_spec *workers, size_t n)
{
    played *s = user;
    s->n_here++;
    s->n_specs = n;
    assert_true(n <= 4);
    memcpy(s->specs, workers, n * sizeof *workers);
    for (size_t i = 0; i < n; i++)
        snprintf(s->next[i], sizeof s->next[i], "%s", workers[i].stages[0] ? workers[i].stages[0] : "");
}

static const char *path_of_model(void)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/m.gguf", place);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs("weights", f);
    fclose(f);
    return path;
}

/* Two replicas of "one". */
static size_t make_plan(uint8_t out[512], bool drains)
{
    static char one[] = "one";
    Shoal__V1__Assignment a = SHOAL__V1__ASSIGNMENT__INIT, *list[] = {&a};
    Shoal__V1__Assignments all = SHOAL__V1__ASSIGNMENTS__INIT;
    Shoal__V1__Plan plan = SHOAL__V1__PLAN__INIT;
    a.model = one;
    a.replicas = 2;
    all.models = list;
    all.n_models = 1;
    plan.assignments = &all;
    plan.drains = drains;
    return shoal__v1__plan__pack(&plan, out);
}

static void start(played *s, const control_model *models, size_t n, control_shared_plan *shared_plan)
{
    static worker_spec alone[4];
    shoal_err err;
    for (size_t i = 0; i < n; i++) alone[i] = models[i].spec;
    *shared_plan =
        (control_shared_plan){.user = s, .leads = played_leads, .leader = played_leader, .post = played_post};
    const control_place_options o = {.models = models,
                                     .n_models = n,
                                     .alone = alone,
                                     .n_alone = n,
                                     .here = played_here,
                                     .user = s,
                                     .shared_plan = shared_plan};
    if (control_place(w.control, &o, &err) != 0) fail_msg("%s", err.message);
}

static void what_was_planned_stays_when_another_leads(void **state)
{
    const char *path = path_of_model();
    const control_model models[] = {
        {{.name = "one", .n_replicas = 2}, {.model = "one", .path = path, .n_replicas = 2}}};
    played s = {.leader = "other"};
    control_shared_plan shared_plan;
    uint8_t plan[512];
    shoal_err err;
    start(&s, models, 1, &shared_plan);
    assert_int_equal(strlen(control_group(w.control)), 16);
    control_plan_read(w.control, "boss", plan, make_plan(plan, false));
    control_plans_synced(w.control);
    TURN_UNTIL(s.n_here > 0);
    assert_int_equal(s.n_specs, 1);
    assert_int_equal(s.specs[0].n_replicas, 2);
    assert_int_equal(s.specs[0].n_standby, 0);
    assert_string_equal(s.specs[0].path, path);
    assert_int_equal(control_node_command(w.control, "boss", OPERATOR_DRAIN, &err), SHOAL_EINVALID);
    assert_true(says(&err, "the gateway other places models now"));
    s.leader = NULL;
    assert_int_equal(control_node_command(w.control, "boss", OPERATOR_DRAIN, &err), SHOAL_EFULL);

    s.leads = true;
    TURN_UNTIL(control_node_command(w.control, "boss", OPERATOR_DRAIN, &err) == 0);
    assert_int_equal(s.n_posts, 0); /* that it leads now is no news for anybody */
    TURN_UNTIL(s.n_posts > 0);
    assert_string_equal(s.node, "boss");
    Shoal__V1__Plan *posted = shoal__v1__plan__unpack(NULL, s.n_plan, s.plan);
    assert_true(posted->drains);
    assert_int_equal(posted->assignments->n_models, 1); /* it has nowhere to go */
    assert_int_equal(posted->assignments->models[0]->replicas, 2);
    shoal__v1__plan__free_unpacked(posted, NULL);

    s.leads = false; /* and the one that leads next says that it shall not drain */
    int n = s.n_here;
    TURN_UNTIL(s.n_here > n + 1);
    control_plan_read(w.control, "boss", plan, make_plan(plan, false));
    assert_false(control_node_drains(w.control, "boss"));
}

/* ---- a model whose layers are dealt out ------------------------------------------------------------- */

static control_model cut_model(const char *path)
{
    return (control_model){{.name = "one",
                            .n_replicas = 1,
                            .shards = {.n = 2},
                            .shape = {.n_layer = 8, .n_embd = 4, .layer_bytes = 16, .layer_multiplies = 16}},
                           {.model = "one", .path = path, .n_replicas = 1}};
}

typedef struct stages { /* of one machine's plan */
    Shoal__V1__Assignment all[4], *list[4];
    char *next[1];
    size_t n;
} stages;

static void add_stage(stages *s, uint32_t first, uint32_t end)
{
    static char one[] = "one", later[] = "one@3:8/0";
    Shoal__V1__Assignment *a = s->list[s->n] = &s->all[s->n];
    s->n++;
    shoal__v1__assignment__init(a);
    a->model = one;
    a->replicas = 1;
    a->first_layer = first;
    a->end_layer = end;
    s->next[0] = later;
    a->stages = s->next;
    a->n_stages = first == 0;
}

static size_t pack_stages(stages *s, uint8_t out[512])
{
    Shoal__V1__Assignments all = SHOAL__V1__ASSIGNMENTS__INIT;
    Shoal__V1__Plan plan = SHOAL__V1__PLAN__INIT;
    all.models = s->list;
    all.n_models = s->n;
    plan.assignments = &all;
    return shoal__v1__plan__pack(&plan, out);
}

static void is_stage(const played *x, size_t i, size_t first, size_t end, const char *next)
{
    const worker_spec *s = &x->specs[i];
    assert_string_equal(s->model, "one");
    assert_int_equal(s->n_replicas, 1);
    assert_int_equal(s->first_layer, first);
    assert_int_equal(s->end_layer, end);
    assert_string_equal(x->next[i], next);
    assert_null(s->stages[1]);
}

/* As the other one dealt them, though this one would have made them 4 and 4. A third stage that was on its
 * way in is not of the chain, and left to the next plan. */
static void stages_stay_where_they_are_when_another_leads(void **state)
{
    const control_model models[] = {cut_model(path_of_model())};
    played s = {.leader = "other"};
    control_shared_plan shared_plan;
    uint8_t plan[512];
    stages dealt = {0};
    start(&s, models, 1, &shared_plan);
    add_stage(&dealt, 0, 3);
    add_stage(&dealt, 3, 8);
    add_stage(&dealt, 4, 8);
    control_plan_read(w.control, "boss", plan, pack_stages(&dealt, plan));
    control_plans_synced(w.control);
    TURN_UNTIL(s.n_specs == 3); /* it follows: all of it */
    assert_string_equal(s.specs[0].path, models[0].spec.path);
    is_stage(&s, 0, 0, 3, "one@3:8/0");
    is_stage(&s, 1, 3, 8, "");
    is_stage(&s, 2, 4, 8, "");

    s.leads = true;
    TURN_UNTIL(s.n_specs == 2);
    is_stage(&s, 0, 0, 3, "one@3:8/0");
    is_stage(&s, 1, 3, 8, "");
    assert_string_equal(s.node, "boss");
    Shoal__V1__Plan *posted = shoal__v1__plan__unpack(NULL, s.n_plan, s.plan);
    assert_int_equal(posted->assignments->n_models, 2);
    assert_null(posted->assignments->models[0]->file); /* a gateway has it */
    assert_int_equal(posted->assignments->models[0]->end_layer, 3);
    assert_string_equal(posted->assignments->models[0]->stages[0], "one@3:8/0");
    assert_int_equal(posted->assignments->models[1]->first_layer, 3);
    shoal__v1__plan__free_unpacked(posted, NULL);
    int n = s.n_here, n_posts = s.n_posts;
    TURN_UNTIL(s.n_here > n + 4); /* longer than machines on their way back are waited for */
    assert_int_equal(s.n_specs, 2);
    assert_int_equal(s.n_posts, n_posts);
}

static void layers_that_make_no_sense_are_no_stages(void **state)
{
    const control_model models[] = {cut_model(path_of_model())};
    played s = {.leader = "other"};
    control_shared_plan shared_plan;
    uint8_t plan[512];
    stages odd = {0};
    start(&s, models, 1, &shared_plan);
    add_stage(&odd, 5, 5);
    add_stage(&odd, 7, 9);          /* it has 8 */
    add_stage(&odd, 0, UINT32_MAX); /* the same */
    add_stage(&odd, 0, 3);
    odd.all[3].n_stages = 0; /* it calls nobody */
    control_plan_read(w.control, "boss", plan, pack_stages(&odd, plan));
    control_plans_synced(w.control);
    TURN_UNTIL(s.n_here > 1);
    assert_int_equal(s.n_specs, 0);
    s.leads = true;
    TURN_UNTIL(s.n_specs ==
               1); /* none was there: they are dealt out, and the first one waits for the other */
    assert_true(s.specs[0].first_layer > 0);
    assert_int_equal(s.specs[0].end_layer, 8);
}

/* Nonsense from the shared plan, models that nobody has, counts that nobody could start. */
static void a_plan_that_makes_no_sense_changes_nothing(void **state)
{
    static char two[] = "two";
    const control_model models[] = {
        {{.name = "one", .n_replicas = 1}, {.model = "one", .path = path_of_model(), .n_replicas = 1}}};
    played s = {0};
    control_shared_plan shared_plan;
    uint8_t plan[512];
    start(&s, models, 1, &shared_plan);
    control_plan_read(w.control, "boss", (const uint8_t *)"\xff\xff\xff", 3);
    Shoal__V1__Assignment a[2] = {SHOAL__V1__ASSIGNMENT__INIT, SHOAL__V1__ASSIGNMENT__INIT};
    Shoal__V1__Assignment *list[] = {&a[0], &a[1]};
    Shoal__V1__Assignments all = SHOAL__V1__ASSIGNMENTS__INIT;
    Shoal__V1__Plan odd = SHOAL__V1__PLAN__INIT;
    a[0].model = two;
    a[0].replicas = 3; /* of a model that is not here */
    a[1].model = (char *)models[0].spec.model;
    a[1].replicas = UINT32_MAX;
    all.models = list;
    all.n_models = 2;
    odd.assignments = &all;
    control_plan_read(w.control, "boss", plan, shoal__v1__plan__pack(&odd, plan));
    control_plans_synced(w.control);
    TURN_UNTIL(s.n_here > 0);
    assert_int_equal(s.n_specs, 0);
    control_plan_read(w.control, "boss", NULL,
                      0); /* nobody has planned for it: it serves what it was configured to */
    TURN_UNTIL(s.n_specs == 1);
    assert_int_equal(s.specs[0].n_replicas, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_was_planned_stays_when_another_leads, world_open, world_close),
        cmocka_unit_test_setup_teardown(stages_stay_where_they_are_when_another_leads, world_open,
                                        world_close),
        cmocka_unit_test_setup_teardown(layers_that_make_no_sense_are_no_stages, world_open, world_close),
        cmocka_unit_test_setup_teardown(a_plan_that_makes_no_sense_changes_nothing, world_open, world_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
