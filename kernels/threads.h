/* CUDA's words in C++ for a CPU, so that a kernel runs under watch: autotune puts this in front of a source and a main
 * program behind it. Every thread of a block is a fiber; fibers and blocks run one after the other.
 *
 * -fsanitize=thread   races.h looks for races; warps run in no order of their own. Memory that nobody wrote holds zeros
 * -fsanitize=address  There is forbidden memory around every array, global or shared. Memory that nobody wrote holds
 *                     ones, shared memory again for every block
 */
#ifndef AUTOTUNE_THREADS_H
#define AUTOTUNE_THREADS_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <ucontext.h>
#include <unistd.h>

#define __global__ __attribute__((noinline))
#define __device__
#define __host__
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __constant__ static
#define __shared__ static __attribute__((used)) /* in a function: other static variables are no block's */
#define NOT_WATCHED __attribute__((no_sanitize("thread"), no_sanitize("address"), noinline))
#define CALLER ((char *)__builtin_return_address(0) - 1)
#define UNWATCHED NOT_WATCHED static
#define UNWATCHED_C extern "C" NOT_WATCHED
/* Watched for its address: an atomic tells races.h itself what it does. */
#define ATOMIC __attribute__((no_sanitize("thread"), noinline)) static

struct uint3 { unsigned int x, y, z; };

/* ------------------------------------------------------------------------------------------- fibers */

