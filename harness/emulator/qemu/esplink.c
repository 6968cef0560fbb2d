/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One end of an Ethernet link in virtual time (LINK.md), as a QEMU device.
 *
 *     -netdev hubport,id=a,hubid=0  -device eTSEC,netdev=a
 *     -netdev hubport,id=b,hubid=0  -device esplink,netdev=b,path=/dev/shm/west,end=1,console=con
 *     -chardev esplink,id=con       -serial chardev:con
 *
 * All happens in timers of QEMU_CLOCK_VIRTUAL and in the guest's own stores: with -icount …,sleep=off that makes
 * every event's time a function of what the other ends send, and of nothing on the host. At each step of the link
 * this end promises that it has sent everything before it; a latency later it waits until the other has promised
 * what the time until the next wait needs. It waits with the big lock held: the guest must not move.
 */
#include "qemu/osdep.h"
#include <sys/prctl.h>
#include "qemu/error-report.h"
#include "qemu/main-loop.h"
#include "qemu/module.h"
#include "qemu/rcu.h"
#include "qemu/timer.h"
#include "qapi/error.h"
#include "chardev/char.h"
#include "exec/cpu-common.h"
#include "hw/qdev-core.h"
#include "hw/qdev-properties.h"
#include "net/net.h"
#include "sysemu/runstate.h"
#include "sysemu/sysemu.h"
#include "bus.h"
#include "esplink_shm.h"
#include "fcs.h"

QEMU_BUILD_BUG_ON(sizeof(espbench_bus) != sizeof(((struct esplink_counts *)0)->bus));

bool espbench_fcs_is_wrong;

#define TYPE_ESPLINK "esplink"
OBJECT_DECLARE_SIMPLE_TYPE(EspLinkState, ESPLINK)
#define TYPE_ESPLINK_CONSOLE "chardev-esplink"
OBJECT_DECLARE_SIMPLE_TYPE(EspLinkConsole, ESPLINK_CONSOLE)

typedef struct EspLinkArrival {
    QSIMPLEQ_ENTRY(EspLinkArrival) next;
    struct esplink_record record;
    uint8_t *bytes;
    uint32_t done;      /* of a console's bytes */
} EspLinkArrival;

typedef QSIMPLEQ_HEAD(, EspLinkArrival) EspLinkArrivals;

/* The back end of the guest's serial port: its bytes go and come beside the frames. */
struct EspLinkConsole {
    Chardev parent_obj;
    EspLinkState *link;
    EspLinkArrivals typed;
};

struct EspLinkState {
    DeviceState parent_obj;
    NICConf conf;
    char *path;
    char *console_id;
    uint32_t end;

    NICState *nic;
    EspLinkConsole *console;
    struct esplink link;
    EspLinkArrivals arrivals;
    QEMUTimer *promise_timer, *wait_timer, *arrival_timer, *free_timer;
    uint64_t promise_ns, wait_ns;   /* the next of each */
    Notifier exit;
};

static struct esplink *esplinks[8];
static int esplink_count;

/* There is nothing to be saved, and handlers of exit() could wait for threads that a branch does not have. */
static void G_NORETURN esplink_end(int status)
{
    for (int i = 0; i < esplink_count; i++) {
        esplink_leave(esplinks[i]);
    }
    _exit(status);
}

static void esplink_fatal(const struct esplink *link, const char *what)
{
    error_report("link %s, end %u: %s", link->path, link->end, what);
    esplink_end(1);
}

static int64_t esplink_now(void)
{
    return qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);
}

/* --- the console --- */

/* Hands over what was typed, as much as the serial port's FIFO has room for; the rest when it is read. */
static void esplink_console_push(EspLinkConsole *console)
{
    Chardev *chr = CHARDEV(console);
    EspLinkArrival *typed;

    while ((typed = QSIMPLEQ_FIRST(&console->typed)) && typed->record.at_ns <= (uint64_t)esplink_now()) {
        int room = qemu_chr_be_can_write(chr);
        int count = MIN(room, (int)(typed->record.length - typed->done));

        if (count > 0) {
            typed->done += count;
            qemu_chr_be_write(chr, typed->bytes + typed->done - count, count);
        }
        if (typed->done < typed->record.length) {
            return;
        }
        QSIMPLEQ_REMOVE_HEAD(&console->typed, next);
        free(typed->bytes);
        g_free(typed);
    }
}

