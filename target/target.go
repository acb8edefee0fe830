package target

import (
	"errors"

	"github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/internal/bridge"
	"github.com/opmeter/opmeter/internal/estimate/chip"
	"github.com/opmeter/opmeter/profile"
)

func init() {
	bridge.Chip = func(t any) (*chip.Target, error) { return t.(*Target).chip() }
}

// Set is a set of targets: the built-in ones, and those of target files
// (docs/reference/target-files.md).
type Set struct{ set *chip.Set }

// Load returns the built-in targets and those of the .yaml files in a folder; "" adds none. A file
// replaces a target of the same id. Faulty files are left out, together with built-in targets of
// their names; the error then joins an [Error] for each fault and comes beside the set.
func Load(folder string) (*Set, error) {
	s, err := chip.Load(folder)
	if s == nil {
		return nil, publicErrors(err)
	}
	return &Set{s}, publicErrors(err)
}

// Error is a fault in a target file.
type Error struct {
	// File is the file, Line counts from 1 and is 0 for the file as a whole, Key is a path such as
	// "memories[1].size".
	File string
	Line int
	Key  string
	// Text says what was expected.
	Text string
}

// Error gives file, line, key and what was expected.
func (e *Error) Error() string {
	return (&chip.FileError{File: e.File, Line: e.Line, Key: e.Key, Text: e.Text}).Error()
}

// publicErrors gives the faults of target files their public type.
func publicErrors(err error) error {
	list := bridge.Leaves(err)
	for i, e := range list {
		if f, ok := errors.AsType[*chip.FileError](e); ok {
			list[i] = &Error{File: f.File, Line: f.Line, Key: f.Key, Text: f.Text}
		}
	}
	if _, joined := err.(interface{ Unwrap() []error }); !joined && len(list) == 1 {
		return list[0]
	}
	return errors.Join(list...)
}

// List returns all targets, ordered by id.
func (s *Set) List() []Target {
	list := s.set.List()
	out := make([]Target, len(list))
	for i, x := range list {
		out[i] = newTarget(x)
	}
	return out
}

// Find returns the target with an id, or that of a target file by its path ending in .yaml or .yml;
// the case of an id does not matter. The error is an [opmeter.OptionError]
// that names similar ids, or joins an [Error] for each fault of the target's file.
func (s *Set) Find(id string) (Target, error) {
	x, err := s.set.Find(id)
	if _, unknown := errors.AsType[*chip.UnknownError](err); unknown {
		return Target{}, bridge.Failed("", err)
	}
	if err != nil {
		return Target{}, publicErrors(err)
	}
	return newTarget(x), nil
}

// Target describes hardware that models can be estimated on. [Set.Find] and [Set.List] return
// targets; the zero value is not usable.
type Target struct {
	// ID names it for [Set.Find], Name for people.
	ID, Name string
	// Core is the processor, Accelerator the unit beside it, "" for none.
	Core, Accelerator string
	// ClockHz is the default clock of the processor in hertz.
	ClockHz float64
	// Runtimes lists the runtime families with figures; the first is the default.
	Runtimes []string
	// Memories are those that a model can use. Figures describes the data behind the estimates with
	// each runtime, in the order of Runtimes.
	Memories []Memory
	Figures  []Figures
	// RAMBytes and FlashBytes are the largest internal memories in bytes, ExternalFlashBytes the
	// largest external flash; nil if unknown or absent.
	RAMBytes, FlashBytes, ExternalFlashBytes *int64

	t *chip.Target
}

// Memory is one memory of a target.
type Memory struct {
	Name string
	// Role is ram, flash, tcm, external-ram or external-flash.
	Role  string
	Bytes int64
	// CacheBytes is the size of the cache in front of it, WaitStates those of a read at the default
	// clock; nil if unknown or absent.
	CacheBytes, WaitStates *int64
}

// Figures describes the measurements behind the estimates of a target with one runtime.
type Figures struct {
	// Runtime is the name of the runtime family, Title is for people, Versions says in words which
	// releases are meant.
	Runtime, Title, Versions string
	// Builds are the other ways of building it, for [opmeter.EstimateOptions].Build.
	Builds []string
	// From names the chip whose figures are used if this one was not measured, "" otherwise; On
	// lists what was measured.
	From string
	On   []string
	// Rows is the number of measurements, of Sources that do not depend on each other.
	Rows, Sources int64
	// MedianError and P90Error are relative errors of measurements that were left out of the fit,
	// Band the factors that hold nine of ten; nil if unknown.
	MedianError, P90Error *float64
	Band                  *[2]float64
	// UnfamiliarMedian and UnfamiliarP90 are the errors on boards that were left out with all their
	// measurements, which is what to expect of a board without any; nil if unknown.
	UnfamiliarMedian, UnfamiliarP90 *float64
	// Types lists the element types that have figures.
	Types []string
	// CodeBytes is the least and most program code in images that were measured, nil if none were.
	CodeBytes *[2]int64
}

// Estimate estimates a model on the target, like [opmeter.Estimate].
func (t Target) Estimate(m *opmeter.Model, o opmeter.EstimateOptions) (*profile.Profile, error) {
	c, err := t.chip()
	if err != nil {
		return nil, err
	}
	return bridge.Estimate(m, c, o)
}

// chip returns the internal form, an error for the zero value.
func (t *Target) chip() (*chip.Target, error) {
	if t.t == nil {
		return nil, &opmeter.OptionError{Option: "target", Text: "this one is empty: take one from Set.Find or Set.List"}
	}
	return t.t, nil
}

func newFigures(r *chip.Runtime) Figures {
	f := Figures{Runtime: r.Name, Title: r.Title, Versions: r.Versions, Types: []string{"int8"}}
	for i := range r.Builds {
		f.Builds = append(f.Builds, r.Builds[i].Name)
	}
	if c := r.Calibration; c != nil {
		f.From, f.On, f.Rows, f.Sources = c.From, c.On, c.Rows, c.Sources
		f.MedianError, f.P90Error, f.Band = c.MedianError, c.P90Error, c.Band
		if u := c.Unfamiliar; u != nil {
			f.UnfamiliarMedian, f.UnfamiliarP90 = new(u.MedianError), new(u.P90Error)
		}
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

func newTarget(t *chip.Target) Target {
	d := Target{ID: t.ID, Name: t.Name, Core: t.Core.Name, ClockHz: float64(t.Clock.Default), t: t}
	if t.Accelerator != nil {
		d.Accelerator = t.Accelerator.Name
	}
	for i := range t.Runtimes {
		d.Runtimes = append(d.Runtimes, t.Runtimes[i].Name)
		d.Figures = append(d.Figures, newFigures(&t.Runtimes[i]))
	}
	for _, m := range t.Memories {
		x := Memory{Name: m.Name, Role: m.Role, Bytes: int64(m.Size), WaitStates: m.WaitStates}
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
