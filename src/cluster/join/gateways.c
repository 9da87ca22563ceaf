/* gateways.c: a short list, those that were given first. */
#include "join/gateways.h"

#include <string.h>

#include "join/attach.h"
#include "wire/address.h"

bool gateways_address_ok(const char *s)
{
    address a;
    if (strlen(s) >= GATEWAYS_ADDRESS_SIZE || strchr(s, '/')) return false;
    for (const char *p = s; *p; p++)
        if ((unsigned char)*p <= ' ' || (unsigned char)*p >= 0x7F || *p == ',') return false;
    return address_parse(&a, s, NULL) == 0 && !a.is_unix && *a.host && a.port > 0;
}

static size_t find_address(const gateways *g, const char *address)
{
    size_t i = 0;
    while (i < g->n && strcmp(g->list[i].address, address) != 0) i++;
    return i;
}

static size_t find_name(const gateways *g, const char *name)
{
    size_t i = 0;
    while (i < g->n && strcmp(g->list[i].name, name) != 0) i++;
    return i;
}

/* `at` stays with its gateway. */
static void take_out(gateways *g, size_t i)
{
    memmove(&g->list[i], &g->list[i + 1], (--g->n - i) * sizeof g->list[0]);
    if (g->at > i || g->at == g->n) g->at = g->at > 0 ? g->at - 1 : 0;
}

/* The first that was told and is not in use goes, when there is no room. */
static void gateways_make_room(gateways *g)
{
    if (g->n < GATEWAYS_MAX) return;
    size_t i = g->n_given;
    take_out(g, i == g->at ? i + 1 : i);
}

static void gateways_append(gateways *g, const char *name, size_t n_name, const char *address,
                            size_t n_address)
{
    gateways_one *x = &g->list[g->n++];
    *x = (gateways_one){0};
    memcpy(x->name, name, n_name);
    memcpy(x->address, address, n_address);
}

/* ---- by a person --------------------------------------------------------------------------------- */

static int give_one(gateways *g, const char *at, size_t n, shoal_err *err)
{
    char text[GATEWAYS_ADDRESS_SIZE] = "";
    if (n < sizeof text) memcpy(text, at, n);
    if (!gateways_address_ok(text))
        return err_set(err, SHOAL_EINVALID, "'%.*s' is no gateway's cluster port: it is HOST:PORT",
                       (int)(n < 100 ? n : 100), at);
    if (find_address(g, text) < g->n) return 0;
    if (g->n == GATEWAYS_GIVEN_MAX)
        return err_set(err, SHOAL_EINVALID, "at most %d gateways may be given", GATEWAYS_GIVEN_MAX);
    gateways_append(g, "", 0, text, n);
    return 0;
}

int gateways_give(gateways *g, const char *text, shoal_err *err)
{
    static const char BETWEEN[] = ", \t\r\n";
    gateways given = {0};
    for (const char *at = text + strspn(text, BETWEEN); *at; at += strspn(at, BETWEEN)) {
        size_t n = strcspn(at, BETWEEN);
        int rc = give_one(&given, at, n, err);
        if (rc != 0) return rc;
        at += n;
    }
    if (given.n == 0) return err_set(err, SHOAL_EINVALID, "no gateway is named: say HOST:PORT");
    given.n_given = given.n;
    given.roams = g->roams;
    for (size_t i = g->n_given; i < g->n && given.n < GATEWAYS_MAX; i++)
        if (find_address(&given, g->list[i].address) == given.n) given.list[given.n++] = g->list[i];
    *g = given;
    return 0;
}

/* ---- by gateways --------------------------------------------------------------------------------- */

/* True: it is new, or has moved. */
static bool gateways_tell(gateways *g, const char *name, const char *address)
{
    size_t i = find_name(g, name);
    if (!identity_name_ok(name, strlen(name)) || !gateways_address_ok(address)) return false;
    if (find_address(g, address) < g->n || i < g->n_given) return false;
    if (i < g->n) {
        memcpy(g->list[i].address, address, strlen(address) + 1);
        return true;
    }
    gateways_make_room(g);
    gateways_append(g, name, strlen(name), address, strlen(address));
    return true;
}

