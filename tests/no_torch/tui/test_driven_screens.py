"""The screens of a compile that waits, as text and as pictures."""

from __future__ import annotations

import pytest

from tests.conftest import Golden
from tests.no_torch.tui.conftest import Drive, Driver
from tests.no_torch.tui.driven import forbidden

SIZES = [(80, 24), (120, 40)]
REJECTED = {"default": "apart", "rule": "domain", "forbidden": (forbidden(),)}


async def _start(driver: Driver) -> None:
    pass


async def _decision(driver: Driver) -> None:
    await driver.press("d")


async def _refused(driver: Driver) -> None:
    await driver.press("d", "f", "j")


async def _what_if(driver: Driver) -> None:
    await driver.press("d", "w")


async def _overrides(driver: Driver) -> None:
    await driver.press("d", "w", "K", "O")


SCREENS = {
    "live-start": (_start, {}),
    "live-decision": (_decision, {}),
    "live-refused": (_refused, {"asked": REJECTED}),
    "live-what-if": (_what_if, {}),
    "live-overrides": (_overrides, {}),
}


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("name", SCREENS)
async def test_screen(name: str, size: tuple[int, int], drive: Drive, golden: Golden) -> None:
    walk, state = SCREENS[name]
    async with drive(size, **state) as driver:
        await walk(driver)
        assert driver.cells() == [size[0]] * size[1]
        golden(f"tui/{name}-{size[0]}x{size[1]}.txt", driver.text())
        golden(f"tui/{name}-{size[0]}x{size[1]}.svg", driver.svg())


async def test_light(drive: Drive, golden: Golden) -> None:
    async with drive((120, 40), "light") as driver:
        await _decision(driver)
        golden("tui/live-decision-120x40-light.svg", driver.svg())
