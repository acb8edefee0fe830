// Package perfetto reads traces of Perfetto (.pftrace, .perfetto-trace): track events with
// interned data, tracks, counters and arrows. Traces that opmeter wrote keep their layers.
//
// Source of the format: the protobuf definitions in protos/perfetto/trace of the Perfetto
// project. Packets of other data sources, such as the scheduler, are counted and skipped.
package perfetto

import (
	"bufio"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/internal/model/protoread"
	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/track"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/timeline"

	"github.com/opmeter/opmeter/internal/base/lazyregexp"
)

// Format reads Perfetto's traces.
func Format() *record.Format {
	return &record.Format{
		Name:  "perfetto",
		Title: "Perfetto trace",
		Files: ".pftrace and .perfetto-trace files: track events of any program",
		Gives: []string{"latency_s", "calls", "timeline", "options"},
		Match: Match,
		Read:  record.RunPerFile(read),
	}
}

// MaxPacket limits the bytes of a packet; those of Perfetto are far smaller.
const MaxPacket = 64 << 20

// Match recognises packets by the fields of their messages.
func Match(f *record.File) record.Sure {
	rest, packets, known := f.Head, 0, 0
	for len(rest) > 2 && rest[0] == packetTag && packets < 20 {
		n, k := binary.Uvarint(rest[1:])
		if k <= 0 || n > MaxPacket {
			return record.No
		}
		rest = rest[1+k:]
		cut := n > uint64(len(rest))
		body := rest[:min(n, uint64(len(rest)))]
		r := protoread.NewReader(body)
		for r.Next() {
			switch r.Num() {
			case packetTimestamp, packetSequence, packetFlags, packetEvent, packetDescriptor, packetInterned, packetDefaults, packetClocks:
				known++
			}
			if r.Num() > 1100 {
				return record.No
			}
		}
		if cut {
			break
		}
		if r.Err() != nil {
			return record.No
		}
		packets++
		rest = rest[len(body):]
	}
	switch {
	case packets > 0 && known >= 3*packets || packets > 2 && known > packets:
		return record.Certain
	case known > 1:
		return record.Likely
	}
	return record.No
}

func read(ctx context.Context, f *record.File) (*runlog.Run, error) {
	b := newReader()
	var cut error
	err := f.With(func(r io.Reader) error {
		cut = b.packets(ctx, r)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if b.read == 0 {
		return nil, errors.New("no packets: want a sequence of trace packets")
	}
	run := track.NewRun(f, "perfetto")
	b.finish(run)
	if cut != nil {
		run.Lose(cut.Error())
	}
	return run, nil
}

// packets reads all packets. The error says where and why the trace ends early.
func (b *reader) packets(ctx context.Context, from io.Reader) error {
	r := bufio.NewReaderSize(from, 256<<10)
	var buf []byte
	at := int64(0)
	for n := 0; ; n++ {
		if n&0xfff == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		tag, err := r.ReadByte()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("byte %d: %w", at, err)
		}
		size, k, err := uvarint(r)
		if err != nil {
			return fmt.Errorf("byte %d: the trace is cut within the head of a packet", at)
		}
		if tag != packetTag {
			return fmt.Errorf("byte %d: want a packet, found field %d of type %d", at, tag>>3, tag&7)
		}
		at += 1 + int64(k)
		if size > MaxPacket {
			return fmt.Errorf("byte %d: a packet says it has %d bytes, more than %d", at, size, MaxPacket)
		}
		// The announced size may be wrong: memory grows with the data.
		if uint64(cap(buf)) < size {
			buf = make([]byte, 0, min(size, 1<<20))
		}
		buf = buf[:0]
		for uint64(len(buf)) < size {
			want := int(min(size-uint64(len(buf)), 1<<20))
			if cap(buf)-len(buf) < want {
				buf = append(make([]byte, 0, min(2*cap(buf)+want, int(size))), buf...)
			}
			got, err := io.ReadFull(r, buf[len(buf):len(buf)+want])
			buf = buf[:len(buf)+got]
			if err != nil {
				b.trace.Dropped.Add("packets that are cut", 1)
				return fmt.Errorf("byte %d: the trace is cut within a packet", at+int64(len(buf)))
			}
		}
		at += int64(size)
		b.packet(buf)
	}
}

// uvarint reads a number and returns its size in bytes.
func uvarint(r io.ByteReader) (v uint64, n int, err error) {
	for shift := 0; shift < 64; shift += 7 {
		c, err := r.ReadByte()
		if err != nil {
			return 0, n, err
		}
		n++
		v |= uint64(c&0x7f) << shift
		if c < 0x80 {
			return v, n, nil
		}
	}
	return 0, n, errors.New("a number is too long")
}

// finish makes the profile.
func (b *reader) finish(run *runlog.Run) {
	p := run.Profile
	for _, p := range b.order {
		b.trace.Pair(&p.Pending)
	}
	b.nameTracks()
	if b.written && b.owned > 0 {
		b.ownProfile(run)
	} else {
		b.otherProfile(run)
	}
	if n := b.trace.Opened(); n > 0 {
		run.Found("import.open", profile.Warning, "%d slices have a beginning and no end: they are shown until the end of their track, and count in no figure.", n)
	}
	if b.others > 0 {
		run.Found("import.others", profile.Info, "%d parts of the trace are of data sources other than track events, and are not read.", b.others)
	}
	if len(p.Layers) == 0 && p.Timeline == nil {
		run.Found("import.empty", profile.Warning, "The trace has no track events.")
	}
	b.trace.Dropped.To(run)
}

func (b *reader) otherProfile(run *runlog.Run) {
	for k, s := range b.trace.All() {
		k.Kind = cmp.Or(k.Kind, timeline.Thread)
		if b.written && s.Layer < 0 && s.Label >= 0 {
			s.Layer = b.layers.Of([]byte(b.trace.Text(s.Label)), []byte("slice"))
		}
	}
	b.trace.Fill(run.Profile, &b.layers, &b.flows)
}

// Parts of the description that opmeter writes for its first track.
var (
	ran     = lazyregexp.New(`; (\d+) iterations ran`)
	dropped = lazyregexp.New(`; (\d+) records were dropped`)
)

func (b *reader) ownProfile(run *runlog.Run) {
	p := run.Profile
	track.NameOwn(p, b.process(1).name)
	method, rest, _ := strings.Cut(b.about, "; time 0 is the ")
	origin, _, _ := strings.Cut(rest, "; ")
	if rest == "" {
		method, _, _ = strings.Cut(b.about, "; ")
	}
	b.own.Fill(p, &b.trace, &b.flows, origin, method)
	if t := p.Timeline; t != nil {
		t.Iterations, t.Dropped = number(ran, b.about), number(dropped, b.about)
	}
}

func number(in *lazyregexp.Regexp, s string) *int64 {
	if m := in.FindStringSubmatch(s); m != nil {
		if n, err := strconv.ParseInt(m[1], 10, 64); err == nil {
			return &n
		}
	}
	return nil
}
