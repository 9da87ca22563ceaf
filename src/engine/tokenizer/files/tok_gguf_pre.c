/* tok_gguf_pre.c: what the names of tokenizer.ggml.pre stand for.
 *
 * GGUF does not carry a vocabulary's pre-tokenizer, only a name that its converter knew the vocabulary by.
 * The names, and the regular expressions that split one after the other, are facts of the field: those of the
 * models' own tokenizer.json, checked against the list in ggml-org/llama.cpp (src/llama-vocab.cpp). Where
 * that list rewrites an expression for its own engine (tekken, gpt-4o, kimi-k2), the model's own is here. A
 * name that is not here is refused: another way to split would be silently wrong. */
#include <string.h>

#include "tokenizer/files/tok_gguf.h"

#define CONTRACTION "(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
#define SPACES      "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define WORD        "[^\\r\\n\\p{L}\\p{N}]?\\p{L}+"
#define REST        " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*"
#define UPPER       "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER       "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define CASES(end) \
    "[^\\r\\n\\p{L}\\p{N}]?" UPPER "*" LOWER "+" end "|[^\\r\\n\\p{L}\\p{N}]?" UPPER "+" LOWER "*" end
#define ASCII_PUNCT "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~]"

#define LLAMA3 CONTRACTION "|" WORD "|\\p{N}{1,3}|" REST "|" SPACES
#define QWEN2  CONTRACTION "|" WORD "|\\p{N}|" REST "|" SPACES
#define GPT4O  CASES(CONTRACTION "?") "|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|" SPACES
#define TEKKEN CASES("") "|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|" SPACES
#define BLOOM  " ?[^(\\s|.,!?\\x{2026}\\x{3002}\\x{FF0C}\\x{3001}\\x{964}\\x{6D4}\\x{60C})]+"
#define CJK    "[\\x{4E00}-\\x{9FA5}\\x{3040}-\\x{309F}\\x{30A0}-\\x{30FF}]+"
#define DEEPSEEK3 \
    ASCII_PUNCT "[A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\\r\\n]*|" SPACES
#define DEEPSEEK_CJK "[\\x{4E00}-\\x{9FA5}\\x{800}-\\x{4E00}\\x{AC00}-\\x{D7FF}]+"
#define QWEN35 \
    CONTRACTION "|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|" SPACES
#define KIMI_UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]"
#define KIMI_LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]"
#define KIMI                                                                       \
    "[\\p{Han}]+|[^\\r\\n\\p{L}\\p{N}]?" KIMI_UPPER "*" KIMI_LOWER "+" CONTRACTION \
    "?|[^\\r\\n\\p{L}\\p{N}]?" KIMI_UPPER "+" KIMI_LOWER "*" CONTRACTION "?|\\p{N}{1,3}|" REST "|" SPACES
#define YOUTU                                                                                             \
    "[\\x{AC00}-\\x{D7A3}\\x{3131}-\\x{318E}]+|[\\x{FF01}\\x{2026}\\x{201C}\\x{201D}\\x{2018}\\x{2019}"   \
    "\\x{2014}\\x{FF1A}\\x{FF1B}\\x{FF0C}\\x{3001}-\\x{303F}\\x{FE30}-\\x{FE4F}]+|[\\x{3105}-\\x{312F}]+" \
    "|" CJK
