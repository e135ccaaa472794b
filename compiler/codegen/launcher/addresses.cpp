// Addresses of Python, torch and libc functions, filled in by the loader. None of them is linked,
// so the same file works with every torch that has them.
struct AtenTensor;
typedef AtenTensor* Tensor;

struct PythonCalls {
  PyObject* (*new_tuple)(long);
  int (*set_in_tuple)(PyObject*, long, PyObject*);
  PyObject* (*new_list)(long);
  int (*set_in_list)(PyObject*, long, PyObject*);
  long (*list_size)(PyObject*);
  PyObject* (*list_item)(PyObject*, long);
  int (*set_slice)(PyObject*, long, long, PyObject*);
  long (*to_long)(PyObject*);
  PyObject* (*from_long)(long);
  PyObject* (*error_occurred)();
  void (*clear_error)();
  void (*set_error)(PyObject*, const char*);
  PyObject* (*format_error)(PyObject*, const char*, ...);
  PyObject* (*vectorcall)(PyObject*, PyObject* const*, unsigned long, PyObject*);
  PyObject* (*attribute)(PyObject*, const char*);
  void (*increase)(PyObject*);
  void (*decrease)(PyObject*);
  void* (*save_thread)();
  void (*restore_thread)(void*);
};
struct TorchCalls {
  void* (*data_pointer)(PyObject*);
  int (*empty_strided)(long, const long*, const long*, int, int, int, Tensor*);
  int (*data_of)(Tensor, void**);
  int (*drop)(Tensor);
  PyObject* (*wrap)(Tensor);
  int (*view)(Tensor, long, const long*, const long*, long, Tensor*);
  int (*from_blob)(void*, long, const long*, const long*, long, int, int, int, Tensor*, int,
                   const unsigned char*, long, void (*)(void*, void*), void*);
};
struct SystemCalls {
  void* (*allocate)(unsigned long, unsigned long);
  void (*release)(void*);
  int (*lock)(void*);
  int (*unlock)(void*);
  int (*clock)(int, long*);
};
// CUlaunchAttribute and CUlaunchConfig of cuda.h.
enum { PROGRAMMATIC_STREAM_SERIALIZATION = 6 };
struct LaunchAttribute { int id; char unused[4]; struct { int allowed; char unused[60]; } value; };
struct LaunchConfig {
  unsigned programs, y, z, threads, threads_y, threads_z, shared;
  void* stream;
  LaunchAttribute* attributes;
  unsigned count;
};
// c10::IntArrayRef, std::optional<c10::Device> and at::TensorBase as C++ passes and returns them.
struct Ints { const long* data; unsigned long size; };
struct MaybeDevice { signed char type, index; bool given; };
struct Held { void* tensor; ~Held() {} };
static_assert(sizeof(Held) == sizeof(void*));
// Of a GPU; null until a unit for one is loaded.
struct DeviceCalls {
  int (*current_stream)(int, void**);
  int (*launch)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*,
                void**, void**);
  int (*launch_with)(const LaunchConfig*, void*, void**, void**);
  int (*get_context)(void**);
  int (*set_context)(void*);
  void* (*room)(unsigned long);  // operator new; null if this torch lacks the next
  Held (*empty_strided)(Ints, Ints, signed char, MaybeDevice);
  void* context;
};
struct PythonObjects { PyObject *none, *index_error, *runtime_error, *type_error, *memory_error; };

extern "C" {
PythonCalls python;
TorchCalls torch_calls;
SystemCalls system_calls;
DeviceCalls device_calls;
PythonObjects objects;
}
