/* c = a + scale * b */
#ifndef BLOCK_SIZE
#define BLOCK_SIZE 64
#endif

__kernel __attribute__((reqd_work_group_size(BLOCK_SIZE, 1, 1)))
void vector_add(__global const float *a, __global const float *b, __global float *c, const float scale, const int n)
{
    for (int k = 0; k < WORK_PER_THREAD; k++) {
        int i = (get_group_id(0) * WORK_PER_THREAD + k) * BLOCK_SIZE + get_local_id(0);
        if (i < n)
            c[i] = a[i] + scale * b[i];
    }
}
