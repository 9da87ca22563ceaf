/* inherited_listener.c: see inherited_listener.h. */
#include "wire/inherited_listener.h"

#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "os/handover.h"

static bool inherited_listener_name_of(char *out, size_t cap, const char *address)
{
    return snprintf(out, cap, "listen %s", address) < (int)cap;
}

int inherited_listener_take(const char *address)
{
    char name[HANDOVER_NAME + 1];
    return inherited_listener_name_of(name, sizeof name, address) ? handover_take(name) : -1;
}

void inherited_listener_keep(const uv_handle_t *listener, const char *address)
{
    char name[HANDOVER_NAME + 1];
    uv_os_fd_t fd;
    if (uv_fileno(listener, &fd) == 0 && inherited_listener_name_of(name, sizeof name, address))
        handover_keep(name, fd);
}

void inherited_listener_forget(const uv_handle_t *listener)
{
    uv_os_fd_t fd;
    if (uv_fileno(listener, &fd) == 0) handover_forget(fd);
}

void inherited_listener_drop(int fd)
{
    handover_forget(fd);
    close(fd);
}
