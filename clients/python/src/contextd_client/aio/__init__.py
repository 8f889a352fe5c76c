"""The client for asyncio: the same methods, to be awaited."""

from contextd_client.aio.client import Client

__all__ = ["Client"]
