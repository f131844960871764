/* Further words of CUDA for threads.h, which kernels in the portable dialect do not need. What is missing here, such as
 * textures, half precision and cooperative groups, g++ refuses.
 */
#ifndef AUTOTUNE_CUDA_WORDS_H
#define AUTOTUNE_CUDA_WORDS_H

struct dim3 {
    unsigned int x, y, z;
    dim3(unsigned int x = 1, unsigned int y = 1, unsigned int z = 1) : x(x), y(y), z(z) {}
    dim3(uint3 from) : x(from.x), y(from.y), z(from.z) {}
};

#define DEFINE_MORE_VECTORS(name, type)                                                                                 \
    struct alignas(2 * sizeof(type)) name##2 { type x, y; };                                                            \
    struct alignas(4 * sizeof(type)) name##4 { type x, y, z, w; };
#define DEFINE_MAKE(name, type)                                                                                         \
    static inline name##2 make_##name##2(type x, type y) { return {x, y}; }                                             \
    static inline name##3 make_##name##3(type x, type y, type z) { return {x, y, z}; }                                  \
    static inline name##4 make_##name##4(type x, type y, type z, type w) { return {x, y, z, w}; }
struct float3 { float x, y, z; };
struct int3 { int x, y, z; };
struct uchar3 { unsigned char x, y, z; };
DEFINE_MORE_VECTORS(uint, unsigned int)
DEFINE_MORE_VECTORS(uchar, unsigned char)
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
static inline int __clz(unsigned int bits) { return bits ? __builtin_clz(bits) : 32; }
static inline int __ffs(int bits) { return __builtin_ffs(bits); }
static inline int __mul24(int a, int b) { return a * b; }
static inline float rsqrtf(float x) { return 1 / sqrtf(x); }
static inline float __expf(float x) { return expf(x); }
static inline float __logf(float x) { return logf(x); }
static inline float __powf(float x, float y) { return powf(x, y); }
static inline float __tanf(float x) { return tanf(x); }
static inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
static inline float __fadd_rn(float a, float b) { return a + b; }
static inline float __fmul_rn(float a, float b) { return a * b; }
static inline float __frcp_rn(float x) { return 1 / x; }
static inline float __fsqrt_rn(float x) { return sqrtf(x); }
static inline float __saturatef(float x) { return x > 0 ? (x < 1 ? x : 1) : 0; }
static inline int __float2int_rn(float x) { return (int)rintf(x); }
static inline int __float2int_rz(float x) { return (int)x; }
static inline int __float2int_rd(float x) { return (int)floorf(x); }
static inline float __int2float_rn(int x) { return (float)x; }

#endif
