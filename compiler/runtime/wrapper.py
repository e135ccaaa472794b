"""The Python wrapper of a graph with ATen calls: its text, generated from the memory plan.

    def call(args):
        primals_1, primals_2 = args
        args.clear()
        mm = aten_mm(primals_1, primals_2)        # aten.mm.default
        softmax, = segment_0(mm)
        del mm
        return [softmax]

Names that are not local are bindings, resolved when the artifact is loaded.
"""

from __future__ import annotations

import keyword
from collections.abc import Iterable, Iterator, Mapping, Sequence

from tcw.compiler.codegen.launcher.planned import Forms
from tcw.compiler.codegen.launcher.segment import NUMBER, SegmentFunction
from tcw.compiler.loops.graph import DRAWS, Call, Input, Operand, Result, Subgraph, operands
from tcw.compiler.loops.sizes import Size, Symbolic
from tcw.compiler.memory.plan import Plan, Segment
from tcw.compiler.runtime.artifact import Binding

DENSE = frozenset(
    (
        *(f"aten.{name}.default" for name in ("mm", "bmm", "addmm", "baddbmm")),
        "mkldnn._linear_pointwise.default",
    )
)
"""Operations that always allocate a row-major result, whatever their arguments."""


def wrapper_text(
    plan: Plan, forms: Forms, segments: Iterable[SegmentFunction]
) -> tuple[str, tuple[Binding, ...]]:
    """The wrapper's text, and the bindings of its free names other than the segments."""
    return _Wrapper(plan, forms, segments).write()


