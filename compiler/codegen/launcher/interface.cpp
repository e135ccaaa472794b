// What a generated unit and the launcher agree on. No unit includes a header: those cost more time
// to read than the kernels cost to compile.
struct PyObject;

// What a kernel puts into the low bits of its `error`; of an index the next ones say in whose words,
// those above them the dimension. Index and size follow, and stand in the arena when `run` is over.
enum { DIVISION_BY_ZERO = 1, INDEX_OUT_OF_RANGE = 2, OF_INDEX = 1, OF_GATHER = 2, OF_TARGET = 3 };
static inline int ended(const int* error, char* arena) {
  if (!*error) return 0;
  ((long*)arena)[0] = ((const long*)error)[1];
  ((long*)arena)[1] = ((const long*)error)[2];
  return *error;
}

// A tensor that a segment allocates. `shape` is where its bytes, sizes and strides stand in `shapes`.
struct Output { int dtype, rank, shape; };

// What a segment answers: a new tensor, a view of one (offset in elements, sizes and strides stand
// in `shapes`), an argument as it came, a number of `shapes`, or None.
enum { NEW, VIEW, ARGUMENT, NUMBER, NOTHING };
struct Result { int kind, index, rank, shape; };

// A run of kernels between two ATen calls.
struct Segment {
  const char* name;
  const char* arguments;                      // a letter for each: t tensor, n number, - not used
  int parameters, tensors, numbers, outputs, results;
  const Output* output;
  const Result* result;
  int shape_count;
  const long* shapes;                         // [0] arena bytes, [1] bytes moved, then as above
  void (*shapes_of)(const long* numbers, long* shapes);  // where sizes are symbolic
  // `tensors`: the arguments in order, then the outputs. Answers an error code.
  int (*run)(void* const* tensors, const long* numbers, char* arena);
};

// Made by the launcher, which is compiled once and serves every unit of the process.
struct Launcher {
  PyObject* (*call)(const Segment*, PyObject* otherwise, PyObject* const* arguments, long count);
  PyObject* (*call_boxed)(const Segment*, PyObject* otherwise, PyObject* list);
};
struct Method { const char* name; void* function; int flags; const char* words; };
extern "C" { extern const Launcher* launcher; }
