#define T DTYPE

kernel void partial_sums(global const T *x, global const T *y, global T *partial, global float *ramp, int n, float scale)
{
    const int first = get_global_id(0) * PER_ITEM;
    T sum = 0;
    for (int i = first; i < min(first + PER_ITEM, n); ++i) {
        sum += x[i] * y[i];
        ramp[i] += scale;
    }
    partial[get_global_id(0)] = sum;
}

kernel void finish(global const T *partial, global T *sum, int items)
{
    if (get_global_id(0) == 0) {
        T total = 0;
        for (int i = 0; i < items; ++i)
            total += partial[i];
        sum[0] = total;
    }
}
