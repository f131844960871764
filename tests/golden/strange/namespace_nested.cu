namespace lib { namespace detail {
constexpr int WIDTH = 4;
__device__ float weight(int k) { return 1.0f / (k + 1); }
__global__ void smooth(float *out, const float *in, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    for (int k = 0; k < WIDTH && i + k < n; ++k) sum += weight(k) * in[i + k];
    if (i < n) out[i] = sum;
}
} }
