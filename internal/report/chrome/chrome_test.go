package chrome

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/report/spans"
	"github.com/opmeter/opmeter/internal/testing/sample"
	"github.com/opmeter/opmeter/profile"
)

type event struct {
	Ph   string         `json:"ph"`
	Name string         `json:"name"`
	Cat  *string        `json:"cat"`
	PID  *int           `json:"pid"`
	TID  *int           `json:"tid"`
	TS   json.Number    `json:"ts"`
	Dur  json.Number    `json:"dur"`
	ID   int            `json:"id"`
	BP   string         `json:"bp"`
	Args map[string]any `json:"args"`
}

var threeDecimals = regexp.MustCompile(`^\d+\.\d{3}$`)

// nanos reads microseconds with exactly three decimals.
func nanos(t *testing.T, s json.Number) int64 {
	t.Helper()
	if !threeDecimals.MatchString(string(s)) {
		t.Fatalf("time %q has not three decimals", s)
	}
	n, err := json.Number(strings.Replace(string(s), ".", "", 1)).Int64()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// read checks everything that readers rely on and returns the events.
func read(t *testing.T, text []byte) []event {
	t.Helper()
	lines := strings.Split(string(text), "\n")
	if lines[0] != "{" || lines[3] != `"traceEvents":[` {
		t.Fatalf("the file begins with %q", lines[:4])
	}
	var events []event
	for _, l := range lines[4:] {
		if l == "]" {
			break
		}
		var e event
		d := json.NewDecoder(strings.NewReader(strings.TrimSuffix(l, ",")))
		d.DisallowUnknownFields()
		if err := d.Decode(&e); err != nil {
			t.Fatalf("%v in %s", err, l)
		}
		events = append(events, e)
	}
	var whole struct {
		DisplayTimeUnit string
		OtherData       map[string]string
		TraceEvents     []json.RawMessage
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&whole); err != nil || len(whole.TraceEvents) != len(events) {
		t.Fatalf("%d events on lines, %d in the list, %v", len(events), len(whole.TraceEvents), err)
	}
	type place struct{ pid, tid int }
	processes, threads := map[int]string{}, map[place]string{}
	order := map[place]bool{}
	ends := map[place][]int64{}
	flows := map[int]int64{}
	last := int64(0)
	for i, e := range events {
		if e.PID == nil || e.TID == nil || *e.PID < 0 || *e.TID < 0 {
			t.Fatalf("event %d has no numbers of process and thread: %+v", i, e)
		}
		at := place{*e.PID, *e.TID}
		if e.Ph == "M" {
			if last > 0 {
				t.Fatalf("event %d: metadata after events", i)
			}
			switch e.Name {
			case "process_name":
				processes[at.pid] = e.Args["name"].(string)
			case "thread_name":
				threads[at] = e.Args["name"].(string)
			case "thread_sort_index", "process_sort_index":
				order[at] = e.Args["sort_index"].(float64) > 0
			case "process_labels":
			default:
				t.Fatalf("metadata %q", e.Name)
			}
			continue
		}
		ts := nanos(t, e.TS)
		if ts < last {
			t.Fatalf("event %d at %d after %d", i, ts, last)
		}
		last = ts
		if _, ok := processes[at.pid]; !ok {
			t.Fatalf("event %d: process %d has no name", i, at.pid)
		}
		if _, ok := threads[at]; !ok && e.Ph != "C" {
			t.Fatalf("event %d: thread %v has no name", i, at)
		}
		if e.Ph != "C" && !order[at] {
			t.Fatalf("event %d: thread %v has no place", i, at)
		}
		switch e.Ph {
		case "X":
			end := ts + nanos(t, e.Dur)
			open := ends[at]
			for len(open) > 0 && open[len(open)-1] <= ts {
				open = open[:len(open)-1]
			}
			if len(open) > 0 && end > open[len(open)-1] {
				t.Fatalf("event %d sticks out of the bar around it: %+v", i, e)
			}
			ends[at] = append(open, end)
			if e.Cat == nil {
				t.Fatalf("event %d has no category", i)
			}
		case "C":
			if len(e.Args) != 1 {
				t.Fatalf("counter %+v", e)
			}
		case "s":
			flows[e.ID] = ts
		case "f":
			if from, ok := flows[e.ID]; !ok || from > ts || e.BP != "e" {
				t.Fatalf("arrow %+v has not left", e)
			}
			delete(flows, e.ID)
		default:
			t.Fatalf("phase %q", e.Ph)
		}
	}
	if len(flows) > 0 {
		t.Fatalf("arrows that never arrive: %v", flows)
	}
	return events
}

func write(t *testing.T, p *profile.Profile) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, p); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestRandom(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		p := sample.Random(rand.New(rand.NewPCG(seed, 1)))
		events := read(t, write(t, p))
		v := spans.Of(p)
		want := map[string]int{}
		for i := range v.Lanes {
			for j := range v.Lanes[i].Starts {
				want[v.Name(&v.Lanes[i], j)]++
			}
		}
		bars := 0
		for _, e := range events {
			if e.Ph == "X" && *e.Cat != "stall" && *e.TID != 1 {
				want[e.Name]--
				bars++
			}
		}
		for n, k := range want {
			if k != 0 {
				t.Fatalf("seed %d: name %.60q is missing %d times", seed, n, k)
			}
		}
		if bars != v.Size() {
			t.Fatalf("seed %d: %d bars of %d", seed, bars, v.Size())
		}
	}
}

