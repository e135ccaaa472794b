// The interface between a generated unit and the launcher. Units include no headers: parsing those
// takes longer than compiling the kernels.
struct PyObject;

// A kernel's error code in the low bits of `error`. For an index, the next bits select the wording
// and the bits above hold the dimension. Index and size follow; `run` leaves them in the arena.
enum { DIVISION_BY_ZERO = 1, INDEX_OUT_OF_RANGE = 2, LAUNCH_FAILED = 3,
       OF_INDEX = 1, OF_GATHER = 2, OF_TARGET = 3 };
static inline int ended(const int* error, char* arena) {
  if (!*error) return 0;
  ((long*)arena)[0] = ((const long*)error)[1];
  ((long*)arena)[1] = ((const long*)error)[2];
  return *error;
}

// A tensor that a segment allocates. `shape`: position of its bytes, sizes and strides in `shapes`.
struct Output { int dtype, rank, shape; };

// What a segment returns: a new tensor, a view of one (offset in elements, sizes and strides are in
// `shapes`), an unchanged argument, a number in `shapes`, or None.
enum { NEW, VIEW, ARGUMENT, NUMBER, NOTHING };
struct Result { int kind, index, rank, shape; };

// A run of kernels between two ATen calls.
struct Segment {
  const char* name;
  const char* arguments;                      // one letter each: t tensor, n number, - unused
  int parameters, tensors, numbers, outputs, results;
  const Output* output;
  const Result* result;
  int shape_count;
  const long* shapes;                         // [0] arena bytes, [1] bytes moved, then as above
  void (*shapes_of)(const long* numbers, long* shapes);  // if sizes are symbolic
  // `tensors`: the arguments in order, then the outputs. Returns an error code.
  int (*run)(void* const* tensors, const long* numbers, char* arena);
  int device;                                 // index of the GPU that has its memory; -1: the CPU
};

// Provided by the launcher, which is compiled once and serves all units of the process.
struct Launcher {
  PyObject* (*call)(const Segment*, PyObject* otherwise, PyObject* const* arguments, long count);
  PyObject* (*call_boxed)(const Segment*, PyObject* otherwise, PyObject* list);
  void* (*stream)(int device);                // the current one
  int (*launch)(void* kernel, unsigned programs, unsigned threads, unsigned shared, void* stream,
                void** arguments);
  int (*launch_ahead)(void* kernel, unsigned programs, unsigned threads, unsigned shared,
                      void* stream, void** arguments);
};
struct Method { const char* name; void* function; int flags; const char* words; };
extern "C" { extern const Launcher* launcher; }
