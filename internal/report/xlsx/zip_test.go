package xlsx

import (
	"bytes"
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
