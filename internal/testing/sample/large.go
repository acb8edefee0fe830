package sample

import (
	"fmt"
	"math/rand/v2"

	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/timeline"
)

// Large is a profile of a chain of layers with a sample of every iteration and a
// timeline of at most bars bars.
func Large(layers, iterations, bars int) *profile.Profile {
	r := rand.New(rand.NewPCG(1, 2))
	ops := []string{"CONV_2D", "DEPTHWISE_CONV_2D", "ADD", "FULLY_CONNECTED", "SOFTMAX"}
	p := &profile.Profile{
		Schema: profile.SchemaV1, Created: "2026-01-02T03:04:05Z",
		Model:    profile.Model{Name: "large", Path: "large.tflite", Format: "tflite"},
		Target:   profile.Target{ID: "host", Kind: profile.TargetHost, Engine: "opmeter"},
		Settings: profile.Settings{Threads: new(int64(1))},
		Host:     &profile.Host{OS: "linux", Arch: "amd64", CPUModel: "Test CPU"},
	}
	total := 0.0
	for i := range layers {
		base := float64(1000+r.IntN(100_000)) * 1e-9
		shape := []int64{1, 32, 32, int64(8 + r.IntN(64))}
		l := profile.Layer{
			Index: int64(i), Name: fmt.Sprintf("model/block_%d/layer_%d", i/10, i), Op: ops[i%len(ops)], Scope: fmt.Sprintf("model/block_%d", i/10),
			State: profile.Ran, Options: []profile.Option{{Key: "padding", Value: "same"}, {Key: "stride", Value: "1x1"}, {Key: "activation", Value: "relu"}},
			Inputs: []profile.Tensor{
				{Name: fmt.Sprintf("t%d", i), DType: "int8", Shape: shape, Bytes: new(int64(65536))},
				{Name: fmt.Sprintf("w%d", i), DType: "int8", Shape: []int64{64, 3, 3, 64}, Constant: true},
			},
			Outputs: []profile.Tensor{{Name: fmt.Sprintf("t%d", i+1), DType: "int8", Shape: shape}},
			Ops:     new(int64(r.IntN(1 << 24))), MACs: new(int64(r.IntN(1 << 23))), BytesRead: new(int64(65536)), BytesWritten: new(int64(65536)),
			Latency: &profile.Metric{Kind: profile.Measured, N: new(int64(iterations)), Median: new(base)},
			Share:   new(1 / float64(layers)), Kernel: "conv2d/im2col",
			Provenance: &profile.Provenance{Confidence: profile.Exact, SourceNodes: []profile.SourceNode{{Node: int64(i), Op: ops[i%len(ops)]}}},
			Samples:    make([]float64, iterations),
		}
		for j := range l.Samples {
			l.Samples[j] = float64(int64(base*1e9*(1+r.Float64()/4))) / 1e9
		}
		total += base
		p.Layers = append(p.Layers, l)
	}
	p.Totals.Latency = &profile.Metric{Kind: profile.Measured, Median: new(total)}
	whole := timeline.Lane{Name: "iterations", Kind: timeline.Iteration}
	lane := timeline.Lane{Name: "operators", Kind: timeline.Layer, Group: "thread 0"}
	t := &timeline.Timeline{Origin: "first iteration", Iterations: new(int64(iterations)), Method: "made up"}
	now := int64(0)
	for it := 0; it < iterations && len(lane.Starts)+len(whole.Starts)+layers < bars; it++ {
		start := now
		for i := range p.Layers {
			d := int64(p.Layers[i].Samples[it] * 1e9)
			lane.Starts = append(lane.Starts, float64(now)/1e9)
			lane.Durations = append(lane.Durations, float64(d)/1e9)
			lane.Layers = append(lane.Layers, int32(i))
			lane.Iterations = append(lane.Iterations, int32(it))
			now += d + int64(r.IntN(50))
		}
		whole.Starts = append(whole.Starts, float64(start)/1e9)
		whole.Durations = append(whole.Durations, float64(now-start)/1e9)
		whole.Iterations = append(whole.Iterations, int32(it))
		whole.Labels = append(whole.Labels, int32(it))
		t.Names = append(t.Names, fmt.Sprintf("iteration %d", it))
		now += 1000
	}
	t.Lanes = []timeline.Lane{whole, lane}
	p.Timeline = t
	return p
}
