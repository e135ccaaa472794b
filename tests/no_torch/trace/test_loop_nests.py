"""The outermost loops of generated C++, as Inductor writes it."""

from __future__ import annotations

from tcw.compiler.trace.loop_nests import outermost_loops

INDUCTOR = """\
#include <torch/csrc/inductor/cpp_prefix.h>
extern "C"  void  kernel(const float* in_ptr0,
                       float* out_ptr0)
{
    {
        float tmp_acc0_arr[2];
        for (int tid = 0; tid < 2; tid++)
        {
            tmp_acc0_arr[tid] = 0;
        }
        #pragma omp parallel num_threads(2)
        {
            int tid = omp_get_thread_num();
            #pragma omp for
            for(int64_t x0=static_cast<int64_t>(0L); x0<static_cast<int64_t>(64L); x0+=1)
            {
                #pragma GCC ivdep
                for(int64_t x1=static_cast<int64_t>(0L); x1<static_cast<int64_t>(8L); x1+=1)
                {
                    out_ptr0[x0] = in_ptr0[x1];
                }
            }
            #pragma omp single
            {
                {
                    for(int64_t x0=static_cast<int64_t>(0L); x0<static_cast<int64_t>(4L); x0+=1)
                    {
                        out_ptr0[x0] = 0;
                    }
                }
            }
        }
        for(int64_t x0=static_cast<int64_t>(0L); x0<static_cast<int64_t>(4L); x0+=1)
        {
            out_ptr0[x0] = 1;
        }
    }
}
"""


def test_of_inductor() -> None:
    found = [(loop.first, loop.line, loop.last, loop.shared) for loop in outermost_loops(INDUCTOR)]
    assert found == [(14, 15, 22, True), (26, 26, 29, False), (33, 33, 36, False)]


def test_what_is_no_code() -> None:
    assert outermost_loops("") == ()
    assert outermost_loops("for (x) {\n never ends") == ()
