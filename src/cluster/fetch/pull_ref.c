/* pull_ref.c: see pull_ref.h. */
#include "fetch/pull_ref.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/utf8.h"

enum { REF_MAX = 2048, PATH_MAX_BYTES = 240, PARTS_MAX = 4 };

/* ---- names --------------------------------------------------------------------------------------------- */

static bool pull_ref_ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), k = strlen(end);
    return n >= k && strcasecmp(s + n - k, end) == 0;
}

/* Control characters are also those of two bytes, 0xC2 0x80 to 0x9F. */
static bool part_ok(const char *s, size_t n)
{
    if (n == 0 || s[0] == '.') return false;
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)s[i];
        bool c1 = i > 0 && (unsigned char)s[i - 1] == 0xC2 && c < 0xA0;
        if (c < 0x20 || c == 0x7F || c == '\\' || c1) return false;
    }
    return true;
}

bool pull_path_ok(const char *path)
{
    size_t len = strlen(path), n_parts = 0;
    if (len == 0 || len > PATH_MAX_BYTES || !utf8_valid(path, len, NULL)) return false;
    for (const char *at = path;; n_parts++) {
        const char *slash = strchr(at, '/');
        if (n_parts == PARTS_MAX || !part_ok(at, slash ? (size_t)(slash - at) : strlen(at))) return false;
        if (!slash) break;
        at = slash + 1;
    }
    return !pull_ref_ends_with(path, ".part") && !pull_ref_ends_with(path, ".part.json") &&
           strcasecmp(path, "models.json") != 0;
}

bool pull_has_word(const char *path, const char *word)
{
    const char *slash = strrchr(path, '/'), *s = slash ? slash + 1 : path;
    size_t n = strlen(word);
    if (n == 0) return false;
    for (const char *at = s; *at; at++) {
        bool before = at == s || strchr("-._", at[-1]);
        if (before && strncasecmp(at, word, n) == 0 && (!at[n] || strchr("-.", at[n]))) return true;
    }
    return false;
}

/* Letters, digits and -._ between slashes: a repository, a tag, a revision. */
static bool plain(const char *s, size_t n, bool slashes)
{
    for (size_t i = 0; i < n; i++) {
        bool slash = s[i] == '/';
        if (slash && (!slashes || i == 0 || i + 1 == n || s[i + 1] == '/')) return false;
        if (s[i] == '.' && i + 1 < n && s[i + 1] == '.') return false;
        if (!slash && !isalnum((unsigned char)s[i]) && !strchr("-._", s[i])) return false;
    }
    return n > 0 && n <= 256 && s[0] != '.' && s[0] != '-';
}

static size_t count_slashes(const char *s)
{
    size_t n = 0;
    for (; *s; s++) n += *s == '/';
    return n;
}

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* ---- kinds --------------------------------------------------------------------------------------------- */

/* ORG/NAME[@REVISION][:FILE] */
static int parse_hf(pull_ref *r, arena *mem, const char *s, shoal_err *err)
{
    size_t repo = strcspn(s, "@:");
    const char *rest = s + repo;
    r->repo = arena_strndup(mem, s, repo);
    r->tag = arena_strdup(mem, "main");
    if (*rest == '@') {
        size_t n = strcspn(++rest, ":");
        if (!plain(rest, n, true)) return err_set(err, SHOAL_EINVALID, "\"@%.100s\" is no revision", rest);
        r->tag = arena_strndup(mem, rest, n);
        rest += n;
    }
    if (*rest == ':') r->file = arena_strdup(mem, rest + 1);
    if (!r->repo || !r->tag || (*rest == ':' && !r->file)) return err_nomem(err);
    if (!plain(r->repo, repo, true) || count_slashes(r->repo) > 1)
        return err_set(err, SHOAL_EINVALID,
                       "\"hf:%.200s\" names no repository; try: hf:ORG/NAME or hf:ORG/NAME:FILE", s);
    if (r->file && !pull_path_ok(r->file))
        return err_set(err, SHOAL_EINVALID, "\"%.100s\" can be no file of a repository", r->file);
    r->name = last_part(r->repo);
    return 0;
}

static bool host_ok(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)s[i]) && !strchr("-.:[]", s[i])) return false;
    return n > 0 && n <= 255;
}

static bool digest_ok(const char *s)
{
    uint8_t bytes[32];
    return strncmp(s, "sha256:", 7) == 0 && strlen(s) == 71 && hex_decode(s + 7, 64, bytes, sizeof bytes);
}

/* REPOSITORY[:TAG | @sha256:HEX] */
static int parse_repository(pull_ref *r, arena *mem, const char *s, shoal_err *err)
{
    size_t repo = strcspn(s, ":@");
    const char *rest = s + repo;
    r->repo = arena_strndup(mem, s, repo);
    r->tag = arena_strdup(mem, *rest == ':' ? rest + 1 : "latest");
    if (*rest == '@') r->digest = arena_strdup(mem, rest + 1);
    if (!r->repo || !r->tag || (*rest == '@' && !r->digest)) return err_nomem(err);
    if (!plain(r->repo, repo, true)) return err_set(err, SHOAL_EINVALID, "\"%.200s\" names no repository", s);
    if (!plain(r->tag, strlen(r->tag), false))
        return err_set(err, SHOAL_EINVALID, "\"%.100s\" is no tag", r->tag);
    if (r->digest && !digest_ok(r->digest))
        return err_set(err, SHOAL_EINVALID,
                       "\"%.100s\" is no digest; it is sha256: and 64 hexadecimal digits", r->digest);
    r->name = last_part(r->repo);
    return 0;
}

