/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The Freescale SEC security engine as a QEMU device of the ppce500 board.
 *
 *     -device fsl-sec,version=2.1,clock=266000000,costs=descriptor=500:bus=0.25:des=1:3des=3:...
 *
 * The engine itself is in ../sec and knows nothing of QEMU; here it gets its place in CCSR, its input of the MPIC,
 * guest memory, and a timer of QEMU_CLOCK_VIRTUAL, so that with -icount its services end at times that depend on
 * the guest alone. Counters are properties: descriptors, errors, bytes-in, bytes-out, busy-ns. With x-flip-icv=on each
 * ICV has a wrong bit: the guest's self-tests must find it.
 */
#include "qemu/osdep.h"
#include "qemu/module.h"
#include "qemu/timer.h"
#include "qapi/error.h"
#include "exec/address-spaces.h"
#include "hw/irq.h"
#include "hw/ppc/e500-ccsr.h"
#include "hw/ppc/openpic.h"
#include "hw/qdev-core.h"
#include "hw/qdev-properties.h"
#include "migration/vmstate.h"
#include "sysemu/device_tree.h"
#include "sysemu/reset.h"
#include "bus.h"
#include "fsl_sec.h"
#include "memory_bus.h"
#include "sec.h"

#define TYPE_FSL_SEC "fsl-sec"
OBJECT_DECLARE_SIMPLE_TYPE(FslSecState, FSL_SEC)

#define CCSR_OFFSET     0x30000
#define MPIC_INPUT      45

struct FslSecState {
    DeviceState parent_obj;
    MemoryRegion mmio;
    qemu_irq irq;
    QEMUTimer *timer;
    struct sec *sec;
    struct sec_state *state;    /* of sec: what a snapshot keeps */

    char *version;
    char *costs;
    uint64_t clock;
    uint64_t seed;
    uint32_t done_queue;
    uint32_t at_once;
    bool flip_icv;
};

static bool fsl_sec_memory_read(void *opaque, uint64_t address, void *buffer, size_t length)
{
    espbench_bus.sec_read += length;
    return address_space_read(&address_space_memory, address, MEMTXATTRS_UNSPECIFIED, buffer, length) == MEMTX_OK;
}

static bool fsl_sec_memory_write(void *opaque, uint64_t address, const void *buffer, size_t length)
{
    espbench_bus.sec_written += length;
    return address_space_write(&address_space_memory, address, MEMTXATTRS_UNSPECIFIED, buffer, length) == MEMTX_OK;
}

static void fsl_sec_interrupt(void *opaque, bool level)
{
    FslSecState *s = opaque;

    qemu_set_irq(s->irq, level);
}

static uint64_t fsl_sec_now(void *opaque)
{
    return qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);
}

static void fsl_sec_wake_at(void *opaque, uint64_t when)
{
    FslSecState *s = opaque;

    if (when == SEC_NEVER) {
        timer_del(s->timer);
    } else {
        timer_mod_ns(s->timer, when);
    }
}

static struct sec_transfer fsl_sec_transfer(void *opaque, uint64_t from, uint64_t bytes)
{
    struct espbench_transfer transfer = espbench_bus_take(from, bytes);

    return (struct sec_transfer) { transfer.begins_ns, transfer.ends_ns };
}

static void fsl_sec_timer(void *opaque)
{
    FslSecState *s = opaque;

    sec_wake(s->sec);
    espbench_bus.sec_descriptors = s->state->statistics.descriptors;
}

static uint64_t fsl_sec_read(void *opaque, hwaddr offset, unsigned size)
{
    FslSecState *s = opaque;

    return sec_read(s->sec, offset);
}

static void fsl_sec_write(void *opaque, hwaddr offset, uint64_t value, unsigned size)
{
    FslSecState *s = opaque;

    sec_write(s->sec, offset, value);
}

