"""What notebooks show: a summary, the page in a frame, and progress."""

from __future__ import annotations

import html
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Callable, Optional

if TYPE_CHECKING:
    from ._profile import Layer, Layers, Profile

_STYLE = "border-collapse:collapse;margin:6px 0;font:13px system-ui,sans-serif"
_SHOWN = 5  # slowest layers of a summary


def _scaled(value: float, step: float, units: tuple[str, ...]) -> str:
    for unit in units[:-1]:
        if abs(value) < step:
            return f"{value:.3g} {unit}"
        value /= step
    return f"{value:.3g} {units[-1]}"


def seconds(value: float) -> str:
    """Return a time with its unit."""
    if value >= 1:
        return f"{value:.3g} s"
    return _scaled(value * 1e9, 1000, ("ns", "µs", "ms"))


def size(value: float) -> str:
    """Return a number of bytes with its unit."""
    return _scaled(value, 1024, ("B", "KiB", "MiB", "GiB"))


def _row(cells: list[str], tag: str = "td") -> str:
    style = "text-align:left;padding:2px 12px 2px 0"
    return "<tr>" + "".join(f'<{tag} style="{style}">{html.escape(c)}</{tag}>' for c in cells) + "</tr>"


def _layer_cells(layer: Layer) -> list[str]:
    share = "" if layer.share is None else f"{100 * layer.share:.1f} %"
    latency = "" if layer.latency is None else seconds(layer.latency)
    macs = "" if layer.macs is None else f"{layer.macs:,}".replace(",", " ")
    return [str(layer.index), layer.op, layer.name, latency, share, macs]


_HEAD = ["#", "operator", "name", "latency", "share", "MACs"]


def table(layers: Layers) -> str:
    """Return the table of layers."""
    rows = "".join(_row(_layer_cells(x)) for x in layers)
    return f'<table style="{_STYLE}"><thead>{_row(_HEAD, "th")}</thead><tbody>{rows}</tbody></table>'


def facts(profile: Profile) -> list[tuple[str, str]]:
    """Return the lines of a summary: label and value."""
    out: list[tuple[str, str]] = []
    if profile.latency is not None:
        text = seconds(profile.latency)
        if profile.interval is not None:
            name = "90 % band" if profile.kind == "estimated" else "95 % CI"
            text += f" ({name} {seconds(profile.interval.low)} to {seconds(profile.interval.high)})"
        out.append(("Latency", text))
    if profile.quality is not None:
        text = profile.quality.verdict
        if profile.quality.reasons:
            text += f" ({', '.join(profile.quality.reasons)})"
        out.append(("Quality", text))
    parts = (("RAM", profile.memory.ram), ("flash", profile.memory.flash))
    memory = [f"{k} {size(v)}" for k, v in parts if v is not None]
    if memory:
        out.append(("Memory", " · ".join(memory)))
    return out


def summary(profile: Profile) -> str:
    """Return the summary of a profile: headline, figures, slowest layers."""
    where = f"{profile.target} ({profile.engine})" if profile.engine else profile.target
    title = html.escape(f"{profile.name} on {where}" if where else profile.name)
    lines = "".join(_row([k, v]) for k, v in facts(profile))
    timed = [x for x in profile.layers if x.latency is not None]
    timed.sort(key=lambda x: -(x.latency or 0))
    slowest = "".join(_row(_layer_cells(x)) for x in timed[:_SHOWN])
    out = f'<div style="font:13px system-ui,sans-serif"><b>{title}</b></div><table style="{_STYLE}">{lines}</table>'
    if slowest:
        out += f'<table style="{_STYLE}"><thead>{_row(_HEAD, "th")}</thead><tbody>{slowest}</tbody></table>'
    return out


def frame(page: str) -> str:
    """Return the page in a frame: its scripts run without access to the notebook."""
    # Links within the page would otherwise lead to the address of the notebook.
    page = page.replace("<head>", '<head><base href="about:srcdoc">', 1)
    return (
        '<iframe sandbox="allow-scripts allow-downloads" style="width:100%;height:700px;border:1px solid #8884"'
        f' srcdoc="{html.escape(page)}"></iframe>'
    )


class _Shown:
    """A line that a notebook draws in place."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text

    def _repr_html_(self) -> str:
        return f"<code>{html.escape(self._text)}</code>"


def _in_notebook() -> bool:
    # Only a kernel has this package loaded: without it nothing is imported.
    ipython = sys.modules.get("IPython")
    shell: Any = ipython.get_ipython() if ipython is not None and hasattr(ipython, "get_ipython") else None
    return shell is not None and hasattr(shell, "kernel")


@contextmanager
def progress() -> Iterator[Optional[Callable[[str], None]]]:
    """Yield a function that draws the line of progress, None where nothing can be drawn."""
    if _in_notebook():
        from IPython.display import display

        handle = display(_Shown(""), display_id=True)
        try:
            yield lambda text: handle.update(_Shown(text))
        finally:
            handle.update(_Shown(""))
    elif sys.stderr is not None and sys.stderr.isatty():
        try:
            yield lambda text: print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
        finally:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
    else:
        yield None
