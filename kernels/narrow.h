/* What half.h and bfloat16.h have in common in CUDA: assignments, loads and stores of a type of 16 `bits`. */
#ifndef PORTABLE_NARROW_H
#define PORTABLE_NARROW_H

#define DEFINE_NARROW_ASSIGNMENT(type, symbol)                                                                \
    static __device__ __forceinline__ type &operator symbol##=(type &to, float by)                            \
    {                                                                                                         \
        return to = (float)to symbol by;                                                                      \
    }
#define DEFINE_NARROW_LOAD(type, name)                                                                        \
    static __device__ __forceinline__ type name(const type *from)                                             \
    {                                                                                                         \
        type value;                                                                                           \
        value.bits = name((const unsigned short *)from);                                                      \
        return value;                                                                                         \
    }
#define DEFINE_NARROW(type)                                                                                   \
    DEFINE_NARROW_ASSIGNMENT(type, +)                                                                         \
    DEFINE_NARROW_ASSIGNMENT(type, -)                                                                         \
    DEFINE_NARROW_ASSIGNMENT(type, *)                                                                         \
    DEFINE_NARROW_ASSIGNMENT(type, /)                                                                         \
    DEFINE_NARROW_LOAD(type, __ldg)                                                                           \
    DEFINE_NARROW_LOAD(type, __ldcs)                                                                          \
    static __device__ __forceinline__ void __stcs(type *to, type value) { __stcs((unsigned short *)to, value.bits); }

#endif
