/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One end of a link in virtual time: the shared file, its rings, and waiting for the other end.
 *
 * LINK.md defines the protocol. Plain C: the QEMU device includes it, and so does mirror.c, by which
 * it is tested without QEMU. Every function that can fail for good ends in esplink_fatal(), which the
 * includer defines.
 */
#ifndef ESPLINK_SHM_H
#define ESPLINK_SHM_H

#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define ESPLINK_MAGIC "ESPLINK1"
#define ESPLINK_BRANCH_AT 64
#define ESPLINK_BRANCH_BYTES 64
#define ESPLINK_ENDS_AT 128
#define ESPLINK_COUNTS_AT 512
#define ESPLINK_RINGS_AT 4096

/* Bytes of a frame's time on the wire beside its own: preamble, start of frame, FCS; then the gap. */
#define ESPLINK_AROUND 12
#define ESPLINK_GAP 12
#define ESPLINK_FCS 4
#define ESPLINK_SHORTEST 60

enum { ESPLINK_FRAME, ESPLINK_TEXT, ESPLINK_DAMAGED };
enum { ESPLINK_ABSENT, ESPLINK_ATTACHED, ESPLINK_LEFT };

/* The other end mostly answers within so many looks, if it has another CPU. */
#define ESPLINK_SPINS 500
/* How soon it shows that the other end died. */
#define ESPLINK_LOOK_NS 100000000

struct esplink_header {
    char magic[8];
    uint64_t latency_ns;
    uint64_t step_ns;
    uint32_t ns_per_byte;
    uint32_t ring_bytes;
    /* What goes wrong on the way; shares are of 2^64, late's of 2^32. Nothing does while seed is 0. */
    uint64_t seed;
    uint64_t lose;      /* of all frames: they never come */
    uint64_t flip;      /* of all bits: a frame with one that is flipped comes with a wrong FCS */
    uint32_t late;      /* of all frames: they come late_ns later, perhaps behind others */
    uint32_t late_ns;
};

/* What went wrong with the frames that an end sent. */
struct esplink_errors {
    uint64_t lost, damaged, late;
};

struct esplink_end {
    uint64_t until_ns;  /* what this end still sends leaves then or later */
    uint64_t head;      /* bytes it has put into its ring, ever */
    uint64_t apart[6];
    uint64_t tail;      /* bytes it has taken from the other's ring, ever */
    uint64_t wants_ns;  /* it sleeps until the other's until_ns is this; 0: it does not */
    uint32_t bell;      /* rung by the other to wake it (futex) */
    uint32_t state;
    uint32_t pid;
    uint32_t order;     /* of end 0: odd: tell when you stand; even: branch. The other repeats the odd ones. */
    struct esplink_errors errors;
    uint64_t unused;
};

_Static_assert(sizeof(struct esplink_header) == 64 && sizeof(struct esplink_end) == 128,
               "as LINK.md says");

/* What a gateway at an end tells of itself beside the link, as it was at its last promise; whole numbers since its boot. */
struct esplink_counts {
    uint64_t bus[7];    /* bus.h, in its order */
    uint64_t unused;
};

struct esplink_record {
    uint64_t at_ns;     /* when its last bit arrives */
    uint32_t length;    /* of what follows; padded to a multiple of 8 in the ring */
    uint32_t kind;
};

struct esplink {
    const char *path;
    int fd;
    unsigned end;
    struct esplink_header header;
    uint8_t *base;
    struct esplink_end *mine, *theirs;
    uint8_t *out, *in;  /* the rings */
    uint64_t head, tail;
    uint64_t free_ns;   /* when the wire is free for our next frame */
    uint32_t obeyed;    /* the last order of end 0 */
    uint64_t chance;    /* what the next draw comes from */
    int spins;          /* how often it looks before it sleeps */
};

enum esplink_waited {
    ESPLINK_REACHED,
    ESPLINK_NOT_YET,    /* nothing for ESPLINK_LOOK_NS: the caller looks whether it is to end */
    ESPLINK_GONE,       /* the other end left in order */
    ESPLINK_DEAD,
};

/* Tells what is wrong, with the link's path, and does not return. */
static void esplink_fatal(const struct esplink *link, const char *what) __attribute__((noreturn));

static inline struct flock esplink_lock(unsigned end)
{
    return (struct flock) { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = end, .l_len = 1 };
}

static inline void esplink_take_end(struct esplink *link)
{
    struct flock lock = esplink_lock(link->end);

    if (fcntl(link->fd, F_OFD_SETLK, &lock) < 0) {
        esplink_fatal(link, "another process has this end");
    }
    if (__atomic_load_n(&link->mine->state, __ATOMIC_ACQUIRE) != ESPLINK_ABSENT) {
        esplink_fatal(link, "this end was used before; virtual time does not begin again");
    }
    __atomic_store_n(&link->mine->pid, (uint32_t)getpid(), __ATOMIC_RELAXED);
    __atomic_store_n(&link->mine->state, ESPLINK_ATTACHED, __ATOMIC_RELEASE);
}

