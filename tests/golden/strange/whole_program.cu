#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <vector>
#include <chrono>
#include "cuda_runtime.h"
#define CHECK(call) do { if ((call) != cudaSuccess) { std::exit(1); } } while (0)
#define N 1024
static void usage(const char *name) { fprintf(stderr, "usage: %s {n}\n", name); }
struct Timer { std::chrono::high_resolution_clock::time_point start; void go() {} };
__global__ void work(float *data, size_t n)
{
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i < n) data[i] = data[i] * 2.0f + 1.0f;
}
std::vector<float> make(int n) { return std::vector<float>(n, 1.0f); }
int main(int argc, char **argv)
{
    if (argc > 2) { usage(argv[0]); return 1; }
    std::vector<float> host = make(N);
    float *device;
    CHECK(cudaMalloc(&device, N * sizeof(float)));
    work<<<(N + 255) / 256, 256>>>(device, N);
    CHECK(cudaDeviceSynchronize());
    std::cout << host[0] << std::endl;
    return 0;
}