bool gateways_hear(gateways *g, const Shoal__V1__Gateways *m)
{
    bool changed = false;
    for (size_t i = 0; i < m->n_others && i < GATEWAYS_MAX; i++)
        changed |= gateways_tell(g, m->others[i]->name, m->others[i]->address);
    return changed;
}

bool gateways_settle(gateways *g, const char *address, const char *name)
{
    size_t i = find_address(g, address), n = strlen(name);
    if (i == g->n) return false;
    g->at = i;
    if (!identity_name_ok(name, n) || strcmp(g->list[i].name, name) == 0) return false;
    memcpy(g->list[i].name, name, n + 1);
    for (size_t k = g->n; k-- > g->n_given;)
        if (k != g->at && strcmp(g->list[k].name, name) == 0) take_out(g, k);
    return true;
}

/* ---- the file ------------------------------------------------------------------------------------ */

void gateways_put(const gateways *g, buf *out)
{
    for (size_t i = g->n_given; i < g->n; i++)
        buf_printf(out, "%s %s\n", g->list[i].name, g->list[i].address);
}

static bool parse_line(gateways *g, const char *line, size_t n)
{
    char name[IDENTITY_NAME_SIZE] = "", address[GATEWAYS_ADDRESS_SIZE] = "";
    const char *space = memchr(line, ' ', n);
    size_t n_name = space ? (size_t)(space - line) : n, n_address = n - n_name - (space != NULL);
    if (!space || n_name >= sizeof name || n_address >= sizeof address || memchr(line, '\0', n)) return false;
    memcpy(name, line, n_name);
    memcpy(address, space + 1, n_address);
    if (!identity_name_ok(name, n_name) || !gateways_address_ok(address)) return false;
    gateways_tell(g, name, address);
    return true;
}

int gateways_parse(gateways *g, const char *text, size_t n, shoal_err *err)
{
    gateways read = *g;
    for (size_t at = 0; at < n;) {
        const char *end = memchr(text + at, '\n', n - at);
        if (!end || !parse_line(&read, text + at, (size_t)(end - text) - at))
            return err_set(err, SHOAL_EINVALID, "its lines are no names and addresses of gateways");
        at = (size_t)(end - text) + 1;
    }
    *g = read;
    return 0;
}

int gateways_read(gateways *g, const folder *dir, shoal_err *err)
{
    buf text = {0};
    int rc = folder_read(dir, "gateways", GATEWAYS_TEXT_MAX, false, &text, err);
    if (rc == 0) rc = gateways_parse(g, text.data ? text.data : "", text.len, err);
    buf_done(&text);
    return rc == SHOAL_ENOTFOUND ? 0 : rc == 0 ? 0 : err_prefix(err, rc, "gateways");
}

int gateways_write(const gateways *g, const folder *dir, shoal_err *err)
{
    buf text = {0};
    gateways_put(g, &text);
    int rc = text.failed ? err_nomem(err)
                         : folder_write(dir, "gateways", 0644, text.data ? text.data : "", text.len, err);
    buf_done(&text);
    return rc;
}

/* ---- whose turn it is ---------------------------------------------------------------------------- */

const char *gateways_address(const gateways *g)
{
    return g->list[g->at].address;
}

bool gateways_is_home(const gateways *g)
{
    return g->at == 0;
}

uint64_t gateways_lost(gateways *g, uint64_t lived_ms, double draw)
{
    bool lasted = lived_ms >= GATEWAYS_LASTED_MS;
    size_t n = g->roams ? g->n : g->n_given;
    if (lasted) g->n_failed = 0;
    if (n > 1) g->at = (g->at + 1) % n;
    if (lasted && n > 1) return 0;
    return attach_pause_ms(g->n_failed++, draw);
}
