"""Runs a notebook without a browser, and writes what it shows: notebook.py MODEL PAGE.html.

Needs nbclient, nbformat, ipykernel and pandas. The interpreter is the kernel.
"""

from __future__ import annotations

import html
import sys
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

CELLS = (
    "import opmeter",
    "p = opmeter.profile({model!r}, time=1.5, engine='opmeter')\np",
    "p.layers",
    "p.layers.to_pandas().sort_values('latency_s', ascending=False).head(3)[['op', 'latency_s', 'share']]",
    "e = opmeter.estimate({model!r}, on='stm32h743')\nprint(e.latency, e.interval)\np.compare(e)",
    "try:\n    opmeter.profile({model!r}, thread=2)\nexcept TypeError as e:\n    print(e)",
)


def outputs(cell: Any, kind: str) -> str:
    """Return what a cell shows, of a MIME type; stream is for text that it prints."""
    texts = []
    for out in cell.outputs:
        texts.append(out.get("text", "") if kind == "stream" else out.get("data", {}).get(kind, ""))
    return "".join(texts)


def main(model: str, page: str) -> None:
    """Run the notebook, check what it shows, and write that as a page."""
    book = nbformat.v4.new_notebook()
    book.cells = [nbformat.v4.new_code_cell(c.format(model=model)) for c in CELLS]
    drawn: list[str] = []

    def seen(cell: Any, cell_index: int, execute_reply: Any) -> None:
        drawn.append(f"cell {cell_index}")

    client = NotebookClient(book, timeout=None, kernel_name="python3", on_cell_executed=seen)
    messages: list[str] = []
    process = client.process_message

    def watch(msg: Any, cell: Any, cell_index: int) -> Any:
        if msg["msg_type"] == "update_display_data":
            messages.append(msg["content"]["data"].get("text/plain", ""))
        return process(msg, cell, cell_index)

    client.process_message = watch  # type: ignore[method-assign]
    client.execute()
    assert len(drawn) == len(CELLS), drawn
    assert any("measuring" in m or "loading" in m for m in messages), f"no progress: {messages}"
    first = outputs(book.cells[1], "text/html")
    assert "Latency" in first and "<iframe" in first and 'sandbox="allow-scripts' in first, first[:500]
    assert "CONV_2D" in outputs(book.cells[2], "text/html")
    assert "<table" in outputs(book.cells[3], "text/html")
    assert "<iframe" in outputs(book.cells[4], "text/html")
    assert "did you mean 'threads'" in outputs(book.cells[5], "stream")
    body = ""
    for cell in book.cells:
        body += f"<pre style='background:#8882;padding:6px'>{html.escape(cell.source)}</pre>"
        body += outputs(cell, "text/html") or f"<pre>{outputs(cell, 'stream')}</pre>"
    Path(page).write_text(f"<!doctype html><meta charset=utf-8><body>{body}", encoding="utf-8")
    print(f"{len(CELLS)} cells, {len(messages)} updates of progress")


if __name__ == "__main__":
    main(*sys.argv[1:])
