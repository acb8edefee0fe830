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
