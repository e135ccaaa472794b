// log softmax: 64 x [5000]
static void @_0(void* const* pointers, const long* sizes, char* workspace, int* error, long begin, long end) {
    const float* __restrict arg = (const float*)pointers[0];
    float* __restrict sub_0 = (float*)pointers[1];
    for (long row = begin; row < end; row++) {
        // amax, sum
        //   model.py:12  y = log_softmax(x)
        f32x16 amax_part_0 = broadcast16(-__builtin_inff()), amax_part_1 = broadcast16(-__builtin_inff()), amax_part_2 = broadcast16(-__builtin_inff()), amax_part_3 = broadcast16(-__builtin_inff());
        f32x16 sum_part_0 = broadcast16(0.0f), sum_part_1 = broadcast16(0.0f), sum_part_2 = broadcast16(0.0f), sum_part_3 = broadcast16(0.0f);
        f32x16 sum_part_0_top = broadcast16(-3.4028235e+38f), sum_part_1_top = broadcast16(-3.4028235e+38f), sum_part_2_top = broadcast16(-3.4028235e+38f), sum_part_3_top = broadcast16(-3.4028235e+38f);
        const float* arg_row = arg + row * 5000;
        {
            const auto step = [&](long column, f32x16& amax_part_, f32x16& sum_part_, f32x16& sum_part_0_top_) __attribute__((always_inline)) {
                const f32x16 arg_value = load16(arg_row + column);
                amax_part_ = max_quick(amax_part_, arg_value);
                if (lanes_any(arg_value > sum_part_0_top_)) {
                    const f32x16 raised = broadcast16(lanes_max_quick(arg_value)) + 2.0f;
                    sum_part_ = sum_part_ * exp_nonpositive_beside_one(sum_part_0_top_ - raised);
                    sum_part_0_top_ = raised;
                }
                sum_part_ = sum_part_ + exp_nonpositive_beside_one(arg_value - sum_part_0_top_);
            };
            long column = 0;
            for (; column + 64 <= 5000; column += 64) {
                step(column, amax_part_0, sum_part_0, sum_part_0_top);
                step(column + 16, amax_part_1, sum_part_1, sum_part_1_top);
                step(column + 32, amax_part_2, sum_part_2, sum_part_2_top);
                step(column + 48, amax_part_3, sum_part_3, sum_part_3_top);
            }
            if (column < 5000) {
                const long count = 5000 - column;
                const f32x16 arg_value = load16(arg_row + column, count);
                amax_part_0 = max_quick(amax_part_0, first16(count) ? arg_value : broadcast16(-__builtin_inff()));
                const f32x16 item = first16(count) ? arg_value : broadcast16(-__builtin_inff());
                if (lanes_any(item > sum_part_0_top)) {
                    const f32x16 raised_1 = broadcast16(lanes_max_quick(item)) + 2.0f;
                    sum_part_0 = sum_part_0 * exp_nonpositive_beside_one(sum_part_0_top - raised_1);
                    sum_part_0_top = raised_1;
                }
                sum_part_0 = sum_part_0 + exp_nonpositive_beside_one(item - sum_part_0_top);
            }
        }
        const float amax = lanes_max_quick(max_quick(max_quick(amax_part_0, amax_part_1), max_quick(amax_part_2, amax_part_3)));
        const float sum = lanes_sum(((sum_part_0 * exp(sum_part_0_top - broadcast16(amax))) + (sum_part_1 * exp(sum_part_1_top - broadcast16(amax)))) + ((sum_part_2 * exp(sum_part_2_top - broadcast16(amax))) + (sum_part_3 * exp(sum_part_3_top - broadcast16(amax)))));
        // sub, log
        //   model.py:12  y = log_softmax(x)
        const float log_0 = __builtin_logf(sum);
        float* sub_0_row = sub_0 + row * 5000;
        {
            const auto step = [&](long column) __attribute__((always_inline)) {
                const f32x16 arg_value = load16(arg_row + column);
                const f32x16 sub_1 = arg_value - broadcast16(amax);
                const f32x16 sub_2 = sub_1 - broadcast16(log_0);
                store(sub_0_row + column, sub_2);
            };
            long column = 0;
            for (; column + 64 <= 5000; column += 64) {
                step(column);
                step(column + 16);
                step(column + 32);
                step(column + 48);
            }
            if (column < 5000) {
                const long count = 5000 - column;
                const f32x16 arg_value = load16(arg_row + column, count);
                const f32x16 sub_1 = arg_value - broadcast16(amax);
                const f32x16 sub_2 = sub_1 - broadcast16(log_0);
                store(sub_0_row + column, sub_2, count);
            }
        }
    }
}

static void @(void* const* pointers, const long* sizes, char* workspace, int* error) {
    parallel(@_0, pointers, sizes, workspace, error, 64, true);
}
