"""Checks p.pftrace and p.speedscope.json in a folder; see run."""

import collections
import json
import pathlib
import sys

import jsonschema
from perfetto.protos.perfetto.trace import perfetto_trace_pb2

folder = pathlib.Path(sys.argv[1])

schema = json.loads((folder / "package/dist/release/file-format-schema.json").read_text())
doc = json.loads((folder / "p.speedscope.json").read_text())
jsonschema.Draft7Validator(schema).validate(doc)
print(f"speedscope: {len(doc['profiles'])} profiles, {len(doc['shared']['frames'])} frames, valid by its own schema")

trace = perfetto_trace_pb2.Trace()
trace.ParseFromString((folder / "p.pftrace").read_bytes())
kinds = collections.Counter()
tracks, names, open_bars, last = {}, {}, collections.Counter(), collections.defaultdict(int)
for packet in trace.packet:
    assert packet.trusted_packet_sequence_id, "a packet without its sequence"
    if packet.HasField("track_descriptor"):
        tracks[packet.track_descriptor.uuid] = packet.track_descriptor.name
    for entry in packet.interned_data.event_names:
        names[entry.iid] = entry.name
    if not packet.HasField("track_event"):
        continue
    event = packet.track_event
    kinds[event.Type.Name(event.type)] += 1
    assert event.track_uuid in tracks, f"an event on track {event.track_uuid}, which is not described"
    assert packet.timestamp >= last[event.track_uuid], "a track goes back in time"
    last[event.track_uuid] = packet.timestamp
    if event.type == event.TYPE_SLICE_BEGIN:
        assert event.name or names[event.name_iid], "a bar without a name"
        open_bars[event.track_uuid] += 1
    elif event.type == event.TYPE_SLICE_END:
        open_bars[event.track_uuid] -= 1
        assert open_bars[event.track_uuid] >= 0, "an end without a beginning"
assert not any(open_bars.values()), "a bar that does not end"
print(f"Perfetto: {len(tracks)} tracks, {dict(kinds)}, decoded by its own description")
