__global__ void strided(float *out, const float *in, int n)
{
    for (int i = blockIdx.x * block_threads + threadIdx.x; i < n; i += num_blocks * block_threads)
        out[i] = in[i] * factor_of_mine;
}
