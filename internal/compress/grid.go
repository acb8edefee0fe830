package compress

import (
	"slices"

	"github.com/opmeter/opmeter/study"
)

// Levels are the levels of sparsity of a performance profile where nobody says otherwise; 0 is the unchanged model.
func Levels() []float64 { return []float64{0, .4, .6, .7, .8, .85, .9, .95, .975, .99} }

// Structures are those that are tried where nobody says otherwise: single weights, blocks that kernels gain most from, and what makes
// layers smaller; on targets without such kernels only that.
func Structures(here bool) []study.Structure {
	if here {
		return []study.Structure{study.Unstructured, study.Block4x1, study.Filter}
	}
	return []study.Structure{study.Filter}
}

// Formats are those that are tried where nobody says otherwise.
func Formats(here bool) []study.Format {
	if here {
		return []study.Format{study.Half, study.Int8, study.Weight4}
	}
	return []study.Format{study.Int8, study.Weight4}
}

// Grid lists the changes of all structures at all levels, then those of formats. Nil lists are the usual ones, empty ones none.
// here says whether they are for this computer. A level outside 0 to 1 is an [OptionError].
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
			return nil, wrong("Structures", "no structure %q: use one of %v", s, study.Structures())
		}
		for _, v := range levels {
			c := study.Change{Structure: s, Level: v}
			if err := c.Validate(); err != nil {
				return nil, wrong("Levels", "use levels from 0 to 1, not %v", v)
			}
			if s == study.TwoOfFour {
				c.Level = .5 // its only one
			}
			if c.Level > 0 && !slices.Contains(out, c) {
				out = append(out, c)
			}
		}
	}
	for _, f := range formats {
		if !slices.Contains(study.Formats(), f) {
			return nil, wrong("Formats", "no format %q: use one of %v", f, study.Formats())
		}
		if c := (study.Change{Format: f}); !slices.Contains(out, c) {
			out = append(out, c)
		}
	}
	if len(out) == 0 {
		return nil, wrong("Levels", "nothing to try: give a level above 0 or a format")
	}
	return out, nil
}
