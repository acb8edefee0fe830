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
	study.NoZero:        "unknown zero point",
	study.Shared:        "shared by operators with incompatible layouts",
	study.AllZero:       "all weights are zero already",
	study.NoKernel:      "no kernel benefits on this target",
	study.ShapeMismatch: "the structure does not fit the shape",
	study.Coupled:       "channels cannot be removed: coupled layers cannot follow",
	study.NoFormat:      "the file format has no such type for this operator",
	study.Excluded:      "excluded",
	study.First:         "the first layer",
	study.Head:          "makes an output of the model",
	study.NotRun:        "did not run",
	study.NoMemory:      "its inputs exceed the memory limit: use fewer samples",
	study.Unsettled:     "no measurable gain",
	study.NoData:        "not measured",
	study.NoGain:        "no change is cheaper",
	study.Spent:         "loss budget used up by other layers",
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
		return "from sizes alone; weights not read"
	case study.Magnitude:
		return "weight magnitudes; no data"
	case study.OutputError:
		return "relative error of each layer's own output on data"
	case study.Calibrated:
		return "errors of layer outputs on data, calibrated to model losses with a few runs"
	case study.EndToEnd:
		return "outputs of the model with one layer changed, on data"
	case study.OneShot:
		return "divergence of the model's shifted outputs with one layer changed"
	}
	return string(m)
}
