/* cli_tuning.c: see cli_tuning.h. */
#include "command/cli_tuning.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"

/* "auto, f32, f16 or q8_0: what keys and values are kept as" */
static void write_help(const tuning_row *r, char *ret, size_t size)
{
    size_t n = 0;
    for (size_t i = 0; r->words && r->words[i]; i++)
        n += (size_t)snprintf(ret + n, size - n, "%s%s",
                              i == 0            ? ""
                              : r->words[i + 1] ? ", "
                                                : " or ",
                              r->words[i]);
    snprintf(ret + n, size - n, "%s%s", n ? ": " : "", r->about);
}

const cli_option *cli_tuning_behind(cli_tuning *c, const cli_option *own)
{
    size_t n = 0;
    for (; own[n].kind != CLI_KIND_END; n++) c->all[n] = own[n];
    assert(n + TUNING_N_ROWS < CLI_TUNING_OPTIONS_MAX);
    for (size_t i = 0; i < TUNING_N_ROWS; i++) {
        const tuning_row *r = &tuning_rows[i];
        snprintf(c->names[i], sizeof c->names[i], "%s", r->key);
        for (char *p = c->names[i]; (p = strchr(p, '_'));) *p = '-';
        write_help(r, c->help[i], sizeof c->help[i]);
        c->all[n++] =
            (cli_option)CLI_STRING(0, c->names[i], r->words ? "WORD" : "N", c->help[i], &c->values[i]);
    }
    c->all[n] = (cli_option)CLI_END;
    return c->all;
}

int cli_tuning_read(const cli_tuning *c, tuning *ret, shoal_err *err)
{
    shoal_err why;
    for (size_t i = 0; i < TUNING_N_ROWS; i++) {
        const char *key = tuning_rows[i].key;
        if (!c->values[i] || tuning_set(ret, key, c->values[i], &why) == 0) continue;
        return err_set(err, SHOAL_EINVALID, "--%s%s", c->names[i], why.message + strlen(key));
    }
    return 0;
}

int cli_tuning_put_json(const cli_tuning *c, json_t *body)
{
    int rc = 0;
    for (size_t i = 0; i < TUNING_N_ROWS; i++) {
        const char *value = c->values[i];
        uint64_t n;
        if (!value) continue;
        bool is_number = !tuning_rows[i].words && number_u64(value, &n) && n <= INT64_MAX;
        rc |= json_object_set_new(body, tuning_rows[i].key,
                                  is_number ? json_integer((json_int_t)n) : json_string(value));
    }
    return rc;
}
