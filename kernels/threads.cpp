/* Runs the blocks and threads of threads.h. Every thread of a block is a fiber; fibers and blocks run one after the
 * other.
 *
 * -fsanitize=thread   races.h looks for races; warps run in no order of their own. Memory that nobody wrote holds zeros
 * -fsanitize=address  There is forbidden memory around every array, global or shared. Memory that nobody wrote holds
 *                     ones, shared memory again for every block
 */
#include "threads.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <ucontext.h>
#include <unistd.h>

namespace autotune {

constexpr size_t STACK_BYTES = 65536 + 320; /* no power of two, for the sake of caches */
constexpr size_t ARENA_BYTES = 1ul << 33, GAP_BYTES = 1 << 20;
constexpr int FOUND = 86;
constexpr unsigned int MAX_THREADS = 1024, MAX_COPIES = 128; /* of a block; of a thread, more are made at once */

struct copy_t {
    void *to;
    const void *from;
    size_t bytes;
    unsigned int group;
    const void *code;
};

enum state_t { READY, AT_BARRIER, AT_WARP, DONE };

struct fiber_t {
    void *context[5];
    ucontext_t *start; /* until it has begun */
    uint3 thread;
    unsigned int number;
    state_t state;
    unsigned int mask;
    bool orders;
    /* For races.h, all of them times. By lane: its last warp barrier with this thread; what fences order before the next
     * atomic of this thread, which for its own lane is its last fence. */
    unsigned int seen, touched, block_fenced, fenced_at_barrier, met[32], fenced[32];
    copy_t copies[MAX_COPIES];        /* in the background, a ring */
    unsigned int begun, ended, group; /* of copies, since the block began */
};

bool orders_global = true;
uint3 block_of_grid, block_extent, grid_extent;
static void (*kernel)();
static fiber_t fibers[MAX_THREADS], *current;
static ucontext_t starts[MAX_THREADS];
static void *scheduler[5];
unsigned int count;
static unsigned int block; /* its number */
static unsigned long long exchanged[MAX_THREADS];
/* Shared variables, and the memory from the first to the last of them. */
struct shared_t { char *at; size_t bytes; };
static shared_t shared[1024];
static char *shared_begin, *shared_end;

/* The environment has the address and the size of each in hexadecimal, in order. */
static UNWATCHED unsigned int find_shared()
{
    unsigned int found = 0;
    const char *words = getenv("AUTOTUNE_SHARED");
    for (char *end; words && *words && found < 1024; words = end) {
        shared[found].at = (char *)strtoul(words, &end, 16);
        shared[found].bytes = strtoul(end, &end, 16);
        shared_end = shared[found].at + shared[found].bytes;
        found++;
    }
    shared_begin = shared[0].at;
    return found;
}

static const unsigned int shared_count = find_shared();

UNWATCHED char *reserved(size_t bytes)
{
    void *memory = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        _exit(1);
    return (char *)memory;
}

static char *const arena = reserved(ARENA_BYTES), *free_arena = arena + GAP_BYTES;

} // namespace autotune

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
namespace autotune {
constexpr int UNWRITTEN = -1;
UNWATCHED void start_launch(unsigned int) {}
UNWATCHED void end_block_barrier() {}
UNWATCHED void end_warp_barrier(unsigned int, unsigned int) {}
UNWATCHED void fence() {}
UNWATCHED void touch() {}
UNWATCHED void record(const void *, size_t, bool, bool, const void *) {}
} // namespace autotune
#else
#include "races.h"
namespace autotune {
constexpr int UNWRITTEN = 0;
} // namespace autotune
#define __asan_poison_memory_region(memory, bytes)
#define __asan_unpoison_memory_region(memory, bytes)
#endif

