/* backup_item.h: the files that a backup has, and where a server keeps them.
 *
 *     backup_places p = {0};
 *     backup_places_find(&p, "shoal.yaml", NULL, err);      // as the server of this configuration would
 *     p.path[BACKUP_SESSIONS]                               // "/var/lib/shoal/sessions.db"
 *     backup_places_done(&p);
 *
 * A backup holds each under its name in the table, and nothing else: what a manifest names is looked up there, so that no
 * name of somebody else's becomes a path. Models, packed weights and reports of crashes are not in a backup. */
#ifndef BACKUP_BACKUP_ITEM_H
#define BACKUP_BACKUP_ITEM_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

typedef enum backup_kind {
    BACKUP_FILE,
    BACKUP_DATABASE, /* SQLite: copied while others write, restored without its log */
    BACKUP_SETTINGS  /* the configuration: is in a backup, and is not restored */
} backup_kind;

/* X(enum, name, kind, secret, mode). In the order of copying: the keys of conversations after the conversations, so that
 * whatever was encrypted has its key. */
#define BACKUP_ITEM_TABLE(X)                                              \
    X(BACKUP_CONFIG, "shoal.yaml", BACKUP_SETTINGS, false, 0600)          \
    X(BACKUP_SESSIONS, "sessions.db", BACKUP_DATABASE, false, 0600)       \
    X(BACKUP_SESSION_KEYS, "sessions.key", BACKUP_FILE, true, 0600)       \
    X(BACKUP_COLLECTIONS, "collections.db", BACKUP_DATABASE, false, 0600) \
    X(BACKUP_LOADED, "loaded.json", BACKUP_FILE, false, 0644)             \
    X(BACKUP_VARIANTS, "variants.json", BACKUP_FILE, false, 0644)         \
    X(BACKUP_CA_LEDGER, "ca/ledger", BACKUP_FILE, false, 0600)            \
    X(BACKUP_CA_KEY, "ca/ca.key", BACKUP_FILE, true, 0600)                \
    X(BACKUP_CA_CERT, "ca/ca.crt", BACKUP_FILE, false, 0644)              \
    X(BACKUP_CA_CRL, "ca/crl.pem", BACKUP_FILE, false, 0644)              \
    X(BACKUP_MEMBER, "member.pem", BACKUP_FILE, true, 0600)               \
    X(BACKUP_MEMBER_CA, "ca.crt", BACKUP_FILE, false, 0644)               \
    X(BACKUP_MEMBER_CRL, "crl.pem", BACKUP_FILE, false, 0644)             \
    X(BACKUP_DRAINS, "drains", BACKUP_FILE, false, 0600)                  \
    X(BACKUP_GATEWAY, "gateway", BACKUP_FILE, false, 0644)                \
    X(BACKUP_GATEWAYS, "gateways", BACKUP_FILE, false, 0644)              \
    X(BACKUP_TOKEN, "token", BACKUP_FILE, false, 0644)
typedef enum backup_id {
#define BACKUP_ITEM_ENUM(e, name, kind, secret, mode) e,
    BACKUP_ITEM_TABLE(BACKUP_ITEM_ENUM)
#undef BACKUP_ITEM_ENUM
        BACKUP_N_ITEMS
} backup_id;

typedef struct backup_item {
    const char *name; /* in a backup, and below the state folder */
    backup_kind kind;
    bool secret;
    unsigned mode;
} backup_item;

extern const backup_item BACKUP_ITEMS[BACKUP_N_ITEMS];

/* The one of that name[n]; BACKUP_N_ITEMS: there is none. */
backup_id backup_item_find(const char *name, size_t n);
/* Of a database: the newest version of its schema that this program reads. */
int backup_item_version(backup_id id);

typedef struct backup_places {
    char *state;                /* the folder */
    char *path[BACKUP_N_ITEMS]; /* of the configuration NULL where there is none */
} backup_places;

/* config NULL: the one that commands find, or none; state NULL: the configuration's, else the usual one. On failure p can be
 * closed, too. */
int backup_places_find(backup_places *p, const char *config, const char *state, shoal_err *err);
void backup_places_done(backup_places *p);
/* It has its usual place, below the state folder. */
bool backup_places_is_usual(const backup_places *p, backup_id id);
/* SHOAL_EFORMAT: a file of the configuration is not below the state folder. For a state folder that is named beside a
 * configuration that is only found: they may be those of two servers. */
int backup_places_check_below(const backup_places *p, shoal_err *err);

/* The locks of the state folder and of each file that the configuration places (trust/state.h). On failure there are
 * none. */
typedef struct backup_locks {
    int fd[1 + BACKUP_N_ITEMS];
    size_t n;
} backup_locks;
int backup_locks_share(backup_locks *ret, const backup_places *p, shoal_err *err);
int backup_locks_claim(backup_locks *ret, const backup_places *p, shoal_err *err);
void backup_locks_done(backup_locks *l);

#endif
