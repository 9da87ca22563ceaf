/* stage_rank.c: texts with scores, best first: what embed and rerank stages come to. */
#include <math.h>
#include <stdlib.h>

#include "base/rank.h"
#include "stages/stage_write.h"

static void put_ranked(stage_run *s, const ranked *r, const char *text)
{
    json_t *o = json_object();
    process_put(s->run, o, "index", json_integer((json_int_t)r->index));
    process_put(s->run, o, "label", json_string(text));
    process_put(s->run, o, "score", process_rounded(r->score));
    process_add(s->run, s->results, o);
}

void stage_rank(stage_run *s, const char *const *texts, const double *scores, size_t n)
{
    ranked *order = malloc(n * sizeof *order);
    s->results = json_array();
    if (!order || !s->results) {
        free(order);
        s->run->lacks_memory = true;
        return;
    }
    for (size_t i = 0; i < n; i++) order[i] = (ranked){i, isfinite(scores[i]) ? scores[i] : -1};
    rank_sort(order, n);
    for (size_t i = 0; i < n; i++) put_ranked(s, &order[i], texts[order[i].index]);
    buf_puts(&s->label, texts[order[0].index]);
    process_fact(s)->score = order[0].score;
    free(order);
}
