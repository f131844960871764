// Tuned results in a C++ program, without Python: at compile time for a known GPU, at run time for any.
//
//     autotune export reduce --format c-header -o reduce.h
//     g++ -std=c++14 main.cpp -o main
//     ./main "NVIDIA H200" 1000000
//
// A program that runs on a GPU knows the name of its device from CUDA: cudaDeviceProp::name.
#include "reduce.h"

#include <cstdio>
#include <cstdlib>

// For a size and a GPU that are known now the look-up costs nothing: the result is a constant.
constexpr auto big_sum = autotune_reduce_best(autotune_reduce_nvidia_h200, autotune_reduce_int32, 1 << 27);
static_assert(big_sum.tier <= AUTOTUNE_NEAREST_SIZE, "big sums are to be tuned for the H200 itself");

template <int block_size>
struct Reduction {  // a kernel that is a template takes its macros as arguments
    static constexpr int threads = block_size;
};
using BigSum = Reduction<big_sum.config.BLOCK_SIZE>;

int main(int count, char **arguments) {
    static const char *const tiers[] = {"exact",       "interpolated", "nearest size", "same architecture",
                                        "same vendor", "portable",     "default",      "nothing"};
    if (count != 3) {
        std::fprintf(stderr, "usage: %s DEVICE N\n", arguments[0]);
        return 2;
    }
    std::printf("big sums: %d threads a block\n", BigSum::threads);
    const int device = autotune_reduce_device_of(arguments[1]);
    const auto best = autotune_reduce_best(device, autotune_reduce_int32, std::atoll(arguments[2]));
    std::printf("match: %s %s\n", tiers[best.tier], best.source);
    if (best.tier == AUTOTUNE_NONE) return 1;
    // What a runtime compiler is given: constants of named values, then the macros.
    std::printf("flags: %s", autotune_reduce_CONSTANTS);
#define FLAG(name) std::printf(" -D" #name "=%lld", static_cast<long long>(best.config.name));
    autotune_reduce_MACROS(FLAG)
#undef FLAG
    std::printf("\n");
}
