package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/opmeter/opmeter/internal/advise"
	"github.com/opmeter/opmeter/internal/base/atomicfile"
	"github.com/opmeter/opmeter/internal/base/stats"
)

// row is a change of a model that was measured.
type row struct {
	Model, Rule, Set, Format string
	Work                     advise.Work
	Ratio                    float64
}

// fitted are the rules with factors.
var fitted = []string{"int8-static", "int8-dynamic", "batch"}

func fitFactors(ctx context.Context, args []string) error {
	files, err := models(args)
	if err != nil {
		return err
	}
	more, remove, err := madeModels(stacks)
	if err != nil {
		return err
	}
	defer remove()
	files = append(files, more...)
	t := &advise.Table{}
	b, err := os.ReadFile(*factors)
	if err == nil {
		err = json.Unmarshal(b, t)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w", *factors, err)
	}
	rows, err := readRows()
	if err != nil {
		return err
	}
	on := "" // the machine
	for _, path := range files {
		err := with(ctx, path, func(f *advise.Facts) error {
			on = machine(f.Profile)
			rows = append(rows, measureAll(ctx, f)...)
			return writeRows(rows)
		})
		if err != nil {
			fmt.Printf("%-40.40s not measured: %.120v\n", filepath.Base(path), err)
		}
	}
	if err := writeRows(rows); err != nil {
		return err
	}
	for _, f := range fit(rows) {
		f.Machine, f.Date = on, time.Now().UTC().Format(time.DateOnly)
		t.Factors = slices.DeleteFunc(t.Factors, func(o advise.Factor) bool { return o.Rule == f.Rule && o.Set == f.Set && o.Format == f.Format })
		t.Factors = append(t.Factors, f)
	}
	if b, err = json.MarshalIndent(t, "", "\t"); err != nil {
		return err
	}
	return atomicfile.Write(*factors, append(b, '\n'))
}

// readRows reads the measurements of earlier calls.
func readRows() (rows []row, err error) {
	if *kept == "" {
		return nil, nil
	}
	b, err := os.ReadFile(*kept)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &rows)
	}
	return rows, err
}

func writeRows(rows []row) error {
	if *kept == "" {
		return nil
	}
	b, err := json.MarshalIndent(rows, "", " ")
	if err != nil {
		return err
	}
	return atomicfile.Write(*kept, b)
}

// measureAll measures the changes of all rules with factors on a model.
func measureAll(ctx context.Context, f *advise.Facts) (rows []row) {
	p := f.Profile
	name := filepath.Base(f.Path)
	for _, rule := range fitted {
		if *rules != "" && !slices.Contains(strings.Split(*rules, ","), rule) {
			continue
		}
		w, changed := workFor(f, rule)
		if !changed {
			continue
		}
		v, err := advise.RuleOf(rule).Change(ctx, f)
		if err != nil {
			continue // nothing to change
		}
		r, err := advise.Here(ctx, f, v, *budget)
		if err == nil && len(r.Comparisons) == 0 {
			err = fmt.Errorf("too few processes in %s", *budget)
		}
		if err != nil {
			fmt.Printf("%-40.40s %-14s not measured: %.100v\n", name, rule, err)
			continue
		}
		ratio := r.Comparisons[0].Ratio / float64(max(v.Batch, 1))
		fmt.Printf("%-40.40s %-14s %.3f (%.3f to %.3f) %d layers, %d outputs, %v\n", name, rule, ratio, r.Comparisons[0].Low, r.Comparisons[0].High, w.Layers, w.Outputs, w.Shares)
		rows = append(rows, row{name, rule, p.Settings.KernelSet, p.Model.Format, w, ratio})
	}
	return rows
}

// workFor is the work of a rule, false where nothing of the model would change.
func workFor(f *advise.Facts, rule string) (advise.Work, bool) {
	w, _ := advise.WorkOf(f.Profile, advise.Classes(rule))
	return w, w.Changed() > 0.15
}

