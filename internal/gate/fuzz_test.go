package gate

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// FuzzPolicy: whatever a policy holds, it is read or refused with its name.
func FuzzPolicy(f *testing.F) {
	f.Add([]byte(DefaultText))
	f.Add([]byte("models: [{model: a, targets: [host]}]\nfigures: [{figure: macs, margin: 1%}]\nmeasure: {budget: 1s, processes: 5}\n"))
	f.Add([]byte("a: &a [*a, *a]\nfigures: *a\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := ParsePolicy(b, "p.yaml")
		if err == nil {
			for _, r := range p.For("m/x.tflite", Host) {
				if _, ok := Lookup(r.Figure); !ok || r.Margin < 0 || r.Floor < 0 {
					t.Errorf("%+v", r)
				}
			}
			return
		}
		if _, ok := errors.AsType[*PolicyError](err); !ok {
			t.Errorf("%T: %v", err, err)
		}
	})
}

// FuzzIndex: whatever an index holds, what is whole is read, and a record can be appended and is
// read again.
func FuzzIndex(f *testing.F) {
	f.Add([]byte(`{"kind":"run","time":"2030-01-02T03:04:05Z","model":"m","target":"host","machine":"any","settings":"default","figures":{"macs":1}}` + "\n" + `{"kind":`))
	f.Add([]byte("<<<<<<< HEAD\n\x00\xff\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		dir := t.TempDir()
		index := filepath.Join(dir, BaselineDir, IndexFile)
		if err := errors.Join(os.Mkdir(filepath.Dir(index), 0o755), os.WriteFile(index, b, 0o600)); err != nil {
			t.Fatal(err)
		}
		s, err := Open(dir)
		if err != nil {
			return // a line that is too long
		}
		before := len(s.Records)
		if err := s.Add(record(Ran, "after", 1)); err != nil {
			t.Fatal(err)
		}
		if s, err = Open(dir); err != nil || len(s.Records) < before || s.Records[len(s.Records)-1].Model != "after" {
			t.Errorf("%d records, then %+v, %v", before, s, err)
		}
	})
}