func TestLevelsAndArguments(t *testing.T) {
	t.Parallel()
	p := sample.Large(3, 4, 1000)
	p.Layers[1].Options = []profile.Option{{Key: "b", Value: "2"}, {Key: "a", Value: `"x"`}}
	var ops, iterations, models int
	for _, e := range read(t, write(t, p)) {
		if e.Ph != "X" {
			continue
		}
		switch *e.Cat {
		case "inference":
			models++
		case "iteration":
			iterations++
		default:
			ops++
			for _, k := range []string{"reshape_time", "forward_time", "input_tensor_name", "input_type", "input_shape", "output_tensor_name", "output_type", "output_shape", "attributes"} {
				if _, ok := e.Args[k].(string); !ok {
					t.Errorf("%s: argument %s is %v, want text", e.Name, k, e.Args[k])
				}
			}
		}
		if e.Name == "model/block_0/layer_1" {
			if got := e.Args["attributes"]; got != `a:"x";b:2` {
				t.Errorf("attributes %q", got)
			}
			if got := e.Args["input_type"]; got != "int8,int8" {
				t.Errorf("input_type %q", got)
			}
			if got := e.Args["input_shape"].(string); !strings.HasPrefix(got, "1*32*32*") || !strings.HasSuffix(got, ",64*3*3*64") {
				t.Errorf("input_shape %q", got)
			}
			if got := e.Args["macs"]; got != float64(*p.Layers[1].MACs) {
				t.Errorf("macs %v", got)
			}
		}
	}
	if ops != 12 || iterations != 4 || models != 1 {
		t.Errorf("%d operators, %d iterations, %d models; want 12, 4, 1", ops, iterations, models)
	}
}

// TestLongTrace keeps all bars, arguments at the first one of each layer.
func TestLongTrace(t *testing.T) {
	t.Parallel()
	const layers, iterations = 100, 1100
	p := sample.Large(layers, iterations, 1_000_000)
	full, ops := 0, 0
	for _, e := range read(t, write(t, p)) {
		if e.Args["forward_time"] != nil {
			ops++
		}
		if e.Args["input_shape"] != nil {
			full++
		}
	}
	if ops != layers*iterations || full != layers {
		t.Errorf("%d operators, %d with all arguments; want %d, %d", ops, full, layers*iterations, layers)
	}
}

func TestNotRecordedSaysSo(t *testing.T) {
	t.Parallel()
	p := sample.Large(3, 4, 1000)
	p.Timeline = nil
	b := write(t, p)
	read(t, b)
	if !bytes.Contains(b, []byte(`"times":"not recorded: layers laid end to end`)) || bytes.Contains(b, []byte("reshape_time")) {
		t.Errorf("times that were laid out look measured:\n%s", b)
	}
}

func TestMillis(t *testing.T) {
	t.Parallel()
	for ns, want := range map[int64]string{0: "0", 44_000: "0.044", 1: "0.000001", 1_500_000: "1.5", 2_000_000: "2", 1_000_000_007: "1000.000007"} {
		if got := string(millis(nil, ns)); got != want {
			t.Errorf("millis(%d) = %s, want %s", ns, got, want)
		}
	}
}
