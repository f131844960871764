/* CUDA's words in C++ for a CPU, so that gcc's sanitizers watch a kernel: autotune puts this in front of a source and
 * a main program behind it. Every thread of the grid is a fiber, and blocks run one after the other, each in a thread
 * of the system.
 *
 * ThreadSanitizer  Two accesses race unless a barrier, or fences and an atomic between them, put them in order; warps
 *                  run in no order of their own. Shared memory is thread_local, so it is a block's own. Two teams of
 *                  fibers take turns, because fibers are slow to make: a block races with its neighbours, those of
 *                  the other team, and not with blocks of its own. Memory that nobody wrote holds zeros
 * AddressSanitizer There is forbidden memory around every array, global or shared. Memory that nobody wrote holds
 *                  ones, shared memory again for every block
 */
#ifndef AUTOTUNE_THREADS_H
#define AUTOTUNE_THREADS_H

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __constant__ static
#define UNWATCHED __attribute__((no_sanitize("thread"), no_sanitize("address"), noinline)) static

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#define __shared__ static __attribute__((section("autotune_shared")))
#define __tsan_get_current_fiber() ((void *)0)
#define __tsan_create_fiber(flags) ((void *)0)
#define __tsan_switch_to_fiber(fiber, flags) ((void)(flags))
#define __tsan_switch_to_fiber_no_sync 1
#define __tsan_acquire(clock) ((void)(clock))
#define __tsan_release(clock) ((void)(clock))
/* The linker's names for both ends of the section; there may be none. */
extern "C" volatile char __start_autotune_shared[] __attribute__((weak)), __stop_autotune_shared[] __attribute__((weak));
#else
#include <sanitizer/tsan_interface.h>
#define __shared__ static thread_local
#endif

struct uint3 { unsigned int x, y, z; };
#define DEFINE_VECTORS(type)                                                                             \
    struct alignas(2 * sizeof(type)) type##2 { type x, y; };                                             \
    struct alignas(4 * sizeof(type)) type##4 { type x, y, z, w; };
DEFINE_VECTORS(float)
DEFINE_VECTORS(int)

/* ------------------------------------------------------------------------------------------- fibers */

