// From a call by Python to a segment's kernels: take pointers, allocate outputs, return tensors.
// There is no state between calls, so a segment may run on several threads and be reentered.
enum { POOLED = 1 << 20, ON_STACK = 1 << 14, WITHOUT_LOCK = 4 << 20, DENSE = 0, CPU = 0, CUDA = 1, BYTES = 0,
       ALIGNED = 15 };

// data_ptr() of a tensor; null if it has no memory (fake, on the meta device, or empty).
static void* pointer_of(PyObject* tensor) {
  try {
    return torch_calls.data_pointer(tensor);
  } catch (...) {
    return 0;
  }
}

static bool is_empty(PyObject* tensor) {
  PyObject* method = python.attribute(tensor, "numel");
  PyObject* size = method ? python.vectorcall(method, 0, 0, 0) : 0;
  bool empty = size && python.to_long(size) == 0;
  if (python.error_occurred()) python.clear_error();
  if (size) python.decrease(size);
  if (method) python.decrease(method);
  return empty;
}

enum Unpacked { READY, UNSUITED, FAILED };

static Unpacked unpack(const Segment* s, PyObject* const* arguments, void** tensors, long* numbers) {
  for (const char* kind = s->arguments; *kind; kind++, arguments++) {
    if (*kind == 't') {
      void* data = pointer_of(*arguments);
      if (__builtin_expect(!data, 0) && !is_empty(*arguments)) return UNSUITED;
      if (s->device >= 0 && __builtin_expect((long)data & ALIGNED, 0)) return UNSUITED;
      *tensors++ = data;
    } else if (*kind == 'n') {
      long number = python.to_long(*arguments);
      if (__builtin_expect(number == -1, 0) && python.error_occurred()) return FAILED;
      *numbers++ = number;
    }
  }
  return READY;
}

// torch's C ABI goes through the dispatcher to the same function. A `Tensor` is `new at::Tensor`.
static Tensor empty_on_gpu(long rank, const long* sizes, const long* strides, int dtype,
                           int device) {
  Tensor made = 0;
  if (!device_calls.room) {
    torch_calls.empty_strided(rank, sizes, strides, dtype, CUDA, device, &made);
    return made;
  }
  try {
    Ints shape = {sizes, (unsigned long)rank}, steps = {strides, (unsigned long)rank};
    MaybeDevice place = {CUDA, (signed char)device, true};
    Held found(device_calls.empty_strided(shape, steps, dtype, place));
    Held* room = (Held*)device_calls.room(sizeof(Held));
    room->tensor = found.tensor;
    made = (Tensor)room;
  } catch (...) {
  }
  return made;
}

// Allocates one tensor; large ones use pooled memory. `shape`: bytes, sizes, strides.
static Tensor allocate(const Output& output, const long* shape, int device, void** data) {
  const long *sizes = shape + 1, *strides = sizes + output.rank;
  Tensor made = 0;
  if (device >= 0) {
    made = empty_on_gpu(output.rank, sizes, strides, output.dtype, device);
    if (made) torch_calls.data_of(made, data);
    return made;
  }
  if (shape[0] < POOLED || pool_counts.capacity == 0) {
    if (torch_calls.empty_strided(output.rank, sizes, strides, output.dtype, CPU, -1, &made))
      return 0;
    torch_calls.data_of(made, data);
    return made;
  }
  long bytes = shape[0];
  *data = pool_take(bytes);
  if (!*data) return 0;
  if (torch_calls.from_blob(*data, output.rank, sizes, strides, 0, output.dtype, CPU, -1, &made,
                            DENSE, 0, 0, give_storage, (void*)bytes)) {
    pool_give(*data, bytes);
    return 0;
  }
  return made;
}

static PyObject* wrapped(Tensor tensor) {
  try {
    return torch_calls.wrap(tensor);
  } catch (...) {
    if (!python.error_occurred())
      python.set_error(objects.runtime_error, "torch could not make a Python tensor");
    return 0;
  }
}

static PyObject* same(PyObject* object) {
  python.increase(object);
  return object;
}

