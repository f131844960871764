/* The two variants of a kernel that `autotune diagnose` times to see what binds it. MEMORY_ONLY leaves out the
 * arithmetic, COMPUTE_ONLY the loads and stores of global memory. Neither is defined in a kernel that is tuned.
 *
 *   LOADED(instead, load)        the load; in COMPUTE_ONLY the value `instead`
 *   ANY_VECTOR(type, width, pointer)  such a value: a vector of numbers below 1024, which depend on the pointer
 *   IS_STORED(value, never)      true; in COMPUTE_ONLY only for one value, which no result has, and no compiler knows
 */
#ifndef VARIANTS_H
#define VARIANTS_H

#define ANY_VECTOR(type, width, pointer) VECTOR_FILL(type, width, (type)((size_t)(pointer) & 1023))
#ifdef COMPUTE_ONLY
#define LOADED(instead, load) (instead)
#define IS_STORED(value, never) ((value) == (never))
#else
#define LOADED(instead, load) (load)
#define IS_STORED(value, never) 1
#endif

#endif
