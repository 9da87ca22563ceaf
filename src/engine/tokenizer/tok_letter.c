/* tok_letter.c: bytes and their letters; see tok_letter.h. */
#include "tokenizer/tok_letter.h"

#include <stdbool.h>

static bool is_own_letter(uint32_t byte)
{
    return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || (byte >= 0xAE && byte <= 0xFF);
}

uint32_t tok_byte_letter(uint8_t byte)
{
    if (is_own_letter(byte)) return byte;
    if (byte <= 32) return 256u + byte;
    return byte == 173 ? 256 + 67 : 256u + 33 + (byte - 127u);
}

int tok_letter_byte(uint32_t cp)
{
    if (cp < 256) return is_own_letter(cp) ? (int)cp : -1;
    if (cp < 256 + 33) return (int)(cp - 256);
    if (cp < 256 + 67) return (int)(cp - 256 - 33 + 127);
    return cp == 256 + 67 ? 173 : -1;
}
