/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How long the CPU of the ppce500 board has stood still, to the nanosecond, as a register of its CCSR.
 *
 *     -device espbench-idle
 *
 * With -icount the virtual clock is the time of the instructions executed and of the waits between them: what is not
 * an instruction was idle. The guest's kernel can only look at its clock once it has begun to run again, and before it
 * stops; hundreds of instructions around each interrupt would count as idle, and are most of what a fast path has.
 *
 * At CCSR 0xc0000, big-endian: u64 ns (its high word, read first, takes the low one along), u32 "IDLE".
 */
#include "qemu/osdep.h"
#include "qemu/module.h"
#include "qemu/timer.h"
#include "qapi/error.h"
#include "hw/ppc/e500-ccsr.h"
#include "hw/qdev-core.h"
#include "sysemu/cpu-timers.h"
#include "profile.h"

#define TYPE_ESPBENCH_IDLE "espbench-idle"
OBJECT_DECLARE_SIMPLE_TYPE(EspbenchIdleState, ESPBENCH_IDLE)

#define CCSR_OFFSET     0xc0000
#define REGISTER_SPACE  0x1000
#define MAGIC           0x49444c45      /* "IDLE" */

struct EspbenchIdleState {
    DeviceState parent_obj;
    MemoryRegion mmio;
    uint32_t low;
};

static uint64_t idle_read(void *opaque, hwaddr offset, unsigned size)
{
    EspbenchIdleState *s = opaque;
    uint64_t ns;

    switch (offset) {
    case 0:
        espbench_profile_section();
        ns = qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL) - icount_to_ns(icount_get_raw());
        s->low = ns;
        return ns >> 32;
    case 4:
        return s->low;
    case 8:
        return MAGIC;
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
    .endianness = DEVICE_BIG_ENDIAN,
    .valid = { .min_access_size = 4, .max_access_size = 4 },
};

static void idle_realize(DeviceState *dev, Error **errp)
{
    EspbenchIdleState *s = ESPBENCH_IDLE(dev);
    Object *ccsr = object_resolve_path_type("", TYPE_CCSR, NULL);

    if (!ccsr || !icount_enabled()) {
        error_setg(errp, "espbench-idle needs the ppce500 board and -icount");
        return;
    }
    memory_region_init_io(&s->mmio, OBJECT(s), &idle_ops, s, TYPE_ESPBENCH_IDLE, REGISTER_SPACE);
    memory_region_add_subregion(&CCSR(ccsr)->ccsr_space, CCSR_OFFSET, &s->mmio);
}

static void idle_class_init(ObjectClass *klass, void *data)
{
    DeviceClass *class = DEVICE_CLASS(klass);

    class->desc = "Idle time of the CPU, for -icount";
    class->realize = idle_realize;
    class->user_creatable = true;
    class->hotpluggable = false;
    set_bit(DEVICE_CATEGORY_MISC, class->categories);
}

static const TypeInfo idle_types[] = {
    {
        .name = TYPE_ESPBENCH_IDLE,
        .parent = TYPE_DEVICE,
        .instance_size = sizeof(EspbenchIdleState),
        .class_init = idle_class_init,
    },
};

DEFINE_TYPES(idle_types)
