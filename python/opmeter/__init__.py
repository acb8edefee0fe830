"""Profile neural-network models, operator by operator.

    import opmeter

    p = opmeter.profile("model.onnx", threads=2)
    print(p.latency, p.interval)
    p.layers.to_pandas()

The program opmeter does the work; this package runs it and reads its results.
"""

from __future__ import annotations

from ._errors import (
    InputError,
    Interrupted,
    MissingProgramError,
    OpmeterError,
    OpmeterWarning,
    SourceError,
    UndecidedError,
    UsageError,
    VerdictError,
)
from ._functions import compress, device, estimate, import_record, profile, summary
from ._profile import (
    Comparison,
    Divergence,
    Interval,
    Layer,
    Layers,
    Memory,
    Missing,
    Profile,
    Quality,
    Study,
    compare,
    load,
)
from ._program import find_program, version

__all__ = [
    "Comparison",
    "Divergence",
    "InputError",
    "Interrupted",
    "Interval",
    "Layer",
    "Layers",
    "Memory",
    "Missing",
    "MissingProgramError",
    "OpmeterError",
    "OpmeterWarning",
    "Profile",
    "Quality",
    "SourceError",
    "Study",
    "UndecidedError",
    "UsageError",
    "VerdictError",
    "compare",
    "compress",
    "device",
    "estimate",
    "find_program",
    "import_record",
    "load",
    "profile",
    "summary",
    "version",
]


def __getattr__(name: str) -> str:
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import metadata

    try:
        return metadata.version("opmeter")
    except metadata.PackageNotFoundError:  # a tree of the sources
        return version()
