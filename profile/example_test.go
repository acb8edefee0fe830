package profile_test

import (
	"fmt"
	"os"
	"path/filepath"

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
