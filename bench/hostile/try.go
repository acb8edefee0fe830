package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/opmeter/opmeter/internal/estimate"
	"github.com/opmeter/opmeter/internal/estimate/chip"
	"github.com/opmeter/opmeter/internal/model/graph"
	"github.com/opmeter/opmeter/internal/model/modelfile"
	"github.com/opmeter/opmeter/internal/runtime/describe"
	"github.com/opmeter/opmeter/internal/runtime/engine"
	"github.com/opmeter/opmeter/internal/runtime/inputs"
	"github.com/opmeter/opmeter/internal/runtime/operators"
	"github.com/opmeter/opmeter/internal/runtime/plan"
	"github.com/opmeter/opmeter/profile"
)

// What a model may take.
const (
	timeLimit   = 10 * time.Second
	memoryLimit = 1 << 30
	// valueLimit is what the engine is told, runLimit when an inference is stopped.
	valueLimit = 64 << 20
	runLimit   = 300 * time.Millisecond
)

var registry = operators.Registry()

// figures count what became of the models.
type figures struct{ refused, planned, ran, stopped atomic.Int64 }

// try sends all models through the program's parts.
func try(w io.Writer, o options) error {
	all, err := sources(o)
	if err != nil {
		return err
	}
	set, err := chip.Load("")
	if err != nil {
		return err
	}
	target := set.List()[0]
	debug.SetMemoryLimit(int64(o.workers) * memoryLimit / 2)
	var f figures
	var failed atomic.Int64
	var mu sync.Mutex
	report := func(name string, data []byte, why string) {
		failed.Add(1)
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintf(w, "%s: %s\n", name, why)
		if o.keep == "" {
			return
		}
		if err := errors.Join(os.MkdirAll(o.keep, 0o755), os.WriteFile(filepath.Join(o.keep, name), data, 0o644)); err != nil {
			fmt.Fprintln(w, err)
		}
	}
	next := make(chan int)
	var wg sync.WaitGroup
	for range o.workers {
		wg.Go(func() {
			for i := range next {
				name, data := mutant(all, o, i)
				late := time.AfterFunc(timeLimit, func() { report(name, data, fmt.Sprintf("takes more than %v", timeLimit)) })
				why := trial(name, data, target, &f)
				late.Stop()
				var ms runtime.MemStats
				if runtime.ReadMemStats(&ms); ms.HeapAlloc > uint64(o.workers)*memoryLimit {
					why += fmt.Sprintf(" %d MB of heap", ms.HeapAlloc>>20)
				}
				if why != "" {
					report(name, data, why)
				}
			}
		})
	}
	for i := o.first; i < o.first+o.n; i++ {
		next <- i
	}
	close(next)
	wg.Wait()
	fmt.Fprintf(w, "%d models of %d sources: %d refused, %d planned, %d ran to the end, %d were stopped, %d failed\n",
		o.n, len(all), f.refused.Load(), f.planned.Load(), f.ran.Load(), f.stopped.Load(), failed.Load())
	if n := failed.Load(); n > 0 {
		return fmt.Errorf("%d of %d models fail", n, o.n)
	}
	return nil
}

// trial sends one model through and tells what went wrong, empty for nothing.
func trial(name string, data []byte, target *chip.Target, f *figures) (why string) {
	defer func() {
		if e := recover(); e != nil {
			why = fmt.Sprintf("panic: %v\n%s", e, debug.Stack())
		}
	}()
	var found []string
	note := func(err error) bool {
		if err != nil && strings.Contains(err.Error(), "internal error") {
			found = append(found, err.Error())
		}
		return err != nil
	}
	m, err := modelfile.Parse(name, data)
	if note(err) {
		f.refused.Add(1)
		return strings.Join(found, "; ")
	}
	in, _, err := inputs.Inputs(m, inputs.Options{MaxBytes: valueLimit})
	if note(err) {
		f.refused.Add(1)
		return strings.Join(found, "; ")
	}
	p, err := plan.Make(m, in, plan.Options{Registry: registry, MaxBytes: valueLimit})
	if note(err) {
		f.refused.Add(1)
		return strings.Join(found, "; ")
	}
	f.planned.Add(1)
	slots := p.Slots()
	for i := range slots {
		note(slots[i].Err)
	}
	d, err := describe.Model(p, slots, nil)
	if !note(err) {
		if err := d.Validate(); err != nil {
			found = append(found, "no valid profile: "+err.Error())
		}
	}
	if len(target.ID) > 0 {
		found = append(found, estimated(m, target)...)
	}
	s, err := engine.New(m, in, engine.Options{Registry: registry, MaxBytes: valueLimit})
	if note(err) {
		return strings.Join(found, "; ")
	}
	defer s.Close()
	ctx, cancel := context.WithTimeout(context.Background(), runLimit)
	defer cancel()
	for {
		err = s.Run(ctx)
		ne, ok := errors.AsType[*engine.NodeError](err)
		if note(err); !ok || ctx.Err() != nil || !s.Disable(innermost(ne)) {
			break
		}
	}
	for _, st := range plan.List(m, s.GraphSteps) {
		note(st.Err)
	}
	switch {
	case ctx.Err() != nil:
		f.stopped.Add(1)
	case err == nil:
		f.ran.Add(1)
	}
	return strings.Join(found, "; ")
}

func innermost(e *engine.NodeError) *engine.NodeError {
	for {
		in, ok := errors.AsType[*engine.NodeError](e.Err)
		if !ok {
			return e
		}
		e = in
	}
}

// estimated makes an estimate and checks it.
func estimated(m *graph.Model, target *chip.Target) []string {
	p, err := estimate.Estimate(m, target, chip.Options{})
	if err != nil {
		if strings.Contains(err.Error(), "internal error") {
			return []string{"estimate: " + err.Error()}
		}
		return nil
	}
	return invalid("estimate", p)
}

func invalid(what string, p *profile.Profile) []string {
	if err := p.Validate(); err != nil {
		return []string{what + ": no valid profile: " + err.Error()}
	}
	return nil
}
