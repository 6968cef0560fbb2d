/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How long the CPU of a PC has stood still, to the nanosecond, at I/O ports that any kernel leaves alone.
 *
 *     -device espbench-idle-port
 *
 * With -icount the virtual clock is the time of the instructions executed and of the waits between them: what is not
 * an instruction was idle (../idle.c says why the kernel's own account is no measure).
 *
 * At 0x5e0, little-endian: u32 "IDLE", u64 idle ns, u64 now ns; reading the first takes the others along.
 */
#include "qemu/osdep.h"
#include "qemu/module.h"
#include "qemu/timer.h"
#include "qapi/error.h"
#include "exec/address-spaces.h"
#include "hw/qdev-core.h"
#include "sysemu/cpu-timers.h"
#include "profile.h"

#define TYPE_ESPBENCH_IDLE_PORT "espbench-idle-port"
OBJECT_DECLARE_SIMPLE_TYPE(EspbenchIdlePortState, ESPBENCH_IDLE_PORT)

#define PORT    0x5e0
#define PORTS   20
#define MAGIC   0x454c4449      /* "IDLE" */

struct EspbenchIdlePortState {
    DeviceState parent_obj;
    MemoryRegion ports;
    uint64_t idle_ns, now_ns;
};

static uint64_t idle_read(void *opaque, hwaddr offset, unsigned size)
{
    EspbenchIdlePortState *s = opaque;

    switch (offset) {
    case 0:
        espbench_profile_section();
        s->now_ns = qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);
        s->idle_ns = s->now_ns - icount_to_ns(icount_get_raw());
        return MAGIC;
    case 4:
        return (uint32_t)s->idle_ns;
    case 8:
        return s->idle_ns >> 32;
    case 12:
        return (uint32_t)s->now_ns;
    case 16:
        return s->now_ns >> 32;
    default:
        return 0;
    }
}

static void idle_write(void *opaque, hwaddr offset, uint64_t value, unsigned size)
{
}

static const MemoryRegionOps idle_ops = {
    .read = idle_read,
    .write = idle_write,
    .endianness = DEVICE_LITTLE_ENDIAN,
    .valid = { .min_access_size = 4, .max_access_size = 4 },
};

static void idle_realize(DeviceState *dev, Error **errp)
{
    EspbenchIdlePortState *s = ESPBENCH_IDLE_PORT(dev);

    if (!icount_enabled()) {
        error_setg(errp, "espbench-idle-port needs -icount");
        return;
    }
    memory_region_init_io(&s->ports, OBJECT(s), &idle_ops, s, TYPE_ESPBENCH_IDLE_PORT, PORTS);
    memory_region_add_subregion(get_system_io(), PORT, &s->ports);
}

static void idle_class_init(ObjectClass *klass, void *data)
{
    DeviceClass *class = DEVICE_CLASS(klass);

    class->desc = "Idle time of the CPU at I/O ports, for -icount";
    class->realize = idle_realize;
    class->user_creatable = true;
    class->hotpluggable = false;
    set_bit(DEVICE_CATEGORY_MISC, class->categories);
}

static const TypeInfo idle_types[] = {
    {
        .name = TYPE_ESPBENCH_IDLE_PORT,
        .parent = TYPE_DEVICE,
        .instance_size = sizeof(EspbenchIdlePortState),
        .class_init = idle_class_init,
    },
};

DEFINE_TYPES(idle_types)
