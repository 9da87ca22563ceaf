/* Bytes as what a gateway says to a machine, and as pieces of a file that another machine sends.
 *
 * The first byte chooses: even, a ServerMessage (what is to be served, who has which file, where else to
 * attach), the rest also as the file "gateways"; odd, a FetchChunk for a file of which as many bytes are left
 * as the byte says. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "control/assignment.h"
#include "join/gateways.h"
#include "transfer/model_holders.h"
#include "transfer/model_send.h"
#include "transfer/blob_store.h"
#include "memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What was understood of an artifact, said again, is understood the same. */
static void say_again(const artifact *p)
{
    Shoal__V1__ModelFile m;
    Shoal__V1__FolderFile files[ARTIFACT_FILES_MAX], *list[ARTIFACT_FILES_MAX];
    artifact q = {0};
    shoal_err err;
    artifact_put(p, &m, files, list);
    if (!holds(artifact_take(&q, &m, &err) == 0)) return;
    if (strcmp(p->digest, q.digest) != 0 || p->n_files != q.n_files || p->bytes != q.bytes) abort();
    for (size_t i = 0; i < p->n_files; i++) {
        model_file f;
        if (!artifact_path_ok(p->files[i].path)) abort();
        if (model_file_make(&f, p->files[i].path, p->files[i].digest, p->files[i].bytes, &err) != 0) abort();
        if (strchr(f.suffix, '/')) abort();
    }
    artifact_done(&q);
}

static void take_assignments(const Shoal__V1__Assignments *all)
{
    for (size_t i = 0; i < all->n_models; i++) {
        assignment a = {0};
        shoal_err err;
        if (assignment_take(&a, all->models[i], &err) != 0) continue;
        if (a.spec.n_replicas < 1 || a.spec.n_replicas > ASSIGNMENT_REPLICAS_MAX) abort();
        say_again(&a.artifact);
        for (size_t k = 0; k < a.n_adapters; k++) say_again(&a.adapters[k].artifact);
        assignment_done(&a);
    }
}

static void take_holders(const Shoal__V1__Holders *m)
{
    model_holders h = {0};
    shoal_err err;
    if (model_holders_hear(&h, m, &err) == 0) {
        for (size_t i = 0; i < m->n_files; i++) {
            const model_holder *at = model_holders_pick(&h, m->files[i]->digest, 1);
            if (!at) continue;
            if (strchr(at->address, '/')) abort();
            model_holders_shun(&h, at->node, m->files[i]->digest, 2);
            const model_holder *next = model_holders_pick(&h, m->files[i]->digest, 1);
            if (next && strcmp(next->node, at->node) == 0) abort();
        }
    }
    model_holders_done(&h);
}

/* What was understood is kept and read again the same, and each has its turn. */
static void keep_gateways(gateways *g)
{
    gateways again = {.roams = true};
    buf text = {0};
    gateways_put(g, &text);
    if (g->n > GATEWAYS_MAX) abort();
    if (!text.failed) {
        if (text.len > GATEWAYS_TEXT_MAX) abort();
        if (gateways_parse(&again, text.data ? text.data : "", text.len, NULL) != 0) abort();
        if (again.n != g->n - g->n_given) abort();
    }
    for (size_t i = 0; i < g->n; i++) {
        if (!gateways_address_ok(gateways_address(g))) abort();
        gateways_settle(g, gateways_address(g), "boss");
        gateways_lost(g, 0, 0.5);
    }
    buf_done(&text);
}

static void take_gateways(const Shoal__V1__Gateways *m, const uint8_t *text, size_t n)
{
    gateways g = {.roams = true};
    if (gateways_give(&g, "10.0.0.1:7080", NULL) != 0) abort();
    if (m) gateways_hear(&g, m);
    gateways_parse(&g, (const char *)text, n, NULL);
    keep_gateways(&g);
}

static void take_piece(const uint8_t *data, size_t n, uint64_t left)
{
    Shoal__V1__FetchChunk *m;
    const char *wrong = model_piece_take(data, n, left, &m);
    if (wrong ? m != NULL : m->data.len > left) abort();
    if (m) shoal__v1__fetch_chunk__free_unpacked(m, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) return 0;
    if (data[0] & 1) {
        take_piece(data + 1, size - 1, data[0]);
        return 0;
    }
    take_gateways(NULL, data + 1, size - 1);
    Shoal__V1__ServerMessage *m = shoal__v1__server_message__unpack(NULL, size - 1, data + 1);
    if (!m) return 0;
    if (m->gateways) take_gateways(m->gateways, NULL, 0);
    if (m->assign) take_assignments(m->assign);
    if (m->holders) take_holders(m->holders);
    shoal__v1__server_message__free_unpacked(m, NULL);
    return 0;
}
