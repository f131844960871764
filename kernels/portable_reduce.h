/* What reductions need beyond portable.h: more atomics, on more types, and more ways through a warp.
 *
 *     #include "portable.h"
 *     #include "portable_reduce.h"
 *
 *   atomics     of memory that is global or shared; each gives the old value.
 *               ATOMIC_ADD, ATOMIC_MIN and ATOMIC_MAX (pointer, value) for int, unsigned int, long, unsigned long,
 *               float and double; ATOMIC_AND, ATOMIC_OR and ATOMIC_XOR for the four integer types.
 *               A minimum of floats is undefined where one of them is NaN.
 *               For unsigned int alone: ATOMIC_SUB(pointer, value), ATOMIC_INC(pointer) and ATOMIC_DEC(pointer) by
 *               one, all modulo 2^32, ATOMIC_EXCHANGE(pointer, value), ATOMIC_COMPARE_SWAP(pointer, expected, value)
 *   warps       SHUFFLE_UP(value, distance) and SHUFFLE_XOR(value, mask), for all threads of a warp. In OpenCL
 *               without warps (see portable.h) they give the thread's own value
 *
 * long has 64 bits. In OpenCL, 64-bit types need the extension cl_khr_int64_base_atomics, and double needs
 * cl_khr_fp64 as well; a device without them has no such overload.
 */
#ifndef PORTABLE_REDUCE_H
#define PORTABLE_REDUCE_H

#undef ATOMIC_ADD
#define ATOMIC_ADD(pointer, value) portable_add(pointer, value)
#define ATOMIC_MIN(pointer, value) portable_min(pointer, value)
#define ATOMIC_MAX(pointer, value) portable_max(pointer, value)
#define ATOMIC_AND(pointer, value) portable_and(pointer, value)
#define ATOMIC_OR(pointer, value) portable_or(pointer, value)
#define ATOMIC_XOR(pointer, value) portable_xor(pointer, value)

#define ADDED(a, b) ((a) + (b))
#define LESSER(a, b) ((b) < (a) ? (b) : (a))
#define GREATER(a, b) ((b) > (a) ? (b) : (a))
#define BOTH(a, b) ((a) & (b))
#define EITHER(a, b) ((a) | (b))
#define ONE_OF(a, b) ((a) ^ (b))

/* By comparing and swapping bits until nobody came between. */
#define DEFINE_BY_SWAP(name, space, type, bits_type, combined, to_bits, from_bits, swapped)               \
    DEVICE type OVERLOADED portable_##name(volatile space type *target, type value)                      \
    {                                                                                                    \
        volatile space bits_type *bits = (volatile space bits_type *)target;                             \
        bits_type found = *bits, expected;                                                               \
        do {                                                                                             \
            expected = found;                                                                            \
            found = swapped(bits, expected, to_bits((type)combined(from_bits(expected), value)));        \
        } while (found != expected);                                                                     \
        return from_bits(found);                                                                         \
    }

#define DEFINE_DIRECT(name, space, type, call_type, call)                                                \
    DEVICE type OVERLOADED portable_##name(volatile space type *target, type value)                      \
    {                                                                                                    \
        return (type)call((volatile space call_type *)target, (call_type)value);                         \
    }

#ifdef __OPENCL_VERSION__ /* ------------------------------------------------------------ OpenCL C */

#if HAS_WARPS
#define SHUFFLE_UP(value, distance) sub_group_shuffle_up(value, distance)
#define SHUFFLE_XOR(value, mask) sub_group_shuffle_xor(value, mask)
#else
#define SHUFFLE_UP(value, distance) (value)
#define SHUFFLE_XOR(value, mask) (value)
#endif

#define ATOMIC_SUB(pointer, value) atomic_sub(pointer, value)
#define ATOMIC_INC(pointer) atomic_inc(pointer)
#define ATOMIC_DEC(pointer) atomic_dec(pointer)
#define ATOMIC_EXCHANGE(pointer, value) atomic_xchg(pointer, value)
#define ATOMIC_COMPARE_SWAP(pointer, expected, value) atomic_cmpxchg(pointer, expected, value)

#define DEFINE_INTEGERS(space, type)                                                                     \
    DEFINE_DIRECT(add, space, type, type, atomic_add)                                                    \
    DEFINE_DIRECT(min, space, type, type, atomic_min)                                                    \
    DEFINE_DIRECT(max, space, type, type, atomic_max)                                                    \
    DEFINE_DIRECT(and, space, type, type, atomic_and)                                                    \
    DEFINE_DIRECT(or, space, type, type, atomic_or)                                                      \
    DEFINE_DIRECT(xor, space, type, type, atomic_xor)
#define DEFINE_FLOATS(space, type, bits_type, to_bits, from_bits, swapped)                               \
    DEFINE_BY_SWAP(add, space, type, bits_type, ADDED, to_bits, from_bits, swapped)                      \
    DEFINE_BY_SWAP(min, space, type, bits_type, LESSER, to_bits, from_bits, swapped)                     \
    DEFINE_BY_SWAP(max, space, type, bits_type, GREATER, to_bits, from_bits, swapped)
