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
