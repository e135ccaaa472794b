extern "C" { DeviceKernel device_kernels[2]; }

static void nest_mul_sum(void* const* pointers, const long* sizes, char* workspace, int* error) {
    {  // mul_sum
        char* w0 = workspace + 0;
        void* arguments[] = {(void*)&pointers[0], &w0, &nothing, &nothing};
        launch(device_kernels[0], 4 * 64, arguments, error);
    }
    {  // mul_sum_1
        char* w0 = workspace + 0;
        void* arguments[] = {&w0, (void*)&pointers[1], &nothing, &nothing};
        launch(device_kernels[1], 8, arguments, error);
    }
}
