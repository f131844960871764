/* Grids that launch grids: each thread greets, and the first one of a block launches a child with half as many threads,
 * down to one, `levels` deep in all. */
extern "C" __global__ void clear(unsigned int *greetings, unsigned int *blocks, unsigned int levels)
{
    for (unsigned int level = threadIdx.x; level < levels; level += blockDim.x)
        greetings[level] = blocks[level] = 0;
}

extern "C" __global__ void nested_hello(unsigned int *greetings, unsigned int *blocks, unsigned int depth,
                                        unsigned int levels)
{
    atomicAdd(&greetings[depth], 1u);
    atomicMax(&blocks[depth], blockIdx.x + 1);
    if (threadIdx.x == 0 && depth + 1 < levels) {
        const unsigned int threads = blockDim.x > 1 ? blockDim.x / 2 : 1;
#if CHILD == CHILD_TAIL /* starts after this grid has ended */
        nested_hello<<<1, threads, 0, cudaStreamTailLaunch>>>(greetings, blocks, depth + 1, levels);
#elif CHILD == CHILD_FIRE_AND_FORGET
        nested_hello<<<1, threads, 0, cudaStreamFireAndForget>>>(greetings, blocks, depth + 1, levels);
#else /* after earlier children of its block */
        nested_hello<<<1, threads>>>(greetings, blocks, depth + 1, levels);
#endif
    }
}
