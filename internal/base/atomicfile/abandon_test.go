package atomicfile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// resume takes back that the program gives up, for the tests after this one.
func resume() {
	temporary.Lock()
	defer temporary.Unlock()
	temporary.abandoned = false
}

// TestAbandon gives up while two files are being written: neither appears, what was there
// stays, and nothing is left behind. Giving up is the program's, so that nothing runs beside
// this test.
func TestAbandon(t *testing.T) {
	defer resume()
	dir := t.TempDir()
	old, fresh, done := filepath.Join(dir, "old"), filepath.Join(dir, "fresh"), filepath.Join(dir, "done")
	if err := errors.Join(os.WriteFile(old, []byte("before"), 0o600), Write(done, []byte("whole"))); err != nil {
		t.Fatal(err)
	}
	names := func() (out []string) {
		list, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list {
			out = append(out, e.Name())
		}
		return out
	}
	err := Stream(old, func(w io.Writer) error {
		if _, err := w.Write([]byte("after")); err != nil {
			return err
		}
		return Stream(fresh, func(w io.Writer) error {
			if n := len(names()); n != 4 {
				t.Errorf("%d files while two are written: %q", n, names())
			}
			Abandon()
			if n := len(names()); n != 2 {
				t.Errorf("%d files after giving up: %q", n, names())
			}
			_, err := w.Write([]byte("content"))
			return err
		})
	})
	if !errors.Is(err, ErrAbandoned) {
		t.Errorf("the files that were being written: %v", err)
	}
	// The outer one alone ends the same way.
	resume()
	err = Stream(old, func(io.Writer) error { Abandon(); return nil })
	if !errors.Is(err, ErrAbandoned) {
		t.Errorf("a file that was being written: %v", err)
	}
	if err := Write(fresh, nil); !errors.Is(err, ErrAbandoned) {
		t.Errorf("a file after giving up: %v", err)
	}
	if err := Check(fresh); !errors.Is(err, ErrAbandoned) {
		t.Errorf("a file that is asked about after giving up: %v", err)
	}
	Abandon() // a second time does no harm
	if n := names(); len(n) != 2 {
		t.Errorf("left: %q", n)
	}
	for path, want := range map[string]string{old: "before", done: "whole"} {
		if b, err := os.ReadFile(path); err != nil || string(b) != want {
			t.Errorf("%s holds %q, %v", filepath.Base(path), b, err)
		}
	}
	if len(temporary.names) != 0 {
		t.Errorf("still being written: %v", temporary.names)
	}
	resume()
	if err := Write(fresh, []byte("again")); err != nil {
		t.Error(err)
	}
}

// TestPatch replaces bytes that were written, also those that still waited.
func TestPatch(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x")
	err := Stream(path, func(w io.Writer) error {
		if _, err := w.Write([]byte("0123456789")); err != nil {
			return err
		}
		if err := w.(Patcher).Patch(2, []byte("ab")); err != nil {
			return err
		}
		_, err := w.Write([]byte("!"))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != "01ab456789!" {
		t.Errorf("%q, %v", b, err)
	}
}
