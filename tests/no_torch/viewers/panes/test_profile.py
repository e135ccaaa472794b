"""The user's words in the panes of a profile."""

from __future__ import annotations

from msgspec import structs

from tcw.compiler.trace.records import (
    Account,
    AnyRecord,
    CallProfile,
    Ceilings,
    CompiledStep,
    EagerOperation,
    Kernel,
    ModeRow,
    Region,
)
from tcw.viewers.panes import account, region, waterfall
from tests.no_torch import profiles
from tests.no_torch.viewers.panes.profile_views import texts, view_of

EVIL = "a\x1b[31m[bold]b\n\u202ec 漢字\t"


def test_the_users_words_are_data() -> None:
    records: list[AnyRecord] = []
    for one in profiles.wrong_kernel():
        if isinstance(one, Region):
            one = structs.replace(one, label=EVIL, modules=(EVIL,))
        elif isinstance(one, EagerOperation):
            one = structs.replace(one, operation=EVIL, arguments=EVIL, module=EVIL)
        elif isinstance(one, CompiledStep | ModeRow):
            one = structs.replace(one, name=EVIL)
        elif isinstance(one, Kernel):
            one = structs.replace(one, name=EVIL, label=EVIL)
        elif isinstance(one, CallProfile):
            one = structs.replace(one, what=EVIL, unmeasured=EVIL)
        elif isinstance(one, Ceilings):
            one = structs.replace(one, device=EVIL, rates={EVIL: 1e9})
        elif isinstance(one, Account):
            lines = tuple(structs.replace(line, name=EVIL, what=EVIL) for line in one.lines)
            one = structs.replace(one, lines=lines)
        records.append(one)
    view = view_of(records, region="r3", unfolded={"profile:noise:"}, region_filter="")
    for pane in (waterfall.content, region.why, region.eager, region.compiled, account.content,
                 account.modes, account.precision):  # fmt: skip
        for width in (40, 107):
            content = pane(view, width)
            said = [content.subject, *(span for span, _ in content.right)]
            assert "".join((*said, *texts(content))).isprintable(), pane
    for row in waterfall.selection(view, 100):
        assert row.text.isprintable()
