package tpu

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"github.com/opmeter/opmeter/internal/base/sorting"
	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/internal/record/tpu/capture"
	"github.com/opmeter/opmeter/internal/record/tpu/command"
	"github.com/opmeter/opmeter/profile"
)

// whatIf sets the host's interval, the operations of the model and its share of the peak.
func whatIf(r *capture.Recording, w *work, p *profile.Profile, qs *runlog.Quantities) {
	n := float64(len(w.walls))
	wall, ok := p.Totals.Latency.Best()
	if !ok || n == 0 {
		return
	}
	if v, ok := hostInterval(r); ok {
		qs.SetTotal(&p.Totals, quantities[qHost], v/n)
	}
	flops, ok := p.Totals.Value(quantities[qFLOPs].Key)
	if !ok && r.Program != nil && r.Program.FLOPs > 0 {
		flops, ok = float64(r.Program.FLOPs), true
		qs.SetTotal(&p.Totals, quantities[qFLOPs], flops)
	}
	if peak := p.Target.PeakOpsPerSecond; ok && peak != nil && wall > 0 {
		at := *peak
		if v := mainPeak(r); v > 0 {
			at = v
		}
		qs.SetTotal(&p.Totals, quantities[qMAC], flops/(at*wall))
	}
}

// mainPeak returns the peak for the element type of most operations, 0 if no operation is known.
func mainPeak(r *capture.Recording) float64 {
	ops := map[command.DType]float64{}
	for _, c := range r.Cores() {
		e := c.Engine(command.TIU)
		if e == nil {
			continue
		}
		for i := range e.Len() {
			if cmd := commandOf(e, i); cmd != nil && e.Class[i] == capture.Work {
				if x, ok := cmd.Work(r.Chip); ok {
					ops[cmd.DType()] += float64(x.Alg)
				}
			}
		}
	}
	var best command.DType
	most := 0.0
	for t, v := range ops {
		if v > most || v == most && t < best {
			best, most = t, v
		}
	}
	if most == 0 {
		return 0
	}
	return peakOf(r.Chip, r.Clock.TIU, best) * float64(mostCores(r))
}

func foundIf(run *runlog.Run, cond bool, id string, s profile.Severity, format string, args ...any) {
	if cond {
		run.Found(id, s, format, args...)
	}
}

// findings adds all findings, the most important first.
func findings(run *runlog.Run, r *capture.Recording, ls *layers, w *work, x *expected) {
	aboutChip(run, r)
	if len(r.Steps) > 0 {
		aboutClocks(run, r)
		aboutCores(run, r)
		aboutLoss(run, r)
		aboutSteps(run, r, w)
	}
	aboutLayers(run, r, ls)
	aboutExpected(run, r, x)
	aboutTime(run, r, w)
}

func aboutChip(run *runlog.Run, r *capture.Recording) {
	if len(r.Says) > 0 {
		run.Found("tpu.chip", profile.Problem, "The record was read as one of %s (by %s), but %s. Another chip gives other figures.",
			r.Chip.Name, r.ChipFrom, strings.Join(r.Says, ", "))
	}
	for _, g := range r.Guesses {
		run.Found("tpu.assumed", profile.Warning, "%s.", g)
	}
}

func aboutClocks(run *runlog.Run, r *capture.Recording) {
	k := r.Clock
	waits, bad := 0, 0
	narrow := math.Inf(1)
	unbound := false
	for _, c := range r.Cores() {
		waits, bad = waits+c.Offset.Waits, bad+c.Offset.Violated
		if c.Offset.Waits > 0 {
			narrow = min(narrow, c.Offset.High-c.Offset.Low)
		}
		t, g := c.Engine(command.TIU), c.Engine(command.GDMA)
		unbound = unbound || !c.Aligned && t != nil && g != nil && t.Len() > 0 && g.Len() > 0
	}
	switch {
	case bad > 0:
		run.Found("tpu.waits", profile.Warning, "%d of %d recorded dependencies between the tensor engine and copies are contradicted: commands seem to start before their dependencies ended. Records may be matched with the wrong commands, or a clock is wrong.", bad, waits)
	case waits > 0 && !math.IsInf(narrow, 0):
		run.Found("tpu.axis", profile.Info, "The engines' counters are aligned by %d dependencies, none of them contradicted. They leave an interval of %.4g cycles of the tensor engine's clock.", waits, narrow)
	}
	foundIf(run, unbound, "tpu.axis.unknown", profile.Warning, "No dependency aligns the counters of the tensor engine and of the copies. The overlap of engines, and so the layers' share of it, is assumed.")
	nominal := k.NominalTIU / k.NominalDMA
	switch {
	case k.Given && !k.Ratio.Solved && k.Ratio.Best > 0:
		run.Found("tpu.clock", profile.Warning, "The given clocks have the ratio %.6g. The dependencies of commands agree best with %.6g.", k.Ratio.K, k.Ratio.Best)
	case !k.Given && k.Ratio.Solved && !k.Ratio.Nominal:
		run.Found("tpu.clock", profile.Warning, "By the dependencies of commands, the ratio of the TIU clock to the DMA clock is %.6g instead of the nominal %.6g (%.4g and %.4g MHz). Times are at %.4g and %.4g MHz.",
			k.Ratio.K, nominal, k.NominalTIU/1e6, k.NominalDMA/1e6, k.TIU/1e6, k.DMA/1e6)
	case !k.Ratio.Solved && !k.Given:
		run.Found("tpu.clock", profile.Info, "Times are at the clocks %.4g MHz (TIU, %s) and %.4g MHz (copies, %s). No record confirms them.", k.TIU/1e6, k.TIUMethod, k.DMA/1e6, k.DMAMethod)
	}
	if f := r.Log.FreqMHz * 1e6; f > 0 && !k.Given && math.Abs(f/k.TIU-1) > 0.01 {
		run.Found("tpu.clock.file", profile.Info, "global.profile states a clock of %.4g MHz; times are at %.4g MHz (%s).", f/1e6, k.TIU/1e6, k.TIUMethod)
	}
}

