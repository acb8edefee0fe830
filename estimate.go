package opmeter

import (
	"context"
	"errors"
	"fmt"

	"github.com/opmeter/opmeter/internal/base/buildinfo"
	"github.com/opmeter/opmeter/internal/estimate"
	"github.com/opmeter/opmeter/internal/estimate/chip"
	"github.com/opmeter/opmeter/internal/estimate/fit"
	"github.com/opmeter/opmeter/internal/source"
	"github.com/opmeter/opmeter/profile"
)

// Targets is hardware that models can be estimated on: chips and cores of the
// program, and those of target files (docs/reference/target-files.md).
type Targets struct{ set *chip.Set }

// LoadTargets returns the targets of the program, with those of the .yaml files in
// folder added; "" adds none. A file replaces a target of the same id. Faulty files
// are left out, with the program's targets of their names, and the error joins a
// [TargetError] for each fault.
func LoadTargets(folder string) (*Targets, error) {
	s, err := chip.Load(folder)
	if s == nil {
		return nil, targetErrors(err)
	}
	return &Targets{s}, targetErrors(err)
}

// targetErrors gives the faults of target files their public type.
func targetErrors(err error) error {
	list := leaves(err)
	for i, e := range list {
		if f, ok := errors.AsType[*chip.FileError](e); ok {
			list[i] = &TargetError{File: f.File, Line: f.Line, Key: f.Key, Text: f.Text}
		}
	}
	if _, joined := err.(interface{ Unwrap() []error }); !joined && len(list) == 1 {
		return list[0]
	}
	return errors.Join(list...)
}

// leaves are the errors that one joins, itself where it joins none.
func leaves(err error) (list []error) {
	if err == nil {
		return nil
	}
	many, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	for _, e := range many.Unwrap() {
		list = append(list, leaves(e)...)
	}
	return list
}

// Target describes hardware that models can be estimated on.
type Target struct {
	// ID names it for [Targets.Estimate], Name for people.
	ID, Name string
	// Core is the processor, Accelerator the unit beside it, "" for none.
	Core, Accelerator string
	// ClockHz is the default clock of the processor in hertz.
	ClockHz float64
	// Runtimes lists the runtime families with figures; the first is the default.
	Runtimes []string
	// Memories are those that a model can use, and Figures says what the estimates with
	// each runtime rest on, in the order of Runtimes.
	Memories []TargetMemory
	Figures  []TargetFigures
	// RAMBytes and FlashBytes are the largest internal memories in bytes,
	// ExternalFlashBytes the largest flash outside; nil where not known or absent.
	RAMBytes, FlashBytes, ExternalFlashBytes *int64

	t *chip.Target
}

// TargetMemory is one memory of a target.
type TargetMemory struct {
	Name string
	// Role is ram, flash, tcm, external-ram or external-flash.
	Role  string
	Bytes int64
	// CacheBytes of the cache in front of it and WaitStates of a read at the default
	// clock, nil where not known or none.
	CacheBytes, WaitStates *int64
}

// TargetFigures says what the estimates of a target with one runtime rest on.
type TargetFigures struct {
	// Runtime is the name of the runtime family, Title is for people, Versions says in
	// words which releases are meant.
	Runtime, Title, Versions string
	// Builds are the other ways of building it that [EstimateOptions].Build takes.
	Builds []string
	// From says whose figures were taken over where the chip itself was not measured, ""
	// otherwise; On lists what was measured.
	From string
	On   []string
	// Rows is the number of measurements, of Sources that do not depend on each other.
	Rows, Sources int64
	// MedianError and P90Error are relative errors of measurements that were left out,
	// Band the factors that hold nine of ten; nil where not known.
	MedianError, P90Error *float64
	Band                  *[2]float64
	// Types lists the element types that have figures.
	Types []string
	// CodeBytes is the least and most program code in images that were measured, nil when
	// none were.
	CodeBytes *[2]int64
}

func describeFigures(r *chip.Runtime) TargetFigures {
	f := TargetFigures{Runtime: r.Name, Title: r.Title, Versions: r.Versions, Types: []string{"int8"}}
	for i := range r.Builds {
		f.Builds = append(f.Builds, r.Builds[i].Name)
	}
	if c := r.Calibration; c != nil {
		f.From, f.On, f.Rows, f.Sources = c.From, c.On, c.Rows, c.Sources
		f.MedianError, f.P90Error, f.Band = c.MedianError, c.P90Error, c.Band
	}
	if s := r.Cortexm; s != nil && s.Int16 != nil {
		f.Types = append(f.Types, "int16")
	}
	if s := r.Cortexm; s != nil && s.Float != nil {
		f.Types = append(f.Types, "float32")
	}
	if c := r.Code; c != nil {
		f.CodeBytes = &[2]int64{int64(c[0]), int64(c[1])}
	}
	return f
}

func describeTarget(t *chip.Target) Target {
	d := Target{ID: t.ID, Name: t.Name, Core: t.Core.Name, ClockHz: float64(t.Clock.Default), t: t}
	if t.Accelerator != nil {
		d.Accelerator = t.Accelerator.Name
	}
	for i := range t.Runtimes {
		d.Runtimes = append(d.Runtimes, t.Runtimes[i].Name)
		d.Figures = append(d.Figures, describeFigures(&t.Runtimes[i]))
	}
	for _, m := range t.Memories {
		x := TargetMemory{Name: m.Name, Role: m.Role, Bytes: int64(m.Size), WaitStates: m.WaitStates}
		if m.Cache > 0 {
			x.CacheBytes = new(int64(m.Cache))
		}
		d.Memories = append(d.Memories, x)
	}
	d.RAMBytes, d.FlashBytes, d.ExternalFlashBytes = size(t.RAM()), size(t.Flash()), size(t.ExternalFlash())
	return d
}

