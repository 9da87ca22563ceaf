/* weights_mapping.h: a network and the place of its packed matrices, made and freed together.
 *
 *     weights_mapping h = {0};
 *     weights_mapping_load(&h, ops, m, team, &limits, &err);       h.net
 *     weights_mapping_free(&h, ops);                               also after a failure
 *
 * Where the weights are then:
 *   - no store of images, or a small model, or the first start: packed by the team into anonymous huge pages.
 *     A thread beside the running network writes the image, for the next start and for other replicas;
 *   - an image is there: mapped, shared through the page cache, and at once in use. A thread beside the
 *     running network makes its pages huge ones: in place where the kernel can do that (then they stay
 *     shared), else by a copy of this process's own, unless the model has other replicas here or memory is
 *     short: then the weights stay shared in small pages, because n copies cost more than huge pages give.
 *
 * So a start never waits for a disk to be written nor for pages to be copied, and what is read is the same
 * bytes at the same addresses throughout. */
#ifndef INFER_WEIGHTS_MAPPING_H
#define INFER_WEIGHTS_MAPPING_H

#include <pthread.h>
#include <stdatomic.h>

#include "compute/weights.h"
#include "model/packed/packed_store.h"
#include "net/net.h"

typedef struct weights_mapping {
    net *net;
    weights *weights;
    packed *image; /* NULL: packed here */
    /* The thread's, until it is joined. */
    packed_store store; /* folder: the model's */
    packed_head head;
    uint64_t seen; /* which file was there and could not be used; 0: none */
    pthread_t thread;
    bool has_thread;
    atomic_bool stop;
} weights_mapping;

/* ops->load with every matrix in one mapping. m must outlive h. */
int weights_mapping_load(weights_mapping *h, const net_ops *ops, model *m, team *t, const net_limits *l,
                         shoal_err *err);
void weights_mapping_free(weights_mapping *h, const net_ops *ops);
/* Wait until what goes on beside the network is done. */
void weights_mapping_settle(weights_mapping *h);

#endif
