package words

import (
	"testing"

	"github.com/opmeter/opmeter/profile/compare"
)

// TestVersusModels puts no model's name over runs of another.
func TestVersusModels(t *testing.T) {
	t.Parallel()
	c := &compare.Table{Model: "a", Runs: []compare.Run{{Model: "a"}, {Model: "b"}, {Model: "a"}}}
	for code, want := range map[compare.NoteCode]string{compare.OtherName: "a, b", compare.OtherModel: "a, b", compare.NotGood: "a"} {
		c.Notes = []compare.Note{{Code: code, Runs: []int{1}}}
		if got := VersusModels(c); got != want {
			t.Errorf("%s: %q, want %q", code, got, want)
		}
	}
}

// TestVersusNotes says of models how they get times, and of records that their time is unknown.
func TestVersusNotes(t *testing.T) {
	t.Parallel()
	c := &compare.Table{Runs: []compare.Run{{Name: "a", Source: compare.Counted}, {Name: "b", Source: compare.Estimated}, {Name: "c", Source: compare.Counted}}}
	for want, runs := range map[string][]int{
		"a, c: no times; profile it, or use opmeter ab, to compare times.":                                                                   {0, 2},
		"b: the time of the whole model is unknown, so that work is compared.":                                                               {1},
		"a: no times; profile it, or use opmeter ab, to compare times. b: the time of the whole model is unknown, so that work is compared.": {0, 1},
	} {
		if got := VersusNote(c, &compare.Note{Code: compare.NoTimes, Runs: runs}); got != want {
			t.Errorf("%v: %q, want %q", runs, got, want)
		}
	}
}

// TestVersusReasons says what differs in words.
func TestVersusReasons(t *testing.T) {
	t.Parallel()
	got := VersusReasons([]compare.Reason{
		{Code: compare.ByPlacement, FirstText: "cpu", ThisText: "npu"},
		{Code: compare.ByOptions, FirstText: "default", ThisText: "group 2"},
		{Code: compare.ByType, FirstText: "int8", ThisText: "float32"},
	})
	if want := "on npu instead of cpu, options default → group 2, int8 → float32"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