func size(b chip.Bytes, ok bool) *int64 {
	if !ok {
		return nil
	}
	return new(int64(b))
}

// List returns all targets, ordered by id.
func (t *Targets) List() []Target {
	list := t.set.List()
	out := make([]Target, len(list))
	for i, x := range list {
		out[i] = describeTarget(x)
	}
	return out
}

// Find returns the target with an id; case does not matter. The error is an
// [OptionError] that names ids that look like it, or joins a [TargetError] for each fault
// where the target's file is faulty.
func (t *Targets) Find(id string) (Target, error) {
	x, err := t.set.Find(id)
	if err != nil {
		if _, unknown := errors.AsType[*chip.UnknownError](err); !unknown {
			return Target{}, targetErrors(err)
		}
		return Target{}, &OptionError{Option: "target", Text: err.Error(), Err: err}
	}
	return describeTarget(x), nil
}

// EstimateOptions says how to estimate. The zero value takes the target's defaults
// and the model's own shapes.
type EstimateOptions struct {
	// Inputs sets shapes; what is fed does not matter.
	Inputs Inputs
	// Runtime is the runtime family, "" for the target's first.
	Runtime string
	// Build is a way of building the runtime, such as "size" or "no-fpu", "" for the
	// usual one: for speed, with all units of the core.
	Build string
	// ClockHz is the processor's clock in hertz, 0 for the target's default.
	ClockHz float64
	// Name of the model for people, "" for that of the file.
	Name string
}

// Estimate estimates a model on the target. It runs nothing. Every figure is of
// kind [profile.Estimated] with a band that is made to hold the true value in 9 of
// 10 cases, or absent with the cause in the layer; Profile.Incomplete says when
// totals leave layers out. Errors are an [OptionError] or [ModelError] and mean that
// nothing could be said.
func (t Target) Estimate(m *Model, o EstimateOptions) (*profile.Profile, error) {
	if t.t == nil {
		return nil, noTarget()
	}
	m.identify() // asked for below
	ready, err := m.estimable(o.Inputs)
	if err != nil {
		return nil, failed(m.g.Path, err)
	}
	s := reader{&estimate.Source{Model: ready, Target: t.t, Options: o.chip()}, m}
	p, err := source.Collect(context.Background(), s, source.Options{Version: buildinfo.Version()})
	return p, failed(m.g.Path, err)
}

func noTarget() error {
	return wrong("target", "this is none: take one from Targets.Find or Targets.List")
}

// estimable is the model planned for some inputs.
func (m *Model) estimable(in Inputs) (*estimate.Model, error) {
	if in.Batch == 0 && len(in.Shapes) == 0 && len(in.Dims) == 0 && len(in.Files) == 0 && in.Overrides == "" {
		return m.prepared()
	}
	f, err := in.feed(m)
	if err != nil {
		return nil, err
	}
	var e *estimate.Model
	err = m.reading(func() (err error) { e, err = estimate.Prepare(m.g, f, m.identity); return err })
	return e, err
}

// chip translates the options that are the target's.
func (o *EstimateOptions) chip() chip.Options {
	return chip.Options{Runtime: o.Runtime, Build: o.Build, Clock: chip.Hertz(o.ClockHz), Name: o.Name}
}

// Estimate estimates a model on the program's target with an id; see
// [Target.Estimate].
func Estimate(m *Model, id string, o EstimateOptions) (*profile.Profile, error) {
	ts, err := LoadTargets("")
	if err != nil {
		return nil, err
	}
	t, err := ts.Find(id)
	if err != nil {
		return nil, err
	}
	return t.Estimate(m, o)
}

// Calibration is a target fitted to measurements of a board.
type Calibration struct {
	// Runtime is the runtime family that was fitted, Measurements the number of
	// measurements.
	Runtime      string
	Measurements int
	// File is the content of a target file for the folder of [LoadTargets].
	File []byte
}

// Calibrate fits the cycle model of one of the target's runtimes, "" for the first,
// to measured latencies. The table is a .csv file with the columns model_file
// (relative to it) and latency_ms or cycles; docs/explanation/estimates.md explains it.
// Errors are an [OptionError], or name the file and row.
func (t Target) Calibrate(table, runtime string) (*Calibration, error) {
	if t.t == nil {
		return nil, noTarget()
	}
	rt := t.t.Runtime(runtime)
	if rt == nil {
		return nil, failed(table, estimate.NoRuntime(t.t, runtime))
	}
	ms, err := fit.LoadBoard(table, t.t, rt)
	if err != nil {
		return nil, err
	}
	fitted, err := fit.Board(t.t, rt.Name, ms, fit.Default)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", table, err)
	}
	count := "1 measurement"
	if len(ms) > 1 {
		count = fmt.Sprintf("%d measurements", len(ms))
	}
	comment := fmt.Sprintf("%s, runtime %s fitted to %s of %s.", t.Name, rt.Name, count, table)
	return &Calibration{Runtime: rt.Name, Measurements: len(ms), File: fit.Encode(fitted, comment)}, nil
}
