// mul + sum: 4096 x 1024
static void @_0(void* const* pointers, const long* sizes, char* workspace, int* error, long begin, long end, long threads) {
    const float* __restrict arg = (const float*)pointers[0];
    alignas(64) float sum_sums[1024];
    long* turn = (long*)(workspace + 4096);
    for (long block = begin; block < end; block += threads) {
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
        wait_for_turn(turn, block);
        float* sum_total = (float*)(workspace + 0);
        if (block == 0) for (long i = 0; i < 1024; i += 16) {
            store(sum_total + i, load16(sum_sums + i));
        }
        else for (long i = 0; i < 1024; i += 16) {
            store(sum_total + i, load16(sum_total + i) + load16(sum_sums + i));
        }
        end_turn(turn, block);
    }
}

// mul + sum: 1024
static void @_1(void* const* pointers, const long* sizes, char* workspace, int* error, long begin, long end) {
    const float* __restrict sum = (const float*)(workspace + 0);
    float* __restrict sum_1 = (float*)pointers[1];
    // sum
    //   model.py:12  y = (x * 2).sum(0)
    {
        const auto step = [&](long element) __attribute__((always_inline)) {
            const f32x16 sum_2 = load16(sum + element);
            store(sum_1 + element, sum_2);
        };
        for (long element = 0; element < 1024; element += 64) {
            step(element);
            step(element + 16);
            step(element + 32);
            step(element + 48);
        }
    }
}

static void @(void* const* pointers, const long* sizes, char* workspace, int* error) {
    *(long*)(workspace + 4096) = 0;
    parallel_in_turn(@_0, pointers, sizes, workspace, error, 64, true);
    @_1(pointers, sizes, workspace, error, 0, 1);
}
