/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Counts each instruction that the guest executes, by its address and by who called whom, for `espbench profile`.
 *
 *     -device espbench-profile,path=FILE
 *
 * The count is icount's own: 15-icount-profile.patch calls espbench_block_begins() where a block takes its instructions
 * from the counter, and espbench_block_cut() where it gives some back that were not executed. So the sum over all
 * addresses is what the clock counted, to the last one.
 *
 * Who called whom is a shadow stack for each stack of the guest: a call pushes, and what lies below the stack pointer
 * has returned. A hard interrupt begins a path of its own, whatever it interrupted; the guest's stacks are told apart
 * by where they lie, and one that is entered afresh (of interrupts, of a system call) hangs on whoever entered it.
 * None of it can be seen by the guest.
 *
 * Each time the guest reads how long its CPU stood still, a section goes into FILE:
 *
 *     section FROM TO                     executed instructions since the start of the machine
 *     node ID PARENT HOW ENTRY            HOW: 0 called, 1 hard interrupt, 2 exception, 3 user space (ENTRY: its number)
 *     block ID PC PC-PC …                 where it begins, and what each next instruction lies behind the one before it
 *     ran NODE BLOCK TIMES [AT-TIMES …]   executions, and how often it ended before instruction AT
 *     end
 *
 * The first, of the boot, has nothing between its first line and its last.
 *
 * Words of 4 bytes that are written to I/O port 0x5f8 go into FILE.symbols; a 0 closes it.
 */
#include "qemu/osdep.h"
#include "qemu/error-report.h"
#include "qemu/module.h"
#include "qapi/error.h"
#include "exec/address-spaces.h"
#include "hw/qdev-core.h"
#include "hw/qdev-properties.h"
#include "sysemu/cpu-timers.h"
#include "profile.h"

#define TYPE_ESPBENCH_PROFILE "espbench-profile"
OBJECT_DECLARE_SIMPLE_TYPE(EspbenchProfileState, ESPBENCH_PROFILE)

#define PORT            0x5f8
#define DEEPEST         1024
#define NOBODY          UINT32_MAX

struct EspbenchProfileState {
    DeviceState parent_obj;
    MemoryRegion port;
    char *path;
    FILE *symbols;
};

/* A block as one node executed it. */
struct run {
    struct run *next;           /* in the same bucket */
    struct espbench_block *block;
    uint32_t node;
    uint64_t times;
    uint32_t *cut;              /* for each instruction: how often the block ended before it; NULL: never */
};

struct espbench_block {
    uint32_t id, count;
    enum espbench_ending ending;
    bool user;
    bool told;                  /* in this section */
    uint64_t after;
    struct run *last;           /* by which node it was executed last */
    uint32_t caller, called;    /* the node that called it last, and what that call is */
    uint64_t pcs[];
};

struct node {
    uint32_t parent, next;      /* next: in the same bucket */
    enum espbench_entry how;
    bool told;
    uint64_t entry;
};

struct frame {
    uint64_t sp, back;
    uint32_t node;
    enum espbench_entry how;
};

struct stack {
    uint64_t region;
    uint32_t base;              /* the node of what is on it without a frame */
    uint32_t depth;
    struct frame frames[DEEPEST];
};

bool espbench_profiling;
uint64_t espbench_kernel_base;
unsigned espbench_stack_shift;

static char *profile_path;
static int64_t since;

static struct node *nodes;
static uint32_t node_count, node_room, *node_buckets, node_bucket_count;
static struct run **run_buckets;
static uint32_t run_count, run_bucket_count;
static uint32_t block_count;
static GHashTable *stacks, *spaces;

/* Where the guest is. */
static struct stack *here;
static uint64_t top_sp;         /* of here's last frame, or all ones */
static uint32_t now_in;         /* the node */
static struct run *running;
static enum espbench_ending ended;
static uint64_t ended_after;
static enum espbench_entry entering;    /* ESPBENCH_CALL: nothing */
static uint64_t entering_from;

/* --- nodes: who was called by whom --- */

static uint32_t mixed(uint64_t a, uint64_t b)
{
    uint64_t x = (a ^ (b + 0x9e3779b97f4a7c15ull)) * 0xff51afd7ed558ccdull;

    return (x ^ (x >> 29)) >> 3;
}

static uint32_t node_bucket(uint32_t parent, enum espbench_entry how, uint64_t entry)
{
    return mixed(entry, (uint64_t)parent * 4 + how) & (node_bucket_count - 1);
}