/* Registers are doublewords; QEMU splits an access of 64 bits into two of 32, the high word first. */
static const MemoryRegionOps fsl_sec_ops = {
    .read = fsl_sec_read,
    .write = fsl_sec_write,
    .endianness = DEVICE_BIG_ENDIAN,
    .valid = { .min_access_size = 4, .max_access_size = 8 },
    .impl = { .min_access_size = 4, .max_access_size = 4 },
};

static void fsl_sec_reset(void *opaque)
{
    FslSecState *s = opaque;

    sec_reset(s->sec);
}

/* The one object of a type on this machine, or NULL and an error. */
static Object *fsl_sec_board_part(const char *type, Error **errp)
{
    Object *part = object_resolve_path_type("", type, NULL);

    if (!part) {
        error_setg(errp, "fsl-sec: this machine has no %s; the engine is a part of the ppce500 board", type);
    }
    return part;
}

static void fsl_sec_realize(DeviceState *dev, Error **errp)
{
    FslSecState *s = FSL_SEC(dev);
    const struct sec_world world = {
        .opaque = s,
        .read = fsl_sec_memory_read,
        .write = fsl_sec_memory_write,
        .interrupt = fsl_sec_interrupt,
        .now = fsl_sec_now,
        .wake_at = fsl_sec_wake_at,
        .transfer = fsl_sec_transfer,
    };
    struct sec_config config = {
        .version = sec_version_by_name(s->version ? s->version : ""),
        .clock_hz = s->clock,
        .done_queue = s->done_queue,
        .at_once = s->at_once,
        .seed = s->seed,
        .flip_icv = s->flip_icv,
    };
    char message[200];
    Object *ccsr, *mpic;

    if (!config.version) {
        error_setg(errp, "fsl-sec: version '%s': there are %s", s->version ? s->version : "", sec_version_names);
        return;
    }
    if (!s->clock || !s->done_queue || !s->at_once) {
        error_setg(errp, "fsl-sec: clock (in Hz), done-queue and at-once must be above zero");
        return;
    }
    if (!sec_costs_parse(s->costs ? s->costs : "", &config.costs, message, sizeof(message))) {
        error_setg(errp, "fsl-sec: costs: %s", message);
        return;
    }
    ccsr = fsl_sec_board_part(TYPE_CCSR, errp);
    mpic = ccsr ? fsl_sec_board_part(TYPE_OPENPIC, errp) : NULL;
    if (!mpic) {
        return;
    }
    s->irq = qdev_get_gpio_in(DEVICE(mpic), MPIC_INPUT);
    s->timer = timer_new_ns(QEMU_CLOCK_VIRTUAL, fsl_sec_timer, s);
    memory_region_init_io(&s->mmio, OBJECT(s), &fsl_sec_ops, s, TYPE_FSL_SEC, SEC_REGISTER_SPACE);
    memory_region_add_subregion(&CCSR(ccsr)->ccsr_space, CCSR_OFFSET, &s->mmio);
    sec_init(s->sec, &config, &world);
    qemu_register_reset(fsl_sec_reset, s);
}

void fsl_sec_add_to_fdt(void *fdt, const char *soc, uint32_t mpic_phandle)
{
    Object *object = object_resolve_path_type("", TYPE_FSL_SEC, NULL);
    const struct sec_version *version;
    g_autofree char *node = NULL;

    if (!object) {
        return;
    }
    version = FSL_SEC(object)->sec->config.version;
    node = g_strdup_printf("%s/crypto@%x", soc, CCSR_OFFSET);
    qemu_fdt_add_subnode(fdt, node);
    qemu_fdt_setprop(fdt, node, "compatible", version->compatible, version->compatible_length);
    qemu_fdt_setprop_cells(fdt, node, "reg", CCSR_OFFSET, SEC_REGISTER_SPACE);
    qemu_fdt_setprop_cells(fdt, node, "interrupts", MPIC_INPUT, 2);
    qemu_fdt_setprop_cell(fdt, node, "interrupt-parent", mpic_phandle);
    qemu_fdt_setprop_cell(fdt, node, "fsl,num-channels", version->channels);
    qemu_fdt_setprop_cell(fdt, node, "fsl,channel-fifo-len", version->fifo_length);
    qemu_fdt_setprop_cell(fdt, node, "fsl,exec-units-mask", version->units);
    qemu_fdt_setprop_cell(fdt, node, "fsl,descriptor-types-mask", version->types);
}

