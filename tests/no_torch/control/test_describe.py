from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tcw.compiler.control.describe import LIMIT, class_name, describe, message_of

plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(plain)
def test_builtins_read_as_python_writes_them(value: object) -> None:
    expected = repr(value)
    if len(expected) <= LIMIT:
        assert describe(value) == expected
    else:
        assert len(describe(value)) <= LIMIT


def test_no_code_of_the_users_runs() -> None:
    class Meta(type):
        def __getattribute__(cls, name: str) -> object:
            raise SystemExit

    class Hostile(metaclass=Meta):
        def __repr__(self) -> str:
            raise SystemExit

        def __getattribute__(self, name: str) -> object:
            raise SystemExit

    class Text(str):
        def __repr__(self) -> str:
            raise SystemExit

    assert describe(Hostile()) == "<Hostile>"
    assert describe([Hostile(), Text("a")]) == "[<Hostile>, <Text>]"
    assert class_name(Hostile()) == "Hostile"


def test_large_values_are_cut() -> None:
    nested: list[object] = []
    nested.append(nested)
    assert len(describe([list(range(100))] * 100)) <= LIMIT
    assert len(describe("x" * 10**6)) == LIMIT
    assert describe(nested).count("…") == 1
    assert describe(10**5000) == "<int>"


def test_messages() -> None:
    class Odd(Exception):
        def __str__(self) -> str:
            raise KeyError

    assert message_of(ValueError("no")) == "no"
    assert message_of(Odd()) == "(its message could not be read: KeyError)"
    assert len(message_of(ValueError("x" * 10**6))) == 4000
