package testengine_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	opm "github.com/opmeter/opmeter"
	"github.com/opmeter/opmeter/engine"
	"github.com/opmeter/opmeter/internal/cli"
	"github.com/opmeter/opmeter/internal/testing/testengine"
)

// timer loads the model in a library that behaves so.
func timer(t *testing.T, b testengine.Behaviour) (*opm.Timer, error) {
	t.Helper()
	lib, err := testengine.Write(t.TempDir(), b)
	if err != nil {
		t.Fatal(err)
	}
	found, err := engine.Find("onnxruntime=" + lib)
	if err != nil {
		t.Fatal(err)
	}
	found[0].Silent = 2 * time.Minute
	m, err := opm.Open(model)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return opm.NewTimer(t.Context(), m, opm.Options{Engine: found[0]})
}

// TestTimer times a model in an external engine in blocks, and tells what went wrong there.
func TestTimer(t *testing.T) {
	t.Parallel()
	x, err := timer(t, testengine.Behaviour{})
	if err != nil {
		t.Fatal(err)
	}
	if err := x.Warm(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if b, err := x.Block(t.Context(), time.Millisecond); err != nil || !(b.Seconds > 0) || b.Inferences < 1 {
			t.Errorf("%+v, %v", b, err)
		}
	}
	x.Close()
	if _, err := x.Block(t.Context(), time.Millisecond); err == nil {
		t.Error("a block after the end")
	}
	if _, err := timer(t, testengine.Behaviour{Faults: []testengine.Fault{{At: testengine.Load, What: testengine.Error}}}); err == nil || !strings.Contains(err.Error(), "does not feel like it") {
		t.Errorf("a model that is refused: %v", err)
	}
	x, err = timer(t, testengine.Behaviour{Faults: []testengine.Fault{{At: testengine.Run, What: testengine.Exit3, After: 10}}})
	if err == nil {
		if err = x.Warm(t.Context()); err == nil {
			_, err = x.Block(t.Context(), time.Millisecond)
		}
		x.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("an engine that ends: %v", err)
	}
}

// TestAB compares two engines, and refuses options that one of them would ignore. An engine of one
// alternative replaces that of all, and the path of a library may have a comma.
func TestAB(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "a,b")
	if err := os.Mkdir(folder, 0o777); err != nil {
		t.Fatal(err)
	}
	lib, err := testengine.Write(folder, testengine.Behaviour{})
	if err != nil {
		t.Fatal(err)
	}
	ab := func(args ...string) (status int, out, errs string) {
		var o, e bytes.Buffer
		args = append([]string{"ab", "--budget", "2s"}, args...)
		status = cli.Main(args, strings.NewReader(""), &o, &e)
		return status, o.String(), e.String()
	}
	other := "onnxruntime=" + lib
	for _, args := range [][]string{
		{model, "--engine", "opmeter," + other, "--name", "own", "--name", "other"},
		{model, "--engine", "opmeter", "--engine", other, "--name", "own", "--name", "other"},
		{model, model + " --engine '" + other + "'", "--engine", "opmeter", "--name", "own", "--name", "other"},
	} {
		status, out, errs := ab(append(args, "--format", "json")...)
		if status != 0 || !strings.Contains(out, `"name": "other"`) || !strings.Contains(out, `"inferences": `) || strings.Count(out, "/a,b/") == 0 {
			t.Errorf("%q: status %d: %s\n%s", args, status, errs, out)
		}
	}
	if status, _, errs := ab(model, "--engine", "opmeter,"+other, "--exact"); status != 2 || !strings.Contains(errs, "--exact: onnxruntime would ignore it") {
		t.Errorf("status %d: %s", status, errs)
	}
}
