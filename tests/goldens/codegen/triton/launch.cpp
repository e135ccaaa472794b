extern "C" {
DeviceKernel device_kernels[2];
extern const char device_digest[] = "c1c5dbe38249ca41a03cb82be0058697afec4d5c7f23923c919679521868b1bb";
}

static void nest_mul_sum(void* const* pointers, const long* sizes, char* workspace, int* error) {
    {  // mul_sum
        char* w0 = workspace + 0;
        void* arguments[] = {(void*)&pointers[0], &w0, &nothing, &nothing};
        launch(device_kernels[0], 4 * 64, arguments, error);
    }
    {  // mul_sum_1
        char* w0 = workspace + 0;
        void* arguments[] = {&w0, (void*)&pointers[1], &nothing, &nothing};
        launch_ahead(device_kernels[1], 8, arguments, error);
    }
}