/* Letters with case, as the authors of deepseek-llm listed them. */
#define CASED                                                                                      \
    "A-Za-z\\x{B5}\\x{C0}-\\x{D6}\\x{D8}-\\x{F6}\\x{F8}-\\x{1BA}\\x{1BC}-\\x{1BF}"                 \
    "\\x{1C4}-\\x{293}\\x{295}-\\x{2AF}\\x{370}-\\x{373}\\x{376}\\x{377}\\x{37B}-\\x{37D}\\x{37F}" \
    "\\x{386}\\x{388}-\\x{38A}\\x{38C}\\x{38E}-\\x{3A1}\\x{3A3}-\\x{3F5}\\x{3F7}-\\x{481}"         \
    "\\x{48A}-\\x{52F}\\x{531}-\\x{556}\\x{10A0}-\\x{10C5}\\x{13A0}-\\x{13F5}\\x{13F8}-\\x{13FD}"  \
    "\\x{1C90}-\\x{1CBA}\\x{1CBD}-\\x{1CBF}\\x{1D00}-\\x{1D2B}\\x{1D6B}-\\x{1D77}"                 \
    "\\x{1D79}-\\x{1D9A}\\x{1E00}-\\x{1F15}\\x{1F18}-\\x{1F1D}\\x{1F20}-\\x{1F45}"                 \
    "\\x{1F48}-\\x{1F4D}\\x{1F50}-\\x{1F57}\\x{1F59}\\x{1F5B}\\x{1F5D}\\x{1F5F}-\\x{1F7D}"         \
    "\\x{1F80}-\\x{1FB4}\\x{1FB6}-\\x{1FBC}\\x{1FBE}\\x{1FC2}-\\x{1FC4}\\x{1FC6}-\\x{1FCC}"        \
    "\\x{1FD0}-\\x{1FD3}\\x{1FD6}-\\x{1FDB}\\x{1FE0}-\\x{1FEC}\\x{1FF2}-\\x{1FF4}"                 \
    "\\x{1FF6}-\\x{1FFC}\\x{2102}\\x{2107}\\x{210A}-\\x{2113}\\x{2115}\\x{2119}-\\x{211D}"         \
    "\\x{2124}\\x{2126}\\x{2128}\\x{212A}-\\x{212D}\\x{212F}-\\x{2134}\\x{2139}"                   \
    "\\x{213C}-\\x{213F}\\x{2145}-\\x{2149}\\x{214E}\\x{2183}\\x{2184}\\x{2C00}-\\x{2C7B}"         \
    "\\x{2C7E}-\\x{2CE4}\\x{2CEB}-\\x{2CEE}\\x{2CF2}\\x{2CF3}\\x{A640}-\\x{A66D}"                  \
    "\\x{A680}-\\x{A69B}\\x{A722}-\\x{A76F}\\x{A771}-\\x{A787}\\x{A78B}-\\x{A78E}"                 \
    "\\x{AB70}-\\x{ABBF}\\x{FB00}-\\x{FB06}\\x{FB13}-\\x{FB17}\\x{FF21}-\\x{FF3A}"                 \
    "\\x{FF41}-\\x{FF5A}\\x{10400}-\\x{1044F}\\x{104B0}-\\x{104D3}\\x{104D8}-\\x{104FB}"           \
    "\\x{10C80}-\\x{10CB2}\\x{10CC0}-\\x{10CF2}\\x{118A0}-\\x{118DF}\\x{1E900}-\\x{1E943}"

