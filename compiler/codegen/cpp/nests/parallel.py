"""Threads: libgomp's parallel region around units, without its header.

`parallel` gives each thread a contiguous range of units. `parallel_in_turn` distributes blocks
round robin. Blocks add their parts to a total in order. The result therefore has the same bits with
any number of threads, and needs no memory per block.
"""

from __future__ import annotations

from tcw.compiler.codegen.cpp.vocabulary import Vocabulary

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

TURNS = f"""\
typedef void PartInTurn({PARAMETERS}, long first, long blocks, long threads);
struct TaskInTurn {{
    PartInTurn* part;
    void* const* pointers;
    const long* sizes;
    char* workspace;
    int* error;
    long blocks;
}};

void on_each_thread_in_turn(void* data) {{
    const TaskInTurn& task = *(const TaskInTurn*)data;
    const long threads = omp_get_num_threads(), thread = omp_get_thread_num();
    task.part(task.pointers, task.sizes, task.workspace, task.error, thread, task.blocks, threads);
}}

// Thread t takes the blocks t, t + threads, ...: the one whose turn it is is always under way.
void parallel_in_turn(PartInTurn* part, {PARAMETERS}, long blocks, bool large) {{
    if (!large || blocks < 2 || omp_get_max_threads() == 1)
        return part({ARGUMENTS}, 0, blocks, 1);
    TaskInTurn task = {{part, {ARGUMENTS}, blocks}};
    GOMP_parallel(on_each_thread_in_turn, &task, 0, 0);
}}

extern "C" int sched_yield();

void wait_for_turn(const long* turn, long block) {{
    for (long spins = 0; __atomic_load_n(turn, __ATOMIC_ACQUIRE) != block; spins++)
        if (spins > 256)
            sched_yield();
}}

void end_turn(long* turn, long next) {{
    __atomic_store_n(turn, next, __ATOMIC_RELEASE);
}}"""

DECLARATIONS = """\
extern "C" void GOMP_parallel(void (*)(void*), void*, unsigned, unsigned);
extern "C" int omp_get_max_threads();
extern "C" int omp_get_num_threads();
extern "C" int omp_get_thread_num();"""


def need_parallel(vocabulary: Vocabulary) -> None:
    """Add `parallel` to the prelude."""
    vocabulary.need("libgomp", lambda: DECLARATIONS)
    vocabulary.need("parallel", lambda: PARALLEL)


def need_turns(vocabulary: Vocabulary) -> None:
    """Add `parallel_in_turn` and the functions for taking turns to the prelude."""
    need_parallel(vocabulary)
    vocabulary.need("turns", lambda: TURNS)
