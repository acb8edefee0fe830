"""Finds the program and runs it."""

from __future__ import annotations

import codecs
import os
import queue
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import threading
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Callable, NamedTuple, Optional

from ._errors import Interrupted, MissingProgramError, OpmeterError, OpmeterWarning, failure

_CLEAR = "\r\x1b[K"  # begins each drawing of the line of progress
_STOPPED = 130  # exit status of a command that was interrupted before it had a result


def find_program() -> str:
    """Return the path of the program: beside this package, else in PATH."""
    name = "opmeter.exe" if os.name == "nt" else "opmeter"
    folders = [sysconfig.get_path("scripts")]
    user = f"{os.name}_user"
    if sys.platform == "darwin" and getattr(sys, "_framework", ""):
        user = "osx_framework_user"
    if user in sysconfig.get_scheme_names():
        folders.append(sysconfig.get_path("scripts", user))
    # pip install --target DIR puts programs into DIR/bin.
    folders.append(str(Path(__file__).resolve().parent.parent / "bin"))
    for folder in folders:
        path = os.path.join(folder, name)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    found = shutil.which("opmeter")
    if found is None:
        raise MissingProgramError(
            f"the program {name} is not in {', '.join(folders)} or PATH: "
            "reinstall the package with pip install --force-reinstall opmeter",
            127,
        )
    return found


def environment() -> dict[str, str]:
    """Return the variables of the program: engines of this environment come first."""
    return {**os.environ, "VIRTUAL_ENV": sys.prefix}


class Output(NamedTuple):
    """What a command wrote to standard output and standard error."""

    text: str
    messages: list[str]

    def warn(self) -> None:
        """Show the remarks of a successful command as warnings."""
        for message in self.messages:
            if message.startswith("opmeter: "):
                warnings.warn(message[len("opmeter: ") :], OpmeterWarning, stacklevel=4)


class _Lines:
    """Splits standard error into messages and the line of progress."""

    def __init__(self, progress: Optional[Callable[[str], None]]) -> None:
        self.messages: list[str] = []
        self._progress = progress
        self._rest = ""

    def feed(self, text: str) -> None:
        self._rest += text
        while True:
            clear, end = self._rest.find(_CLEAR), self._rest.find("\n")
            if clear >= 0 and (end < 0 or clear < end):
                self._rest = self._rest[clear + len(_CLEAR) :]
            elif end >= 0:
                line = self._rest[:end].rstrip("\r")
                self._rest = self._rest[end + 1 :]
                if line:
                    self.messages.append(line)
            else:
                break
        shown = self._rest.partition("\r")[0]
        if shown and self._progress is not None:
            self._progress(shown)


def _read(stream: IO[bytes], pieces: queue.Queue[Optional[str]]) -> None:
    decode = codecs.getincrementaldecoder("utf-8")("replace").decode
    while True:
        data = os.read(stream.fileno(), 65536)
        if not data:
            break
        pieces.put(decode(data))
    pieces.put(None)


def _start(args: Sequence[str], out: IO[bytes]) -> subprocess.Popen[bytes]:
    # Progress is a line that is drawn anew: plain lines would be taken for remarks. Standard input
    # ends with this process, however that ends, and the program then ends, too.
    env = {**environment(), "OPMETER_PROGRESS": "1", "OPMETER_PARENT": "stdin"}
    # In a group of its own the program gets Ctrl-C only from here, once.
    if sys.platform == "win32":
        return subprocess.Popen(
            [find_program(), *args],
            stdin=subprocess.PIPE,
            stdout=out,
            stderr=subprocess.PIPE,
            env=env,
            creationflags=subprocess.CREATE_NEW_PROCESS_GROUP,
        )
    return subprocess.Popen(
        [find_program(), *args],
        stdin=subprocess.PIPE,
        stdout=out,
        stderr=subprocess.PIPE,
        env=env,
        start_new_session=True,
    )


def _interrupt(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        if sys.platform == "win32":
            process.send_signal(signal.CTRL_BREAK_EVENT)
        else:
            process.send_signal(signal.SIGINT)


def run(
    args: Sequence[str],
    progress: Optional[Callable[[str], None]] = None,
    stop: Optional[threading.Event] = None,
) -> Output:
    """Run a command; progress is told the line of progress.

    Ctrl-C lets the program end by itself and raises Interrupted; a second one kills it. So does
    stop, set by another thread, but without an exception where there are results.
    """
    lines = _Lines(progress)
    with tempfile.TemporaryFile() as out:
        process = _start(args, out)
        try:
            interrupted = _follow(process, lines, stop)
            status = process.wait()
        except BaseException:
            process.kill()
            process.wait()
            raise
        finally:
            assert process.stdin is not None
            process.stdin.close()
        out.seek(0)
        output = Output(out.read().decode("utf-8", "replace"), lines.messages)
    if interrupted or (status == _STOPPED and stop is not None and stop.is_set()):
        raise Interrupted(_text(output.messages) or "stopped")
    if status != 0:
        raise failure(_text(output.messages) or f"opmeter ended with status {status}", status)
    return output


def _follow(process: subprocess.Popen[bytes], lines: _Lines, stop: Optional[threading.Event]) -> bool:
    """Read standard error to its end. Return whether Ctrl-C was pressed."""
    assert process.stderr is not None
    pieces: queue.Queue[Optional[str]] = queue.Queue()
    threading.Thread(target=_read, args=(process.stderr, pieces), daemon=True).start()
    interrupted = stopped = False
    while True:
        try:
            if stop is not None and stop.is_set() and not stopped:
                stopped = True
                _interrupt(process)
            piece = pieces.get(timeout=0.2)
            if piece is None:
                process.stderr.close()
                return interrupted
            lines.feed(piece)
        except queue.Empty:
            continue
        except KeyboardInterrupt:
            if interrupted:
                raise
            interrupted = True
            _interrupt(process)


def _text(messages: list[str]) -> str:
    prefix = "opmeter: "
    errors = [m[len(prefix) :] for m in messages if m.startswith(prefix)]
    return errors[-1] if errors else "\n".join(messages[-3:])


def version() -> str:
    """Return the version of the program."""
    return run(["version"]).text.split()[2]  # opmeter version V (commit …, DATE)


def execute(args: Sequence[str]) -> int:
    """Become the program; where the system cannot do that, run it and return its status."""
    try:
        program = find_program()
    except OpmeterError as e:
        print(f"opmeter: {e}", file=sys.stderr)
        return 127
    if os.name == "posix":
        sys.stdout.flush()
        sys.stderr.flush()
        os.execve(program, [program, *args], environment())
    return subprocess.run([program, *args], env=environment(), check=False).returncode
