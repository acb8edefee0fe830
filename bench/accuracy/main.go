// Command accuracy prints how well estimates for microcontrollers hold on
// measurements that they were not fitted to: by core and runtime, of operators
// without optimised kernels, of the MVP accelerator, and of energy.
//
//	go run ./bench/accuracy -data ../shared
//
// Three tables leave out one network at a time, which is what a user with a new network on
// a known board meets; one board (all rows of a chip, whatever the runtime), which is an
// unfamiliar board; and one source (a submitter's round, a commit of a repository, a paper).
// -out selects some of them. In plain C an operator and a core are left out, for MVP a model.
// Coefficients are made from what is left alone. Bands are those that are shipped; with
// -nested they are made from what is left, too, which takes minutes.
package main

import (
	"flag"
	"fmt"
	"math"
	"os"
	"slices"
	"sort"
	"strings"
	"text/tabwriter"

	"github.com/opmeter/opmeter/internal/base/stats"
	"github.com/opmeter/opmeter/internal/estimate/chip"
	"github.com/opmeter/opmeter/internal/estimate/cortexm"
	"github.com/opmeter/opmeter/internal/estimate/fit"
	"github.com/opmeter/opmeter/tools/chips/study"
)

func main() {
	data := flag.String("data", "../shared", "folder with data/ and models/")
	rows := flag.Bool("rows", false, "print every measurement")
	out := flag.String("out", "network,board,source", "what to leave out, separated by commas")
	nested := flag.Bool("nested", false, "make the bands, too, without what is left out")
	flag.Parse()
	if err := run(*data, strings.Split(*out, ","), *rows, *nested); err != nil {
		fmt.Fprintln(os.Stderr, "accuracy:", err)
		os.Exit(1)
	}
}

func run(data string, out []string, rows, nested bool) error {
	all, err := study.LoadAll(data)
	if err != nil {
		return err
	}
	s := study.NewStudy(all, fit.Default)
	for _, name := range out {
		at := slices.IndexFunc(study.LeaveOuts, func(l study.LeaveOut) bool { return l.Name == name })
		if at < 0 {
			return fmt.Errorf("-out %q; expected network, board or source", name)
		}
		if err := leaveOut(&study.LeaveOuts[at], s, rows, nested); err != nil {
			return err
		}
	}
	fmt.Println("\nfrom: measured = the core, chip and runtime have others; other chip = the core and runtime have; scaled = other cores of the tier, this core by another family;\n" +
		"tier = other cores only; other era = another version of the runtime; none = nothing is left to estimate from.")
	fmt.Println("\nSingle layers, one source at a time:")
	layers := s.Bands.StateLayers(study.LeaveLayersOut(all.Measurements, fit.Default))
	if err := groups(layers); err != nil {
		return err
	}
	if err := ratios(layers); err != nil {
		return err
	}
	if err := plain(all.Plain); err != nil {
		return err
	}
	if err := accelerator(data); err != nil {
		return err
	}
	if err := energy(s); err != nil {
		return err
	}
	fmt.Println("\nNot used:")
	for _, k := range sorted(all.Skipped) {
		fmt.Printf("%6d %s\n", all.Skipped[k], k)
	}
	return nil
}

// leaveOut prints the tables of one way to leave measurements out.
func leaveOut(l *study.LeaveOut, s *study.Study, rows, nested bool) error {
	ms := s.Measurements
	var held []*study.Held
	if nested {
		held = l.Nested(ms, fit.Default)
	} else {
		held = s.Bands.State(l.Residuals(ms, fit.Default))
	}
	fmt.Printf("\n%d whole-model measurements of %d sources are left out one %s at a time.\n\n", len(held), len(fit.Sources(ms)), l.Name)
	if err := groups(held); err != nil {
		return err
	}
	if err := ratios(held); err != nil {
		return err
	}
	fmt.Println("\nOf them the boards of 2026:")
	if err := groups(slices.DeleteFunc(slices.Clone(held), func(h *study.Held) bool { return !h.M.Board })); err != nil {
		return err
	}
	if !rows {
		return nil
	}
	fmt.Println("\npredicted/measured, half-width, distance:")
	for _, h := range held {
		fmt.Printf("%6.2f ±%4.2f d%.2f %-12s %s %v %s %s\n", h.Predicted/h.M.Cycles, h.Half, h.Distance, h.How, h.M.Source, h.M.Group(), h.M.Chip, h.M.Model)
	}
	return nil
}

// energy prints how well energy per cycle holds.
func energy(s *study.Study) error {
	fmt.Println("\nEnergy per cycle of total supply, one source left out at a time:")
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "target\trows\tsources\tmedian\t90 %\tin band\t")
	for _, e := range s.EnergyErrors() {
		fmt.Fprintf(w, "%s\t%d\t%d\t%.1f %%\t%.1f %%\t%.1f %%\t\n", e.Target, e.Rows, e.Sources, 100*e.Median, 100*e.P90, 100*e.Covered)
	}
	return w.Flush()
}

// groups prints a line for each core and runtime, and sums.
func groups(held []*study.Held) error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "core\truntime\tfrom\trows\tsources\tmedian\t90 %\twithin 25 %\tbias\tin band\twidth\t")
	byGroup, sums := map[string][]*study.Held{}, map[string][]*study.Held{}
	for _, h := range held {
		byGroup[key(h)] = append(byGroup[key(h)], h)
		if h.How == "" {
			continue
		}
		how := "carried over"
		if h.How == "measured" {
			how = h.How
		}
		sums["all\t"+study.TypeOf(h.M).String()+"\t"+how] = append(sums["all\t"+study.TypeOf(h.M).String()+"\t"+how], h)
	}
	for _, k := range sorted(byGroup) {
		line(w, k, byGroup[k])
	}
	for _, k := range sorted(sums) {
		line(w, k, sums[k])
	}
	return w.Flush()
}

