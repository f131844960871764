/* Vectors of a matrix, row by row in memory, where it is not certain that the matrix has all of their elements
 * or that they start at a multiple of their size. For kernels that include portable.h and define vector_t. */
#ifndef MATRIX_H
#define MATRIX_H

/* The vector that starts at a row and column; elements beyond the matrix are 0. */
DEVICE vector_t read_at_edge(GLOBAL const DTYPE *matrix, size_t row, size_t column, size_t rows, size_t columns)
{
    vector_t vector = VECTOR_ZERO(DTYPE, VECTOR_WIDTH);
    UNROLL_LOOP(VECTOR_WIDTH)
    for (int k = 0; k < VECTOR_WIDTH; k++)
        if (row < rows && column + k < columns)
            VECTOR_ELEMENT(DTYPE, vector, k) = matrix[row * columns + column + k];
    return vector;
}

/* Elements beyond the matrix are not written. */
DEVICE void write_at_edge(GLOBAL DTYPE *matrix, size_t row, size_t column, size_t rows, size_t columns,
                          vector_t vector)
{
    UNROLL_LOOP(VECTOR_WIDTH)
    for (int k = 0; k < VECTOR_WIDTH; k++)
        if (row < rows && column + k < columns)
            matrix[row * columns + column + k] = VECTOR_ELEMENT(DTYPE, vector, k);
}

#endif
