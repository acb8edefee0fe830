package command_test

import (
	"encoding/csv"
	"fmt"
	"os"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/opmeter/opmeter/internal/record/tpu/command"
	"github.com/opmeter/opmeter/internal/testing/material"
)

var memInfo = regexp.MustCompile(`^(tiu|gdma):id=(\d+), shape=([0-9x]+),.*layout=(\w+)$`)

// What BM1684X's commands read and write against the vendor's table of memory records.
func TestAccesses(t *testing.T) {
	t.Parallel()
	f, err := os.Open(material.Path(t, "raw", "bmprofile", "reference_output", "bmprofile_data-1_bm1684x", "mem.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.FieldsPerRecord = -1
	rows, err := r.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]string{}
	for _, row := range rows[1:] {
		m := memInfo.FindStringSubmatch(row[9])
		if m == nil {
			t.Fatalf("record %q", row[9])
		}
		size := row[3]
		if m[4] == "_32IC" {
			// The vendor counts a block of input channels more where they fill the last one.
			var oc, ic, kh, kw int
			if _, err := fmt.Sscanf(m[3], "%dx%dx%dx%d", &oc, &ic, &kh, &kw); err != nil {
				t.Fatal(err)
			}
			size = strconv.Itoa((oc + 63) / 64 * ((ic + 31) / 32) * kh * kw * 32 * 2)
		}
		key := m[1] + m[2]
		want[key] = append(want[key], row[0]+" "+row[1]+" "+size+" "+row[4])
	}
	seen := 0
	for _, s := range streams[:2] {
		list, stop := command.Decode(s.chip, s.engine, stream(t, s.dir, s.file), s.count)
		if stop != nil {
			t.Fatal(stop)
		}
		for i := range list {
			var got []string
			for _, a := range list[i].Accesses(s.chip, nil) {
				space, rw := "global", "R"
				if a.Space == command.Local {
					space = "local"
				}
				if a.Write {
					rw = "W"
				}
				got = append(got, fmt.Sprint(space, " ", a.Addr, " ", a.Size, " ", rw))
			}
			key := s.engine.String() + strconv.Itoa(i)
			w, ok := want[key]
			if !ok {
				continue // its record was lost
			}
			seen += len(w)
			sort.Strings(got)
			sort.Strings(w)
			if strings.Join(got, ", ") != strings.Join(w, ", ") {
				t.Errorf("%s %s:\n have %v\n want %v", key, list[i].Name(), got, w)
			}
		}
	}
	if seen != 176+403 {
		t.Errorf("%d records compared, want 579", seen)
	}
}
