"""What several tests use: a model, and a device that plays a recording."""

from __future__ import annotations

import os
import socket
import tempfile
import threading
import unittest
from pathlib import Path

from opmeter._program import run

ROOT = Path(__file__).resolve().parent.parent.parent


def shared(*parts: str) -> Path:
    """Return a file of the reference material; skip the test without it."""
    path = Path(os.environ.get("OPMETER_SHARED", ROOT.parent / "shared"), *parts)
    if not path.exists():
        raise unittest.SkipTest(f"reference material {'/'.join(parts)} is absent: set OPMETER_SHARED to its folder")
    return path


class ModelCase(unittest.TestCase):
    """A test with a small model in a folder of its own."""

    folder: Path
    model: Path

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        holder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(holder.cleanup)
        cls.folder = Path(holder.name)
        cls.model = cls.folder / "net.tflite"
        run(["build", str(ROOT / "examples" / "ds_cnn.yaml"), f"--output={cls.model}"])


class Player:
    """A device at a TCP port that plays a recording to who connects, and then is silent."""

    def __init__(self, recording: bytes) -> None:
        self._server = socket.create_server(("127.0.0.1", 0))
        self._recording = recording
        self._ended = threading.Event()
        self.played = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self.port = f"tcp:127.0.0.1:{self._server.getsockname()[1]}"

    def _serve(self) -> None:
        connection, _ = self._server.accept()
        with connection:
            connection.sendall(self._recording)
            self.played.set()
            self._ended.wait()

    def __enter__(self) -> Player:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._server.close()
