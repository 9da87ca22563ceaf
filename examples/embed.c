/* embed.c: which of these sentences means the same as the first? Shoal as a library.
 *
 *     cc embed.c $(pkg-config --cflags --libs --static shoal) -o embed
 *     ./embed models/home-embed.gguf "wake me at seven" "set an alarm for 7 am" "play some jazz"
 *
 * Prints one line a sentence: its cosine similarity to the first, and the sentence. */
#include <shoal.h>
#include <stdio.h>

static double dot(const shoal_embedding *a, const shoal_embedding *b)
{
    double sum = 0;
    for (size_t i = 0; i < a->n; i++) sum += (double)a->values[i] * (double)b->values[i];
    return sum; /* embeddings have length 1: this is the cosine */
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        fprintf(stderr, "usage: %s MODEL SENTENCE SENTENCE...\n", argv[0]);
        return 2;
    }
    shoal_err err;
    shoal_model *model = NULL;
    if (shoal_model_open(&model, argv[1], NULL, &err) != 0) {
        fprintf(stderr, "embed: %s\n", err.message);
        return 1;
    }
    int status = 0;
    shoal_embedding first = {0};
    if (shoal_embed(model, argv[2], &first, &err) != 0) status = 1;
    for (int i = 3; i < argc && status == 0; i++) {
        shoal_embedding other = {0};
        if (shoal_embed(model, argv[i], &other, &err) != 0)
            status = 1;
        else
            printf("%.3f  %s\n", dot(&first, &other), argv[i]);
        shoal_embedding_done(&other);
    }
    if (status != 0) fprintf(stderr, "embed: %s\n", err.message);
    shoal_embedding_done(&first);
    shoal_model_close(model);
    return status;
}
