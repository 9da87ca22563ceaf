/* hf_config.c: config.json of Hugging Face's transformers; see hf_config.h. */
#include "model/config/hf_config.h"

#include "json/json.h"
#include "model/config/conf.h"
#include "model/model_unknown.h"

int hf_config_read(model_config *ret, const hf_files *files, arena *mem, const char *what, shoal_err *err)
{
    const char *type = NULL;
    if (!json_is_object(files->config)) return err_set(err, SHOAL_EINVALID, "%s: not a JSON object", what);
    int rc = json_get_str(files->config, "model_type", &type, err);
    if (rc != 0) return err_prefix(err, rc, "%s", what);
    if (!type) return err_set(err, SHOAL_EINVALID, "%s: \"model_type\" is missing", what);
    conf s = {
        .def = arch_by_hf(type), .files = files, .json = files->config, .mem = mem, .what = what, .err = err};
    if (!s.def) return model_unknown(what, type, NAME_HF, NULL, 0, err);
    const json_t *text = json_object_get(files->config, "text_config");
    if (s.def->text_config && json_is_object(text)) s.json = text;
    return conf_read(&s, ret);
}