// fit finds factors by rule, instruction set and format.
func fit(rows []row) (out []advise.Factor) {
	type key struct{ rule, set, format string }
	by := map[key][]row{}
	var order []key
	for _, r := range rows {
		k := key{r.Rule, r.Set, r.Format}
		if r.Rule == "batch" {
			k.format = "" // the kernels are the same
		}
		if by[k] == nil {
			order = append(order, k)
		}
		by[k] = append(by[k], r)
	}
	for _, k := range order {
		if list := by[k]; len(list) >= fewest {
			f := withResidual(list)
			f.Rule, f.Set, f.Format = k.rule, k.set, k.format
			out = append(out, f)
		}
	}
	return out
}

// fewest is the least number of models that factors follow from.
const fewest = 4

// best descends along one coordinate after the other, from coarse to fine steps. The error is the
// sum of absolute log-ratios, each at most 1, so that single disturbed measurements do not decide.
func best(rows []row) advise.Factor {
	f := advise.Factor{Terms: map[string]float64{}, PerOutputS: 1e-10, PerLayerS: 1e-7}
	for _, r := range rows {
		for class := range r.Work.Shares {
			f.Terms[class] = 0.5
		}
		f.Models = append(f.Models, r.Model)
	}
	lowest := 0.05 // an eightfold rate of arithmetic, and more as weights become smaller
	if rows[0].Rule == "batch" {
		f.PerOutputS, f.PerLayerS = 0, 0 // nothing is converted
		lowest = 1. / 8                  // an item cannot take less than its part of the batch
	}
	var classes []string
	for c := range f.Terms {
		classes = append(classes, c)
	}
	slices.Sort(classes)
	for _, step := range []float64{2, 1.4, 1.15, 1.05} {
		for range 40 {
			was := misfit(rows, &f)
			for _, c := range classes {
				v := f.Terms[c]
				try(rows, &f, step, func(x float64) { f.Terms[c] = min(max(x, lowest), 4) }, v)
			}
			try(rows, &f, step, func(x float64) { f.PerOutputS = min(x, 5e-9) }, f.PerOutputS)
			try(rows, &f, step, func(x float64) { f.PerLayerS = min(x, 1e-5) }, f.PerLayerS)
			if misfit(rows, &f) >= was {
				break
			}
		}
	}
	return f
}

// withResidual returns the factors that fit best. Their errors are those of each model by factors
// that were fitted without it.
func withResidual(rows []row) advise.Factor {
	f := best(rows)
	residuals := make([]float64, len(rows))
	for i := range rows {
		others := best(slices.Concat(rows[:i], rows[i+1:]))
		residuals[i] = rows[i].Ratio / others.Expected(&rows[i].Work)
	}
	slices.Sort(residuals)
	f.Residual = [2]float64{min(1, short(stats.Quantile(residuals, 0.05))), max(1, short(stats.Quantile(residuals, 0.95)))}
	for c, v := range f.Terms {
		f.Terms[c] = short(v)
	}
	f.PerOutputS, f.PerLayerS = short(f.PerOutputS), short(f.PerLayerS)
	return f
}

// short rounds to three digits: the measurements have no more.
func short(v float64) float64 {
	v, _ = strconv.ParseFloat(strconv.FormatFloat(v, 'g', 3, 64), 64)
	return v
}

// try sets a value a step smaller or larger where that fits better.
func try(rows []row, f *advise.Factor, step float64, set func(float64), v float64) {
	least, at := misfit(rows, f), v
	for _, x := range []float64{v / step, v * step} {
		set(x)
		if e := misfit(rows, f); e < least {
			least, at = e, x
		}
	}
	set(at)
}

// unproven is the weight of the distance of a term from 1, beside models with a weight of 1 each.
const unproven = 0.1

func misfit(rows []row, f *advise.Factor) (sum float64) {
	for i := range rows {
		sum += min(1, math.Abs(math.Log(rows[i].Ratio/f.Expected(&rows[i].Work))))
	}
	// A class that hardly any model has is free otherwise: it must not promise anything then.
	for _, v := range f.Terms {
		sum += unproven * math.Abs(math.Log(v))
	}
	return sum
}
