/* Bytes as a CA's ledger, as they are and with a last line that vouches for them. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "trust/ledger.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What parses is written as it was read. */
static void parse(const char *text, size_t n)
{
    ledger l;
    buf back = {0};
    shoal_err err;
    if (ledger_parse(&l, text, n, "ledger", &err) != 0) return;
    if (ledger_put(&l, &back, &err) == 0 && (back.len != n || memcmp(back.data, text, n) != 0)) abort();
    ledger_prune(&l, 1800000000);
    ledger_revoke_name(&l, "pi", 1);
    buf_done(&back);
    ledger_done(&l);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sha256_digest d;
    char hex[65];
    buf sealed = {0};
    size_t n_lines = 0;
    parse((const char *)data, size);
    for (size_t i = 0; i < size; i++) n_lines += data[i] == '\n';
    sha256_of(data, size, &d);
    sha256_hex(&d, hex);
    buf_append(&sealed, data, size);
    buf_printf(&sealed, "end %zu %s\n", n_lines ? n_lines - 1 : 0, hex);
    if (!sealed.failed) parse(sealed.data, sealed.len);
    buf_done(&sealed);
    return 0;
}
