/* The calcium release built up term by term, as small kernels: STEP says how far. Every step stores the same n numbers,
 * because it scales its product by a number of its own for each unit; so a step is the one before it and one thing more.
 *
 *   memory       BOUNDS_CHECK; COEFFICIENTS, arguments or an array; STAGED, what goes through shared memory
 *   arithmetic   POWER, OPEN, MAX_REGISTERS
 */
#include "portable.h"

#define STATES 16

/* Where the threads of a block are declared, the compiler's register cap counts for nothing. */
#if MAX_REGISTERS > 0
#define STEP_KERNEL KERNEL
#else
#define STEP_KERNEL KERNEL KERNEL_BLOCK(BLOCK_SIZE, 1, 1)
#endif

/* The constants of the model; the last one is k. Arguments of a CUDA kernel are in constant memory. */
#if COEFFICIENTS == COEFFICIENTS_GLOBAL
#define P(number) coefficients[number - 1]
#else
#define P(number) p##number
#endif

/* x to a power that is a positive multiple of one half. */
DEVICE DTYPE raised(DTYPE x, DTYPE exponent)
{
#if POWER == POWER_POW
    return pow(x, exponent);
#elif POWER == POWER_EXP_LOG
    return exp(log(x) * exponent);
#else
    const int whole = (int)exponent;
    DTYPE result = whole < exponent ? sqrt(x) : 1;
#if POWER == POWER_MULTIPLICATION
    for (int k = 0; k < whole; k++)
        result *= x;
#else /* squaring */
    for (int k = whole; k > 0; k /= 2, x *= x)
        if (k % 2)
            result *= x;
#endif
    return result;
#endif
}

/* Of each unit: calcium, store and number of open channels are columns of `units`, its state is in `states`. */
STEP_KERNEL
leak_steps(GLOBAL const DTYPE *RESTRICT scales, GLOBAL const DTYPE *RESTRICT units, GLOBAL const int *RESTRICT states,
           GLOBAL const DTYPE *RESTRICT tables, GLOBAL const DTYPE *RESTRICT coefficients, GLOBAL DTYPE *RESTRICT result,
           const unsigned long n, const DTYPE p1, const DTYPE p2, const DTYPE p3, const DTYPE p4, const DTYPE p5,
           const DTYPE p6, const DTYPE p7, const DTYPE p8, const DTYPE open_times_closed)
{
    const size_t i = (size_t)BLOCK_INDEX(x) * BLOCK_SIZE + THREAD_INDEX(x);
#if STAGED == STAGED_CALCIUM /* the barrier is for all threads, so it is not within the check */
    SHARED DTYPE calcium[BLOCK_SIZE];
    if (BOUNDS_CHECK == BOUNDS_CHECK_NONE || i < n)
        calcium[THREAD_INDEX(x)] = units[i];
    BARRIER();
#define CALCIUM calcium[THREAD_INDEX(x)]
#else
#define CALCIUM units[i]
#endif
#if STAGED == STAGED_TABLES
    SHARED DTYPE rates[2 * STATES];
    for (int k = THREAD_INDEX(x); k < 2 * STATES; k += BLOCK_SIZE)
        rates[k] = tables[k];
    BARRIER();
#else
    GLOBAL const DTYPE *rates = tables;
#endif
#if BOUNDS_CHECK == BOUNDS_CHECK_BODY
    if (i >= n)
        return;
#endif
#if STEP == STEP_INDEX
    result[i] = i + 1;
#else
    DTYPE value = scales[i];
#if STEP >= STEP_PRODUCT
    value *= P(1);
#endif
#if STEP >= STEP_POWER
    value *= raised(CALCIUM, P(4));
#endif
#if STEP >= STEP_CLOSED_ARGUMENT
    const DTYPE g = units[2 * n + i];
    const DTYPE closed = P(1) * ((P(8) - g) * P(2) + (1 - g) * P(3));
#if STEP >= STEP_CLOSED
    value *= exp(closed);
#else
    value *= closed;
#endif
#endif
#if STEP >= STEP_OPEN
#if OPEN == OPEN_EXPONENTIAL
    value *= exp(P(1) * (g * P(3) - (P(8) - g - 1) * P(2))) * (P(5) * units[n + i] + P(6)) * P(7);
#elif OPEN == OPEN_DIVISION
    value *= (P(5) * units[n + i] + P(6)) * P(7) * open_times_closed / exp(closed);
#else
    value *= (P(5) * units[n + i] + P(6)) * P(7) * open_times_closed * (1 / exp(closed));
#endif
#endif
#if STEP >= STEP_TABLES
    value *= rates[states[i]] * rates[STATES + states[i]];
#endif
    result[i] = value;
#endif
}