class _Wrapper:
    def __init__(self, plan: Plan, forms: Forms, segments: Iterable[SegmentFunction]) -> None:
        self.plan = plan
        self.forms = forms
        self.segments = {segment.name: segment for segment in segments}
        self.graph = forms.program.graph
        self.lines: list[str] = []
        self.bindings: dict[str, Binding] = {}
        self.taken = set(self.graph.values()) | set(self.graph.parameters) | set(self.graph.symbols)
        self.taken |= {step.run.name for step in plan.steps}
        self.bound: set[str] = set()
        self.by_strides = set(self._read_by_strides())
        self.names: dict[str, str] = {}
        self.reserved = {"args", "_", "torch", *self.segments}

    def write(self) -> tuple[str, tuple[Binding, ...]]:
        self._arguments()
        for step in self.plan.steps:
            if isinstance(step.run, Segment):
                self._segment(step.run)
            else:
                self._call(step.run)
            self._delete(step.dies)
        outputs = ", ".join(self._argument(output) for output in self.graph.outputs)
        self.lines.append(f"return [{outputs}]")
        text = "\n    ".join(("def call(args):", *self.lines))
        return f"{text}\n", tuple(self.bindings.values())

    def _read_by_strides(self) -> Iterator[str]:
        """Values whose strides matter: to loops, to views of them, and to whoever receives the
        graph's outputs (AOTAutograd, and the backward graph for saved tensors)."""
        yield from (one.value for one in operands(self.graph.outputs))
        for step in self.plan.steps:
            if isinstance(step.run, Segment):
                yield from step.run.takes
            else:
                keywords = [item for _, item in step.run.keywords]
                for operand in operands((step.run.arguments, keywords)):
                    if not self.forms.fits(operand):
                        yield operand.value

    def _arguments(self) -> None:
        names = [self._local(name) for name in self.graph.parameters]
        if names:
            self.lines.append(f"{', '.join(names)}{',' if len(names) == 1 else ''} = args")
        self.lines.append("args.clear()")
        self.bound.update(self.graph.parameters)
        for node in self.graph.nodes:
            if isinstance(node, Input) and node.constant:
                self._bind(self._local(node.name), "constant", node.name)
        for name, expression in self.graph.symbols.items():
            self.lines.append(f"{self._local(name)} = {expression}")

    def _segment(self, segment: Segment) -> None:
        parameters = self.segments[segment.name].parameters
        names = [p.name if p.kind == NUMBER else self._holder(p.name) for p in parameters]
        arguments = ", ".join(map(self._local, names))
        new = [name for name in segment.gives if self.forms.is_new(name)]
        targets = "".join(f"{self._local(name)}, " for name in new).rstrip()
        if len(new) > 1:
            targets = targets.removesuffix(",")
        self.lines.append(
            f"{targets} = {segment.name}({arguments})" if new else f"{segment.name}({arguments})"
        )
        self.bound.update(new)
        for name in segment.gives:
            if name not in new:
                self.lines.append(f"{self._local(name)} = {self._taken_over(name)}")
                self.bound.add(name)

    def _holder(self, home: str) -> str:
        """A name that holds this memory: its owner's, or that of a value that reuses it."""
        if home in self.bound:
            return home
        others = (value for value in sorted(self.bound) if self.forms.home(value) == home)
        return next(others, home)

    def _taken_over(self, name: str) -> str:
        """The tensor of a value that was written into another value's memory."""
        home = self._holder(self.forms.home(name))
        form, old = self.forms.of(name), self.forms.of(home)
        if (form.dtype, form.sizes, form.strides) == (old.dtype, old.sizes, old.strides):
            return self._local(home)
        return self._view(home, form.dtype, form.sizes, form.strides, 0)

    def _call(self, call: Call) -> None:
        function = self._operation(call.target)
        arguments = [self._argument(item) for item in call.arguments]
        arguments += [f"{name}={self._argument(item)}" for name, item in call.keywords]
        text = f"{function}({', '.join(arguments)})"
        wanted = [result for result in call.results if result is not None]
        note = f"  # {_words(call)}"
        if not wanted:
            self.lines.append(text + note)
        elif call.single:
            self.lines.append(f"{self._local(wanted[0].name)} = {text}{note}")
        elif len(wanted) == 1:
            position = call.results.index(wanted[0])
            self.lines.append(f"{self._local(wanted[0].name)} = {text}[{position}]{note}")
        else:
            targets = [self._local(r.name) if r is not None else "_" for r in call.results]
            self.lines.append(f"{', '.join(targets)} = {text}{note}")
            if "_" in targets:
                self.lines.append("del _")
        for result in wanted:
            self.bound.add(result.name)
            as_asked = call.target in DENSE or call.target.startswith(DRAWS)
            if result.name in self.by_strides and not as_asked:
                self._lay_out(result)

    def _lay_out(self, result: Result) -> None:
        """Enforce the predicted strides: if ATen returns others, the result is copied.

        The comparison here takes half as long as a call that finds them as predicted.
        """
        name = self._local(result.name)
        sizes, strides = _tuple(result.shape), _tuple(result.strides)
        self.lines += [
            f"if {name}.stride() != {strides} or {name}.shape != {sizes}:",
            f"    {name} = {self._helper('laid_out')}({name}, {sizes}, {strides})",
        ]

    def _delete(self, dies: Sequence[str]) -> None:
        dead = [name for name in dies if name in self.bound]
        if dead:
            self.bound.difference_update(dead)
            self.lines.append(f"del {', '.join(self._local(name) for name in dead)}")

    def _argument(self, item: object) -> str:
        if isinstance(item, Operand):
            if self.forms.fits(item):
                return self._local(item.value)
            return self._view(item.value, item.dtype, item.shape, item.strides, item.offset)
        if isinstance(item, Symbolic):
            return str(item)
        if isinstance(item, Subgraph):
            return self._bind(self._local(item.name), "constant", item.name)
        if isinstance(item, tuple):
            inner = ", ".join(self._argument(one) for one in item)
            return f"({inner}{',' if len(item) == 1 else ''})"
        if isinstance(item, list):
            return f"[{', '.join(self._argument(one) for one in item)}]"
        if isinstance(item, dict):
            pairs = (f"{name!r}: {self._argument(one)}" for name, one in item.items())
            return f"{{{', '.join(pairs)}}}"
        return self._literal(item)

    def _literal(self, item: object) -> str:
        if isinstance(item, float) and (item != item or item in (float("inf"), float("-inf"))):
            return f'float("{item}")'
        if item is None or isinstance(item, (bool, int, float, complex, str)):
            return repr(item)
        text = str(item)
        if type(item).__module__.startswith("torch") and text.startswith("torch."):
            self._bind("torch", "helper", "torch")
            return text
        if type(item).__name__ == "device":
            self._bind("torch", "helper", "torch")
            return f"torch.device({text!r})"
        raise TypeError(f"an ATen call has an argument that cannot be written: {item!r:.100}")

    def _view(
        self, value: str, dtype: str, sizes: Sequence[Size], strides: Sequence[Size], offset: Size
    ) -> str:
        shape = f"{_tuple(sizes)}, {_tuple(strides)}, {offset}"
        if dtype == self.forms.of(value).dtype:
            return f"{self._helper('reinterpreted')}({self._local(value)}, {shape})"
        self._bind("torch", "helper", "torch")
        return f"{self._helper('retyped')}({self._local(value)}, torch.{dtype}, {shape})"

    def _local(self, name: str) -> str:
        """A value's name in Python, unchanged if it is a valid identifier."""
        found = self.names.get(name)
        if found is None:
            found = (
                name
                if name.isidentifier()
                else "".join(letter if letter.isalnum() else "_" for letter in name)
            )
            if found != name or keyword.iskeyword(found) or found in self.reserved:
                found = _unused(f"v_{found}", self.taken | set(self.names.values()))
            self.names[name] = found
        return found

    def _operation(self, target: str) -> str:
        for binding in self.bindings.values():
            if binding.kind == "operation" and binding.target == target:
                return binding.name
        namespace, _, rest = target.replace(":", "_").partition(".")
        name, _, overload = rest.rpartition(".")
        wanted = f"{namespace}_{name}" + ("" if overload == "default" else f"_{overload}")
        return self._bind(_unused(wanted.replace(".", "_"), self.taken), "operation", target)

    def _helper(self, name: str) -> str:
        for binding in self.bindings.values():
            if binding.kind == "helper" and binding.target == name:
                return binding.name
        return self._bind(_unused(name, self.taken), "helper", name)

    def _bind(self, name: str, kind: str, target: str) -> str:
        self.bindings[name] = Binding(name, kind, target)  # type: ignore[arg-type]
        self.taken.add(name)
        return name


def _unused(name: str, taken: Iterable[str] | Mapping[str, object]) -> str:
    while name in taken:
        name += "_"
    return name


def _tuple(sizes: Sequence[Size]) -> str:
    return f"({', '.join(map(str, sizes))}{',' if len(sizes) == 1 else ''})"


def _words(call: Call) -> str:
    words = f"{call.target}: {call.reason}" if call.reason else call.target
    return "".join(letter if letter.isprintable() else "?" for letter in words)[:120]
