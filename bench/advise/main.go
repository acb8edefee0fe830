// Command advise measures how far the promises of opmeter advise hold, and what its factors are.
//
//	go run ./bench/advise [-budget 8s] [-time 1s] [-json FILE] [FILE or FOLDER ...]
//	go run ./bench/advise -rules RULE,... [-opmeter PROGRAM -engine NAME=LIBRARY]
//
// Every model is profiled, the rules are applied, and each advice that can be applied at once is
// measured interleaved with the unchanged model, longer than the short runs of the rules. The table
// has the promised ratio with its band and the measured one with its interval. Without names, the
// examples and the reference models are taken. OPMETER_CPU chooses the instruction set.
//
// -rules tries each of these rules, or all, on a model where it has to gain what it promises, and
// on one where it has to stay silent. A row says what cannot be tried here, and why.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/internal/advise"
	"github.com/opmeter/opmeter/internal/base/atomicfile"
	"github.com/opmeter/opmeter/internal/bridge"
	"github.com/opmeter/opmeter/internal/testing/material"
)

var (
	budget = flag.Duration("budget", 8*time.Second, "time to measure each change")
	span   = flag.Duration("time", time.Second, "time of each profile")
	probe  = flag.Duration("probe", advise.ProbeTime, "time of the short runs of rules that measure")
	out    = flag.String("json", "", "file for the results")
	made   = flag.Bool("made", false, "also measure models that are made here: one for each rule that fires for few")
	rules  = flag.String("rules", "", "rules to try on models that they have to fire for, and to be silent for; all for every rule")
	// program and external are for rules about other engines.
	program  = flag.String("opmeter", "", "opmeter `PROGRAM` that measures external engines in processes")
	external = flag.String("engine", "", "external engine, such as onnxruntime=/path/to/libonnxruntime.so")
	longest  = flag.Duration("longest", 300*time.Millisecond, "leave out models with longer inferences")
)

func main() {
	flag.Parse()
	do := func() error { return check(context.Background(), flag.Args()) }
	if *rules != "" {
		do = func() error { return tryRules(context.Background(), strings.Split(*rules, ",")) }
	}
	if err := do(); err != nil {
		fmt.Fprintln(os.Stderr, "advise:", err)
		os.Exit(1)
	}
}

// models lists the models of the arguments, or the default ones.
func models(args []string) ([]string, error) {
	if len(args) == 0 {
		args = []string{filepath.Join(material.Root(), "examples")}
		if dir := material.Dir(); dir != "" {
			args = append(args, filepath.Join(dir, "models", "real"))
		}
	}
	files, err := material.Models(args)
	for _, a := range args {
		more, _ := filepath.Glob(filepath.Join(a, "*.yaml"))
		if filepath.Ext(a) == ".yaml" {
			more = []string{a}
		}
		files = append(files, more...)
	}
	return files, err
}

// with opens and profiles a model, and calls do with what rules know about it.
func with(ctx context.Context, path string, do func(f *advise.Facts) error) error {
	m, err := opmeter.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = m.Close() }()
	p, err := opmeter.Profile(ctx, m, opmeter.Options{Time: *span, Warmup: 200 * time.Millisecond})
	if err != nil {
		return err
	}
	if v, ok := p.Totals.Latency.Best(); !ok || v > longest.Seconds() || v <= 0 {
		return fmt.Errorf("an inference takes %.3g s", v)
	}
	b := bridge.Of(m)
	f := &advise.Facts{Profile: p, Model: b.Graph, Path: path}
	if f.Feed.MaxBytes, err = b.MemoryLimit(0); err != nil {
		return err
	}
	f.Probe = func(v *advise.Variant) (*advise.Measured, error) { return advise.Here(ctx, f, v, *probe) }
	return b.Reading(func() error { return do(f) })
}

// outcome is an advice that was measured.
type outcome struct {
	Model   string         `json:"model"`
	Latency float64        `json:"latency_s"`
	Set     string         `json:"kernel_set"`
	Advice  *advise.Advice `json:"advice,omitempty"`
	Error   string         `json:"error,omitempty"`
}

// madeModels writes models with a function, if -made asks for them.
func madeModels(write func(dir string) ([]string, error)) (files []string, remove func(), err error) {
	if !*made {
		return nil, func() {}, nil
	}
	dir, err := os.MkdirTemp("", "advise-")
	if err != nil {
		return nil, nil, err
	}
	files, err = write(dir)
	return files, func() { _ = os.RemoveAll(dir) }, err
}

func check(ctx context.Context, args []string) error {
	files, err := models(args)
	if err != nil {
		return err
	}
	more, remove, err := madeModels(shown)
	if err != nil {
		return err
	}
	defer remove()
	files = append(files, more...)
	fmt.Printf("%-40s %10s  %-14s %-24s %-24s %s\n", "model", "latency", "rule", "promised (band)", "measured (interval)", "verdict")
	var all []outcome
	verdicts, byRule := map[advise.Verdict]int{}, map[string]map[advise.Verdict]int{}
	for _, path := range files {
		name := filepath.Base(path)
		err := with(ctx, path, func(f *advise.Facts) error {
			r := advise.About(f)
			if _, err := advise.Try(ctx, f, r, advise.Here, *budget); err != nil {
				return err
			}
			now, _ := f.Profile.Totals.Latency.Best()
			if len(r.Advice) == 0 {
				fmt.Printf("%-40.40s %8.1fus  no advice\n", name, 1e6*now)
				all = append(all, outcome{Model: name, Latency: now, Set: f.Profile.Settings.KernelSet})
			}
			for _, a := range r.Advice {
				g, measured, verdict := &a.Gain, "not tried", "-"
				if t := a.Tried; t != nil {
					verdicts[t.Verdict]++
					if byRule[a.Rule] == nil {
						byRule[a.Rule] = map[advise.Verdict]int{}
					}
					byRule[a.Rule][t.Verdict]++
					verdict = string(t.Verdict)
					if measured = t.Error; t.Interval != nil {
						measured = fmt.Sprintf("%.3f (%.3f to %.3f)", t.Ratio, t.Interval[0], t.Interval[1])
					}
				}
				fmt.Printf("%-40.40s %8.1fus  %-14s %-24s %-24s %s\n", name, 1e6*now, a.Rule, fmt.Sprintf("%.3f (%.3f to %.3f)", g.Ratio, g.Band[0], g.Band[1]), measured, verdict)
				all = append(all, outcome{name, now, f.Profile.Settings.KernelSet, a, ""})
			}
			return nil
		})
		if err != nil {
			fmt.Printf("%-40.40s not measured: %.120v\n", name, err)
			all = append(all, outcome{Model: name, Error: err.Error()})
		}
	}
	fmt.Println("verdicts:", verdicts)
	for _, rule := range slices.Sorted(maps.Keys(byRule)) {
		fmt.Println(rule, byRule[rule])
	}
	if *out == "" {
		return nil
	}
	b, err := json.MarshalIndent(all, "", " ")
	if err != nil {
		return err
	}
	return atomicfile.Write(*out, b)
}
