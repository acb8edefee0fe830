package child

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/opmeter/opmeter/internal/external"
	"github.com/opmeter/opmeter/internal/measure/machine"
	"github.com/opmeter/opmeter/internal/measure/machine/rates"
	"github.com/opmeter/opmeter/internal/measure/peakmodels"
	"github.com/opmeter/opmeter/internal/measure/roofline"
	"github.com/opmeter/opmeter/profile"
)

// peaks measures the peak rates of the engine with small models, after everything else, so that a
// failure loses nothing. Models that the engine rejects are skipped.
func (t *trial) peaks(ctx context.Context) error {
	if len(t.req.Ceilings) == 0 || !onProcessor(t.facts.Settings) || ctx.Err() != nil {
		return ctx.Err()
	}
	if err := t.pipe.Send(&external.Message{Spare: true}); err != nil {
		return err
	}
	t.progress("peaks of the engine", 0)
	start := time.Now()
	r := rates.Rates{Clock: rates.Clock()}
	for _, kind := range t.req.Ceilings {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		switch k := peakmodels.Kind(kind); k {
		case peakmodels.Float32:
			r.Float = t.product(k, &r)
		case peakmodels.Int8:
			r.Integer = t.product(k, &r)
		case peakmodels.Memory:
			t.levels(&r)
		}
	}
	var target profile.Target
	roofline.Put(&target, &r, &roofline.Way{
		Kernel: t.about.Engine, Half: t.facts.Half, Threads: t.req.Task.Threads,
		Operations: fmt.Sprintf("operations from the quickest of many products of two matrices of %[1]d × %[1]d elements of each type by %[2]s", peakmodels.Size(peakmodels.Float32), t.about.Title),
		Bytes:      fmt.Sprintf("bytes from max(x, 0) of one tensor into another by %s, read and written,", t.about.Title),
	}, t.p.Host)
	if target.PeakMethod == "" {
		return nil
	}
	t.phases.PeaksS = new(time.Since(start).Seconds())
	return t.event(profile.Event{Noted: &profile.Noted{Target: &target, Phases: &t.phases}})
}

// onProcessor reports whether only the CPU computes, as far as the engine reports its providers.
func onProcessor(settings map[string]string) bool {
	processor := []string{"CPUExecutionProvider", "XnnpackExecutionProvider", "DnnlExecutionProvider", "cpu", "CPU"}
	for _, key := range []string{"providers", "accelerator", "device"} {
		for name := range strings.SplitSeq(settings[key], ",") {
			if name != "" && !slices.Contains(processor, name) {
				return false
			}
		}
	}
	return true
}

// Run times of a peak model, and the minimum and maximum number of runs.
const (
	productTime = 60 * time.Millisecond
	levelTime   = 30 * time.Millisecond
	leastRuns   = 3
	mostRuns    = 20_000
	// idle is how many times as long as an inference of nothing one has to take that shows a rate.
	idle = 10
)

// product measures the multiply-accumulate rate of a matrix multiplication.
func (t *trial) product(k peakmodels.Kind, r *rates.Rates) rates.Rate {
	rate, _ := t.ceiling(k, peakmodels.Size(k), productTime, r, func(m *peakmodels.Model) float64 { return m.Ops / 2 })
	return rate
}

// levels measures the bandwidth of the memory levels.
func (t *trial) levels(r *rates.Rates) {
	bytes := func(m *peakmodels.Model) float64 { return m.Bytes }
	size := func(p *int64) int64 {
		if p == nil {
			return 0
		}
		return *p
	}
	h, n := t.p.Host, int64(max(t.req.Task.Threads, 1))
	var scratch rates.Rates // rates of the empty inference are not used
	_, nothing := t.ceiling(peakmodels.Memory, 16, levelTime/10, &scratch, bytes)
	l2, l3 := size(h.CacheL2Bytes), size(h.CacheL3Bytes)
	memory := rates.Buffer(l3)
	for _, l := range []struct {
		name         string
		bytes, touch int64 // capacity, and bytes read and written
	}{{"L2", n * l2, n * l2 / 2}, {"L3", l3, min(4*n*l2, l3/2)}, {"memory", 0, memory}} {
		if l.touch < 64 || l.touch > memory {
			continue
		}
		if l.bytes == 0 {
			if most := machine.MemoryBytes(); most != nil && *most < 8*memory || t.req.MaxMemory > 0 && t.req.MaxMemory < 8*memory {
				continue // a small computer must not be pushed into swapping for this
			}
		}
		rate, took := t.ceiling(peakmodels.Memory, int(l.touch/8), levelTime, r, bytes)
		if l.bytes > 0 && !(took >= idle*nothing) {
			continue
		}
		r.Levels = append(r.Levels, rates.Level{Name: l.name, Bytes: l.bytes, Rate: rate})
	}
	r.Cache, r.Buffer = l3, memory
}

// ceiling times a peak model of a kind and size. It returns the rate over many runs, in units of
// amount per second, and the shortest run in seconds. Both are 0 if the engine rejects the model.
func (t *trial) ceiling(k peakmodels.Kind, n int, d time.Duration, r *rates.Rates, amount func(*peakmodels.Model) float64) (rate rates.Rate, took float64) {
	m, err := peakmodels.Make(t.req.Task.Format, k, n)
	if err != nil {
		return rate, 0
	}
	s, err := t.loadCeiling(m, fmt.Sprintf("%s-%d", k, n))
	if err != nil {
		return rate, 0
	}
	defer func() { _ = s.Close() }()
	for range leastRuns {
		if s.Run() != nil {
			return rate, 0
		}
	}
	took = math.Inf(1)
	rate, passes := rates.Again(func() []float64 {
		var out []float64
		start := time.Now()
		for len(out) < leastRuns || time.Since(start) < d && len(out) < mostRuns {
			began := time.Now()
			if s.Run() != nil {
				return nil
			}
			one := time.Since(began).Seconds()
			if !(one > 0) {
				return nil
			}
			took = min(took, one)
			out = append(out, amount(m)/one)
		}
		return out
	})
	if !(rate.Best > 0) {
		return rates.Rate{}, 0
	}
	r.Passes = max(r.Passes, passes)
	return rate, took
}

// loadCeiling loads a peak model with the options of the measured model.
func (t *trial) loadCeiling(m *peakmodels.Model, name string) (external.Session, error) {
	folder := filepath.Join(t.req.Task.Folder, "ceiling-"+name)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	file := filepath.Join(folder, "model."+t.req.Task.Format)
	if err := os.WriteFile(file, m.Data, 0o600); err != nil {
		return nil, err
	}
	task := *t.req.Task
	task.Model, task.Folder, task.Carry = file, folder, nil
	elements := 1
	for _, d := range m.Shape {
		elements *= d
	}
	x := external.Tensor{Name: m.Input, DType: m.DType, Shape: m.Shape}
	if m.DType == "float32" {
		x.Data = make([]byte, 0, 4*elements)
		for i := range elements {
			x.Data = binary.LittleEndian.AppendUint32(x.Data, math.Float32bits(float32(i%7)/8))
		}
	} else {
		x.Data = make([]byte, elements)
		for i := range x.Data {
			x.Data[i] = byte(i * 31)
		}
	}
	task.Inputs = []external.Tensor{x}
	return t.lib.Load(&task)
}
