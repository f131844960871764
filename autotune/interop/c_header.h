/* Tuned configurations of the kernel $kernel, written by autotune $version. Do not edit.
   In C, link with the mathematics library: -lm. */
#ifndef ${guard}_H
#define ${guard}_H
#ifndef AUTOTUNE_TUNED_H
#define AUTOTUNE_TUNED_H
#if defined(__cplusplus) && __cplusplus >= 201402L && defined(__GNUC__) && !defined(__clang__)
#define AUTOTUNE_FUNCTION constexpr
#define AUTOTUNE_LOG2 __builtin_log2
#else
#include <math.h>
#define AUTOTUNE_FUNCTION static inline
#define AUTOTUNE_LOG2 log2
#endif
#if defined(__cplusplus)
#define AUTOTUNE_TABLE static constexpr
#else
#define AUTOTUNE_TABLE static const
#endif
typedef const char *autotune_text;
enum {
    AUTOTUNE_EXACT,
    AUTOTUNE_INTERPOLATED,
    AUTOTUNE_NEAREST_SIZE,
    AUTOTUNE_SAME_ARCHITECTURE,
    AUTOTUNE_SAME_VENDOR,
    AUTOTUNE_PORTABLE,
    AUTOTUNE_DEFAULT,
    AUTOTUNE_NONE
};
AUTOTUNE_FUNCTION int autotune_fail(int *ok) { *ok = 0; return 0; }
AUTOTUNE_FUNCTION long long autotune_floor_div(long long a, long long b, int *ok) {
    return b == 0 ? autotune_fail(ok) : a / b - (a % b != 0 && (a < 0) != (b < 0));
}
AUTOTUNE_FUNCTION long long autotune_modulo(long long a, long long b, int *ok) {
    return b == 0 ? autotune_fail(ok) : a - b * autotune_floor_div(a, b, ok);
}
AUTOTUNE_FUNCTION long long autotune_floor_log2(long long a, int *ok) {
    return a <= 0 ? autotune_fail(ok) : (long long)AUTOTUNE_LOG2((double)a);
}
AUTOTUNE_FUNCTION long long autotune_ceil_log2(long long a, int *ok) {
    long long below = autotune_floor_log2(a, ok);
    return a <= 0 ? 0 : below + ((double)below < AUTOTUNE_LOG2((double)a));
}
AUTOTUNE_FUNCTION long long autotune_min(long long a, long long b) { return b < a ? b : a; }
AUTOTUNE_FUNCTION int autotune_same(const char *a, const char *b) {
    while (*a && *a == *b) { ++a; ++b; }
    return *a == *b;
}
#endif
$declarations
/* source -1: none; cost: log of the slowdown, which counts for sizes for which the condition `alike` holds */
typedef struct { int config, source, condition; double cost; int alike; } ${name}_row;
typedef struct { double log2_sizes[$count]; long long sizes[$count]; int first, count; } ${name}_point; /* rows */
typedef struct { int device, dtype, tier, first, count; } ${name}_run; /* points, of a device or of a tier */
typedef struct { ${name}_config config; int tier; autotune_text source; } ${name}_best_t;
$tables
/* Whether a configuration may run. */
AUTOTUNE_FUNCTION int ${name}_holds(int condition, $parameters) {
    int flag = 1;
    int *ok = &flag;
    (void)ok;
    $unused
    switch (condition) {
$conditions
    default: return 1;
    }
}
/* Squared distance in log2 space of a point from the sizes that are asked for. */
AUTOTUNE_FUNCTION double ${name}_distance(const ${name}_point *point, const double *log2_sizes) {
    double sum = 0;
    for (int i = 0; i < $count; ++i) {
        double away = point->log2_sizes[i] - log2_sizes[i];
        sum += away * away;
    }
    return sum;
}
/* The nearest point of a run, the first of equals, that is farther than `after`, or as far and later. */
AUTOTUNE_FUNCTION int ${name}_nearest(const ${name}_run *run, const double *log2_sizes, double after, int last) {
    int found = -1;
    double least = 0;
    for (int i = run->first; i < run->first + run->count; ++i) {
        double away = ${name}_distance(&${name}_points[i], log2_sizes);
        if (away < after || (away == after && i <= last)) continue;
        if (found < 0 || away < least) { found = i; least = away; }
    }
    return found;
}
/* Whether a run has a point for exactly these sizes. */
AUTOTUNE_FUNCTION int ${name}_has(const ${name}_run *run, const long long *sizes) {
    for (int i = run->first; i < run->first + run->count; ++i) {
        int same = 1;
        for (int d = 0; d < $count; ++d) same = same && ${name}_points[i].sizes[d] == sizes[d];
        if (same) return 1;
    }
    return 0;
}
/* The weight of a point in an interpolation at these sizes; 0 for all points outside the range of a run. */
AUTOTUNE_FUNCTION double ${name}_weight(
    const ${name}_run *run, const ${name}_point *point, const long long *sizes, const double *log2_sizes) {
    double weight = 1;
    for (int d = 0; d < $count; ++d) {
        int low = -1, high = -1;
        for (int i = run->first; i < run->first + run->count; ++i) {
            long long size = ${name}_points[i].sizes[d];
            if (size <= sizes[d] && (low < 0 || size > ${name}_points[low].sizes[d])) low = i;
            if (size >= sizes[d] && (high < 0 || size < ${name}_points[high].sizes[d])) high = i;
        }
        if (low < 0 || high < 0) return 0;
        double from = ${name}_points[low].log2_sizes[d], to = ${name}_points[high].log2_sizes[d];
        double share = from == to ? 1 : (log2_sizes[d] - from) / (to - from);
        if (point->sizes[d] == ${name}_points[high].sizes[d]) weight *= share;
        else if (point->sizes[d] == ${name}_points[low].sizes[d]) weight *= 1 - share;
        else return 0;
    }
    return weight;
}
/* The row of the variant with the lowest interpolated cost that may run; -1 outside the range of a run. */
AUTOTUNE_FUNCTION int ${name}_variant(
    const ${name}_run *run, const long long *sizes, const double *log2_sizes, $parameters) {
    int found = -1;
    double least = 0;
    for (int k = 0; k < ${name}_points[run->first].count; ++k) {
        double cost = 0, total = 0, alike_cost = 0, alike_total = 0;
        int row = ${name}_points[run->first].first + k;
        for (int i = run->first; i < run->first + run->count; ++i) {
            const ${name}_row *at = &${name}_rows[${name}_points[i].first + k];
            double weight = ${name}_weight(run, &${name}_points[i], sizes, log2_sizes);
            cost += weight * at->cost;
            total += weight;
            if (weight == 0 || !${name}_holds(at->alike, $sizes)) continue;
            alike_cost += weight * at->cost;
            alike_total += weight;
        }
        if (total == 0) continue;
        cost = alike_total > 0 ? alike_cost / alike_total : cost / total;
        if (found >= 0 && cost >= least) continue;
        if (${name}_holds(${name}_rows[row].condition, $sizes)) { found = row; least = cost; }
    }
    return found;
}
/* The best known configuration for a device of this header; tier AUTOTUNE_NONE: nothing may be served. */
AUTOTUNE_FUNCTION ${name}_best_t ${name}_best(int device, int dtype, $parameters) {
    const double log2_sizes[$count] = {$logs};
    const long long sizes[$count] = {$sizes};
    ${name}_best_t best = {${name}_configs[0], AUTOTUNE_NONE, ""};
    if (!($positive)) return best;
    for (const ${name}_run *run = ${name}_runs; run < ${name}_runs + ${name}_RUNS; ++run) {
        if (run->device != device || run->dtype != dtype) continue;
        if (run->tier == AUTOTUNE_INTERPOLATED) { /* before the results that it was made from */
            const ${name}_run *own = run;
            while (own->tier == AUTOTUNE_INTERPOLATED) ++own;
            int row = ${name}_has(own, sizes) ? -1 : ${name}_variant(run, sizes, log2_sizes, $sizes);
            if (row < 0) continue;
            best.config = ${name}_configs[${name}_rows[row].config];
            best.tier = run->tier;
            best.source = ${name}_devices[${name}_rows[row].source];
            return best;
        }
        double away = -1;
        int last = -1; /* all of the device's own points are tried, of others the nearest one */
        for (int tries = run->tier == AUTOTUNE_EXACT ? run->count : 1; tries > 0; --tries) {
            last = ${name}_nearest(run, log2_sizes, away, last);
            const ${name}_point *point = &${name}_points[last];
            away = ${name}_distance(point, log2_sizes);
            for (int i = point->first; i < point->first + point->count; ++i) {
                const ${name}_row *row = &${name}_rows[i];
                if (!${name}_holds(row->condition, $sizes)) continue;
                best.config = ${name}_configs[row->config];
                best.tier = run->tier == AUTOTUNE_EXACT && !($equal) ? AUTOTUNE_NEAREST_SIZE : run->tier;
                best.source = row->source < 0 ? "" : ${name}_devices[row->source];
                return best;
            }
        }
    }
    return best;
}
/* The number of a device by its slug, ${name}_OTHER for one without results. */
AUTOTUNE_FUNCTION int ${name}_device_of(autotune_text slug) {
    for (int i = 0; i < ${name}_DEVICES; ++i)
        if (autotune_same(${name}_devices[i], slug)) return i;
    return ${name}_OTHER;
}
#endif
