/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The power switch of a PC, at an I/O port that any kernel leaves alone: off, and on again at once.
 *
 *     -device espbench-power-port
 *
 * A write of "OFF!" to 0x5f4 (4 bytes, little-endian) resets the CPU and all devices. The firmware then starts the
 * kernel from its image once more. The memory keeps what was in it, but nothing that boots reads that: only of the
 * firmware, which would find by its variables that it ran already, the copy in memory is made anew. The links go on.
 *
 * QEMU itself resets a machine in its main loop, when the host comes to it. Here the vCPU's own thread does it, between
 * two instructions that are the same in each run. -no-reboot does not matter to it: a guest that panics ends all the same.
 */
#include "qemu/osdep.h"
#include "qemu/module.h"
#include "qapi/error.h"
#include "exec/address-spaces.h"
#include "hw/core/cpu.h"
#include "hw/qdev-core.h"
#include "sysemu/runstate.h"

#define TYPE_ESPBENCH_POWER_PORT "espbench-power-port"
OBJECT_DECLARE_SIMPLE_TYPE(EspbenchPowerPortState, ESPBENCH_POWER_PORT)

#define PORT    0x5f4
#define OFF     0x2146464f      /* "OFF!" */

/* SeaBIOS runs from a copy of its 256 KB, in the memory below 1 MB. */
#define FIRMWARE        0xfffc0000
#define FIRMWARE_COPY   0xc0000
#define FIRMWARE_BYTES  0x40000

struct EspbenchPowerPortState {
    DeviceState parent_obj;
    MemoryRegion port;
};

static void power_cycle(CPUState *cpu, run_on_cpu_data unused)
{
    g_autofree uint8_t *firmware = g_malloc(FIRMWARE_BYTES);

    address_space_read(&address_space_memory, FIRMWARE, MEMTXATTRS_UNSPECIFIED, firmware, FIRMWARE_BYTES);
    address_space_write_rom(&address_space_memory, FIRMWARE_COPY, MEMTXATTRS_UNSPECIFIED, firmware, FIRMWARE_BYTES);
    qemu_system_reset(SHUTDOWN_CAUSE_GUEST_RESET);
}

static uint64_t power_read(void *opaque, hwaddr offset, unsigned size)
{
    return OFF;
}

static void power_write(void *opaque, hwaddr offset, uint64_t value, unsigned size)
{
    if (value == OFF) {
        async_run_on_cpu(first_cpu, power_cycle, RUN_ON_CPU_NULL);
    }
}

static const MemoryRegionOps power_ops = {
    .read = power_read,
    .write = power_write,
    .endianness = DEVICE_LITTLE_ENDIAN,
    .valid = { .min_access_size = 4, .max_access_size = 4 },
};

static void power_realize(DeviceState *dev, Error **errp)
{
    EspbenchPowerPortState *s = ESPBENCH_POWER_PORT(dev);

    memory_region_init_io(&s->port, OBJECT(s), &power_ops, s, TYPE_ESPBENCH_POWER_PORT, 4);
    memory_region_add_subregion(get_system_io(), PORT, &s->port);
}

static void power_class_init(ObjectClass *klass, void *data)
{
    DeviceClass *class = DEVICE_CLASS(klass);

    class->desc = "Power switch of the machine at an I/O port";
    class->realize = power_realize;
    class->user_creatable = true;
    class->hotpluggable = false;
    set_bit(DEVICE_CATEGORY_MISC, class->categories);
}

static const TypeInfo power_types[] = {
    {
        .name = TYPE_ESPBENCH_POWER_PORT,
        .parent = TYPE_DEVICE,
        .instance_size = sizeof(EspbenchPowerPortState),
        .class_init = power_class_init,
    },
};

DEFINE_TYPES(power_types)
