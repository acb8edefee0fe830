package align_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/align"
)

func ExampleLayers() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	layer := func(i int, op string, ms float64, nodes ...int64) profile.Layer {
		l := profile.Layer{Index: int64(i), Op: op, State: profile.Ran, Latency: profile.Value(profile.Measured, ms/1000, ""), Provenance: &profile.Provenance{Confidence: profile.Exact}}
		for _, n := range nodes {
			l.Provenance.SourceNodes = append(l.Provenance.SourceNodes, profile.SourceNode{Node: n})
		}
		return l
	}
	var both [2]*profile.Profile
	for i, layers := range [][]profile.Layer{
		{layer(0, "Conv", 4, 0), layer(1, "Relu", 1, 1), layer(2, "Gemm", 2, 2)},
		{layer(0, "ConvRelu", 3, 0, 1), layer(1, "Gemm", 2.5, 2)},
	} {
		file := filepath.Join(dir, fmt.Sprint(i)+profile.Extension)
		p := &profile.Profile{Schema: profile.SchemaV1, Model: profile.Model{Name: "net"}, Target: profile.Target{ID: "host", Kind: profile.TargetHost}, Layers: layers}
		if err := profile.Write(file, p); err != nil {
			log.Fatal(err)
		}
		if both[i], err = profile.Read(file); err != nil {
			log.Fatal(err)
		}
	}
	a, b := both[0], both[1]
	for _, pair := range align.Layers(a, b) {
		before, _ := a.At(pair.A).Sum("latency_s")
		after, _ := b.At(pair.B).Sum("latency_s")
		fmt.Printf("%s: %.1f ms, then %.1f ms (%s)\n", a.Layers[pair.A[0]].Op, 1000*before, 1000*after, pair.Confidence)
	}
	// Output:
	// Conv: 5.0 ms, then 3.0 ms (exact)
	// Gemm: 2.0 ms, then 2.5 ms (exact)
}
