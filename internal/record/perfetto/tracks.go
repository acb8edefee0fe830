package perfetto

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"github.com/opmeter/opmeter/internal/model/protoread"
	"github.com/opmeter/opmeter/internal/record/track"
	"github.com/opmeter/opmeter/profile/timeline"
)

// trackInfo is a track of the trace.
type trackInfo struct {
	uuid, parent       uint64
	name               string
	process, thread    bool
	pid, tid           int64
	processName        string
	threadName         string
	rank               int64
	order              int
	counter            bool
	unit, unitName     string
	scale              float64
	incremental, timed bool

	track.Pending // the track is -1 before the first slice

	c     *track.Counter
	asked bool // c was created, or does not fit
}

// process is a process of the trace.
type process struct {
	name string
	rank int64
}

// maxPlaces limits the tracks of a trace.
const maxPlaces = 50_000

// add adds a track; it returns nil beyond the limit.
func (b *reader) add() *trackInfo {
	if len(b.order) >= maxPlaces {
		return nil
	}
	p := &trackInfo{Pending: track.Pending{Track: -1}, order: len(b.order), scale: 1}
	b.order = append(b.order, p)
	return p
}

// at returns the track with an identifier, nil beyond the limit. Its description may follow.
func (b *reader) at(uuid uint64) *trackInfo {
	p := b.tracks[uuid]
	if p == nil {
		if p = b.add(); p != nil {
			p.uuid, b.tracks[uuid] = uuid, p
		}
	}
	return p
}

// ofThread returns the track of a thread without an identifier, nil beyond the limit.
func (b *reader) ofThread(pid, tid int64) *trackInfo {
	k := [2]int64{pid, tid}
	p := b.threads[k]
	if p == nil {
		if p = b.add(); p != nil {
			p.thread, p.pid, p.tid, b.threads[k] = true, pid, tid, p
		}
	}
	return p
}

// descriptor reads a description of a track and adds it to earlier ones.
func (b *reader) descriptor(data []byte) {
	var p *trackInfo
	for r := protoread.NewReader(data); r.Next(); {
		if r.Num() == 1 {
			p = b.at(uint64(r.Int()))
		}
	}
	if p == nil {
		b.trace.Dropped.Add("descriptions of tracks without a number, or too many", 1)
		return
	}
	var about []byte
	rank := int64(math.MinInt64)
	r := protoread.NewReader(data)
	_ = r.Scan(2, &p.name, 10, &p.name, 13, &p.name, 5, &p.parent, 8, p.counterUnit, 12, &rank, 14, &about, 3, func(m protoread.Reader) {
		p.process = true
		_ = m.Scan(1, &p.pid, 6, &p.processName)
		p.processName = text([]byte(p.processName))
		if o := b.process(p.pid); o.name == "" { // identifiers may be reused
			o.name = p.processName
		}
	}, 4, func(m protoread.Reader) {
		p.thread = true
		_ = m.Scan(1, &p.pid, 2, &p.tid, 5, &p.threadName)
		p.threadName = text([]byte(p.threadName))
		if k := [2]int64{p.pid, p.tid}; b.threads[k] == nil {
			b.threads[k] = p
		}
	})
	p.name = text([]byte(p.name))
	if rank == math.MinInt64 {
		return
	}
	p.rank = rank
	if p.process {
		b.process(p.pid).rank = rank
	}
	if p.uuid == 1 && p.process && p.pid == 1 && len(about) > 0 && strings.Contains(b.process(1).name, " on ") {
		b.written, b.about = true, text(about)
	}
}

func (b *reader) process(pid int64) *process {
	p := b.processes[pid]
	if p == nil {
		p = &process{rank: int64(len(b.processes))}
		if len(b.processes) < maxPlaces {
			b.processes[pid] = p
		}
	}
	return p
}

// counterUnit reads the description of a counter.
func (p *trackInfo) counterUnit(m protoread.Reader) {
	p.counter, p.scale = true, 1
	var built, multiplier, unit int64
	_ = m.Scan(1, &built, 3, &unit, 4, &multiplier, 5, &p.incremental, 6, &p.unitName)
	p.unitName = text([]byte(p.unitName))
	if built == 1 { // time of the thread
		unit, p.timed = 1, true
	}
	if multiplier != 0 {
		p.scale = float64(multiplier)
	}
	switch unit {
	case 1:
		p.unit, p.scale = "s", p.scale/1e9
	case 3:
		p.unit = "B"
	}
}

// oldDescriptor reads the legacy description of a process or thread.
func (b *reader) oldDescriptor(id uint64, thread bool, data []byte) {
	s := b.sequences[uint32(id)]
	if s == nil {
		if len(b.sequences) >= maxSequences {
			return
		}
		s = newSequence(true)
		b.sequences[uint32(id)] = s
	}
	var name []byte
	r := protoread.NewReader(data)
	if !thread {
		_ = r.Scan(1, &s.pid, 6, &name)
		p := b.process(s.pid)
		p.name = cmp.Or(text(name), p.name)
		return
	}
	reference := int64(math.MinInt64) // of deltas, microseconds
	_ = r.Scan(1, &s.pid, 2, &s.tid, 5, &name, 6, &reference)
	if reference != math.MinInt64 {
		s.time = scaled(uint64(reference), 1000)
	}
	if p := b.ofThread(s.pid, s.tid); p != nil {
		p.threadName = cmp.Or(text(name), p.threadName)
	}
}

// owner returns the process or thread of a track.
func (b *reader) owner(p *trackInfo) *trackInfo {
	for range 32 {
		if p.process || p.thread || p.parent == 0 || p.parent == p.uuid {
			return p
		}
		o := b.tracks[p.parent]
		if o == nil {
			return p
		}
		p = o
	}
	return p
}

// nameTracks names and orders the tracks of slices and counters.
func (b *reader) nameTracks() {
	for _, p := range b.order {
		owner := b.owner(p)
		group, rank := "", int64(-1)
		if owner.process || owner.thread {
			group = cmp.Or(owner.processName, b.process(owner.pid).name, fmt.Sprintf("process %d", owner.pid))
			rank = b.process(owner.pid).rank
			if b.written && owner.pid == 1 {
				group = ""
			}
		}
		title := cmp.Or(p.name, p.threadName)
		if p.thread {
			title = cmp.Or(p.threadName, p.name, fmt.Sprintf("thread %d", p.tid))
		}
		if p.process && title == "" {
			title = "process"
		}
		if p.Track >= 0 {
			k := b.trace.Tracks[p.Track]
			k.Group, k.GroupRank, k.Name, k.Rank = group, rank, cmp.Or(title, fmt.Sprintf("track %d", p.order)), p.rank
			if k.Kind == "" && !b.written {
				k.Kind = timeline.Thread
			}
		}
		if p.c != nil {
			if p.timed {
				title = cmp.Or(title, "thread time")
			}
			p.c.Group, p.c.Name, p.c.Unit = group, cmp.Or(title, "counter"), cmp.Or(p.unitName, p.unit)
			if owner.thread && owner != p {
				p.c.Name += " of " + cmp.Or(owner.threadName, fmt.Sprintf("thread %d", owner.tid))
			}
		}
	}
}
