#include <string.h>

#include "signal/audio_internal.h"

size_t pcm_bytes(pcm_kind k)
{
    static const size_t bytes[] = {
#define PCM_BYTES(e, n) n,
        PCM_TABLE(PCM_BYTES)
#undef PCM_BYTES
    };
    return bytes[k];
}

/* ITU-T G.711: sign, three bits of segment, four of step. */
static int from_alaw(uint8_t code)
{
    int a = code ^ 0x55, segment = a >> 4 & 7, t = ((a & 15) << 4) + (segment ? 0x108 : 8);
    if (segment > 1) t <<= segment - 1;
    return a & 0x80 ? t : -t;
}

static int from_ulaw(uint8_t code)
{
    int u = ~code & 0xFF, t = ((((u & 15) << 3) + 0x84) << (u >> 4 & 7)) - 0x84;
    return u & 0x80 ? -t : t;
}

static int32_t from_bytes(const uint8_t *p, size_t n)
{
    uint32_t v = 0;
    for (size_t i = 0; i < n; i++) v |= (uint32_t)p[i] << (8 * (4 - n + i));
    return (int32_t)v; /* left-justified in 32 bits */
}

static float one_sample(pcm_kind k, const uint8_t *p)
{
    float f;
    double d;
    switch (k) {
    case PCM_U8: return (float)(p[0] - 128) / 128.0f;
    case PCM_S16:
    case PCM_S24:
    case PCM_S32: return (float)from_bytes(p, pcm_bytes(k)) / 2147483648.0f;
    case PCM_F32: memcpy(&f, p, sizeof f); return f;
    case PCM_F64: memcpy(&d, p, sizeof d); return (float)d;
    case PCM_ALAW: return (float)from_alaw(p[0]) / 32768.0f;
    case PCM_ULAW: return (float)from_ulaw(p[0]) / 32768.0f;
    }
    return 0;
}

void pcm_to_float(pcm_kind k, const uint8_t *bytes, float *out, size_t n)
{
    size_t step = pcm_bytes(k);
    for (size_t i = 0; i < n; i++) out[i] = one_sample(k, bytes + i * step);
}