/* The figures that both ends agree upon; each end draws its own numbers from the link's seed. */
static inline void esplink_read_header(struct esplink *link)
{
    if (pread(link->fd, &link->header, sizeof(link->header), 0) != sizeof(link->header) ||
        memcmp(link->header.magic, ESPLINK_MAGIC, 8) != 0) {
        esplink_fatal(link, "it is no link, or one of another version");
    }
    link->chance = link->header.seed + link->end;
}

/* On its only CPU a process that looks keeps the other end from moving. */
static inline int esplink_spins(void)
{
    cpu_set_t cpus;

    return sched_getaffinity(0, sizeof(cpus), &cpus) == 0 && CPU_COUNT(&cpus) == 1 ? 0 : ESPLINK_SPINS;
}

/* Takes one end; the other may come later. */
static inline void esplink_attach(struct esplink *link, const char *path, unsigned end)
{
    struct stat status;
    uint8_t *base;

    link->path = path;
    link->end = end;
    link->head = link->tail = link->free_ns = 0;
    link->obeyed = 0;
    link->spins = esplink_spins();
    link->fd = open(path, O_RDWR | O_CLOEXEC);
    if (link->fd < 0 || fstat(link->fd, &status) < 0) {
        esplink_fatal(link, "it cannot be opened");
    }
    esplink_read_header(link);
    if ((uint64_t)status.st_size != ESPLINK_RINGS_AT + 2ull * link->header.ring_bytes) {
        esplink_fatal(link, "it is no link, or one of another version");
    }
    base = mmap(NULL, status.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, link->fd, 0);
    if (base == MAP_FAILED) {
        esplink_fatal(link, "it cannot be mapped");
    }
    link->base = base;
    link->mine = (struct esplink_end *)(base + ESPLINK_ENDS_AT) + end;
    link->theirs = (struct esplink_end *)(base + ESPLINK_ENDS_AT) + !end;
    link->out = base + ESPLINK_RINGS_AT + (end ? link->header.ring_bytes : 0);
    link->in = base + ESPLINK_RINGS_AT + (end ? 0 : link->header.ring_bytes);
    esplink_take_end(link);
}

/*
 * What end 0 of the link in which a process waits orders of it: true, with the branch's name, if it is to fork there.
 * An end 0 that gives orders does not move meanwhile, so who waits for it stands, and tells so on all its links.
 */
static inline bool esplink_obey(struct esplink **links, int count, struct esplink *waiting, char *branch)
{
    uint32_t order = __atomic_load_n(&waiting->theirs->order, __ATOMIC_ACQUIRE);

    for (int i = 0; order % 2 == 1 && i < count; i++) {
        uint32_t asked = __atomic_load_n(&links[i]->theirs->order, __ATOMIC_ACQUIRE);

        if (asked % 2 == 1) {
            __atomic_store_n(&links[i]->mine->order, asked, __ATOMIC_RELEASE);
        }
    }
    if (order % 2 == 1 || order == waiting->obeyed) {
        return false;
    }
    waiting->obeyed = order;
    memcpy(branch, waiting->base + ESPLINK_BRANCH_AT, ESPLINK_BRANCH_BYTES);
    branch[ESPLINK_BRANCH_BYTES - 1] = '\0';
    return true;
}

/* In a branch: goes on with the copy of the link that end 0 has made under the path with the branch's name added. */
static inline void esplink_change_over(struct esplink *link, const char *branch)
{
    size_t length = ESPLINK_RINGS_AT + 2ull * link->header.ring_bytes;
    char *path;

    if (asprintf(&path, "%s%s", link->path, branch) < 0) {
        abort();
    }
    link->path = path;
    link->obeyed = 0;
    close(link->fd);
    link->fd = open(path, O_RDWR | O_CLOEXEC);
    if (link->fd < 0 ||
        mmap(link->base, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, link->fd, 0) != link->base) {
        esplink_fatal(link, "it cannot be opened and mapped");
    }
    esplink_read_header(link);
    esplink_take_end(link);
}

