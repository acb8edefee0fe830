package work

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSingle: a record with several runs ends with what to do, and one with a single run goes on.
func TestSingle(t *testing.T) {
	t.Parallel()
	for want, names := range map[string][]string{
		"": {"result.opmeter"},
		"the record has 2 runs, and a job keeps one: write them with opmeter import RECORD -o result.opmeter, and push the files": {"result-a.opmeter", "result-b.opmeter"},
	} {
		dir := t.TempDir()
		for _, name := range names {
			if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		err := single(dir, filepath.Join(dir, "result.opmeter"))
		if (err == nil) != (want == "") || err != nil && (err.Error() != want || strings.Contains(err.Error(), dir)) {
			t.Errorf("%v: %v, want %q", names, err, want)
		}
	}
}
