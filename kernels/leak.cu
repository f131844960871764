/* Calcium released by n units, each a cluster of channels in one of STATES states: from a unit's calcium and
 * its mean number of open channels g follow the rates at which it leaves its state, and the states that it
 * goes to. One thread computes UNITS_PER_THREAD units. With the constants p1 to p7 and k of the model:
 *
 *   closed  = exp(p1 ((k - g) p2 + (1 - g) p3))        opening = calcium^p4 (p5 store + p6) p7 open
 *   open    = exp(p1 (g p3 - (k - g - 1) p2))
 *
 *   rates   opening up[0] + closed down[0],  opening up[1],  closed down[1],  for the unit's state
 *   states  its own, the next and the previous one
 *
 *   arithmetic   POWER, OPEN, EXPRESSIONS
 *   threads      BLOCK_SIZE, UNITS_PER_THREAD, UNROLLING, BOUNDS_CHECK, MAX_REGISTERS
 *   memory       LAYOUT
 */
#include "portable.h"

#define STATES 16

/* Where the threads of a block are declared, the compiler's register cap counts for nothing. */
#if MAX_REGISTERS > 0
#define LEAK_KERNEL KERNEL
#else
#define LEAK_KERNEL KERNEL KERNEL_BLOCK(BLOCK_SIZE, 1, 1)
#endif

#if UNROLLING == UNROLLING_ROLLED
#define UNITS_UNROLLED 1
#else
#define UNITS_UNROLLED UNITS_PER_THREAD
#endif

/* `product` is open * closed, the same for all units: exp(p1 (p2 + p3)). */
typedef struct {
    DTYPE p1, p2, p3, p4, p5, p6, p7, k, product;
} model_t;

typedef struct {
    DTYPE calcium, store, g;
    int state;
} unit_t;

typedef struct {
    DTYPE leave, open, close;
} rates_t;

/* ------------------------------------------------------------------------------------- arithmetic */

/* x to a power that is a positive multiple of one half. */
DEVICE DTYPE power(DTYPE x, DTYPE exponent)
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

/* 1 / x to the last bit or two: the hardware's estimate, for double precision improved twice. */
DEVICE DTYPE fast_reciprocal(DTYPE x)
{
    DTYPE estimate = FAST_RECIPROCAL((float)x);
#if DTYPE_FLOAT64
    estimate *= 2 - x * estimate;
    estimate *= 2 - x * estimate;
#endif
    return estimate;
}

DEVICE DTYPE closed_factor(model_t m, DTYPE g)
{
    return exp(m.p1 * ((m.k - g) * m.p2 + (1 - g) * m.p3));
}

DEVICE DTYPE open_factor(model_t m, DTYPE g)
{
#if OPEN == OPEN_EXPONENTIAL
    return exp(m.p1 * (g * m.p3 - (m.k - g - 1) * m.p2));
#elif OPEN == OPEN_DIVISION
    return m.product / closed_factor(m, g);
#elif OPEN == OPEN_RECIPROCAL
    return m.product * (1 / closed_factor(m, g));
#else
    return m.product * fast_reciprocal(closed_factor(m, g));
#endif
}

DEVICE rates_t rates_of(unit_t unit, model_t m, GLOBAL const DTYPE *RESTRICT up, GLOBAL const DTYPE *RESTRICT down)
{
    rates_t rates;
#if EXPRESSIONS == EXPRESSIONS_LONG
    rates.leave = power(unit.calcium, m.p4) * ((m.p5 * unit.store + m.p6) * m.p7) * open_factor(m, unit.g) *
                      up[unit.state] +
                  closed_factor(m, unit.g) * down[unit.state];
    rates.open = power(unit.calcium, m.p4) * ((m.p5 * unit.store + m.p6) * m.p7) * open_factor(m, unit.g) *
                 up[STATES + unit.state];
    rates.close = closed_factor(m, unit.g) * down[STATES + unit.state];
#elif EXPRESSIONS == EXPRESSIONS_VECTOR /* one operation on arrays of three, in which rates without a term have 0 */
    const DTYPE closed = closed_factor(m, unit.g);
    const DTYPE opening = power(unit.calcium, m.p4) * ((m.p5 * unit.store + m.p6) * m.p7) * open_factor(m, unit.g);
    const DTYPE opens[3] = {up[unit.state], up[STATES + unit.state], 0};
    const DTYPE closes[3] = {down[unit.state], 0, down[STATES + unit.state]};
    DTYPE all[3];
    for (int k = 0; k < 3; k++)
        all[k] = opening * opens[k] + closed * closes[k];
    rates.leave = all[0];
    rates.open = all[1];
    rates.close = all[2];
#else
    const DTYPE closed = closed_factor(m, unit.g);
    const DTYPE phi = (m.p5 * unit.store + m.p6) * m.p7;
    const DTYPE opening = power(unit.calcium, m.p4) * phi * open_factor(m, unit.g);
    rates.open = opening * up[STATES + unit.state];
    rates.close = closed * down[STATES + unit.state];
    rates.leave = opening * up[unit.state] + closed * down[unit.state];
#endif
    return rates;
}

/* ----------------------------------------------------------------------------------------- memory */

