package compress

import (
	"slices"

	"github.com/opmeter/opmeter/study"
)

// Levels returns the default sparsity levels of a performance profile; 0 is the unchanged model.
func Levels() []float64 { return []float64{0, .4, .6, .7, .8, .85, .9, .95, .975, .99} }

// Structures returns the default pruning structures: unstructured, the block shape that kernels
// gain most from, and filters, which make layers smaller. Targets without sparse kernels get
// filters only.
func Structures(here bool) []study.Structure {
	if here {
		return []study.Structure{study.Unstructured, study.Block4x1, study.Filter}
	}
	return []study.Structure{study.Filter}
}

// Formats returns the default weight formats.
func Formats(here bool) []study.Format {
	if here {
		return []study.Format{study.Half, study.Int8, study.Dynamic8, study.Weight4}
	}
	return []study.Format{study.Int8, study.Weight4}
}

// Grid is [Grid] for the job's model: the default formats are those that its file can have.
func (j *Job) Grid(here bool, levels []float64, structures []study.Structure, formats []study.Format) ([]study.Change, error) {
	if formats == nil {
		formats = Formats(here)
		if j.m.Format != "onnx" { // other files have no operators for dynamic quantisation
			formats = slices.DeleteFunc(formats, func(f study.Format) bool { return f == study.Dynamic8 })
		}
	}
	return Grid(here, levels, structures, formats)
}

// Grid lists the changes of all structures at all levels, then those of formats, then filters with
// int8. Nil lists stand
// for the defaults, empty ones for none. here selects the defaults of this computer. A level
// outside 0 to 1 is an [OptionError].
func Grid(here bool, levels []float64, structures []study.Structure, formats []study.Format) ([]study.Change, error) {
	if levels == nil {
		levels = Levels()
	}
	if structures == nil {
		structures = Structures(here)
	}
	if formats == nil {
		formats = Formats(here)
	}
	var out []study.Change
	for _, s := range structures {
		if !slices.Contains(study.Structures(), s) {
			return nil, optionError("Structures", "no structure %q: use one of %v", s, study.Structures())
		}
		for _, v := range levels {
			c := study.Change{Structure: s, Level: v}
			if err := c.Validate(); err != nil {
				return nil, optionError("Levels", "use levels from 0 to 1, not %v", v)
			}
			if s == study.TwoOfFour {
				c.Level = .5 // the only level of 2:4
			}
			if c.Level > 0 && !slices.Contains(out, c) {
				out = append(out, c)
			}
		}
	}
	for _, f := range formats {
		if !slices.Contains(study.Formats(), f) {
			return nil, optionError("Formats", "no format %q: use one of %v", f, study.Formats())
		}
		if c := (study.Change{Format: f}); !slices.Contains(out, c) {
			out = append(out, c)
		}
	}
	out = append(out, combined(levels, structures, formats)...)
	if len(out) == 0 {
		return nil, optionError("Levels", "nothing to try: give a level above 0 or a format")
	}
	return out, nil
}

// combinedLevels are the levels at which removed filters are also tried with int8. Both make a
// layer faster whatever the kernels, and curves between levels are smooth.
var combinedLevels = []float64{.4, .6, .8}

// combined lists changes that prune and quantise a layer at once.
func combined(levels []float64, structures []study.Structure, formats []study.Format) (out []study.Change) {
	if !slices.Contains(structures, study.Filter) || !slices.Contains(formats, study.Int8) {
		return nil
	}
	for _, v := range combinedLevels {
		if slices.Contains(levels, v) {
			out = append(out, study.Change{Structure: study.Filter, Level: v, Format: study.Int8})
		}
	}
	return out
}
