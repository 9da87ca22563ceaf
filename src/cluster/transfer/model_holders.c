/* model_holders.c: see model_holders.h. */
#include "transfer/model_holders.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "transfer/artifact.h"
#include "wire/address.h"

struct model_held {
    char digest[65];
    model_holder at[HOLDERS_OF_FILE_MAX];
    size_t n;
};

static bool address_ok(const char *s)
{
    address a;
    return strlen(s) < HOLDERS_ADDRESS_SIZE && !strchr(s, '/') && address_parse(&a, s, NULL) == 0 &&
           !a.is_unix && *a.host && a.port > 0;
}

static int take_holder(model_holder *to, const Shoal__V1__Holder *m, shoal_err *err)
{
    if (!identity_name_ok(m->node, strlen(m->node)) || !address_ok(m->address))
        return err_set(err, SHOAL_EINVALID, "no machine can be called so, or be there");
    snprintf(to->node, sizeof to->node, "%s", m->node);
    snprintf(to->address, sizeof to->address, "%s", m->address);
    return 0;
}

static int model_holders_take_file(model_held *to, const Shoal__V1__HeldFile *m, shoal_err *err)
{
    if (!artifact_digest_ok(m->digest) || m->n_holders > HOLDERS_OF_FILE_MAX)
        return err_set(err, SHOAL_EINVALID, "no SHA-256, or more than %d machines have it",
                       HOLDERS_OF_FILE_MAX);
    memcpy(to->digest, m->digest, 65);
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < m->n_holders; i++)
        rc = take_holder(&to->at[to->n++], m->holders[i], err);
    return rc;
}

int model_holders_hear(model_holders *h, const Shoal__V1__Holders *m, shoal_err *err)
{
    if (m->n_files > HOLDERS_FILES_MAX)
        return err_set(err, SHOAL_EINVALID, "more than %d files are held", HOLDERS_FILES_MAX);
    model_held *files = calloc(m->n_files + 1, sizeof *files);
    if (!files) return err_nomem(err);
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < m->n_files; i++)
        rc = model_holders_take_file(&files[i], m->files[i], err);
    if (rc != 0) {
        free(files);
        return rc;
    }
    free(h->files);
    h->files = files;
    h->n_files = m->n_files;
    return 0;
}

static bool is_shunned(const model_holders *h, const char *node, const char *digest, uint64_t now_ms)
{
    for (size_t i = 0; i < HOLDERS_SHUNNED_MAX; i++) {
        const model_shunned *s = &h->shunned[i];
        bool is_it = s->until_ms > now_ms && strcmp(s->node, node) == 0;
        if (is_it && (!*s->digest || strcmp(s->digest, digest) == 0)) return true;
    }
    return false;
}

const model_holder *model_holders_pick(const model_holders *h, const char *digest, uint64_t now_ms)
{
    for (size_t i = 0; i < h->n_files; i++) {
        const model_held *f = &h->files[i];
        if (strcmp(f->digest, digest) != 0) continue;
        for (size_t k = 0; k < f->n; k++)
            if (!is_shunned(h, f->at[k].node, digest, now_ms)) return &f->at[k];
    }
    return NULL;
}

void model_holders_shun(model_holders *h, const char *node, const char *digest, uint64_t until_ms)
{
    model_shunned *to = &h->shunned[0];
    for (size_t i = 1; i < HOLDERS_SHUNNED_MAX; i++)
        if (h->shunned[i].until_ms < to->until_ms) to = &h->shunned[i];
    snprintf(to->node, sizeof to->node, "%s", node);
    snprintf(to->digest, sizeof to->digest, "%s", digest ? digest : "");
    to->until_ms = until_ms;
}

void model_holders_done(model_holders *h)
{
    free(h->files);
    *h = (model_holders){0};
}
