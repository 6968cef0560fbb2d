/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A gateway that consists of one queue. It forwards frames between two links in virtual time, to test the programs at
 * the other ends of the links.
 *
 *     mirror LINK_A LINK_B SERVICE_NS DELAY_NS QUEUE [END_OF_A END_OF_B]      (default of both ends: 1)
 *
 * One server takes SERVICE_NS for each frame of either direction. At most QUEUE frames are in the server or wait for
 * it; further frames are dropped. A frame leaves DELAY_NS after it was served. Each ARP request is answered at once,
 * for any address, with the MAC address 02:00:00:00:01:0N (N: 1 on link A, 2 on link B). A line that is typed into the
 * console is printed as {"line": "…", "at_ns": …}. Frames with a wrong FCS are dropped and not counted, as by any port.
 * The program ends when the process at the other end of a link leaves, and prints the numbers of forwarded and dropped
 * frames.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdio.h>

#include "esplink_shm.h"

struct arrived {
    struct arrived *next;
    struct esplink_record record;
    uint8_t *bytes;
};

/* A link, the records that have been taken from it and are not due yet, and the line that is being typed. */
struct side {
    struct esplink link;
    struct arrived *first;
    char line[65536];
    size_t line_length;
};

static struct side sides[2];
static uint64_t service_ns, delay_ns, queue;
/* `served` counts the frames that were not dropped; `served_ns` has the time at which each of the last `queue` of them
 * has been served. */
static uint64_t *served_ns, served, dropped;

static void esplink_fatal(const struct esplink *link, const char *what)
{
    fprintf(stderr, "mirror: link %s: %s\n", link->path, what);
    exit(1);
}

static void end(struct side *gone, enum esplink_waited how)
{
    if (how == ESPLINK_DEAD) {
        esplink_fatal(&gone->link, "the process at its other end died");
    }
    esplink_leave(&sides[0].link);
    esplink_leave(&sides[1].link);
    printf("{\"forwarded\": %" PRIu64 ", \"dropped\": %" PRIu64 "}\n", served, dropped);
    exit(0);
}

static void console(struct side *side, const struct arrived *arrived)
{
    char told[sizeof(side->line) + 64];

    for (uint32_t i = 0; i < arrived->record.length; i++) {
        char typed = arrived->bytes[i];

        if (typed != '\n') {
            if (side->line_length < sizeof(side->line) - 1) {
                side->line[side->line_length++] = typed;
            }
            continue;
        }
        side->line[side->line_length] = '\0';
        side->line_length = 0;
        snprintf(told, sizeof(told), "{\"line\": \"%s\", \"at_ns\": %" PRIu64 "}\n", side->line,
                 arrived->record.at_ns);
        esplink_print(&side->link, arrived->record.at_ns, told, strlen(told));
    }
}

static bool answered(struct side *side, const struct arrived *arrived)
{
    uint8_t mac[6] = { 2, 0, 0, 0, 1, 1 + (side == &sides[1]) }, reply[60] = { 0 };
    const uint8_t *frame = arrived->bytes;

    if (arrived->record.length < 42 || frame[12] != 0x08 || frame[13] != 0x06 || frame[21] != 1) {
        return false;
    }
    memcpy(reply, frame + 6, 6);
    memcpy(reply + 6, mac, 6);
    memcpy(reply + 12, frame + 12, 9);
    reply[21] = 2;
    memcpy(reply + 22, mac, 6);
    memcpy(reply + 28, frame + 38, 4);
    memcpy(reply + 32, frame + 22, 10);
    esplink_send(&side->link, arrived->record.at_ns, reply, sizeof(reply));
    return true;
}

