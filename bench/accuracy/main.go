// Command accuracy prints how well estimates for microcontrollers hold on
// measurements that they were not fitted to, by core and runtime:
//
//	go run ./bench/accuracy -data ../shared
//
// One source (a submitter's round, a commit of a repository, a paper) is left out
// at a time. Coefficients and bands are then made from the other sources alone.
package main

import (
	"flag"
	"fmt"
	"os"
	"sort"
	"text/tabwriter"

	"github.com/opmeter/opmeter/internal/target/calibrate"
)

func main() {
	data := flag.String("data", "../shared", "folder with data/ and models/")
	rows := flag.Bool("rows", false, "print every measurement")
	networks := flag.Bool("networks", false, "leave out the network together with the source, with the bands that are shipped")
	flag.Parse()
	if err := run(*data, *rows, *networks); err != nil {
		fmt.Fprintln(os.Stderr, "accuracy:", err)
		os.Exit(1)
	}
}

func run(data string, rows, networks bool) error {
	all, err := calibrate.LoadAll(data)
	if err != nil {
		return err
	}
	ms, skipped := all.Measurements, all.Skipped
	var held []*calibrate.Held
	what := "one source at a time"
	if networks {
		what = "one source at a time, with its networks in all others"
		held = calibrate.MakeBands(ms, calibrate.Default).State(calibrate.LeaveNetworksOut(ms, calibrate.Default))
	} else {
		held = calibrate.Nested(ms, calibrate.Default)
	}
	fmt.Printf("%d whole-model measurements of %d sources are left out %s.\n\n", len(held), len(calibrate.Sources(ms)), what)
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "core\truntime\tfrom\trows\tsources\tmedian\t90 %\twithin 25 %\tbias\tin band\tband\t")
	byGroup := map[string][]*calibrate.Held{}
	for _, h := range held {
		byGroup[key(h)] = append(byGroup[key(h)], h)
	}
	var measured, carried []*calibrate.Held
	for _, h := range held {
		switch h.How {
		case "measured":
			measured = append(measured, h)
		case "":
		default:
			carried = append(carried, h)
		}
	}
	for _, k := range sorted(byGroup) {
		line(w, k, byGroup[k])
	}
	line(w, "all\t\tmeasured", measured)
	line(w, "all\t\tcarried over", carried)
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Println("\nfrom: measured = the core and runtime have other sources; scaled = other cores of the tier, this core by another network or family;\n" +
		"tier = other cores only; other era = another version of the runtime; none = nothing is left to estimate from.")
	fmt.Println("\nEnergy per cycle of total supply, one source left out at a time:")
	w = tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "target\trows\tsources\tmedian\t90 %\tin band\t")
	for _, e := range calibrate.NewStudy(all, calibrate.Default).EnergyErrors() {
		fmt.Fprintf(w, "%s\t%d\t%d\t%.1f %%\t%.1f %%\t%.1f %%\t\n", e.Target, e.Rows, e.Sources, 100*e.Median, 100*e.P90, 100*e.Covered)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if rows {
		for _, h := range held {
			fmt.Printf("%6.2f ±%4.2f d%.2f %-12s %s %v %s %s\n", h.Predicted/h.M.Cycles, h.Half, h.Distance, h.How, h.M.Source, h.M.Group(), h.M.Chip, h.M.Model)
		}
	}
	fmt.Println("\nNot used:")
	for _, k := range sorted(skipped) {
		fmt.Printf("%6d %s\n", skipped[k], k)
	}
	return nil
}

func key(h *calibrate.Held) string {
	how := h.How
	if how == "" {
		how = "none"
	}
	rt := h.M.Family
	if h.M.Era != "" {
		rt += " " + h.M.Era
	}
	return h.M.Core + "\t" + rt + "\t" + how
}

func line(w *tabwriter.Writer, k string, held []*calibrate.Held) {
	var rs []*calibrate.Residual
	in, width := 0, 0.0
	for _, h := range held {
		rs = append(rs, h.Residual)
		if h.How != "" && h.Inside() {
			in++
		}
		width += h.Half
	}
	s := calibrate.Summarise(rs)
	if s.Rows == 0 {
		fmt.Fprintf(w, "%s\t%d\t\t\t\t\t\t\t\t\n", k, len(held))
		return
	}
	fmt.Fprintf(w, "%s\t%d\t%d\t%.1f %%\t%.1f %%\t%.1f %%\t%+.1f %%\t%.1f %%\t±%.2f\t\n",
		k, s.Rows, s.Sources, 100*s.Median, 100*s.P90, 100*s.Within25, 100*s.Bias, 100*float64(in)/float64(s.Rows), width/float64(s.Rows))
}

func sorted[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	sort.Strings(out)
	return out
}
