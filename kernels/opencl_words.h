/* OpenCL C's words for threads.h, so that a plain OpenCL kernel runs on the CPU under watch, too. autotune replaces
 * what no macro can tell apart: `__local` in front of an array is memory of the block, in front of a pointer nothing,
 * and (float4)(a, b, c, d) is a call of make_vector. What is missing here, such as images, g++ refuses.
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
    const size_t most = (count + autotune::count - 1) / autotune::count, first = most * autotune::thread_number();
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

/* Vectors: one value for all components or one for each, and arithmetic by component; no parts such as .xy and .lo. */
namespace autotune {
#define COMPONENTS_2 union { T x, s0; }; union { T y, s1; };
#define COMPONENTS_4 COMPONENTS_2 union { T z, s2; }; union { T w, s3; };
#define COMPONENTS_8 COMPONENTS_4 T s4, s5, s6, s7;
template <class T, int N> struct components_t;
template <class T> struct alignas(2 * sizeof(T)) components_t<T, 2> { COMPONENTS_2 };
template <class T> struct alignas(4 * sizeof(T)) components_t<T, 3> { COMPONENTS_2 union { T z, s2; }; };
template <class T> struct alignas(4 * sizeof(T)) components_t<T, 4> { COMPONENTS_4 };
template <class T> struct alignas(8 * sizeof(T)) components_t<T, 8> { COMPONENTS_8 };
template <class T> struct alignas(16 * sizeof(T)) components_t<T, 16> { COMPONENTS_8 T s8, s9, sa, sb, sc, sd, se, sf; };

template <class T, int N> struct vector_t : components_t<T, N> {
    vector_t() = default;
    vector_t(T all) { for (int i = 0; i < N; i++) (*this)[i] = all; }
    T &operator[](int i) { return (&this->x)[i]; }
    T operator[](int i) const { return (&this->x)[i]; }
};

template <class T, int N, class Part> static inline void append(vector_t<T, N> &to, int &size, Part part)
{
    to[size++] = (T)part;
}
template <class T, int N, int M> static inline void append(vector_t<T, N> &to, int &size, vector_t<T, M> part)
{
    for (int i = 0; i < M; i++)
        to[size++] = part[i];
}
template <class V, class First, class... Parts> static inline V make_vector(First first, Parts... parts)
{
    if constexpr (!sizeof...(parts) && !__is_class(First))
        return V(first);
    V made;
    int size = 0;
    append(made, size, first);
    (append(made, size, parts), ...);
    return made;
}
} // namespace autotune

#define VECTORS template <class T, int N> static inline
#define VECTOR autotune::vector_t<T, N>
#define SCALAR typename plain<T>::type
#define BY_COMPONENT(value) { VECTOR made; for (int i = 0; i < N; i++) made[i] = value; return made; }
#define DEFINE_OPERATOR(symbol)                                                                                         \
    VECTORS VECTOR operator symbol(VECTOR a, VECTOR b) BY_COMPONENT(a[i] symbol b[i])                                   \
    VECTORS VECTOR operator symbol(VECTOR a, SCALAR b) BY_COMPONENT(a[i] symbol b)                                      \
    VECTORS VECTOR operator symbol(SCALAR a, VECTOR b) BY_COMPONENT(a symbol b[i])                                      \
    VECTORS VECTOR &operator symbol##=(VECTOR &a, VECTOR b) { return a = a symbol b; }                                  \
    VECTORS VECTOR &operator symbol##=(VECTOR &a, SCALAR b) { return a = a symbol b; }
