"""Messages of XLA's compilers and of JAX, parsed from any log: the failure, the amount requested, and the location.

>>> from hlotext import messages
>>> for message in messages.read(open("train.log").read()):    # doctest: +SKIP
...     print(message.kind, message.instruction, message.file, message.line)
"""

from hlotext.messages.message import ListedAllocation, Memory, Message, Messages
from hlotext.messages.reading import read
from hlotext.messages.remedies import remedies

__all__ = ["ListedAllocation", "Memory", "Message", "Messages", "read", "remedies"]
