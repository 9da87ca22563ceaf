#include "formats/captions.h"

#include <inttypes.h>
#include <string.h>

#include "json/json.h"
#include "json/json_put.h"
#include "base/utf8.h"

static const struct {
    const char *name, *type;
} FORMATS[] = {
#define CAPTIONS_ROW(e, name, type) {name, type},
    CAPTIONS_TABLE(CAPTIONS_ROW)
#undef CAPTIONS_ROW
};

const char *captions_name(captions_format f)
{
    return FORMATS[f].name;
}

const char *captions_type(captions_format f)
{
    return FORMATS[f].type;
}

bool captions_parse(const char *name, captions_format *ret)
{
    for (size_t i = 0; i < CAPTIONS_COUNT; i++) {
        if (strcmp(name, FORMATS[i].name) != 0) continue;
        *ret = (captions_format)i;
        return true;
    }
    return false;
}

/* ---- texts ------------------------------------------------------------------------------------------ */

static bool captions_is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Without blanks at both ends. */
static void trim(const char **s, size_t *n)
{
    while (*n > 0 && captions_is_blank((*s)[*n - 1])) (*n)--;
    while (*n > 0 && captions_is_blank(**s)) {
        (*s)++;
        (*n)--;
    }
}

/* U+0000..1F, DEL, the C1 controls, and the separators of lines and paragraphs. */
static bool is_control(uint32_t cp)
{
    return cp < 0x20 || (cp >= 0x7F && cp < 0xA0) || cp == 0x2028 || cp == 0x2029;
}

static const char *escape_of(char c)
{
    switch (c) {
    case '&': return "&amp;";
    case '<': return "&lt;";
    case '>': return "&gt;";
    default: return NULL;
    }
}

/* s as UTF-8; as one line for cues, with WebVTT's escapes when `markup`. */
static void captions_put_text(buf *out, const char *s, size_t n, bool one_line, bool markup)
{
    for (size_t at = 0, len; at < n; at += len) {
        uint32_t cp;
        const char *escape = markup ? escape_of(s[at]) : NULL;
        len = utf8_decode(s + at, n - at, &cp);
        if (len == 0) {
            buf_puts(out, "\xEF\xBF\xBD");
            len = 1;
        } else if (one_line && is_control(cp)) {
            buf_putc(out, ' ');
        } else if (one_line && !markup && s[at] == '>' && at >= 2 && memcmp(s + at - 2, "--", 2) == 0) {
            buf_puts(out, " >");
        } else if (escape) {
            buf_puts(out, escape);
        } else {
            buf_append(out, s + at, len);
        }
    }
}

/* All of the text into `all`; *s[*n] is what counts of it. */
static void whole_text(const transcript *t, buf *all, const char **s, size_t *n)
{
    if (t->text) {
        buf_append(all, t->text, t->text_len);
    } else {
        for (size_t i = 0; i < t->n_segments; i++) buf_append(all, t->segments[i].text, t->segments[i].len);
    }
    *s = all->data ? all->data : "";
    *n = all->len;
    trim(s, n);
}

/* ---- cues ------------------------------------------------------------------------------------------- */

static void put_time(buf *out, int64_t ms, char point)
{
    if (ms < 0) ms = 0;
    buf_printf(out, "%02" PRId64 ":%02d:%02d%c%03d", ms / 3600000, (int)(ms / 60000 % 60),
               (int)(ms / 1000 % 60), point, (int)(ms % 1000));
}

static void put_cues(buf *out, const transcript *t, bool vtt)
{
    size_t number = 0;
    for (size_t i = 0; i < t->n_segments; i++) {
        const caption *c = &t->segments[i];
        const char *s = c->text;
        size_t n = c->len;
        trim(&s, &n);
        if (n == 0) continue;
        number++;
        if (!vtt) buf_printf(out, "%zu\n", number);
        put_time(out, c->start_ms, vtt ? '.' : ',');
        buf_puts(out, " --> ");
        put_time(out, c->end_ms > c->start_ms ? c->end_ms : c->start_ms, vtt ? '.' : ',');
        buf_putc(out, '\n');
        captions_put_text(out, s, n, true, vtt);
        buf_puts(out, "\n\n");
    }
}

/* ---- JSON ------------------------------------------------------------------------------------------- */

static void put_seconds(buf *out, const char *key, int64_t ms)
{
    const char *sign = ms < 0 ? "-" : "";
    uint64_t v = ms < 0 ? 0 - (uint64_t)ms : (uint64_t)ms;
    buf_printf(out, ",\"%s\":%s%" PRIu64 ".%03u", key, sign, v / 1000, (unsigned)(v % 1000));
}

/* JSON has no infinities: 0 stands for what is no number. */
static void put_real(buf *out, const char *key, double v)
{
    buf_printf(out, ",\"%s\":%.9g", key, v - v == 0 ? v : 0.0);
}

/* Of models that are billed by their input's duration, as the reference has it. */
static void put_usage(buf *out, const transcript *t)
{
    buf_puts(out, ",\"usage\":{\"type\":\"duration\"");
    put_seconds(out, "seconds", t->duration_ms);
    buf_putc(out, '}');
}

static void put_segment(buf *out, const caption *c, size_t id)
{
    buf_printf(out, "%s{\"id\":%zu,\"seek\":%" PRId64, id ? "," : "", id, c->seek);
    put_seconds(out, "start", c->start_ms);
    put_seconds(out, "end", c->end_ms);
    json_put_text_n(out, "text", c->text, c->len);
    buf_puts(out, ",\"tokens\":[");
    for (size_t i = 0; i < c->n_ids; i++) buf_printf(out, "%s%" PRIu32, i ? "," : "", c->ids[i]);
    buf_putc(out, ']');
    put_real(out, "temperature", c->temperature);
    put_real(out, "avg_logprob", c->avg_logprob);
    put_real(out, "compression_ratio", c->compression_ratio);
    put_real(out, "no_speech_prob", c->no_speech_prob);
    buf_putc(out, '}');
}

static void put_verbose(buf *out, const transcript *t, const char *text, size_t n)
{
    buf_printf(out, "{\"task\":\"%s\",\"language\":", t->translated ? "translate" : "transcribe");
    if (t->language)
        json_put_string(out, t->language, strlen(t->language));
    else
        buf_puts(out, "null");
    put_seconds(out, "duration", t->duration_ms);
    json_put_text_n(out, "text", text, n);
    buf_puts(out, ",\"segments\":[");
    for (size_t i = 0; i < t->n_segments; i++) put_segment(out, &t->segments[i], i);
    buf_putc(out, ']');
    put_usage(out, t);
    buf_putc(out, '}');
}

int captions_write(buf *out, captions_format f, const transcript *t)
{
    buf all = {0};
    const char *text;
    size_t n;
    whole_text(t, &all, &text, &n);
    switch (f) {
    case CAPTIONS_JSON:
        buf_puts(out, "{\"text\":");
        json_put_string(out, text, n);
        put_usage(out, t);
        buf_putc(out, '}');
        break;
    case CAPTIONS_SRT: put_cues(out, t, false); break;
    case CAPTIONS_VTT:
        buf_puts(out, "WEBVTT\n\n");
        put_cues(out, t, true);
        break;
    case CAPTIONS_VERBOSE_JSON: put_verbose(out, t, text, n); break;
    default:
        captions_put_text(out, text, n, false, false);
        buf_putc(out, '\n');
        break;
    }
    if (all.failed) out->failed = true;
    buf_done(&all);
    return out->failed ? SHOAL_ENOMEM : 0;
}
