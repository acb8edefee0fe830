package draft

import (
	"errors"
	"fmt"

	"github.com/opmeter/opmeter/internal/measure/runlog"
	"github.com/opmeter/opmeter/internal/record"
)

// ErrNothing is the error for a file that was recognised but has no usable content.
var ErrNothing = errors.New("is recognised, and holds no operator, time or size of a run")

// NotEmpty returns runs and err, or [ErrNothing] if both are empty.
func NotEmpty(runs []*runlog.Run, err error) ([]*runlog.Run, error) {
	if len(runs) == 0 && err == nil {
		err = ErrNothing
	}
	return runs, err
}

// Runs returns the run of a file. fault is the damage of its text, nil for an undamaged text. An
// empty draft is an error.
func (d *Draft) Runs(fault error) ([]*runlog.Run, error) {
	if d.Empty() {
		return NotEmpty(nil, fault)
	}
	if fault != nil {
		d.Dropped.Add(fmt.Sprintf("the text is damaged: %v", fault), 1)
	}
	return []*runlog.Run{d.Run()}, nil
}

// RunsOf returns the runs of drafts that are not empty, and the errors of reading them. If all
// drafts are empty without an error, the error says so for the first file.
func RunsOf(files []*record.File, drafts []*Draft, errs []error) (runs []*runlog.Run, err error) {
	for _, d := range drafts {
		if !d.Empty() {
			runs = append(runs, d.Run())
		}
	}
	if len(runs) == 0 && len(errs) == 0 && len(files) > 0 {
		errs = append(errs, record.Fault(files[0], ErrNothing))
	}
	return runs, errors.Join(errs...)
}
