package onnx

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAbsent reads shapes without the external data, and sizes from the file's own entries. What
// else is wrong with the entries stays an error.
func TestAbsent(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "m.onnx")
	open := func(entries ...string) error {
		data := model(externalTensor(2, entries...), input("x"), node("Add y = x w"), output("y"))
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(path); err == nil {
			t.Errorf("%v: opened", entries)
		}
		m, err := OpenShapes(path)
		if err != nil {
			return err
		}
		defer func() { _ = m.Close() }()
		for _, v := range m.Main().Values {
			if v.Name == "w" && (v.Const == nil || v.Const.Known() || v.Const.Bytes() != 8) {
				t.Errorf("%v: constant %+v, want 8 bytes without elements", entries, v.Const)
			}
		}
		if !errors.Is(m.Absent, fs.ErrNotExist) || m.BesideBytes != 8 || len(m.Warnings) != 1 {
			t.Errorf("%v: absent %v, %d bytes, warnings %q", entries, m.Absent, m.BesideBytes, m.Warnings)
		}
		return nil
	}
	if err := open("location", "gone.bin", "offset", "4096", "length", "8"); err != nil {
		t.Error(err)
	}
	for want, entries := range map[string][]string{
		"takes 8 bytes": {"location", "gone.bin", "length", "12"},
		"outside":       {"location", "../gone.bin"},
	} {
		if err := open(entries...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", entries, err, want)
		}
	}
}