static int esplink_console_write(Chardev *chr, const uint8_t *bytes, int length)
{
    EspLinkConsole *console = ESPLINK_CONSOLE(chr);

    if (console->link) {
        esplink_print(&console->link->link, esplink_now(), bytes, length);
    }
    return length;
}

static void esplink_console_accept(Chardev *chr)
{
    esplink_console_push(ESPLINK_CONSOLE(chr));
}

static void esplink_console_open(Chardev *chr, ChardevBackend *backend, bool *be_opened, Error **errp)
{
    QSIMPLEQ_INIT(&ESPLINK_CONSOLE(chr)->typed);
}

static void esplink_console_class_init(ObjectClass *klass, void *data)
{
    ChardevClass *class = CHARDEV_CLASS(klass);

    class->open = esplink_console_open;
    class->chr_write = esplink_console_write;
    class->chr_accept_input = esplink_console_accept;
}

/* --- the link --- */

/* In the order of arrival: a link may let a frame come behind others that were sent later. */
static void esplink_queue(EspLinkArrivals *arrivals, EspLinkArrival *arrival)
{
    EspLinkArrival *before = NULL, *at;

    if (!QSIMPLEQ_EMPTY(arrivals) &&
        QSIMPLEQ_LAST(arrivals, EspLinkArrival, next)->record.at_ns <= arrival->record.at_ns) {
        QSIMPLEQ_INSERT_TAIL(arrivals, arrival, next);
        return;
    }
    QSIMPLEQ_FOREACH(at, arrivals, next) {
        if (at->record.at_ns > arrival->record.at_ns) {
            break;
        }
        before = at;
    }
    if (before) {
        QSIMPLEQ_INSERT_AFTER(arrivals, before, arrival, next);
    } else {
        QSIMPLEQ_INSERT_HEAD(arrivals, arrival, next);
    }
}

static void esplink_take_all(EspLinkState *s)
{
    struct esplink_record record;
    uint8_t *bytes;

    while ((bytes = esplink_take(&s->link, &record)) != NULL) {
        EspLinkArrival *arrival = g_new0(EspLinkArrival, 1);

        arrival->record = record;
        arrival->bytes = bytes;
        if (record.kind == ESPLINK_TEXT && s->console) {
            QSIMPLEQ_INSERT_TAIL(&s->console->typed, arrival, next);
        } else if (record.kind == ESPLINK_FRAME || record.kind == ESPLINK_DAMAGED) {
            esplink_queue(&s->arrivals, arrival);
        } else {
            free(bytes);
            g_free(arrival);
        }
    }
}

/*
 * The timer for the next frame is only set once nothing can come before it, so that equal times of different
 * timers find the same order in each run.
 */
static void esplink_set_arrival(EspLinkState *s)
{
    EspLinkArrival *first = QSIMPLEQ_FIRST(&s->arrivals);

    if (first && first->record.at_ns <= s->wait_ns) {
        timer_mod_ns(s->arrival_timer, first->record.at_ns);
    }
}

static void esplink_arrival(void *opaque)
{
    EspLinkState *s = opaque;
    EspLinkArrival *first = QSIMPLEQ_FIRST(&s->arrivals);

    QSIMPLEQ_REMOVE_HEAD(&s->arrivals, next);
    espbench_fcs_is_wrong = first->record.kind == ESPLINK_DAMAGED; /* the port takes the frame at once, or drops it */
    qemu_send_packet(qemu_get_queue(s->nic), first->bytes, first->record.length);
    espbench_fcs_is_wrong = false;
    free(first->bytes);
    g_free(first);
    esplink_set_arrival(s);
}

/* --- branches: each trial from the same state --- */

