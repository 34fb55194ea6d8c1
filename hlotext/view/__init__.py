"""Pictures of what HLO text says: SVG for browsers and notebooks, text for terminals."""

from hlotext.view.layout_picture import LayoutPicture

__all__ = ["LayoutPicture"]
