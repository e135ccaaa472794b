"""Hurwitz's zeta function on vectors of float64: the sum of (q + k)^-x over k >= 0.

Some terms and the Euler-Maclaurin remainder (Cephes, zeta.c), as in aten/src/ATen/native/Math.h. A
lane whose further terms are negligible is left unchanged while others go on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcw.compiler.codegen.cpp.vocabulary import arithmetic, functions, special_functions
from tcw.compiler.codegen.cpp.vocabulary.types import INFINITY, NAN

if TYPE_CHECKING:
    from tcw.compiler.codegen.cpp.vocabulary.lanes import Lanes

_DIVISORS = (
    "12.0",
    "-720.0",
    "30240.0",
    "-1209600.0",
    "47900160.0",
    "-1.8924375803183791606e9",
    "7.47242496e10",
    "-2.950130727918164224e12",
    "1.1646782814350067249e14",
    "-4.5979787224074726105e15",
    "1.8152105401943546773e17",
    "-7.1661652561756670113e18",
)
"""(2j)! divided by the Bernoulli number B_2j."""
_TERMS = 9
"""Minimum number of terms of the sum; more follow until q + k exceeds this."""
_EPSILON = "1.11022302462515654042e-16"


def zeta(lanes: Lanes, register: str) -> str:
    """The body of zeta(x, q)."""
    power = functions.function(lanes, "pow", "float64")
    assert power is not None
    floor = arithmetic.of_floats(lanes, "floor", "float64")
    absolute = arithmetic.of_floats(lanes, "abs", "float64").format("rest / sum")
    mask, zero = lanes.signed(8), f"{register}{{}}"
    infinity, nan = (f"{zero} + {number['float64']}" for number in (INFINITY, NAN))
    each = arithmetic.loop(lanes, register, special_functions.of_lane(lanes, "zeta", ("x", "q")))
    go_on = arithmetic.any_wide_lane(lanes, "more")
    left = arithmetic.any_wide_lane(lanes, "left")
    return (
        f"{mask} below = x < 1.0, end = q <= 0.0, whole = q == {floor.format('q')};\n"
        f"  {mask} pole = (x == 1.0) | (end & whole & ~below);\n"
        f"  {mask} none = below | (end & (x != {floor.format('x')}));\n"
        f"  {mask} known = pole | none, left = ~known, more;\n"
        f"  int sums = 0; for (int k = 0; k < {lanes.count}; k++) sums -= (int)left[k];\n"
        f"  if (2 * sums <= {lanes.count}) {{ {each} }}\n"
        f"  {register} a = known ? {zero} + 1.0 : q, sum = {power.format('a', '-x')};\n"
        f"  {register} term = {zero};\n"
        f"  for (int i = 0;; i++) {{\n"
        f"    more = i < {_TERMS} ? left : left & (a <= {_TERMS}.0); if (!({go_on})) break;\n"
        f"    a = more ? a + 1.0 : a; term = more ? {power.format('a', '-x')} : term;\n"
        f"    sum = more ? sum + term : sum;\n"
        f"    left = left & ~((-{_EPSILON} * sum < term) & (term < {_EPSILON} * sum));\n"
        f"  }}\n"
        f"  sum = left ? sum + term * a / (x - 1.0) - 0.5 * term : sum;\n"
        f"  {register} rising = {zero} + 1.0, k = {zero};\n"
        f"  const double divisors[] = {{{', '.join(_DIVISORS)}}};\n"
        f"  for (double divisor : divisors) {{\n"
        f"    if (!({left})) break;\n"
        f"    rising = rising * (x + k); term = term / a;\n"
        f"    {register} rest = rising * term / divisor;\n"
        f"    sum = left ? sum + rest : sum; left = left & ~({absolute} < {_EPSILON});\n"
        f"    rising = rising * (x + k + 1.0); term = term / a; k = k + 2.0;\n"
        f"  }}\n"
        f"  return pole ? {infinity} : none ? {nan} : sum;"
    )
