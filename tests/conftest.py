"""Fixtures that several rooms of tests share."""

from __future__ import annotations

from tests.disks import small_disk

__all__ = ["small_disk"]
