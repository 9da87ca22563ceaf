/* kept_listener.c: see kept_listener.h. */
#include "wire/kept_listener.h"

#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "os/handover.h"

static bool name_of(char *out, size_t cap, const char *address)
{
    return snprintf(out, cap, "listen %s", address) < (int)cap;
}

int kept_listener_take(const char *address)
{
    char name[HANDOVER_NAME + 1];
    return name_of(name, sizeof name, address) ? handover_take(name) : -1;
}

void kept_listener_keep(const uv_handle_t *listener, const char *address)
{
    char name[HANDOVER_NAME + 1];
    uv_os_fd_t fd;
    if (uv_fileno(listener, &fd) == 0 && name_of(name, sizeof name, address)) handover_keep(name, fd);
}

void kept_listener_forget(const uv_handle_t *listener)
{
    uv_os_fd_t fd;
    if (uv_fileno(listener, &fd) == 0) handover_forget(fd);
}

void kept_listener_drop(int fd)
{
    handover_forget(fd);
    close(fd);
}
