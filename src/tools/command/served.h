/* served.h: which models a running Shoal has, for commands that take a MODEL's name.
 *
 *     served s;
 *     if (served_find(&s, NULL, "home-chat-s", NULL, key, err) == 0 && s.model[0])
 *         ... ask s.where ...
 *     else
 *         ... open the file of that name ...
 *
 * A server that was named (--server, SHOAL_HOST) must answer; the usual one (shoal.yaml's address, else
 * 127.0.0.1:8080) may be away,
 * be slow or want a key: then nothing is found, and nothing is said. */
#ifndef COMMAND_SERVED_H
#define COMMAND_SERVED_H

#include "client/http_client.h"

typedef struct served {
    http_where where;
    char url[160];   /* for people */
    char model[160]; /* its name there; "": it is not served, or nobody is there */
    char task[32];   /* "" for routes and ensembles */
    char names[300]; /* of all that it has; its end is cut where they are many */
    char use[200];   /* of a pipeline: what it is for; "": nothing is said */
    bool pipeline;   /* it is one, which chats by its name */
    bool is_plain;   /* it has no chat template of its own */
    bool runs;       /* a Shoal has answered */
} served;

/* For `task`: a pipeline, or else a model that generates. */
#define SERVED_CHATS "chats"

/* server NULL: the usual one. model NULL: the first of its models, not of its pipelines, whose task is `task` (NULL: any). It is no
 * error that a model is not there. */
int served_find(served *ret, const char *server, const char *model, const char *task, const char *key,
                shoal_err *err);

/* That the server which was asked has no such model, and what shows those it has, as err. */
int served_missing(const served *at, const char *model, shoal_err *err);

/* Behind the search for a file or a name of models.json that ended with rc: where that was SHOAL_ENOTFOUND, and the
 * usual server has the model, says which option kept it from being asked (NULL: none); else adds what it has. */
int served_instead(int rc, const char *model, const char *option, const char *key, shoal_err *err);

/* Is it meant as a file: a path that is there, or what looks like one? */
bool served_is_path(const char *model);

#endif
