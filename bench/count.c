/* count.c: a plugin for qemu-user that counts the instructions a program executes (scripts/neon_count.sh).
 *
 * Each translated block adds its length to a counter when it runs; the last line of standard error is the
 * sum. Debian's qemu-user takes plugins but has no header for them, so what is used of it stands here (QEMU,
 * plugin API version 1). The counter is not atomic: of threads that run at the same time, some counts are
 * lost. */
#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct qemu_plugin_tb;
enum { ADD_U64 = 0 };
extern void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id,
                                                  void (*fn)(uint64_t id, struct qemu_plugin_tb *));
extern void qemu_plugin_register_atexit_cb(uint64_t id, void (*fn)(uint64_t id, void *arg), void *arg);
extern size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
extern void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *tb, int op, void *counter,
                                                     uint64_t by);

int qemu_plugin_version = 1;
int qemu_plugin_install(uint64_t id, const void *info, int argc, char **argv);

static uint64_t n_executed;

static void on_block(uint64_t id, struct qemu_plugin_tb *tb)
{
    qemu_plugin_register_vcpu_tb_exec_inline(tb, ADD_U64, &n_executed, qemu_plugin_tb_n_insns(tb));
}

static void on_exit(uint64_t id, void *arg)
{
    fprintf(stderr, "\ninstructions %" PRIu64 "\n", n_executed);
}

int qemu_plugin_install(uint64_t id, const void *info, int argc, char **argv)
{
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_block);
    qemu_plugin_register_atexit_cb(id, on_exit, NULL);
    return 0;
}
