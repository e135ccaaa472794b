// add: 1024 x 1024
static void @_0(void* const* pointers, const long* sizes, char* workspace, int* error, long begin, long end) {
    const float* __restrict arg = (const float*)pointers[0];
    const float* __restrict arg_1 = (const float*)pointers[1];
    float* __restrict add_0 = (float*)pointers[2];
    for (long band_number = begin; band_number < end; band_number++) {
        const long band = band_number * 16;
        const long band_end = band + 16 < 1024 ? band + 16 : 1024;
        // add
        //   model.py:12  z = y + x.t()
        long column_done = 0;
        if (band_end - band == 16) {
            for (long column = 0; column + 16 <= 1024; column += 16) {
                const float* arg_1_band = arg_1 + band + column * 1024;
                f32x16 arg_tile[16];
                for (long k = 0; k < 16; k++) {
                    arg_tile[k] = load16(arg_1_band + k * 1024);
                }
                transpose(arg_tile[0], arg_tile[1], arg_tile[2], arg_tile[3], arg_tile[4], arg_tile[5], arg_tile[6], arg_tile[7], arg_tile[8], arg_tile[9], arg_tile[10], arg_tile[11], arg_tile[12], arg_tile[13], arg_tile[14], arg_tile[15]);
                for (long row = band; row < band_end; row++) {
                    const float* arg_row = arg + row * 1024;
                    float* add_0_row = add_0 + row * 1024;
                    const f32x16 add_1 = load16(arg_row + column) + (arg_tile[row - band]);
                    store(add_0_row + column, add_1);
                }
                column_done = column + 16;
            }
        }
        for (long row = band; row < band_end; row++) {
            const float* arg_row = arg + row * 1024;
            const float* arg_1_band = arg_1 + row;
            float* add_0_row = add_0 + row * 1024;
            for (long column = column_done; column < 1024; column += 16) {
                const long count = 1024 - column < 16 ? 1024 - column : 16;
                const f32x16 add_1 = load16(arg_row + column, count) + load_strided16(arg_1_band + column * 1024, 1024, count);
                store(add_0_row + column, add_1, count);
            }
        }
    }
}

static void @(void* const* pointers, const long* sizes, char* workspace, int* error) {
    parallel(@_0, pointers, sizes, workspace, error, 64, true);
}
