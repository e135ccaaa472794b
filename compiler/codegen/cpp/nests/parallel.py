"""Threads: libgomp's parallel region around a run of units, without a header."""

from __future__ import annotations

from compiler.codegen.cpp.vocabulary import Vocabulary

PARAMETERS = "void* const* pointers, const long* sizes, char* workspace, int* error"
ARGUMENTS = "pointers, sizes, workspace, error"

PARALLEL = f"""\
typedef void Part({PARAMETERS}, long begin, long end);
struct Task {{
    Part* part;
    void* const* pointers;
    const long* sizes;
    char* workspace;
    int* error;
    long units;
}};

void on_each_thread(void* data) {{
    const Task& task = *(const Task*)data;
    const long threads = omp_get_num_threads(), thread = omp_get_thread_num();
    const long begin = task.units * thread / threads, end = task.units * (thread + 1) / threads;
    if (begin < end)
        task.part(task.pointers, task.sizes, task.workspace, task.error, begin, end);
}}

void parallel(Part* part, {PARAMETERS}, long units, bool large) {{
    if (!large || units < 2 || omp_get_max_threads() == 1)
        return part({ARGUMENTS}, 0, units);
    Task task = {{part, {ARGUMENTS}, units}};
    GOMP_parallel(on_each_thread, &task, 0, 0);
}}"""

DECLARATIONS = """\
extern "C" void GOMP_parallel(void (*)(void*), void*, unsigned, unsigned);
extern "C" int omp_get_max_threads();
extern "C" int omp_get_num_threads();
extern "C" int omp_get_thread_num();"""


def need_parallel(vocabulary: Vocabulary) -> None:
    """Put `parallel` into the prelude."""
    vocabulary.need("libgomp", lambda: DECLARATIONS)
    vocabulary.need("parallel", lambda: PARALLEL)
