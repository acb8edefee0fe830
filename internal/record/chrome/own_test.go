package chrome_test

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/opmeter/opmeter/internal/record"
	"github.com/opmeter/opmeter/internal/record/chrome"
	report "github.com/opmeter/opmeter/internal/report/chrome"
	"github.com/opmeter/opmeter/internal/testing/records"
	"github.com/opmeter/opmeter/internal/testing/sample"
	"github.com/opmeter/opmeter/profile"
)

// TestRoundTrip writes a profile, reads it, and writes it again: the same text, but for what the
// format does not hold. Layers that have no bar are absent, so that those that follow have
// other numbers.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	p := sample.New(sample.Options{})
	write := func(p *profile.Profile) string {
		var b bytes.Buffer
		if err := report.Write(&b, p); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	first := write(p)
	q := records.Read(t, chrome.Format(), []*record.File{record.Bytes("x.json", []byte(first))}, record.Options{})[0]
	if q.Model.SHA256 != p.Model.SHA256 || q.Created != p.Created || q.Target.ID != p.Target.ID {
		t.Errorf("%+v %s %+v", q.Model, q.Created, q.Target)
	}
	want, got := strings.Split(first, "\n"), strings.Split(write(q), "\n")
	if len(want) != len(got) {
		t.Fatalf("%d lines, want %d", len(got), len(want))
	}
	differ := 0
	numberWant, numberGot := renumber(), renumber()
	for i := range want {
		w, g := numberWant(want[i]), numberGot(got[i])
		if w == g || strings.HasPrefix(w, `"otherData"`) {
			continue
		}
		if differ++; differ < 4 {
			t.Errorf("line %d: %s", i+1, cmp.Diff(w, g))
		}
	}
	if differ > 0 {
		t.Errorf("%d of %d lines differ", differ, len(want))
	}
}

var layers = regexp.MustCompile(`"layer":\d+`)

// renumber gives layers numbers in the order in which they appear.
func renumber() func(string) string {
	at := map[string]string{}
	return func(line string) string {
		return layers.ReplaceAllStringFunc(line, func(s string) string {
			if at[s] == "" {
				at[s] = fmt.Sprintf(`"layer":#%d`, len(at))
			}
			return at[s]
		})
	}
}
