"""The parts of a generated C header that are the same for every kernel, but for its name in place of NAME."""

HELPERS = """\
#ifndef AUTOTUNE_TUNED_H
#define AUTOTUNE_TUNED_H
#if defined(__cplusplus) && __cplusplus >= 201402L && defined(__GNUC__) && !defined(__clang__)
#define AUTOTUNE_CONSTEXPR 1
#define AUTOTUNE_FUNCTION constexpr
#define AUTOTUNE_LOG2 __builtin_log2
#define AUTOTUNE_FLOOR __builtin_floor
#else
#include <math.h>
#define AUTOTUNE_FUNCTION static inline
#define AUTOTUNE_LOG2 log2
#define AUTOTUNE_FLOOR floor
#endif
#if defined(__cplusplus)
#define AUTOTUNE_TABLE static constexpr
#else
#define AUTOTUNE_TABLE static const
#endif
enum {
    AUTOTUNE_EXACT,
    AUTOTUNE_NEAREST_SIZE,
    AUTOTUNE_SAME_ARCHITECTURE,
    AUTOTUNE_SAME_VENDOR,
    AUTOTUNE_PORTABLE,
    AUTOTUNE_DEFAULT,
    AUTOTUNE_NONE
};
AUTOTUNE_FUNCTION double autotune_divide(double a, double b, int *ok) {
    if (b == 0) { *ok = 0; return 0; }
    return a / b;
}
AUTOTUNE_FUNCTION long long autotune_floor_div(long long a, long long b, int *ok) {
    if (b == 0) { *ok = 0; return 0; }
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}
AUTOTUNE_FUNCTION long long autotune_modulo(long long a, long long b, int *ok) {
    return b == 0 ? (*ok = 0, 0) : a - b * autotune_floor_div(a, b, ok);
}
AUTOTUNE_FUNCTION long long autotune_ceil_div(long long a, long long b, int *ok) {
    return -autotune_floor_div(-a, b, ok);
}
AUTOTUNE_FUNCTION long long autotune_round_up(long long a, long long b, int *ok) {
    return autotune_ceil_div(a, b, ok) * b;
}
AUTOTUNE_FUNCTION long long autotune_shift_left(long long a, long long b, int *ok) {
    if (b < 0 || b > 62) { *ok = 0; return 0; }
    return a * (1LL << b);
}
AUTOTUNE_FUNCTION long long autotune_shift_right(long long a, long long b, int *ok) {
    if (b < 0) { *ok = 0; return 0; }
    return b > 62 ? (a < 0 ? -1 : 0) : autotune_floor_div(a, 1LL << b, ok);
}
AUTOTUNE_FUNCTION long long autotune_power(long long a, long long b) {
    long long result = 1;
    for (long long i = 0; i < b; ++i) result *= a;
    return result;
}
AUTOTUNE_FUNCTION long long autotune_gcd(long long a, long long b) {
    while (b != 0) { long long rest = a % b; a = b; b = rest; }
    return a < 0 ? -a : a;
}
AUTOTUNE_FUNCTION int autotune_is_power_of_two(long long a) { return a > 0 && (a & (a - 1)) == 0; }
AUTOTUNE_FUNCTION double autotune_log2(double a, int *ok) {
    if (!(a > 0)) { *ok = 0; return 0; }
    return AUTOTUNE_LOG2(a);
}
AUTOTUNE_FUNCTION long long autotune_floor(double a) { return (long long)AUTOTUNE_FLOOR(a); }
AUTOTUNE_FUNCTION long long autotune_ceil(double a) { return -(long long)AUTOTUNE_FLOOR(-a); }
AUTOTUNE_FUNCTION long long autotune_min_integer(long long a, long long b) { return b < a ? b : a; }
AUTOTUNE_FUNCTION long long autotune_max_integer(long long a, long long b) { return b > a ? b : a; }
AUTOTUNE_FUNCTION long long autotune_abs_integer(long long a) { return a < 0 ? -a : a; }
AUTOTUNE_FUNCTION double autotune_min_fraction(double a, double b) { return b < a ? b : a; }
AUTOTUNE_FUNCTION double autotune_max_fraction(double a, double b) { return b > a ? b : a; }
AUTOTUNE_FUNCTION double autotune_abs_fraction(double a) { return a < 0 ? -a : a; }
AUTOTUNE_FUNCTION long long autotune_whole(double a, int *ok) {
    if (AUTOTUNE_FLOOR(a) != a) { *ok = 0; return 0; }
    return (long long)a;
}
AUTOTUNE_FUNCTION long long autotune_extent(long long a, int *ok) {
    if (a < 1) *ok = 0;
    return a;
}
AUTOTUNE_FUNCTION int autotune_same(const char *a, const char *b) {
    while (*a && *a == *b) { ++a; ++b; }
    return *a == *b;
}
#endif
"""

