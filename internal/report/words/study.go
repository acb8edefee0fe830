package words

import (
	"fmt"
	"strings"

	"github.com/opmeter/opmeter/study"
)

// StudyCause says why a layer cannot have a change, or gains nothing from it.
func StudyCause(c study.Cause) string {
	if s, ok := changeCauses[c]; ok {
		return s
	}
	return strings.ReplaceAll(string(c), "_", " ")
}

var changeCauses = map[study.Cause]string{
	study.NoZero:        "which number stands for zero is not known",
	study.Shared:        "read in ways that do not fit together",
	study.AllZero:       "all weights are zero already",
	study.NoKernel:      "no kernel gains from this here",
	study.ShapeMismatch: "the structure does not fit the shape",
	study.Coupled:       "channels cannot be taken out: what shares them cannot follow",
	study.NoFormat:      "the file's format has no such numbers for this operator",
	study.Excluded:      "left out",
	study.First:         "the first layer",
	study.Head:          "makes an output of the model",
	study.NotRun:        "did not run",
	study.NoMemory:      "what it reads takes more memory than the limit: take fewer samples",
	study.Unsettled:     "as fast as before, within the interval",
	study.NoData:        "nothing was measured of it",
	study.NoGain:        "no change costs less",
	study.Spent:         "no loss left for it",
}

// Change names a change: "4x1 80 %, int8".
func Change(c study.Change) string {
	var parts []string
	if c.Structure != study.Dense {
		s := string(c.Structure)
		if c.Structure != study.TwoOfFour {
			s += fmt.Sprintf(" %.4g %%", 100*c.Level)
		}
		parts = append(parts, s)
	}
	if c.Format != study.OriginalFormat {
		parts = append(parts, string(c.Format))
	}
	if len(parts) == 0 {
		return "unchanged"
	}
	return strings.Join(parts, ", ")
}

// Method says what a loss profile is.
func Method(m study.Method) string {
	switch m {
	case study.Approximated:
		return "follows from sizes alone; no weights were read"
	case study.Magnitude:
		return "magnitudes of weights; no data was run"
	case study.OutputError:
		return "relative error of each layer's own output on data"
	case study.Calibrated:
		return "errors of layers' own outputs on data, as losses of the model by runs of a few changes"
	case study.EndToEnd:
		return "outputs of the model with one layer changed, on data"
	case study.OneShot:
		return "divergence of the model's shifted outputs with one layer changed"
	}
	return string(m)
}