static int fsl_sec_post_load(void *opaque, int version_id)
{
    FslSecState *s = opaque;

    return sec_restored(s->sec) ? 0 : -EINVAL;
}

/* As bytes: a snapshot is only ever loaded by the QEMU that saved it, and the state knows its own size. */
static const VMStateDescription fsl_sec_vmstate = {
    .name = TYPE_FSL_SEC,
    .version_id = 1,
    .minimum_version_id = 1,
    .post_load = fsl_sec_post_load,
    .fields = (VMStateField[]) {
        VMSTATE_BUFFER_POINTER_UNSAFE(state, FslSecState, 0, sizeof(struct sec_state)),
        VMSTATE_END_OF_LIST()
    }
};

static Property fsl_sec_properties[] = {
    DEFINE_PROP_STRING("version", FslSecState, version),
    DEFINE_PROP_UINT64("clock", FslSecState, clock, 0),
    DEFINE_PROP_STRING("costs", FslSecState, costs),
    DEFINE_PROP_UINT32("done-queue", FslSecState, done_queue, 15),
    DEFINE_PROP_UINT32("at-once", FslSecState, at_once, 1),
    DEFINE_PROP_UINT64("seed", FslSecState, seed, 1),
    DEFINE_PROP_BOOL("x-flip-icv", FslSecState, flip_icv, false),
    DEFINE_PROP_END_OF_LIST(),
};

static void fsl_sec_instance_init(Object *obj)
{
    FslSecState *s = FSL_SEC(obj);
    struct sec_statistics *counters;

    s->sec = g_new0(struct sec, 1);
    s->state = &s->sec->state;
    counters = &s->state->statistics;
    object_property_add_uint64_ptr(obj, "descriptors", &counters->descriptors, OBJ_PROP_FLAG_READ);
    object_property_add_uint64_ptr(obj, "errors", &counters->errors, OBJ_PROP_FLAG_READ);
    object_property_add_uint64_ptr(obj, "bytes-in", &counters->bytes_in, OBJ_PROP_FLAG_READ);
    object_property_add_uint64_ptr(obj, "bytes-out", &counters->bytes_out, OBJ_PROP_FLAG_READ);
    object_property_add_uint64_ptr(obj, "busy-ns", &counters->busy_ns, OBJ_PROP_FLAG_READ);
}

static void fsl_sec_instance_finalize(Object *obj)
{
    g_free(FSL_SEC(obj)->sec);
}

static void fsl_sec_class_init(ObjectClass *klass, void *data)
{
    DeviceClass *dc = DEVICE_CLASS(klass);

    dc->desc = "Freescale SEC 2.x/3.0 security engine";
    dc->realize = fsl_sec_realize;
    dc->vmsd = &fsl_sec_vmstate;
    dc->hotpluggable = false;
    device_class_set_props(dc, fsl_sec_properties);
    set_bit(DEVICE_CATEGORY_MISC, dc->categories);
}

static const TypeInfo fsl_sec_info = {
    .name = TYPE_FSL_SEC,
    .parent = TYPE_DEVICE,
    .instance_size = sizeof(FslSecState),
    .instance_init = fsl_sec_instance_init,
    .instance_finalize = fsl_sec_instance_finalize,
    .class_init = fsl_sec_class_init,
};

static void fsl_sec_register_types(void)
{
    type_register_static(&fsl_sec_info);
}

type_init(fsl_sec_register_types)
