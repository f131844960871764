// How often each byte value occurs. Every work-group counts in local memory, in COPIES histograms so that
// neighbouring work-items meet less often, and then adds what it counted to the result.

#define BINS 256

__kernel void histogram(__global const uchar *values, __global uint *counts, const uint n)
{
    __local uint counted[COPIES * BINS];
    const uint item = get_local_id(0), items = get_local_size(0);

    for (uint k = item; k < COPIES * BINS; k += items)
        counted[k] = 0;
    barrier(CLK_LOCAL_MEM_FENCE);

    __local uint *own = counted + item % COPIES * BINS;
    for (uint k = get_global_id(0); k < n; k += get_global_size(0))
        atomic_inc(&own[values[k]]);
    barrier(CLK_LOCAL_MEM_FENCE);

    for (uint bin = item; bin < BINS; bin += items) {
        uint sum = 0;
        for (uint copy = 0; copy < COPIES; copy++)
            sum += counted[copy * BINS + bin];
        if (sum > 0)
            atomic_add(&counts[bin], sum);
    }
}