static PyObject* returned(const Result& r, PyObject* const* arguments, const Tensor* made,
                          const long* shapes) {
  if (r.kind == NEW) return wrapped(made[r.index]);
  if (r.kind == ARGUMENT) return same(arguments[r.index]);
  if (r.kind == NUMBER) return python.from_long(shapes[r.shape]);
  if (r.kind == NOTHING) return same(objects.none);
  const long* shape = shapes + r.shape;
  Tensor view = 0;
  if (torch_calls.view(made[r.index], r.rank, shape + 1, shape + 1 + r.rank, shape[0], &view)) {
    python.set_error(objects.runtime_error, "torch could not make a view of an output");
    return 0;
  }
  PyObject* found = wrapped(view);
  torch_calls.drop(view);
  return found;
}

static PyObject* refuse(int code, const long* found) {
  int words = code >> 4 & 15, dimension = code >> 8;
  if ((code & 15) == INDEX_OUT_OF_RANGE && (words == OF_INDEX || words == OF_GATHER))
    python.format_error(words == OF_INDEX ? objects.index_error : objects.runtime_error,
                        "index %ld is out of bounds for dimension %d with size %ld", found[0],
                        dimension, found[1]);
  else if ((code & 15) == INDEX_OUT_OF_RANGE && words == OF_TARGET)
    python.format_error(objects.index_error, "Target %ld is out of bounds.", found[0]);
  else if ((code & 15) == INDEX_OUT_OF_RANGE)
    python.set_error(objects.index_error, "index out of range in self");
  else if ((code & 15) == LAUNCH_FAILED)
    python.format_error(objects.runtime_error, "CUDA error %d at the launch of a compiled kernel",
                        code >> 4);
  else if (code == DIVISION_BY_ZERO)
    python.set_error(objects.runtime_error, "ZeroDivisionError");
  else
    python.set_error(objects.runtime_error, "a compiled kernel returned an unknown error");
  return 0;
}

static void* stream_of(int device) {
  void* found = 0;
  device_calls.current_stream(device, &found);
  return found;
}

static int launch(void* kernel, unsigned programs, unsigned threads, unsigned shared, void* stream,
                  void** arguments) {
  return device_calls.launch(kernel, programs, 1, 1, threads, 1, 1, shared, stream, arguments, 0);
}

static int launch_ahead(void* kernel, unsigned programs, unsigned threads, unsigned shared,
                        void* stream, void** arguments) {
  LaunchAttribute ahead = {PROGRAMMATIC_STREAM_SERIALIZATION, {}, {1, {}}};
  LaunchConfig config = {programs, 1, 1, threads, 1, 1, shared, stream, &ahead, 1};
  return device_calls.launch_with(&config, kernel, arguments, 0);
}

// The arena is dropped once the kernels are launched: torch hands its memory only to what runs after
// them on the same stream.
static int run_on_device(const Segment* s, void** tensors, const long* numbers, long bytes) {
  void* context = 0;
  device_calls.get_context(&context);
  if (!context) device_calls.set_context(device_calls.context);  // a thread that is new to the GPU
  Tensor arena = 0;
  void* data = 0;
  const long one = 1;
  if (bytes) {
    if (!(arena = empty_on_gpu(1, &bytes, &one, BYTES, s->device))) return -1;
    torch_calls.data_of(arena, &data);
  }
  int code = s->run(tensors, numbers, (char*)data);
  if (arena) torch_calls.drop(arena);
  return code;
}

// `found` receives the index and the size if an index is out of range.
static int run(const Segment* s, void** tensors, const long* numbers, const long* shapes,
               long* found) {
  if (s->device >= 0) return run_on_device(s, tensors, numbers, shapes[0]);
  long bytes = shapes[0];
  char* pooled = bytes > ON_STACK ? pool_take(bytes) : 0;
  if (bytes > ON_STACK && !pooled) return -1;
  char* arena = pooled ? pooled : (char*)__builtin_alloca_with_align(bytes + 64, 512);
  int code;
  if (shapes[1] >= WITHOUT_LOCK) {
    void* thread = python.save_thread();
    code = s->run(tensors, numbers, arena);
    python.restore_thread(thread);
  } else {
    code = s->run(tensors, numbers, arena);
  }
  if (code) found[0] = ((long*)arena)[0], found[1] = ((long*)arena)[1];
  if (pooled) pool_give(pooled, bytes);
  return code;
}

