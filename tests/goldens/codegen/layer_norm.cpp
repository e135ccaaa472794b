// layer norm: 2048 x [1024]
static void @_0(void* const* pointers, const long* sizes, char* workspace, int* error, long begin, long end) {
    const float* __restrict arg = (const float*)pointers[0];
    const float* __restrict arg_1 = (const float*)pointers[1];
    float* __restrict add_0 = (float*)pointers[2];
    for (long row = begin; row < end; row++) {
        // sum
        //   model.py:12  y = self.norm(x)
        f32x16 sum_part_0 = broadcast16(0.0f), sum_part_1 = broadcast16(0.0f), sum_part_2 = broadcast16(0.0f), sum_part_3 = broadcast16(0.0f);
        const float* arg_row = arg + row * 1024;
        {
            const auto step = [&](long column, f32x16& sum_part_) __attribute__((always_inline)) {
                const f32x16 arg_value = load16(arg_row + column);
                sum_part_ = sum_part_ + arg_value;
            };
            for (long column = 0; column < 1024; column += 64) {
                step(column, sum_part_0);
                step(column + 16, sum_part_1);
                step(column + 32, sum_part_2);
                step(column + 48, sum_part_3);
            }
        }
        const float sum = lanes_sum((sum_part_0 + sum_part_1) + (sum_part_2 + sum_part_3));
        // mean, squares
        //   model.py:12  y = self.norm(x)
        f32x16 squares_part_0 = broadcast16(0.0f), squares_part_1 = broadcast16(0.0f), squares_part_2 = broadcast16(0.0f), squares_part_3 = broadcast16(0.0f);
        const float mean = sum * 0.0009765625f;
        {
            const auto step = [&](long column, f32x16& squares_part_) __attribute__((always_inline)) {
                const f32x16 arg_value = load16(arg_row + column);
                const f32x16 sub_0 = arg_value - broadcast16(mean);
                squares_part_ = squares_part_ + (sub_0 * sub_0);
            };
            for (long column = 0; column < 1024; column += 64) {
                step(column, squares_part_0);
                step(column + 16, squares_part_1);
                step(column + 32, squares_part_2);
                step(column + 48, squares_part_3);
            }
        }
        const float squares = lanes_sum((squares_part_0 + squares_part_1) + (squares_part_2 + squares_part_3));
        // mean, var_mean, add, rsqrt, sub, mul
        //   model.py:12  y = self.norm(x)
        const float var_mean = squares * 0.0009765625f;
        const float add_1 = var_mean + (1e-05f);
        const float rsqrt_0 = rsqrt(add_1);
        float* add_0_row = add_0 + row * 1024;
        {
            const auto step = [&](long column) __attribute__((always_inline)) {
                const f32x16 arg_value = load16(arg_row + column);
                const f32x16 sub_0 = arg_value - broadcast16(mean);
                const f32x16 sub_1 = sub_0;
                const f32x16 mul_0 = sub_1 * broadcast16(rsqrt_0);
                const f32x16 arg_value_1 = load16(arg_1 + column);
                const f32x16 mul_1 = mul_0 * arg_value_1;
                const f32x16 add_2 = mul_1 + arg_value_1;
                store(add_0_row + column, add_2);
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

static void @(void* const* pointers, const long* sizes, char* workspace, int* error) {
    parallel(@_0, pointers, sizes, workspace, error, 2048, true);
}
