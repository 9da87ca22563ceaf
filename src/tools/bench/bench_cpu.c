/* bench_cpu.c: see bench_cpu.h. */
#include "bench/bench_cpu.h"

#include "command/cli.h"
#include "json/json_put.h"

#define SHOWN 0.005 /* cores */

void bench_cpu_begin(bench_cpu *c, int pid)
{
    *c = (bench_cpu){.pid = pid, .seconds = -1};
    if (!pid) return;
    c->n = load_cpu_each(pid, c->each, BENCH_CPU_MOST);
    c->seconds = load_cpu_seconds(pid);
}

static double seconds_before(const bench_cpu *c, int pid)
{
    for (size_t i = 0; i < c->n; i++)
        if (c->each[i].pid == pid) return c->each[i].seconds;
    return 0;
}

void bench_cpu_end(bench_cpu *c, double wall_s)
{
    bench_cpu now = {.pid = c->pid, .seconds = -1, .wall_s = wall_s};
    double seconds = c->pid ? load_cpu_seconds(c->pid) : -1;
    if (c->seconds >= 0 && seconds >= 0) {
        now.seconds = seconds - c->seconds;
        now.n = load_cpu_each(c->pid, now.each, BENCH_CPU_MOST);
    }
    for (size_t i = 0; i < now.n; i++) now.each[i].seconds -= seconds_before(c, now.each[i].pid);
    *c = now;
}

static double cores_of(const bench_cpu *c, size_t i)
{
    return c->wall_s > 0 ? c->each[i].seconds / c->wall_s : 0;
}

void bench_cpu_print(const bench_cpu *c)
{
    buf line = {0};
    for (size_t i = 0; i < c->n; i++)
        if (cores_of(c, i) >= SHOWN)
            buf_printf(&line, "%s%s %.2f", line.len ? ", " : "", c->each[i].name, cores_of(c, i));
    if (line.len) cli_print_line(13, "      cores: %s", line.data);
    buf_done(&line);
}

void bench_cpu_put_json(const bench_cpu *c, buf *out)
{
    buf_printf(out, ",\"cpu_s\":%.2f,\"processes\":[", c->seconds);
    for (size_t i = 0; i < c->n; i++) {
        json_put_open(out, NULL, '{');
        json_put_text(out, "name", c->each[i].name);
        buf_printf(out, ",\"pid\":%d,\"cores\":%.3f}", c->each[i].pid, cores_of(c, i));
    }
    buf_putc(out, ']');
}
