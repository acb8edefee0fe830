// Package bridge lets the public packages share what their types hide from users, such as the graph
// of a model.
package bridge

import (
	"github.com/opmeter/opmeter/internal/estimate/chip"
	"github.com/opmeter/opmeter/internal/runtime/inputs"
	"github.com/opmeter/opmeter/profile"
)

// The root package sets these when it is initialised. Types of the root package are any here, since
// this package is below it; any other dynamic type panics.
var (
	// Of returns the internals of an *opmeter.Model.
	Of func(model any) *Model
	// Feed checks an opmeter.Inputs value and translates it for a model. The error is an
	// *opmeter.OptionError or an *opmeter.ModelError.
	Feed func(in any, m *Model) (inputs.Options, error)
	// Failed gives an error its public type; file is the model's. It returns nil for nil.
	Failed func(file string, err error) error
	// Joined describes an *opmeter.Model with an opmeter.Inputs value, to be joined with a record: as
	// opmeter.Count does, with the work of all branches.
	Joined func(model, in any) (*profile.Profile, error)
	// Estimate estimates an *opmeter.Model on a target, with an opmeter.EstimateOptions value.
	Estimate func(model any, t *chip.Target, o any) (*profile.Profile, error)
)

// Chip returns the internals of a *target.Target. The error for the zero value is an
// *opmeter.OptionError. The package target sets it.
var Chip func(target any) (*chip.Target, error)

// Leaves returns the errors that an error joins, the error itself if it joins none, nil for nil.
func Leaves(err error) (list []error) {
	if err == nil {
		return nil
	}
	many, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	for _, e := range many.Unwrap() {
		list = append(list, Leaves(e)...)
	}
	return list
}
