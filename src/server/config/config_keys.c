/* config_keys.c: what no row of the schema can say of api_keys; see config_keys.h. */
#include "config/config_keys.h"

#include <stdlib.h>
#include <string.h>

#include "base/name.h"
#include "base/utf8.h"
#include "config/config_schema.h"

static const char PREFIX[] = "sha256:";

bool config_key_digest(const config_key *k, sha256_digest *ret)
{
    size_t skip = strncmp(k->sha256, PREFIX, sizeof PREFIX - 1) == 0 ? sizeof PREFIX - 1 : 0;
    return hex_decode(k->sha256 + skip, strlen(k->sha256 + skip), ret->bytes, sizeof ret->bytes);
}

/* ---- times --------------------------------------------------------------------------------------- */

/* Exactly n digits at *s, which moves behind them, between low and high; false: they are not. */
static bool take_digits(const char **s, int n, int low, int high, int *ret)
{
    int v = 0;
    for (int i = 0; i < n; i++, (*s)++) {
        if (**s < '0' || **s > '9') return false;
        v = v * 10 + (**s - '0');
    }
    *ret = v;
    return v >= low && v <= high;
}

static bool take_char(const char **s, char c)
{
    if (**s != c) return false;
    (*s)++;
    return true;
}

static int days_in_month(int year, int month)
{
    static const int DAYS[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return DAYS[month - 1] + (month == 2 && leap);
}

/* Days from 1970-01-01 to a day of the Gregorian calendar, 1970 to 9999. */
static int64_t days_since_1970(int year, int month, int day)
{
    int64_t y = year - 1,
            days = 365 * (y - 1969) + (y / 4 - 1969 / 4) - (y / 100 - 1969 / 100) + (y / 400 - 1969 / 400);
    for (int m = 1; m < month; m++) days += days_in_month(year, m);
    return days + day - 1;
}

/* "Z", "+02:00" or "-05:30" in seconds east of Greenwich. */
static bool take_zone(const char **s, int64_t *ret_s)
{
    int hours, minutes, sign = **s == '-' ? -1 : 1;
    *ret_s = 0;
    if (take_char(s, 'Z') || take_char(s, 'z')) return true;
    if (!take_char(s, '+') && !take_char(s, '-')) return false;
    if (!take_digits(s, 2, 0, 23, &hours) || !take_char(s, ':') || !take_digits(s, 2, 0, 59, &minutes))
        return false;
    *ret_s = sign * (hours * 3600 + minutes * 60);
    return true;
}

bool config_time_parse(const char *s, int64_t *ret_s)
{
    int year, month, day, hour, minute, second;
    int64_t zone;
    if (!take_digits(&s, 4, 1970, 9999, &year) || !take_char(&s, '-') || !take_digits(&s, 2, 1, 12, &month) ||
        !take_char(&s, '-') || !take_digits(&s, 2, 1, days_in_month(year, month), &day))
        return false;
    *ret_s = days_since_1970(year, month, day) * 86400;
    if (!*s) return true;
    if (!take_char(&s, 'T') && !take_char(&s, 't') && !take_char(&s, ' ')) return false;
    if (!take_digits(&s, 2, 0, 23, &hour) || !take_char(&s, ':') || !take_digits(&s, 2, 0, 59, &minute) ||
        !take_char(&s, ':') || !take_digits(&s, 2, 0, 60, &second))
        return false;
    if (take_char(&s, '.')) {
        size_t n = strspn(s, "0123456789");
        if (n == 0) return false;
        s += n;
    }
    if (!take_zone(&s, &zone) || *s) return false;
    *ret_s += hour * 3600 + minute * 60 + second - zone;
    return true;
}

/* ---- one key ------------------------------------------------------------------------------------- */

/* The wrong value may be the key itself, pasted in clear: it is not repeated in the message. */
static int no_digest(size_t i, const char *field, shoal_err *err)
{
    return err_set(err, SHOAL_EINVALID,
                   "api_keys[%zu]%s: must be 'sha256:' and the 64 hex digits of the key's SHA-256, "
                   "never the key itself",
                   i, field);
}

/* "NAME=sha256:HEX" or "sha256:HEX" in place of a map: such a key may do everything. */
static int config_keys_take_text(gateway_config *c, size_t i, shoal_err *err)
{
    config_key *k = &c->api_keys[i];
    const char *equals = strchr(k->sha256, '=');
    size_t n = equals ? (size_t)(equals - k->sha256) : 0;
    char name[CONFIG_NAME_BYTES];
    if (equals && !name_is_fine(k->sha256, n)) return no_digest(i, "", err);
    memcpy(name, k->sha256, n);
    name[n] = '\0';
    k->name = n ? config_keep(c, name) : "";
    if (equals) k->sha256 = equals + 1;
    k->admin = true;
    if (strncmp(k->sha256, PREFIX, sizeof PREFIX - 1) != 0) return no_digest(i, "", err);
    return k->name ? 0 : err_nomem(err);
}

static int check_key(gateway_config *c, size_t i, sha256_digest *ret_digest, shoal_err *err)
{
    config_key *k = &c->api_keys[i];
    bool text = !k->name;
    int rc = text ? config_keys_take_text(c, i, err) : 0;
    if (rc) return rc;
    if (!text && !name_is_fine(k->name, strlen(k->name)))
        return err_set(err, SHOAL_EINVALID, "api_keys[%zu].name: '%s' " NAME_RULE, i, k->name);
    if (!config_key_digest(k, ret_digest)) return no_digest(i, text ? "" : ".sha256", err);
    if (k->expires && !config_time_parse(k->expires, &k->expires_s))
        return err_set(
            err, SHOAL_EINVALID,
            "api_keys[%zu].expires: '%s' is neither a date (2027-01-01: its first moment in UTC) nor "
            "a date with a time (2027-01-01T12:00:00Z)",
            i, k->expires);
    return 0;
}

typedef struct placed_digest {
    sha256_digest digest;
    size_t at;
} placed_digest;

static int compare_digests(const void *a, const void *b)
{
    const placed_digest *x = a, *y = b;
    int d = memcmp(x->digest.bytes, y->digest.bytes, sizeof x->digest.bytes);
    return d ? d : (x->at > y->at) - (x->at < y->at);
}

/* The first key in the file that is another's again. */
static int check_twice(placed_digest *all, size_t n, shoal_err *err)
{
    size_t again = n, first = n;
    qsort(all, n, sizeof *all, compare_digests);
    for (size_t i = 1; i < n; i++) {
        if (memcmp(all[i - 1].digest.bytes, all[i].digest.bytes, sizeof all->digest.bytes) != 0) continue;
        if (all[i].at >= again) continue;
        again = all[i].at;
        first = all[i - 1].at;
    }
    if (again == n) return 0;
    return err_set(err, SHOAL_EINVALID, "api_keys[%zu]: is the same key as api_keys[%zu]", again, first);
}

int config_check_keys(gateway_config *c, shoal_err *err)
{
    placed_digest *all = calloc(c->n_api_keys + 1, sizeof *all);
    int rc = all ? 0 : err_nomem(err);
    size_t n = 0;
    for (size_t i = 0; !rc && i < c->n_api_keys; i++) {
        all[n].at = i;
        rc = check_key(c, i, &all[n].digest, err);
        n += rc == 0;
        rc = config_found_at(c, rc, err);
    }
    if (!rc) rc = config_found_at(c, check_twice(all, n, err), err);
    free(all);
    return rc;
}
