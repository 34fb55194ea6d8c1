"""A picture of a sharding: the first two dimensions of an array, each part with the devices that hold it."""

from __future__ import annotations

from hlotext.findings import escape
from hlotext.ir.values.shape import Shape
from hlotext.ir.values.sharding import Sharding

_WIDTH, _HEIGHT, _MARGIN, _FONT = 720, 420, 40, 12
_MOST_PARTS = 4096
_COLOURS = ("#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#76b7b2", "#edc948", "#b07aa1", "#9c755f")


def sharding_svg(shape: Shape, sharding: Sharding, num_devices: int | None = None) -> str:
    """Returns an SVG of a sharded array: dimension 0 is vertical, dimension 1 horizontal; shards that differ only in
    others share a box.

    Colors show a shard's first device. Raises ValueError for a sharding without device indices (see
    `Sharding.device_indices`), an array without elements, and more than 4,096 shards.
    """
    parts = sharding.device_indices(shape, num_devices)
    sizes = shape.dimensions[:2] if shape.rank > 1 else (1, *(shape.dimensions or (1,)))
    if not all(sizes):
        raise ValueError(f"{shape} has no elements to draw")
    boxes: dict[tuple[int, int, int, int], list[int]] = {}
    for device in sorted(parts):
        held = parts[device][:2] if shape.rank > 1 else (slice(0, 1), *(parts[device] or (slice(0, 1),)))
        down, across = held
        if down.stop > down.start and across.stop > across.start:
            boxes.setdefault((down.start, down.stop, across.start, across.stop), []).append(device)
    if len(boxes) > _MOST_PARTS:
        raise ValueError(f"{len(boxes):,} parts are too many to draw")
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH + 2 * _MARGIN} {_HEIGHT + 2 * _MARGIN}" '
        f'font-family="monospace" font-size="{_FONT}">',
        f'<text x="{_MARGIN}" y="{_MARGIN - 20}">{escape.html(f"{shape} {sharding}")}</text>',
    ]
    for number, ((top, bottom, left, right), devices) in enumerate(boxes.items()):
        x, y = _MARGIN + _WIDTH * left / sizes[1], _MARGIN + _HEIGHT * top / sizes[0]
        width, height = _WIDTH * (right - left) / sizes[1], _HEIGHT * (bottom - top) / sizes[0]
        names = ",".join(map(str, devices[:6])) + (",..." if len(devices) > 6 else "")
        title = f"[{top}:{bottom}, {left}:{right}] on {', '.join(map(str, devices[:64]))}"
        lines.append(
            f'<g><title>{escape.html(title)}</title><rect x="{x:.2f}" y="{y:.2f}" width="{width:.2f}" '
            f'height="{height:.2f}" fill="{_COLOURS[number % len(_COLOURS)]}" fill-opacity="0.35" stroke="#333"/>'
        )
        if width > 8 * len(names) and height > _FONT:
            lines.append(
                f'<text x="{x + width / 2:.2f}" y="{y + height / 2 + _FONT / 3:.2f}" '
                f'text-anchor="middle">{escape.html(names)}</text>'
            )
        lines.append("</g>")
    lines.append("</svg>")
    return "\n".join(lines) + "\n"
