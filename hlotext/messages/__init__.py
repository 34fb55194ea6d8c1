"""Parser for messages of XLA and JAX in logs, which extracts the failure, the memory requested and the location.

>>> from hlotext import messages
>>> for message in messages.read(open("train.log").read()):    # doctest: +SKIP
...     print(message.kind, message.instruction, message.file, message.line)
"""

from typing import TYPE_CHECKING

from hlotext.ir.lazy_imports import lazy_submodules
from hlotext.messages.message import ListedAllocation, Memory, Message, Messages
from hlotext.messages.remedies import remedies

if TYPE_CHECKING:
    from hlotext.messages.reading import read

__getattr__ = lazy_submodules(__name__, reading=("read",))

__all__ = ["ListedAllocation", "Memory", "Message", "Messages", "read", "remedies"]