/* Three numbers of a unit lie side by side, or each in a column of n. */
DEVICE unit_t load_unit(GLOBAL const DTYPE *RESTRICT units, GLOBAL const int *RESTRICT states, size_t i, size_t n)
{
#if LAYOUT == LAYOUT_STRUCTURES
    const size_t first = 3 * i, step = 1;
#else
    const size_t first = i, step = n;
#endif
    const unit_t unit = {units[first], units[first + step], units[first + 2 * step], states[i]};
    return unit;
}

DEVICE void store_unit(GLOBAL DTYPE *RESTRICT rates, GLOBAL int *RESTRICT targets, size_t i, size_t n, int state,
                       rates_t found)
{
    rates[i] = found.leave;
    rates[n + i] = found.open;
    rates[2 * n + i] = found.close;
    targets[i] = state;
    targets[n + i] = min(state + 1, STATES - 1);
    targets[2 * n + i] = max(state - 1, 0);
}

/* ----------------------------------------------------------------------------------------- kernel */

/* The units from `first` on and before `end`, of n. `is_checked` is a constant at every call. */
DEVICE void release(GLOBAL const DTYPE *RESTRICT units, GLOBAL const int *RESTRICT states,
                    GLOBAL const DTYPE *RESTRICT up, GLOBAL const DTYPE *RESTRICT down, GLOBAL DTYPE *RESTRICT rates,
                    GLOBAL int *RESTRICT targets, size_t first, size_t end, size_t n, model_t model, int is_checked)
{
    const size_t start = first + (size_t)BLOCK_INDEX(x) * BLOCK_SIZE * UNITS_PER_THREAD + THREAD_INDEX(x);

#if UNROLLING == UNROLLING_HAND /* all loads first, so that they are in flight together */
    if (start + (UNITS_PER_THREAD - 1) * BLOCK_SIZE < end) {
        unit_t unit[UNITS_PER_THREAD];
        rates_t found[UNITS_PER_THREAD];
        UNROLL_LOOP(UNITS_PER_THREAD)
        for (int u = 0; u < UNITS_PER_THREAD; u++)
            unit[u] = load_unit(units, states, start + u * BLOCK_SIZE, n);
        UNROLL_LOOP(UNITS_PER_THREAD)
        for (int u = 0; u < UNITS_PER_THREAD; u++)
            found[u] = rates_of(unit[u], model, up, down);
        UNROLL_LOOP(UNITS_PER_THREAD)
        for (int u = 0; u < UNITS_PER_THREAD; u++)
            store_unit(rates, targets, start + u * BLOCK_SIZE, n, unit[u].state, found[u]);
        return;
    }
#endif
    UNROLL_LOOP(UNITS_UNROLLED)
    for (int u = 0; u < UNITS_PER_THREAD; u++) {
        const size_t i = start + u * BLOCK_SIZE;
#if BOUNDS_CHECK == BOUNDS_CHECK_STORE /* threads past the end compute the last unit once more */
        const unit_t unit = load_unit(units, states, i < end ? i : end - 1, n);
        const rates_t found = rates_of(unit, model, up, down);
        if (i < end)
            store_unit(rates, targets, i, n, unit.state, found);
#else
        if (!is_checked || i < end) {
            const unit_t unit = load_unit(units, states, i, n);
            store_unit(rates, targets, i, n, unit.state, rates_of(unit, model, up, down));
        }
#endif
    }
}

LEAK_KERNEL
leak(GLOBAL const DTYPE *RESTRICT units, GLOBAL const int *RESTRICT states, GLOBAL const DTYPE *RESTRICT up,
     GLOBAL const DTYPE *RESTRICT down, GLOBAL DTYPE *RESTRICT rates, GLOBAL int *RESTRICT targets,
     const unsigned long first, const unsigned long end, const unsigned long n, const DTYPE p1, const DTYPE p2,
     const DTYPE p3, const DTYPE p4, const DTYPE p5, const DTYPE p6, const DTYPE p7, const DTYPE k,
     const DTYPE product)
{
    const model_t model = {p1, p2, p3, p4, p5, p6, p7, k, product};
    release(units, states, up, down, rates, targets, first, end, n, model, BOUNDS_CHECK == BOUNDS_CHECK_BODY);
}

#if BOUNDS_CHECK == BOUNDS_CHECK_KERNEL
/* The units after the last whole block, where `leak` itself checks nothing. */
LEAK_KERNEL
leak_boundary(GLOBAL const DTYPE *RESTRICT units, GLOBAL const int *RESTRICT states, GLOBAL const DTYPE *RESTRICT up,
              GLOBAL const DTYPE *RESTRICT down, GLOBAL DTYPE *RESTRICT rates, GLOBAL int *RESTRICT targets,
              const unsigned long first, const unsigned long end, const unsigned long n, const DTYPE p1,
              const DTYPE p2, const DTYPE p3, const DTYPE p4, const DTYPE p5, const DTYPE p6, const DTYPE p7,
              const DTYPE k, const DTYPE product)
{
    const model_t model = {p1, p2, p3, p4, p5, p6, p7, k, product};
    release(units, states, up, down, rates, targets, first, end, n, model, 1);
}
#endif
