package sensiml

import (
	"math"
	"strings"
)

// maxSlots bounds the slots of a generator and of a model: the firmware's vectors are of some
// hundreds.
const maxSlots = 1 << 16

// A rule says how many features a generator emits in one call, which is by how many slots the
// firmware moves on in its array of cycles.
type rule struct {
	name, category string
	// multi marks generators that take all their columns as one: the columns do not multiply the
	// features.
	multi bool
	// param names the parameter that holds the number of features, "" for a fixed number; value is
	// that number, or the parameter's default, 0 for none.
	param string
	value int
	// count computes numbers that follow another way; more than one where firmwares differ, the
	// usual one first.
	count func(arg func(name string, value int) (int, bool)) []int
}

// rules lists the generators by category.
var rules = func() map[string]*rule {
	one := func(category string, multi bool, names ...string) (out []rule) {
		for _, n := range names {
			out = append(out, rule{name: n, category: category, multi: multi, value: 1})
		}
		return out
	}
	var all []rule
	for _, part := range [][]rule{
		one("Statistical", false, "Mean", "Median", "Standard Deviation", "Variance", "Skewness", "Kurtosis", "Interquartile Range",
			"25th Percentile", "75th Percentile", "100th Percentile", "Minimum", "Maximum", "Sum", "Absolute Sum", "Absolute Mean",
			"Zero Crossings", "Positive Zero Crossings", "Negative Zero Crossings"),
		{{name: "Linear Regression Stats", category: "Statistical", value: 4}},
		one("Time", false, "Duration of the Signal", "Percent Time Over Zero", "Percent Time Over Sigma", "Percent Time Over Second Sigma",
			"Percent Time Over Threshold", "Abs Percent Time Over Threshold", "Average Time Over Threshold"),
		one("Rate of Change", false, "Mean Difference", "Zero Crossing Rate", "Mean Crossing Rate", "Sigma Crossing Rate",
			"Second Sigma Crossing Rate", "Threshold Crossing Rate", "Threshold With Offset Crossing Rate"),
		one("Amplitude", false, "Global Peak to Peak", "Global Min Max Sum", "Global Peak to Peak of Low Frequency",
			"Global Peak to Peak of High Frequency", "Max Peak to Peak of first half of High Frequency",
			"Ratio of Peak to Peak of High Frequency between two halves", "Difference of Peak to Peak of High Frequency between two halves"),
		one("Shape", false, "Shape Median Difference", "Shape Absolute Median Difference"),
		one("Energy", true, "Average Energy", "Total Energy", "Average Demeaned Energy"),
		one("Physical", true, "Average of Movement Intensity", "Variance of Movement Intensity", "Average Signal Magnitude Area"),
		one("Area", false, "Total Area", "Absolute Area", "Total Area of Low Frequency", "Absolute Area of Low Frequency",
			"Total Area of High Frequency", "Absolute Area of High Frequency"),
		one("Area", true, "Absolute Area of Spectrum"),
		one("Frequency", false, "Dominant Frequency", "Spectral Entropy"),
		{
			{name: "Power Spectrum", category: "Frequency", count: spectrum},
			{name: "Peak Frequencies", category: "Frequency", param: "num_peaks", value: 2},
			{name: "MFCC", category: "Frequency", param: "cepstra_count", value: 23},
			{name: "MFE", category: "Frequency", param: "num_filters", value: 23},
			{name: "Harmonic Product Spectrum", category: "Frequency", count: harmonics},
			{name: "Peak Harmonic Product Spectrum", category: "Frequency", value: 2},
			{name: "Histogram", category: "Histogram", multi: true, count: histogram},
			{name: "Histogram Auto Scale Range", category: "Histogram", multi: true, param: "number_of_bins", value: 32},
			{name: "Downsample", category: "Sampling", param: "new_length", value: 12},
			{name: "Downsample Average with Normalization", category: "Sampling", param: "new_length", value: 12},
			{name: "Downsample Max With Normaliztion", category: "Sampling", param: "new_length", value: 12},
			{name: "Transpose Signal", category: "Sampling", param: "cutoff"},
			{name: "Interleave Signal", category: "Sampling", count: interleave},
		},
		one("Column Fusion", true, "Max Column", "Min Column", "Abs Max Column", "Two Column Min Max Difference",
			"Two Column Peak To Peak Difference", "Two Column Mean Difference", "Two Column Median Difference",
			"Two Column Peak Location Difference", "Cross Column Correlation", "Cross Column Mean Crossing Rate",
			"Cross Column Mean Crossing with Offset"),
	} {
		all = append(all, part...)
	}
	m := make(map[string]*rule, len(all))
	for i := range all {
		m[fold(all[i].name)] = &all[i]
	}
	return m
}()

