/* The type `half` of float16, which CUDA C++ has in a header of its toolkit only and OpenCL C by an extension.
 * autotune puts this in front of every source that uses it; other builds include it, or in CUDA cuda_fp16.h.
 * In CUDA it is computed in float and rounded when it is stored.
 */
#ifndef PORTABLE_HALF_H
#define PORTABLE_HALF_H
#include "narrow.h"
#ifdef __OPENCL_VERSION__
#ifdef cl_khr_fp16
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#elif defined(DTYPE_FLOAT16)
#error float16: this OpenCL device does not compute in half precision (it has no cl_khr_fp16)
#endif
#elif !defined(__CUDA_FP16_H__)

struct __align__(2) half
{
    unsigned short bits;
    half() = default;
    __device__ __forceinline__ half(float value) { asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value)); }
    __device__ __forceinline__ operator float() const
    {
        float value;
        asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
        return value;
    }
};

DEFINE_NARROW(half)

#endif
#endif
