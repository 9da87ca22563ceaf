/* config_faults.c: see config_faults.h. */
#include "config/config_faults.h"

#include <stdlib.h>
#include <string.h>

/* Of "shoal.yaml:12: models[0]: ...": 12. */
static size_t line_of(const char *sentence)
{
    for (const char *at = strchr(sentence, ':'); at; at = strchr(at + 1, ':')) {
        size_t n = strspn(at + 1, "0123456789");
        if (n > 0 && strncmp(at + 1 + n, ": ", 2) == 0) return strtoul(at + 1, NULL, 10);
    }
    return 0;
}

int config_faults_add(config_faults *f, int rc, shoal_err *err)
{
    if (!f || rc != SHOAL_EINVALID) return rc;
    if (f->n == CONFIG_FAULTS_MAX) return 0;
    char *sentence = strdup(err->message);
    if (!sentence) return err_nomem(err);
    f->list[f->n] = (config_fault){.sentence = sentence, .line = line_of(sentence), .at = f->n};
    f->n++;
    return 0;
}

int config_faults_end(const config_faults *f, int rc, shoal_err *err)
{
    return rc == 0 && f && f->n > 0 ? err_set(err, SHOAL_EINVALID, "%s", f->list[0].sentence) : rc;
}

static int compare(const void *a, const void *b)
{
    const config_fault *x = a, *y = b;
    if (x->line != y->line) return x->line < y->line ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

void config_faults_sort(config_faults *f)
{
    qsort(f->list, f->n, sizeof *f->list, compare);
}

void config_faults_done(config_faults *f)
{
    for (size_t i = 0; i < f->n; i++) free(f->list[i].sentence);
    f->n = 0;
}
