/* pipeline_media.c: what a request brings beside its text, and what silence means; see pipeline.h. */
#include <assert.h>
#include <string.h>

#include "pipeline/pipeline.h"

static const struct {
    const char *name, *noun, *how;
} media[] = {
#define MEDIUM_ROW(e, name, noun, how) [e] = {name, noun, how},
    MEDIUM_TABLE(MEDIUM_ROW)
#undef MEDIUM_ROW
};

const char *medium_name(medium m)
{
    assert(m < N_MEDIA);
    return media[m].name;
}

const char *medium_noun(medium m)
{
    assert(m < N_MEDIA);
    return media[m].noun;
}

const char *medium_how(medium m)
{
    assert(m < N_MEDIA);
    return media[m].how;
}

medium stage_kind_medium(const stage_kind *k)
{
    unsigned gives = k->gives;
    return gives & READS_AUDIO   ? MEDIUM_AUDIO
           : gives & READS_IMAGE ? MEDIUM_IMAGE
           : gives & READS_CSV   ? MEDIUM_CSV
                                 : MEDIUM_TEXT;
}

static bool brings(const pipeline_facts *facts, medium m)
{
    return facts->brings >> m & 1;
}

const char *pipeline_input(const config_pipeline *p, size_t i, const pipeline_facts *facts)
{
    if (*facts->input) return facts->input;
    for (size_t k = i; k-- > 0;)
        if (p->stages[k].kind->id == STAGE_TRANSCRIBE && facts->stages[k].state == STAGE_DONE &&
            *facts->stages[k].text)
            return facts->stages[k].text;
    return "";
}

static bool hears_before(const config_pipeline *p, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (p->stages[k].kind->id == STAGE_TRANSCRIBE) return true;
    return false;
}

/* Stages that came to nothing because nothing was heard: transcribe stages, and those that read of them. */
static uint32_t silent_before(const config_pipeline *p, size_t i, const pipeline_facts *facts)
{
    uint32_t silent = 0;
    for (size_t k = 0; k < i; k++) {
        const config_stage *s = &p->stages[k];
        bool empty = !*pipeline_input(p, k + 1, facts), done = facts->stages[k].state == STAGE_DONE;
        bool heard_nothing = s->kind->id == STAGE_TRANSCRIBE && empty;
        bool read_nothing = !done && (s->reads & silent || (s->reads_input && empty && hears_before(p, k)));
        if (heard_nothing || read_nothing) silent |= 1u << k;
    }
    return silent;
}

bool pipeline_is_silent(const config_pipeline *p, size_t i, const pipeline_facts *facts)
{
    const config_stage *s = &p->stages[i];
    if (!brings(facts, MEDIUM_AUDIO)) return false; /* nobody spoke, and nobody was silent */
    if (s->reads & silent_before(p, i, facts)) return true;
    return s->reads_input && hears_before(p, i) && !*pipeline_input(p, i, facts);
}

medium pipeline_lacks(const config_pipeline *p, size_t i, const pipeline_facts *facts)
{
    const config_stage *s = &p->stages[i];
    medium m = stage_kind_medium(s->kind);
    if (m != MEDIUM_TEXT && !brings(facts, m)) return m;
    return s->reads_input && !*pipeline_input(p, i, facts) ? MEDIUM_TEXT : N_MEDIA;
}

medium pipeline_lacks_surely(const config_pipeline *p, const pipeline_facts *facts, size_t *ret_stage)
{
    for (size_t i = 0; i < p->n_stages; i++) {
        const config_stage *s = &p->stages[i];
        if (s->n_when || s->n_unless || s->optional) continue;
        medium m = pipeline_lacks(p, i, facts);
        *ret_stage = i;
        if (m != N_MEDIA && !(m == MEDIUM_TEXT && hears_before(p, i))) return m;
    }
    return N_MEDIA;
}

bool pipeline_takes(const config_pipeline *p, medium m)
{
    for (unsigned i = 0; i < p->n_stages; i++)
        if (m == MEDIUM_TEXT ? p->stages[i].reads_input : stage_kind_medium(p->stages[i].kind) == m)
            return true;
    return false;
}