static void forward(struct side *to, const struct arrived *arrived)
{
    uint64_t now_ns = arrived->record.at_ns, begin_ns;

    /* There is room if the frame `queue` places before this one has been served. */
    if (served >= queue && served_ns[served % queue] > now_ns) {
        dropped++;
        return;
    }
    begin_ns = served ? served_ns[(served - 1) % queue] : 0;
    begin_ns = begin_ns > now_ns ? begin_ns : now_ns;
    served_ns[served++ % queue] = begin_ns + service_ns;
    esplink_send(&to->link, begin_ns + service_ns + delay_ns, arrived->bytes, arrived->record.length);
}

static void take_all(struct side *side)
{
    struct esplink_record record;
    uint8_t *bytes;

    while ((bytes = esplink_take(&side->link, &record)) != NULL) {
        struct arrived *arrived = malloc(sizeof(*arrived)), **before = &side->first;

        /* A link with errors may deliver a frame after frames that were sent later. */
        while (*before && (*before)->record.at_ns <= record.at_ns) {
            before = &(*before)->next;
        }
        *arrived = (struct arrived) { .next = *before, .record = record, .bytes = bytes };
        *before = arrived;
    }
}

/* Handles all records that arrive by `by_ns`, in the order of arrival. So the result does not depend on real time. */
static void handle(uint64_t by_ns)
{
    for (;;) {
        struct side *side = NULL;
        struct arrived *arrived;

        for (int i = 0; i < 2; i++) {
            struct arrived *first = sides[i].first;

            if (first && first->record.at_ns <= by_ns &&
                (!side || first->record.at_ns < side->first->record.at_ns)) {
                side = &sides[i];
            }
        }
        if (!side) {
            return;
        }
        arrived = side->first;
        side->first = arrived->next;
        if (arrived->record.kind == ESPLINK_TEXT) {
            console(side, arrived);
        } else if (arrived->record.kind == ESPLINK_FRAME && !answered(side, arrived)) {
            forward(side == &sides[0] ? &sides[1] : &sides[0], arrived);
        }
        free(arrived->bytes);
        free(arrived);
    }
}

int main(int count, char **arguments)
{
    struct esplink *links[2] = { &sides[0].link, &sides[1].link };
    char branch[ESPLINK_BRANCH_BYTES];

    if (count != 6 && count != 8) {
        fprintf(stderr, "usage: mirror LINK_A LINK_B SERVICE_NS DELAY_NS QUEUE [END_OF_A END_OF_B]\n");
        return 2;
    }
    service_ns = strtoull(arguments[3], NULL, 10);
    delay_ns = strtoull(arguments[4], NULL, 10);
    queue = strtoull(arguments[5], NULL, 10);
    served_ns = calloc(queue ? queue : 1, sizeof(*served_ns));
    if (!queue || !served_ns) {
        fprintf(stderr, "mirror: a queue has room for at least one frame\n");
        return 2;
    }
    for (int i = 0; i < 2; i++) {
        esplink_attach(&sides[i].link, arguments[1 + i], count == 8 ? atoi(arguments[6 + i]) & 1 : 1);
    }
    for (;;) {
        uint64_t horizon[2], by_ns;
        struct side *slower;
        enum esplink_waited waited;

        for (int i = 0; i < 2; i++) {
            horizon[i] = esplink_peer_until(&sides[i].link) + sides[i].link.header.latency_ns;
            take_all(&sides[i]);
        }
        slower = &sides[horizon[1] < horizon[0]];
        by_ns = horizon[horizon[1] < horizon[0]];
        handle(by_ns);
        /* All records still to come arrive after by_ns, and no frame leaves before it arrived. So no frame leaves
         * before by_ns. */
        esplink_publish(links, 2, by_ns);
        waited = esplink_wait(&slower->link, by_ns - slower->link.header.latency_ns + 1);
        if (waited == ESPLINK_NOT_YET && esplink_obey(links, 2, &slower->link, branch) && fork() == 0) {
            esplink_change_over(links[0], branch);
            esplink_change_over(links[1], branch);
        }
        if (waited == ESPLINK_GONE || waited == ESPLINK_DEAD) {
            end(slower, waited);
        }
    }
}
