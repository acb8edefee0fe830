package sample

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/study"
)

// Study makes up a study of a network of so many layers: two speeds, a loss, a plan with its front
// and a bench, with causes among them. With hostile, names try to break what shows them.
func Study(layers int, hostile bool) *study.Study {
	r := rand.New(rand.NewPCG(3, 4))
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	metric := func(v, spread float64) *profile.Metric {
		return &profile.Metric{Kind: profile.Measured, N: new(int64(30)), Median: new(v), CI95: &[2]float64{v * (1 - spread), v * (1 + spread)}}
	}
	s := &study.Study{Created: at, Model: profile.Model{Name: "sample", Format: "onnx", FileBytes: new(int64(14 << 20))}}
	if hostile {
		s.Model.Name = "<img src=x onerror=alert(1)>\u202e"
	}
	ops := []string{"Conv", "Conv", "Gemm", "LSTM"}
	levels := []float64{0, .4, .6, .7, .8, .85, .9, .95, .975, .99}
	structures := []study.Structure{study.Unstructured, study.Block4x1}
	var changes []study.Change
	for _, st := range structures {
		for _, l := range levels {
			changes = append(changes, study.Change{Structure: st, Level: l})
		}
	}
	changes = append(changes, study.Change{Format: study.Int8})
	fast := &study.Speed{SpeedSettings: study.SpeedSettings{Name: "latency", Target: "host", Threads: 1, KernelSet: "vnni", Changes: changes}, Created: at, Done: true}
	wide := &study.Speed{SpeedSettings: study.SpeedSettings{Name: "throughput", Target: "host", Batch: 16, Threads: 2, KernelSet: "vnni", Changes: changes}, Created: at}
	loss := &study.Loss{LossSettings: study.LossSettings{Name: "output", Method: study.OutputError, Metric: "relative_error", Data: "images/", Samples: 128, Choice: "error", Changes: changes}, Created: at, Done: true}
	plan := &study.Plan{Name: "plan", Created: at, Goal: study.Goal{Speedup: new(2.0), Cost: "time"}, Speed: "latency", Loss: "output", Gap: new(0.004)}
	whole := 0.0
	for i := range layers {
		rows, cols := 16<<(i*4/max(1, layers)), 144
		l := study.Layer{
			Node: 3 * i, Input: 1, ID: fmt.Sprintf("block%d/out", i), Name: fmt.Sprintf("block%d/conv", i), Op: ops[i%len(ops)], Weight: fmt.Sprintf("block%d.weight", i),
			Shape: []int{rows, 16, 3, 3}, Type: "float32", Rows: rows, Cols: cols, Taps: 9, Groups: 1, Params: int64(rows*cols + rows), MACs: new(int64(rows * cols * 196)),
		}
		if hostile {
			l.Name = fmt.Sprintf("</script><script>alert(%d)</script>\u202e=1+1", i)
		}
		if i%7 == 6 {
			l.Fixed = study.NoZero
		}
		if i == 2 {
			l.Zeros = int64(rows * cols / 2)
		}
		s.Layers = append(s.Layers, l)
		dense := (0.5 + r.Float64()) * 1e-5 * float64(rows)
		whole += dense
		for k, sp := range []*study.Speed{fast, wide} {
			t := dense * float64(1+9*k)
			sp.Layers = append(sp.Layers, study.LayerTime{Layer: i, Latency: metric(t, .02), Kernel: "direct/avx512", Limit: []string{"compute", "memory", "overhead", ""}[i%4], Fused: []int{3*i + 1}})
			for _, c := range changes {
				p := study.SpeedPoint{Layer: i, Change: c}
				switch {
				case l.Fixed != "":
					continue
				case i%5 == 4:
					p.Cause = study.NoKernel
					p.Ratio = metric(1, .02)
				default:
					gain := 1 - .2*float64(max(0, int(10*c.Level)-5))
					if c.Structure == study.Block4x1 {
						gain = 1 - .9*c.Level
					}
					if c.Format != "" {
						gain = .35
					}
					gain = max(gain, .1)
					p.Ratio, p.Latency = metric(gain, .02), metric(t*gain, .03)
				}
				sp.Points = append(sp.Points, p)
			}
		}
		for _, c := range changes {
			if l.Fixed == "" {
				v := math.Pow(c.Level, 3) * (.1 + r.Float64()/20) / (1 + float64(i))
				loss.Points = append(loss.Points, study.LossPoint{Layer: i, Change: c, Value: metric(v, .1)})
			}
		}
		choice := study.Choice{Layer: i}
		switch {
		case l.Fixed != "":
			choice.Cause = l.Fixed
		case i == 0:
			choice.Cause = study.First
		default:
			choice.Change = study.Change{Structure: structures[i%2], Level: levels[3+i%6]}
			choice.TimeS, choice.LossValue = new(dense*.4), new(.002)
		}
		plan.Choices = append(plan.Choices, choice)
	}
	whole *= 1.2
	fast.Latency, wide.Latency = metric(whole, .01), metric(10*whole, .01)
	for k := range 14 {
		f := study.FrontPoint{Cost: whole * (1 - .05*float64(k)), Loss: .0006 * math.Pow(float64(k), 2.2), Chosen: k == 9}
		for i := range layers {
			f.Changes = append(f.Changes, study.Change{Structure: study.Unstructured, Level: levels[min(len(levels)-1, (k+i)%len(levels))]})
		}
		plan.Front = append(plan.Front, f)
	}
	plan.Predicted = study.Outcome{LatencyS: metric(whole*.5, .04), Speedup: metric(2, .04), Loss: metric(.07, .1)}
	plan.Measured = &study.Outcome{LatencyS: metric(whole*.52, .02), Speedup: metric(1.92, .02), Loss: metric(.074, .1), Params: new(int64(4_000_000)), Zeros: new(int64(2_800_000)), Bytes: new(int64(5 << 20))}
	s.Speeds, s.Losses, s.Plans = []*study.Speed{fast, wide}, []*study.Loss{loss}, []*study.Plan{plan}
	s.Benches = []*study.Bench{{Name: "bench", Created: at, Points: []study.BenchPoint{
		{Engine: "opmeter", Threads: 1, Before: metric(whole, .01), After: metric(whole*.52, .01), Speedup: metric(1.92, .01)},
		{Engine: "onnxruntime", Threads: 1, Batch: 1, Before: metric(whole*.9, .01), After: metric(whole*.9, .01), Speedup: metric(1, .01), Cause: study.NoKernel},
		{Engine: "openvino", Threads: 2, Error: "the engine refuses the model"},
	}}}
	return s
}
