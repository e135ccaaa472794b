"""Names that no identifier of the generated C++ may have."""

from __future__ import annotations

from tcw.compiler.codegen.cpp.vocabulary import NAMES
from tcw.compiler.loops.operators import OPERATORS

WORDS = """\
alignas and asm auto bool bitand bitor break case catch char class compl concept const continue
default delete do double else enum explicit export extern false float for friend goto if inline
int long mutable namespace new not operator or private protected public register requires
return short signed sizeof static struct switch template this throw true try typedef typename
union unsigned using virtual void volatile while xor

block unit_begin unit_end row_step step count i k lane
wrapped checked wrapped_checked out_of_range code
Part Task parallel on_each_thread threads turn wait_for_turn end_turn
PartInTurn TaskInTurn parallel_in_turn on_each_thread_in_turn
"""

RESERVED = frozenset(WORDS.split()) | frozenset(OPERATORS) | NAMES
"""C++ keywords and the names of functions in the prelude, which variables must not shadow."""
