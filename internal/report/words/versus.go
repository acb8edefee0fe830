package words

import (
	"fmt"
	"strings"

	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/compare"
)

// VersusNote says what does not compare well, and for which runs.
func VersusNote(t *compare.Table, n *compare.Note) string {
	var names []string
	for _, k := range n.Runs {
		if k >= 0 && k < len(t.Runs) {
			names = append(names, t.Runs[k].Name)
		}
	}
	who, first := strings.Join(names, ", "), t.Runs[0].Name
	switch n.Code {
	case compare.OtherModel:
		return fmt.Sprintf("%s: another file of a model than that of %s.", who, first)
	case compare.OtherNodes:
		return fmt.Sprintf("%s: the model has another structure than that of %s, so that operators were joined by name and order.", who, first)
	case compare.OtherThreads:
		return fmt.Sprintf("%s: another number of threads than %s.", who, first)
	case compare.OtherBatch:
		return fmt.Sprintf("%s: another batch than %s. Times are of one inference of the whole batch.", who, first)
	case compare.OtherShapes:
		return fmt.Sprintf("%s: inputs of other shapes than %s.", who, first)
	case compare.OtherInputs:
		return fmt.Sprintf("%s: other data in the inputs than %s.", who, first)
	case compare.OtherMachine:
		return fmt.Sprintf("%s: measured on another computer than %s.", who, first)
	case compare.NotGood:
		return fmt.Sprintf("%s: a latency whose verdict is less than good; opmeter report says why, of a profile that is saved with -o.", who)
	case compare.NotWhole:
		return fmt.Sprintf("%s: an incomplete profile.", who)
	case compare.OtherResults:
		return fmt.Sprintf("%s: outputs differ by more than rounding explains, or could not be compared: it may not compute the same.", who)
	case compare.NoLayers:
		return fmt.Sprintf("%s: no layer has the figure, so that only totals compare.", who)
	}
	return string(n.Code) + ": " + who
}

// Outputs says how the outputs of a run compare.
func Outputs(s profile.DifferenceState) string {
	switch s {
	case profile.Equal:
		return "equal"
	case profile.Rounding:
		return "rounding"
	case profile.Differs:
		return "differ"
	case profile.NotComparable:
		return "not compared"
	}
	return ""
}

// VersusMark is the sign of a verdict in a table.
func VersusMark(v compare.Verdict) string {
	switch v {
	case compare.Slower:
		return "▲"
	case compare.Faster:
		return "▼"
	case compare.Alike:
		return "="
	}
	return "?"
}

// VersusLegend says what the signs mean.
const VersusLegend = "▲ slower, ▼ faster, = within 5 %, ? not known: intervals too wide, or a latency not to be used"