func aboutCores(run *runlog.Run, r *capture.Recording) {
	for _, s := range r.Steps {
		foundIf(run, !s.CoresFound, "tpu.cores", profile.Warning, "Step %d has different numbers of monitors and cores. The core of each monitor was taken from the order of the records.", s.Number)
		for i, c := range s.Cores {
			foundIf(run, i > 0 && c.ShiftMethod == "" && len(c.Engines) > 0, "tpu.cores.axis", profile.Warning, "Step %d: no message aligns the counters of core %d with those of core %d. Both are assumed to begin at the same instant.", s.Number, c.Number, s.Cores[0].Number)
		}
	}
}

func aboutLoss(run *runlog.Run, r *capture.Recording) {
	for e := range r.Units() {
		s, c := e.Step, e.Core
		name := fmt.Sprintf("%s of core %d", engineName(e.Engine), c.Number)
		if len(r.Steps) > 1 {
			name += fmt.Sprintf(" in step %d", s.Number)
		}
		if e.Lost > 0 {
			run.Found("tpu.lost", profile.Warning, "%d of %d commands of the %s have no record: the hardware lost them. Their time and work are missing.", e.Lost, e.Program.Len(), name)
			run.Lost = append(run.Lost, profile.Loss{Records: new(int64(e.Lost)), Cause: profile.Cause{Code: profile.ByRecord, Text: "commands of the " + name + " without a record"}})
		}
		if stop := e.Program.Stop; stop != nil {
			run.Found("tpu.commands", profile.Warning, "The command stream of the %s was decoded as far as %v. Records of later commands are shown without their work.", name, stop)
		}
		foundIf(run, e.Len() == 0 && e.Program.Len() > 0 && !s.Dynamic(), "tpu.monitor", profile.Warning, "Records of the %s are missing: its monitor was off, or nothing was written. Times of its commands are missing.", name)
		foundIf(run, e.Repeats, "tpu.counters", profile.Info, "The counters of useful cycles and stalls repeat the length of each command in all records of the %s: the chip does not count them. They are left out.", name)
		p := &e.Program
		foundIf(run, p.Disagree > 0, "tpu.log", profile.Warning, "%d of %d commands of the %s have another function in the compiler's log than in the stream.", p.Disagree, p.Agree+p.Disagree, name)
	}
	if n := r.Dropped.Total(); n > 0 {
		run.Found("tpu.dropped", profile.Warning, "Left out: %s.", strings.Join(lossesOf(r), "; "))
	}
}

func lossesOf(r *capture.Recording) []string {
	var tmp runlog.Run
	r.Dropped.To(&tmp)
	var out []string
	for _, l := range tmp.Lost {
		out = append(out, fmt.Sprintf("%d %s", *l.Records, l.Cause.Text))
	}
	return out
}

func aboutSteps(run *runlog.Run, r *capture.Recording, w *work) {
	if n := len(r.Missing); n > 0 {
		run.Found("tpu.steps", profile.Warning, "%d steps between the recorded ones are missing, the first one is number %d: profiling was restricted to some steps, or files are lost. The latency covers the recorded steps.", n, r.Missing[0])
	}
	onHost := 0
	for _, s := range r.Steps {
		if hostTimed(s) {
			onHost++
		}
		for _, c := range s.Cores {
			if f := &c.Firmware; len(f.Records) > 0 && !f.Valid {
				run.Found("tpu.firmware.clock", profile.Warning, "The firmware of core %d does not state the length of its ticks. %g ns are assumed, so the scale of its lane is uncertain.", c.Number, f.TickS*1e9)
			}
		}
	}
	foundIf(run, onHost > 0, "tpu.host.subnets", profile.Info, "%d subnets ran on the host. Their time is the host's interval, the cost of profiling included.", onHost)
	v, ok := hostInterval(r)
	if t, has := run.Profile.Totals.Latency.Best(); ok && has && len(w.walls) > 0 {
		run.Found("tpu.host", profile.Info, "The host's marks around the subnets are %s apart, and the chip worked for %s. The first time includes the cost of profiling and is not the model's latency.", seconds(v/float64(len(w.walls))), seconds(t))
	}
}

