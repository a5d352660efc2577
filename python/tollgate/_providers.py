"""Replies, estimates and batches of the extension module. Their types are in a file of their own."""

from ._core import (
    BatchCall,
    BatchRun,
    Estimate,
    Estimator,
    Hint,
    LimitReading,
    ReplyReader,
    Tokens,
    estimate_tokens,
    read_reply,
)

__all__ = [
    "BatchCall",
    "BatchRun",
    "Estimate",
    "Estimator",
    "Hint",
    "LimitReading",
    "ReplyReader",
    "Tokens",
    "estimate_tokens",
    "read_reply",
]
