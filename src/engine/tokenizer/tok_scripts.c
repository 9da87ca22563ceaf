/* tok_scripts.c: the regular expression of the UnicodeScripts pre-tokenizer, from the names of the scripts
 * that its author knew (Unicode 9); characters of later ones belong to every script, as spaces do. */
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "tokenizer/tok_regex.h"

static const char names[] =
    "Adlam Ahom Anatolian_Hieroglyphs Arabic Armenian Avestan Balinese Bamum Bassa_Vah Batak "
    "Bengali Bhaiksuki Bopomofo Brahmi Braille Buginese Buhid Canadian_Aboriginal Carian "
    "Caucasian_Albanian Chakma Cham Cherokee Common Coptic Cuneiform Cypriot Cyrillic Deseret "
    "Devanagari Duployan Egyptian_Hieroglyphs Elbasan Ethiopic Georgian Glagolitic Gothic Grantha "
    "Greek Gujarati Gurmukhi Hangul Hanunoo Hatran Hebrew Imperial_Aramaic Inherited "
    "Inscriptional_Pahlavi Inscriptional_Parthian Javanese Kaithi Kannada Kayah_Li Kharoshthi "
    "Khmer Khojki Khudawadi Lao Latin Lepcha Limbu Linear_A Linear_B Lisu Lycian Lydian Mahajani "
    "Malayalam Mandaic Manichaean Marchen Meetei_Mayek Mende_Kikakui Meroitic_Cursive "
    "Meroitic_Hieroglyphs Miao Modi Mongolian Mro Multani Myanmar Nabataean New_Tai_Lue Newa Nko "
    "Ogham Ol_Chiki Old_Hungarian Old_Italic Old_North_Arabian Old_Permic Old_Persian "
    "Old_South_Arabian Old_Turkic Oriya Osage Osmanya Pahawh_Hmong Palmyrene Pau_Cin_Hau Phags_Pa "
    "Phoenician Psalter_Pahlavi Rejang Runic Samaritan Saurashtra Sharada Shavian Siddham "
    "SignWriting Sinhala Sora_Sompeng Sundanese Syloti_Nagri Syriac Tagalog Tagbanwa Tai_Le "
    "Tai_Tham Tai_Viet Takri Tamil Tangut Telugu Thaana Thai Tibetan Tifinagh Tirhuta Ugaritic Vai "
    "Warang_Citi Yi";

bool tok_scripts_has(const char *name, size_t len)
{
    static const char of_han[] = "Han Hiragana Katakana";
    if (len < 2) return false;
    for (const char *list = names; list; list = list == names ? of_han : NULL)
        for (const char *s = list, *end; *s; s = *end ? end + 1 : end) {
            end = s + strcspn(s, " ");
            if ((size_t)(end - s) == len && !memcmp(s, name, len)) return true;
        }
    return false;
}

/* A character of the class that is no space, then all of the class, of later scripts, and spaces. */
static void put_script(buf *out, const char *class, int len, const char *any)
{
    buf_printf(out, "%s(?![ ])[%.*s](?:[%.*s]|%s)*+", out->len ? "|" : "", len, class, len, class, any);
}

int tok_scripts_compile(tok_regex **ret, const char *what, shoal_err *err)
{
    buf known = {0}, re = {0};
    for (const char *s = names, *end; *s; s = *end ? end + 1 : end) {
        end = s + strcspn(s, " ");
        buf_printf(&known, "\\p{sc:%.*s}", (int)(end - s), s);
    }
    static const char han[] = "\\p{sc:Han}\\p{sc:Hiragana}\\p{sc:Katakana}\\x{30FC}";
    buf any = {0};
    buf_printf(&any, "[ ]|[^%s%s]", known.data ? known.data : "", han);
    put_script(&re, han, (int)sizeof han - 1, any.data ? any.data : "");
    for (const char *s = names, *end; *s; s = *end ? end + 1 : end) {
        char class[64];
        end = s + strcspn(s, " ");
        int n = snprintf(class, sizeof class, "\\p{sc:%.*s}", (int)(end - s), s);
        put_script(&re, class, n, any.data ? any.data : "");
    }
    bool failed = known.failed || any.failed || re.failed;
    int rc = failed ? err_nomem(err) : tok_regex_compile(ret, re.data, re.len, what, err);
    buf_done(&known);
    buf_done(&any);
    buf_done(&re);
    return rc;
}