static PyObject* perform(const Segment* s, PyObject* const* arguments, void** tensors,
                         const long* numbers, bool as_list) {
  const long* shapes = s->shapes;
  if (!shapes) {
    long* computed = (long*)__builtin_alloca(s->shape_count * sizeof(long));
    s->shapes_of(numbers, computed);
    shapes = computed;
  }
  Tensor* made = (Tensor*)__builtin_alloca((s->outputs + 1) * sizeof(Tensor));
  int count = 0, code = 0;
  long found[2] = {0, 0};
  for (; count < s->outputs; count++) {
    const Output& output = s->output[count];
    void** data = tensors + s->tensors + count;
    if (!(made[count] = allocate(output, shapes + output.shape, s->device, data))) break;
  }
  if (count == s->outputs) code = run(s, tensors, numbers, shapes, found);
  PyObject* results = 0;
  if (count < s->outputs || code < 0) {
    python.set_error(objects.memory_error, "no memory for the results of a compiled graph");
  } else if (code) {
    refuse(code, found);
  } else if ((results = (as_list ? python.new_list : python.new_tuple)(s->results))) {
    for (int i = 0; i < s->results; i++) {
      PyObject* item = returned(s->result[i], arguments, made, shapes);
      if (!item) {
        python.decrease(results);
        results = 0;
        break;
      }
      (as_list ? python.set_in_list : python.set_in_tuple)(results, i, item);
    }
  }
  while (count > 0) torch_calls.drop(made[--count]);
  return results;
}

// `otherwise` is called if the arguments have no memory, as under FakeTensorMode.
static PyObject* begin(const Segment* s, PyObject* otherwise, PyObject* const* arguments,
                       long count, PyObject* list) {
  if (count != s->parameters) {
    python.set_error(objects.type_error,
                     "a compiled graph was called with a wrong number of arguments");
    return 0;
  }
  void** tensors = (void**)__builtin_alloca((s->tensors + s->outputs + 1) * sizeof(void*));
  long* numbers = (long*)__builtin_alloca((s->numbers + 1) * sizeof(long));
  Unpacked found = unpack(s, arguments, tensors, numbers);
  if (found == READY) return perform(s, arguments, tensors, numbers, list != 0);
  if (found == FAILED) return 0;
  if (otherwise && otherwise != objects.none)
    return list ? python.vectorcall(otherwise, &list, 1, 0)
                : python.vectorcall(otherwise, arguments, count, 0);
  python.set_error(objects.runtime_error,
                   "a compiled graph was called with a tensor that has no memory (fake or meta)");
  return 0;
}

static PyObject* call(const Segment* s, PyObject* otherwise, PyObject* const* arguments,
                      long count) {
  return begin(s, otherwise, arguments, count, 0);
}

// AOTAutograd's boxed convention: arguments are passed in a list, which the callee empties.
static PyObject* call_boxed(const Segment* s, PyObject* otherwise, PyObject* list) {
  long count = python.list_size(list);
  if (count < 0) return 0;
  PyObject** arguments = (PyObject**)__builtin_alloca((count + 1) * sizeof(PyObject*));
  for (long i = 0; i < count; i++) arguments[i] = python.list_item(list, i);
  PyObject* results = begin(s, otherwise, arguments, count, list);
  if (results) python.set_slice(list, 0, python.list_size(list), 0);
  return results;
}

// A tensor of its own, as outputs of segments are allocated. `shape`: bytes, sizes, strides. Called
// from Python with its lock held.
extern "C" PyObject* new_tensor(int dtype, int rank, const long* shape) {
  void* data = 0;
  Tensor made = allocate({dtype, rank, 0}, shape, CPU - 1, &data);
  if (!made) {
    python.set_error(objects.memory_error, "no memory for the result of a call");
    return 0;
  }
  PyObject* found = wrapped(made);
  torch_calls.drop(made);
  return found;
}

extern "C" { extern const Launcher launcher_calls = {call, call_boxed, stream_of, launch,
                                                              launch_ahead}; }
