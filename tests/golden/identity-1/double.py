def double(grid, block, x, y, z, n):
    if A == 3 and B == 1:
        raise ValueError("a launch that fails")
    values = x.view("int32")[:n]
    y.view("int32")[:n] = 2 * values + (A == 5)
    z.view("float32")[: grid[0]] = 0
    return (A - 4) ** 2 + B + 1.0


def compiling():
    if A == 6:
        raise RuntimeError("a compiler that fails")
