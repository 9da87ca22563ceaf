/* tuning.c: see tuning.h. */
#include "json/tuning.h"

#include <stdio.h>
#include <string.h>

#include "base/number.h"

#define TUNING_UINT(key, least, most, about)
#define TUNING_WORD(key, about, ...) const char *const tuning_##key##_words[] = {__VA_ARGS__, NULL};
TUNING_TABLE(TUNING_UINT, TUNING_WORD)
#undef TUNING_UINT
#undef TUNING_WORD

#define TUNING_UINT(key, least, most, about) {#key, about, offsetof(tuning, key), least, most, NULL},
#define TUNING_WORD(key, about, ...)         {#key, about, offsetof(tuning, key), 0, 0, tuning_##key##_words},
const tuning_row tuning_rows[TUNING_N_ROWS] = {TUNING_TABLE(TUNING_UINT, TUNING_WORD)};
#undef TUNING_UINT
#undef TUNING_WORD

static unsigned *tuning_at(tuning *t, size_t i)
{
    return (unsigned *)(void *)((char *)t + tuning_rows[i].at);
}

static unsigned tuning_of(const tuning *t, size_t i)
{
    return *tuning_at((tuning *)t, i);
}

const char *tuning_value(const tuning *t, size_t i, char number[12])
{
    unsigned v = tuning_of(t, i);
    if (v == 0) return "";
    if (tuning_rows[i].words) return tuning_rows[i].words[v];
    snprintf(number, 12, "%u", v);
    return number;
}

/* ---- one of them ----------------------------------------------------------------------------------- */

/* "auto, f32, f16 or q8_0" */
static void tuning_list_words(const char *const *words, char ret[128])
{
    size_t n = 0;
    for (size_t i = 0; words[i] && n < 100; i++)
        n += (size_t)snprintf(ret + n, 128 - n, "%s%.24s",
                              i == 0         ? ""
                              : words[i + 1] ? ", "
                                             : " or ",
                              words[i]);
}

static int tuning_set_word(const tuning_row *r, unsigned *at, const char *value, shoal_err *err)
{
    char list[128];
    for (unsigned i = 0; r->words[i]; i++) {
        if (strcmp(r->words[i], value) != 0) continue;
        *at = i;
        return 0;
    }
    tuning_list_words(r->words, list);
    return err_set(err, SHOAL_EINVALID, "%s wants %s, not \"%.40s\"", r->key, list, value);
}

static int tuning_set_number(const tuning_row *r, unsigned *at, const char *value, shoal_err *err)
{
    uint64_t v;
    if (number_u64(value, &v) && v >= r->least && v <= r->most) {
        *at = (unsigned)v;
        return 0;
    }
    return err_set(err, SHOAL_EINVALID, "%s wants a whole number of %u to %u, not \"%.40s\"", r->key,
                   r->least, r->most, value);
}

int tuning_set(tuning *t, const char *key, const char *value, shoal_err *err)
{
    for (size_t i = 0; i < TUNING_N_ROWS; i++) {
        const tuning_row *r = &tuning_rows[i];
        if (strcmp(r->key, key) != 0) continue;
        return (r->words ? tuning_set_word : tuning_set_number)(r, tuning_at(t, i), value, err);
    }
    return err_set(err, SHOAL_EINVALID, "\"%.40s\" is no option of a model", key);
}

/* ---- all of them ----------------------------------------------------------------------------------- */

void tuning_override(tuning *t, const tuning *over)
{
    for (size_t i = 0; i < TUNING_N_ROWS; i++)
        if (tuning_of(over, i)) *tuning_at(t, i) = tuning_of(over, i);
}

bool tuning_includes(const tuning *all, const tuning *few)
{
    for (size_t i = 0; i < TUNING_N_ROWS; i++)
        if (tuning_of(few, i) && tuning_of(few, i) != tuning_of(all, i)) return false;
    return true;
}

void tuning_format(const tuning *t, char ret[TUNING_TEXT_BYTES])
{
    char number[12];
    size_t n = 0;
    ret[0] = '\0';
    for (size_t i = 0; i < TUNING_N_ROWS; i++) {
        const char *value = tuning_value(t, i, number);
        if (*value && n < TUNING_TEXT_BYTES)
            n += (size_t)snprintf(ret + n, TUNING_TEXT_BYTES - n, "%s%s=%s", n ? " " : "", tuning_rows[i].key,
                                  value);
    }
}

int tuning_parse(tuning *t, const char *text, shoal_err *err)
{
    tuning got = *t;
    char key[64], value[64];
    int rc = 0;
    while (rc == 0 && *(text += strspn(text, " "))) {
        size_t n = strcspn(text, " "), n_key = strcspn(text, "= ");
        if (n_key >= n || n_key >= sizeof key || n - n_key > sizeof value)
            return err_set(err, SHOAL_EINVALID, "\"%.*s\" is no KEY=VALUE", (int)(n < 40 ? n : 40), text);
        snprintf(key, sizeof key, "%.*s", (int)n_key, text);
        snprintf(value, sizeof value, "%.*s", (int)(n - n_key - 1), text + n_key + 1);
        rc = tuning_set(&got, key, value, err);
        text += n;
    }
    if (rc == 0) *t = got;
    return rc;
}

int tuning_put_json(json_t *o, const tuning *t)
{
    char number[12];
    int rc = 0;
    for (size_t i = 0; i < TUNING_N_ROWS; i++) {
        const tuning_row *r = &tuning_rows[i];
        const char *value = tuning_value(t, i, number);
        if (*value)
            rc |=
                json_object_set_new(o, r->key, r->words ? json_string(value) : json_integer(tuning_of(t, i)));
    }
    return rc;
}
