"""The command that installs a missing optional package; it depends on how mam was installed."""

from __future__ import annotations

import os
import shlex
import sys

NAME = "mam-jobs"
APSW = "apsw>=3.51.3"


def command_for(extra: str) -> str:
    return command_to_install(*_packages(extra))


def command_to_install(*packages: str) -> str:
    return _installer() + " ".join(map(shlex.quote, packages))


def _installer() -> str:
    """pipx and uv leave a receipt in the environment; the shell's pip would install into another one."""
    if os.path.exists(os.path.join(sys.prefix, "pipx_metadata.json")):
        return f"pipx inject {NAME} "
    if os.path.exists(os.path.join(sys.prefix, "uv-receipt.toml")):
        return f"uv pip install --python {shlex.quote(sys.prefix)} "
    return f"{shlex.quote(sys.executable)} -m pip install "


def _packages(extra: str) -> list[str]:
    from importlib.metadata import PackageNotFoundError, requires

    try:
        lines = [line.partition(";") for line in requires(NAME) or []]
    except PackageNotFoundError:
        lines = []
    wanted = [package.strip() for package, _, when in lines if when.replace("'", '"').strip() == f'extra == "{extra}"']
    return wanted or [f"{NAME}[{extra}]"]