static void more_nodes(void)
{
    node_room = node_room ? 2 * node_room : 4096;
    nodes = g_renew(struct node, nodes, node_room);
    node_bucket_count = 2 * node_room;
    node_buckets = g_renew(uint32_t, node_buckets, node_bucket_count);
    memset(node_buckets, 0xff, node_bucket_count * sizeof(*node_buckets));
    for (uint32_t i = 0; i < node_count; i++) {
        uint32_t *bucket = &node_buckets[node_bucket(nodes[i].parent, nodes[i].how, nodes[i].entry)];

        nodes[i].next = *bucket;
        *bucket = i;
    }
}

static uint32_t child(uint32_t parent, enum espbench_entry how, uint64_t entry)
{
    uint32_t *bucket, at;

    if (node_count == node_room) {
        more_nodes();
    }
    bucket = &node_buckets[node_bucket(parent, how, entry)];
    for (at = *bucket; at != NOBODY; at = nodes[at].next) {
        if (nodes[at].entry == entry && nodes[at].parent == parent && nodes[at].how == how) {
            return at;
        }
    }
    nodes[node_count] = (struct node){ .parent = parent, .how = how, .entry = entry, .next = *bucket };
    *bucket = node_count;
    return node_count++;
}

/* The node of a user's program, by the order in which its addresses were first seen. */
static uint32_t user_node(uint64_t space)
{
    gpointer number = g_hash_table_lookup(spaces, &space);

    if (!number) {
        number = GUINT_TO_POINTER(g_hash_table_size(spaces) + 1);
        g_hash_table_insert(spaces, g_memdup2(&space, sizeof(space)), number);
    }
    return child(0, ESPBENCH_USER, GPOINTER_TO_UINT(number));
}

/* --- runs: what they executed --- */

static struct run *run_of(struct espbench_block *block, uint32_t node)
{
    struct run **bucket = &run_buckets[mixed((uintptr_t)block, node) & (run_bucket_count - 1)];
    struct run *run;

    for (run = *bucket; run; run = run->next) {
        if (run->block == block && run->node == node) {
            return run;
        }
    }
    if (run_count++ == run_bucket_count) {
        struct run **former = run_buckets;
        uint32_t count = run_bucket_count;

        run_bucket_count *= 2;
        run_buckets = g_new0(struct run *, run_bucket_count);
        for (uint32_t i = 0; i < count; i++) {
            while ((run = former[i])) {
                former[i] = run->next;
                bucket = &run_buckets[mixed((uintptr_t)run->block, run->node) & (run_bucket_count - 1)];
                run->next = *bucket;
                *bucket = run;
            }
        }
        g_free(former);
        bucket = &run_buckets[mixed((uintptr_t)block, node) & (run_bucket_count - 1)];
    }
    run = g_new0(struct run, 1);
    run->block = block;
    run->node = node;
    run->next = *bucket;
    *bucket = run;
    return run;
}

/* --- the guest's stacks --- */

static void look_at_top(void)
{
    now_in = here->depth ? here->frames[here->depth - 1].node : here->base;
    top_sp = here->depth ? here->frames[here->depth - 1].sp : UINT64_MAX;
}

static void push(uint32_t node, enum espbench_entry how, uint64_t sp, uint64_t back)
{
    if (here->depth < DEEPEST) {
        here->frames[here->depth++] = (struct frame){ .sp = sp, .back = back, .node = node, .how = how };
    }
    look_at_top();
}

static uint64_t region_of(uint64_t sp, uint64_t space)
{
    return sp < espbench_kernel_base ? ~space : sp >> espbench_stack_shift;
}

/* To the stack where the pointer is now. fresh: a frame at the pointer itself is one of before. */
static void settle(uint64_t sp, uint64_t space, bool fresh)
{
    uint64_t region = region_of(sp, space);

    if (!here || here->region != region) {
        /*
         * Whoever calls something on another stack, or has just been entered, is its caller there. Who goes to one in
         * the midst of a function is a thread that gives way to another.
         */
        bool other_thread = here && here->depth && here->frames[here->depth - 1].how == ESPBENCH_CALL &&
                            ended == ESPBENCH_GOES_ON && entering == ESPBENCH_CALL;
        uint32_t from = other_thread ? 0 : now_in;

        here = g_hash_table_lookup(stacks, &region);
        if (!here) {
            here = g_new0(struct stack, 1);
            here->region = region;
            here->base = from;
            g_hash_table_insert(stacks, &here->region, here);
        }
        fresh |= entering != ESPBENCH_CALL;
        while (here->depth && (here->frames[here->depth - 1].sp < sp ||
                               (fresh && here->frames[here->depth - 1].sp == sp))) {
            here->depth--;
        }
        if (!here->depth && sp >= espbench_kernel_base) {
            here->base = from;
        }
    }
    while (here->depth && (here->frames[here->depth - 1].sp < sp ||
                           (fresh && here->frames[here->depth - 1].sp == sp &&
                            here->frames[here->depth - 1].how == ESPBENCH_CALL))) {
        here->depth--;
    }
    look_at_top();
}

