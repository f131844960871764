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

#if __GNUC__ >= 10
#undef __shared__
#define __shared__ static __constinit __attribute__((used)) /* arrays of vectors need no guard then */
#endif
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

namespace autotune {
typedef __int128 wide_t; /* of products and sums of 64 bits */
template <class T> constexpr wide_t lowest = (T)-1 > (T)0 ? 0 : -((wide_t)1 << (8 * sizeof(T) - 1));
template <class T> constexpr wide_t highest = lowest<T> + ((wide_t)1 << 8 * sizeof(T)) - 1;
template <class T, class From> static inline T saturated(From from)
{
    return from <= (From)lowest<T> ? (T)lowest<T> : from >= (From)highest<T> ? (T)highest<T> : (T)from;
}
template <class T> static inline T saturated(wide_t from)
{
    return from < lowest<T> ? (T)lowest<T> : from > highest<T> ? (T)highest<T> : (T)from;
}
template <class T> static inline unsigned long bits_of(T value)
{
    return (unsigned long)value & (~0ul >> (64 - 8 * sizeof(T)));
}
} // namespace autotune

#define DEFINE_CONVERSIONS(name, type)                                                                                  \
    template <class From> static inline type as_##name(From from) { return as_type<type>(from); }                       \
    template <class From> static inline type convert_##name(From from) { return (type)from; }
#define DEFINE_CONVERSIONS_OF_WHOLE(name, type)                                                                         \
    DEFINE_CONVERSIONS(name, type)                                                                                      \
    template <class From> static inline type convert_##name##_sat(From from)                                            \
    {                                                                                                                   \
        if constexpr (__is_same(From, float) || __is_same(From, double))                                                \
            return autotune::saturated<type, From>(from);                                                               \
        return autotune::saturated<type>((autotune::wide_t)from);                                                       \
    }                                                                                                                   \
    template <class From> static inline type convert_##name##_rte(From from) { return (type)rint(from); }               \
    template <class From> static inline type convert_##name##_rtz(From from) { return (type)from; }                     \
    template <class From> static inline type convert_##name##_rtn(From from) { return (type)floor(from); }              \
    template <class From> static inline type convert_##name##_rtp(From from) { return (type)ceil(from); }
DEFINE_CONVERSIONS(float, float)
DEFINE_CONVERSIONS(double, double)
DEFINE_CONVERSIONS_OF_WHOLE(char, char)
DEFINE_CONVERSIONS_OF_WHOLE(uchar, unsigned char)
DEFINE_CONVERSIONS_OF_WHOLE(short, short)
DEFINE_CONVERSIONS_OF_WHOLE(ushort, unsigned short)
DEFINE_CONVERSIONS_OF_WHOLE(int, int)
DEFINE_CONVERSIONS_OF_WHOLE(uint, unsigned int)
DEFINE_CONVERSIONS_OF_WHOLE(long, long)
DEFINE_CONVERSIONS_OF_WHOLE(ulong, unsigned long)

#define OF_ONE template <class T> static inline T
OF_ONE add_sat(T a, T b) { return autotune::saturated<T>((autotune::wide_t)a + b); }
OF_ONE sub_sat(T a, T b) { return autotune::saturated<T>((autotune::wide_t)a - b); }
OF_ONE mul_hi(T a, T b)
{
    if constexpr ((T)-1 > (T)0)
        return (T)((unsigned __int128)a * b >> 8 * sizeof(T));
    return (T)((autotune::wide_t)a * b >> 8 * sizeof(T));
}
OF_ONE mad_hi(T a, T b, T c) { return mul_hi(a, b) + c; }
OF_ONE hadd(T a, T b) { return (a >> 1) + (b >> 1) + (a & b & 1); }
OF_ONE rhadd(T a, T b) { return (a >> 1) + (b >> 1) + ((a | b) & 1); }
OF_ONE rotate(T value, T by)
{
    const unsigned long bits = 8 * sizeof(T), left = by & (bits - 1), from = autotune::bits_of(value);
    return left ? (T)(from << left | from >> (bits - left)) : value;
}
OF_ONE clz(T value)
{
    return value ? __builtin_clzl(autotune::bits_of(value)) - (64 - 8 * sizeof(T)) : 8 * sizeof(T);
}
OF_ONE popcount(T value) { return __builtin_popcountl(autotune::bits_of(value)); }
OF_ONE bitselect(T a, T b, T from_b) { return (a & ~from_b) | (b & from_b); }
template <class T> static inline unsigned long abs_diff(T a, T b)
{
    return a > b ? (unsigned long)a - (unsigned long)b : (unsigned long)b - (unsigned long)a;
}
template <class T, class C> static inline T select(T a, T b, C is_b) { return is_b ? b : a; }

OF_ONE cospi(T x) { return (T)cos(x * M_PI); }
OF_ONE sinpi(T x) { return (T)sin(x * M_PI); }
OF_ONE tanpi(T x) { return (T)tan(x * M_PI); }
OF_ONE pown(T x, int n) { return (T)pow(x, (T)n); }
OF_ONE powr(T x, T y) { return pow(x, y); }
OF_ONE rootn(T x, int n) { return n % 2 && x < 0 ? -pow(-x, (T)1 / n) : pow(x, (T)1 / n); }
OF_ONE degrees(T x) { return x * (T)(180 / M_PI); }
OF_ONE radians(T x) { return x * (T)(M_PI / 180); }
OF_ONE sign(T x) { return x > 0 ? (T)1 : x < 0 ? (T)-1 : x; }
OF_ONE step(T edge, T x) { return x < edge ? (T)0 : (T)1; }
OF_ONE smoothstep(T low, T high, T x)
{
    const T t = fmin(fmax((x - low) / (high - low), (T)0), (T)1);
    return t * t * (3 - 2 * t);
}
OF_ONE maxmag(T a, T b) { return fabs(a) > fabs(b) ? a : fabs(b) > fabs(a) ? b : fmax(a, b); }
OF_ONE minmag(T a, T b) { return fabs(a) < fabs(b) ? a : fabs(b) < fabs(a) ? b : fmin(a, b); }
OF_ONE fract(T x, T *whole)
{
    *whole = floor(x);
    return x - *whole;
}
OF_ONE sincos(T x, T *cosine)
{
    *cosine = cos(x);
    return sin(x);
}
template <class A, class B, class C> static inline auto mix(A a, B b, C share) { return a + (b - a) * share; }
static inline size_t get_local_linear_id()
{
    return (get_local_id(2) * get_local_size(1) + get_local_id(1)) * get_local_size(0) + get_local_id(0);
}
static inline size_t get_global_linear_id()
{
    return (get_global_id(2) * get_global_size(1) + get_global_id(1)) * get_global_size(0) + get_global_id(0);
}

#define native_sin sinf
#define native_cos cosf
#define native_exp expf
#define native_tan tanf
#define native_exp2 exp2f
#define native_exp10 exp10f
#define native_log logf
#define native_log2 log2f
#define native_log10 log10f
#define native_powr powf
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
DEFINE_VECTORS(char, char)
DEFINE_VECTORS(uchar, unsigned char)
DEFINE_VECTORS(short, short)
DEFINE_VECTORS(ushort, unsigned short)
DEFINE_VECTORS(long, long)
DEFINE_VECTORS(ulong, unsigned long)

#endif
