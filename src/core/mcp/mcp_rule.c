/* mcp_rule.c: see mcp_rule.h. */
#include "mcp/mcp_rule.h"

#include <stdio.h>
#include <string.h>

#include "base/name.h"

const mcp_rule *mcp_rule_find(const mcp_rule *all, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(all[i].name, name) == 0) return &all[i];
    return NULL;
}

static int check_list(const host_header *list, size_t n, const char *where, shoal_err *err)
{
    int rc = 0;
    for (size_t i = 0; !rc && i < n; i++) rc = host_header_check(&list[i], where, i, err);
    return rc;
}

static int check_env(const mcp_rule *r, const char *where, shoal_err *err)
{
    for (size_t i = 0; i < r->n_env; i++) {
        const host_header *e = &r->env[i];
        if (!*e->name || strchr(e->name, '='))
            return err_set(err, SHOAL_EINVALID, "%senv[%zu].name: must be a variable's name", where, i);
        if (!e->value == !e->file)
            return err_set(err, SHOAL_EINVALID, "%senv[%zu]: must have either 'value' or 'file'", where, i);
    }
    return 0;
}

int mcp_rule_check(const mcp_rule *r, const char *where, shoal_err *err)
{
    shoal_err why;
    if (!name_is_fine(r->name, strlen(r->name)))
        return err_set(err, SHOAL_EINVALID, "%sname: '%s' " NAME_RULE, where, r->name);
    if (!r->url == !r->n_command)
        return err_set(err, SHOAL_EINVALID, "%surl: a server has either 'url' or 'command'", where);
    if (r->url && host_url_check(r->url, &why))
        return err_set(err, SHOAL_EINVALID, "%surl: %s", where, why.message);
    if (!r->url && *r->command[0] != '/')
        return err_set(err, SHOAL_EINVALID, "%scommand[0]: must be the whole path of a program", where);
    if (!r->url && r->n_headers)
        return err_set(err, SHOAL_EINVALID, "%sheaders: a program has none; see 'env'", where);
    if (r->url && r->n_env) return err_set(err, SHOAL_EINVALID, "%senv: only a program has variables", where);
    int rc = check_list(r->headers, r->n_headers, where, err);
    return rc ? rc : check_env(r, where, err);
}
