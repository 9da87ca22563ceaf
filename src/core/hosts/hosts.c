/* hosts.c: the seam of hosts.h. */
#include "hosts/hosts.h"

host_call *hosts_ask(hosts *h, const host_ask *a)
{
    return h->ops->ask(h, a);
}

void hosts_cancel(host_call *c)
{
    if (c) c->ops->cancel(c);
}

void hosts_free(hosts *h)
{
    if (h) h->ops->free(h);
}