// ratios prints how well the ratio of two estimates holds that one source measured on one chip with
// one version of a runtime. Their errors have causes in common, which cancel in the ratio.
func ratios(held []*study.Held) error {
	errs, parts, in := map[string][]float64{}, map[string][]float64{}, map[string]int{}
	for i, a := range held {
		for _, b := range held[:i] {
			x, y := a.M, b.M
			if a.How == "" || b.How == "" || x.Source != y.Source || x.Chip != y.Chip || x.Group() != y.Group() || x.Model == y.Model {
				continue
			}
			off := math.Abs(math.Log(a.Predicted/x.Cycles) - math.Log(b.Predicted/y.Cycles))
			k, half := study.TypeOf(x).String(), math.Hypot(a.Half, b.Half)
			errs[k], parts[k] = append(errs[k], off), append(parts[k], off/half)
			if off <= half {
				in[k]++
			}
		}
	}
	fmt.Println("\nRatios of two of them, by one source on one chip:")
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "type\tpairs\tmedian\t90 %\tin band of independent errors\tpart of it that holds 90 %\t")
	for _, k := range sorted(errs) {
		sort.Float64s(errs[k])
		sort.Float64s(parts[k])
		n := float64(len(errs[k]))
		fmt.Fprintf(w, "%s\t%.0f\t×%.2f\t×%.2f\t%.1f %%\t%.2f\t\n", k, n, math.Exp(stats.Quantile(errs[k], 0.5)), math.Exp(stats.Quantile(errs[k], 0.9)), 100*float64(in[k])/n, stats.Quantile(parts[k], 0.9))
	}
	return w.Flush()
}

// plain prints what operators without optimised kernels cost.
func plain(p *study.Plain) error {
	fmt.Println("\nOperators in plain C, an operator and a core left out at a time:")
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "term\tcycles\tband\tcosts\tin band\t")
	n, in := 0, 0
	for k := cortexm.PlainMAC; k < cortexm.Terms; k++ {
		rows, inside := 0, 0
		for _, h := range p.Held {
			if h.Term != k {
				continue
			}
			rows++
			if math.Abs(math.Log(h.Measured/h.Predicted)) <= h.Half {
				inside++
			}
		}
		n, in = n+rows, in+inside
		fmt.Fprintf(w, "%s\t%.1f\t±%.2f\t%d\t%.1f %%\t\n", cortexm.Names[k], p.Cost[k], p.Half[k], rows, 100*float64(inside)/float64(max(rows, 1)))
	}
	fmt.Fprintf(w, "all\t\t\t%d\t%.1f %%\t\n", n, 100*float64(in)/float64(max(n, 1)))
	return w.Flush()
}

// accelerator prints the bands of MVP.
func accelerator(data string) error {
	set, err := chip.Load("")
	if err != nil {
		return err
	}
	t, err := set.Find("efr32xg24-mvp")
	if err != nil {
		return err
	}
	tables, err := study.LoadMVP(data, t)
	if err != nil {
		return err
	}
	fmt.Println("\nEFR32xG24 with MVP, one model left out at a time, coefficients fitted to the others:")
	by := map[string][]*study.MVPHeld{}
	for _, h := range study.MVPStudy(tables, t) {
		by[h.Kind+"\t"+h.Runtime] = append(by[h.Kind+"\t"+h.Runtime], h)
		by[h.Kind+"\tall"] = append(by[h.Kind+"\tall"], h)
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "what\tkernels\trows\tmean\tmedian\t90 %\tin band\tband\t")
	for _, k := range sorted(by) {
		var errs []float64
		in, width := 0, 0.0
		for _, h := range by[k] {
			errs = append(errs, math.Abs(h.Predicted/h.Published-1))
			width += h.Half
			if h.Miss() <= h.Half {
				in++
			}
		}
		sort.Float64s(errs)
		n := float64(len(errs))
		fmt.Fprintf(w, "%s\t%d\t%.2f %%\t%.2f %%\t%.1f %%\t%.1f %%\t±%.3f\t\n", k, len(errs), 100*stats.Mean(errs), 100*stats.Quantile(errs, 0.5), 100*stats.Quantile(errs, 0.9), 100*float64(in)/n, width/n)
	}
	return w.Flush()
}

func key(h *study.Held) string {
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

func line(w *tabwriter.Writer, k string, held []*study.Held) {
	var rs []*fit.Residual
	var widths []float64
	in := 0
	for _, h := range held {
		rs = append(rs, h.Residual)
		if h.How == "" {
			continue
		}
		if h.Inside() {
			in++
		}
		widths = append(widths, math.Exp(2*h.Half)) // the upper end over the lower
	}
	s := fit.Summarise(rs)
	if s.Rows == 0 {
		fmt.Fprintf(w, "%s\t%d\t\t\t\t\t\t\t\t\n", k, len(held))
		return
	}
	sort.Float64s(widths)
	fmt.Fprintf(w, "%s\t%d\t%d\t%.1f %%\t%.1f %%\t%.1f %%\t%+.1f %%\t%.1f %%\t%.2f\t\n",
		k, s.Rows, s.Sources, 100*s.Median, 100*s.P90, 100*s.Within25, 100*s.Bias, 100*float64(in)/float64(s.Rows), stats.Quantile(widths, 0.5))
}

func sorted[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	sort.Strings(out)
	return out
}
