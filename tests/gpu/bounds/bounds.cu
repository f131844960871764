/* Twelve kernels, chosen by KIND, each bound by one thing. All of them leave 1 in every element of `result`: what
 * they compute with is 1 and 0, which no compiler can know. */
#include "portable.h"

#define ACCESSES 16 /* of a thread to shared memory in one round, each of another word */
#define WORDS 4096  /* a power of two */

typedef VECTOR(int, 4) vector_t;

DEVICE size_t thread_index(void)
{
    return (size_t)BLOCK_INDEX(x) * BLOCK_SIZE + THREAD_INDEX(x);
}

/* Reads `numbers` with loads of 16 bytes, `rounds` times over. */
KERNEL KERNEL_BLOCK(BLOCK_SIZE, 1, 1)
read_all(GLOBAL const int *RESTRICT numbers, GLOBAL int *RESTRICT result, const unsigned long n,
         const unsigned int rounds)
{
    GLOBAL const vector_t *vectors = (GLOBAL const vector_t *)numbers;
    const size_t step = (size_t)GRID_EXTENT(x) * BLOCK_SIZE;
    vector_t product = VECTOR_FILL(int, 4, 1);
    for (unsigned int round = 0; round < rounds; round++) {
        const size_t block = (BLOCK_INDEX(x) + round * 61) % GRID_EXTENT(x); /* not what its L1 cache holds */
        UNROLL_LOOP(4)
        for (size_t i = block * BLOCK_SIZE + THREAD_INDEX(x); i < n / 4; i += step)
            product = product * vectors[i];
    }
    result[thread_index()] = product.x * product.y * product.z * product.w;
}

/* Reads words of shared memory that lie in the same bank. */
KERNEL KERNEL_BLOCK(BLOCK_SIZE, 1, 1)
read_one_bank(GLOBAL const int *RESTRICT numbers, GLOBAL int *RESTRICT result, const unsigned int rounds)
{
    SHARED volatile int words[WORDS + ACCESSES];
    for (unsigned int i = THREAD_INDEX(x); i < WORDS + ACCESSES; i += BLOCK_SIZE)
        words[i] = numbers[i];
    BARRIER();
    const unsigned int first = THREAD_INDEX(x) * 32 % WORDS;
    int product = 1;
    for (unsigned int round = 0; round < rounds; round++) {
        UNROLL_LOOP(ACCESSES)
        for (int k = 0; k < ACCESSES; k++)
            product *= words[first + k];
    }
    result[thread_index()] = product;
}

/* Chains of operations that do not wait for each other. */
#define DEFINE_CHAINS(name, type, operation)                                                        \
    KERNEL KERNEL_BLOCK(BLOCK_SIZE, 1, 1)                                                           \
    name(GLOBAL const int *RESTRICT numbers, GLOBAL int *RESTRICT result, const unsigned int rounds) \
    {                                                                                               \
        const type factor = (type)numbers[0], term = factor - (type)numbers[1];                     \
        type chain[8];                                                                              \
        UNROLL_LOOP(8)                                                                              \
        for (int k = 0; k < 8; k++)                                                                 \
            chain[k] = (type)numbers[k];                                                            \
        UNROLL_LOOP(8)                                                                              \
        for (unsigned int round = 0; round < rounds; round++) {                                     \
            UNROLL_LOOP(8)                                                                          \
            for (int k = 0; k < 8; k++)                                                             \
                chain[k] = operation;                                                               \
        }                                                                                           \
        type product = 1;                                                                           \
        UNROLL_LOOP(8)                                                                              \
        for (int k = 0; k < 8; k++)                                                                 \
            product *= chain[k];                                                                    \
        result[thread_index()] = (int)(product + (type)0.5 + term);                                 \
    }

#if KIND == KIND_FLOAT32
DEFINE_CHAINS(compute, float, chain[k] * factor + term)
#elif KIND == KIND_FLOAT64
DEFINE_CHAINS(compute, double, chain[k] * factor + term)
#elif KIND == KIND_INTEGER
DEFINE_CHAINS(compute, int, chain[k] * factor + term)
#elif KIND == KIND_SPECIAL
DEFINE_CHAINS(compute, float, FAST_RECIPROCAL(chain[k]) + term)
#endif

/* A chain of loads, by one warp on a multiprocessor: each waits for the one before it. */
KERNEL KERNEL_BLOCK(32, 1, 1)
follow(GLOBAL const int *RESTRICT numbers, GLOBAL int *RESTRICT result, const unsigned long n,
       const unsigned int rounds, const unsigned int threads)
{
    const unsigned int thread = BLOCK_INDEX(x) * 32 + THREAD_INDEX(x);
    size_t at = thread;
    int number = 1;
    UNROLL_LOOP(1)
    for (unsigned int round = 0; round < rounds; round++) {
        number = numbers[at];
        at += (size_t)1048583 * number;
        at = at < n ? at : at - n;
    }
    for (unsigned int i = thread; i < threads; i += GRID_EXTENT(x) * 32)
        result[i] = number;
}

/* Adds to a few thousand counters. */
KERNEL KERNEL_BLOCK(BLOCK_SIZE, 1, 1)
count(GLOBAL int *counters, GLOBAL int *RESTRICT result, const unsigned int rounds)
{
    for (unsigned int round = 0; round < rounds; round++)
        ATOMIC_ADD(&counters[thread_index() % WORDS], 1);
    result[thread_index()] = 1;
}

/* Neighbouring threads take eight different branches, all with the same amount of work. */
#define BRANCH(number, operation)                                   \
    case number:                                                    \
        UNROLL_LOOP(4)                                              \
        for (unsigned int round = 0; round < rounds; round++) {     \
            a = operation(a);                                       \
            b = operation(b);                                       \
            c = operation(c);                                       \
            d = operation(d);                                       \
        }                                                           \
        break;
#define BRANCH_0(v) ((v) * factor + term)
#define BRANCH_1(v) ((v) * factor - term)
#define BRANCH_2(v) (term - (v) * -factor)
#define BRANCH_3(v) ((v) * factor + 2 * term)
#define BRANCH_4(v) ((v) * factor - 2 * term)
#define BRANCH_5(v) ((v) * factor + 3 * term)
#define BRANCH_6(v) ((v) * factor - 3 * term)
#define BRANCH_7(v) ((v) * factor + 4 * term)
KERNEL KERNEL_BLOCK(BLOCK_SIZE, 1, 1)
diverge(GLOBAL const int *RESTRICT numbers, GLOBAL int *RESTRICT result, const unsigned int rounds)
{
    const float factor = (float)numbers[0], term = factor - (float)numbers[1];
    float a = numbers[2], b = numbers[3], c = numbers[4], d = numbers[5];
    switch (THREAD_INDEX(x) % 8) {
        BRANCH(0, BRANCH_0)
        BRANCH(1, BRANCH_1)
        BRANCH(2, BRANCH_2)
        BRANCH(3, BRANCH_3)
        BRANCH(4, BRANCH_4)
        BRANCH(5, BRANCH_5)
        BRANCH(6, BRANCH_6)
        BRANCH(7, BRANCH_7)
    }
    result[thread_index()] = (int)(a * b * c * d + 0.5f);
}

KERNEL KERNEL_BLOCK(BLOCK_SIZE, 1, 1)
set_all(GLOBAL int *RESTRICT result)
{
    result[thread_index()] = 1;
}

/* Next to nothing. */
KERNEL KERNEL_BLOCK(32, 1, 1)
set_one(GLOBAL int *RESTRICT result)
{
    if (THREAD_INDEX(x) == 0)
        result[0] = 1;
}
