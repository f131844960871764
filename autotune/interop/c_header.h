/* Tuned configurations of the kernel $kernel, written by autotune $version. Do not edit. */
#ifndef ${guard}_H
#define ${guard}_H
#ifndef AUTOTUNE_TUNED_H
#define AUTOTUNE_TUNED_H
#if defined(__cplusplus) && __cplusplus >= 201402L
#define AUTOTUNE_FUNCTION constexpr
#else
#define AUTOTUNE_FUNCTION static inline
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
/* As in Python, for b > 0. */
AUTOTUNE_FUNCTION long long autotune_floor_div(long long a, long long b) { return a / b - (a % b < 0); }
AUTOTUNE_FUNCTION long long autotune_modulo(long long a, long long b) { return a % b + (a % b < 0 ? b : 0); }
AUTOTUNE_FUNCTION long long autotune_min(long long a, long long b) { return b < a ? b : a; }
/* For size > 0, to the last digit or two; not of <math.h>, whose log2 few compilers take for a constant. */
AUTOTUNE_FUNCTION double autotune_log2(long long size) {
    double mantissa = (double)size, power = 1, sum = 0;
    int exponent = 0;
    for (; mantissa > 1.4142135623730951; mantissa /= 2) ++exponent;
    const double t = (mantissa - 1) / (mantissa + 1); /* ln(mantissa) = 2 (t + t^3 / 3 + t^5 / 5 + ...) */
    for (int n = 1; n < 24; n += 2, power *= t * t) sum += power / n;
    return exponent + 2.8853900817779268 * t * sum;
}
AUTOTUNE_FUNCTION int autotune_is_word(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
/* Whether a slug is that of a name: its words in small letters, with - between them. */
AUTOTUNE_FUNCTION int autotune_same(const char *slug, const char *name) {
    while (*name && !autotune_is_word(*name)) ++name;
    for (; *slug; ++slug) {
        const int is_between = *slug == '-' && !autotune_is_word(*name);
        if (!is_between && *slug != (*name >= 'A' && *name <= 'Z' ? *name + 32 : *name)) return 0;
        if (*name) ++name;
        while (is_between && *name && !autotune_is_word(*name)) ++name;
    }
    while (*name && !autotune_is_word(*name)) ++name;
    return !*name;
}
#endif
$declarations
typedef struct { ${name}_config config; int tier; autotune_text source; } ${name}_best_t;
/* A configuration for some sizes. A group counts where nothing of the groups before it may run. Source -1: none;
   condition -1: for its own sizes only. */
typedef struct {
    int device, dtype, group, tier, config, source, condition;
    double log2_sizes[$count];
    long long sizes[$count];
} ${name}_row;
$tables
/* Whether a configuration may run. */
AUTOTUNE_FUNCTION int ${name}_holds(int condition, $parameters) {
    $unused
    switch (condition) {
$conditions
    default: return 1;
    }
}
/* The best known configuration for a device of this header: the nearest that may run, in the first group with one.
   Tier AUTOTUNE_NONE: nothing may be served. */
AUTOTUNE_FUNCTION ${name}_best_t ${name}_best(int device, int dtype, $parameters) {
    ${name}_best_t best = {${name}_configs[0], AUTOTUNE_NONE, ""};
    if (!($positive)) return best;
    const double log2_sizes[$count] = {$logs};
    const long long sizes[$count] = {$sizes};
    int group = -1;
    double least = 0;
    for (int i = 0; i < ${name}_ROWS; ++i) {
        const ${name}_row *row = &${name}_rows[i];
        if (row->device != device || row->dtype != dtype) continue;
        if (group >= 0 && row->group != group) break;
        int is_same = 1;
        double away = 0; /* squared distance in log2 space */
        for (int d = 0; d < $count; ++d) {
            double difference = row->log2_sizes[d] - log2_sizes[d];
            away += difference * difference;
            is_same = is_same && row->sizes[d] == sizes[d];
        }
        if (group >= 0 && away >= least) continue;
        if (row->condition < 0 ? !is_same : !${name}_holds(row->condition, $sizes)) continue;
        group = row->group;
        least = away;
        best.config = ${name}_configs[row->config];
        best.tier = row->tier == AUTOTUNE_EXACT && !is_same ? AUTOTUNE_NEAREST_SIZE : row->tier;
        best.source = row->source < 0 ? "" : ${name}_devices[row->source];
    }
    return best;
}
/* The number of a device by its name, such as cudaDeviceProp::name, or slug; ${name}_OTHER without results. */
AUTOTUNE_FUNCTION int ${name}_device_of(autotune_text device) {
    for (int i = 0; i < ${name}_DEVICES; ++i)
        if (autotune_same(${name}_devices[i], device)) return i;
    return ${name}_OTHER;
}
#endif
