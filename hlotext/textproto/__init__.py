"""Parser for text-format protos that needs no schema.

>>> from hlotext import textproto
>>> config = textproto.parse('gpu_device_info { core_count: 132 name: "H100" } platform_name: "CUDA"')
>>> config.message("gpu_device_info").integer("core_count"), config.text("platform_name")
(132, 'CUDA')
"""

from hlotext.textproto.reader import TextMessage, TextProtoError, Value, parse

__all__ = ["TextMessage", "TextProtoError", "Value", "parse"]
