/* gotemplate.h: a prompt template of Ollama, which is in Go's text/template, as one in Jinja.
 *
 *     {{ range .Messages }}<{{ .Role }}>{{ .Content }}{{ end }}
 *     {%for e1 in go_range(go_field(d, 'Messages'))%}{{'<'}}{{go_print(go_field(e1, 'Role'))}}...{%endfor%}
 *
 * One engine then renders both. What Go and Jinja do differently is in functions of that engine whose names
 * begin with "go_" (src/engine/jinja/jinja_go.h). `d` is the template's data, the namespace `v` has its
 * variables. Line n of the result stands for line n of the template, so that errors of a run name the right
 * one.
 *
 * A template without .Messages is run once a turn, with .System, .Prompt and .Response. Its last turn ends
 * where .Response stands: there the model goes on.
 *
 * The language: https://pkg.go.dev/text/template. Its data and functions: template/template.go of Ollama.
 * `define`, `template` and `block` are refused, and so are the functions call, html, js and urlquery. */
#ifndef GOTEMPLATE_GOTEMPLATE_H
#define GOTEMPLATE_GOTEMPLATE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

enum {
    GOTEMPLATE_MAX_BYTES = 64 << 10,   /* of a template */
    GOTEMPLATE_MAX_RESULT = 256 << 10, /* of what becomes of it; less than JINJA_MAX_SOURCE */
    GOTEMPLATE_MAX_DEPTH = 80, /* blocks and else-ifs count one, parentheses and pipes GOTEMPLATE_PAREN */
    GOTEMPLATE_PAREN = 4,      /* so that what comes of it stays within JINJA_MAX_DEPTH */
    GOTEMPLATE_MAX_ARGS = 12   /* of a function, the piped one included */
};

/* What it looks at. */
typedef struct gotemplate_uses {
    bool messages, tools, thinking, suffix;
    bool response; /* .Response, so that none is added at its end */
} gotemplate_uses;

/* Append the Jinja template to ret. What is no template is SHOAL_EINVALID, what is not offered
 * SHOAL_EUNSUPPORTED, what is too large or nests too deep SHOAL_ELIMIT, each with "line N: "; ret then
 * keeps what it had. ret_uses may be NULL. Any thread. */
int gotemplate_to_jinja(buf *ret, const char *source, size_t len, gotemplate_uses *ret_uses, shoal_err *err);

#endif
