/* serve_calibrations.c: see serve_calibrations.h. */
#define _GNU_SOURCE
#include "serve/serve_calibrations.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/sha256.h"
#include "ensemble/calibration.h"

/* The name behind the folder, if both lie in one; NULL: they do not. */
static const char *name_beside(const char *path, const char *manifest_path)
{
    const char *slash = strrchr(path, '/'), *other = strrchr(manifest_path, '/');
    size_t n = slash ? (size_t)(slash - path) : 0, m = other ? (size_t)(other - manifest_path) : 0;
    if (n == m && memcmp(path, manifest_path, n) == 0) return slash ? slash + 1 : path;
    char *a = slash ? strndup(path, n + 1) : strdup("."),
         *b = other ? strndup(manifest_path, m + 1) : strdup(".");
    char *real_a = a ? realpath(a, NULL) : NULL, *real_b = b ? realpath(b, NULL) : NULL;
    bool same = real_a && real_b && strcmp(real_a, real_b) == 0;
    free(a);
    free(b);
    free(real_a);
    free(real_b);
    return !same ? NULL : slash ? slash + 1 : path;
}

static int check_pin(const gateway_config *c, size_t of, size_t i, const manifest *m,
                     const char *manifest_path, shoal_err *err)
{
    const char *path = c->ensembles[of].members[i].calibration, *name = name_beside(path, manifest_path);
    const char *pinned = name ? manifest_pin(m, name) : NULL;
    sha256_digest d;
    shoal_err why;
    char hex[65];
    if (!pinned) return 0;
    if (sha256_file(path, &d, &why) != 0)
        return config_fail(c, err, "ensembles[%zu].members[%zu].calibration: %s", of, i, why.message);
    sha256_hex(&d, hex);
    if (strcasecmp(hex, pinned) == 0) return 0;
    return config_fail(
        c, err,
        "ensembles[%zu].members[%zu].calibration: %s is not the file that %s pins: its SHA-256 is %s, "
        "and %.64s is pinned; bring that one back, or write it anew with shoal calibrate --out",
        of, i, path, manifest_path, hex, pinned);
}

static const char *digest_of(const gateway_config *c, const worker_spec *specs, const char *model)
{
    for (size_t i = 0; i < c->n_models; i++)
        if (strcmp(c->models[i].name, model) == 0) return specs[i].sha256;
    return NULL;
}

static int check_model(const gateway_config *c, size_t of, size_t i, const worker_spec *specs, shoal_err *err)
{
    const config_member *member = &c->ensembles[of].members[i];
    const char *served = digest_of(c, specs, member->model);
    calibration cal;
    shoal_err why;
    int rc = calibration_load(&cal, member->calibration, &why);
    if (rc == SHOAL_ENOMEM) return err_nomem(err);
    if (rc != 0)
        return config_fail(c, err, "ensembles[%zu].members[%zu].calibration: %s", of, i, why.message);
    if (!served || !*cal.digest || strcasecmp(served, cal.digest) == 0) return 0;
    return config_fail(
        c, err,
        "ensembles[%zu].members[%zu].calibration: %s was made with another file of %s (%.12s...) than "
        "the one that is served (%.12s...), so its threshold means nothing: run shoal calibrate anew, "
        "or take the line out",
        of, i, member->calibration, member->model, cal.digest, served);
}

int serve_calibrations_check(const gateway_config *c, const worker_spec *specs, const manifest *m,
                             const char *manifest_path, shoal_err *err)
{
    int rc = 0;
    for (size_t of = 0; of < c->n_ensembles; of++)
        for (size_t i = 0; rc == 0 && i < c->ensembles[of].n_members; i++) {
            if (!c->ensembles[of].members[i].calibration) continue;
            if (m) rc = check_pin(c, of, i, m, manifest_path, err);
            if (rc == 0) rc = check_model(c, of, i, specs, err);
        }
    return rc;
}
