/* The portable dialect: one kernel source that compiles as CUDA C++ (NVRTC, no headers) and as OpenCL C 1.2.
 * A kernel includes this file, uses its words, and never asks which language it is in:
 *
 *     #include "portable.h"
 *     KERNEL KERNEL_BLOCK(BLOCK_SIZE, 1, 1)
 *     scale(GLOBAL float *RESTRICT y, const unsigned long n)
 *     {
 *         const size_t i = (size_t)BLOCK_INDEX(x) * BLOCK_SIZE + THREAD_INDEX(x);
 *         if (i < n)
 *             y[i] *= 2;
 *     }
 *
 *   functions   KERNEL; KERNEL_BLOCK(x, y, z), the threads of a block where they are known, and
 *               KERNEL_RESIDENT_BLOCK(x, y, z, blocks), registers kept so few that so many blocks of them
 *               share a multiprocessor; DEVICE
 *   memory      GLOBAL, RESTRICT; SHARED declares a variable at the outermost level of a kernel, and
 *               SHARED_POINTER(type) is how a DEVICE function takes its address; ALIGNED(bytes).
 *               SHARED_DYNAMIC(type, name, count), one per kernel, starts at a multiple of 16 bytes and in CUDA
 *               takes its size from the launch (shared_bytes), which is how it can exceed 48 KiB
 *   indices     of axis x, y or z, unsigned int: THREAD_INDEX(x), BLOCK_INDEX(x), BLOCK_EXTENT(x) in
 *               threads, GRID_EXTENT(x) in blocks
 *   order       BARRIER() for the threads of a block; MEMORY_FENCE(): other blocks see what was written
 *               before it no later than what is written after it, if they read it as volatile
 *   warps       WARP_SIZE, WARP_BARRIER(), SHUFFLE_DOWN(value, distance), for all threads of a warp. In OpenCL
 *               a source has warps if it defines WARPS as 1 before it includes this file, and the device has
 *               sub-groups of 32 with shuffles (device.has_shuffle). Else a warp is one thread, its barrier is
 *               nothing, and the space keeps out what needs more
 *   atomics     ATOMIC_ADD(pointer, value) for int, unsigned int and float; gives the old value
 *   loads       LOAD_READ_ONLY(pointer) by the read-only path, LOAD_STREAMING(pointer) for data that is
 *               used once; plain loads in OpenCL
 *   stores      STORE_STREAMING(pointer, value) for data that is not read again; a plain store in OpenCL
 *   copies      COPY_ASYNC(target, source), pointers to shared and global memory of one type of 4, 8 or 16
 *               bytes: goes on in the background where the hardware can (compute capability 8.0), else a
 *               plain copy; COPY_COMMIT() ends a group of copies, COPY_WAIT(groups) waits until no more than
 *               so many groups are under way
 *   arithmetic  FAST_RECIPROCAL(x), FAST_SINE(x), FAST_COSINE(x) of a float: the hardware's, a few bits less;
 *               SINE_COSINE(x, sine, cosine) sets two variables at once; SQRT(x), RSQRT(x) and the other functions
 *               that both languages have, of float and double, in capitals and in small letters
 *   vectors     VECTOR(type, width) of int or float, width 1, 2 or 4, with + - * by component;
 *               VECTOR_ZERO(type, width); VECTOR_FILL(type, width, value); VECTOR_SUM(vector, width), which
 *               evaluates the vector repeatedly; VECTOR_ELEMENT(type, vector, k) of a private variable
 *   loops       UNROLL_LOOP(count) before a loop; the count may be a macro or an expression, 1 leaves it rolled
 */
#ifndef PORTABLE_H
#define PORTABLE_H

#define PRAGMA(text) _Pragma(#text)
#define UNROLL_LOOP(count) PRAGMA(unroll count)

#define VECTOR(type, width) VECTOR_EXPANDED(type, width)
#define VECTOR_EXPANDED(type, width) VECTOR_##width(type)
#define VECTOR_1(type) type
#define VECTOR_2(type) type##2
#define VECTOR_4(type) type##4

/* In registers as long as k is a constant once loops are unrolled. */
#define VECTOR_ELEMENT(type, vector, k) (((type *)&(vector))[k])

#define VECTOR_SUM(vector, width) VECTOR_SUM_EXPANDED(vector, width)
#define VECTOR_SUM_EXPANDED(vector, width) VECTOR_SUM_##width(vector)
#define VECTOR_SUM_1(vector) (vector)
#define VECTOR_SUM_2(vector) ((vector).x + (vector).y)
#define VECTOR_SUM_4(vector) (((vector).x + (vector).y) + ((vector).z + (vector).w))

