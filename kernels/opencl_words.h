/* OpenCL C's words for threads.h, so that a plain OpenCL kernel runs on the CPU under watch, too. autotune replaces
 * what no macro can tell apart: `__local` in front of an array is memory of the block, in front of a pointer nothing,
 * and (float4)(a, b, c, d) is a call of make_float4. What is missing here, such as images, g++ refuses.
 */
#ifndef AUTOTUNE_OPENCL_WORDS_H
#define AUTOTUNE_OPENCL_WORDS_H

#define PORTABLE_HALF_H /* g++ has no half: it refuses a kernel that uses it */
#include <float.h>
#include <limits.h>

#define __kernel extern "C" __attribute__((noinline))
#define kernel __kernel
#define __global
#define global
#define __constant
#define constant
#define __private
#define restrict __restrict__
typedef unsigned char uchar;

#define CLK_LOCAL_MEM_FENCE 1
#define CLK_GLOBAL_MEM_FENCE 2

static inline unsigned int get_work_dim() { return blockDim.z * gridDim.z > 1 ? 3 : blockDim.y * gridDim.y > 1 ? 2 : 1; }
#define DEFINE_INDEX(name, from, otherwise)                                                                             \
    static inline size_t name(unsigned int axis)                                                                        \
    {                                                                                                                   \
        const uint3 found = from;                                                                                       \
        return axis == 0 ? found.x : axis == 1 ? found.y : axis == 2 ? found.z : otherwise;                             \
    }
DEFINE_INDEX(get_local_id, threadIdx, 0)
DEFINE_INDEX(get_group_id, blockIdx, 0)
DEFINE_INDEX(get_local_size, blockDim, 1)
DEFINE_INDEX(get_num_groups, gridDim, 1)
static inline size_t get_global_offset(unsigned int) { return 0; }
static inline size_t get_global_size(unsigned int axis) { return get_num_groups(axis) * get_local_size(axis); }
static inline size_t get_global_id(unsigned int axis)
{
    return get_group_id(axis) * get_local_size(axis) + get_local_id(axis);
}

static inline void mem_fence(int) { __threadfence(); }
static inline void read_mem_fence(int) { __threadfence(); }
static inline void write_mem_fence(int) { __threadfence(); }
/* One for global memory is a fence for other blocks, too, and taken for one for local memory: many kernels do that. */
static inline void barrier(int memory)
{
    if (memory & CLK_GLOBAL_MEM_FENCE)
        __threadfence();
    else
        autotune::orders_global = false;
    __syncthreads();
    if (memory & CLK_GLOBAL_MEM_FENCE)
        __threadfence();
}
#define work_group_barrier barrier

/* Each thread copies a part of what the block copies, when it waits for that. */
typedef int event_t;
template <class T> static inline event_t async_work_group_copy(T *to, const T *from, size_t count, event_t event)
{
    const size_t most = (count + autotune::count - 1) / autotune::count, first = most * autotune::current->number;
    if (first < count)
        autotune::begin_copy(to + first, from + first, min(most, count - first) * sizeof(T));
    autotune::end_group();
    return event;
}
static inline void wait_group_events(int, event_t *)
{
    autotune::wait_for_copies(0);
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
}

#define atomic_add atomicAdd
#define atomic_sub atomicSub
#define atomic_xchg atomicExch
#define atomic_min atomicMin
#define atomic_max atomicMax
#define atomic_and atomicAnd
#define atomic_or atomicOr
#define atomic_xor atomicXor
#define atomic_cmpxchg atomicCAS
#define atomic_inc(target) atomicAdd(target, 1)
#define atomic_dec(target) atomicSub(target, 1)
#define atom_add atomic_add
#define atom_inc atomic_inc
#define atom_cmpxchg atomic_cmpxchg

template <class To, class From> static inline To as_type(From from)
{
    static_assert(sizeof(To) == sizeof(From), "as_type of another size");
    To to;
    memcpy(&to, &from, sizeof to);
    return to;
}
#define as_int as_type<int>
#define as_uint as_type<unsigned int>
#define as_float as_type<float>
#define convert_int (int)
#define convert_uint (unsigned int)
#define convert_float (float)

#define native_sin sinf
#define native_cos cosf
#define native_exp expf
#define native_log logf
#define native_sqrt sqrtf
#define native_divide(a, b) ((float)(a) / (b))
#define native_recip(x) (1.0f / (x))
#define native_rsqrt(x) (1.0f / sqrtf(x))
#define rsqrt(x) (1 / sqrt(x))
#define mad(a, b, c) ((a) * (b) + (c))
#define mul24(a, b) ((a) * (b))
#define mad24(a, b, c) ((a) * (b) + (c))
template <class T, class L, class H> static inline T clamp(T value, L low, H high)
{
    return value < low ? (T)low : value > high ? (T)high : value;
}

