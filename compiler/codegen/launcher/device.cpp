// A unit whose kernels run on a GPU. The loader fills `device_kernels`.
struct DeviceKernel { void* function; unsigned threads, shared; };
static __thread void* stream;
static void* nothing;

static inline void launch(const DeviceKernel& kernel, long programs, void** arguments, int* error) {
  if (*error || !programs) return;
  int code = launcher->launch(kernel.function, (unsigned)programs, kernel.threads, kernel.shared,
                              stream, arguments);
  if (code) *error = LAUNCH_FAILED | code << 4;
}

// The same while the kernel before it ends, which must be one of this unit's.
static inline void launch_ahead(const DeviceKernel& kernel, long programs, void** arguments,
                                int* error) {
  if (*error || !programs) return;
  int code = launcher->launch_ahead(kernel.function, (unsigned)programs, kernel.threads,
                                    kernel.shared, stream, arguments);
  if (code) *error = LAUNCH_FAILED | code << 4;
}
