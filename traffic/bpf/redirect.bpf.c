// SPDX-License-Identifier: Apache-2.0
// Hands every frame of a port to its AF_XDP socket, except messages of address resolution. The kernel's network
// stack gets these, so that the tester's responder can answer them.

#include "common.h"

struct {
    __uint(type, BPF_MAP_TYPE_XSKMAP);
    __uint(max_entries, 64);
    __type(key, u32);
    __type(value, u32);
} sockets SEC(".maps");

SEC("xdp")
int redirect(struct xdp_md *ctx)
{
    if (is_for_neighbours((void *)(long)ctx->data, (void *)(long)ctx->data_end))
        return XDP_PASS;
    return bpf_redirect_map(&sockets, ctx->rx_queue_index, XDP_PASS);
}

char _license[] SEC("license") = "Apache-2.0";
