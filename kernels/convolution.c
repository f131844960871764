/* The convolution on the host, by the same sum as the kernel's and in the same type: a row of the result grows by
 * a weight times a row of the image. */
void convolution(const float *restrict image, const float *restrict weights, float *restrict result, long width,
                 long height)
{
    const long pitch = width + FILTER_SIZE - 1;
#pragma omp parallel for
    for (long y = 0; y < height; y++) {
        float *row = result + y * width;
        for (long x = 0; x < width; x++)
            row[x] = 0;
        for (long v = 0; v < FILTER_SIZE; v++)
            for (long u = 0; u < FILTER_SIZE; u++) {
                const float weight = weights[v * FILTER_SIZE + u], *from = image + (y + v) * pitch + u;
#pragma omp simd
                for (long x = 0; x < width; x++)
                    row[x] += weight * from[x];
            }
    }
}
