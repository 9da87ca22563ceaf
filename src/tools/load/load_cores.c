/* load_cores.c: see load_cores.h. */
#include "load/load_cores.h"

#include "command/cli.h"
#include "json/json_put.h"

#define SHOWN 0.005 /* cores */

void load_cores_begin(load_cores *c, int pid)
{
    *c = (load_cores){.pid = pid, .seconds = -1};
    if (!pid) return;
    c->n = load_cpu_each(pid, c->each, LOAD_CORES_MOST);
    c->seconds = load_cpu_seconds(pid);
}

static double seconds_before(const load_cores *c, int pid)
{
    for (size_t i = 0; i < c->n; i++)
        if (c->each[i].pid == pid) return c->each[i].seconds;
    return 0;
}

void load_cores_end(load_cores *c, double wall_s)
{
    load_cores now = {.pid = c->pid, .seconds = -1, .wall_s = wall_s};
    double seconds = c->pid ? load_cpu_seconds(c->pid) : -1;
    if (c->seconds >= 0 && seconds >= 0) {
        now.seconds = seconds - c->seconds;
        now.n = load_cpu_each(c->pid, now.each, LOAD_CORES_MOST);
    }
    for (size_t i = 0; i < now.n; i++) now.each[i].seconds -= seconds_before(c, now.each[i].pid);
    *c = now;
}

static double cores_of(const load_cores *c, size_t i)
{
    return c->wall_s > 0 ? c->each[i].seconds / c->wall_s : 0;
}

void load_cores_print(const load_cores *c)
{
    buf line = {0};
    for (size_t i = 0; i < c->n; i++)
        if (cores_of(c, i) >= SHOWN)
            buf_printf(&line, "%s%s %.2f", line.len ? ", " : "", c->each[i].name, cores_of(c, i));
    if (line.len) cli_print_line(13, "      cores: %s", line.data);
    buf_done(&line);
}

void load_cores_put_json(const load_cores *c, buf *out)
{
    buf_printf(out, ",\"cpu_s\":%.2f,\"processes\":[", c->seconds);
    for (size_t i = 0; i < c->n; i++) {
        json_put_open(out, NULL, '{');
        json_put_text(out, "name", c->each[i].name);
        buf_printf(out, ",\"pid\":%d,\"cores\":%.3f}", c->each[i].pid, cores_of(c, i));
    }
    buf_putc(out, ']');
}
