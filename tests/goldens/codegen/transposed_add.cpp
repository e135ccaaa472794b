// add: 1024 x 1024
static void @_0(void* const* pointers, const long* sizes, char* workspace, int* error, long begin, long end) {
    const float* __restrict arg = (const float*)pointers[0];
    const float* __restrict arg_1 = (const float*)pointers[1];
    float* __restrict add_0 = (float*)pointers[2];
    alignas(64) float arg_block[8192];
    for (long unit = begin; unit < end; unit++) {
        const long band_number = unit / 8;
        const long chunk = unit % 8;
        const long band = band_number * 64;
        const long start = chunk * 128;
        const long width = 128;
        // add
        //   model.py:12  z = y + x.t()
        const float* arg_1_start = arg_1 + start * 1024;
        const float* arg_start = arg + start;
        float* add_0_start = add_0 + start;
        const float* arg_1_band = arg_1_start + band;
        for (long column = 0; column < width; column += 16) {
            for (long row = 0; row < 64; row += 16) {
                transpose_tile16(arg_1_band + column * 1024 + row, 1024, arg_block + row * 128 + column, 128);
            }
        }
        const float* arg_band = arg_start + band * 1024;
        float* add_0_band = add_0_start + band * 1024;
        for (long row = 0; row < 64; row++) {
            const float* arg_row = arg_band + row * 1024;
            float* arg_block_row = arg_block + row * 128;
            float* add_0_row = add_0_band + row * 1024;
            const auto step = [&](long column) __attribute__((always_inline)) {
                const f32x16 add_1 = load16(arg_row + column) + load16(arg_block_row + column);
                store(add_0_row + column, add_1);
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
    parallel(@_0, pointers, sizes, workspace, error, 128, true);
}
