package profile_test

import (
	"encoding/csv"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/profile"
)

// A profile made by hand, saved and read back.
func Example() {
	p := &profile.Profile{
		Schema: profile.SchemaV1,
		Model:  profile.Model{Name: "net", Format: "onnx"},
		Target: profile.Target{ID: "host", Kind: profile.TargetHost},
		Totals: profile.Totals{Ops: new(int64(2_000_000)), Latency: profile.Value(profile.Measured, 0.001, "one run")},
		Layers: []profile.Layer{{Index: 0, Op: "Conv", State: profile.Ran, Share: new(1.0)}},
	}
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "net"+profile.Extension)
	if err := profile.Write(file, p); err != nil {
		fmt.Println(err)
		return
	}
	q, err := profile.Read(file)
	if err != nil {
		fmt.Println(err)
		return
	}
	latency, _ := q.Totals.Latency.Best()
	fmt.Printf("%s: %.1f ms, %.1f Gop/s\n", q.Model.Name, 1000*latency, *q.Rates().OpsPerSecond/1e9)
	// A figure that is not known is absent.
	fmt.Println(q.Totals.Energy == nil)
	// Output:
	// net: 1.0 ms, 2.0 Gop/s
	// true
}

// JSON has the keys of docs/profile.schema.json.
func ExampleProfile_Encode() {
	p := &profile.Profile{
		Schema: profile.SchemaV1,
		Model:  profile.Model{Name: "net"},
		Target: profile.Target{ID: "host", Kind: profile.TargetHost},
		Layers: []profile.Layer{},
	}
	if err := p.Encode(os.Stdout); err != nil {
		fmt.Println(err)
	}
	// Output:
	// {
	//   "schema": "opmeter/profile/v1",
	//   "model": {
	//     "name": "net"
	//   },
	//   "target": {
	//     "id": "host",
	//     "kind": "host"
	//   },
	//   "settings": {},
	//   "totals": {},
	//   "layers": []
	// }
}

// A record of another tool becomes a profile by events: lines of layer, operator,
// seconds and cycles of bank conflicts, a quantity that only that tool has.
func ExampleBuilder() {
	record := "0,Conv,0.0015,40\n1,Relu,0.0005,\n0,Conv,0.0017,44\n1,Relu,0.0003,\n"
	rows, err := csv.NewReader(strings.NewReader(record)).ReadAll()
	if err != nil {
		log.Fatal(err)
	}
	p := &profile.Profile{
		Schema: profile.SchemaV1, Model: profile.Model{Name: "net"}, Target: profile.Target{ID: "board", Kind: profile.TargetImport},
		Quantities: []profile.Quantity{{Key: "bank_conflict_cycles", Unit: "cycles", Name: "Bank conflicts", Adds: true, Better: -1}},
	}
	for _, r := range rows {
		if n := len(p.Layers); r[0] == strconv.Itoa(n) { // seen for the first time
			p.Layers = append(p.Layers, profile.Layer{Index: int64(n), Op: r[1], State: profile.Ran})
		}
	}
	b := profile.NewBuilder()
	failed := b.Describe(p)
	for _, r := range rows {
		layer, _ := strconv.ParseInt(r[0], 10, 64)
		for i, key := range []string{"latency_s", "bank_conflict_cycles"} {
			if v, err := strconv.ParseFloat(r[2+i], 64); err == nil { // an empty cell is not known
				failed = errors.Join(failed, b.Send(profile.Event{Measured: &profile.Samples{Layer: &layer, Quantity: key, Kind: profile.Imported, Values: []float64{v}}}))
			}
		}
	}
	p, err = b.Finish()
	if err := errors.Join(failed, err); err != nil {
		log.Fatal(err)
	}
	for _, l := range p.Layers {
		time, _ := l.Value("latency_s")
		fmt.Printf("%s %.1f ms, %.0f %%, conflicts known: %v\n", l.Op, 1000*time, 100**l.Share, l.Figure("bank_conflict_cycles") != nil)
	}
	fmt.Println(p.Totals.Value("bank_conflict_cycles"))
	// Output:
	// Conv 1.6 ms, 80 %, conflicts known: true
	// Relu 0.4 ms, 20 %, conflicts known: false
	// 42 true
}

// Two profiles of a model: one engine runs two layers where the other runs one.
