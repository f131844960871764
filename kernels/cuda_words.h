/* Further words of CUDA for threads.h, which its own dialect has and parts of a portable source that are for CUDA. What
 * is missing here, such as textures, half precision and cooperative groups, g++ refuses.
 */
#ifndef AUTOTUNE_CUDA_WORDS_H
#define AUTOTUNE_CUDA_WORDS_H

struct dim3 {
    unsigned int x, y, z;
    dim3(unsigned int x = 1, unsigned int y = 1, unsigned int z = 1) : x(x), y(y), z(z) {}
    dim3(uint3 from) : x(from.x), y(from.y), z(from.z) {}
};

/* Kernels that launch kernels: `name<<<grid, block>>>(...)` comes here as `launched([](...) { name(...); }, grid,
 * block)(...)`. */
enum cudaError_t { cudaSuccess };
typedef struct CUstream_st *cudaStream_t;
#define cudaStreamTailLaunch ((cudaStream_t)3)
#define cudaStreamFireAndForget ((cudaStream_t)4)
static inline cudaError_t cudaGetLastError() { return cudaSuccess; }
static inline cudaError_t cudaPeekAtLastError() { return cudaSuccess; }

namespace autotune {

template <class Kernel> struct launched_t {
    Kernel kernel;
    dim3 grid, block;
    size_t shared_bytes;
    bool is_tail;
    template <class... Given> void operator()(Given... given) const
    {
        const auto body = [kernel = kernel, given...] { kernel(given...); };
        using body_t = decltype(body);
        void *const kept = memcpy(malloc(sizeof body), &body, sizeof body);
        const auto run = [](void *at) { (*(body_t *)at)(); };
        launch_child({{grid.x, grid.y, grid.z}, {block.x, block.y, block.z}, shared_bytes, is_tail, run, kept, 0});
    }
};
template <class Kernel>
launched_t<Kernel> launched(Kernel kernel, dim3 grid, dim3 block, size_t shared_bytes = 0,
                            cudaStream_t stream = 0)
{
    return {kernel, grid, block, shared_bytes, stream == cudaStreamTailLaunch};
}

} // namespace autotune

#define DEFINE_VECTORS(name, type)                                                                                      \
    struct alignas(2 * sizeof(type)) name##2 { type x, y; };                                                            \
    struct alignas(4 * sizeof(type)) name##4 { type x, y, z, w; };
#define DEFINE_MAKE(name, type)                                                                                         \
    static inline name##2 make_##name##2(type x, type y) { return {x, y}; }                                             \
    static inline name##3 make_##name##3(type x, type y, type z) { return {x, y, z}; }                                  \
    static inline name##4 make_##name##4(type x, type y, type z, type w) { return {x, y, z, w}; }
struct float3 { float x, y, z; };
struct int3 { int x, y, z; };
struct uchar3 { unsigned char x, y, z; };
DEFINE_VECTORS(float, float)
DEFINE_VECTORS(int, int)
DEFINE_VECTORS(uint, unsigned int)
DEFINE_VECTORS(uchar, unsigned char)
struct alignas(16) double2 { double x, y; };
DEFINE_MAKE(float, float)
DEFINE_MAKE(int, int)
DEFINE_MAKE(uint, unsigned int)
DEFINE_MAKE(uchar, unsigned char)
static inline double2 make_double2(double x, double y) { return {x, y}; }

#define __inline__ inline
#define __syncthreads_count(holds) autotune::count_of_block(holds)
#define __syncthreads_or(holds) (autotune::count_of_block(holds) > 0)
#define __syncthreads_and(holds) (autotune::count_of_block(!(holds)) == 0)
#define __ballot_sync(mask, holds) autotune::ballot(mask, holds)
#define __any_sync(mask, holds) (autotune::ballot(mask, holds) != 0)
#define __all_sync(mask, holds) (autotune::ballot(mask, !(holds)) == 0)
static inline void __threadfence_block() { autotune::fence(); }
static inline void __threadfence_system() { autotune::fence(); }

