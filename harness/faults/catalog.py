"""x"""

from __future__ import annotations

from typing import Any

FAULTS: dict[str, Any] = {}
