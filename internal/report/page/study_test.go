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

	"github.com/opmeter/opmeter/study"
)

// TestStudyTypes compares the keys of a study with those that the page's program knows.
func TestStudyTypes(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../web/src/study/types.ts")
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
	var compare func(typ reflect.Type)
	compare = func(typ reflect.Type) {
		for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice {
			typ = typ.Elem()
		}
		if typ.Kind() != reflect.Struct || seen[typ] || !strings.HasSuffix(typ.PkgPath(), "/study") {
			return
		}
		seen[typ] = true
		var want []string
		for _, f := range reflect.VisibleFields(typ) {
			compare(f.Type)
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
	compare(reflect.TypeFor[study.Study]())
	if len(seen) < 10 {
		t.Errorf("%d types compared", len(seen))
	}
}

// TestStudyWords looks for words for all codes of a study.
func TestStudyWords(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../web/src/study/words.ts")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name  string
		codes []string
	}{
		{"causes", texts(study.Causes())},
		{"structures", texts(study.Structures())},
		{"formats", texts(study.Formats())},
		{"methods", texts(study.Methods())},
	} {
		body := regexp.MustCompile(`(?s)const ` + tt.name + `: Record<string, string> = \{(.*?)\};`).FindSubmatch(text)
		if body == nil {
			t.Errorf("no list of %s", tt.name)
			continue
		}
		var got []string
		for _, m := range regexp.MustCompile(`(?:^|[\s,])"?([\w:]+)"?: "`).FindAllSubmatch(body[1], -1) {
			got = append(got, string(m[1]))
		}
		slices.Sort(got)
		slices.Sort(tt.codes)
		if !slices.Equal(got, tt.codes) {
			t.Errorf("%s: the page has words for %v, codes are %v", tt.name, got, tt.codes)
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