static inline int __popc(unsigned int bits) { return __builtin_popcount(bits); }
static inline int __popcll(unsigned long long bits) { return __builtin_popcountll(bits); }
static inline int __clz(unsigned int bits) { return bits ? __builtin_clz(bits) : 32; }
static inline int __clzll(unsigned long long bits) { return bits ? __builtin_clzll(bits) : 64; }
static inline int __ffs(int bits) { return __builtin_ffs(bits); }
static inline int __ffsll(long long bits) { return __builtin_ffsll(bits); }
static inline unsigned long long __brevll(unsigned long long bits)
{
    unsigned long long reversed = 0;
    for (int i = 0; i < 64; i++)
        reversed |= (bits >> i & 1) << (63 - i);
    return reversed;
}
static inline unsigned int __brev(unsigned int bits) { return (unsigned int)(__brevll(bits) >> 32); }
static inline unsigned int __byte_perm(unsigned int low, unsigned int high, unsigned int selector)
{
    const unsigned long long bytes = (unsigned long long)high << 32 | low;
    unsigned int found = 0;
    for (int i = 0; i < 4; i++)
        found |= (unsigned int)(bytes >> 8 * (selector >> 4 * i & 7) & 0xff) << 8 * i;
    return found;
}
static inline unsigned int __funnelshift_l(unsigned int low, unsigned int high, unsigned int by)
{
    return (unsigned int)(((unsigned long long)high << 32 | low) << (by & 31) >> 32);
}
static inline unsigned int __funnelshift_r(unsigned int low, unsigned int high, unsigned int by)
{
    return (unsigned int)(((unsigned long long)high << 32 | low) >> (by & 31));
}
static inline int __mul24(int a, int b) { return a * b; }
static inline unsigned int __umul24(unsigned int a, unsigned int b) { return a * b; }
static inline int __mulhi(int a, int b) { return (int)((long long)a * b >> 32); }
static inline unsigned int __umulhi(unsigned int a, unsigned int b)
{
    return (unsigned int)((unsigned long long)a * b >> 32);
}
static inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b)
{
    return (unsigned long long)((unsigned __int128)a * b >> 64);
}
static inline unsigned int __sad(int a, int b, unsigned int sum) { return sum + (a < b ? b - a : a - b); }

static inline float rsqrtf(float x) { return 1 / sqrtf(x); }
static inline float exp10f(float x) { return powf(10, x); }
static inline float __expf(float x) { return expf(x); }
static inline float __exp10f(float x) { return exp10f(x); }
static inline float __logf(float x) { return logf(x); }
static inline float __log2f(float x) { return log2f(x); }
static inline float __log10f(float x) { return log10f(x); }
static inline float __powf(float x, float y) { return powf(x, y); }
static inline float __tanf(float x) { return tanf(x); }
static inline void __sincosf(float x, float *sine, float *cosine) { sincosf(x, sine, cosine); }
static inline float __saturatef(float x) { return x > 0 ? (x < 1 ? x : 1) : 0; }
static inline float __frsqrt_rn(float x) { return 1 / sqrtf(x); }
#define DEFINE_ROUNDED(type, f, name, suffix)                                                                           \
    static inline type __##f##add_rn(type a, type b) { return a + b; }                                                  \
    static inline type __##f##sub_rn(type a, type b) { return a - b; }                                                  \
    static inline type __##f##mul_rn(type a, type b) { return a * b; }                                                  \
    static inline type __##f##div_rn(type a, type b) { return a / b; }                                                  \
    static inline type __##f##rcp_rn(type x) { return 1 / x; }                                                          \
    static inline type __##f##sqrt_rn(type x) { return sqrt##suffix(x); }                                               \
    static inline type __##name##_rn(type a, type b, type c) { return fma##suffix(a, b, c); }                           \
    static inline int __##type##2int_rn(type x) { return (int)rint##suffix(x); }                                        \
    static inline int __##type##2int_rz(type x) { return (int)x; }                                                      \
    static inline int __##type##2int_rd(type x) { return (int)floor##suffix(x); }                                       \
    static inline int __##type##2int_ru(type x) { return (int)ceil##suffix(x); }                                        \
    static inline unsigned int __##type##2uint_rn(type x) { return (unsigned int)rint##suffix(x); }                     \
    static inline unsigned int __##type##2uint_rz(type x) { return (unsigned int)x; }
DEFINE_ROUNDED(float, f, fmaf, f)
DEFINE_ROUNDED(double, d, fma, )
static inline float __int2float_rn(int x) { return (float)x; }
static inline float __uint2float_rn(unsigned int x) { return (float)x; }
static inline float __double2float_rn(double x) { return (float)x; }

template <class T> static inline T __ldca(const T *from) { return *from; }
template <class T> static inline T __ldcg(const T *from) { return *from; }
template <class T> static inline T __ldcv(const T *from) { return *from; }
template <class T> static inline void __stcg(T *to, T value) { *to = value; }
template <class T> static inline void __stwb(T *to, T value) { *to = value; }
template <class T> static inline void __stwt(T *to, T value) { *to = value; }
static inline long long clock64() { return 0; }
static inline void __nanosleep(unsigned int) {}

#endif