/* The guest comes to pc: whatever the block before it did with the stack is done. */
static void arrive(struct espbench_block *block, uint64_t pc, uint64_t sp, uint64_t space)
{
    settle(sp, space, ended == ESPBENCH_CALLS);
    switch (ended) {
    case ESPBENCH_CALLS: {
        uint32_t node;

        if (block && block->called != NOBODY && block->caller == now_in) {
            node = block->called;
        } else {
            node = child(now_in, ESPBENCH_CALL, pc);
            if (block) {
                block->caller = now_in;
                block->called = node;
            }
        }
        push(node, ESPBENCH_CALL, sp, ended_after);
        break;
    }
    case ESPBENCH_RETURNS:
        for (uint32_t i = here->depth; i > 0 && here->frames[i - 1].sp == sp; i--) {
            if (here->frames[i - 1].how == ESPBENCH_CALL && here->frames[i - 1].back == pc) {
                here->depth = i - 1;
                look_at_top();
                break;
            }
        }
        break;
    case ESPBENCH_ENDS_INTERRUPT:
        for (uint32_t i = here->depth; i > 0 && here->frames[i - 1].sp == sp; i--) {
            if (here->frames[i - 1].how != ESPBENCH_CALL) {
                here->depth = i - 1;
                look_at_top();
                break;
            }
        }
        break;
    case ESPBENCH_GOES_ELSEWHERE:
        if (here->depth && here->frames[here->depth - 1].sp == sp &&
            here->frames[here->depth - 1].how == ESPBENCH_CALL) {
            struct frame *top = &here->frames[here->depth - 1];

            top->node = child(nodes[top->node].parent, ESPBENCH_CALL, pc);
            look_at_top();
        }
        break;
    case ESPBENCH_GOES_ON:
        break;
    }
    ended = ESPBENCH_GOES_ON;
}

void espbench_entered(enum espbench_entry how, uint64_t pc, uint64_t sp, uint64_t space)
{
    arrive(NULL, pc, sp, space);
    entering = how;
    entering_from = pc;
}

void espbench_block_begins(struct espbench_block *block, uint64_t sp, uint64_t space)
{
    if (unlikely(ended != ESPBENCH_GOES_ON || entering != ESPBENCH_CALL || !here ||
                 here->region != region_of(sp, space) || sp > top_sp)) {
        arrive(block, block->pcs[0], sp, space);
        if (block->user) { /* all of a program is one node */
            here->depth = 0;
            here->base = user_node(space);
            look_at_top();
        }
        if (entering != ESPBENCH_CALL) {
            uint32_t parent = entering == ESPBENCH_INTERRUPT ? 0 : now_in;

            push(child(parent, entering, block->pcs[0]), entering, sp, entering_from);
            entering = ESPBENCH_CALL;
        }
    }
    if (likely(block->last && block->last->node == now_in)) {
        running = block->last;
    } else {
        running = block->last = run_of(block, now_in);
    }
    running->times++;
    ended = block->ending;
    ended_after = block->after;
}

void espbench_block_cut(struct espbench_block *block, unsigned left)
{
    if (!running || running->block != block || left > block->count) {
        error_report("espbench-profile: a block ends that did not begin");
        abort();
    }
    if (!left) {
        return;
    }
    if (!running->cut) {
        running->cut = g_new0(uint32_t, block->count);
    }
    running->cut[block->count - left]++;
    ended = ESPBENCH_GOES_ON;
}

struct espbench_block *espbench_block_new(const uint64_t *pcs, unsigned count, uint64_t after,
                                          enum espbench_ending ending, bool user)
{
    struct espbench_block *block = g_malloc0(sizeof(*block) + count * sizeof(*pcs));

    block->id = block_count++;
    block->count = count;
    block->user = user;
    block->ending = user ? ESPBENCH_GOES_ON : ending;
    block->after = after;
    block->called = NOBODY;
    memcpy(block->pcs, pcs, count * sizeof(*pcs));
    return block;
}

/* --- sections --- */

static void tell_node(FILE *file, uint32_t at)
{
    if (nodes[at].told) {
        return;
    }
    nodes[at].told = true;
    if (at) {
        tell_node(file, nodes[at].parent);
    }
    fprintf(file, "node %x %x %x %" PRIx64 "\n", at, nodes[at].parent, nodes[at].how, nodes[at].entry);
}

