/* sampling.c: a value against its row of the table. */
#include "base/sampling.h"

#include <assert.h>
#include <string.h>

int sampling_check(const char *field, double v, shoal_err *err)
{
    static const struct {
        const char *field;
        double min, max;
    } rows[] = {
#define ROW(name, least, most) {#name, least, most},
        SAMPLING_TABLE(ROW)
#undef ROW
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (strcmp(rows[i].field, field) != 0) continue;
        if (v == 0 || (v >= rows[i].min && v <= rows[i].max)) return 0; /* false for NaN */
        return err_set(err, SHOAL_EINVALID, "%s is %g; it must be from %g to %g%s", field, v, rows[i].min,
                       rows[i].max, rows[i].min > 0 ? ", or 0 for none" : "");
    }
    assert(!"a field of the table");
    return err_set(err, SHOAL_EINTERNAL, "%s has no range", field);
}