DEFINE_OPERATOR(+)
DEFINE_OPERATOR(-)
DEFINE_OPERATOR(*)
DEFINE_OPERATOR(/)
DEFINE_OPERATOR(%)
DEFINE_OPERATOR(&)
DEFINE_OPERATOR(|)
DEFINE_OPERATOR(^)
DEFINE_OPERATOR(<<)
DEFINE_OPERATOR(>>)
VECTORS VECTOR operator-(VECTOR a) BY_COMPONENT(-a[i])
#define DEFINE_FUNCTION(name) VECTORS VECTOR name(VECTOR a) BY_COMPONENT(name(a[i]))
DEFINE_FUNCTION(exp)
DEFINE_FUNCTION(exp2)
DEFINE_FUNCTION(log)
DEFINE_FUNCTION(log2)
DEFINE_FUNCTION(sqrt)
DEFINE_FUNCTION(fabs)
DEFINE_FUNCTION(floor)
DEFINE_FUNCTION(ceil)
DEFINE_FUNCTION(sin)
DEFINE_FUNCTION(cos)
DEFINE_FUNCTION(tanh)
#define DEFINE_FUNCTION_OF_TWO(name)                                                                                    \
    VECTORS VECTOR name(VECTOR a, VECTOR b) BY_COMPONENT(name(a[i], b[i]))                                              \
    VECTORS VECTOR name(VECTOR a, SCALAR b) BY_COMPONENT(name(a[i], b))
DEFINE_FUNCTION_OF_TWO(fmin)
DEFINE_FUNCTION_OF_TWO(fmax)
DEFINE_FUNCTION_OF_TWO(min)
DEFINE_FUNCTION_OF_TWO(max)
DEFINE_FUNCTION_OF_TWO(pow)
VECTORS VECTOR clamp(VECTOR a, VECTOR low, VECTOR high) { return min(max(a, low), high); }
VECTORS VECTOR clamp(VECTOR a, SCALAR low, SCALAR high) { return min(max(a, low), high); }
VECTORS VECTOR fma(VECTOR a, VECTOR b, VECTOR c) BY_COMPONENT(std::fma(a[i], b[i], c[i]))
VECTORS T dot(VECTOR a, VECTOR b)
{
    T sum = a[0] * b[0];
    for (int i = 1; i < N; i++)
        sum += a[i] * b[i];
    return sum;
}
VECTORS T length(VECTOR a) { return sqrt(dot(a, a)); }
VECTORS T distance(VECTOR a, VECTOR b) { return length(a - b); }
VECTORS VECTOR normalize(VECTOR a) { return a / length(a); }
#define DEFINE_SIZE(N)                                                                                                  \
    template <class T> static inline autotune::vector_t<T, N> vload##N(size_t at, const T *from)                        \
    {                                                                                                                   \
        autotune::vector_t<T, N> made;                                                                                  \
        for (int i = 0; i < N; i++)                                                                                     \
            made[i] = from[N * at + i];                                                                                 \
        return made;                                                                                                    \
    }                                                                                                                   \
    template <class T> static inline void vstore##N(autotune::vector_t<T, N> value, size_t at, T *to)                   \
    {                                                                                                                   \
        for (int i = 0; i < N; i++)                                                                                     \
            to[N * at + i] = value[i];                                                                                  \
    }
DEFINE_SIZE(2)
DEFINE_SIZE(3)
DEFINE_SIZE(4)
DEFINE_SIZE(8)
DEFINE_SIZE(16)
#define uint3 opencl_uint3 /* not that of threads.h */
#define DEFINE_VECTOR(name, type, N)                                                                                    \
    typedef autotune::vector_t<type, N> name##N;                                                                        \
    template <class T> static inline name##N convert_##name##N(autotune::vector_t<T, N> from)                           \
    {                                                                                                                   \
        name##N made;                                                                                                   \
        for (int i = 0; i < N; i++)                                                                                     \
            made[i] = (type)from[i];                                                                                    \
        return made;                                                                                                    \
    }
#define DEFINE_VECTORS(name, type)                                                                                      \
    DEFINE_VECTOR(name, type, 2)                                                                                        \
    DEFINE_VECTOR(name, type, 3)                                                                                        \
    DEFINE_VECTOR(name, type, 4)                                                                                        \
    DEFINE_VECTOR(name, type, 8)                                                                                        \
    DEFINE_VECTOR(name, type, 16)
DEFINE_VECTORS(float, float)
DEFINE_VECTORS(double, double)
DEFINE_VECTORS(int, int)
DEFINE_VECTORS(uint, unsigned int)
DEFINE_VECTORS(uchar, unsigned char)

#endif
