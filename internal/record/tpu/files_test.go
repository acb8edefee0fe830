package tpu_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/tpu/block"
	"github.com/opmeter/opmeter/internal/record/tpu/command"
	"github.com/opmeter/opmeter/internal/testing/tpurecords"
	"github.com/opmeter/opmeter/profile/timeline"
)

// TestDriver reads what the driver recorded.
func TestDriver(t *testing.T) {
	b := block.Driver{
		Begin: 1_700_000_000_000_000, End: 1_700_000_000_100_000, Lists: 5,
		Sends:  []block.Send{{API: 1, Time: 1_700_000_000_000_100}, {API: 987, Time: 1_700_000_000_000_150}},
		Syncs:  []block.Span{{Begin: 1_700_000_000_000_200, End: 1_700_000_000_000_900}},
		Marks:  []block.Mark{{ID: 7, Begin: 1_700_000_000_001_000}},
		Copies: []block.Copy{{Src: 1, Dst: 2, Size: 4096, Begin: 1_700_000_000_002_000, End: 1_700_000_000_002_500}},
		Memory: []block.MemoryOp{{Address: 16, Size: 64, Kind: 3, Begin: 1_700_000_000_003_000, End: 1_700_000_000_003_001}},
	}
	raw := block.Append(nil, block.BMLib, b.Append(nil))
	raw = block.Append(raw, block.BMLibExtra, block.AppendExtras(nil, []block.Extra{{Owner: 2, Kind: 0, Data: []byte("hello")}, {Owner: 0, Kind: 0}}))
	p := one(t, &record.Input{Files: files(map[string][]byte{"bmlib_0.profile": raw, "global.profile": []byte("arch=5\ntpu_freq=1000\n")})})
	got := map[string]int{}
	names := strings.Join(p.Timeline.Names, "|")
	for _, l := range p.Timeline.Lanes {
		if l.Kind != timeline.Host || l.Clock == "" {
			t.Errorf("lane %s is %s on clock %q", l.Name, l.Kind, l.Clock)
		}
		got[l.Name] = len(l.Starts)
	}
	if want := map[string]int{"calls": 1, "waits": 1, "marks": 1, "copies": 1, "memory": 1}; !maps.Equal(got, want) {
		t.Errorf("lanes are %v, want %v", got, want)
	}
	for _, s := range []string{"MEM_SET", "mark 7: hello", "host to chip", "flush 0x10"} {
		if !strings.Contains(names, s) {
			t.Errorf("no bar is called %q: %s", s, names)
		}
	}
}

// TestPort reads the records of a chip-to-chip engine.
func TestPort(t *testing.T) {
	l := block.LayoutOf("BM1690", block.CDMA)
	b := l.NewTable()
	b.N = 3
	for i, f := range l.Fields {
		for k := range uint32(3) {
			v := uint32(0)
			switch f.Name {
			case block.ID:
				v = k + 1
			case block.Start:
				v = 1000 + k*100
			case block.End:
				v = 1050 + k*100
			case "axi_wr":
				v = 640
			}
			b.Columns[i] = append(b.Columns[i], v)
		}
	}
	raw := block.Append(nil, block.MonitorCDMA, b.Append(nil))
	p := one(t, &record.Input{Files: files(map[string][]byte{"cdma0_4.profile": raw, "global.profile": []byte("arch=5\ntpu_freq=1000\n")})})
	near(t, "dma_busy_s", total(t, p, "dma_busy_s"), 150e-9, 1e-15)
	near(t, "latency_s", total(t, p, "latency_s"), 250e-9, 1e-15)
	found := false
	for _, lane := range p.Timeline.Lanes {
		found = found || lane.Name == "CDMA port 4" && len(lane.Starts) == 3
	}
	if !found {
		t.Error("no lane of port 4")
	}
}

// TestNothing refuses folders that hold no run.
func TestNothing(t *testing.T) {
	_, err := profiles(t, &record.Input{Files: files(map[string][]byte{"cmd_100_0.dat": make([]byte, 256)})})
	var fe *record.FileError
	if !errors.As(err, &fe) {
		t.Errorf("error is %v, want one with a file", err)
	}
}

// TestLaunch reads two cores of BM1690 whose files name the core: they meet where the
// launch's messages end.
func TestLaunch(t *testing.T) {
	m := map[string][]byte{"global.profile": []byte("arch=5\ntpu_freq=1000\n")}
	var d *tpurecords.Directory
	for core, start := range []uint32{200_000, 900_000} {
		d = tpurecords.Make(tpurecords.Options{Chip: command.BM1690, Commands: 200, CopyStart: start})
		var out []byte
		_, err := block.Scan(bytes.NewReader(d.Files["iter0.profile"]), func(k block.Type, _ int64, p io.Reader) error {
			data, err := io.ReadAll(p)
			if k == block.MonitorBD || k == block.MonitorGDMA {
				out = block.Append(out, k, data)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		out = block.Append(out, block.DesBD, d.Files["cmd_100000000_0_0.dat"])
		out = block.Append(out, block.DesGDMA, d.Files["cmd_100010000_0_1.dat"])
		m[fmt.Sprintf("cdmlib%d_0.profile", core)] = out
	}
	p := one(t, &record.Input{Files: files(m)})
	at := map[string][]float64{}
	for _, l := range p.Timeline.Lanes {
		if l.Name == "TIU" || l.Name == "GDMA" {
			at[l.Group+l.Name] = l.Starts
		}
	}
	for _, name := range []string{"TIU", "GDMA"} {
		a, b := at["core 0"+name], at["core 1"+name]
		if len(a) != len(b) || len(a) == 0 {
			t.Fatalf("%s: %d and %d bars", name, len(a), len(b))
		}
		for i := range a {
			near(t, name, b[i], a[i], 1e-12) // the same cycles on both
		}
	}
	s := d.Subnets[0]
	near(t, "latency", total(t, p, "latency_s"), s.Span(&d.Options), 10e-9)
	busy, _ := s.Busy(&d.Options, false)
	near(t, "tiu_busy_s", total(t, p, "tiu_busy_s"), 2*busy, 1e-9*busy)
	if finding(p, "tpu.cores.axis") != nil {
		t.Error("the cores' axis is called unknown")
	}
}
