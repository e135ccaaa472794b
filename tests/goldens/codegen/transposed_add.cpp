// add: 1024 x 1024
static void @_0(void* const* pointers, const long* sizes, char* workspace, int* error, long begin, long end) {
    const float* __restrict arg = (const float*)pointers[0];
    const float* __restrict arg_1 = (const float*)pointers[1];
    float* __restrict add_0 = (float*)pointers[2];
    for (long band_number = begin; band_number < end; band_number++) {
        const long band = band_number * 16;
        // add
        //   model.py:12  z = y + x.t()
        for (long column = 0; column < 1024; column += 16) {
            const float* arg_1_band = arg_1 + band + column * 1024;
            f32x16 arg_tile_0, arg_tile_1, arg_tile_2, arg_tile_3, arg_tile_4, arg_tile_5, arg_tile_6, arg_tile_7, arg_tile_8, arg_tile_9, arg_tile_10, arg_tile_11, arg_tile_12, arg_tile_13, arg_tile_14, arg_tile_15;
            load_transposed(arg_1_band, 1024, arg_tile_0, arg_tile_1, arg_tile_2, arg_tile_3, arg_tile_4, arg_tile_5, arg_tile_6, arg_tile_7, arg_tile_8, arg_tile_9, arg_tile_10, arg_tile_11, arg_tile_12, arg_tile_13, arg_tile_14, arg_tile_15);
            const auto step = [&](long row, f32x16 arg_tile) __attribute__((always_inline)) {
                const float* arg_row = arg + row * 1024;
                float* add_0_row = add_0 + row * 1024;
                const f32x16 add_1 = load16(arg_row + column) + arg_tile;
                store(add_0_row + column, add_1);
            };
            step(band, arg_tile_0);
            step(band + 1, arg_tile_1);
            step(band + 2, arg_tile_2);
            step(band + 3, arg_tile_3);
            step(band + 4, arg_tile_4);
            step(band + 5, arg_tile_5);
            step(band + 6, arg_tile_6);
            step(band + 7, arg_tile_7);
            step(band + 8, arg_tile_8);
            step(band + 9, arg_tile_9);
            step(band + 10, arg_tile_10);
            step(band + 11, arg_tile_11);
            step(band + 12, arg_tile_12);
            step(band + 13, arg_tile_13);
            step(band + 14, arg_tile_14);
            step(band + 15, arg_tile_15);
        }
    }
}

static void @(void* const* pointers, const long* sizes, char* workspace, int* error) {
    parallel(@_0, pointers, sizes, workspace, error, 64, true);
}
