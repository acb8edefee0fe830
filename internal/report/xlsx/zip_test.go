package xlsx

import (
	"archive/zip"
	"bytes"
	"io"
	"testing"
)

func TestReplacer(t *testing.T) {
	t.Parallel()
	in := []byte(`<a/><dataBar showValue="true"></dataBar><<dataBa/><dataBar x="1"/></worksheet>`)
	want := `<a/><dataBar minLength="0" maxLength="100" showValue="true"></dataBar><<dataBa/><dataBar minLength="0" maxLength="100" x="1"/></worksheet>`
	for cut := 1; cut <= len(in); cut++ {
		var b bytes.Buffer
		r := &replacer{w: &b}
		for rest := in; len(rest) > 0; {
			n := min(cut, len(rest))
			if m, err := r.Write(rest[:n]); m != n || err != nil {
				t.Fatalf("wrote %d of %d: %v", m, n, err)
			}
			rest = rest[n:]
		}
		if b.String() != want {
			t.Errorf("in pieces of %d: %s", cut, b.String())
		}
	}
}

// Sheets come in any order and stand in theirs.
func TestArchiveOrder(t *testing.T) {
	t.Parallel()
	write := func(names ...string) []byte {
		var b bytes.Buffer
		z := newArchive(&b)
		for _, n := range names {
			w, err := z.Create(n)
			if err == nil {
				_, err = w.Write([]byte("<a>" + n + "</a>"))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	const one, two, rest = "xl/worksheets/sheet1.xml", "xl/worksheets/sheet2.xml", "xl/workbook.xml"
	a := write(one, two, rest)
	if !bytes.Equal(a, write(two, one, rest)) {
		t.Error("the order of writing shows")
	}
	r, err := zip.NewReader(bytes.NewReader(a), int64(len(a)))
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []string{one, two, rest} {
		f, err := r.Open(n)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(f); err != nil || string(got) != "<a>"+n+"</a>" {
			t.Errorf("%s: %q, %v", n, got, err)
		}
	}
}