func aboutLayers(run *runlog.Run, r *capture.Recording, ls *layers) {
	foundIf(run, ls.byFunction && len(ls.list) > 0, "tpu.layers", profile.Warning, "No file names the layers of commands. Commands are grouped by function. To see layers, compile the model with debug information and keep tensor_location.json or the log in the folder of the records.")
	foundIf(run, ls.apart > 0, "tpu.layers.disagree", profile.Warning, "%d of %d commands belong to another operation in tensor_location.json than in the compiler's log. The log was used.", ls.apart, ls.checked)
	foundIf(run, ls.twice > 0, "tpu.layers.twice", profile.Warning, "tensor_location.json assigns %d commands to two operations. The first one was used.", ls.twice)
}

func aboutExpected(run *runlog.Run, r *capture.Recording, x *expected) {
	if x == nil || !(x.total > 0) {
		return
	}
	t, ok := run.Profile.Totals.Latency.Best()
	if !ok || len(r.Steps) == 0 {
		run.Found("tpu.estimate", profile.Info, "Nothing was run: times are the compiler's estimate, %s at %.4g MHz. Its authors state that it is within about 20 %% of silicon.", seconds(x.total), x.hz/1e6)
		return
	}
	foundIf(run, t > 0, "tpu.estimate", profile.Info, "The compiler expected %s, %.0f %% of the time recorded (%s).", seconds(x.total), 100*x.total/t, seconds(t))
}

func aboutTime(run *runlog.Run, r *capture.Recording, w *work) {
	n := float64(len(w.walls))
	wall, ok := run.Profile.Totals.Latency.Best()
	if !ok || n == 0 || !(wall > 0) || !w.total.known[qTIU] || !w.total.known[qDMA] {
		return
	}
	// The busiest core limits the gain of overlap.
	tiu, dma := 0.0, 0.0
	for _, s := range r.Steps {
		var st, sd float64
		for _, c := range s.Cores {
			for _, e := range c.Engines {
				b := 0.0
				for i := range e.Len() {
					if e.Class[i] == capture.Work && !hostTimed(s) {
						b += e.Finish[i] - e.Begin[i]
					}
				}
				if e.Kind == command.TIU {
					st = max(st, b)
				} else {
					sd = max(sd, b)
				}
			}
		}
		tiu, dma = tiu+st, dma+sd
	}
	tiu, dma = tiu/n, dma/n
	foundIf(run, max(tiu, dma) > wall*(1+1e-3), "tpu.busy", profile.Problem, "An engine was busy for %.4g %% of the time, which is impossible: the chip, a clock or a part of the record is wrong. Do not use these figures.", 100*max(tiu, dma)/wall)
	text := fmt.Sprintf("Of %s the busiest tensor engine worked %s (%.1f %%) and the busiest copy engine %s (%.1f %%), %s of it at the same time as another engine. If copies and computing overlapped fully, the time would be %s; with computing alone %s",
		seconds(wall), seconds(tiu), 100*tiu/wall, seconds(dma), 100*dma/wall, seconds(w.inBoth/n), seconds(max(tiu, dma)), seconds(tiu))
	flops, have := run.Profile.Totals.Value(quantities[qFLOPs].Key)
	if peak := mainPeak(r); have && peak > 0 && tiu > 0 {
		text += fmt.Sprintf("; at the tensor engines' peak for the model's main type %s. The model reaches %.3g %% of that peak, with computing alone it would reach %.3g %%",
			seconds(flops/peak), 100*flops/(peak*wall), 100*flops/(peak*tiu))
	}
	run.Found("tpu.what_if", profile.Info, "%s.", text)
	aboutKinds(run, w, n)
}

// aboutKinds lists the kinds of layers that would gain most from better use of the tensor engine.
func aboutKinds(run *runlog.Run, w *work, n float64) {
	busy, ideal := map[string]float64{}, map[string]float64{}
	var kinds []string
	for i := range min(len(w.layer), len(run.Profile.Layers)) {
		s := &w.layer[i]
		if !(s.v[sPossible] > 0) {
			continue
		}
		op := run.Profile.Layers[i].Op
		if _, ok := busy[op]; !ok {
			kinds = append(kinds, op)
		}
		busy[op] += s.v[qTIU] / n
		ideal[op] += s.v[qTIU] / n * min(1, s.v[qOps]/s.v[sPossible])
	}
	sorting.Stable(kinds, func(a, b string) int { return cmp.Compare(busy[b]-ideal[b], busy[a]-ideal[a]) })
	var parts []string
	for _, k := range kinds[:min(len(kinds), 3)] {
		parts = append(parts, fmt.Sprintf("%s from %s to %s", k, seconds(busy[k]), seconds(ideal[k])))
	}
	foundIf(run, len(parts) > 0, "tpu.what_if.kinds", profile.Info, "At the tensor engine's peak for their element types these layers would need less of its time: %s.", strings.Join(parts, ", "))
}

func seconds(v float64) string {
	switch {
	case v >= 1:
		return fmt.Sprintf("%.4g s", v)
	case v >= 1e-3:
		return fmt.Sprintf("%.4g ms", v*1e3)
	}
	return fmt.Sprintf("%.4g µs", v*1e6)
}
