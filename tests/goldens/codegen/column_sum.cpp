// mul + sum: 4096 x 1024
static void @_0(void* const* pointers, const long* sizes, char* workspace, int* error, long begin, long end) {
    const float* __restrict arg = (const float*)pointers[0];
    for (long block = begin; block < end; block++) {
        float* sum_sums = (float*)(workspace + 0) + block * 1024;
        for (long i = 0; i < 1024; i += 16) {
            store(sum_sums + i, broadcast16(0.0f));
        }
        const long block_units = 64, unit_begin = block * block_units;
        const long unit_left = 4096 - unit_begin;
        const long unit_end = unit_begin + (unit_left < block_units ? unit_left : block_units);
        for (long row = unit_begin; row < unit_end; row++) {
            // sum
            //   model.py:12  y = (x * 2).sum(0)
            const float* arg_row = arg + row * 1024;
            {
                const auto step = [&](long column) __attribute__((always_inline)) {
                    store(sum_sums + column, load16(sum_sums + column) + (load16(arg_row + column) * 2.0f));
                };
                for (long column = 0; column < 1024; column += 64) {
                    step(column);
                    step(column + 16);
                    step(column + 32);
                    step(column + 48);
                }
            }
        }
    }
}

// mul + sum: [64] x 1024
static void @_1(void* const* pointers, const long* sizes, char* workspace, int* error, long begin, long end) {
    const float* __restrict sum = (const float*)(workspace + 0);
    float* __restrict sum_1 = (float*)pointers[1];
    alignas(64) float sum_sums[256];
    for (long chunk = 0; chunk < 4; chunk++) {
        const long start = chunk * 256;
        const long width = 256;
        // sum
        //   model.py:12  y = (x * 2).sum(0)
        for (long i = 0; i < 256; i += 16) {
            store(sum_sums + i, broadcast16(0.0f));
        }
        const float* sum_start = sum + start;
        {
            for (long r = 0; r < 64; r++) {
                const float* sum_r = sum_start + r * 1024;
                const auto step = [&](long column) __attribute__((always_inline)) {
                    store(sum_sums + column, load16(sum_sums + column) + load16(sum_r + column));
                };
                for (long column = 0; column < width; column += 64) {
                    step(column);
                    step(column + 16);
                    step(column + 32);
                    step(column + 48);
                }
            }
        }
        // write
        //   model.py:12  y = (x * 2).sum(0)
        float* sum_1_start = sum_1 + start;
        {
            const auto step = [&](long column) __attribute__((always_inline)) {
                const f32x16 sum_2 = load16(sum_sums + column);
                store(sum_1_start + column, sum_2);
            };
            for (long column = 0; column < width; column += 64) {
                step(column);
                step(column + 16);
                step(column + 32);
                step(column + 48);
            }
        }
    }
}

static void @(void* const* pointers, const long* sizes, char* workspace, int* error) {
    parallel(@_0, pointers, sizes, workspace, error, 64, true);
    @_1(pointers, sizes, workspace, error, 0, 4);
}
