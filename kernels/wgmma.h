/* The product of four warps on Hopper's tensor cores, m64nNk16 with sums in float; the includer defines TYPE. */
#ifndef WGMMA_H
#define WGMMA_H

#define FLOATS_8(array, i)                                                                                            \
    "+f"(array[i]), "+f"(array[i + 1]), "+f"(array[i + 2]), "+f"(array[i + 3]), "+f"(array[i + 4]),                   \
        "+f"(array[i + 5]), "+f"(array[i + 6]), "+f"(array[i + 7])
#define FLOATS_32(array, i)                                                                                           \
    FLOATS_8(array, i), FLOATS_8(array, i + 8), FLOATS_8(array, i + 16), FLOATS_8(array, i + 24)
#define FLOATS_64(array, i) FLOATS_32(array, i), FLOATS_32(array, i + 32)
#define FLOATS_128(array, i) FLOATS_64(array, i), FLOATS_64(array, i + 64)
#define NAMES_32                                                                                                      \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, "  \
    "%24, %25, %26, %27, %28, %29, %30, %31"
#define NAMES_64                                                                                                      \
    NAMES_32 ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, " \
             "%52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define NAMES_128                                                                                                     \
    NAMES_64 ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, " \
             "%84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, %98, %99, %100, %101, %102, "     \
             "%103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, " \
             "%120, %121, %122, %123, %124, %125, %126, %127"
/* Adds a product to `sums`, `count` floats of each thread. The matrices' names follow the sums' in `matrices`; `flags`
 * are the scales, then the order of what is in shared memory; last come the matrices' registers or descriptions.
 */
#define WGMMA(columns, count, sums, matrices, flags, ...)                                                             \
    asm volatile("{ .reg .pred adds; setp.eq.u32 adds, 0, 0;\n"                                                       \
                 "wgmma.mma_async.sync.aligned.m64n" #columns "k16.f32." TYPE "." TYPE " {" NAMES_##count "}, "       \
                 matrices ", adds, " flags "; }"                                                                      \
                 : FLOATS_##count(sums, 0)                                                                            \
                 : __VA_ARGS__)
#endif
