/* CUDA's words in C++ for a CPU, so that a kernel runs under watch: autotune puts this in front of a source and a main
 * program behind it. threads.cpp, which is compiled once for all programs, runs them.
 */
#ifndef AUTOTUNE_THREADS_H
#define AUTOTUNE_THREADS_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define __global__ __attribute__((noinline))
#define __device__
#define __host__
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __constant__ static
#define __shared__ static __attribute__((used)) /* in a function: other static variables are no block's */
#define UNWATCHED __attribute__((no_sanitize("thread"), no_sanitize("address"), noinline))
#define CALLER ((char *)__builtin_return_address(0) - 1)
/* Watched for its address: an atomic tells races.h itself what it does. */
#define ATOMIC __attribute__((no_sanitize("thread"), noinline))

struct uint3 { unsigned int x, y, z; };

namespace autotune {

constexpr size_t DYNAMIC_BYTES = 1 << 20; /* of shared memory whose size comes with the launch: more than GPUs have */

extern uint3 block_of_grid, block_extent, grid_extent;
extern unsigned int count; /* threads of a block */
extern bool orders_global; /* whether the barrier at which threads wait is one for global memory, too */

uint3 thread_index() __attribute__((pure));
unsigned int thread_number() __attribute__((pure)); /* in its block */
static inline unsigned int lane() { return thread_number() % 32; }
void wait_for_block();
void wait_for_warp(unsigned int mask, bool orders);
void exchange_bytes(unsigned int mask, void *value, size_t bytes, unsigned int lane, bool is_inside);
unsigned int ballot(unsigned int mask, bool holds);
unsigned int count_of_block(bool holds);
void fence();
void touch();
void record(const void *address, size_t bytes, bool is_write, bool is_atomic, const void *code);
bool begin_copy(void *to, const void *from, size_t bytes);
void wait_for_copies(unsigned int groups);
void end_group();

static UNWATCHED char *dynamic_shared()
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
void launch_child(const child_t &launched);

template <class T> static UNWATCHED T exchange(unsigned int mask, T value, unsigned int lane, bool is_inside)
{
    static_assert(sizeof(T) <= 8, "a shuffle of at most 8 bytes");
    exchange_bytes(mask, &value, sizeof value, lane, is_inside);
    return value;
}

template <class T> __attribute__((always_inline)) inline void copy_async(T *to, const T *from)
{
    if (!begin_copy(to, from, sizeof(T)))
        *to = *from;
}

struct any_pointer {
    char *address;
    size_t bytes;
    template <class T> operator T *() const { return (T *)address; }
    any_pointer from(size_t bytes) const { return {address + bytes}; }
};

union number_t { unsigned long whole; double real; };
extern const number_t *numbers; /* the next ones; while a launch runs, those that it passes */

void start(const char *problem_number, unsigned int seconds);
any_pointer array(const char *name);
void set_variable(void *variable, any_pointer array);
void run(void (*const *bodies)(), char *dynamic);
void save(const char *name, any_pointer array);

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
    template <class T> static ATOMIC T name(T *target, __VA_ARGS__ typename plain<T>::type value)                              \
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
#define __sinf sinf /* math.h has functions of these names */
#define __cosf cosf
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
