package opmeter_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/opmeter/opmeter"
)

// TestLists measures every combination of sizes: layers of each add up to its time.
func TestLists(t *testing.T) {
	m := language(t, false)
	o := opmeter.Options{Runs: 8, Warmup: -1, Lists: &opmeter.Lists{Batches: []int{2, 1}, Dims: map[string][]int{"past_sequence_length": {9, 0}}}}
	p, err := opmeter.Profile(t.Context(), m, o)
	if err != nil {
		t.Fatal(err)
	}
	if *p.Settings.Batch != 2 || len(p.Quantities) != 3 || p.Language != nil {
		t.Errorf("batch %d, quantities %+v", *p.Settings.Batch, p.Quantities)
	}
	for i, want := range []string{"batch_1_past_sequence_length_0_s", "batch_1_past_sequence_length_9_s", "batch_2_past_sequence_length_0_s"} {
		if key := p.Quantities[i].Key; key != want {
			t.Errorf("quantity %s, want %s", key, want)
		}
		whole, _ := p.Totals.Value(want)
		sum := 0.0
		for k := range p.Layers {
			v, _ := p.Layers[k].Value(want)
			sum += v
		}
		if !(sum > 0) || sum > whole*(1+1e-9) || math.IsNaN(whole) {
			t.Errorf("%s: layers take %v of %v", want, sum, whole)
		}
	}
	o = few(&opmeter.Phases{Prompts: []int{4}, Contexts: []int{8}})
	o.Lists = &opmeter.Lists{Batches: []int{3, 1}}
	if p, err = opmeter.Profile(t.Context(), m, o); err != nil {
		t.Fatal(err)
	}
	var names []string
	for i := range p.Language.Phases {
		names = append(names, p.Language.Phases[i].Name()+" "+p.Language.Phases[i].Quantity)
	}
	const want = "prefill 4 prefill_4_s; prefill 4, batch 3 prefill_4_batch_3_s; decode at 8 decode_8_s; decode at 8, batch 3 latency_s"
	if got := strings.Join(names, "; "); got != want {
		t.Errorf("phases %s, want %s", got, want)
	}
}

// TestListsRefused: what lists cannot do is an error that names the option.
func TestListsRefused(t *testing.T) {
	t.Parallel()
	m := language(t, false)
	dims := func(sizes ...int) *opmeter.Lists { return &opmeter.Lists{Dims: map[string][]int{"a": sizes}} }
	for want, o := range map[string]opmeter.Options{
		"Lists.Batches: use 1 to 1048576 for batches, not 0":             {Lists: &opmeter.Lists{Batches: []int{0}}},
		"Lists.Batches: batches: 3 is there twice":                       {Lists: &opmeter.Lists{Batches: []int{3, 3}}},
		`Lists.Dims: use 0 to 1048576 for dimension "a", not -1`:         {Lists: dims(-1)},
		`Lists.Dims: dimension "a" has no sizes`:                         {Lists: dims()},
		`Lists.Dims: Inputs.Dims has a size of "a", too: leave one out`:  {Lists: dims(1), Inputs: opmeter.Inputs{Dims: map[string]int{"a": 1}}},
		"Inputs.Batch: leave it out: it does not go with lists of sizes": {Lists: &opmeter.Lists{Batches: []int{1}}, Inputs: opmeter.Inputs{Batch: 2}},
		"Lists.Dims: leave it out: it does not go with lists of sizes":   {Lists: dims(1), Phases: &opmeter.Phases{Prompts: []int{1}}},
		"Streams: leave it out: it does not go with lists of sizes":      {Lists: dims(1), Streams: 2},
		"Phases: these are 18 phases: use up to 16":                      {Lists: &opmeter.Lists{Batches: []int{1, 2, 3, 4, 5, 6, 7, 8, 9}}, Phases: &opmeter.Phases{Prompts: []int{1, 2}}},
		"Lists: these are more than 16 combinations: use fewer sizes":    {Lists: dims(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17)},
	} {
		_, err := opmeter.Profile(t.Context(), m, o)
		if _, ok := errors.AsType[*opmeter.OptionError](err); !ok || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
