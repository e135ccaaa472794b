// softmax: 4096 x [1000]
static void @_0(void* const* pointers, const long* sizes, char* workspace, int* error, long begin, long end) {
    const float* __restrict arg = (const float*)pointers[0];
    float* __restrict div_0 = (float*)pointers[1];
    alignas(64) float exp_row[1008];
    for (long row = begin; row < end; row++) {
        // amax
        //   model.py:12  y = x.softmax(-1)
        f32x16 amax_part_0 = broadcast16(-__builtin_inff()), amax_part_1 = broadcast16(-__builtin_inff()), amax_part_2 = broadcast16(-__builtin_inff()), amax_part_3 = broadcast16(-__builtin_inff());
        const float* arg_row = arg + row * 1000;
        {
            const auto step = [&](long column, f32x16& amax_part_) __attribute__((always_inline)) {
                const f32x16 arg_value = load16(arg_row + column);
                amax_part_ = max_quick(amax_part_, arg_value);
            };
            long column = 0;
            for (; column + 64 <= 1000; column += 64) {
                step(column, amax_part_0);
                step(column + 16, amax_part_1);
                step(column + 32, amax_part_2);
                step(column + 48, amax_part_3);
            }
            for (; column + 16 <= 1000; column += 16) {
                step(column, amax_part_0);
            }
            if (column < 1000) {
                const long count = 1000 - column;
                const f32x16 arg_value = load16(arg_row + column, count);
                amax_part_0 = max_quick(amax_part_0, first16(count) ? arg_value : broadcast16(-__builtin_inff()));
            }
        }
        const float amax = lanes_max_quick(max_quick(max_quick(amax_part_0, amax_part_1), max_quick(amax_part_2, amax_part_3)));
        // sub, exp, sum
        //   model.py:12  y = x.softmax(-1)
        f32x16 sum_part_0 = broadcast16(0.0f), sum_part_1 = broadcast16(0.0f), sum_part_2 = broadcast16(0.0f), sum_part_3 = broadcast16(0.0f);
        {
            const auto step = [&](long column, f32x16& sum_part_) __attribute__((always_inline)) {
                const f32x16 arg_value = load16(arg_row + column);
                const f32x16 sub_0 = arg_value - broadcast16(amax);
                const f32x16 exp_0 = exp_nonpositive(sub_0);
                store(exp_row + column, exp_0);
                sum_part_ = sum_part_ + exp_0;
            };
            long column = 0;
            for (; column + 64 <= 1000; column += 64) {
                step(column, sum_part_0);
                step(column + 16, sum_part_1);
                step(column + 32, sum_part_2);
                step(column + 48, sum_part_3);
            }
            for (; column + 16 <= 1000; column += 16) {
                step(column, sum_part_0);
            }
            if (column < 1000) {
                const long count = 1000 - column;
                const f32x16 arg_value = load16(arg_row + column, count);
                const f32x16 sub_0 = arg_value - broadcast16(amax);
                const f32x16 exp_0 = exp_nonpositive(sub_0);
                store(exp_row + column, exp_0);
                sum_part_0 = sum_part_0 + (first16(count) ? exp_0 : broadcast16(0.0f));
            }
        }
        const float sum = lanes_sum((sum_part_0 + sum_part_1) + (sum_part_2 + sum_part_3));
        // div
        //   model.py:12  y = x.softmax(-1)
        float* div_0_row = div_0 + row * 1000;
        {
            const auto step = [&](long column) __attribute__((always_inline)) {
                const f32x16 exp_0 = load16(exp_row + column);
                const f32x16 div_1 = exp_0 / broadcast16(sum);
                store(div_0_row + column, div_1);
            };
            long column = 0;
            for (; column + 64 <= 1000; column += 64) {
                step(column);
                step(column + 16);
                step(column + 32);
                step(column + 48);
            }
            for (; column + 16 <= 1000; column += 16) {
                step(column);
            }
            if (column < 1000) {
                const long count = 1000 - column;
                const f32x16 exp_0 = load16(exp_row + column);
                const f32x16 div_1 = exp_0 / broadcast16(sum);
                store(div_0_row + column, div_1, count);
            }
        }
    }
}

static void @(void* const* pointers, const long* sizes, char* workspace, int* error) {
    parallel(@_0, pointers, sizes, workspace, error, 4096, true);
}
