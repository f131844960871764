__kernel void any(__global const int *x, __global int *or, const int n)
{
    const int i = get_global_id(0);
    if (i < n) or[i] = x[i] || or[i];
}