#define DEFINE_WIDE(space, type, convert)                                                                \
    DEFINE_BY_SWAP(add, space, type, type, ADDED, convert, convert, atom_cmpxchg)                        \
    DEFINE_BY_SWAP(min, space, type, type, LESSER, convert, convert, atom_cmpxchg)                       \
    DEFINE_BY_SWAP(max, space, type, type, GREATER, convert, convert, atom_cmpxchg)                      \
    DEFINE_BY_SWAP(and, space, type, type, BOTH, convert, convert, atom_cmpxchg)                         \
    DEFINE_BY_SWAP(or, space, type, type, EITHER, convert, convert, atom_cmpxchg)                        \
    DEFINE_BY_SWAP(xor, space, type, type, ONE_OF, convert, convert, atom_cmpxchg)
#define DEFINE_ALL(space)                                                                                \
    DEFINE_INTEGERS(space, int)                                                                          \
    DEFINE_INTEGERS(space, uint)                                                                         \
    DEFINE_FLOATS(space, float, uint, as_uint, as_float, atomic_cmpxchg)
DEFINE_ALL(__global)
DEFINE_ALL(__local)

#ifdef cl_khr_int64_base_atomics
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
DEFINE_WIDE(__global, long, as_long)
DEFINE_WIDE(__local, long, as_long)
DEFINE_WIDE(__global, ulong, as_ulong)
DEFINE_WIDE(__local, ulong, as_ulong)
#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
DEFINE_FLOATS(__global, double, ulong, as_ulong, as_double, atom_cmpxchg)
DEFINE_FLOATS(__local, double, ulong, as_ulong, as_double, atom_cmpxchg)
#endif
#endif

#else /* ---------------------------------------------------------------------------------- CUDA C++ */

#define OVERLOADED
#define SHUFFLE_UP(value, distance) __shfl_up_sync(0xffffffffu, value, distance)
#define SHUFFLE_XOR(value, mask) __shfl_xor_sync(0xffffffffu, value, mask)

#define ATOMIC_SUB(pointer, value) atomicSub(pointer, value)
#define ATOMIC_INC(pointer) atomicInc(pointer, 0xffffffffu)
#define ATOMIC_DEC(pointer) atomicDec(pointer, 0xffffffffu)
#define ATOMIC_EXCHANGE(pointer, value) atomicExch(pointer, value)
#define ATOMIC_COMPARE_SWAP(pointer, expected, value) atomicCAS(pointer, expected, value)

#define DEFINE_INTEGERS(type, call_type, sum_type)                                                       \
    DEFINE_DIRECT(add, , type, sum_type, portable_atomicAdd)                                             \
    DEFINE_DIRECT(min, , type, call_type, portable_atomicMin)                                            \
    DEFINE_DIRECT(max, , type, call_type, portable_atomicMax)                                            \
    DEFINE_DIRECT(and, , type, sum_type, portable_atomicAnd)                                             \
    DEFINE_DIRECT(or, , type, sum_type, portable_atomicOr)                                               \
    DEFINE_DIRECT(xor, , type, sum_type, portable_atomicXor)
/* CUDA's own take pointers that are not volatile. */
#define portable_atomicAdd(target, value) atomicAdd(PLAIN(target), value)
#define portable_atomicMin(target, value) atomicMin(PLAIN(target), value)
#define portable_atomicMax(target, value) atomicMax(PLAIN(target), value)
#define portable_atomicAnd(target, value) atomicAnd(PLAIN(target), value)
#define portable_atomicOr(target, value) atomicOr(PLAIN(target), value)
#define portable_atomicXor(target, value) atomicXor(PLAIN(target), value)
#define portable_atomicCAS(target, expected, value) atomicCAS(PLAIN(target), expected, value)
template <class T> DEVICE T *PLAIN(volatile T *pointer) { return const_cast<T *>(pointer); }

DEFINE_INTEGERS(int, int, int)
DEFINE_INTEGERS(unsigned int, unsigned int, unsigned int)
DEFINE_INTEGERS(long, long long, unsigned long long)
DEFINE_INTEGERS(unsigned long, unsigned long long, unsigned long long)
DEFINE_INTEGERS(long long, long long, unsigned long long)
DEFINE_INTEGERS(unsigned long long, unsigned long long, unsigned long long)
DEFINE_DIRECT(add, , float, float, portable_atomicAdd)
DEFINE_DIRECT(add, , double, double, portable_atomicAdd)
DEFINE_BY_SWAP(min, , float, unsigned int, LESSER, __float_as_uint, __uint_as_float, portable_atomicCAS)
DEFINE_BY_SWAP(max, , float, unsigned int, GREATER, __float_as_uint, __uint_as_float, portable_atomicCAS)
#define DOUBLE_BITS(value) ((unsigned long long)__double_as_longlong(value))
#define DOUBLE_OF(bits) __longlong_as_double((long long)(bits))
DEFINE_BY_SWAP(min, , double, unsigned long long, LESSER, DOUBLE_BITS, DOUBLE_OF, portable_atomicCAS)
DEFINE_BY_SWAP(max, , double, unsigned long long, GREATER, DOUBLE_BITS, DOUBLE_OF, portable_atomicCAS)

#endif
#endif
