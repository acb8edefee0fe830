package conformance

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// tally counts outcomes.
type tally struct{ n [3]int }

func (t *tally) add(s Status) { t.n[s]++ }

func (t *tally) total() int { return t.n[Pass] + t.n[Fail] + t.n[Skip] }

// Report prints what did not pass, the table by operator, totals by suite and
// beside ONNX Runtime, and a last line "N passed, N failed, N skipped". A test
// counts under each operator that its model has.
func Report(w io.Writer, rows []Row) error {
	out := bufio.NewWriter(w)
	byOp := map[string]*tally{}
	suites := map[string]*tally{}
	count := func(m map[string]*tally, key string, s Status) {
		if m[key] == nil {
			m[key] = &tally{}
		}
		m[key].add(s)
	}
	var all, core tally
	for _, r := range rows {
		all.add(r.Status)
		count(suites, r.Test.Suite, r.Status)
		for _, o := range r.Test.Ops {
			count(byOp, o, r.Status)
		}
		if r.Test.Core() {
			core.add(r.Status)
		}
		if r.Status != Pass {
			fmt.Fprintf(out, "%s %s: %s\n", r.Status, r.Test.ID(), oneLine(r.Reason))
		}
	}
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "\noperator\ttests\tpassed\tfailed\tskipped\t\n")
	for _, o := range slices.Sorted(maps.Keys(byOp)) {
		c := byOp[o]
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t\n", o, c.total(), c.n[Pass], c.n[Fail], c.n[Skip])
	}
	fmt.Fprintf(t, "\nsuite\ttests\tpassed\tfailed\tskipped\tONNX Runtime passed\t\n")
	for _, s := range slices.Sorted(maps.Keys(suites)) {
		c := suites[s]
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t%d\t\n", s, c.total(), c.n[Pass], c.n[Fail], c.n[Skip],
			runtimePasses(rows, func(t *Test) bool { return t.Suite == s }))
	}
	other := tally{}
	for s, c := range suites {
		if s != "node" {
			for i, n := range c.n {
				other.n[i] += n
			}
		}
	}
	fmt.Fprintf(t, "other than node\t%d\t%d\t%d\t%d\t%d\t\n", other.total(), other.n[Pass], other.n[Fail], other.n[Skip],
		runtimePasses(rows, func(t *Test) bool { return t.Suite != "node" }))
	fmt.Fprintf(t, "float32, int32, int64, bool to opset 22\t%d\t%d\t%d\t%d\t%d\t\n", core.total(), core.n[Pass], core.n[Fail], core.n[Skip],
		runtimePasses(rows, (*Test).Core))
	if err := t.Flush(); err != nil {
		return err
	}
	random := 0
	for _, r := range rows {
		if Random[r.Test.ID()] {
			random++
		}
	}
	better, worse := against(rows)
	fmt.Fprintf(out, "\n%d tests of random operators are compared in type and shape only.\n", random)
	fmt.Fprintf(out, "Passed here but not in ONNX Runtime 1.30: %d; the other way round: %d.\n", better, len(worse))
	for _, id := range worse {
		fmt.Fprintf(out, "  %s\n", id)
	}
	fmt.Fprintf(out, "%d passed, %d failed, %d skipped\n", all.n[Pass], all.n[Fail], all.n[Skip])
	return out.Flush()
}

func runtimePasses(rows []Row, of func(*Test) bool) int {
	n := 0
	for _, r := range rows {
		if of(r.Test) && r.Test.Runtime == "pass" {
			n++
		}
	}
	return n
}

// against counts the tests that only this engine passes and lists those that
// only ONNX Runtime passes.
func against(rows []Row) (better int, worse []string) {
	for _, r := range rows {
		switch theirs := r.Test.Runtime == "pass"; {
		case r.Status == Pass && !theirs:
			better++
		case r.Status != Pass && theirs:
			worse = append(worse, r.Test.ID())
		}
	}
	slices.SortFunc(worse, cmp.Compare)
	return better, worse
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
