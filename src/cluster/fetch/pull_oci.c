/* pull_oci.c: the layers of a manifest (OCI image-spec 1.1, Docker's v2 schema 2, Ollama's); see pull_plan.h.
 */
#include <string.h>

#include "json/json.h"
#include "kinds/model_kind.h"
#include "base/utf8.h"
#include "fetch/pull_plan.h"

enum { LAYERS_MAX = 1000, TEMPLATE_MAX_BYTES = 64 << 10 };

static bool digest_ok(const char *s)
{
    uint8_t bytes[32];
    return s && strncmp(s, "sha256:", 7) == 0 && hex_decode(s + 7, strlen(s + 7), bytes, sizeof bytes);
}

/* What a layer is: a file of its own name, the one model file of Ollama or Docker, its template, or nothing for us. */
typedef enum { LAYER_NONE, LAYER_FILE, LAYER_MODEL, LAYER_TEMPLATE, LAYER_ARCHIVE } layer_kind;

static layer_kind pull_oci_kind_of(const char *media, const char *title)
{
    if (strcmp(media, "application/vnd.ollama.image.model") == 0 || strstr(media, "gguf")) return LAYER_MODEL;
    if (strcmp(media, "application/vnd.ollama.image.template") == 0) return LAYER_TEMPLATE;
    if (strstr(media, "vnd.ollama.")) return LAYER_NONE; /* licence, parameters: not in a form we use */
    if (title && (strstr(media, "tar") && (strstr(media, "+tar") || strstr(media, ".tar"))))
        return LAYER_ARCHIVE;
    return title ? LAYER_FILE : LAYER_NONE;
}

/* A layer as an item; *ret_kind says whether it is one. */
static int read_layer(arena *mem, const json_t *o, const pull_ref *ref, pull_item *ret, layer_kind *ret_kind,
                      shoal_err *err)
{
    const char *media = "", *digest = NULL, *title = NULL;
    int64_t size = -1;
    int rc = json_get_str(o, "mediaType", &media, err);
    if (rc == 0) rc = json_get_str(o, "digest", &digest, err);
    if (rc == 0) rc = json_get_int(o, "size", 0, (int64_t)PULL_SIZE_MAX, &size, err);
    if (rc == 0)
        rc = json_get_str(json_object_get(o, "annotations"), "org.opencontainers.image.title", &title, err);
    if (rc != 0) return rc;
    *ret_kind = pull_oci_kind_of(media, title);
    if (*ret_kind == LAYER_NONE) return 0;
    if (!digest_ok(digest) || size < 0)
        return err_set(err, SHOAL_EPROTOCOL, "a layer of the manifest has no sha256 digest or no size");
    if (*ret_kind == LAYER_ARCHIVE)
        return err_set(err, SHOAL_EUNSUPPORTED, "\"%.100s\" is an archive (%.60s); only files are taken",
                       title, media);
    bool latest = strcmp(ref->tag, "latest") == 0;
    const char *path =
        title ? arena_strdup(mem, title)
              : arena_printf(mem, "%s%s%s.gguf", ref->name, latest ? "" : "-", latest ? "" : ref->tag);
    *ret = (pull_item){.path = path,
                       .source = arena_strdup(mem, digest),
                       .has_size = true,
                       .size = (uint64_t)size,
                       .sha256 = arena_strdup(mem, digest + 7),
                       .sha1 = ""};
    if (!path || !ret->source || !ret->sha256) return err_nomem(err);
    if (!pull_path_ok(path))
        return err_set(err, SHOAL_EPROTOCOL, "a layer wants to be called \"%.100s\"", path);
    return 0;
}

/* Put `it` beside the one file of Ollama's; what has no place is left out. */
static int put_beside(pull_plan *p, const pull_item *it, shoal_err *err)
{
    if (p->n != 1 || it->size > TEMPLATE_MAX_BYTES) return 0;
    pull_item *beside = arena_alloc(p->mem, sizeof *beside);
    const char *path = arena_printf(p->mem, "%s%s", p->items[0].path, MODEL_TEMPLATE_SUFFIX);
    if (!beside || !path) return err_nomem(err);
    *beside = *it;
    beside->path = path;
    if (pull_path_ok(path)) p->beside = beside;
    return 0;
}

static int check_names(const pull_plan *p, shoal_err *err)
{
    for (size_t i = 0; i < p->n; i++)
        for (size_t k = 0; k < i; k++)
            if (strcmp(p->items[i].path, p->items[k].path) == 0)
                return err_set(err, SHOAL_EPROTOCOL, "two layers want to be called \"%.100s\"",
                               p->items[i].path);
    return 0;
}

/* Of an index: its first manifest; images of several machines have nothing for us that would differ. */
static int read_index(arena *mem, const json_t *list, const char **ret, shoal_err *err)
{
    const char *digest = json_string_value(json_object_get(json_array_get(list, 0), "digest"));
    if (!digest_ok(digest)) return err_set(err, SHOAL_EPROTOCOL, "the index lists no manifest");
    *ret = arena_strdup(mem, digest);
    return *ret ? 0 : err_nomem(err);
}

int pull_plan_oci(pull_plan *ret, arena *mem, const json_t *manifest, const pull_ref *ref,
                  const char **ret_index, shoal_err *err)
{
    const json_t *layers = json_object_get(manifest, "layers"),
                 *index = json_object_get(manifest, "manifests");
    size_t n = json_array_size(layers);
    *ret_index = NULL;
    if (!layers && json_is_array(index)) return read_index(mem, index, ret_index, err);
    if (!json_is_array(layers) || n > LAYERS_MAX)
        return err_set(err, SHOAL_EPROTOCOL, "the manifest has no list of layers, or more than %d",
                       LAYERS_MAX);
    pull_plan p = {.mem = mem, .items = arena_alloc(mem, n * sizeof *p.items + 1)};
    pull_item template = {.path = NULL};
    if (!p.items) return err_nomem(err);
    for (size_t i = 0; i < n; i++) {
        layer_kind kind;
        int rc = read_layer(mem, json_array_get(layers, i), ref, &p.items[p.n], &kind, err);
        if (rc != 0) return rc;
        if (kind == LAYER_TEMPLATE) template = p.items[p.n];
        p.n += kind == LAYER_FILE || kind == LAYER_MODEL;
    }
    if (p.n == 0)
        return err_set(err, SHOAL_EUNSUPPORTED,
                       "%.200s holds no model file (no GGUF layer, and no layer with a title)", ref->repo);
    if (p.n > 1) p.folder = ref->name;
    if (template.path && put_beside(&p, &template, err) != 0) return err->code;
    *ret = p;
    return check_names(&p, err);
}
