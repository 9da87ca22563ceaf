/* Bytes as an unauthenticated peer's request for a certificate, as a certificate and as a list of revoked ones. */
#include <openssl/x509.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "trust/cert.h"
#include "trust/key.h"
#include "trust/trust.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_certificate(const uint8_t *data, size_t size)
{
    const unsigned char *at = data;
    identity id;
    int64_t from, until;
    char serial[CERT_SERIAL_SIZE], cluster[IDENTITY_NAME_SIZE];
    X509 *cert = d2i_X509(NULL, &at, (long)size);
    if (!cert) return;
    if (cert_identity(cert, &id, NULL) == 0 && !identity_name_ok(id.name, strlen(id.name))) abort();
    cert_times(cert, &from, &until, NULL);
    cert_serial(cert, serial);
    if (*serial && strlen(serial) != 32) abort();
    cert_cluster(cert, cluster, NULL);
    X509_free(cert);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    request r;
    shoal_err err;
    trust *t = NULL;
    X509_CRL *crl = NULL;
    if (request_read(&r, data, size, &err) == 0) {
        if (!identity_name_ok(r.name, strlen(r.name))) abort();
        request_done(&r);
    }
    read_certificate(data, size);
    if (trust_open(&t, data, size, "fuzz", &err) == 0 &&
        trust_check(t, (X509 *)trust_ca(t), &(trust_want){0}, 1, NULL, &err) == TRUST_OK)
        abort();
    trust_close(t);
    if (cert_crl_from_pem(&crl, data, size, "fuzz", &err) == 0) cert_crl_number(crl);
    X509_CRL_free(crl);
    return 0;
}