namespace autotune {

UNWATCHED void resume(void **context) { __builtin_longjmp(context, 1); } /* not where __builtin_setjmp is called */

/* Returns when someone resumes `from`. */
UNWATCHED void switch_to(void **from, void **to)
{
    if (!__builtin_setjmp(from))
        resume(to);
}

UNWATCHED void begin(ucontext_t *start)
{
    if (!__builtin_setjmp(scheduler))
        setcontext(start);
}

UNWATCHED void yield(state_t state)
{
    current->state = state;
    switch_to(current->context, scheduler);
}

UNWATCHED void run_fiber()
{
    for (;;) {
        kernel();
        yield(DONE);
    }
}

UNWATCHED void wait_for_block() { yield(AT_BARRIER); }

UNWATCHED void wait_for_warp(unsigned int mask, bool orders)
{
    current->mask = mask;
    current->orders = orders;
    yield(AT_WARP);
}

/* Whether all of a warp's threads that `mask` names, and that have not ended, wait for each other. */
UNWATCHED bool is_met(unsigned int first, unsigned int mask)
{
    for (unsigned int lane = 0; lane < 32 && first + lane < count; lane++) {
        const fiber_t *fiber = &fibers[first + lane];
        if (mask >> lane & 1 && fiber->state != DONE && (fiber->state != AT_WARP || fiber->mask != mask))
            return false;
    }
    return true;
}

/* Lets those go on that have waited long enough; false if nobody can. */
UNWATCHED bool release_waiting()
{
    bool some = false, is_warp_waiting = false;
    for (unsigned int i = 0; i < count; i++) {
        const unsigned int first = i / 32 * 32, mask = fibers[i].mask;
        if (fibers[i].state != AT_WARP)
            continue;
        is_warp_waiting = true;
        if (!is_met(first, mask))
            continue;
        unsigned int lanes = 0;
        for (unsigned int lane = 0; lane < 32 && first + lane < count; lane++)
            if (mask >> lane & 1 && fibers[first + lane].state == AT_WARP) {
                fibers[first + lane].state = READY;
                lanes |= 1u << lane;
            }
        if (fibers[i].orders)
            end_warp_barrier(first, lanes);
        some = true;
    }
    if (is_warp_waiting)
        return some;
    for (unsigned int i = 0; i < count; i++)
        if (fibers[i].state == AT_BARRIER) {
            fibers[i].state = READY;
            some = true;
        }
    end_block_barrier();
    return some;
}

UNWATCHED void make_fibers()
{
    char *stacks = reserved(MAX_THREADS * STACK_BYTES);
    for (unsigned int i = 0; i < MAX_THREADS; i++) {
        fibers[i].number = i;
        fibers[i].start = &starts[i];
        getcontext(&starts[i]);
        starts[i].uc_stack.ss_sp = stacks + i * STACK_BYTES;
        starts[i].uc_stack.ss_size = STACK_BYTES;
        makecontext(&starts[i], run_fiber, 0);
    }
}

UNWATCHED void run_block()
{
    for (const shared_t *one = shared; one != shared + shared_count; one++)
        for (size_t i = 0; i < one->bytes; i++)
            ((volatile char *)one->at)[i] = UNWRITTEN;
    end_block_barrier();
    for (unsigned int i = 0; i < count; i++) {
        fiber_t *fiber = &fibers[i];
        fiber->thread = {i % block_extent.x, i / block_extent.x % block_extent.y,
                         i / block_extent.x / block_extent.y};
        fiber->state = READY;
        fiber->seen = fiber->touched = fiber->begun = fiber->ended = fiber->group = 0;
    }
    do {
        for (unsigned int i = 0; i < count; i++)
            if (fibers[i].state == READY) {
                current = &fibers[i];
                ucontext_t *start = current->start;
                current->start = 0;
                start ? begin(start) : switch_to(scheduler, current->context);
            }
    } while (release_waiting());
    for (unsigned int i = 0; i < count; i++)
        if (fibers[i].state != DONE) {
            printf("BARRIER: threads of block (%u, %u, %u) wait at different barriers\n", block_of_grid.x,
                   block_of_grid.y, block_of_grid.z);
            fflush(stdout);
            _exit(FOUND);
        }
}

static child_t *children, **last_child = &children, *child;
static char *dynamic_memory; /* shared, of a size that comes with the launch */

UNWATCHED void launch(uint3 grid, uint3 block_of_threads, size_t shared_bytes, void (*body)())
{
    const size_t dynamic_bytes = shared_bytes < DYNAMIC_BYTES ? shared_bytes : DYNAMIC_BYTES;
    for (shared_t *one = shared; one != shared + shared_count; one++)
        if (one->at == dynamic_memory)
            one->bytes = dynamic_bytes;
    __asan_unpoison_memory_region(dynamic_memory, DYNAMIC_BYTES);
    __asan_poison_memory_region(dynamic_memory + dynamic_bytes, DYNAMIC_BYTES - dynamic_bytes);
    grid_extent = grid, block_extent = block_of_threads, kernel = body;
    count = block_extent.x * block_extent.y * block_extent.z;
    const unsigned int blocks = grid.x * grid.y * grid.z;
    if (!fibers[1].number)
        make_fibers();
    start_launch(blocks);
    for (block = 0; block < blocks; block++) {
        block_of_grid = {block % grid.x, block / grid.x % grid.y, block / grid.x / grid.y};
        run_block();
    }
    current = 0;
    child_t *const own = children;
    children = 0, last_child = &children;
    for (int tails = 0; tails < 2; tails++)
        for (child_t *one = own; one; one = one->next)
            if (one->is_tail == tails) {
                child = one;
                launch(one->grid, one->block, one->shared_bytes, [] { child->run(child->body); });
            }
}

/* Ends the program if a launch asks for more than any GPU has. */
UNWATCHED void launch_child(const child_t &launched)
{
    const uint3 of_block = launched.block;
    if (launched.shared_bytes > DYNAMIC_BYTES ||
        (size_t)of_block.x * of_block.y * of_block.z > MAX_THREADS)
        _exit(1);
    child_t *const kept = (child_t *)malloc(sizeof launched);
    *kept = launched;
    *last_child = kept;
    last_child = &kept->next;
}

UNWATCHED bool is_active(unsigned int mask, unsigned int thread)
{
    return thread < count && mask >> thread % 32 & 1 && fibers[thread].state != DONE;
}

UNWATCHED void exchange_bytes(unsigned int mask, void *value, size_t bytes, unsigned int lane, bool is_inside)
{
    const unsigned int own = current->number, from = own / 32 * 32 + lane;
    memcpy(&exchanged[own], value, bytes);
    wait_for_warp(mask, false);
    if (is_inside && is_active(mask, from))
        memcpy(value, &exchanged[from], bytes);
    else if (is_inside)
        memset(value, UNWRITTEN, bytes); /* of an inactive lane: a GPU gives anything */
    wait_for_warp(mask, false);
}

/* A bit for each of a warp's threads that `mask` names and for which it holds. */
UNWATCHED unsigned int ballot(unsigned int mask, bool holds)
{
    const unsigned int own = current->number, first = own / 32 * 32;
    unsigned int lanes = 0;
    exchanged[own] = holds;
    wait_for_warp(mask, false);
    for (unsigned int lane = 0; lane < 32 && first + lane < count; lane++)
        if (mask >> lane & 1 && fibers[first + lane].state != DONE && exchanged[first + lane])
            lanes |= 1u << lane;
    wait_for_warp(mask, false);
    return lanes;
}

/* For how many of a block's threads it holds. */
UNWATCHED unsigned int count_of_block(bool holds)
{
    unsigned int found = 0;
    exchanged[current->number] = holds;
    wait_for_block();
    for (unsigned int i = 0; i < count; i++)
        found += fibers[i].state != DONE && exchanged[i];
    wait_for_block();
    return found;
}

UNWATCHED unsigned int thread_number() { return current->number; }
UNWATCHED uint3 thread_index() { return current->thread; }

/* Copies in the background are made as late as they may be: when a thread waits for their group. */
ATOMIC void end_copy()
{
    const copy_t *copy = &current->copies[current->ended++ % MAX_COPIES];
    record(copy->from, copy->bytes, false, false, copy->code);
    record(copy->to, copy->bytes, true, false, copy->code);
    memcpy(copy->to, copy->from, copy->bytes);
}

UNWATCHED bool has_copy(unsigned int groups)
{
    return current->begun != current->ended &&
           current->copies[current->ended % MAX_COPIES].group + groups < current->group;
}

ATOMIC void wait_for_copies(unsigned int groups)
{
    while (has_copy(groups))
        end_copy();
}

UNWATCHED bool begin_copy(void *to, const void *from, size_t bytes)
{
    const bool is_full = current->begun - current->ended == MAX_COPIES;
    if (!is_full)
        current->copies[current->begun++ % MAX_COPIES] = {to, from, bytes, current->group, CALLER};
    return !is_full;
}

UNWATCHED void end_group() { current->group++; }

/* The program ends by SIGXCPU after so many seconds of CPU time. */
UNWATCHED void limit(unsigned int seconds)
{
    const rlimit cpu = {seconds, seconds + 1};
    setrlimit(RLIMIT_CPU, &cpu);
}

/* What a program runs is in a file of eight-byte numbers: of each array whether a file has its content, and its
 * bytes; of each launch which of the program's it is, the extents of its grid and of its blocks, its bytes of dynamic
 * shared memory, how many numbers it passes, and these.
 */
const number_t *numbers;
static const number_t *numbers_end;
static const char *problem;                   /* files of a problem begin with its number, in the folder above */

UNWATCHED size_t read(const char *suffix, void *memory, size_t bytes)
{
    char path[512];
    snprintf(path, sizeof path, "../%s%s%s", problem, *suffix ? "." : "", suffix);
    FILE *file = fopen(path, "rb");
    if (!file)
        _exit(1);
    const size_t found = fread(memory, 1, bytes, file);
    fclose(file);
    return found;
}

UNWATCHED void start(const char *problem_number, unsigned int seconds)
{
    constexpr size_t MAX_BYTES = 1ul << 30;
    limit(seconds);
    problem = problem_number;
    numbers = (number_t *)reserved(MAX_BYTES);
    numbers_end = numbers + read("", (void *)numbers, MAX_BYTES) / sizeof(number_t);
}

/* The next array of the numbers, with the content of a file or with none. */
UNWATCHED any_pointer array(const char *name)
{
    char *memory = free_arena;
    const bool has_content = numbers++->whole;
    const size_t bytes = numbers++->whole;
    free_arena += (bytes + 255) / 256 * 256 + GAP_BYTES;
    if (free_arena > arena + ARENA_BYTES || (has_content && read(name, memory, bytes) != bytes))
        _exit(1);
    if (!has_content && UNWRITTEN)
        memset(memory, UNWRITTEN, bytes);
    __asan_poison_memory_region(memory - GAP_BYTES, GAP_BYTES);
    __asan_poison_memory_region(memory + bytes, GAP_BYTES);
    return {memory, bytes};
}

/* To a variable of the source, whose padding is forbidden memory. */
UNWATCHED void set_variable(void *variable, any_pointer array) { memcpy(variable, array.address, array.bytes); }

UNWATCHED void run(void (*const *bodies)(), char *dynamic)
{
    dynamic_memory = dynamic;
    while (numbers != numbers_end) {
        const number_t *of = numbers;
        const auto extent = [of](int which) { return (unsigned int)of[which].whole; };
        numbers += 9;
        launch({extent(1), extent(2), extent(3)}, {extent(4), extent(5), extent(6)}, of[7].whole, bodies[of->whole]);
        numbers += of[8].whole;
    }
}

UNWATCHED void save(const char *name, any_pointer array)
{
    char path[512];
    snprintf(path, sizeof path, "%s.%s", problem, name);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(array.address, 1, array.bytes, file) != array.bytes || fclose(file))
        _exit(1);
}

} // namespace autotune
