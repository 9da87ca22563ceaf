/* tok_letter.h: GPT-2's alphabet, in which every byte is a character that prints.
 *
 * Bytes that print are themselves (as Latin-1 code points); the others, in order, are the letters from U+0100
 * on: 0..32 are the first 33, then 127..160 and 173 (openai/gpt-2, bytes_to_unicode). */
#ifndef TOKENIZER_TOK_LETTER_H
#define TOKENIZER_TOK_LETTER_H

#include <stdint.h>

uint32_t tok_byte_letter(uint8_t byte);
/* The byte that a code point stands for, -1 when it is no letter of the alphabet. */
int tok_letter_byte(uint32_t cp);

#endif
