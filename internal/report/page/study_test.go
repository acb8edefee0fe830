package page

import (
	"bytes"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/opmeter/opmeter/profile"
	"github.com/opmeter/opmeter/profile/align"
	"github.com/opmeter/opmeter/profile/compare"
	"github.com/opmeter/opmeter/study"
)

// TestTypes compares the keys of studies and comparisons with those that the page's program knows.
func TestTypes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		file string
		root reflect.Type
		pkg  string
		few  int // types at least
	}{
		{"study", reflect.TypeFor[study.Study](), "/study", 10},
		{"compare", reflect.TypeFor[compare.Table](), "/compare", 8},
	} {
		t.Run(tt.file, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile("../../../web/src/" + tt.file + "/types.ts")
			if err != nil {
				t.Fatal(err)
			}
			known := map[string][]string{}
			for _, m := range regexp.MustCompile(`(?s)export interface (\w+) \{\n(.*?)\n\}`).FindAllStringSubmatch(string(text), -1) {
				for _, f := range regexp.MustCompile(`(?m)^  (\w+)\??:`).FindAllStringSubmatch(m[2], -1) {
					known[m[1]] = append(known[m[1]], f[1])
				}
			}
			seen := map[reflect.Type]bool{}
			var visit func(typ reflect.Type)
			visit = func(typ reflect.Type) {
				for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice {
					typ = typ.Elem()
				}
				if typ.Kind() != reflect.Struct || seen[typ] || !strings.HasSuffix(typ.PkgPath(), tt.pkg) {
					return
				}
				seen[typ] = true
				var want []string
				for _, f := range reflect.VisibleFields(typ) {
					visit(f.Type)
					if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
						want = append(want, name)
					}
				}
				got := slices.Clone(known[typ.Name()])
				slices.Sort(got)
				slices.Sort(want)
				// Settings are embedded: the page has their keys in what holds them.
				if !strings.HasSuffix(typ.Name(), "Settings") && !slices.Equal(got, want) {
					t.Errorf("%s: the page knows %v, it has %v", typ.Name(), got, want)
				}
			}
			visit(tt.root)
			if len(seen) < tt.few {
				t.Errorf("%d types compared", len(seen))
			}
		})
	}
}

// TestWords looks for words for all codes of studies and comparisons.
func TestWords(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		file, name string
		codes      []string
	}{
		{"study", "causes", texts(study.Causes())},
		{"study", "structures", texts(study.Structures())},
		{"study", "formats", texts(study.Formats())},
		{"study", "methods", texts(study.Methods())},
		{"compare", "kinds", texts([]align.Kind{align.Same, align.Quantised, align.Pruned, "resized", align.Fused, align.Split, align.Replaced, align.Inserted, align.Removed})},
		{"compare", "sources", texts([]compare.Source{compare.Measured, compare.Imported, compare.Estimated, compare.Counted})},
		{"compare", "intervals", texts([]compare.Interval{compare.CI95, compare.Band90, compare.Exact})},
		{"compare", "reasonNames", texts([]compare.ReasonCode{
			compare.ByWork, compare.ByBytes, compare.ByType, compare.ByKernel, compare.ByPlacement, compare.ByFusion, compare.ByClock, compare.ByThreads,
		})},
		{"compare", "limits", texts([]compare.NoteCode{
			compare.OtherModel, compare.OtherName, compare.OtherNodes, compare.OtherThreads, compare.OtherBatch, compare.OtherShapes, compare.OtherInputs,
			compare.OtherMachine, compare.OtherKind, compare.NotGood, compare.NotWhole, compare.OtherResults, compare.NoLayers,
		})},
		{"compare", "outcomes", texts([]profile.DifferenceState{profile.Equal, profile.Rounding, profile.Differs, profile.NotComparable})},
	} {
		text, err := os.ReadFile("../../../web/src/" + tt.file + "/words.ts")
		if err != nil {
			t.Fatal(err)
		}
		body := regexp.MustCompile(`(?s)const ` + tt.name + `: Record<\w+, string> = \{(.*?)\};`).FindSubmatch(text)
		if body == nil {
			t.Errorf("no list of %s", tt.name)
			continue
		}
		var got []string
		for _, m := range regexp.MustCompile(`(?:^|[\s,])"?([\w: ]+?)"?: "`).FindAllSubmatch(body[1], -1) {
			got = append(got, strings.TrimSpace(string(m[1])))
		}
		for _, c := range tt.codes {
			if !slices.Contains(got, c) {
				t.Errorf("%s: no word for %q", tt.name, c)
			}
		}
	}
}

func texts[T ~string](list []T) []string {
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = string(v)
	}
	return out
}

// TestWriteStudy looks for what a page needs, and for text of a model that would end a script.
func TestWriteStudy(t *testing.T) {
	t.Parallel()
	s := &study.Study{Created: time.Unix(0, 0).UTC(), Layers: []study.Layer{{Name: "</script><b>"}}}
	s.Model.Name = `<img src=x onerror="alert(1)">`
	var b bytes.Buffer
	if err := WriteStudy(&b, s, "1"); err != nil {
		t.Fatal(err)
	}
	out := b.String()
	for _, want := range []string{"Content-Security-Policy", `data-part="document"`, `data-part="columns"`, `data-part="script"`} {
		if !strings.Contains(out, want) {
			t.Errorf("no %s", want)
		}
	}
	if strings.Contains(out, "<img") || strings.Contains(out, "</script><b>") {
		t.Error("text of the model stands in the page as it is")
	}
}
