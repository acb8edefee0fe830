package cli

import (
	"testing"

	"github.com/spf13/cobra"
)

// TestEnginesInParts gives engines in one list and in several.
func TestEnginesInParts(t *testing.T) {
	t.Parallel()
	for _, c := range [][]string{{"--engine", "a,b"}, {"--engine", "a", "--engine", "b"}} {
		var f engineFlags
		command := &cobra.Command{}
		f.addEngines(command)
		if f.list != ownEngine {
			t.Errorf("without the option the engine is %q", f.list)
		}
		if err := command.ParseFlags(c); err != nil || f.list != "a,b" {
			t.Errorf("%q: the engines are %q, error %v", c, f.list, err)
		}
	}
}
