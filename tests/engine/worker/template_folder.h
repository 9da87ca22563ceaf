/* template_folder.h: a model of random weights with another chat template.
 *
 *     char dir[] = "/tmp/shoal-think-XXXXXX";
 *     template_folder_make(dir, "{{ messages }}") ... template_folder_remove(dir) */
#ifndef TESTS_WORKER_TEMPLATE_FOLDER_H
#define TESTS_WORKER_TEMPLATE_FOLDER_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* A folder with llama-gqa's files and this template; its path is written to dir. */
static inline void template_folder_make(char *dir, const char *template)
{
    static const char *const files[] = {"config.json", "model.safetensors", "tokenizer.json"};
    char from[512], to[96];
    assert_non_null(mkdtemp(dir));
    for (int i = 0; i < 3; i++) {
        snprintf(from, sizeof from, SHOAL_SOURCE_DIR "/tests/data/hf/llama-gqa/%s", files[i]);
        snprintf(to, sizeof to, "%s/%s", dir, files[i]);
        assert_int_equal(symlink(from, to), 0);
    }
    snprintf(to, sizeof to, "%s/chat_template.jinja", dir);
    FILE *f = fopen(to, "w");
    assert_non_null(f);
    fputs(template, f);
    fclose(f);
}

static inline void template_folder_remove(const char *dir)
{
    static const char *const files[] = {"config.json", "model.safetensors", "tokenizer.json",
                                        "chat_template.jinja"};
    for (int i = 0; i < 4; i++) {
        char path[96];
        snprintf(path, sizeof path, "%s/%s", dir, files[i]);
        unlink(path);
    }
    assert_int_equal(rmdir(dir), 0);
}

#endif
