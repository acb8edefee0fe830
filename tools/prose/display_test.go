package main

import (
	"testing"
)

func TestDisplay(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		code string
		want int
	}{
		"prefix":     {`_ = strings.HasPrefix(l.Cause.Text, "wrong type")`, 1},
		"cut":        {`_, _, _ = strings.Cut(l.Reason, ";")`, 1},
		"compare":    {`_ = p.Findings[0].Text == "done"`, 1},
		"pattern":    {`_ = re.MatchString(m.Method)`, 1},
		"switch":     {`switch l.Placement.Text { case "a": }`, 1},
		"made":       {`s := "because " + l.Cause.Text; _ = s`, 0},
		"empty":      {`_ = l.Cause.Text == ""`, 0},
		"other text": {`_ = strings.HasPrefix(o.Text, "a")`, 0},
		"the code":   {`_ = l.Cause.Code == "type"`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found, err := checkGo("x.go", "package x\nfunc f() {\n"+tt.code+"\n}\n", false, true)
			if err != nil || len(found) != tt.want {
				t.Errorf("%v, %v; want %d places", found, err, tt.want)
			}
		})
	}
}