static const tok_pre_name names[] = {
    {"default", 0, {"[\\p{P}\\$\\+<=>\\^~\\|]+", TOK_GPT2_REGEX, "\\p{N}+", "[0-9][0-9][0-9]"}},
    {"gpt-2", 0, {TOK_GPT2_REGEX}},
    {"gpt2", 0, {TOK_GPT2_REGEX}},
    {"phi-2", 0, {TOK_GPT2_REGEX}},
    {"mpt", 0, {TOK_GPT2_REGEX}},
    {"olmo", 0, {TOK_GPT2_REGEX}},
    {"jais", 0, {TOK_GPT2_REGEX}},
    {"jina-es", 0, {TOK_GPT2_REGEX}},
    {"jina-de", 0, {TOK_GPT2_REGEX}},
    {"jina-v2-es", 0, {TOK_GPT2_REGEX}},
    {"jina-v2-de", 0, {TOK_GPT2_REGEX}},
    {"gigachat", 0, {TOK_GPT2_REGEX}},
    {"a.x-4.0", 0, {TOK_GPT2_REGEX}},
    {"mellum", 0, {TOK_GPT2_REGEX}},
    {"modern-bert", 0, {TOK_GPT2_REGEX}},
    {"exaone4", 0, {TOK_GPT2_REGEX}},
    {"trillion", 0, {TOK_GPT2_REGEX}},
    {"granite-docling", 0, {TOK_GPT2_REGEX}},
    {"jina-en", 0, {TOK_GPT2_REGEX}},
    {"roberta-bpe", PRE_ADD_BOS | PRE_ROBERTA, {TOK_GPT2_REGEX}},
    {"jina-v1-en", PRE_ROBERTA, {TOK_GPT2_REGEX}},
    {"jina-v2-code", PRE_ROBERTA, {TOK_GPT2_REGEX}},
    {"llama-bpe", PRE_IGNORE_MERGES | PRE_ADD_BOS, {LLAMA3}},
    {"llama3", PRE_IGNORE_MERGES | PRE_ADD_BOS, {LLAMA3}},
    {"llama-v3", PRE_IGNORE_MERGES | PRE_ADD_BOS, {LLAMA3}},
    {"falcon3", PRE_IGNORE_MERGES | PRE_ADD_BOS, {LLAMA3}},
    {"falcon-h1", PRE_IGNORE_MERGES | PRE_ADD_BOS, {LLAMA3}},
    {"pixtral", PRE_IGNORE_MERGES | PRE_ADD_BOS, {LLAMA3}},
    {"midm-2.0", PRE_IGNORE_MERGES | PRE_ADD_BOS, {LLAMA3}},
    {"lfm2", PRE_IGNORE_MERGES | PRE_ADD_BOS, {LLAMA3}},
    {"jina-v5-nano", PRE_IGNORE_MERGES | PRE_ADD_BOS, {LLAMA3}},
    {"dbrx", 0, {LLAMA3}},
    {"smaug-bpe", 0, {LLAMA3}},
    {"chatglm-bpe", 0, {LLAMA3}},
    {"glm4", 0, {LLAMA3}},
    {"minicpm5", PRE_IGNORE_MERGES, {"\\p{N}{1,3}", CONTRACTION "|" WORD "|\\p{N}+|" REST "|" SPACES}},
    {"qwen2", 0, {QWEN2}},
    {"deepseek-r1-qwen", 0, {QWEN2}},
    {"kormo", 0, {QWEN2}},
    {"f2llmv2", 0, {QWEN2}},
    {"stablelm2", 0, {QWEN2}},
    {"hunyuan", 0, {QWEN2}},
    {"solar-open", 0, {QWEN2}},
    {"megrez", 0, {QWEN2}},
    {"grok-2", 0, {QWEN2}},
    {"qwen35", 0, {QWEN35}},
    {"laguna", 0, {"[^\\n]+|[\\n]+", QWEN2}},
    {"ufakzeka", 0, {WORD "|\\p{N}|" REST "|" SPACES}},
    {"smollm", 0, {"\\p{N}", TOK_GPT2_REGEX}},
    {"starcoder", 0, {"\\p{N}", TOK_GPT2_REGEX}},
    {"refact", 0, {"\\p{N}", TOK_GPT2_REGEX}},
    {"command-r", 0, {"\\p{N}", TOK_GPT2_REGEX}},
    {"codeshell", 0, {"\\p{N}", TOK_GPT2_REGEX}},
    {"exaone", 0, {"\\p{N}", TOK_GPT2_REGEX}},
    {"minerva-7b", 0, {"\\p{N}", TOK_GPT2_REGEX}},
    {"mellum2", 0, {"\\p{N}", TOK_GPT2_REGEX}},
    {"falcon", 0, {"[\\p{P}\\$\\+<=>\\^~\\|`]+", TOK_GPT2_REGEX, "[0-9][0-9][0-9]"}},
    {"deepseek-llm",
     0,
     {"[\\r\\n]", "\\s?[" CASED "]+",
      "\\s?[!-/:-~\\x{FF01}-\\x{FF0F}\\x{FF1A}-\\x{FF5E}\\x{2018}-\\x{201F}\\x{3000}-\\x{3002}]+", "\\s+$",
      DEEPSEEK_CJK, "\\p{N}+"}},
    {"deepseek-coder", 0, {"[\\r\\n]", "\\s?\\p{L}+", "\\s?\\p{P}+", DEEPSEEK_CJK, "\\p{N}"}},
    {"deepseek-v3", 0, {"\\p{N}{1,3}", CJK, DEEPSEEK3}},
    {"hunyuan-dense", 0, {"\\p{N}{1,3}", CJK, DEEPSEEK3}},
    {"joyai-llm", 0, {"\\p{N}{1,3}", CJK, DEEPSEEK3}},
    {"hy_v4", 0, {"\\p{N}{1,3}", CJK, DEEPSEEK3}},
    {"youtu",
     PRE_IGNORE_MERGES,
     {YOUTU, CASES(CONTRACTION "?") "|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|" SPACES}},
    {"poro-chat", 0, {BLOOM}},
    {"bloom", 0, {BLOOM}},
    {"gpt3-finnish", 0, {BLOOM}},
    {"viking", 0, {BLOOM, "\\p{N}"}},
    {"tekken", PRE_IGNORE_MERGES | PRE_ADD_BOS, {TEKKEN}},
    {"gpt-4o", 0, {GPT4O}},
    {"llama4", 0, {GPT4O}},
    {"kanana2", 0, {GPT4O}},
    {"talkie", 0, {GPT4O}},
    {"minimax-m2", 0, {GPT4O}},
    {"granite-embed-multi-97m", PRE_IGNORE_MERGES, {GPT4O}},
    {"tiny_aya", 0, {"\\d{1,3}(?=(?:\\d{3})*\\b)", GPT4O}},
    {"cohere2moe", 0, {"\\d{1,3}(?=(?:\\d{3})*\\b)", GPT4O}},
    {"kimi-k2", 0, {KIMI}},
    {"superbpe", 0, {"\\p{N}+", "(?=(\\d{3})+(?!\\d))"}},
    {"bailingmoe",
     0,
     {"'(?:[sSdDmMtT]|[lL][lL]|[vV][eE]|[rR][eE])|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|\\p{N}|"
      " ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+"}},
    {"seed-coder", 0, {CONTRACTION "|" WORD "|\\p{N}{1}| ?[^\\s\\p{L}\\p{N}\\r\\n]+|" SPACES}},
    {"exaone-moe",
     0,
     {CONTRACTION "|[^\\r\\n\\p{L}\\p{N}]?(?:\\p{L}\\p{M}*(?: \\p{L}\\p{M}*)*)+|\\p{N}|"
                  " ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]?|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+"}},
    {"chameleon",
     PRE_ADD_BOS,
     {"<sentinel:[0-9]+>", "(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z", "([\\t\\n]|    |  )", "\\p{N}",
      "[\\p{P}!-/:-@\\[-`{-~]", TOK_GPT2_REGEX}},
    {"gemma4", PRE_RAW | PRE_IGNORE_MERGES | PRE_ADD_BOS, {"[^\\n]+|[\\n]+"}},
};

/* Names whose rules are another's. */
static const char *const same_as[][2] = {{"bailingmoe2", "bailingmoe"}, {"llada-moe", "bailingmoe"}};

const tok_pre_name *tok_gguf_pre(const char *name)
{
    for (size_t i = 0; i < sizeof same_as / sizeof *same_as; i++)
        if (!strcmp(name, same_as[i][0])) name = same_as[i][1];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(name, names[i].name)) return &names[i];
    return NULL;
}
