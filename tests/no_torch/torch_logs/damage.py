"""Damaged logs: a number makes the same one again."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from tests.no_torch.fuzz.damage import EVIL, NUMBERS, WORDS
from tests.no_torch.torch_logs.samples import VERSIONS, log

Damage = Callable[[bytes, Random], bytes]


def _place(data: bytes, random: Random) -> int:
    return random.randrange(len(data) + 1)


def _cut_off(data: bytes, random: Random) -> bytes:
    return data[: _place(data, random)]


def _without_beginning(data: bytes, random: Random) -> bytes:
    return data[_place(data, random) :]


def _gap(data: bytes, random: Random) -> bytes:
    at = _place(data, random)
    return data[:at] + data[at + random.choice((1, 10, 1000, 100_000)) :]


def _noise(data: bytes, random: Random) -> bytes:
    at, size = _place(data, random), random.choice((1, 4, 100, 5000))
    return data[:at] + random.randbytes(size) + data[at + size :]


def _bits(data: bytes, random: Random) -> bytes:
    changed = bytearray(data)
    for _ in range(random.choice((1, 20, 500))):
        changed[random.randrange(len(changed))] ^= 1 << random.randrange(8)
    return bytes(changed)


def _lines(data: bytes, random: Random) -> bytes:
    """Lines doubled, lost, swapped, or of another program."""
    lines = data.split(b"\n")
    for _ in range(random.choice((1, 5, 50))):
        at, other = random.randrange(len(lines)), random.randrange(len(lines))
        turn = random.randrange(4)
        if turn == 0:
            lines.insert(at, lines[other])
        elif turn == 1:
            del lines[at]
        elif turn == 2:
            lines[at], lines[other] = lines[other], lines[at]
        else:
            lines.insert(at, random.choice(WORDS).encode("utf-8", "replace"))
    return b"\n".join(lines)


def _numbers(data: bytes, random: Random) -> bytes:
    """Absurd numbers in the metadata, which have no checksum."""
    lines = data.split(b"\n")
    heads = [at for at, line in enumerate(lines) if line.startswith(b"V")]
    for at in random.sample(heads, min(len(heads), 30)):
        parts = lines[at].split(b": ")
        value = str(random.choice((*NUMBERS, "1e999", "9" * 400, "null", "[]", '"x"'))).encode()
        turn = random.randrange(1, len(parts)) if len(parts) > 1 else 0
        rest = parts[turn].lstrip(b"0123456789.")
        parts[turn] = value + rest if rest != parts[turn] else parts[turn]
        lines[at] = b": ".join(parts)
    return b"\n".join(lines)


def _payloads(data: bytes, random: Random) -> bytes:
    """Hostile payloads whose checksums are right."""
    import hashlib

    chunks = data.split(b"\nV")
    for _ in range(10):
        at = random.randrange(len(chunks))
        head, newline, body = chunks[at].partition(b"\n")
        if not newline or b"has_payload" not in head:
            continue
        words = random.choice((*WORDS, EVIL * 20, "(" * 5000, "| " * 3000 + "+- A: b"))
        rows = body.split(b"\n")
        rows[random.randrange(len(rows))] = b"\t" + words.encode("utf-8", "replace")
        body = b"\n".join(row if row.startswith(b"\t") else b"\t" + row for row in rows)
        plain = body[1:].replace(b"\n\t", b"\n")
        checksum = hashlib.md5(plain, usedforsecurity=False).hexdigest().encode()
        before = head.partition(b'"has_payload": "')[0]
        chunks[at] = before + b'"has_payload": "' + checksum + b'"}\n' + body
    return b"\nV".join(chunks)


DAMAGES: tuple[Damage, ...] = (
    _cut_off, _without_beginning, _gap, _noise, _bits, _lines, _numbers, _payloads,
)  # fmt: skip


def damaged(number: int) -> bytes:
    random = Random(number)
    data = log(VERSIONS[number % 2])
    for damage in (DAMAGES[number // 2 % len(DAMAGES)], *random.sample(DAMAGES, number % 3)):
        data = damage(data, random) or b"\n"
    return data
