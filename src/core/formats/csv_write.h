/* csv_write.h: fields of a CSV (RFC 4180), as formats/csv.h reads them back. `more`: a comma first. Memory
 * that runs out is found in out->failed. */
#ifndef FORMATS_CSV_WRITE_H
#define FORMATS_CSV_WRITE_H

#include <stdbool.h>

#include "base/buf.h"

void csv_write_text(buf *out, const char *s, bool more); /* in quotes */
/* As many digits as bring it back exactly; NaN is "nan", since a line of nothing would be a blank one. */
void csv_write_number(buf *out, double v, bool more);

#endif
