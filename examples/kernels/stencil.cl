// One step of heat flow on a grid of height x width cells (five points); cells on the border keep their heat.

__kernel void stencil(__global const float *old, __global float *next, const int width, const int height)
{
    const int x = get_group_id(0) * BLOCK_X + get_local_id(0);
    const int top = get_group_id(1) * BLOCK_Y * ROWS_PER_ITEM;

#if USE_LOCAL
    __local float tile[BLOCK_Y * ROWS_PER_ITEM + 2][BLOCK_X + 2];
    for (int row = get_local_id(1); row < BLOCK_Y * ROWS_PER_ITEM + 2; row += BLOCK_Y)
        for (int column = get_local_id(0); column < BLOCK_X + 2; column += BLOCK_X) {
            const int from_x = clamp((int)get_group_id(0) * BLOCK_X + column - 1, 0, width - 1);
            const int from_y = clamp(top + row - 1, 0, height - 1);
            tile[row][column] = old[from_y * width + from_x];
        }
    barrier(CLK_LOCAL_MEM_FENCE);
#define CELL(dx, dy) tile[row + 1 + (dy)][get_local_id(0) + 1 + (dx)]
#else
#define CELL(dx, dy) old[(y + (dy)) * width + x + (dx)]
#endif

    for (int row = get_local_id(1); row < BLOCK_Y * ROWS_PER_ITEM; row += BLOCK_Y) {
        const int y = top + row;
        if (x >= width || y >= height)
            continue;
        const int is_inside = x > 0 && y > 0 && x < width - 1 && y < height - 1;
        next[y * width + x] =
            is_inside ? CELL(0, 0) + 0.2f * (CELL(-1, 0) + CELL(1, 0) + CELL(0, -1) + CELL(0, 1) - 4.0f * CELL(0, 0))
                      : CELL(0, 0);
    }
}
