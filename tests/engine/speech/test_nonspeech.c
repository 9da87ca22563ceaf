/* Recordings without speech give no text, from the samples to the segments with the bundled model; a command
 * is heard once however much silence or noise is before it. Under a sanitizer, which makes a model twenty
 * times slower, some of them. SHOAL_EARS=DIR runs the first test with another model, such as a folder of
 * Whisper's. */
#include "helper.h"

#include "sounds.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define EVERY 7
#else
#define EVERY 1
#endif

static const unsigned lengths_ms[] = {100, 700, 3000, 12000, 60000};
enum { N_LENGTHS = sizeof lengths_ms / sizeof *lengths_ms };

static void nothing_is_heard_where_nobody_speaks(void **state)
{
    size_t n_wrong = 0, n_all = 0;
    const char *other = getenv("SHOAL_EARS");
    ears r;
    ears_open(&r, other ? other : MODEL, (engine_options){0});
    for (size_t i = 0; i < N_SOUNDS; i++)
        for (size_t l = 0; l < N_LENGTHS; l++) {
            if ((i * N_LENGTHS + l) % EVERY != 0) continue;
            heard got;
            size_t n = (size_t)lengths_ms[l] * 16;
            must(hear(&r, make_sound(i, n), n, NULL, &got, &err));
            n_all++;
            if (got.n_segments > 0) {
                n_wrong++;
                print_error("%s, %u ms: \"%s\"\n", SOUND_NAMES[i], lengths_ms[l], text_of(&got));
            }
            heard_done(&got);
        }
    if (EVERY == 1) assert_int_equal(n_all, 200);
    if (n_wrong) fail_msg("%zu of %zu recordings without speech have text", n_wrong, n_all);
    ears_close(&r);
}

/* 16 kHz samples of a command behind so much of something else. */
static void hears_once(ears *r, const float *word, size_t n, unsigned lead_ms, bool noisy)
{
    size_t lead = (size_t)lead_ms * 16, behind = (lead_ms % 3) * 16000, all = lead + n + behind;
    float *x = calloc(all + 1, sizeof *x);
    heard got;
    memcpy(x + lead, word, n * sizeof *x);
    if (noisy) add_noise(x, all, 'w', -60, lead_ms + 1);
    must(hear(r, x, all, NULL, &got, &err));
    if (strcmp(text_of(&got), " lights on") != 0 || got.n_segments != 1)
        fail_msg("behind %u ms of %s: \"%s\"", lead_ms, noisy ? "noise" : "silence", text_of(&got));
    if (got.start_ms[0] > lead_ms + 300 || got.start_ms[0] + 700 < lead_ms || got.end_ms[0] < lead_ms + 500 ||
        got.end_ms[0] > (int64_t)(all / 16))
        fail_msg("behind %u ms: heard from %lld to %lld ms", lead_ms, (long long)got.start_ms[0],
                 (long long)got.end_ms[0]);
    heard_done(&got);
}

static void a_command_behind_silence_is_heard_once(void **state)
{
    ears r;
    size_t n;
    if (getenv("SHOAL_EARS")) skip();
    float *word = read_sound(DATA "speech/wav/08-lights-on.wav", &n);
    ears_open(&r, MODEL, (engine_options){0});
    for (unsigned ms = 0; ms <= 60000; ms += 1201 * EVERY) {
        hears_once(&r, word, n, ms, false);
        hears_once(&r, word, n, ms, true);
    }
    for (unsigned ms = 7000; ms < 9000; ms += 83 * EVERY) hears_once(&r, word, n, ms, ms % 2);
    free(word);
    ears_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_heard_where_nobody_speaks),
        cmocka_unit_test(a_command_behind_silence_is_heard_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
