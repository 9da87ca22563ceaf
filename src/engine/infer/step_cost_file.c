/* step_cost_file.c: see step_cost_file.h. */
#define _GNU_SOURCE
#include "infer/step_cost_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cur.h"
#include "base/file.h"
#include "logging/log.h"
#include "base/sys.h"
#include "store/lru_folder.h"

#define MAGIC        "SHOALPC\n"
#define VERSION      2
#define SUFFIX       ".pace"
#define MODEL_DIGITS 16
#define KEY_DIGITS   8
#define LINES        (STEP_KINDS * STEP_WAYS)
#define DIGEST_AT    (STEP_COST_FILE_BYTES - 32)

/* ---- bytes ---------------------------------------------------------------------------------------- */

static uint8_t *step_cost_file_put(uint8_t *at, uint64_t v, size_t n)
{
    for (size_t i = 0; i < n; i++) at[i] = (uint8_t)(v >> (8 * i));
    return at + n;
}

static uint8_t *put_double(uint8_t *at, double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    return step_cost_file_put(at, bits, sizeof bits);
}

static double take_double(cur *c)
{
    double v;
    uint64_t bits = cur_u64(c);
    memcpy(&v, &bits, sizeof v);
    return v;
}

void step_cost_file_write(uint8_t ret[STEP_COST_FILE_BYTES], const sha256_digest *key,
                          const step_cost_known *known)
{
    sha256_digest d;
    memcpy(ret, MAGIC, 8);
    uint8_t *at = step_cost_file_put(step_cost_file_put(ret + 8, VERSION, 4), LINES, 4);
    memcpy(at, key->bytes, sizeof key->bytes);
    at += sizeof key->bytes;
    for (int i = 0; i < LINES; i++) {
        at = put_double(at, known->of[i / STEP_WAYS][i % STEP_WAYS].fixed_ns);
        at = put_double(at, known->of[i / STEP_WAYS][i % STEP_WAYS].token_ns);
    }
    sha256_of(ret, DIGEST_AT, &d);
    memcpy(at, d.bytes, sizeof d.bytes);
}

int step_cost_file_read(step_cost_known *ret, const void *data, size_t n, const sha256_digest *key,
                        shoal_err *err)
{
    cur c = cur_over(data, n);
    sha256_digest is;
    step_cost_known known;
    const uint8_t *magic = cur_take(&c, 8);
    if (n != STEP_COST_FILE_BYTES || memcmp(magic, MAGIC, 8) != 0)
        return err_set(err, SHOAL_EFORMAT, "it is no such file");
    uint32_t version = cur_u32(&c), n_lines = cur_u32(&c);
    const uint8_t *whose = cur_take(&c, sizeof key->bytes);
    for (int i = 0; i < LINES; i++) {
        known.of[i / STEP_WAYS][i % STEP_WAYS].fixed_ns = take_double(&c);
        known.of[i / STEP_WAYS][i % STEP_WAYS].token_ns = take_double(&c);
    }
    const uint8_t *said = cur_take(&c, sizeof is.bytes);
    sha256_of(data, DIGEST_AT, &is);
    if (version != VERSION || n_lines != LINES)
        return err_set(err, SHOAL_EFORMAT, "it is of another version");
    if (memcmp(said, is.bytes, sizeof is.bytes) != 0) return err_set(err, SHOAL_EFORMAT, "it is damaged");
    if (memcmp(whose, key->bytes, sizeof key->bytes) != 0)
        return err_set(err, SHOAL_EDIGEST, "it is of another model or machine");
    *ret = known;
    return 0;
}

/* ---- the file ------------------------------------------------------------------------------------- */

static bool make_key(sha256_digest *ret, const packed_head *h, isa set, int n_threads)
{
    char machine[256], cpu[128];
    sha256 *s = sha256_new();
    if (!s) return false;
    sys_cpu_name(cpu, sizeof cpu);
    int n = snprintf(machine, sizeof machine, "%llu:%llu %s %s %d %d", (unsigned long long)h->first_layer,
                     (unsigned long long)h->end_layer, isa_name(set), cpu, sys_core_count(), n_threads);
    sha256_add(s, h->model.bytes, sizeof h->model.bytes);
    sha256_add(s, h->layout.bytes, sizeof h->layout.bytes);
    sha256_add(s, machine, (size_t)n);
    sha256_end(s, ret);
    return true;
}

