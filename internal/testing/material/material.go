// Package material finds the reference material (models, goldens, published
// data) that many tests compare with. It is not part of the repository.
//
// OPMETER_SHARED names its folder; without it "shared" beside the repository is
// tried. Where it is absent, tests that need it skip with one line, or fail when
// OPMETER_REQUIRE is set (as in CI). Only tests and benchmarks import this package.
package material

import (
	"encoding/csv"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// Root returns the folder of this module's source.
func Root() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Dir(filepath.Dir(filepath.Dir(filepath.Dir(file))))
}

// Dir returns the material's folder, "" if absent.
func Dir() string {
	dir := os.Getenv("OPMETER_SHARED")
	if dir == "" {
		dir = filepath.Join(Root(), "..", "shared")
	}
	if st, err := os.Stat(dir); err != nil || !st.IsDir() {
		return ""
	}
	return dir
}

// Models lists the model files that paths lead to: files, and folders with what lies below them.
func Models(paths []string) (files []string, err error) {
	for _, p := range paths {
		err := filepath.WalkDir(p, func(p string, e fs.DirEntry, err error) error {
			if err == nil && !e.IsDir() && (strings.HasSuffix(p, ".onnx") || strings.HasSuffix(p, ".tflite")) {
				files = append(files, p)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return files, nil
}

// Required reports whether missing material or tools must fail a test.
func Required() bool { return os.Getenv("OPMETER_REQUIRE") != "" }

// Path returns the path of a file or folder of the material, and skips or fails
// the test when it is absent.
func Path(t testing.TB, elem ...string) string {
	t.Helper()
	dir := Dir()
	p := filepath.Join(append([]string{dir}, elem...)...)
	if dir != "" {
		if _, err := os.Stat(p); err == nil {
			return p
		}
	}
	Skip(t, "reference material "+filepath.Join(elem...)+" is absent: set OPMETER_SHARED to its folder")
	return ""
}

// Table reads a CSV file of the material, a map from column to text for each row.
func Table(t testing.TB, elem ...string) []map[string]string {
	t.Helper()
	f, err := os.Open(Path(t, elem...))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) == 0 {
		t.Fatalf("%s is empty", filepath.Join(elem...))
	}
	rows := make([]map[string]string, 0, len(all)-1)
	for _, r := range all[1:] {
		m := make(map[string]string, len(r))
		for i, v := range r {
			m[all[0][i]] = v
		}
		rows = append(rows, m)
	}
	return rows
}

// Skip skips the test for a missing requirement, or fails it where requirements
// must be met.
func Skip(t testing.TB, why string) {
	t.Helper()
	if Required() {
		t.Fatal(why)
	}
	t.Skip(why)
}