/* Functions that both languages have under one name. */
#define SQRT(x) sqrt(x)
#define RSQRT(x) rsqrt(x)
#define CBRT(x) cbrt(x)
#define EXP(x) exp(x)
#define EXP2(x) exp2(x)
#define LOG(x) log(x)
#define LOG2(x) log2(x)
#define LOG10(x) log10(x)
#define SIN(x) sin(x)
#define COS(x) cos(x)
#define TAN(x) tan(x)
#define ASIN(x) asin(x)
#define ACOS(x) acos(x)
#define ATAN(x) atan(x)
#define SINH(x) sinh(x)
#define COSH(x) cosh(x)
#define TANH(x) tanh(x)
#define ERF(x) erf(x)
#define FABS(x) fabs(x)
#define FLOOR(x) floor(x)
#define CEIL(x) ceil(x)
#define ROUND(x) round(x)
#define TRUNC(x) trunc(x)
#define POW(x, y) pow(x, y)
#define ATAN2(x, y) atan2(x, y)
#define HYPOT(x, y) hypot(x, y)
#define FMIN(x, y) fmin(x, y)
#define FMAX(x, y) fmax(x, y)
#define FMOD(x, y) fmod(x, y)
#define FMA(x, y, z) fma(x, y, z)

#ifdef __OPENCL_VERSION__ /* ------------------------------------------------------------ OpenCL C */

#ifndef WARPS
#define WARPS 0
#endif
#if WARPS && defined(cl_khr_subgroup_shuffle_relative) && defined(cl_intel_required_subgroup_size)
#define HAS_WARPS 1
#else
#define HAS_WARPS 0
#endif

#if HAS_WARPS
#define KERNEL __attribute__((intel_reqd_sub_group_size(WARP_SIZE))) __kernel void
#else
#define KERNEL __kernel void
#endif
#define KERNEL_BLOCK(x, y, z) __attribute__((reqd_work_group_size(x, y, z)))
#define KERNEL_RESIDENT_BLOCK(x, y, z, blocks) KERNEL_BLOCK(x, y, z)
/* PoCL 3 goes wrong where a function with barriers is called twice and stays a function. */
#define DEVICE static inline __attribute__((always_inline))

#define GLOBAL __global
#define SHARED __local
#define SHARED_POINTER(type) __local type *
#define SHARED_DYNAMIC(type, name, count) __local __attribute__((aligned(16))) type name[count]
#define RESTRICT restrict
#define ALIGNED(bytes) __attribute__((aligned(bytes)))

#define AXIS_x 0
#define AXIS_y 1
#define AXIS_z 2
#define THREAD_INDEX(axis) ((unsigned int)get_local_id(AXIS_##axis))
#define BLOCK_INDEX(axis) ((unsigned int)get_group_id(AXIS_##axis))
#define BLOCK_EXTENT(axis) ((unsigned int)get_local_size(AXIS_##axis))
#define GRID_EXTENT(axis) ((unsigned int)get_num_groups(AXIS_##axis))

#define BARRIER() barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)
#define MEMORY_FENCE() mem_fence(CLK_GLOBAL_MEM_FENCE)
#if HAS_WARPS
#undef get_local_id /* under another schedule threads keep their places, which decide who shuffles with whom */
#define WARP_SIZE 32
#define WARP_BARRIER() sub_group_barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)
#define SHUFFLE_DOWN(value, distance) sub_group_shuffle_down(value, distance)
#else
#define WARP_SIZE 1
#define WARP_BARRIER()
#define SHUFFLE_DOWN(value, distance) (value)
#endif

#define FAST_RECIPROCAL(x) native_recip((float)(x))
#define FAST_SINE(x) native_sin((float)(x))
#define FAST_COSINE(x) native_cos((float)(x))
#define SINE_COSINE(x, sine, cosine) ((sine) = sincos(x, &(cosine)))

#define LOAD_READ_ONLY(pointer) (*(pointer))
#define LOAD_STREAMING(pointer) (*(pointer))
#define STORE_STREAMING(pointer, value) (*(pointer) = (value))
#define VECTOR_ZERO(type, width) ((VECTOR(type, width))(0))
#define COPY_ASYNC(target, source) (*(target) = *(source))
#define COPY_COMMIT()
#define COPY_WAIT(groups)
#define VECTOR_FILL(type, width, value) ((VECTOR(type, width))(value))

/* One overload per address space and type. A float is added by comparing and swapping its bits. */
#define ATOMIC_ADD(pointer, value) portable_atomic_add(pointer, value)
#define OVERLOADED __attribute__((overloadable))
#define DEFINE_ATOMIC_ADD(space, type)                                                                   \
    DEVICE type OVERLOADED portable_atomic_add(volatile space type *target, type value)                  \
    {                                                                                                    \
        return atomic_add(target, value);                                                                \
    }