/* Vectors: one value for all components or one for each, and arithmetic by component. */
#define DEFINE_OPERATOR(vector, type, symbol, ...)                                                                      \
    static inline vector operator symbol(vector a, vector b) { return {__VA_ARGS__}; }                                  \
    static inline vector operator symbol(vector a, type b) { return a symbol make_##vector(b); }                        \
    static inline vector operator symbol(type a, vector b) { return make_##vector(a) symbol b; }                        \
    static inline vector &operator symbol##=(vector &a, vector b) { return a = a symbol b; }                            \
    static inline vector &operator symbol##=(vector &a, type b) { return a = a symbol b; }
#define DEFINE_ARITHMETIC(type, symbol)                                                                                 \
    DEFINE_OPERATOR(type##2, type, symbol, a.x symbol b.x, a.y symbol b.y)                                              \
    DEFINE_OPERATOR(type##4, type, symbol, a.x symbol b.x, a.y symbol b.y, a.z symbol b.z, a.w symbol b.w)
#define DEFINE_VECTOR_TYPE(type)                                                                                        \
    static inline type##2 make_##type##2(type x, type y) { return {x, y}; }                                             \
    static inline type##2 make_##type##2(type x) { return {x, x}; }                                                     \
    static inline type##4 make_##type##4(type x, type y, type z, type w) { return {x, y, z, w}; }                       \
    static inline type##4 make_##type##4(type x) { return {x, x, x, x}; }                                               \
    DEFINE_ARITHMETIC(type, +)                                                                                          \
    DEFINE_ARITHMETIC(type, -)                                                                                          \
    DEFINE_ARITHMETIC(type, *)                                                                                          \
    DEFINE_ARITHMETIC(type, /)                                                                                          \
    static inline type##2 operator-(type##2 a) { return {-a.x, -a.y}; }                                                 \
    static inline type##4 operator-(type##4 a) { return {-a.x, -a.y, -a.z, -a.w}; }
DEFINE_VECTOR_TYPE(float)
DEFINE_VECTOR_TYPE(int)
#define DEFINE_FUNCTION(name)                                                                                           \
    static inline float2 name(float2 a) { return {name(a.x), name(a.y)}; }                                              \
    static inline float4 name(float4 a) { return {name(a.x), name(a.y), name(a.z), name(a.w)}; }
DEFINE_FUNCTION(exp)
DEFINE_FUNCTION(exp2)
DEFINE_FUNCTION(log)
DEFINE_FUNCTION(log2)
DEFINE_FUNCTION(sqrt)
DEFINE_FUNCTION(fabs)
DEFINE_FUNCTION(floor)
DEFINE_FUNCTION(sin)
DEFINE_FUNCTION(cos)
DEFINE_FUNCTION(tanh)
#define DEFINE_FUNCTION_OF_TWO(name, type)                                                                              \
    static inline type##2 name(type##2 a, type##2 b) { return {name(a.x, b.x), name(a.y, b.y)}; }                       \
    static inline type##4 name(type##4 a, type##4 b)                                                                    \
    {                                                                                                                   \
        return {name(a.x, b.x), name(a.y, b.y), name(a.z, b.z), name(a.w, b.w)};                                        \
    }
DEFINE_FUNCTION_OF_TWO(fmin, float)
DEFINE_FUNCTION_OF_TWO(fmax, float)
DEFINE_FUNCTION_OF_TWO(min, float)
DEFINE_FUNCTION_OF_TWO(max, float)
DEFINE_FUNCTION_OF_TWO(min, int)
DEFINE_FUNCTION_OF_TWO(max, int)
static inline float2 fma(float2 a, float2 b, float2 c) { return {fmaf(a.x, b.x, c.x), fmaf(a.y, b.y, c.y)}; }
static inline float4 fma(float4 a, float4 b, float4 c)
{
    return {fmaf(a.x, b.x, c.x), fmaf(a.y, b.y, c.y), fmaf(a.z, b.z, c.z), fmaf(a.w, b.w, c.w)};
}
static inline float dot(float4 a, float4 b) { return a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w; }
static inline float dot(float2 a, float2 b) { return a.x * b.x + a.y * b.y; }
static inline float2 vload2(size_t i, const float *from) { return {from[2 * i], from[2 * i + 1]}; }
static inline void vstore2(float2 value, size_t i, float *to) { memcpy(to + 2 * i, &value, sizeof value); }
static inline float4 vload4(size_t i, const float *from) { return {from[4 * i], from[4 * i + 1], from[4 * i + 2], from[4 * i + 3]}; }
static inline void vstore4(float4 value, size_t i, float *to) { memcpy(to + 4 * i, &value, sizeof value); }

#endif
