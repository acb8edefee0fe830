"""Turns keyword arguments into flags."""

from __future__ import annotations

import difflib
import numbers
import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Optional, Union

from ._flags import COMMANDS, Flag

# Flags for a terminal and for files: a result in Python has methods for these.
_OUTPUT = frozenset({"all", "by", "details", "format", "memory", "open", "output", "sort", "top"})


def argument(path: Union[str, bytes, os.PathLike[Any]]) -> str:
    """Return a path as an argument: one that begins with a hyphen would be a flag."""
    text = os.fsdecode(path)
    return os.path.join(os.curdir, text) if text.startswith("-") else text


def flags(command: str, options: Mapping[str, Any], folder: Path, taken: Collection[str] = ()) -> list[str]:
    """Return the flags for keyword arguments of a function that runs a command.

    Arrays become .npy files in folder. taken are flags that the function sets itself.
    """
    hidden = {"format", "open", "output"} if command in {"compare", "compress", "report"} else _OUTPUT
    table = {k: f for k, f in COMMANDS[command].items() if k not in hidden and k not in taken}
    out: list[str] = []
    for key, value in options.items():
        flag = table.get(key)
        if flag is None:
            raise TypeError(_unknown(key, table, key in COMMANDS[command] and key not in taken))
        out += _values(key, flag, value, folder)
    return out


def _unknown(key: str, table: Mapping[str, Flag], output: bool) -> str:
    if output:
        return f"{key!r} is for reports: use save() or text() of the result"
    near = difflib.get_close_matches(key, table, n=3)
    hint = f": did you mean {' or '.join(map(repr, near))}?" if near else ""
    return f"unexpected keyword argument {key!r}{hint}"


def _values(key: str, flag: Flag, value: Any, folder: Path) -> list[str]:
    value = _plain(value)
    if value is None:
        return []
    if isinstance(value, bool):
        if not value and flag.takes:
            raise TypeError(f"{key}=False: the flag {flag.name} takes {flag.takes}; leave it out")
        if not flag.bare:
            raise TypeError(f"{key}=True: the flag {flag.name} takes {flag.takes}")
        return [flag.name] if value else []
    if not flag.takes:
        raise TypeError(f"{key}={value!r}: {flag.name} is a switch, use True or False")
    if isinstance(value, Mapping):
        if "=" not in flag.takes:
            raise TypeError(f"{key}: {flag.name} takes {flag.takes}, not a mapping")
        pairs = ((k, _one(flag, v, folder, f"{key}-{i}")) for i, (k, v) in enumerate(value.items()))
        return [f"{flag.name}={k}={v}" for k, v in pairs]
    if flag.many and isinstance(value, (list, tuple, set, frozenset)):
        return [f"{flag.name}={_one(flag, v, folder, f'{key}-{i}')}" for i, v in enumerate(value)]
    return [f"{flag.name}={_one(flag, value, folder, key)}"]


def _plain(value: Any) -> Any:
    """Return the number of a NumPy scalar or of an array without dimensions."""
    if hasattr(value, "item") and hasattr(value, "__array__") and not getattr(value, "shape", ()):
        return value.item()
    return value


def _one(flag: Flag, value: Any, folder: Path, name: str) -> str:
    value = _plain(value)
    if isinstance(value, (str, os.PathLike)):
        return os.fspath(value)
    if isinstance(value, (list, tuple, set, frozenset)):
        between = "x" if flag.takes.endswith("DIMS") else ","
        return between.join(str(_plain(v)) for v in value)
    if isinstance(value, numbers.Number):
        return _number(flag, value)
    path = _array(value, folder / f"{name}.npy")
    return str(value) if path is None else path


def _number(flag: Flag, value: Any) -> str:
    text = str(value) if isinstance(value, int) else f"{float(value):.9f}".rstrip("0").rstrip(".")
    return text + "s" if flag.takes == "TIME" else text


def _array(value: Any, path: Path) -> Optional[str]:
    if not hasattr(value, "__array__") or not getattr(value, "shape", ()):
        return None
    import numpy  # an array is here, and so is its package

    numpy.save(path, numpy.asarray(value), allow_pickle=False)
    return str(path)
