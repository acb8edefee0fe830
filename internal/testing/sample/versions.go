package sample

import (
	"fmt"
	"strings"

	"github.com/opmeter/opmeter/profile"
)

// Versions gives profiles of a model and of versions of it: in each later one every 7th layer is
// slower with another kernel, every 11th faster in another element type, every 13th of unknown
// precision; every 50th is removed, and as many are inserted.
func Versions(layers, runs int, hostile bool) []*profile.Profile {
	g := &generator{o: Options{Hostile: hostile}}
	var out []*profile.Profile
	for k := range runs {
		g.named = 0
		out = append(out, g.version(layers, k))
	}
	return out
}

// version is the k-th version of a model of layers in blocks of six, each with a connection
// around it.
func (g *generator) version(layers, k int) *profile.Profile {
	const block = 6
	p := &profile.Profile{
		Schema: profile.SchemaV1, Created: fmt.Sprintf("2026-11-0%dT12:00:00Z", 1+k%9),
		Model:    profile.Model{Name: g.name("versions"), Path: "versions.onnx", Format: "onnx", FileBytes: new(int64(3_400_000 - 400_000*k))},
		Target:   profile.Target{ID: "host", Kind: profile.TargetHost, Engine: "opmeter"},
		Settings: profile.Settings{Engine: "opmeter", EngineVersion: fmt.Sprintf("1.%d", k), Threads: new(int64(1)), Batch: new(int64(1))},
		Host:     &profile.Host{OS: "linux", Arch: "amd64", CPUModel: "Made-up CPU"},
		Memory:   &profile.Memory{ProcessPeakBytes: new(int64(90_000_000 + 7_000_000*k)), ArenaBytes: new(int64(1_200_000))},
	}
	total, at, last, skip := 0.0, "input", "input", "input"
	tensor := func(name, dtype string, n int) profile.Tensor {
		return profile.Tensor{Name: name, DType: dtype, Shape: []int64{1, 16, 16, int64(8 + n%24)}}
	}
	add := func(i, node int, op string, t float64, half float64) *profile.Layer {
		scope := fmt.Sprintf("stage%d/block%d", i/(8*block), i/block)
		at = fmt.Sprintf("t%d", node)
		p.Layers = append(p.Layers, profile.Layer{
			Index: int64(len(p.Layers)), Name: g.name(fmt.Sprintf("%s/%s_%d", scope, strings.ToLower(op), node)), Op: op, Scope: scope, State: profile.Ran, Kernel: "made/up",
			Inputs: []profile.Tensor{tensor(last, "float32", i)}, Outputs: []profile.Tensor{tensor(at, "float32", i)},
			MACs: new(int64(t * 1e9)), BytesRead: new(int64(4096)), BytesWritten: new(int64(4096)),
			Latency: &profile.Metric{Kind: profile.Measured, N: new(int64(50)), Median: &t, CI95: &[2]float64{t * (1 - half), t * (1 + half)}},
			Provenance: &profile.Provenance{
				Confidence: profile.Exact, SourceNodes: []profile.SourceNode{{Node: int64(node), Op: op, Name: fmt.Sprintf("node_%d", node)}},
			},
		})
		total += t
		last = at
		return &p.Layers[len(p.Layers)-1]
	}
	for i := range layers {
		op := kinds[i%block].op
		if k > 0 && i%50 == 30 {
			continue // removed; the next layer reads what it read
		}
		t := 1e-6 * float64(5+(i*37)%90)
		half, kernel, dtype := 0.005, "", ""
		if k > 0 {
			switch {
			case i%7 == 3:
				t, kernel = t*(1+0.2*float64(k)), "made/anew"
			case i%11 == 5:
				t, dtype = t*0.6, "int8"
			case i%13 == 2:
				t, half = t*1.1, 0.3
			}
		}
		l := add(i, i, op, t, half)
		if kernel != "" {
			l.Kernel = kernel
		}
		if dtype != "" {
			l.Computes, l.Inputs[0].DType = dtype, dtype
		}
		if op == "ADD" {
			l.Inputs = append(l.Inputs, tensor(skip, "float32", i))
		}
		if i%block == block-1 {
			skip = at
		}
		if k > 0 && i%50 == 40 {
			add(i, layers+i, "CAST", 8e-6, 0.01)
		}
	}
	whole := total + 40e-6*float64(1+k)
	p.Totals.Latency = &profile.Metric{Kind: profile.Measured, N: new(int64(50)), Median: &whole, CI95: &[2]float64{whole * 0.996, whole * 1.004}}
	p.Totals.MACs, p.Totals.Params, p.Totals.Layers = new(int64(total*1e9)), new(int64(850_000)), new(int64(len(p.Layers)))
	return p
}
