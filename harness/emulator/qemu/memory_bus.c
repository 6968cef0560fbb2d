/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The memory's bus as a QEMU device: it moves so many bytes in a second, for one device at a time.
 *
 *     -device espbench-bus,bytes-per-second=1332000000
 *
 * The Ethernet ports and the SEC ask for it with each frame or request as a whole, and get it in the order in which
 * they ask. What the CPU's cache misses take of it is subtracted from the rate by the caller of QEMU. Counters are
 * properties: transfers, busy-ns, waited-ns.
 */
#include "qemu/osdep.h"
#include "qemu/module.h"
#include "qemu/timer.h"
#include "qapi/error.h"
#include "hw/qdev-core.h"
#include "hw/qdev-properties.h"
#include "memory_bus.h"

#define TYPE_ESPBENCH_BUS "espbench-bus"
OBJECT_DECLARE_SIMPLE_TYPE(EspbenchBusState, ESPBENCH_BUS)

struct EspbenchBusState {
    DeviceState parent_obj;
    uint64_t bytes_per_second;
    uint64_t free_ns;   /* when the last transfer ends */
    uint64_t carry;     /* fraction of a nanosecond that earlier transfers took, x bytes_per_second */
    uint64_t transfers, busy_ns, waited_ns;
};

static EspbenchBusState *the_bus;

bool espbench_bus_has_clock(void)
{
    return the_bus != NULL;
}

struct espbench_transfer espbench_bus_take(uint64_t from_ns, uint64_t bytes)
{
    EspbenchBusState *s = the_bus;
    struct espbench_transfer transfer = { from_ns, from_ns };
    unsigned __int128 exact;

    if (!s) {
        return transfer;
    }
    exact = (unsigned __int128)bytes * NANOSECONDS_PER_SECOND + s->carry;
    transfer.begins_ns = MAX(from_ns, s->free_ns);
    transfer.ends_ns = transfer.begins_ns + exact / s->bytes_per_second;
    s->carry = exact % s->bytes_per_second;
    s->free_ns = transfer.ends_ns;
    s->transfers++;
    s->busy_ns += transfer.ends_ns - transfer.begins_ns;
    s->waited_ns += transfer.begins_ns - from_ns;
    return transfer;
}

static void bus_realize(DeviceState *dev, Error **errp)
{
    EspbenchBusState *s = ESPBENCH_BUS(dev);

    if (!s->bytes_per_second || the_bus) {
        error_setg(errp, "espbench-bus needs bytes-per-second above zero, and there is one bus");
        return;
    }
    the_bus = s;
}

static Property bus_properties[] = {
    DEFINE_PROP_UINT64("bytes-per-second", EspbenchBusState, bytes_per_second, 0),
    DEFINE_PROP_END_OF_LIST(),
};

static void bus_instance_init(Object *obj)
{
    EspbenchBusState *s = ESPBENCH_BUS(obj);

    object_property_add_uint64_ptr(obj, "transfers", &s->transfers, OBJ_PROP_FLAG_READ);
    object_property_add_uint64_ptr(obj, "busy-ns", &s->busy_ns, OBJ_PROP_FLAG_READ);
    object_property_add_uint64_ptr(obj, "waited-ns", &s->waited_ns, OBJ_PROP_FLAG_READ);
}

static void bus_class_init(ObjectClass *klass, void *data)
{
    DeviceClass *class = DEVICE_CLASS(klass);

    class->desc = "The memory's bus, which devices wait for";
    class->realize = bus_realize;
    class->user_creatable = true;
    class->hotpluggable = false;
    device_class_set_props(class, bus_properties);
    set_bit(DEVICE_CATEGORY_MISC, class->categories);
}

static const TypeInfo bus_types[] = {
    {
        .name = TYPE_ESPBENCH_BUS,
        .parent = TYPE_DEVICE,
        .instance_size = sizeof(EspbenchBusState),
        .instance_init = bus_instance_init,
        .class_init = bus_class_init,
    },
};

DEFINE_TYPES(bus_types)
