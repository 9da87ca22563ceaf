/* provenance.c: see provenance.h. */
#include "answers/provenance.h"

#include <stdio.h>
#include <string.h>

#include "request/model_resolve.h"

static void add_tag(provenance *a, const char *kind, const char *name)
{
    size_t n_kind = strlen(kind), n_name = strlen(name);
    if (a->n_tags == PROVENANCE_TAGS || n_name >= PROVENANCE_TAG_BYTES - n_kind - 1) {
        a->varies = true; /* what cannot be purged is not kept */
        return;
    }
    char *tag = a->tags[a->n_tags++];
    memcpy(tag, kind, n_kind);
    tag[n_kind] = ':';
    memcpy(tag + n_kind + 1, name, n_name + 1);
}

static const char *adapter_digest(const Shoal__V1__ModelInfo *info, const char *adapter)
{
    for (size_t i = 0; i < info->n_adapters && i < info->n_adapter_digests; i++)
        if (strcmp(info->adapters[i], adapter) == 0) return info->adapter_digests[i];
    return NULL;
}

/* Do all of them that take calls have this identity? */
static bool agree(const gateway_request *rq, const char *model, const char *identity)
{
    const replica_set *s = registry_find(rq->registry, model);
    for (size_t i = 0; s && i < s->n_ready; i++) {
        const Shoal__V1__ModelInfo *info = s->replicas[i]->info;
        if (!info || strcmp(info->identity, identity) != 0) return false;
    }
    return true;
}

static void add_model(provenance *a, const gateway_request *rq, const char *name, const char *adapter,
                      bool must_agree)
{
    const Shoal__V1__ModelInfo *info = model_resolve_info(rq, name, NULL);
    const char *more = info && adapter && *adapter ? adapter_digest(info, adapter) : "";
    if (!info || !*info->identity || !more || (must_agree && !agree(rq, name, info->identity))) {
        a->varies = true;
        return;
    }
    buf_copy_str(a->file, sizeof a->file, a->n_files == 0 && !a->joins ? info->identity : "");
    a->n_files++;
    if (!a->key) a->key = cache_key_new("provenance");
    cache_key_str(a->key, "identity", info->identity);
    cache_key_str(a->key, "adapter", more);
    a->reads_clock |= info->template_reads_clock;
    add_tag(a, "model", name);
    add_tag(a, "version", info->version);
    add_tag(a, "digest", info->digest);
}

void provenance_join(provenance *a, const char *kind, const char *name)
{
    a->joins = true;
    if (!a->key) a->key = cache_key_new("provenance");
    cache_key_str(a->key, kind, name);
    add_tag(a, kind, name);
}

/* Of these the members' files and the rule, which is fixed while this process lives, decide all: a member
 * that is late or gone makes the answer a degraded one, which is not kept. Who answers for a refine is a
 * matter of time. */
static bool is_deterministic(const config_ensemble *e)
{
    return e->kind == ENSEMBLE_CASCADE || e->kind == ENSEMBLE_VOTE;
}

void provenance_add(provenance *a, const gateway_request *rq, const char *name, const char *adapter)
{
    const config_ensemble *e = config_ensemble_find(rq->config, name);
    if (!e) {
        add_model(a, rq, name, adapter, a->joins || a->n_files > 0);
        return;
    }
    if (!is_deterministic(e)) a->varies = true;
    provenance_join(a, "ensemble", name);
    for (size_t i = 0; i < e->n_members && !a->varies; i++) add_model(a, rq, e->members[i].model, NULL, true);
}

bool provenance_end(provenance *a)
{
    sha256_digest d;
    cache_key *k = a->key;
    a->key = NULL;
    if (k && *a->file && !a->varies) {
        cache_key_free(k);
        memcpy(a->identity, a->file, sizeof a->identity);
        return true;
    }
    bool known = cache_key_end(k, &d) && !a->varies;
    if (known) sha256_hex(&d, a->identity);
    return known;
}
