package cli

import (
	"io"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/advise"
)

// TestAdvisedCommands: the commands of all rules are ones that the program understands.
func TestAdvisedCommands(t *testing.T) {
	t.Parallel()
	given := strings.NewReplacer("--threads N", "--threads 2", "MODEL", "m.onnx", "INPUTS", "--shape x=1x2", "ON", "--threads 1", "NAME", "m", "EXT", "onnx", "ENGINE", "onnxruntime")
	for _, r := range advise.Rules {
		on := given.Replace(r.Command)
		if r.Where == advise.OnTarget {
			on = strings.ReplaceAll(on, "--threads 1", "--on stm32l4r5")
		}
		root := newRoot(newApp(strings.NewReader(""), io.Discard, io.Discard))
		c, args, err := root.Find(strings.Fields(on)[1:])
		if err == nil {
			err = c.ParseFlags(args)
		}
		if err != nil {
			t.Errorf("%s: %s: %v", r.Code, on, err)
			continue
		}
		// An argument too many is the value of an option that takes it only after =.
		if n := len(c.Flags().Args()); n != 1 {
			t.Errorf("%s: %s: %d arguments: %q", r.Code, on, n, c.Flags().Args())
		}
	}
}
