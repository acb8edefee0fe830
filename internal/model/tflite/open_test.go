package tflite

import (
	"archive/zip"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func writeFile(t *testing.T, name string, data []byte) string {
	t.Helper()
	p := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(p, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

func writeArchive(t *testing.T, name string, members map[string][]byte) string {
	t.Helper()
	p := filepath.Join(t.TempDir(), name)
	f, err := os.Create(p)
	if err != nil {
		t.Fatal(err)
	}
	z := zip.NewWriter(f)
	for member, data := range members {
		w, err := z.Create(member)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(data); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(z.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestOpenArchive(t *testing.T) {
	t.Parallel()
	model := smallModel(t)
	for _, tc := range []struct {
		name, archive, pick, want, errors string
		members                           map[string][]byte
	}{
		{
			name: "like the archive", archive: "kws.mltk.zip", want: "!kws.tflite",
			members: map[string][]byte{"kws.tflite": model, "kws.float32.tflite": nil, "kws.h5": nil, "other.tflite": nil},
		},
		{name: "only one", archive: "renamed.mltk.zip", want: "!kws.tflite", members: map[string][]byte{"kws.tflite": model, "kws.float32.tflite": nil}},
		{name: "named", archive: "a.zip", pick: "!b.float32.tflite", want: "!b.float32.tflite", members: map[string][]byte{"b.tflite": nil, "b.float32.tflite": model}},
		{name: "several", archive: "a.zip", errors: "archive has 2 models", members: map[string][]byte{"b.tflite": model, "c.tflite": model}},
		{name: "none", archive: "a.zip", errors: "archive has no .tflite model", members: map[string][]byte{"readme": nil}},
		{name: "no members", archive: "a.mltk.zip", errors: "archive has no .tflite model"},
		{name: "no member", archive: "a.zip", pick: "!x", errors: `archive has no member "x"`, members: map[string][]byte{"b.tflite": model}},
		{name: "broken", archive: "a.zip", errors: "a.zip!a.tflite: Model at byte 0", members: map[string][]byte{"a.tflite": {1}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			p := writeArchive(t, tc.archive, tc.members)
			m, err := Open(p + tc.pick)
			if tc.errors != "" {
				if err == nil || !strings.Contains(err.Error(), tc.errors) {
					t.Fatalf("error is %v, want %q", err, tc.errors)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if m.Path != p+tc.want {
				t.Errorf("path is %s, want %s", m.Path, p+tc.want)
			}
			if err := m.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestOpenErrors(t *testing.T) {
	t.Parallel()
	model := smallModel(t)
	cyclic := func() []byte {
		m, err := Parse(model, "small")
		if err != nil {
			t.Fatal(err)
		}
		g := m.Main()
		g.Values[3].Const, g.Values[3].Variable = nil, true // lets Encode pass
		g.Nodes[0].Inputs[0] = 3
		data, err := Encode(m)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	for _, tc := range []struct {
		name, path, want string
	}{
		{"absent", filepath.Join(t.TempDir(), "none.tflite"), "no such file"},
		{"folder", t.TempDir(), "is a folder"},
		{"empty", writeFile(t, "e.tflite", nil), "the file is empty"},
		{"cut", writeFile(t, "c.tflite", model[:len(model)/2]), "c.tflite: Model"},
		{"random", writeFile(t, "r.tflite", []byte(strings.Repeat("opmeter!", 20))), "identifier"},
		{"wrong type", writeFile(t, "w.tflite", []byte("\x08\x07\x12\x04test")), "identifier"},
		{"member of a model", writeFile(t, "m.tflite", cyclic()) + "!x", "not an archive"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if tc.name == "absent" && runtime.GOOS == "windows" {
				tc.want = "cannot find"
			}
			_, err := Open(tc.path)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("error is %v, want %q", err, tc.want)
			}
			if te := (*Error)(nil); !errors.As(err, &te) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %q is not one line of *Error", err)
			}
		})
	}
}