static char *path_of(const packed_store *s, const packed_head *h, const sha256_digest *key)
{
    char model[65], digits[65], *path;
    sha256_hex(&h->model, model);
    sha256_hex(key, digits);
    return asprintf(&path, "%s/%.16s-%.8s" SUFFIX, s->folder, model, digits) < 0 ? NULL : path;
}

/* Only a folder that nobody else writes to is looked at. */
static int step_cost_file_read_file(step_cost_file *k, const packed_store *s, shoal_err *err)
{
    buf b = {0};
    int fd = packed_store_folder(s, false, err), rc = fd < 0 ? err->code : 0;
    if (rc == 0) rc = file_read(&b, k->path, STEP_COST_FILE_BYTES, err);
    if (rc == 0) rc = step_cost_file_read(&k->known, b.data, b.len, &k->key, err);
    buf_done(&b);
    if (fd >= 0) close(fd);
    return rc;
}

void step_cost_file_open(step_cost_file *k, const packed_store *s, const packed_head *h, isa set,
                         step_cost *p)
{
    shoal_err why;
    *k = (step_cost_file){0};
    if (!s->folder || p->n_members < 2 || !make_key(&k->key, h, set, p->n_members)) return;
    k->path = path_of(s, h, &k->key);
    int rc = k->path ? step_cost_file_read_file(k, s, &why) : SHOAL_ENOTFOUND;
    if (rc == 0)
        step_cost_recall(p, &k->known);
    else if (rc != SHOAL_ENOTFOUND)
        LOG(LOG_DEBUG, "step_cost", "not_recalled", LOG_S("file", k->path), LOG_S("why", why.message));
}

/* MODEL-KEY.pace, and nothing else that somebody may have put there. */
static bool is_name(const char *s)
{
    static const char digits[] = "0123456789abcdef";
    return strspn(s, digits) == MODEL_DIGITS && s[MODEL_DIGITS] == '-' &&
           strspn(s + MODEL_DIGITS + 1, digits) == KEY_DIGITS &&
           strcmp(s + MODEL_DIGITS + 1 + KEY_DIGITS, SUFFIX) == 0;
}

/* user: the first digits of a model's digest; NULL: of any model. */
static lru_class classify(const void *user, const char *name, const struct stat *st)
{
    return is_name(name) && (!user || strncmp(name, user, MODEL_DIGITS) == 0) ? LRU_MAY_GO : LRU_OTHER;
}

/* So that so many files are left, and the last one used is one of them. */
static void evict_down_to(int folder, const char *model, size_t most)
{
    lru_folder l;
    if (lru_folder_list(&l, folder, classify, model, NULL) != 0) return;
    while (l.n_left > most && lru_folder_evict(&l)) continue;
    lru_folder_done(&l);
}

static int write_file(const char *path, const packed_store *s, const uint8_t bytes[STEP_COST_FILE_BYTES],
                      shoal_err *err)
{
    file_writer *w = NULL;
    int fd = packed_store_folder(s, true, err);
    if (fd < 0) return err->code;
    evict_down_to(fd, NULL, STEP_COST_FILES - 1);
    close(fd);
    int rc = file_writer_open(&w, path, err);
    if (rc == 0) rc = file_writer_write(w, bytes, STEP_COST_FILE_BYTES, err);
    if (rc == 0) rc = file_writer_commit(w, err);
    file_writer_close(w);
    return rc;
}

void step_cost_file_close(step_cost_file *k, const packed_store *s, const step_cost *p)
{
    step_cost_known now;
    shoal_err why;
    uint8_t bytes[STEP_COST_FILE_BYTES];
    bool news =
        k->path && !s->read_only && step_cost_tell(p, &now) && memcmp(&now, &k->known, sizeof now) != 0;
    if (news) {
        step_cost_file_write(bytes, &k->key, &now);
        if (write_file(k->path, s, bytes, &why))
            LOG(LOG_WARN, "step_cost", "not_kept", LOG_S("file", k->path), LOG_S("why", why.message));
    }
    free(k->path);
    k->path = NULL;
}

void step_cost_file_clear(const packed_store *s, const char *model)
{
    int folder = packed_store_folder(s, false, NULL);
    if (folder < 0) return;
    evict_down_to(folder, model, 0);
    close(folder);
}
