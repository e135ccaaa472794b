"""A layout as PNG, drawn with Pillow."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO

from PIL import Image, ImageDraw, ImageFont
from rich.cells import cell_len

from tcw.viewers.drawing.diagram import Diagram
from tcw.viewers.drawing.layout import DrawnBlocks
from tcw.viewers.drawing.svg import CELL_HEIGHT, CELL_WIDTH, MARGIN, ends_of, pixels_of
from tcw.viewers.kit.colours import LIGHT, fill_of

FACES = ("DejaVuSansMono.ttf", "LiberationMono-Regular.ttf", "Menlo.ttc", "consola.ttf")
PIXELS = 64_000_000
"""Maximum number of pixels of a picture: 256 MB while it is drawn."""


class PictureTooLarge(Exception):
    """The drawing has more pixels than a PNG may have here."""


def png(drawn: Diagram, layout: DrawnBlocks, words: Sequence[Sequence[str]]) -> bytes:
    """The drawing; `words` are the lines of each block, plain. Raises `PictureTooLarge`."""
    width, height = pixels_of(layout)
    if width * height > PIXELS:
        raise PictureTooLarge(f"{width:,} × {height:,} pixels")
    image = Image.new("RGB", (width, height), LIGHT["background"])
    pen = ImageDraw.Draw(image)
    face = _face()
    for line in layout.lines():
        pen.line(ends_of(line), fill=LIGHT["dim"])
    for number, box in enumerate(layout.boxes):
        x, y = MARGIN + box.x * CELL_WIDTH, MARGIN + box.y * CELL_HEIGHT
        corner = (x + box.width * CELL_WIDTH - 1, y + box.height * CELL_HEIGHT - 1)
        fill = LIGHT[fill_of(drawn.blocks[number].hue)]
        pen.rounded_rectangle((x, y, *corner), radius=3, fill=fill)
        for row, said in enumerate(words[number]):
            colour = LIGHT["dim-on-fill"] if row else LIGHT["text"]
            at = x
            for character in said:
                if character != " ":
                    pen.text((at, y + row * CELL_HEIGHT + 1), character, fill=colour, font=face)
                at += cell_len(character) * CELL_WIDTH
    out = BytesIO()
    image.save(out, "PNG")
    return out.getvalue()


def _face() -> ImageFont.ImageFont | ImageFont.FreeTypeFont:
    """A monospace face of this machine, else Pillow's own."""
    for name in FACES:
        try:
            return ImageFont.truetype(name, 14)
        except OSError:
            continue
    return ImageFont.load_default(14)
