/* Finds races in a kernel that runs on the CPU: g++ -fsanitize=thread calls __tsan_read4 and its like at every access,
 * and these are here, in the place of ThreadSanitizer's own, which knows nothing of blocks and takes a hundred times as
 * long. threads.cpp includes this, and tells it of barriers, fences and atomics.
 *
 * For every four bytes of global and shared memory it keeps the last write, the last atomics of two blocks, the last
 * reads of two threads and of another block, and those of some blocks before. Two accesses by different threads, one of
 * them a write and not both atomic, race unless one of these is between them:
 *   - the start of a launch, a barrier of the block, for global memory if they are there, a barrier of the warp that both
 *     took part in
 *   - a fence and then an atomic of the first thread (or of one that a barrier has brought up to date with it), and
 *     later an atomic and then a fence of the second. Which memory the atomics are on does not matter
 * Volatile accesses to global memory count as atomics: they are how blocks hand over flags.
 */
#ifndef AUTOTUNE_RACES_H
#define AUTOTUNE_RACES_H

namespace autotune {

struct access_t {
    unsigned int thread; /* of the launch, from one; zero: none */
    unsigned int time;
    unsigned int code; /* where, as an address */
    unsigned char bytes; /* a bit for each of the four */
    bool is_atomic;
};

/* A change is atomic, and hides no write before it. Of changes and reads, those of the last other block stay, too, and
 * of reads those of KEPT blocks before it, drawn so that each has the same chance. */
enum { KEPT = 2 }; /* with these, a cell has two lines of a CPU's cache */
enum slot_t { WRITE, CHANGE, FOREIGN_CHANGE, READ, OTHER_READ, FOREIGN_READ, KEPT_READ, SLOTS = KEPT_READ + KEPT };
struct cell_t { access_t last[SLOTS]; };

/* Events so far; at the last launch, at the block's last barrier, at the last for global memory, at the last atomic. */
static unsigned int now = 1, launch_time, block_time, global_time, atomic_time;
/* What other blocks may see: of each thread, and of all threads of each block. */
static unsigned int *published, *block_published;

UNWATCHED cell_t *reserved_cells(size_t bytes) { return (cell_t *)reserved((bytes / 4 + 1) * sizeof(cell_t)); }

static cell_t *const global_cells = reserved_cells(ARENA_BYTES);
static cell_t *const shared_cells = reserved_cells(shared_end - shared_begin);

UNWATCHED void start_launch(unsigned int block_count)
{
    const size_t threads = (size_t)block_count * count + 1;
    free(published);
    published = (unsigned int *)calloc(threads + block_count, sizeof(int));
    block_published = published + threads;
    launch_time = now++;
}

UNWATCHED unsigned int in_launch(unsigned int thread) { return block * count + thread + 1; }

UNWATCHED void raise(unsigned int *time, unsigned int to) { *time = to > *time ? to : *time; }

/* Also the end of a block. An atomic since the last barrier published the fences before that barrier. */
UNWATCHED void end_block_barrier()
{
    unsigned int seen = 0;
    for (unsigned int i = 0; i < count; i++)
        raise(&seen, fibers[i].seen);
    for (unsigned int i = 0; i < count; i++) {
        fiber_t *fiber = &fibers[i];
        fiber->seen = seen;
        if (atomic_time > global_time)
            raise(&published[in_launch(i)], fiber->fenced_at_barrier);
        fiber->fenced_at_barrier = fiber->fenced[i % 32];
    }
    block_time = now++;
    if (orders_global)
        global_time = block_time;
    orders_global = true;
}

/* Of lanes of one warp, a bit each. */
UNWATCHED void end_warp_barrier(unsigned int first, unsigned int lanes)
{
    for (unsigned int own = 0; own < 32; own++)
        for (unsigned int other = 0; other < 32 && lanes >> own & 1; other++)
            if (lanes >> other & 1) {
                fibers[first + own].met[other] = now;
                raise(&fibers[first + own].fenced[other], fibers[first + other].fenced[other]);
                raise(&fibers[first + own].seen, fibers[first + other].seen);
            }
    now++;
}

UNWATCHED void fence()
{
    memcpy(current->fenced, current->met, sizeof current->met);
    current->fenced[current->number % 32] = now++;
    current->block_fenced = global_time;
    raise(&current->seen, current->touched);
}

/* After an atomic. */
UNWATCHED void touch()
{
    const unsigned int first = current->number / 32 * 32;
    for (unsigned int lane = 0; lane < 32 && first + lane < count; lane++)
        raise(&published[in_launch(first + lane)], current->fenced[lane]);
    raise(&block_published[block], current->block_fenced);
    current->touched = atomic_time = now++;
}

UNWATCHED bool is_before(const access_t *access, bool is_shared)
{
    const unsigned int thread = access->thread, from = (thread - 1) / count;
    if (thread == in_launch(current->number) || access->time <= launch_time)
        return true;
    if (from == block && (access->time <= (is_shared ? block_time : global_time) ||
                          ((thread - 1) % count / 32 == current->number / 32 &&
                           access->time <= current->met[(thread - 1) % count % 32])))
        return true;
    const bool is_public = access->is_atomic || access->time <= published[thread] ||
                           access->time <= block_published[from];
    return is_public && access->time <= current->seen;
}

UNWATCHED void keep(cell_t *cell, access_t read)
{
    static unsigned int drawn;
    if (!read.thread || read.time <= launch_time)
        return;
    drawn = drawn * 1664525 + 1013904223;
    const unsigned int before = (read.thread - 1) / count, place = before < KEPT ? before : (drawn >> 8) % (before + 1);
    if (place < KEPT)
        cell->last[KEPT_READ + place] = read;
}

UNWATCHED void record(const void *address, size_t size, bool is_write, bool is_atomic, const void *code)
{
    size_t at = (const char *)address - arena;
    const bool is_shared = at >= ARENA_BYTES;
    if (is_shared)
        at = (const char *)address - shared_begin;
    if (!current || (is_shared && at >= (size_t)(shared_end - shared_begin)))
        return; /* a thread's own memory, a table */
    const access_t access = {in_launch(current->number), now, (unsigned int)(size_t)code, 0, is_atomic};
    for (const size_t end = at + size; at < end; at = at / 4 * 4 + 4) {
        const size_t bytes = end - at < 4 - at % 4 ? end - at : 4 - at % 4;
        cell_t *cell = (is_shared ? shared_cells : global_cells) + at / 4;
        access_t own = access;
        own.bytes = ((1 << bytes) - 1) << at % 4;
        for (access_t *before = cell->last; before < cell->last + (is_write ? SLOTS : READ); before++) {
            if (!before->thread || !(before->bytes & own.bytes) || (before->is_atomic && is_atomic) ||
                (is_shared && (before->thread - 1) / count != block) || is_before(before, is_shared))
                continue;
            const char *const kinds[2][2] = {{"read", "atomic read"}, {"write", "atomic write"}};
            printf("RACE: %s at %x and %s at %x\n", kinds[is_write][is_atomic], own.code,
                   kinds[before < cell->last + READ][before->is_atomic], before->code);
            fflush(stdout);
            _exit(FOUND);
        }
        const slot_t slot = !is_write ? READ : is_atomic ? CHANGE : WRITE;
        const access_t replaced = cell->last[slot];
        if (slot != WRITE && replaced.thread && (replaced.thread - 1) / count != block) {
            if (slot == READ)
                keep(cell, cell->last[FOREIGN_READ]);
            cell->last[slot == READ ? FOREIGN_READ : FOREIGN_CHANGE] = replaced;
        }
        if (slot == READ && replaced.thread != own.thread)
            cell->last[OTHER_READ] = replaced;
        cell->last[slot] = own;
    }
}

UNWATCHED void record_volatile(const void *address, size_t size, bool is_write, const void *code)
{
    const bool is_flag = (size_t)((const char *)address - arena) < ARENA_BYTES;
    record(address, size, is_write, is_flag, code);
    if (is_flag && current)
        touch();
}

} // namespace autotune

