"""Which nests are shared among threads, and how their elements are divided."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from tests.cpu.codegen.texts import text


def test_a_small_nest_has_no_threads() -> None:
    body = text(lambda x: x * 2 + 1, torch.randn(8), comment="y = x * 2 + 1")
    assert "parallel" not in body
    assert len(body.splitlines()) < 14, body


def test_elements_of_eight_bytes_are_twice_the_work_to_share() -> None:
    x = torch.randn(1 << 14)
    assert "parallel" not in text(lambda x: -x + 1, x, comment="y = -x + 1")
    assert "parallel" in text(lambda x: -x + 1, x.double(), comment="y = -x + 1")
    assert "parallel" not in text(lambda x: x.fill_(2.0), x, comment="x.fill_(2.0)")


def test_what_eager_shares_is_shared() -> None:
    """ATen shares from 32,768 elements on, and leaves them in the caches of several cores."""
    for name in ("neg", "clone", "sqrt"):
        words = text(getattr(torch, name), torch.rand(1 << 16), comment=f"y = torch.{name}(x)")
        assert "parallel(" in words, name
    fill = text(torch.zeros_like, torch.rand(1 << 15).double(), comment="y = zeros_like(x)")
    assert "parallel(" in fill, "numbers of 8 bytes that nothing reads are moved too"


def test_threads_write_a_diagonal_into_lines_that_they_have_filled() -> None:
    body = text(torch.diag_embed, torch.rand(64, 64), comment="y = torch.diag_embed(x)")
    assert body.count("    parallel(") == 2, body
    small = text(torch.diag_embed, torch.rand(16, 16), comment="y = torch.diag_embed(x)")
    assert "    parallel(" not in small, small


def test_elements_that_lie_apart_move_a_line_each() -> None:
    x = torch.randn(16_000)

    def column(x: torch.Tensor, wide: torch.Tensor) -> torch.Tensor:
        wide[:, 0] = x
        return wide

    assert "parallel" not in text(lambda x: x.clone(), x, comment="y = x.clone()")
    wide = torch.empty(16_000, 20)
    assert "parallel" in text(column, x, wide, comment="wide[:, 0] = x")


def test_elements_that_an_index_chooses_far_apart_move_a_line_each() -> None:
    """A plane of 90 elements gets three; a row of three, or a table that stays in L1, gets all."""

    def calls(planes: int, size: int, count: int) -> int:
        x = torch.ones(planes, size)
        index = torch.arange(count).repeat(planes, 1) * (size // count)
        source = torch.ones(planes, count)
        words = text(lambda x, i, s: x.scatter(1, i, s), x, index, source, comment="x.scatter()")
        return words.count("    parallel(")

    assert calls(5000, 90, 3) == 2, "the copy, and what is scattered into its lines"
    assert calls(5000, 3, 3) == 0
    assert calls(500, 90, 3) == 0, "not worth a team"

    def picked(table: int) -> str:
        index = torch.arange(9000) * 997 % table
        return text(lambda x, i: x[i], torch.ones(table), index, comment="y = x[i]")

    assert "parallel(" not in picked(1000)
    assert "parallel(" in picked(1 << 16)


def test_threads_take_ranges_of_what_they_write() -> None:
    """The lanes lie outside the rows in memory: a thread that took rows would write into all lines
    of the result, and so would the others."""
    x = torch.randn(3, 1 << 16)
    words = text(lambda x: x.t().contiguous(), x, comment="y = x.t().contiguous()")
    assert "const long part = unit / 3;" in words
    assert "const long row = unit % 3;" in words
    x = torch.randn(10, 15, 19, 19, 19)
    planes = text(lambda x: F.interpolate(x, size=(3, 3, 3)), x, comment="y = F.interpolate(x)")
    assert "const long part = unit / 27;" in planes, "a plane of 27 elements is less than two lines"
    assert "const long start = part * 64;" in planes
    words = text(lambda x: x.t().contiguous(), torch.randn(3, 8000), comment="y = x.t()")
    assert "const long part = unit / 3;" in words
    assert "const long start = part * 256;" in words


def test_few_rows_of_many_columns_are_not_divided() -> None:
    """Adding the partial sums of a block would take longer than its one or two rows."""
    few = text(lambda x: x.sum(0), torch.randn(81, 13041), comment="y = x.sum(0)")
    assert "parallel_in_turn" not in few
    assert "parallel(" in few
    many = text(lambda x: x.sum(0), torch.randn(1024, 8192), comment="y = x.sum(0)")
    assert "parallel_in_turn" in many