static void *esplink_main_loop(void *unused)
{
    sigset_t ends;

    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGHUP);
    pthread_sigmask(SIG_UNBLOCK, &ends, NULL); /* the thread that forked heard no signals */
    rcu_register_thread();
    qemu_mutex_lock_iothread();
    qemu_main_loop();
    esplink_end(0);
}

/* QEMU keeps the guest's memory from children: mostly they are other programs. */
static int esplink_let_fork(RAMBlock *block, void *unused)
{
    return madvise(qemu_ram_get_host_addr(block), qemu_ram_get_used_length(block), MADV_DOFORK);
}

/*
 * The child is the guest as it stands, with all that QEMU knows of it, in links of its own; this process stays as
 * it is, for the next branch. Only the calling thread, the vCPU's, is copied: the child gets a new main loop, and
 * RCU makes its own thread anew.
 */
static void esplink_fork(const char *branch)
{
    QemuThread thread;
    pid_t child;

    signal(SIGCHLD, SIG_IGN);
    rcu_enable_atfork();
    child = qemu_ram_foreach_block(esplink_let_fork, NULL) == 0 ? fork() : -1;
    rcu_disable_atfork();
    if (child < 0) {
        error_report("esplink: no branch can be made: %s", strerror(errno));
        esplink_end(1);
    }
    if (child > 0) {
        return;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (int i = 0; i < esplink_count; i++) {
        esplink_change_over(esplinks[i], branch);
    }
    qemu_thread_create(&thread, "main loop", esplink_main_loop, NULL, QEMU_THREAD_DETACHED);
}

/* True unless QEMU is to end. */
static bool esplink_wait_for_peer(EspLinkState *s, uint64_t until_ns)
{
    char branch[ESPLINK_BRANCH_BYTES];

    for (;;) {
        enum esplink_waited waited = esplink_wait(&s->link, until_ns);

        esplink_take_all(s);
        switch (waited) {
        case ESPLINK_REACHED:
            return true;
        case ESPLINK_DEAD:
            esplink_fatal(&s->link, "the process at the other end died");
        case ESPLINK_GONE:
            /* Whoever led virtual time is done: so are we, and the next after us. */
            esplink_end(0);
        case ESPLINK_NOT_YET:
            if (esplink_obey(esplinks, esplink_count, &s->link, branch)) {
                esplink_fork(branch);
            }
            if (qemu_shutdown_requested_get() != SHUTDOWN_CAUSE_NONE) {
                return false;
            }
        }
    }
}

static void esplink_promise(void *opaque)
{
    EspLinkState *s = opaque;
    struct esplink *link = &s->link;

    esplink_tell(link, &espbench_bus);
    esplink_publish(&link, 1, s->promise_ns);
    s->promise_ns += s->link.header.step_ns;
    timer_mod_ns(s->promise_timer, s->promise_ns);
}

static void esplink_wait_point(void *opaque)
{
    EspLinkState *s = opaque;
    struct esplink_header *link = &s->link.header;

    s->wait_ns += link->step_ns;
    if (s->wait_ns > link->latency_ns && !esplink_wait_for_peer(s, s->wait_ns - link->latency_ns)) {
        return;
    }
    timer_mod_ns(s->wait_timer, s->wait_ns);
    if (!timer_pending(s->arrival_timer)) {
        esplink_set_arrival(s);
    }
    if (s->console) {
        esplink_console_push(s->console);
    }
}

/* The wire takes a frame when the one before has left it; until then the sender's ring keeps it. */
static bool esplink_can_receive(NetClientState *nc)
{
    EspLinkState *s = qemu_get_nic_opaque(nc);

    if ((uint64_t)esplink_now() >= s->link.free_ns) {
        return true;
    }
    timer_mod_ns(s->free_timer, s->link.free_ns);
    return false;
}

static void esplink_free(void *opaque)
{
    EspLinkState *s = opaque;

    qemu_flush_queued_packets(qemu_get_queue(s->nic));
}

static ssize_t esplink_receive(NetClientState *nc, const uint8_t *bytes, size_t length)
{
    EspLinkState *s = qemu_get_nic_opaque(nc);

    esplink_send(&s->link, esplink_now(), bytes, length);
    return length;
}

static NetClientInfo esplink_net_info = {
    .type = NET_CLIENT_DRIVER_NIC,
    .size = sizeof(NICState),
    .can_receive = esplink_can_receive,
    .receive = esplink_receive,
};

static void esplink_exit(Notifier *notifier, void *data)
{
    esplink_leave(&container_of(notifier, EspLinkState, exit)->link);
}

static void esplink_realize(DeviceState *dev, Error **errp)
{
    EspLinkState *s = ESPLINK(dev);
    Chardev *chr;

    if (!s->path || s->end > 1 || !s->conf.peers.ncs[0]) {
        error_setg(errp, "esplink needs netdev=HUBPORT, path=FILE (made by `espbench-traffic link`), end=0 or 1");
        return;
    }
    if (s->console_id) {
        chr = qemu_chr_find(s->console_id);
        if (!chr || !object_dynamic_cast(OBJECT(chr), TYPE_ESPLINK_CONSOLE)) {
            error_setg(errp, "console=%s: there is no such -chardev esplink", s->console_id);
            return;
        }
        s->console = ESPLINK_CONSOLE(chr);
        s->console->link = s;
    }
    if (esplink_count == ARRAY_SIZE(esplinks)) {
        error_setg(errp, "at most %zu links", ARRAY_SIZE(esplinks));
        return;
    }
    esplink_attach(&s->link, s->path, s->end);
    esplinks[esplink_count++] = &s->link;
    s->exit.notify = esplink_exit;
    qemu_add_exit_notifier(&s->exit);
    QSIMPLEQ_INIT(&s->arrivals);
    s->nic = qemu_new_nic(&esplink_net_info, &s->conf, TYPE_ESPLINK, dev->id, &dev->mem_reentrancy_guard, s);
    s->promise_timer = timer_new_ns(QEMU_CLOCK_VIRTUAL, esplink_promise, s);
    s->wait_timer = timer_new_ns(QEMU_CLOCK_VIRTUAL, esplink_wait_point, s);
    s->arrival_timer = timer_new_ns(QEMU_CLOCK_VIRTUAL, esplink_arrival, s);
    s->free_timer = timer_new_ns(QEMU_CLOCK_VIRTUAL, esplink_free, s);
    /* Where both fall together, the promise comes first: nobody waits for one that waits for him. */
    s->promise_ns = s->link.header.step_ns;
    timer_mod_ns(s->promise_timer, s->promise_ns);
    s->wait_ns = s->link.header.latency_ns % s->link.header.step_ns;
    timer_mod_ns(s->wait_timer, s->wait_ns);
}

static Property esplink_properties[] = {
    DEFINE_NIC_PROPERTIES(EspLinkState, conf),
    DEFINE_PROP_STRING("path", EspLinkState, path),
    DEFINE_PROP_STRING("console", EspLinkState, console_id),
    DEFINE_PROP_UINT32("end", EspLinkState, end, 1),
    DEFINE_PROP_END_OF_LIST(),
};

static void esplink_class_init(ObjectClass *klass, void *data)
{
    DeviceClass *class = DEVICE_CLASS(klass);

    class->desc = "End of an Ethernet link in virtual time";
    class->realize = esplink_realize;
    class->user_creatable = true;
    device_class_set_props(class, esplink_properties);
    set_bit(DEVICE_CATEGORY_NETWORK, class->categories);
}

static const TypeInfo esplink_types[] = {
    {
        .name = TYPE_ESPLINK,
        .parent = TYPE_DEVICE,
        .instance_size = sizeof(EspLinkState),
        .class_init = esplink_class_init,
    },
    {
        .name = TYPE_ESPLINK_CONSOLE,
        .parent = TYPE_CHARDEV,
        .instance_size = sizeof(EspLinkConsole),
        .class_init = esplink_console_class_init,
    },
};

DEFINE_TYPES(esplink_types)