static void tell_block(FILE *file, struct espbench_block *block)
{
    if (block->told) {
        return;
    }
    block->told = true;
    fprintf(file, "block %x %" PRIx64, block->id, block->pcs[0]);
    for (uint32_t i = 1; i < block->count; i++) {
        fprintf(file, " %" PRIx64, block->pcs[i] - block->pcs[i - 1]);
    }
    fputc('\n', file);
}

static void tell_run(FILE *file, struct run *run)
{
    tell_node(file, run->node);
    tell_block(file, run->block);
    fprintf(file, "ran %x %x %" PRIx64, run->node, run->block->id, run->times);
    for (uint32_t i = 0; run->cut && i < run->block->count; i++) {
        if (run->cut[i]) {
            fprintf(file, " %x-%x", i, run->cut[i]);
        }
    }
    fputc('\n', file);
}

void espbench_profile_section(void)
{
    int64_t now = icount_get_raw();
    FILE *file;
    bool failed;

    if (!espbench_profiling) {
        return;
    }
    file = fopen(profile_path, "a");
    if (!file) {
        error_report("espbench-profile: %s: %s", profile_path, strerror(errno));
        _exit(1);
    }
    for (uint32_t i = 0; i < node_count; i++) {
        nodes[i].told = false;
    }
    for (uint32_t i = 0; i < run_bucket_count; i++) {
        for (struct run *run = run_buckets[i]; run; run = run->next) {
            run->block->told = false;
        }
    }
    fprintf(file, "section %" PRIx64 " %" PRIx64 "\n", since, now);
    for (uint32_t i = 0; i < run_bucket_count; i++) {
        for (struct run *run = run_buckets[i]; run; run = run->next) {
            if (run->times && since) {
                tell_run(file, run);
            }
            run->times = 0;
            g_clear_pointer(&run->cut, g_free);
        }
    }
    fprintf(file, "end\n");
    failed = ferror(file);
    if (fclose(file) || failed) {
        error_report("espbench-profile: cannot write %s", profile_path);
        _exit(1);
    }
    since = now;
}

/* --- the device --- */

static uint64_t port_read(void *opaque, hwaddr offset, unsigned size)
{
    return 0;
}

static void port_write(void *opaque, hwaddr offset, uint64_t value, unsigned size)
{
    EspbenchProfileState *s = opaque;
    uint32_t word = value;

    if (!word) {
        if (s->symbols) {
            fclose(s->symbols);
            s->symbols = NULL;
        }
        return;
    }
    if (!s->symbols) {
        g_autofree char *path = g_strconcat(s->path, ".symbols", NULL);

        s->symbols = fopen(path, "w");
        if (!s->symbols) {
            error_report("espbench-profile: %s: %s", path, strerror(errno));
            _exit(1);
        }
    }
    fwrite(&word, sizeof(word), 1, s->symbols);
}

static const MemoryRegionOps port_ops = {
    .read = port_read,
    .write = port_write,
    .endianness = DEVICE_LITTLE_ENDIAN,
    .valid = { .min_access_size = 4, .max_access_size = 4 },
};

static void profile_realize(DeviceState *dev, Error **errp)
{
    EspbenchProfileState *s = ESPBENCH_PROFILE(dev);

    if (!icount_enabled() || !s->path || profile_path) {
        error_setg(errp, "espbench-profile needs -icount and path=FILE, once");
        return;
    }
    profile_path = s->path;
    stacks = g_hash_table_new(g_int64_hash, g_int64_equal);
    spaces = g_hash_table_new(g_int64_hash, g_int64_equal);
    run_bucket_count = 1 << 16;
    run_buckets = g_new0(struct run *, run_bucket_count);
    child(0, ESPBENCH_CALL, 0);
    memory_region_init_io(&s->port, OBJECT(s), &port_ops, s, TYPE_ESPBENCH_PROFILE, 4);
    memory_region_add_subregion(get_system_io(), PORT, &s->port);
    espbench_profiling = true;
}

static Property profile_properties[] = {
    DEFINE_PROP_STRING("path", EspbenchProfileState, path),
    DEFINE_PROP_END_OF_LIST(),
};

static void profile_class_init(ObjectClass *klass, void *data)
{
    DeviceClass *class = DEVICE_CLASS(klass);

    class->desc = "Counts the guest's instructions by address, for -icount";
    class->realize = profile_realize;
    class->user_creatable = true;
    class->hotpluggable = false;
    device_class_set_props(class, profile_properties);
    set_bit(DEVICE_CATEGORY_MISC, class->categories);
}

static const TypeInfo profile_types[] = {
    {
        .name = TYPE_ESPBENCH_PROFILE,
        .parent = TYPE_DEVICE,
        .instance_size = sizeof(EspbenchProfileState),
        .class_init = profile_class_init,
    },
};

DEFINE_TYPES(profile_types)
