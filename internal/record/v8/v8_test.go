package v8_test

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/v8"
	"github.com/opmeter/opmeter/internal/testing/material"
	"github.com/opmeter/opmeter/internal/testing/records"
	"github.com/opmeter/opmeter/profile"
)

// TestFile compares a profile of Node.js with a plain reading: a sample lasts until the next
// one.
func TestFile(t *testing.T) {
	t.Parallel()
	path := material.Path(t, "raw", "traces", "firefox", "fixture_hello.cjs-20231120T211435.cpuprofile")
	p := records.Read(t, v8.Format(), records.Files(t, path), record.Options{})[0]
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Nodes []struct {
			ID        int
			CallFrame struct{ FunctionName string }
		}
		Samples, TimeDeltas []int
		StartTime, EndTime  int
	}
	if err := json.Unmarshal(b, &d); err != nil {
		t.Fatal(err)
	}
	name := map[int]string{}
	for _, n := range d.Nodes {
		if name[n.ID] = n.CallFrame.FunctionName; name[n.ID] == "" {
			name[n.ID] = "(anonymous)"
		}
	}
	want, hits := map[string]float64{}, map[string]float64{}
	at := d.StartTime
	for i, id := range d.Samples {
		at += d.TimeDeltas[i]
		lasts := d.EndTime - at
		if i+1 < len(d.Samples) {
			lasts = d.TimeDeltas[i+1]
		}
		if name[id] != "(root)" {
			want[name[id]] += float64(lasts) / 1e6
			hits[name[id]]++
		}
	}
	got, count := records.Layers(p, "latency_s"), records.Layers(p, "samples")
	for n, w := range want {
		if !(math.Abs(got[n]-w) < 1e-9) || count[n] != hits[n] {
			t.Errorf("%s: %v s of %v samples, want %v of %v", n, got[n], count[n], w, hits[n])
		}
	}
	if len(want) < 20 {
		t.Errorf("%d functions", len(want))
	}
}

func text(t *testing.T, s string) *profile.Profile {
	t.Helper()
	return records.Read(t, v8.Format(), []*record.File{record.Bytes("x.cpuprofile", []byte(s))}, record.Options{})[0]
}

// TestForms reads nodes that name their parents, ones that name their children, and the tree
// of old files, and samples that go back in time.
func TestForms(t *testing.T) {
	t.Parallel()
	for _, s := range []string{
		`{"nodes":[{"id":1,"callFrame":{"functionName":"(root)"},"children":[2]},{"id":2,"callFrame":{"functionName":"f","lineNumber":4},"children":[3]},{"id":3,"callFrame":{"functionName":"g"}}],"startTime":100,"endTime":120,"samples":[2,3,3],"timeDeltas":[0,5,5]}`,
		`{"nodes":[{"id":3,"callFrame":{"functionName":"g"},"parent":2},{"id":2,"callFrame":{"functionName":"f","lineNumber":4},"parent":1},{"id":1,"callFrame":{"functionName":"(root)"}}],"startTime":100,"endTime":120,"samples":[2,3,3],"timeDeltas":[0,10,-5]}`,
		`{"head":{"functionName":"(root)","hitCount":0,"id":1,"children":[{"functionName":"f","lineNumber":4,"id":2,"hitCount":1,"children":[{"functionName":"g","id":3,"hitCount":2}]}]},"startTime":100,"endTime":120,"samples":[2,3,3],"timestamps":[100,105,110]}`,
	} {
		p := text(t, s)
		own, with := map[string]float64{}, map[string]float64{}
		for n, v := range records.Layers(p, "latency_s") {
			own[n] = math.Round(v * 1e6)
		}
		for n, v := range records.Layers(p, "with_callees_s") {
			with[n] = math.Round(v * 1e6)
		}
		// By time: the second form's samples are at 100, 110 and 105.
		if d := cmp.Diff(map[string]float64{"f": 5, "g": 15}, own); d != "" {
			t.Errorf("%s: %s", s, d)
		}
		if d := cmp.Diff(map[string]float64{"f": 20, "g": 15}, with); d != "" {
			t.Errorf("%s: %s", s, d)
		}
		if p.Layers[0].Option("line") != "5" {
			t.Errorf("%+v", p.Layers[0])
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"nodes":[{"id":1,"callFrame":{"functionName":"f"},"children":[1,2]},{"id":2,"callFrame":{},"children":[1]}],"startTime":9e15,"samples":[1,2,7],"timeDeltas":[9e17,-9e17,5]}`))
	f.Add([]byte(`{"head":{"functionName":"f","hitCount":3,"id":1,"children":[{"id":1}]}}`))
	f.Fuzz(func(t *testing.T, data []byte) { records.Fuzz(t, v8.Format(), "x.cpuprofile", data) })
}
