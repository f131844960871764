/* The type `__nv_bfloat16` of bfloat16, which CUDA C++ has in a header of its toolkit only.
 * autotune puts this in front of every source that uses it; other builds include it, or cuda_bf16.h.
 * It is computed in float and rounded to the nearest when it is stored. OpenCL C has no such type.
 */
#ifndef PORTABLE_BFLOAT16_H
#define PORTABLE_BFLOAT16_H
#include "narrow.h"
#ifdef __OPENCL_VERSION__
#ifdef DTYPE_BFLOAT16
#error bfloat16: OpenCL C has no such type; tune for a CUDA device, or choose another --dtype
#endif
#elif !defined(__CUDA_BF16_H__)

struct __align__(2) __nv_bfloat16
{
    unsigned short bits;
    __nv_bfloat16() = default;
    __device__ __forceinline__ __nv_bfloat16(float value)
    {
#if __CUDA_ARCH__ >= 800
        asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
#else
        const unsigned int wide = __float_as_uint(value), odd = wide >> 16 & 1;
        bits = value != value ? 0x7fff : (unsigned short)((wide + 0x7fff + odd) >> 16);
#endif
    }
    __device__ __forceinline__ operator float() const { return __uint_as_float((unsigned int)bits << 16); }
};

DEFINE_NARROW(__nv_bfloat16)

#endif
#endif
