"""The results: profiles, their layers, comparisons, studies."""

from __future__ import annotations

import json
import os
import re
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, Optional, Union, overload

from . import _notebook
from ._errors import InputError, OpmeterWarning
from ._models import is_torch, model_path
from ._options import argument, flags
from ._program import run

# Characters that a file's name cannot have on some system.
_NO_NAME = re.compile(r'[<>:"/\\|?*\x00-\x1f]')
_MODELS = (".onnx", ".tflite", ".gguf", ".litertlm", ".mltk.zip", ".yaml", ".yml")

PathLike = Union[str, "os.PathLike[str]"]


class Interval(NamedTuple):
    """Lower and upper end: a 95 % confidence interval, or the 90 % band of an estimate."""

    low: float
    high: float


class Quality(NamedTuple):
    """How far a measurement can be trusted.

    verdict is good, fair or unreliable; fit says what for: comparing, shares or nothing. tolerance is the
    share by which the latency may differ from that on a quiet machine. reasons are codes.
    """

    verdict: str
    fit: Optional[str]
    tolerance: Optional[float]
    reasons: tuple[str, ...]


class Missing(NamedTuple):
    """What a profile lacks.

    cause is a code, such as end or record; text says more. layers are indices, () for the whole
    model. got and want count what is there and what was expected, None where unknown.
    """

    cause: str
    text: str
    layers: tuple[int, ...]
    got: Optional[int]
    want: Optional[int]


class Memory(NamedTuple):
    """Bytes of memory, None where unknown."""

    ram: Optional[int]
    flash: Optional[int]
    arena: Optional[int]
    peak: Optional[int]
    process_peak: Optional[int]


def _interval(figure: Any) -> Optional[Interval]:
    if isinstance(figure, dict):
        pair = figure.get("ci95") or figure.get("band")
        if pair:
            return Interval(pair[0], pair[1])
    return None


def _median(figure: Any) -> Optional[float]:
    return figure.get("median") if isinstance(figure, dict) else None


class Layer:
    """A layer of a profile. data is its part of the JSON; unknown figures are None."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self.data = data

    @property
    def index(self) -> int:
        """Position in the model, from 0."""
        return int(self.data["index"])

    @property
    def name(self) -> str:
        """Name in the model."""
        return str(self.data.get("name", ""))

    @property
    def op(self) -> str:
        """Operator, such as CONV_2D."""
        return str(self.data["op"])

    @property
    def state(self) -> str:
        """What became of the layer, such as ran or folded."""
        return str(self.data.get("state", ""))

    @property
    def latency(self) -> Optional[float]:
        """Median latency in seconds."""
        return _median(self.data.get("latency_s"))

    @property
    def interval(self) -> Optional[Interval]:
        """Interval of the latency in seconds."""
        return _interval(self.data.get("latency_s"))

    @property
    def share(self) -> Optional[float]:
        """Share of the latency of the model, from 0 to 1."""
        return self.data.get("share")

    @property
    def macs(self) -> Optional[int]:
        """Multiply-accumulate operations."""
        return self.data.get("macs")

    @property
    def ops(self) -> Optional[int]:
        """Operations."""
        return self.data.get("ops")

    @property
    def params(self) -> Optional[int]:
        """Parameters."""
        return self.data.get("params")

    def to_dict(self) -> dict[str, Any]:
        """Return the figures by key: medians, and the ends of their intervals."""
        row: dict[str, Any] = {}
        for key, value in self.data.items():
            if isinstance(value, (bool, int, float, str)):
                row[key] = value
            elif _median(value) is not None:
                row[key] = value["median"]
                ends = _interval(value)
                if ends is not None:
                    row[key + "_low"], row[key + "_high"] = ends
        for key, figure in (self.data.get("figures") or {}).items():
            if key not in row and _median(figure) is not None:
                row[key] = figure["median"]
        return row

    def __repr__(self) -> str:
        time = "" if self.latency is None else f": {_notebook.seconds(self.latency)}"
        return f"<Layer {self.index} {self.op} {self.name!r}{time}>"


class Layers(Sequence[Layer]):
    """The layers of a profile, as a sequence and as a table."""

    def __init__(self, layers: Sequence[Layer]) -> None:
        self._layers = tuple(layers)

    def __len__(self) -> int:
        return len(self._layers)

    @overload
    def __getitem__(self, index: int) -> Layer: ...

    @overload
    def __getitem__(self, index: slice) -> Layers: ...

    def __getitem__(self, index: Union[int, slice]) -> Union[Layer, Layers]:
        if isinstance(index, slice):
            return Layers(self._layers[index])
        return self._layers[index]

    def __iter__(self) -> Iterator[Layer]:
        return iter(self._layers)

    def to_dict(self) -> dict[str, list[Any]]:
        """Return the table by column; None where a layer has no such figure."""
        rows = [layer.to_dict() for layer in self._layers]
        columns: dict[str, None] = {}
        for row in rows:
            columns.update(dict.fromkeys(row))
        return {c: [row.get(c) for row in rows] for c in columns}

    def to_pandas(self) -> Any:
        """Return a pandas.DataFrame; needs pandas."""
        import pandas

        return pandas.DataFrame(self.to_dict())

    def to_polars(self) -> Any:
        """Return a polars.DataFrame; needs polars."""
        import polars

        return polars.DataFrame(self.to_dict(), strict=False)

    def __repr__(self) -> str:
        return f"<{len(self)} layers>"

    def _repr_html_(self) -> str:
        return _notebook.table(self)


class _Result:
    """A result that is JSON, which commands of the program turn into reports."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.data = data

    def _command(self, folder: Path) -> tuple[str, list[str]]:
        """Return the command and its arguments that show the result."""
        raise NotImplementedError

    def _report(self, options: Mapping[str, Any], *more: str, folder: Path) -> str:
        command, args = self._command(folder)
        output = run([command, *args, *flags(command, options, folder), *more])
        return output.text

    def save(self, path: PathLike, **options: Any) -> None:
        """Write a file; the ending of its name selects the format."""
        with tempfile.TemporaryDirectory() as d:
            self._report(options, f"--output={os.fspath(path)}", *self._closed(), folder=Path(d))

    def text(self, **options: Any) -> str:
        """Return the report for a terminal."""
        with tempfile.TemporaryDirectory() as d:
            return self._report(options, "--format=table", folder=Path(d))

    def page(self) -> str:
        """Return the interactive page, as HTML."""
        with tempfile.TemporaryDirectory() as d:
            path = Path(d) / "page.html"
            self._report({}, f"--output={path}", *self._closed(), folder=Path(d))
            return path.read_text(encoding="utf-8")

    def _closed(self) -> list[str]:
        return []


