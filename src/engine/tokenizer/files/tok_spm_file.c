/* tok_spm_file.c: reading a SentencePiece .model; see tok_spm.h. Field numbers are those of
 * sentencepiece_model.proto (google/sentencepiece). */
#include <string.h>

#include "base/proto_wire.h"
#include "tokenizer/tok_spm.h"

enum {
    MODEL_PIECES = 1,
    MODEL_TRAINER = 2,
    MODEL_NORMALIZER = 3,
    PIECE_TEXT = 1,
    PIECE_SCORE = 2,
    PIECE_TYPE = 3,
    TRAINER_TYPE = 3,
    TRAINER_SUFFIX = 24,
    TRAINER_UNK = 40,
    TRAINER_BOS = 41,
    TRAINER_EOS = 42,
    NORM_MAP = 2,
    NORM_DUMMY = 3,
    NORM_REMOVE = 4,
    NORM_ESCAPE = 5,
};

typedef struct spm_reader {
    spm_vocab *v;
    size_t cap;
    const char *what;
    shoal_err *err;
} spm_reader;

static int malformed(const spm_reader *r, const char *part)
{
    return err_set(r->err, SHOAL_EFORMAT, "%s: not a SentencePiece model: %s is malformed", r->what, part);
}

static float as_float(uint64_t bits)
{
    uint32_t low = (uint32_t)bits;
    float v;
    memcpy(&v, &low, sizeof v);
    return v == v ? v : 0;
}

static int read_piece(spm_reader *r, cur c)
{
    spm_piece p = {.type = SPM_NORMAL};
    proto_item f;
    int rc;
    while ((rc = proto_next(&c, &f)) > 0) {
        if (f.number == PIECE_TEXT && f.wire == PROTO_BYTES) {
            p.text = (const char *)f.bytes;
            p.len = f.n;
        } else if (f.number == PIECE_SCORE && f.wire == PROTO_FIXED32) {
            p.score = as_float(f.value);
        } else if (f.number == PIECE_TYPE && f.wire == PROTO_VARINT) {
            if (f.value < SPM_NORMAL || f.value > SPM_BYTE) return malformed(r, "a piece's type");
            p.type = (spm_type)f.value;
        }
    }
    if (rc || !p.text) return malformed(r, "a piece");
    if (r->v->n == r->cap)
        return err_set(r->err, SHOAL_ELIMIT, "%s: more than %d pieces", r->what, TOK_MAX_TOKENS);
    r->v->pieces[r->v->n++] = p;
    return 0;
}

static int read_trainer(spm_reader *r, cur c)
{
    enum { UNIGRAM = 1, BPE = 2 };
    proto_item f;
    int rc;
    while ((rc = proto_next(&c, &f)) > 0) {
        if (f.wire != PROTO_VARINT) continue;
        int32_t id = f.value <= TOK_MAX_ID ? (int32_t)f.value : -1;
        switch (f.number) {
        case TRAINER_TYPE:
            if (f.value != UNIGRAM && f.value != BPE)
                return err_set(r->err, SHOAL_EUNSUPPORTED,
                               "%s: a SentencePiece model of %s is not supported (unigram and bpe are)",
                               r->what,
                               f.value == 3   ? "words"
                               : f.value == 4 ? "characters"
                                              : "an unknown type");
            r->v->bpe = f.value == BPE;
            break;
        case TRAINER_SUFFIX: r->v->spaces.suffix = f.value != 0; break;
        case TRAINER_UNK: r->v->unk = id; break;
        case TRAINER_BOS: r->v->bos = id; break;
        case TRAINER_EOS: r->v->eos = id; break;
        default: break;
        }
    }
    return rc ? malformed(r, "the trainer's part") : 0;
}

static int read_normalizer(spm_reader *r, cur c)
{
    proto_item f;
    int rc;
    while ((rc = proto_next(&c, &f)) > 0) {
        if (f.number == NORM_MAP && f.wire == PROTO_BYTES) {
            r->v->charsmap = f.bytes;
            r->v->charsmap_len = f.n;
        }
        if (f.wire != PROTO_VARINT) continue;
        if (f.number == NORM_DUMMY) r->v->spaces.dummy = f.value != 0;
        if (f.number == NORM_REMOVE) r->v->spaces.remove_extra = f.value != 0;
        if (f.number == NORM_ESCAPE && f.value == 0)
            return err_set(r->err, SHOAL_EUNSUPPORTED,
                           "%s: a SentencePiece model without escape_whitespaces is not supported", r->what);
    }
    return rc ? malformed(r, "the normalizer's part") : 0;
}

static int read_part(spm_reader *r, const proto_item *f)
{
    if (f->wire != PROTO_BYTES) return 0;
    cur part = cur_over(f->bytes, f->n);
    switch (f->number) {
    case MODEL_PIECES: return read_piece(r, part);
    case MODEL_TRAINER: return read_trainer(r, part);
    case MODEL_NORMALIZER: return read_normalizer(r, part);
    default: return 0;
    }
}

static size_t count_pieces(cur c)
{
    proto_item f;
    size_t n = 0;
    while (n < TOK_MAX_TOKENS && proto_next(&c, &f) > 0) n += f.number == MODEL_PIECES;
    return n;
}

/* An id out of the file, or whose piece is of another type, is none. */
static int32_t checked(const spm_vocab *v, int32_t id, spm_type type)
{
    return id >= 0 && (size_t)id < v->n && v->pieces[id].type == type ? id : -1;
}

int tok_spm_parse(spm_vocab *ret, arena *mem, const void *data, size_t len, size_t spare, const char *what,
                  shoal_err *err)
{
    spm_vocab v = {.spaces = {.dummy = true, .remove_extra = true}, .unk = 0, .bos = 1, .eos = 2};
    spm_reader r = {.v = &v, .what = what, .err = err};
    cur c = cur_over(data, len);
    r.cap = count_pieces(c);
    v.pieces = arena_alloc(mem, (r.cap + spare + 1) * sizeof *v.pieces);
    if (!v.pieces) return err_nomem(err);
    proto_item f;
    int rc;
    while ((rc = proto_next(&c, &f)) > 0) {
        rc = read_part(&r, &f);
        if (rc) return rc;
    }
    if (rc || v.n == 0) return malformed(&r, v.n ? "a field" : "the list of pieces");
    v.unk = checked(&v, v.unk, SPM_UNKNOWN);
    for (size_t i = 0; v.unk < 0 && i < v.n; i++)
        if (v.pieces[i].type == SPM_UNKNOWN) v.unk = (int32_t)i;
    v.bos = checked(&v, v.bos, SPM_CONTROL);
    v.eos = checked(&v, v.eos, SPM_CONTROL);
    *ret = v;
    return 0;
}
