/* backup_item.c: see backup_item.h. */
#define _GNU_SOURCE
#include "backup/backup_item.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command/cli_home.h"
#include "config/config.h"
#include "retrieve/store.h"
#include "rules/home.h"
#include "sessions/session_store.h"
#include "trust/state.h"

const backup_item BACKUP_ITEMS[BACKUP_N_ITEMS] = {
#define BACKUP_ITEM_ROW(e, name, kind, secret, mode) [e] = {name, kind, secret, mode},
    BACKUP_ITEM_TABLE(BACKUP_ITEM_ROW)
#undef BACKUP_ITEM_ROW
};

backup_id backup_item_find(const char *name, size_t n)
{
    for (int i = 0; i < BACKUP_N_ITEMS; i++)
        if (strlen(BACKUP_ITEMS[i].name) == n && memcmp(BACKUP_ITEMS[i].name, name, n) == 0)
            return (backup_id)i;
    return BACKUP_N_ITEMS;
}

int backup_item_version(backup_id id)
{
    return id == BACKUP_SESSIONS ? SESSION_SQLITE_VERSION : STORE_VERSION;
}

/* ---- where ---------------------------------------------------------------------------------------- */

static int place_at(char **ret, const char *path, shoal_err *err)
{
    if (!path) return 0;
    return (*ret = strdup(path)) ? 0 : err_nomem(err);
}

static int place_configured(backup_places *p, const gateway_config *c, const char *config, shoal_err *err)
{
    int rc = place_at(&p->path[BACKUP_CONFIG], config, err);
    if (rc == 0 && c) rc = place_at(&p->path[BACKUP_SESSIONS], c->sessions.path, err);
    if (rc == 0 && c) rc = place_at(&p->path[BACKUP_SESSION_KEYS], c->sessions.key_file, err);
    if (rc == 0 && c) rc = place_at(&p->path[BACKUP_COLLECTIONS], c->retrieval_path, err);
    return rc;
}

static int place_all(backup_places *p, const gateway_config *c, const char *config, const char *state,
                     shoal_err *err)
{
    int rc = state_path(&p->state, state ? state : c ? c->cluster_state : NULL, NULL, err);
    if (rc == 0) rc = place_configured(p, c, config, err);
    for (int i = 0; rc == 0 && i < BACKUP_N_ITEMS; i++) {
        if (i == BACKUP_CONFIG || p->path[i]) continue;
        if (asprintf(&p->path[i], "%s/%s", p->state, BACKUP_ITEMS[i].name) >= 0) continue;
        p->path[i] = NULL;
        rc = err_nomem(err);
    }
    return rc;
}

int backup_places_find(backup_places *p, const char *config, const char *state, shoal_err *err)
{
    gateway_config *c = NULL;
    char *usual = NULL;
    shoal_err none;
    *p = (backup_places){0};
    int rc = config ? 0 : cli_home_find(&usual, &none);
    if (rc == SHOAL_ENOMEM) return err_nomem(err);
    const char *path = config ? config : usual;
    rc = path ? config_load(&c, &HOME_STAGES, path, err) : 0;
    if (rc == 0) rc = place_all(p, c, path, state, err);
    config_free(c);
    free(usual);
    return rc;
}

void backup_places_done(backup_places *p)
{
    for (int i = 0; i < BACKUP_N_ITEMS; i++) free(p->path[i]);
    free(p->state);
    *p = (backup_places){0};
}

bool backup_places_is_usual(const backup_places *p, backup_id id)
{
    size_t n = strlen(p->state);
    const char *path = p->path[id];
    return strncmp(path, p->state, n) == 0 && path[n] == '/' &&
           strcmp(path + n + 1, BACKUP_ITEMS[id].name) == 0;
}

int backup_places_check_below(const backup_places *p, shoal_err *err)
{
    size_t n = strlen(p->state);
    while (n > 1 && p->state[n - 1] == '/') n--;
    for (int i = 0; i < BACKUP_N_ITEMS; i++) {
        const char *path = p->path[i];
        if (i == BACKUP_CONFIG || !path || (strncmp(path, p->state, n) == 0 && path[n] == '/')) continue;
        return err_set(
            err, SHOAL_EFORMAT,
            "%s puts %s at %s, outside of %s: name the configuration with --config, too, if this is what "
            "you want",
            p->path[BACKUP_CONFIG], BACKUP_ITEMS[i].name, path, p->state);
    }
    return 0;
}

/* ---- locks ---------------------------------------------------------------------------------------- */

void backup_locks_done(backup_locks *l)
{
    for (size_t i = 0; i < l->n; i++)
        if (l->fd[i] >= 0) close(l->fd[i]);
    l->n = 0;
}

static bool is_elsewhere(const backup_places *p, int id)
{
    return id != BACKUP_CONFIG && p->path[id] && !backup_places_is_usual(p, (backup_id)id);
}

int backup_locks_share(backup_locks *ret, const backup_places *p, shoal_err *err)
{
    *ret = (backup_locks){0};
    int rc = state_share(&ret->fd[ret->n++], p->state, err);
    for (int i = 0; rc == 0 && i < BACKUP_N_ITEMS; i++)
        if (is_elsewhere(p, i)) rc = state_share_file(&ret->fd[ret->n++], p->path[i], err);
    if (rc != 0) backup_locks_done(ret);
    return rc;
}

int backup_locks_claim(backup_locks *ret, const backup_places *p, shoal_err *err)
{
    struct stat owner;
    *ret = (backup_locks){0};
    int rc = state_claim(&ret->fd[ret->n++], p->state, err);
    if (rc == 0 && stat(p->state, &owner) != 0)
        rc = err_set(err, SHOAL_EIO, "%s: %s", p->state, strerror(errno));
    for (int i = 0; rc == 0 && i < BACKUP_N_ITEMS; i++)
        if (is_elsewhere(p, i)) rc = state_claim_file(&ret->fd[ret->n++], p->path[i], &owner, err);
    if (rc != 0) backup_locks_done(ret);
    return rc;
}