// fold makes names that differ in case and spaces alike.
func fold(name string) string { return strings.ToLower(strings.Join(strings.Fields(name), " ")) }

// spectrum: a number of bins that does not divide the 256 of the transform spills into one more.
func spectrum(arg func(string, int) (int, bool)) []int {
	n, ok := arg("number_of_bins", 16)
	switch {
	case !ok || n <= 0:
		return nil
	case 256%n != 0:
		return []int{n, n + 1}
	}
	return []int{n}
}

// harmonics: the firmware emits two values for each base bin, its contract promises one.
func harmonics(arg func(string, int) (int, bool)) []int {
	h, ok := arg("harmonic_coefficients", 5)
	if !ok || h <= 0 || h > 256 {
		return nil
	}
	return []int{256 / h * 2, 256 / h}
}

// histogram: firmware is known that passes the arguments in the wrong order and emits nothing.
func histogram(arg func(string, int) (int, bool)) []int {
	n, ok := arg("number_of_bins", 32)
	if !ok || n <= 0 {
		return nil
	}
	return []int{n, 0}
}

// interleave: the firmware rounds down, its contract up.
func interleave(arg func(string, int) (int, bool)) []int {
	cut, ok := arg("cutoff", 0)
	step, ok2 := arg("delta", 1)
	if !ok || !ok2 || cut <= 0 || step <= 0 {
		return nil
	}
	if cut%step == 0 {
		return []int{cut / step}
	}
	return []int{cut / step, cut/step + 1}
}

// slotsOf says how many slots the generator takes: more than one number where firmwares differ,
// none where nothing tells it.
func slotsOf(function string, columns int, params []Param) []int {
	r := rules[fold(function)]
	if r == nil {
		return nil
	}
	arg := func(name string, value int) (int, bool) {
		for _, p := range params {
			if p.Name != name {
				continue
			}
			v, ok := p.number()
			if !ok || v != math.Trunc(v) || math.Abs(v) > maxSlots {
				return 0, false
			}
			return int(v), true
		}
		return value, value > 0
	}
	counts := []int{r.value}
	switch {
	case r.count != nil:
		counts = r.count(arg)
	case r.param != "":
		n, ok := arg(r.param, r.value)
		if !ok || n <= 0 {
			return nil
		}
		counts = []int{n}
	}
	if columns = max(columns, 1); r.multi {
		columns = 1
	}
	for i := range counts {
		if counts[i] > maxSlots/columns {
			return nil
		}
		counts[i] *= columns
	}
	return counts
}

// Category is the family of a feature generator, such as "Statistical"; "" for one that is not
// known.
func Category(function string) string {
	if r := rules[fold(function)]; r != nil {
		return r.category
	}
	return ""
}

// Slots is by how many slots the firmware moves on after a generator: the number of features that
// it emits for so many columns with these parameters. ok is false for a generator or parameters
// that are not known.
func Slots(function string, columns int, params []Param) (n int, ok bool) {
	counts := slotsOf(function, columns, params)
	if len(counts) == 0 {
		return 0, false
	}
	return counts[0], true
}