/* [HOST/][USER/]NAME[:TAG]: what has a dot or a colon before its first slash is a host. */
static int parse_ollama(pull_ref *r, arena *mem, const char *s, shoal_err *err)
{
    size_t first = strcspn(s, "/");
    if (s[first] && (memchr(s, '.', first) || memchr(s, ':', first) || strncmp(s, "localhost/", 10) == 0)) {
        if (!host_ok(s, first)) return err_set(err, SHOAL_EINVALID, "\"%.100s\" names no registry", s);
        if (!(r->host = arena_strndup(mem, s, first))) return err_nomem(err);
        s += first + 1;
    }
    int rc = parse_repository(r, mem, s, err);
    if (rc == 0 && !strchr(r->repo, '/')) {
        r->repo = arena_printf(mem, "library/%s", r->repo);
        if (!r->repo) return err_nomem(err);
        r->name = last_part(r->repo);
    }
    return rc;
}

static int parse_oci(pull_ref *r, arena *mem, const char *s, shoal_err *err)
{
    size_t host = strcspn(s, "/");
    if (!s[host] || !host_ok(s, host))
        return err_set(err, SHOAL_EINVALID,
                       "\"oci://%.200s\" names no registry and repository; try: oci://HOST/REPOSITORY:TAG",
                       s);
    if (!(r->host = arena_strndup(mem, s, host))) return err_nomem(err);
    return parse_repository(r, mem, s + host + 1, err);
}

/* https://huggingface.co/ORG/NAME[/(blob|resolve|tree)/REVISION[/FILE]] as hf: says it; NULL when it is none.
 */
static const char *page_of_hf(arena *mem, const char *url)
{
    static const char *const hosts[] = {"https://huggingface.co/", "https://hf.co/"};
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) {
        size_t n = strlen(hosts[i]);
        if (strncmp(url, hosts[i], n) != 0) continue;
        const char *repo = url + n, *end = strchr(repo, '/');
        if (!end) return NULL;
        size_t len = (size_t)(end - repo) + 1 + strcspn(end + 1, "/?#");
        const char *rest = repo + len;
        if (*rest != '/') return arena_printf(mem, "%.*s", (int)len, repo);
        rest += 1 + strcspn(rest + 1, "/"); /* blob, resolve or tree */
        size_t rev = *rest ? strcspn(rest + 1, "/?#") : 0;
        if (rev == 0) return arena_printf(mem, "%.*s", (int)len, repo);
        const char *file = rest + 1 + rev;
        size_t file_len = *file == '/' ? strcspn(file + 1, "?#") : 0;
        return arena_printf(mem, "%.*s@%.*s%s%.*s", (int)len, repo, (int)rev, rest + 1, file_len ? ":" : "",
                            (int)file_len, file_len ? file + 1 : "");
    }
    return NULL;
}

/* The last part of a URL's path, percent signs decoded. */
static const char *name_of_url(arena *mem, const char *url)
{
    const char *start = strstr(url, "://") + 3, *path = start + strcspn(start, "/?#"),
               *end = path + strcspn(path, "?#");
    const char *at = end;
    while (at > path && at[-1] != '/') at--;
    char *name = arena_strndup(mem, at, (size_t)(end - at)), *to = name;
    for (const char *p = name; p && *p; p++) {
        uint8_t byte;
        bool coded = *p == '%' && hex_decode(p + 1, strnlen(p + 1, 2), &byte, 1);
        *to++ = coded ? (char)byte : *p;
        if (coded) p += 2;
    }
    if (to) *to = '\0';
    return name;
}

static int parse_url(pull_ref *r, arena *mem, const char *text, shoal_err *err)
{
    const char *hf = page_of_hf(mem, text);
    if (hf) {
        r->kind = PULL_HF;
        return parse_hf(r, mem, hf, err);
    }
    r->url = arena_strdup(mem, text);
    r->name = name_of_url(mem, text);
    if (!r->url || !r->name) return err_nomem(err);
    if (!pull_path_ok(r->name) || strchr(r->name, '/'))
        return err_set(err, SHOAL_EINVALID, "%.300s does not end in a file's name", text);
    return 0;
}

int pull_ref_parse(pull_ref *ret, arena *mem, const char *text, shoal_err *err)
{
    static const struct {
        const char *prefix;
        pull_kind kind;
        bool whole; /* the prefix is part of it */
        int (*parse)(pull_ref *, arena *, const char *, shoal_err *);
    } kinds[] = {
        {"hf:", PULL_HF, false, parse_hf},      {"ollama:", PULL_OLLAMA, false, parse_ollama},
        {"oci://", PULL_OCI, false, parse_oci}, {"https://", PULL_URL, true, parse_url},
        {"http://", PULL_URL, true, parse_url},
    };
    size_t len = strlen(text);
    if (len > REF_MAX || !utf8_valid(text, len, NULL))
        return err_set(err, SHOAL_EINVALID, "that is no reference to a model");
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strncmp(text, kinds[i].prefix, strlen(kinds[i].prefix)) != 0) continue;
        pull_ref r = {.kind = kinds[i].kind};
        int rc = kinds[i].parse(&r, mem, kinds[i].whole ? text : text + strlen(kinds[i].prefix), err);
        if (rc == 0) *ret = r;
        return rc;
    }
    return err_set(err, SHOAL_EINVALID,
                   "\"%.100s\" does not say where it is; try: hf:ORG/NAME, ollama:NAME, oci://HOST/NAME:TAG "
                   "or https://HOST/FILE",
                   text);
}