namespace autotune {

constexpr size_t STACK_BYTES = 65536;
constexpr int FOUND = 86;
constexpr unsigned int MAX_COPIES = 128; /* of a thread; more are made at once */

struct copy_t {
    void *to;
    const void *from;
    size_t bytes;
    unsigned int group;
};

enum state_t { READY, AT_BARRIER, AT_WARP, DONE };

struct fiber_t {
    ucontext_t context;
    void *tsan;
    uint3 thread;
    unsigned int number; /* in its team */
    state_t state;
    unsigned int mask;
    bool has_fence;
    void *atomic;                     /* the last one it touched */
    copy_t copies[MAX_COPIES];        /* in the background, a ring */
    unsigned int begun, ended, group; /* of copies, since the block began */
};


static uint3 block_of_grid, block_extent, grid_extent;
static void (*kernel)();
static fiber_t teams[2][1024], *fibers, *current;
static unsigned int made[2], blocks, team;
static ucontext_t scheduler;
static void *scheduler_tsan;
static unsigned int count;
static char launch_clocks[2], block_clocks[2][2], warp_clocks[2][32][2]; /* of each team */
static unsigned int launches, barriers, warp_barriers[32];
static unsigned long long exchanged[1024];

UNWATCHED void yield(state_t state)
{
    fiber_t *own = current;
    own->state = state;
    __tsan_switch_to_fiber(scheduler_tsan, __tsan_switch_to_fiber_no_sync);
    swapcontext(&own->context, &scheduler);
}

UNWATCHED void run_fiber()
{
    for (;;) {
        kernel();
        __tsan_release(&launch_clocks[launches % 2]);
        yield(DONE);
    }
}

UNWATCHED unsigned int number() { return current->number; }

UNWATCHED void wait_for_block()
{
    char *clock = &block_clocks[team][barriers % 2];
    __tsan_release(clock);
    yield(AT_BARRIER);
    __tsan_acquire(clock);
}

UNWATCHED void wait_for_warp(unsigned int mask, bool orders)
{
    const unsigned int warp = number() / 32;
    char *clock = &warp_clocks[team][warp][warp_barriers[warp] % 2];
    if (orders)
        __tsan_release(clock);
    current->mask = mask;
    yield(AT_WARP);
    if (orders)
        __tsan_acquire(clock);
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
    bool some = false;
    for (unsigned int first = 0; first < count; first += 32)
        for (unsigned int lane = 0; lane < 32 && first + lane < count; lane++) {
            fiber_t *fiber = &fibers[first + lane];
            if (fiber->state != AT_WARP || !is_met(first, fiber->mask))
                continue;
            const unsigned int mask = fiber->mask;
            warp_barriers[first / 32]++;
            for (unsigned int other = 0; other < 32 && first + other < count; other++)
                if (mask >> other & 1 && fibers[first + other].state == AT_WARP)
                    fibers[first + other].state = READY;
            some = true;
        }
    if (some)
        return true;
    for (unsigned int i = 0; i < count; i++)
        if (fibers[i].state == AT_WARP)
            return false;
    for (unsigned int i = 0; i < count; i++)
        if (fibers[i].state == AT_BARRIER) {
            fibers[i].state = READY;
            some = true;
        }
    barriers++;
    return some;
}

UNWATCHED void make_team()
{
    const size_t bytes = 1024 * STACK_BYTES;
    char *stacks = (char *)mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    for (unsigned int i = made[team]; i < count; i++) {
        fiber_t *fiber = &teams[team][i];
        fiber->number = i;
        getcontext(&fiber->context);
        fiber->context.uc_stack.ss_sp = stacks + i * STACK_BYTES;
        fiber->context.uc_stack.ss_size = STACK_BYTES;
        fiber->context.uc_link = 0;
        makecontext(&fiber->context, run_fiber, 0);
        fiber->tsan = __tsan_create_fiber(0);
    }
    made[team] = count;
}

UNWATCHED void *run_block(void *)
{
#ifdef __SANITIZE_ADDRESS__
    for (volatile char *byte = __start_autotune_shared; byte != __stop_autotune_shared; byte++)
        *byte = -1;
#endif
    scheduler_tsan = __tsan_get_current_fiber();
    for (unsigned int i = 0; i < count; i++) {
        fiber_t *fiber = &fibers[i];
        fiber->thread = {i % block_extent.x, i / block_extent.x % block_extent.y,
                         i / block_extent.x / block_extent.y};
        fiber->state = READY;
        fiber->has_fence = false;
        fiber->atomic = 0;
        fiber->begun = fiber->ended = fiber->group = 0;
    }
    unsigned int flags = 0; /* at first a fiber knows what its block's thread knows */
    do {
        for (unsigned int i = 0; i < count; i++)
            if (fibers[i].state == READY) {
                current = &fibers[i];
                __tsan_switch_to_fiber(current->tsan, flags);
                swapcontext(&scheduler, &current->context);
            }
        flags = __tsan_switch_to_fiber_no_sync;
    } while (release_waiting());
    for (unsigned int i = 0; i < count; i++)
        if (fibers[i].state != DONE) {
            printf("BARRIER: threads of block %u wait at different barriers\n", block_of_grid.x);
            fflush(stdout);
            _exit(FOUND);
        }
    return 0;
}

UNWATCHED void launch(uint3 grid, uint3 block, void (*body)())
{
    grid_extent = grid, block_extent = block, kernel = body;
    count = block.x * block.y * block.z;
    launches++;
    __tsan_acquire(&launch_clocks[(launches + 1) % 2]);
    for (unsigned int z = 0; z < grid.z; z++)
        for (unsigned int y = 0; y < grid.y; y++)
            for (unsigned int x = 0; x < grid.x; x++) {
                pthread_t thread;
                team = blocks++ % 2;
                if (made[team] < count)
                    make_team();
                fibers = teams[team];
                block_of_grid = {x, y, z};
                pthread_create(&thread, 0, run_block, 0);
                pthread_join(thread, 0);
            }
}

/* After an atomic: what a fence has put before it is seen by whoever reads it and then has a fence. */
UNWATCHED void touch(volatile void *target)
{
    if (current->has_fence)
        __tsan_release((void *)target);
    current->atomic = (void *)target;
}

UNWATCHED void fence()
{
    current->has_fence = true;
    if (current->atomic)
        __tsan_acquire(current->atomic);
}

template <class T> UNWATCHED T exchange(unsigned int mask, T value, unsigned int lane, bool is_inside)
{
    static_assert(sizeof(T) <= 8, "a shuffle of at most 8 bytes");
    const unsigned int own = number(), from = own / 32 * 32 + lane;
    memcpy(&exchanged[own], &value, sizeof value);
    wait_for_warp(mask, false);
    if (is_inside && from < count)
        memcpy(&value, &exchanged[from], sizeof value);
    wait_for_warp(mask, false);
    return value;
}

UNWATCHED unsigned int lane() { return number() % 32; }
UNWATCHED uint3 thread_index() { return current->thread; }

/* Copies in the background are made as late as they may be: when a thread waits for their group. This is watched. */
static void end_copy()
{
    const copy_t *copy = &current->copies[current->ended++ % MAX_COPIES];
    memcpy(copy->to, copy->from, copy->bytes);
}

UNWATCHED bool has_copy(unsigned int groups)
{
    return current->begun != current->ended &&
           current->copies[current->ended % MAX_COPIES].group + groups < current->group;
}

static void wait_for_copies(unsigned int groups)
{
    while (has_copy(groups))
        end_copy();
}

UNWATCHED bool begin_copy(void *to, const void *from, size_t bytes)
{
    const bool is_full = current->begun - current->ended == MAX_COPIES;
    if (!is_full)
        current->copies[current->begun++ % MAX_COPIES] = {to, from, bytes, current->group};
    return !is_full;
}

template <class T> static void copy_async(T *to, const T *from)
{
    if (!begin_copy(to, from, sizeof(T)))
        *to = *from;
}

UNWATCHED void end_group() { current->group++; }

struct any_pointer {
    char *address;
    template <class T> operator T *() const { return (T *)address; }
    any_pointer from(size_t bytes) const { return {address + bytes}; }
};

/* An array with the content of a file, or with none. */
UNWATCHED any_pointer array(const char *path, size_t bytes)
{
    const size_t around = 1 << 20;
    char *memory = (char *)mmap(0, bytes + 2 * around, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    FILE *file = path ? fopen(path, "rb") : 0;
    if (memory == MAP_FAILED || (path && (!file || fread(memory + around, 1, bytes, file) != bytes)))
        _exit(1);
    if (file)
        fclose(file);
#ifdef __SANITIZE_ADDRESS__
    if (!path)
        memset(memory + around, -1, bytes);
    __asan_poison_memory_region(memory, around);
    __asan_poison_memory_region(memory + around + bytes, around);
#endif
    return {memory + around};
}

UNWATCHED void save(const char *path, any_pointer array, size_t bytes)
{
    __tsan_acquire(&launch_clocks[launches % 2]);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(array.address, 1, bytes, file) != bytes || fclose(file))
        _exit(1);
}

} // namespace autotune