class Profile(_Result):
    """A profile of a model. data is the JSON, as docs/reference/profile.md describes it."""

    def __init__(self, data: dict[str, Any]) -> None:
        super().__init__(data)
        self.layers = Layers([Layer(x) for x in data.get("layers") or []])

    @property
    def name(self) -> str:
        """Name of the model."""
        return str(self.data["model"].get("name", ""))

    @property
    def target(self) -> str:
        """What ran the model: host, or the target's id."""
        return str((self.data.get("target") or {}).get("id", ""))

    @property
    def engine(self) -> str:
        """Engine or runtime."""
        return str((self.data.get("settings") or {}).get("engine", ""))

    @property
    def kind(self) -> Optional[str]:
        """Where the latency comes from: measured, estimated, or None without one."""
        figure = self.totals.get("latency_s")
        return figure.get("kind") if isinstance(figure, dict) else None

    @property
    def totals(self) -> dict[str, Any]:
        """Figures of the whole model, by key."""
        return self.data.get("totals") or {}

    @property
    def latency(self) -> Optional[float]:
        """Median latency of an inference in seconds."""
        return _median(self.totals.get("latency_s"))

    @property
    def interval(self) -> Optional[Interval]:
        """95 % confidence interval of the latency, or the 90 % band of an estimate."""
        return _interval(self.totals.get("latency_s"))

    @property
    def quality(self) -> Optional[Quality]:
        """Quality of the measurement, None for estimates and counts."""
        trust = self.data.get("trust")
        if not trust:
            return None
        doubts = tuple(d["code"] for d in trust.get("doubts") or [])
        return Quality(trust["verdict"], trust.get("fit"), trust.get("tolerance"), doubts)

    @property
    def memory(self) -> Memory:
        """Memory that the model needs."""
        plan = self.data.get("memory") or {}
        totals = self.totals
        return Memory(
            totals.get("ram_bytes"),
            totals.get("flash_bytes"),
            plan.get("arena_bytes"),
            plan.get("peak_bytes"),
            plan.get("process_peak_bytes"),
        )

    @property
    def machine(self) -> dict[str, Any]:
        """The computer of a measurement, {} for others."""
        return self.data.get("host") or {}

    @property
    def findings(self) -> list[str]:
        """What stands out, in sentences."""
        return [f["text"] for f in self.data.get("findings") or []]

    @property
    def incomplete(self) -> tuple[Missing, ...]:
        """What is missing and why, () for a complete profile."""
        return tuple(
            Missing(m["cause"], m.get("text", ""), tuple(m.get("layers") or ()), m.get("got"), m.get("want"))
            for m in self.data.get("incomplete") or []
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON."""
        return self.data

    def compare(self, *others: Profile, **options: Any) -> Comparison:
        """Compare with other profiles."""
        if options.pop("outputs", False):
            raise TypeError("outputs=True runs models: give models to opmeter.compare(), not profiles")
        return compare(self, *others, outputs=False, **options)

    def _command(self, folder: Path) -> tuple[str, list[str]]:
        return "report", [_write(self, folder / "profile.json")]

    def _closed(self) -> list[str]:
        return ["--open=false"]

    def __repr__(self) -> str:
        time = "" if self.latency is None else f", {_notebook.seconds(self.latency)}"
        return f"<Profile {self.name!r} on {self.target or 'no target'}{time}, {len(self.layers)} layers>"

    def _repr_html_(self) -> str:
        return _notebook.summary(self) + _notebook.frame(self.page())


class Comparison(_Result):
    """A comparison of profiles with the first one. data is the JSON of opmeter compare."""

    def __init__(
        self,
        data: dict[str, Any],
        sides: list[tuple[str, Union[dict[str, Any], str]]],
        names: Optional[list[str]],
        options: dict[str, Any],
    ) -> None:
        super().__init__(data)
        # A side is the name of a file, and the profile that it holds or its path.
        self._sides, self._names, self._options = sides, names, options

    @property
    def runs(self) -> list[dict[str, Any]]:
        """What is compared, with the total of each."""
        return list(self.data.get("runs") or [])

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Operators, largest difference first."""
        return list(self.data.get("groups") or [])

    @property
    def verdicts(self) -> list[Optional[str]]:
        """Verdict for each profile against the first, which has none."""
        return [None, *((r.get("ratio") or {}).get("verdict") for r in self.runs[1:])]

    def _command(self, folder: Path) -> tuple[str, list[str]]:
        args = []
        for i, (name, side) in enumerate(self._sides):
            if isinstance(side, str):
                args.append(side)
                continue
            # The program takes the name of a side from that of its file.
            path = folder / str(i) / (_NO_NAME.sub("-", name) + ".json")
            path.parent.mkdir()
            path.write_text(json.dumps(side, ensure_ascii=False), encoding="utf-8")
            args.append(str(path))
        args += [f"--name={name}" for name in self._names or ()]
        return "compare", args + flags("compare", self._options, folder)

    def __repr__(self) -> str:
        return f"<Comparison of {', '.join(r['name'] for r in self.runs)}>"

    def _repr_html_(self) -> str:
        return _notebook.frame(self.page())


class Divergence(_Result):
    """A comparison of the outputs of layers. data is the JSON of opmeter compare --outputs.

    The models run again for each report. There is no page of it.
    """

    def __init__(self, models: Sequence[Any], example_inputs: Any, options: dict[str, Any]) -> None:
        super().__init__({})
        self._models, self._example_inputs, self._options = models, example_inputs, options
        with tempfile.TemporaryDirectory() as d:
            self.data = parse(self._report({}, "--format=json", folder=Path(d)))

    @property
    def sides(self) -> list[dict[str, Any]]:
        """What is compared: models and engines."""
        return list(self.data.get("sides") or [])

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Pairs of layers with the differences of their outputs."""
        return list(self.data.get("rows") or [])

    @property
    def verdict(self) -> str:
        """Whether the outputs are equal, or how they differ."""
        return str(self.data["verdict"]["code"])

    def _command(self, folder: Path) -> tuple[str, list[str]]:
        args = []
        for i, model in enumerate(self._models):
            if isinstance(model, Profile):
                raise TypeError("outputs=True runs models: give models to opmeter.compare(), not profiles")
            (folder / str(i)).mkdir()
            args.append(model_path(model, folder / str(i), self._example_inputs if is_torch(model) else None))
        return "compare", [*args, "--outputs", *flags("compare", self._options, folder)]

    def __repr__(self) -> str:
        return f"<Divergence of {', '.join(s['model'] for s in self.sides)}: {self.verdict}>"


class Study(_Result):
    """Results of compression experiments. data is the JSON of opmeter compress."""

    def __init__(self, data: dict[str, Any], path: str) -> None:
        super().__init__(data)
        self.path = path

    @property
    def plans(self) -> list[dict[str, Any]]:
        """Plans, the last one made last."""
        return list(self.data.get("plans") or [])

    def _command(self, folder: Path) -> tuple[str, list[str]]:
        return "compress", ["show", argument(self.path)]

    def _report(self, options: Mapping[str, Any], *more: str, folder: Path) -> str:
        if options:
            raise TypeError(f"unexpected keyword argument {next(iter(options))!r}")
        return super()._report({}, *more, folder=folder)

    def __repr__(self) -> str:
        return f"<Study {self.path!r}, {len(self.plans)} plans>"

    def _repr_html_(self) -> str:
        return _notebook.frame(self.page())


def _write(profile: Profile, path: Path) -> str:
    path.write_text(json.dumps(profile.data, ensure_ascii=False), encoding="utf-8")
    return str(path)


def parse(text: str) -> dict[str, Any]:
    """Return the object that the program wrote as JSON."""
    data = json.loads(text)
    if not isinstance(data, dict):
        raise InputError("the file or folder gives several profiles: call the function for each", 3)
    return data


def load(path: PathLike) -> Profile:
    """Open a saved profile: .opmeter, a journal or JSON."""
    return remarked(opened(path), 3)


def opened(path: PathLike) -> Profile:
    """Open a saved profile without a warning."""
    return Profile(parse(run(["report", argument(path), "--format=json"]).text))


def remarked(p: Profile, stacklevel: int) -> Profile:
    """Warn of what a profile lacks."""
    if p.incomplete:
        parts = []
        for m in p.incomplete:
            part = m.text or m.cause
            if m.want is not None:
                part += f": {m.got or 0} of {m.want}"
            parts.append(part)
        warnings.warn(f"the profile is incomplete: {'; '.join(parts)}", OpmeterWarning, stacklevel)
    return p


@overload
def compare(*profiles: Union[Profile, PathLike], outputs: Literal[False] = False, **options: Any) -> Comparison: ...


@overload
def compare(*profiles: Any, outputs: Literal[True], example_inputs: Any = None, **options: Any) -> Divergence: ...


def compare(
    *profiles: Any, outputs: bool = False, example_inputs: Any = None, **options: Any
) -> Union[Comparison, Divergence]:
    """Compare profiles, saved profiles, records of other tools or studies with the first one.

    A model file is counted: it has no times. Keyword arguments are the flags of opmeter compare.
    name=[...] names the sides. outputs=True runs two models, or one in two engines, and compares
    the outputs of their layers; models are those of profile().
    """
    if outputs:
        return Divergence(profiles, example_inputs, options)
    if example_inputs is not None:
        raise TypeError("example_inputs is for outputs=True: profiles have been measured already")
    if len(profiles) < 2:
        raise TypeError("compare() takes two or more profiles")
    given: Optional[list[str]] = list(options.pop("name", None) or ()) or None
    names, sides = _names(profiles), [_side(p) for p in profiles]
    if not any(isinstance(side, str) for side in sides):  # a study holds several profiles
        given = given or names
        if len(given) != len(profiles):
            raise TypeError(f"name has {len(given)} entries for {len(profiles)} profiles")
    result = Comparison({}, list(zip(names, sides)), given, options)
    with tempfile.TemporaryDirectory() as d:
        result.data = parse(result._report({}, "--format=json", folder=Path(d)))
    return result


def _side(profile: Union[Profile, PathLike]) -> Union[dict[str, Any], str]:
    """Return what a side of a comparison holds: a profile's JSON, or the path of a study."""
    if isinstance(profile, Profile):
        return profile.data
    if os.fsdecode(profile).lower().endswith(".study"):
        return os.path.abspath(os.fsdecode(profile))
    return load_any(profile).data


def load_any(path: PathLike) -> Profile:
    """Open a saved profile or a record of another tool, or count a model."""
    name = os.fsdecode(path)
    if name.endswith((".opmeter", ".opmeter-journal")):
        return load(path)
    command = "summary" if name.lower().endswith(_MODELS) else "import"
    return Profile(parse(run([command, argument(path), "--format=json"]).text))


def _names(profiles: Sequence[Union[Profile, PathLike]]) -> list[str]:
    out: list[str] = []
    for p in profiles:
        name = f"{p.name} on {p.target}" if isinstance(p, Profile) else Path(p).stem
        if isinstance(p, Profile) and p.engine and p.engine != "opmeter":
            name += f" ({p.engine})"
        n = sum(o.partition(" #")[0] == name for o in out)
        out.append(f"{name} #{n + 1}" if n else name)
    return out
