/* Other schedules, for verification only: autotune puts this in front of a source, so that threads and blocks run
 * in another order than usual. What a kernel computes must not change. AUTOTUNE_PERTURB is the seed, and
 * AUTOTUNE_PERTURB_ORDER is 0 for a source whose threads or blocks must keep their places.
 *
 *   OpenCL  threads of a block and blocks of a grid swap indices. A CPU runs the threads of a block one after the
 *           other between barriers, so another order shows what a missing barrier leaves to luck
 *   CUDA    blocks swap indices; warps wait at random before and after barriers and atomics, and where they
 *           begin, so that they are far apart wherever no barrier holds them together
 */
#ifndef AUTOTUNE_PERTURB_H
#define AUTOTUNE_PERTURB_H

#ifdef __OPENCL_VERSION__
#define AUTOTUNE_FUNCTION static inline __attribute__((always_inline))
#else
#define AUTOTUNE_FUNCTION static __device__ __forceinline__
#endif

/* The place of one of `count` in another order: from the end for odd seeds, else as if at random, or from both ends in
 * turn where the product would overflow. Without a remainder of 64 bits, with which PoCL 5.0 mixes up the blocks of some
 * kernels. */
AUTOTUNE_FUNCTION unsigned int autotune_place(unsigned int i, unsigned int count, unsigned int seed)
{
    if (seed % 2 == 1)
        return count - 1 - i;
    if (count < 1u << 19) {
        const unsigned int prime = count % 7919 ? 7919 : 7907;
        return (i * prime + count / 3) % count;
    }
    return i % 2 == 0 ? i / 2 : count - 1 - i / 2;
}

#ifdef __OPENCL_VERSION__ /* ------------------------------------------------------------ OpenCL C */
#if AUTOTUNE_PERTURB_ORDER

AUTOTUNE_FUNCTION unsigned int autotune_axis(unsigned int place, unsigned int axis, unsigned int x, unsigned int y)
{
    return axis == 0 ? place % x : axis == 1 ? place / x % y : place / x / y;
}

AUTOTUNE_FUNCTION unsigned int autotune_block(unsigned int axis)
{
    const unsigned int x = get_num_groups(0), y = get_num_groups(1), count = x * y * get_num_groups(2);
    const unsigned int own = (get_group_id(2) * y + get_group_id(1)) * x + get_group_id(0);
    return autotune_axis(autotune_place(own, count, AUTOTUNE_PERTURB), axis, x, y);
}

AUTOTUNE_FUNCTION unsigned int autotune_thread(unsigned int axis)
{
    const unsigned int x = get_local_size(0), y = get_local_size(1), count = x * y * get_local_size(2);
    const unsigned int own = (get_local_id(2) * y + get_local_id(1)) * x + get_local_id(0);
    return autotune_axis(autotune_place(own, count, AUTOTUNE_PERTURB), axis, x, y);
}

#define get_group_id(axis) ((size_t)autotune_block(axis))
#define get_local_id(axis) ((size_t)autotune_thread(axis))
#define get_global_id(axis) (get_group_id(axis) * get_local_size(axis) + get_local_id(axis))

#endif
#else /* ---------------------------------------------------------------------------------- CUDA C++ */

/* One warp in four waits, up to 16384 cycles. */
static __device__ __noinline__ void autotune_wait(void)
{
    const unsigned int thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    const unsigned int block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    const long long now = clock64();
    unsigned int random = AUTOTUNE_PERTURB * 0x9e3779b9u + block * 0x85ebca6bu + thread / 32 * 0xc2b2ae35u +
                          (unsigned int)(now >> 6);
    random = (random ^ random >> 16) * 0x7feb352du;
    random = (random ^ random >> 15) * 0x846ca68bu;
    if (random >> 30 == 0)
        while (clock64() - now < (random & 16383))
            ;
}

AUTOTUNE_FUNCTION uint3 autotune_block(void)
{
    autotune_wait();
    uint3 block = blockIdx;
#if AUTOTUNE_PERTURB_ORDER
    const unsigned int own = block.x + gridDim.x * (block.y + gridDim.y * block.z);
    const unsigned int place = autotune_place(own, gridDim.x * gridDim.y * gridDim.z, AUTOTUNE_PERTURB);
    block.x = place % gridDim.x;
    block.y = place / gridDim.x % gridDim.y;
    block.z = place / gridDim.x / gridDim.y;
#endif
    return block;
}

/* A macro is not replaced again in its own text, so each of these names means CUDA's own there. */
#define blockIdx autotune_block()
#define __syncthreads() (autotune_wait(), __syncthreads(), autotune_wait())
#define __syncwarp(...) (autotune_wait(), __syncwarp(__VA_ARGS__))
#define __threadfence() (autotune_wait(), __threadfence(), autotune_wait())
#define __threadfence_block() (autotune_wait(), __threadfence_block(), autotune_wait())
#define __threadfence_system() (autotune_wait(), __threadfence_system(), autotune_wait())
#define __syncthreads_or(...) (autotune_wait(), __syncthreads_or(__VA_ARGS__))
#define __syncthreads_and(...) (autotune_wait(), __syncthreads_and(__VA_ARGS__))
#define __syncthreads_count(...) (autotune_wait(), __syncthreads_count(__VA_ARGS__))
#define atomicAdd(...) (autotune_wait(), atomicAdd(__VA_ARGS__))
#define atomicSub(...) (autotune_wait(), atomicSub(__VA_ARGS__))
#define atomicExch(...) (autotune_wait(), atomicExch(__VA_ARGS__))
#define atomicMin(...) (autotune_wait(), atomicMin(__VA_ARGS__))
#define atomicMax(...) (autotune_wait(), atomicMax(__VA_ARGS__))
#define atomicInc(...) (autotune_wait(), atomicInc(__VA_ARGS__))
#define atomicDec(...) (autotune_wait(), atomicDec(__VA_ARGS__))
#define atomicCAS(...) (autotune_wait(), atomicCAS(__VA_ARGS__))
#define atomicAnd(...) (autotune_wait(), atomicAnd(__VA_ARGS__))
#define atomicOr(...) (autotune_wait(), atomicOr(__VA_ARGS__))
#define atomicXor(...) (autotune_wait(), atomicXor(__VA_ARGS__))

#endif
#endif