static inline void esplink_ring_bell(struct esplink *link)
{
    __atomic_store_n(&link->theirs->wants_ns, 0, __ATOMIC_RELAXED);
    __atomic_fetch_add(&link->theirs->bell, 1, __ATOMIC_RELEASE);
    syscall(SYS_futex, &link->theirs->bell, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static inline void esplink_leave(struct esplink *link)
{
    __atomic_store_n(&link->mine->state, ESPLINK_LEFT, __ATOMIC_RELEASE);
    esplink_ring_bell(link);
}

/* Wakes the other end if it waits for a promise that is made. */
static inline void esplink_wake(struct esplink *link)
{
    uint64_t wants_ns;

    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    wants_ns = __atomic_load_n(&link->theirs->wants_ns, __ATOMIC_RELAXED);
    if (wants_ns && __atomic_load_n(&link->mine->until_ns, __ATOMIC_RELAXED) >= wants_ns) {
        esplink_ring_bell(link);
    }
}

/* Promises on all these links that whatever is still sent leaves at until_ns or later. */
static inline void esplink_publish(struct esplink *const *links, int count, uint64_t until_ns)
{
    for (int i = 0; i < count; i++) {
        __atomic_store_n(&links[i]->mine->until_ns, until_ns, __ATOMIC_RELEASE);
    }
    /* Only now: who is woken by the first promise may need the others as well, and would sleep again at once. */
    for (int i = 0; i < count; i++) {
        esplink_wake(links[i]);
    }
}

static inline uint64_t esplink_peer_until(const struct esplink *link)
{
    return __atomic_load_n(&link->theirs->until_ns, __ATOMIC_ACQUIRE);
}

/* Tells what the gateway at this end counted; to be called before the promise that it is of. */
static inline void esplink_tell(struct esplink *link, const void *bus)
{
    struct esplink_counts *counts = (struct esplink_counts *)(link->base + ESPLINK_COUNTS_AT) + link->end;

    memcpy(counts->bus, bus, sizeof(counts->bus));
}

/* What became of the other end. Only its lock tells of a death, in whatever PID namespace it was. */
static inline enum esplink_waited esplink_peer_state(const struct esplink *link)
{
    struct flock lock = esplink_lock(!link->end);
    uint32_t state = __atomic_load_n(&link->theirs->state, __ATOMIC_ACQUIRE);

    if (state == ESPLINK_LEFT) {
        return ESPLINK_GONE;
    }
    fcntl(link->fd, F_OFD_GETLK, &lock);
    return state == ESPLINK_ATTACHED && lock.l_type == F_UNLCK ? ESPLINK_DEAD : ESPLINK_NOT_YET;
}

/* Waits, for ESPLINK_LOOK_NS at most, until the other end has sent everything up to until_ns. */
static inline enum esplink_waited esplink_wait(struct esplink *link, uint64_t until_ns)
{
    struct timespec patience = { .tv_nsec = ESPLINK_LOOK_NS };
    enum esplink_waited state;
    uint32_t heard;

    for (int spins = 0; spins < link->spins; spins++) {
        if (esplink_peer_until(link) >= until_ns) {
            return ESPLINK_REACHED;
        }
#if defined(__x86_64__) || defined(__i386__)
        __builtin_ia32_pause();
#endif
    }
    heard = __atomic_load_n(&link->mine->bell, __ATOMIC_ACQUIRE);
    __atomic_store_n(&link->mine->wants_ns, until_ns, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (esplink_peer_until(link) < until_ns) {
        syscall(SYS_futex, &link->mine->bell, FUTEX_WAIT, heard, &patience, NULL, 0);
    }
    __atomic_store_n(&link->mine->wants_ns, 0, __ATOMIC_RELAXED);
    if (esplink_peer_until(link) >= until_ns) {
        return ESPLINK_REACHED;
    }
    state = esplink_peer_state(link);
    /* Looked at last: whatever became of it since. */
    return esplink_peer_until(link) >= until_ns ? ESPLINK_REACHED : state;
}

/* Copies bytes into or out of a ring, in two pieces where it wraps. */
static inline void esplink_copy_in(struct esplink *link, uint64_t at, const void *from, size_t length)
{
    size_t begin = at & (link->header.ring_bytes - 1), first = link->header.ring_bytes - begin;

    first = first < length ? first : length;
    memcpy(link->out + begin, from, first);
    memcpy(link->out, (const uint8_t *)from + first, length - first);
}

static inline void esplink_copy_out(struct esplink *link, uint64_t at, void *to, size_t length)
{
    size_t begin = at & (link->header.ring_bytes - 1), first = link->header.ring_bytes - begin;

    first = first < length ? first : length;
    memcpy(to, link->in + begin, first);
    memcpy((uint8_t *)to + first, link->in, length - first);
}

static inline size_t esplink_room(size_t length)
{
    return sizeof(struct esplink_record) + ((length + 7) & ~(size_t)7);
}

/* The other end empties its ring whenever it waits, so a full one is only waited for. */
static inline void esplink_put(struct esplink *link, uint64_t at_ns, uint32_t kind,
                               const void *bytes, size_t length)
{
    struct esplink_record record = { .at_ns = at_ns, .length = length, .kind = kind };
    struct timespec nap = { .tv_nsec = 1000000 };

    while (link->head + esplink_room(length) -
               __atomic_load_n(&link->theirs->tail, __ATOMIC_ACQUIRE) > link->header.ring_bytes) {
        if (esplink_peer_state(link) != ESPLINK_NOT_YET) {
            return; /* nobody will read it; the next wait tells */
        }
        nanosleep(&nap, NULL);
    }
    esplink_copy_in(link, link->head, &record, sizeof(record));
    esplink_copy_in(link, link->head + sizeof(record), bytes, length);
    link->head += esplink_room(length);
    __atomic_store_n(&link->mine->head, link->head, __ATOMIC_RELEASE);
}

/* The next number of this end, of 64 bits that are each as likely 0 as 1 (splitmix64). */
static inline uint64_t esplink_draw(struct esplink *link)
{
    uint64_t mixed = link->chance += 0x9e3779b97f4a7c15ull;

    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9ull;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebull;
    return mixed ^ (mixed >> 31);
}

static inline uint64_t esplink_share_of(uint64_t share, uint64_t of)
{
    return (uint64_t)((unsigned __int128)share * of >> 64);
}

/* How likely it is, as a share of 2^64, that none of so many bits is flipped. In whole numbers: alike everywhere. */
static inline uint64_t esplink_intact(uint64_t flip, uint64_t bits)
{
    uint64_t share = UINT64_MAX, power = -flip;

    if (flip == 0) {
        return share;
    }
    for (; bits; bits >>= 1, power = esplink_share_of(power, power)) {
        if (bits & 1) {
            share = esplink_share_of(share, power);
        }
    }
    return share;
}

/*
 * What becomes of the next frame, of so many bytes with FCS: false if it is lost; else its kind, and how much later it
 * comes. Each frame draws three numbers, whatever can go wrong: so one kind of error does not change where others are.
 */
static inline bool esplink_fate(struct esplink *link, uint64_t bytes, uint32_t *kind, uint64_t *late_ns)
{
    uint64_t lose = esplink_draw(link), damage = esplink_draw(link), late = esplink_draw(link);

    if (lose < link->header.lose) {
        link->mine->errors.lost++;
        return false;
    }
    if (damage > esplink_intact(link->header.flip, 8 * bytes)) {
        *kind = ESPLINK_DAMAGED;
        link->mine->errors.damaged++;
    }
    if (late >> 32 < link->header.late) {
        *late_ns = link->header.late_ns;
        link->mine->errors.late++;
    }
    return true;
}

/* Sends a frame without FCS that is ready at ready_ns: it waits for the wire, and for its own bits. */
static inline void esplink_send(struct esplink *link, uint64_t ready_ns, const void *frame, size_t length)
{
    uint64_t padded = length < ESPLINK_SHORTEST ? ESPLINK_SHORTEST : length;
    uint64_t wire_ns = (padded + ESPLINK_AROUND) * link->header.ns_per_byte;
    uint64_t leaves_ns = link->free_ns > ready_ns ? link->free_ns : ready_ns;

    uint64_t late_ns = 0;
    uint32_t kind = ESPLINK_FRAME;

    link->free_ns = leaves_ns + wire_ns + (uint64_t)ESPLINK_GAP * link->header.ns_per_byte;
    if (link->header.seed && !esplink_fate(link, padded + ESPLINK_FCS, &kind, &late_ns)) {
        return;
    }
    esplink_put(link, leaves_ns + wire_ns + link->header.latency_ns + late_ns, kind, frame, length);
}

/* What a guest prints goes beside the wire: it costs none of its time. */
static inline void esplink_print(struct esplink *link, uint64_t now_ns, const void *bytes, size_t length)
{
    esplink_put(link, now_ns + link->header.latency_ns, ESPLINK_TEXT, bytes, length);
}

/* The next record that has come, its bytes in memory of the caller's to free; NULL if there is none. */
static inline void *esplink_take(struct esplink *link, struct esplink_record *record)
{
    uint8_t *bytes;

    if (link->tail == __atomic_load_n(&link->theirs->head, __ATOMIC_ACQUIRE)) {
        return NULL;
    }
    esplink_copy_out(link, link->tail, record, sizeof(*record));
    bytes = malloc(record->length + 1);
    if (!bytes) {
        abort();
    }
    esplink_copy_out(link, link->tail + sizeof(*record), bytes, record->length);
    link->tail += esplink_room(record->length);
    __atomic_store_n(&link->mine->tail, link->tail, __ATOMIC_RELEASE);
    return bytes;
}

#endif
