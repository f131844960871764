/* The transpose on the host, in tiles: a line of the cache in each row of the output is filled at once. */
#define TILE 16

void transpose(const DTYPE *restrict input, DTYPE *restrict output, long rows, long columns)
{
#pragma omp parallel for
    for (long y = 0; y < rows; y += TILE)
        for (long x = 0; x < columns; x += TILE)
            for (long j = x; j < (x + TILE < columns ? x + TILE : columns); j++)
#pragma omp simd
                for (long i = y; i < (y + TILE < rows ? y + TILE : rows); i++)
                    output[j * rows + i] = input[i * columns + j];
}
