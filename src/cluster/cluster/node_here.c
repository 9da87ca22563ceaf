/* node_here.c: this machine as a node. */
#include <stdio.h>
#include <unistd.h>

#include "base/sys.h"
#include "cluster/machine.h"
#include "cluster/node.h"

int node_here(node **ret, shoal_err *err)
{
    char name[256] = "";
    machine m;
    if (gethostname(name, sizeof name - 1) != 0 || !*name) snprintf(name, sizeof name, "localhost");
    machine_read(&m, "");
    node n = {.name = name,
              .n_cores = (unsigned)sys_core_count(),
              .memory_bytes = m.memory_bytes,
              .memory_free_bytes = m.memory_free_bytes,
              .load_1m = m.load_1m,
              .celsius = m.celsius,
              .on_battery = m.on_battery,
              .battery_percent = m.battery_percent};
    return node_copy(ret, &n, err);
}
