"""The host's end of the board link: feed data, read losses, fetch and send weights. docs/link.md has the protocol."""

from .board import Board, connect
from .errors import DeviceError, LinkError

__all__ = ["Board", "DeviceError", "LinkError", "connect"]
