/* tok_json_decoder.c: the decoder of a tokenizer.json: steps of each token alone, then one that depends on
 * its place, then (after "Fuse") what is taken off the whole text. Sequences in another order are refused. */
#include <string.h>

#include "json/json.h"
#include "tokenizer/files/tok_json.h"

enum { MAX_STRIP = 200 };

dec_step *tok_add_dec(tokenizer *t, dec_step_kind kind)
{
    if (t->dec.n_steps == DEC_MAX_STEPS) return NULL;
    dec_step *s = &t->dec.steps[t->dec.n_steps++];
    s->kind = kind;
    return s;
}

static int tok_json_decoder_add(tokenizer *t, dec_step_kind kind, dec_step **ret, const char *what,
                                shoal_err *err)
{
    if (t->dec.kind != DEC_BYTES)
        return err_set(err, SHOAL_EUNSUPPORTED, "%s: a decoder after one that joins words is not supported",
                       what);
    *ret = tok_add_dec(t, kind);
    return *ret ? 0 : err_set(err, SHOAL_ELIMIT, "%s: more than %d decoders", what, DEC_MAX_STEPS);
}

static int replace(tokenizer *t, const json_t *o, const char *what, shoal_err *err)
{
    dec_step *s;
    int rc = tok_json_decoder_add(t, DSTEP_REPLACE, &s, what, err);
    if (rc == 0) rc = tok_json_pattern(t, o, &s->re, &s->from, &s->from_len, what, err);
    if (rc == 0) rc = tok_json_text(t, o, "content", "", &s->to, &s->to_len, what, err);
    if (rc == 0 && t->dec.fused)
        rc = err_set(err, SHOAL_EUNSUPPORTED, "%s: \"Replace\" after \"Fuse\" is not supported", what);
    return rc;
}

static int strip_whole(tokenizer *t, const char *c, size_t start, size_t stop, const char *what,
                       shoal_err *err)
{
    if (strlen(c) != 1 || stop != 0)
        return err_set(err, SHOAL_EUNSUPPORTED,
                       "%s: only leading ASCII characters can be stripped after \"Fuse\"", what);
    t->dec.strip_first = start;
    t->dec.strip_char = c[0];
    return 0;
}

static int strip(tokenizer *t, const json_t *o, const char *what, shoal_err *err)
{
    const char *c = json_string_value(json_object_get(o, "content"));
    int64_t start = 0, stop = 0;
    int rc = json_get_int(o, "start", 0, MAX_STRIP, &start, err);
    if (rc == 0) rc = json_get_int(o, "stop", 0, MAX_STRIP, &stop, err);
    if (rc) return err_prefix(err, rc, "%s", what);
    if (!c || !*c) return err_set(err, SHOAL_EFORMAT, "%s.content: one character is expected", what);
    if (t->dec.fused) return strip_whole(t, c, (size_t)start, (size_t)stop, what, err);
    dec_step *s;
    rc = tok_json_decoder_add(t, DSTEP_STRIP, &s, what, err);
    if (rc) return rc;
    s->start = (size_t)start;
    s->stop = (size_t)stop;
    return tok_json_text(t, o, "content", "", &s->from, &s->from_len, what, err);
}

/* A decoder that depends on where a token stands; there can be one. */
static int place(tokenizer *t, const json_t *o, dec_kind kind, const char *key, const char *def,
                 const char *what, shoal_err *err)
{
    decoder *d = &t->dec;
    bool free_place = d->kind == DEC_BYTES && !d->fused && (d->n_steps == 0 || kind == DEC_METASPACE);
    if (!free_place)
        return err_set(err, SHOAL_EUNSUPPORTED, "%s: this order of decoders is not supported", what);
    d->kind = kind;
    d->cleanup = tok_json_bool(o, "cleanup", true);
    return tok_json_text(t, o, key, def, &d->mark, &d->mark_len, what, err);
}

static int metaspace(tokenizer *t, const json_t *o, const char *what, shoal_err *err)
{
    prepend_scheme scheme;
    int rc = tok_json_scheme(o, &scheme, what, err);
    t->dec.meta_first = rc == 0 && scheme != PREPEND_NEVER;
    return rc ? rc : place(t, o, DEC_METASPACE, "replacement", "\xE2\x96\x81", what, err);
}

static int ctc(tokenizer *t, const json_t *o, const char *what, shoal_err *err)
{
    decoder *d = &t->dec;
    int rc = place(t, o, DEC_CTC, "pad_token", "<pad>", what, err);
    return rc ? rc
              : tok_json_text(t, o, "word_delimiter_token", "|", &d->delimiter, &d->delimiter_len, what, err);
}

int tok_json_decoder(tokenizer *t, const json_t *o, const char *what, shoal_err *err)
{
    const char *type;
    dec_step *s;
    if (!o || json_is_null(o)) return 0;
    int rc = tok_json_type(o, what, &type, err);
    if (rc) return rc;
    if (t->dec.kind == DEC_JOIN) t->dec.kind = DEC_BYTES;
    if (!strcmp(type, "Sequence")) return tok_json_each(t, o, "decoders", tok_json_decoder, what, err);
    if (!strcmp(type, "Replace")) return replace(t, o, what, err);
    if (!strcmp(type, "Strip")) return strip(t, o, what, err);
    if (!strcmp(type, "Metaspace")) return metaspace(t, o, what, err);
    if (!strcmp(type, "CTC")) return ctc(t, o, what, err);
    if (!strcmp(type, "WordPiece")) return place(t, o, DEC_WORDPIECE, "prefix", "##", what, err);
    if (!strcmp(type, "BPEDecoder")) return place(t, o, DEC_BPE, "suffix", "</w>", what, err);
    if (!strcmp(type, "ByteLevel")) return tok_json_decoder_add(t, DSTEP_BYTE_LEVEL, &s, what, err);
    if (!strcmp(type, "ByteFallback")) return tok_json_decoder_add(t, DSTEP_BYTE_FALLBACK, &s, what, err);
    if (strcmp(type, "Fuse"))
        return err_set(err, SHOAL_EUNSUPPORTED, "%s: decoder \"%s\" is not supported", what, type);
    t->dec.fused = true;
    return 0;
}