#define UNWATCHED_C extern "C" UNWATCHED
#define DEFINE_ACCESSES(bytes)                                                                                          \
    UNWATCHED_C void __tsan_read##bytes(void *from) { autotune::record(from, bytes, false, false, CALLER); }            \
    UNWATCHED_C void __tsan_write##bytes(void *to) { autotune::record(to, bytes, true, false, CALLER); }                \
    UNWATCHED_C void __tsan_unaligned_read##bytes(void *from) { autotune::record(from, bytes, false, false, CALLER); }  \
    UNWATCHED_C void __tsan_unaligned_write##bytes(void *to) { autotune::record(to, bytes, true, false, CALLER); }      \
    UNWATCHED_C void __tsan_volatile_read##bytes(void *from) { autotune::record_volatile(from, bytes, false, CALLER); } \
    UNWATCHED_C void __tsan_volatile_write##bytes(void *to) { autotune::record_volatile(to, bytes, true, CALLER); }
DEFINE_ACCESSES(1)
DEFINE_ACCESSES(2)
DEFINE_ACCESSES(4)
DEFINE_ACCESSES(8)
DEFINE_ACCESSES(16)
UNWATCHED_C void __tsan_read_range(void *from, long bytes) { autotune::record(from, bytes, false, false, CALLER); }
UNWATCHED_C void __tsan_write_range(void *to, long bytes) { autotune::record(to, bytes, true, false, CALLER); }
UNWATCHED_C void __tsan_vptr_update(void **, void *) {}
UNWATCHED_C void __tsan_init() {}

#endif
