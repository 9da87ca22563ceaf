/* manifest.c: see manifest.h. */
#include "backup/manifest.h"

#include <stdio.h>
#include <string.h>

#include "json/json.h"
#include "json/json_put.h"

static int manifest_wrong(shoal_err *err, const char *what, const char *why)
{
    return err_set(err, SHOAL_EFORMAT, "%s: %s", what, why);
}

/* An entry's name, as a file of ours. */
static int manifest_item(backup_id *ret, const json_t *name, const char *what, shoal_err *err)
{
    if (!json_is_string(name)) return manifest_wrong(err, what, "a file has no name");
    *ret = backup_item_find(json_string_value(name), json_string_length(name));
    if (*ret < BACKUP_N_ITEMS) return 0;
    return err_set(err, SHOAL_EFORMAT, "%s: no backup has a file '%.80s'", what, json_string_value(name));
}

static bool manifest_nibble(char c, uint8_t *ret)
{
    if (c >= '0' && c <= '9')
        *ret = (uint8_t)(c - '0');
    else if (c >= 'a' && c <= 'f')
        *ret = (uint8_t)(c - 'a' + 10);
    else
        return false;
    return true;
}

static bool manifest_digest(sha256_digest *ret, const json_t *hex)
{
    const char *s = json_string_value(hex);
    if (!s || json_string_length(hex) != 64) return false;
    for (size_t i = 0; i < 32; i++) {
        uint8_t high, low;
        if (!manifest_nibble(s[2 * i], &high) || !manifest_nibble(s[2 * i + 1], &low)) return false;
        ret->bytes[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

static int manifest_read_file(manifest *m, const json_t *o, const char *what, shoal_err *err)
{
    backup_id id;
    manifest_file f = {.is_in = true};
    const json_t *bytes = json_object_get(o, "bytes");
    int rc = manifest_item(&id, json_object_get(o, "name"), what, err);
    if (rc != 0) return rc;
    if (m->files[id].is_in || m->files[id].left_out)
        return err_set(err, SHOAL_EFORMAT, "%s: it names %s twice", what, BACKUP_ITEMS[id].name);
    if (!json_is_integer(bytes) || json_integer_value(bytes) < 0)
        return err_set(err, SHOAL_EFORMAT, "%s: 'bytes' of %s is no size", what, BACKUP_ITEMS[id].name);
    f.bytes = (uint64_t)json_integer_value(bytes);
    if (!manifest_digest(&f.digest, json_object_get(o, "sha256")))
        return err_set(err, SHOAL_EFORMAT, "%s: 'sha256' of %s is no digest", what, BACKUP_ITEMS[id].name);
    m->files[id] = f;
    return 0;
}

static int manifest_read_left_out(manifest *m, const json_t *name, const char *what, shoal_err *err)
{
    backup_id id;
    int rc = manifest_item(&id, name, what, err);
    if (rc == 0) m->files[id].left_out = true;
    return rc;
}

/* "before-restore-DATE": a name in the state folder. */
static bool manifest_is_aside(const char *s)
{
    static const char START[] = "before-restore-";
    return strlen(s) < MANIFEST_ASIDE_SIZE && strncmp(s, START, sizeof START - 1) == 0 &&
           s[strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789TZ-")] == '\0';
}

/* An empty or missing text leaves ret as it was. */
static int manifest_text(char *ret, size_t size, const json_t *o, const char *key, const char *what,
                         shoal_err *err)
{
    const char *s = NULL;
    shoal_err why;
    if (json_get_str(o, key, &s, &why) != 0) return err_set(err, SHOAL_EFORMAT, "%s: %s", what, why.message);
    if (s && strlen(s) >= size) return err_set(err, SHOAL_EFORMAT, "%s: '%s' is too long", what, key);
    buf_copy_str(ret, size, s);
    return 0;
}

static int manifest_check_format(const json_t *o, const char *what, shoal_err *err)
{
    const json_t *format = json_object_get(o, "shoal_backup");
    if (!json_is_integer(format) || json_integer_value(format) < 1)
        return manifest_wrong(err, what, "it is no manifest of a backup");
    if (json_integer_value(format) <= MANIFEST_FORMAT) return 0;
    return err_set(
        err, SHOAL_EUNSUPPORTED,
        "%s: a newer Shoal made this backup (format %lld, this one knows %d): restore it with that version",
        what, (long long)json_integer_value(format), MANIFEST_FORMAT);
}

static int manifest_read(manifest *m, const json_t *o, const char *what, shoal_err *err)
{
    const json_t *files = json_object_get(o, "files"), *left_out = json_object_get(o, "left_out"),
                 *created = json_object_get(o, "created"), *one;
    size_t i;
    int rc = manifest_check_format(o, what, err);
    if (rc == 0 && !json_is_array(files)) rc = manifest_wrong(err, what, "'files' is no list");
    if (rc == 0 && left_out && !json_is_array(left_out))
        rc = manifest_wrong(err, what, "'left_out' is no list");
    if (rc == 0 && !json_is_integer(created)) rc = manifest_wrong(err, what, "'created' is no time");
    if (rc == 0) m->created = json_integer_value(created);
    if (rc == 0) rc = manifest_text(m->version, sizeof m->version, o, "version", what, err);
    if (rc == 0) rc = manifest_text(m->aside, sizeof m->aside, o, "aside", what, err);
    if (rc == 0) rc = manifest_text(m->places, sizeof m->places, o, "places", what, err);
    if (rc == 0 && *m->aside && !manifest_is_aside(m->aside))
        rc = manifest_wrong(err, what, "'aside' is no such folder");
    if (rc != 0) return rc;
    json_array_foreach(left_out, i, one)
    {
        if ((rc = manifest_read_left_out(m, one, what, err)) != 0) return rc;
    }
    json_array_foreach(files, i, one)
    {
        if ((rc = manifest_read_file(m, one, what, err)) != 0) return rc;
    }
    return 0;
}

int manifest_parse(manifest *ret, const char *text, size_t n, const char *what, shoal_err *err)
{
    json_t *o = NULL;
    manifest m = {0};
    int rc = json_parse(&o, text, n, what, err);
    if (rc != 0 && rc != SHOAL_ENOMEM)
        return err_set(err, SHOAL_EFORMAT, "%s: it is no manifest of a backup", what);
    if (rc == 0) rc = manifest_read(&m, o, what, err);
    json_decref(o);
    if (rc == 0) *ret = m;
    return rc;
}

/* ---- writing ------------------------------------------------------------------------------------- */

static void manifest_put_file(buf *out, backup_id id, const manifest_file *f)
{
    char hex[65];
    sha256_hex(&f->digest, hex);
    json_put_open(out, NULL, '{');
    json_put_text(out, "name", BACKUP_ITEMS[id].name);
    json_put_integer(out, "bytes", (int64_t)f->bytes);
    json_put_text(out, "sha256", hex);
    buf_putc(out, '}');
}

void manifest_put(const manifest *m, buf *out)
{
    buf_putc(out, '{');
    json_put_integer(out, "shoal_backup", MANIFEST_FORMAT);
    json_put_text(out, "version", m->version);
    json_put_integer(out, "created", m->created);
    json_put_filled(out, "aside", m->aside);
    json_put_filled(out, "places", m->places);
    json_put_open(out, "left_out", '[');
    for (int i = 0; i < BACKUP_N_ITEMS; i++)
        if (m->files[i].left_out) json_put_text(out, NULL, BACKUP_ITEMS[i].name);
    buf_puts(out, "]");
    json_put_open(out, "files", '[');
    for (int i = 0; i < BACKUP_N_ITEMS; i++)
        if (m->files[i].is_in) manifest_put_file(out, (backup_id)i, &m->files[i]);
    buf_puts(out, "]}\n");
}

bool manifest_same(const manifest *a, const manifest *b)
{
    bool same = a->created == b->created;
    for (int i = 0; i < BACKUP_N_ITEMS; i++) {
        const manifest_file *x = &a->files[i], *y = &b->files[i];
        same = same && x->is_in == y->is_in && x->left_out == y->left_out && x->bytes == y->bytes &&
               memcmp(&x->digest, &y->digest, sizeof x->digest) == 0;
    }
    return same;
}
