#ifndef USE_SHARED
#define USE_SHARED 1
#endif
#ifndef USE_LDG
#define USE_LDG 0
#endif
#ifndef UNROLL
#define UNROLL 4
#endif
__global__ void flagged(float *out, const float *in, int n)
{
#if USE_SHARED == 1
    __shared__ float tile[256];
#endif
    int i = blockIdx.x * blockDim.x + threadIdx.x;
#pragma unroll UNROLL
    for (int k = 0; k < 8; ++k)
        if (i < n)
#if USE_LDG
            out[i] = __ldg(in + i) + k;
#else
            out[i] = in[i] + k;
#endif
}
