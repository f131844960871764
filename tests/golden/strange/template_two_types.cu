template <class In, class Out, unsigned int TILE>
static __global__ void convert(const In *__restrict__ in, Out *__restrict__ out, const unsigned int n)
{
    for (unsigned int i = blockIdx.x * TILE + threadIdx.x; i < min(n, (blockIdx.x + 1) * TILE); i += blockDim.x)
        out[i] = static_cast<Out>(in[i]);
}