/* ------------------------------------------------------------------------------------ CUDA's words */

#define threadIdx autotune::thread_index()
#define blockIdx autotune::block_of_grid
#define blockDim autotune::block_extent
#define gridDim autotune::grid_extent
#define warpSize 32

#define __syncthreads() autotune::wait_for_block()
static inline void __syncwarp(unsigned int mask = ~0u) { autotune::wait_for_warp(mask, true); }
static inline void __threadfence() { autotune::fence(); }

template <class T> static inline T __shfl_down_sync(unsigned int mask, T value, unsigned int distance)
{
    const unsigned int lane = autotune::lane() + distance;
    return autotune::exchange(mask, value, lane, lane < 32);
}

template <class T> static inline T __shfl_up_sync(unsigned int mask, T value, unsigned int distance)
{
    return autotune::exchange(mask, value, autotune::lane() - distance, distance <= autotune::lane());
}

template <class T> static inline T __shfl_xor_sync(unsigned int mask, T value, unsigned int bits)
{
    return autotune::exchange(mask, value, autotune::lane() ^ bits, true);
}

template <class T> static inline T atomicAdd(T *target, T value)
{
    const T before = __atomic_fetch_add(target, value, __ATOMIC_RELAXED);
    autotune::touch(target);
    return before;
}

static inline float atomicAdd(float *target, float value)
{
    unsigned int *bits = (unsigned int *)target, found = __atomic_load_n(bits, __ATOMIC_RELAXED), wanted;
    float sum;
    do {
        memcpy(&sum, &found, 4);
        sum += value;
        memcpy(&wanted, &sum, 4);
    } while (!__atomic_compare_exchange_n(bits, &found, wanted, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    autotune::touch(target);
    memcpy(&sum, &found, 4);
    return sum;
}

template <class T> static inline T __ldg(const T *from) { return *from; }
template <class T> static inline T __ldcs(const T *from) { return *from; }
template <class T> static inline void __stcs(T *to, T value) { *to = value; }
static inline float __fdividef(float a, float b) { return a / b; }
static inline float __sinf(float x) { return sinf(x); }
static inline float __cosf(float x) { return cosf(x); }
static inline int min(int a, int b) { return b < a ? b : a; }
static inline int max(int a, int b) { return a < b ? b : a; }

#endif
