/* cli_cluster.c: see cli_cluster.h. */
#include "command/cli_cluster.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "json/json.h"
#include "base/number.h"
#include "trust/state.h"

bool cli_seconds(const char *text, int64_t *ret)
{
    static const struct {
        char unit;
        int64_t seconds;
    } units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}};
    char digits[16];
    size_t n = strlen(text);
    int64_t factor = 1, count;
    if (n == 0 || n >= sizeof digits) return false;
    memcpy(digits, text, n + 1);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (text[n - 1] != units[i].unit) continue;
        factor = units[i].seconds;
        digits[n - 1] = '\0';
    }
    return number_i64(digits, &count) && !__builtin_mul_overflow(count, factor, ret);
}

void cli_date(char ret[CLI_DATE_SIZE], int64_t at)
{
    struct tm tm;
    time_t t = (time_t)at;
    *ret = '\0';
    if (gmtime_r(&t, &tm)) strftime(ret, CLI_DATE_SIZE, "%Y-%m-%dT%H:%M:%SZ", &tm);
}

int64_t cli_now(void)
{
    return (int64_t)time(NULL);
}

int cli_ca_open(ca **ret, const char *state, shoal_err *err)
{
    char *path = NULL;
    int rc = state_check_whole(state, err);
    if (rc == 0) rc = state_path(&path, state, "ca", err);
    if (rc == 0) rc = ca_open(ret, path, err);
    free(path);
    return rc;
}