namespace autotune {

constexpr size_t STACK_BYTES = 65536 + 320; /* no power of two, for the sake of caches */
constexpr size_t ARENA_BYTES = 1ul << 33, GAP_BYTES = 1 << 20;
constexpr size_t DYNAMIC_BYTES = 1 << 20; /* of shared memory whose size comes with the launch: more than GPUs have */
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

static bool orders_global = true; /* whether the barrier at which threads wait is one for global memory, too */
static uint3 block_of_grid, block_extent, grid_extent;
static void (*kernel)();
static fiber_t fibers[MAX_THREADS], *current;
static ucontext_t starts[MAX_THREADS];
static void *scheduler[5];
static unsigned int count, block; /* threads of a block; the block's number */
static unsigned long long exchanged[MAX_THREADS];
/* Shared variables, and the memory from the first to the last of them. */
struct shared_t { char *at; size_t bytes; };
static shared_t shared[1024];
static char *shared_begin, *shared_end;

/* The environment has the address and the size of each in hexadecimal, in order. */
NOT_WATCHED static unsigned int find_shared()
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

UNWATCHED char *dynamic_shared()
{
    __shared__ __attribute__((aligned(16))) char memory[DYNAMIC_BYTES];
    return memory;
}

/* Grids that threads of the present one launch: they start when it has ended, those of a tail last. */
struct child_t {
    uint3 grid, block;
    size_t shared_bytes;
    bool is_tail;
    void (*run)(void *);
    void *body;
    child_t *next;
};
static child_t *children, **last_child = &children, *child;

UNWATCHED void launch(uint3 grid, uint3 block_of_threads, size_t shared_bytes, void (*body)())
{
    const size_t dynamic_bytes = shared_bytes < DYNAMIC_BYTES ? shared_bytes : DYNAMIC_BYTES;
    for (shared_t *one = shared; one != shared + shared_count; one++)
        if (one->at == dynamic_shared())
            one->bytes = dynamic_bytes;
    __asan_unpoison_memory_region(dynamic_shared(), DYNAMIC_BYTES);
    __asan_poison_memory_region(dynamic_shared() + dynamic_bytes, DYNAMIC_BYTES - dynamic_bytes);
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

template <class T> UNWATCHED T exchange(unsigned int mask, T value, unsigned int lane, bool is_inside)
{
    static_assert(sizeof(T) <= 8, "a shuffle of at most 8 bytes");
    const unsigned int own = current->number, from = own / 32 * 32 + lane;
    memcpy(&exchanged[own], &value, sizeof value);
    wait_for_warp(mask, false);
    if (is_inside && is_active(mask, from))
        memcpy(&value, &exchanged[from], sizeof value);
    else if (is_inside)
        memset(&value, UNWRITTEN, sizeof value); /* of an inactive lane: a GPU gives anything */
    wait_for_warp(mask, false);
    return value;
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

UNWATCHED unsigned int lane() { return current->number % 32; }
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

template <class T> __attribute__((always_inline)) inline void copy_async(T *to, const T *from)
{
    if (!begin_copy(to, from, sizeof(T)))
        *to = *from;
}

UNWATCHED void end_group() { current->group++; }

/* The program ends by SIGXCPU after so many seconds of CPU time. */
UNWATCHED void limit(unsigned int seconds)
{
    const rlimit cpu = {seconds, seconds + 1};
    setrlimit(RLIMIT_CPU, &cpu);
}

struct any_pointer {
    char *address;
    size_t bytes;
    template <class T> operator T *() const { return (T *)address; }
    any_pointer from(size_t bytes) const { return {address + bytes}; }
};

/* What a program runs is in a file of eight-byte numbers: of each array whether a file has its content, and its
 * bytes; of each launch which of the program's it is, the extents of its grid and of its blocks, its bytes of dynamic
 * shared memory, how many numbers it passes, and these.
 */
union number_t { unsigned long whole; double real; };

static const number_t *numbers, *numbers_end; /* the next ones; while a launch runs, those that it passes */
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

UNWATCHED void run(void (*const *bodies)())
{
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

/* ------------------------------------------------------------------------------------ CUDA's words */

#define threadIdx autotune::thread_index()
#define blockIdx autotune::block_of_grid
#define blockDim autotune::block_extent
#define gridDim autotune::grid_extent
#define warpSize 32

#define __syncthreads() autotune::wait_for_block()
static inline void __syncwarp(unsigned int mask = ~0u) { autotune::wait_for_warp(mask, true); }
static inline void __threadfence() { autotune::fence(); }

/* Among `width` neighbours; a lane beyond them keeps its own value. */
template <class T> static inline T __shfl_sync(unsigned int mask, T value, unsigned int from, unsigned int width = 32)
{
    return autotune::exchange(mask, value, autotune::lane() / width * width + from % width, true);
}

template <class T> static inline T __shfl_down_sync(unsigned int mask, T value, unsigned int distance, unsigned int width = 32)
{
    const unsigned int lane = autotune::lane();
    return autotune::exchange(mask, value, lane + distance, lane % width + distance < width);
}

template <class T> static inline T __shfl_up_sync(unsigned int mask, T value, unsigned int distance, unsigned int width = 32)
{
    const unsigned int lane = autotune::lane();
    return autotune::exchange(mask, value, lane - distance, distance <= lane % width);
}

template <class T> static inline T __shfl_xor_sync(unsigned int mask, T value, unsigned int bits, unsigned int width = 32)
{
    const unsigned int lane = autotune::lane();
    return autotune::exchange(mask, value, lane ^ bits, (lane ^ bits) / width <= lane / width);
}

template <class T> struct plain { typedef T type; };
#define DEFINE_ATOMIC(name, result, ...)                                                                                \
    template <class T> ATOMIC T name(T *target, __VA_ARGS__ typename plain<T>::type value)                              \
    {                                                                                                                   \
        const T before = *target;                                                                                       \
        autotune::record(target, sizeof(T), true, true, CALLER);                                                        \
        *target = result;                                                                                               \
        autotune::touch();                                                                                              \
        return before;                                                                                                  \
    }
DEFINE_ATOMIC(atomicAdd, before + value)
DEFINE_ATOMIC(atomicSub, before - value)
DEFINE_ATOMIC(atomicExch, value)
DEFINE_ATOMIC(atomicMin, value < before ? value : before)
DEFINE_ATOMIC(atomicMax, value > before ? value : before)
DEFINE_ATOMIC(atomicAnd, before & value)
DEFINE_ATOMIC(atomicOr, before | value)
DEFINE_ATOMIC(atomicXor, before ^ value)
DEFINE_ATOMIC(atomicInc, before < value ? before + 1 : 0)
DEFINE_ATOMIC(atomicCAS, before == expected ? value : before, typename plain<T>::type expected, )
DEFINE_ATOMIC(atomicDec, before == 0 || before > value ? value : before - 1)

#define DEFINE_BITS(name, to, from)                                                                                     \
    static inline to name(from value)                                                                                   \
    {                                                                                                                   \
        to bits;                                                                                                        \
        memcpy(&bits, &value, sizeof bits);                                                                             \
        return bits;                                                                                                    \
    }
DEFINE_BITS(__float_as_int, int, float)
DEFINE_BITS(__float_as_uint, unsigned int, float)
DEFINE_BITS(__int_as_float, float, int)
DEFINE_BITS(__uint_as_float, float, unsigned int)
DEFINE_BITS(__double_as_longlong, long long, double)
DEFINE_BITS(__longlong_as_double, double, long long)

template <class T> static inline T __ldg(const T *from) { return *from; }
template <class T> static inline T __ldcs(const T *from) { return *from; }
template <class T> static inline void __stcs(T *to, T value) { *to = value; }
static inline float __fdividef(float a, float b) { return a / b; }
static inline float rsqrt(float x) { return 1 / sqrtf(x); }
static inline double rsqrt(double x) { return 1 / sqrt(x); }
static inline float __sinf(float x) { return sinf(x); }
static inline float __cosf(float x) { return cosf(x); }
static inline void sincos(float x, float *sine, float *cosine) { sincosf(x, sine, cosine); }
/* Of any two numbers, in the type of their sum. The other one where one is no number, as fmin and fmax have it. */
template <class A, class B> static inline auto min(A a, B b) -> decltype(a + b)
{
    const decltype(a + b) first = a, second = b;
    return first != first || second < first ? second : first;
}

template <class A, class B> static inline auto max(A a, B b) -> decltype(a + b)
{
    const decltype(a + b) first = a, second = b;
    return first != first || first < second ? second : first;
}

#endif
