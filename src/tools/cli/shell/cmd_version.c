/* shoal version: what this build is and what it can use here. */
#include <stdio.h>

#include "base/sys.h"
#include "cli/commands.h"
#include "compute/compute.h"

static int cmd_version_run(int argc, char **argv)
{
    bool json = false;
    const cli_option options[] = {CLI_JSON(&json), CLI_END};
    cli_args a;
    int rc = cli_parse(&a, &cmd_version, options, 0, 0, argc, argv);
    if (rc != CLI_GO) return rc;
    isa chosen = ISA_SCALAR;
    shoal_err err = {0};
    if (isa_choose(&chosen, &err) != 0) return cli_fail(&cmd_version, &err);
    if (json) {
        printf("{\"version\":\"%s\",\"isa\":\"%s\",\"usable\":[", SHOAL_VERSION, isa_name(chosen));
        const char *comma = "";
        for (int i = 0; i < ISA_COUNT; i++) {
            if (!isa_usable((isa)i)) continue;
            printf("%s\"%s\"", comma, isa_name((isa)i));
            comma = ",";
        }
        printf("],\"cores\":%d}\n", sys_core_count());
        return CLI_OK;
    }
    printf("shoal %s\nkernels: %s (usable here:", SHOAL_VERSION, isa_name(chosen));
    for (int i = 0; i < ISA_COUNT; i++)
        if (isa_usable((isa)i)) printf(" %s", isa_name((isa)i));
    printf(")\ncores:   %d\n", sys_core_count());
    return CLI_OK;
}

const cli_command cmd_version = {"version", "show the version and the kernels usable here", "",
                                 cmd_version_run, false};