#define DEFINE_FLOAT_ATOMIC_ADD(space)                                                                   \
    DEVICE float OVERLOADED portable_atomic_add(volatile space float *target, float value)               \
    {                                                                                                    \
        volatile space unsigned int *bits = (volatile space unsigned int *)target;                       \
        unsigned int found = *bits, expected;                                                            \
        do {                                                                                             \
            expected = found;                                                                            \
            found = atomic_cmpxchg(bits, expected, as_uint(as_float(expected) + value));                 \
        } while (found != expected);                                                                     \
        return as_float(found);                                                                          \
    }
DEFINE_ATOMIC_ADD(__global, int)
DEFINE_ATOMIC_ADD(__local, int)
DEFINE_ATOMIC_ADD(__global, unsigned int)
DEFINE_ATOMIC_ADD(__local, unsigned int)
DEFINE_FLOAT_ATOMIC_ADD(__global)
DEFINE_FLOAT_ATOMIC_ADD(__local)

#else /* ---------------------------------------------------------------------------------- CUDA C++ */

#define KERNEL extern "C" __global__ void
#define KERNEL_BLOCK(x, y, z) __launch_bounds__((x) * (y) * (z))
#define KERNEL_RESIDENT_BLOCK(x, y, z, blocks) __launch_bounds__((x) * (y) * (z), blocks)
#define DEVICE static __device__ __forceinline__

#define GLOBAL
#define SHARED __shared__
#define SHARED_POINTER(type) type *
#define SHARED_DYNAMIC(type, name, count) extern __shared__ __align__(16) type name[]
#define RESTRICT __restrict__
#define ALIGNED(bytes) __align__(bytes)

#define THREAD_INDEX(axis) threadIdx.axis
#define BLOCK_INDEX(axis) blockIdx.axis
#define BLOCK_EXTENT(axis) blockDim.axis
#define GRID_EXTENT(axis) gridDim.axis

#define BARRIER() __syncthreads()
#define MEMORY_FENCE() __threadfence()
#define WARP_SIZE 32
#define WARP_BARRIER() __syncwarp()
#define SHUFFLE_DOWN(value, distance) __shfl_down_sync(0xffffffffu, value, distance)

#define ATOMIC_ADD(pointer, value) atomicAdd(pointer, value)
#define FAST_RECIPROCAL(x) __fdividef(1.0f, x)
#define FAST_SINE(x) __sinf(x)
#define FAST_COSINE(x) __cosf(x)
#define SINE_COSINE(x, sine, cosine) sincos(x, &(sine), &(cosine))
#define LOAD_READ_ONLY(pointer) __ldg(pointer)
#define LOAD_STREAMING(pointer) __ldcs(pointer)
#define STORE_STREAMING(pointer, value) __stcs(pointer, value)
#define VECTOR_ZERO(type, width) (VECTOR(type, width){})

/* Only copies of 16 bytes can leave out the L1 cache. */
#if __CUDA_ARCH__ >= 800
#define COPY_ASYNC(target, source)                                                                       \
    do {                                                                                                 \
        const unsigned int to = (unsigned int)__cvta_generic_to_shared(target);                          \
        if (sizeof(*(source)) == 16)                                                                     \
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(source) : "memory"); \
        else                                                                                             \
            asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(to), "l"(source),             \
                         "n"(sizeof(*(source)))                                                          \
                         : "memory");                                                                    \
    } while (0)
#define COPY_COMMIT() asm volatile("cp.async.commit_group;" ::: "memory")
#define COPY_WAIT(groups) asm volatile("cp.async.wait_group %0;" ::"n"(groups) : "memory")
#else
#define COPY_ASYNC(target, source) (*(target) = *(source))
#define COPY_COMMIT()
#define COPY_WAIT(groups)
#endif

#define VECTOR_FILL(type, width, value) VECTOR_FILL_EXPANDED(type, width, value)
#define VECTOR_FILL_EXPANDED(type, width, value) vector_fill_##width((type)(value))

/* The arithmetic that OpenCL's vectors have of their own. */
#define DEFINE_VECTOR_OPERATOR(type, symbol)                                                             \
    DEVICE type##2 operator symbol(type##2 a, type##2 b) { return {a.x symbol b.x, a.y symbol b.y}; }    \
    DEVICE type##4 operator symbol(type##4 a, type##4 b)                                                 \
    {                                                                                                    \
        return {a.x symbol b.x, a.y symbol b.y, a.z symbol b.z, a.w symbol b.w};                         \
    }
#define DEFINE_VECTOR_OPERATORS(type) \
    DEFINE_VECTOR_OPERATOR(type, +) DEFINE_VECTOR_OPERATOR(type, -) DEFINE_VECTOR_OPERATOR(type, *)      \
    DEVICE type vector_fill_1(type value) { return value; }                                                \
    DEVICE type##2 vector_fill_2(type value) { return {value, value}; }                                    \
    DEVICE type##4 vector_fill_4(type value) { return {value, value, value, value}; }
DEFINE_VECTOR_OPERATORS(int)
DEFINE_VECTOR_OPERATORS(float)

#endif
#endif
