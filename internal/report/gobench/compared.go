package gobench

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/opmeter/opmeter/internal/report/words"
	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/compare"
)

// Compared writes the runs of a comparison under the names of its rows, so that benchstat pairs
// what belongs together though names differ. Each process has one line of a name: inferences of
// one process are not independent samples. The key run tells the runs apart: benchstat -col run.
func Compared(w io.Writer, t *compare.Table) error {
	b := bufio.NewWriterSize(w, 1<<16)
	name, scale, better := comparedUnit(t)
	fmt.Fprintln(b, "# Compare with: benchstat -col run FILE")
	fmt.Fprintln(b, "# One line is one process: the median of its inferences. Inferences of one process are not")
	fmt.Fprintln(b, "# independent, so that a test needs six or more processes of each run.")
	for _, why := range words.VersusApart(t) {
		fmt.Fprintf(b, "# %s\n", line(why))
	}
	if better != 0 {
		fmt.Fprintf(b, "Unit %s better=%s\n", name, map[bool]string{true: "higher", false: "lower"}[better > 0])
	}
	digits := len(strconv.Itoa(max(0, len(t.Groups)-1)))
	for k := range t.Runs {
		r := &t.Runs[k]
		fmt.Fprintf(b, "\nrun: %s\n", line(r.Name))
		for _, p := range t.Repeats[k] {
			put := func(row string, v float64, n int) {
				fmt.Fprintf(b, "BenchmarkModel/row=%s %d %s %s\n", row, max(1, n), strconv.FormatFloat(significant(v*scale), 'f', -1, 64), name)
			}
			if v, ok := p.Totals.Value(t.Quantity); ok {
				put("all", v, len(p.Totals.LatencySamples))
			}
			for i := range t.Groups {
				g := &t.Groups[i]
				if v, ok := rowOf(p, g.Layers[k], t.Quantity); ok {
					put(fmt.Sprintf("%0*d:%s", digits, i, Name(comparedName(g))), v, len(p.Totals.LatencySamples))
				}
			}
		}
	}
	return b.Flush()
}

func comparedName(g *compare.Group) string {
	if g.Name == "" {
		return g.Op
	}
	return g.Name
}

// rowOf is the figure of a row in one process.
func rowOf(p *profile.Profile, layers []int64, key string) (sum float64, ok bool) {
	for _, l := range p.At(layers) {
		if v, has := l.Value(key); has {
			sum, ok = sum+v, true
		} else if l.State.Blank() {
			return 0, false
		}
	}
	return sum, ok && !math.IsInf(sum, 0)
}

// comparedUnit is the unit of what is compared, and what its figures are multiplied with.
func comparedUnit(t *compare.Table) (name string, scale float64, better int64) {
	q, _ := profile.Lookup(t.Quantity)
	switch {
	case t.Quantity == "latency_s":
		return "ns/op", 1e9, 0 // benchstat knows it
	case names[t.Quantity] != "":
		return names[t.Quantity], 1, q.Better
	}
	return strings.ReplaceAll(t.Quantity, "_", "-") + "/op", 1, q.Better
}
