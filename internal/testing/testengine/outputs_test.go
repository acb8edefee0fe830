package testengine_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/cli"
	"github.com/opmeter/opmeter/internal/testing/testengine"
)

// The outputs of layers of an engine in a child process are compared with those of opmeter's own,
// in both orders; what goes wrong in it is told.
func TestOutputsOfEngines(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		b      testengine.Behaviour
		status int
		out    string
		errs   string
	}{
		{"the same", testengine.Behaviour{}, 0, "Outputs of all layers are equal, bit by bit (1 row)\n", ""},
		{"wrong", testengine.Behaviour{Wrong: true}, 0, "Outputs part at #0 Relu \"relu\": it adds an error of SNR ", ""},
		{"crashes", testengine.Behaviour{Faults: []testengine.Fault{{At: testengine.Outputs, What: testengine.Crash}}}, 4, "", "crashed"},
	} {
		lib, err := testengine.Write(t.TempDir(), c.b)
		if err != nil {
			t.Fatal(err)
		}
		for _, list := range []string{"opmeter,onnxruntime=" + lib, "onnxruntime=" + lib + ",opmeter"} {
			var out, errs bytes.Buffer
			status := cli.Main([]string{"compare", "--outputs", model, "--engine", list}, strings.NewReader(""), &out, &errs)
			if status != c.status || !strings.HasPrefix(out.String(), c.out) || !strings.Contains(errs.String(), c.errs) {
				t.Errorf("%s, %s: status %d\n%s%s", c.name, list, status, out.String(), errs.String())
			}
		}
	}
}