LOOKUP = """\
/* Squared distance in log2 space of a stored result from the sizes that are asked for. */
AUTOTUNE_FUNCTION double NAME_distance(const NAME_entry *entry, const double *log2_sizes) {
    double sum = 0;
    for (int i = 0; i < NAME_SIZES; ++i) {
        double away = entry->log2_sizes[i] - log2_sizes[i];
        sum += away * away;
    }
    return sum;
}
/* The nearest of a run of results, the first of equals, that is farther than `after`, or as far and later. */
AUTOTUNE_FUNCTION int NAME_nearest(int first, int count, const double *log2_sizes, double after, int last) {
    int found = -1;
    double least = 0;
    for (int i = first; i < first + count; ++i) {
        double away = NAME_distance(&NAME_entries[i], log2_sizes);
        if (away < after || (away == after && i <= last)) continue;
        if (found < 0 || away < least) { found = i; least = away; }
    }
    return found;
}
/* Whether a list is the one for the results that are nearest. */
AUTOTUNE_FUNCTION int NAME_is_for(const NAME_list *list, const NAME_scope *scope, const double *log2_sizes) {
    for (int g = 0; g < scope->groups; ++g) {
        const NAME_group *group = &NAME_groups[scope->first_group + g];
        int nearest = NAME_nearest(group->first, group->count, log2_sizes, -1, -1);
        if (nearest - group->first != NAME_nears[list->first_near + g]) return 0;
    }
    return 1;
}
/* The best known configuration for a device of NAME_devices; tier AUTOTUNE_NONE: nothing may be served. */
AUTOTUNE_FUNCTION NAME_best_t NAME_best(int device, int dtype, SIZE_PARAMETERS) {
    const double log2_sizes[NAME_SIZES] = {SIZE_LOGS};
    const NAME_device *target = &NAME_devices[device];
    NAME_best_t best = {NAME_configs[0], AUTOTUNE_NONE, ""};
    for (int p = 0; p < NAME_PLACES; ++p) { /* its own results, cache by cache */
        const NAME_place *place = &NAME_places[p];
        if (place->device != device || place->dtype != dtype) continue;
        double away = -1;
        int last = -1;
        for (int i = 0; i < place->count; ++i) {
            last = NAME_nearest(place->first, place->count, log2_sizes, away, last);
            away = NAME_distance(&NAME_entries[last], log2_sizes);
            const NAME_config *config = &NAME_configs[NAME_entries[last].config];
            if (NAME_entries[last].is_valid &&
                NAME_valid(place->rules, config, target, dtype, NAME_entries[last].registers, SIZE_NAMES)) {
                best.config = *config;
                best.tier = SIZES_EQUAL ? AUTOTUNE_EXACT : AUTOTUNE_NEAREST_SIZE;
                best.source = target->slug;
                return best;
            }
        }
    }
    for (int s = 0; s < NAME_SCOPES; ++s) { /* results of other devices, closest tier first */
        const NAME_scope *scope = &NAME_scopes[s];
        if (scope->device != device || scope->dtype != dtype) continue;
        const NAME_list *list = &NAME_lists[scope->first_list];
        for (int l = 1; l < scope->lists && !NAME_is_for(list, scope, log2_sizes); ++l) ++list;
        for (int i = list->first; i < list->first + list->count; ++i) {
            const NAME_config *config = &NAME_configs[NAME_ranked[i].config];
            if (NAME_valid(NAME_NEWEST, config, target, dtype, NAME_ranked[i].registers, SIZE_NAMES)) {
                best.config = *config;
                best.tier = scope->tier;
                best.source = NAME_devices[NAME_ranked[i].source].slug;
                return best;
            }
        }
    }
    for (int p = 0; p < NAME_DEFAULTS; ++p) {
        const NAME_default *one = &NAME_defaults[p];
        const NAME_config *config = &NAME_configs[one->config];
        if (one->device == device && one->dtype == dtype &&
            NAME_valid(one->rules, config, target, dtype, 0, SIZE_NAMES)) {
            best.config = *config;
            best.tier = AUTOTUNE_DEFAULT;
            return best;
        }
    }
    return best;
}
/* The number of a device by its slug, NAME_OTHER for one without results. */
AUTOTUNE_FUNCTION int NAME_device_of(const char *slug) {
    for (int i = 0; i < NAME_DEVICES; ++i)
        if (autotune_same(NAME_devices[i].slug, slug)) return i;
    return NAME_OTHER;
}
"""
