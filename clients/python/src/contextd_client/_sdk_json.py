"""JSON as values that the SDKs can encode again."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from typing import Any

from contextd_client._rawjson import mended

_LARGEST_EXPONENT = 4000


def loads(line: bytes) -> Any:
    """The value of a message.

    SDKs encode requests with the standard encoder, which supports neither numbers beyond a
    double nor lone surrogates. A number that would become infinite is decoded as an integer of
    the same value, and a lone surrogate as U+FFFD.
    """
    value = json.loads(line, parse_float=_number)
    return _mended(value) if b"\\ud" in line.lower() else value


def _number(text: str) -> float | int | str:
    value = float(text)
    if not math.isinf(value):
        return value
    exact = Decimal(text)
    return int(exact) if exact.adjusted() < _LARGEST_EXPONENT else text


def _mended(value: Any) -> Any:
    if isinstance(value, str):
        return mended(value)
    if isinstance(value, list):
        return [_mended(v) for v in value]
    if isinstance(value, dict):
        return {_mended(k): _mended(v) for k, v in value.items()}
    return value
